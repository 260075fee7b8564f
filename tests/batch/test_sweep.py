"""Sweeps: the same table whatever happens on the way."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
import sweep_tasks
from holdfast.batch.sweep.cases import key_of, with_seeds
from holdfast.batch.sweep.journal import ROOM, Journal
from holdfast.batch.sweep.run import journal_of

CASES = hf.cases.grid({"x": [0.5, 2.0, 3.0], "n": list(range(20))})


def run(task: Any, cases: Any, out: Path | None = None, **more: Any) -> hf.SweepTable:
    return hf.sweep(task, cases, out, **{"workers": 1, "progress": False, "warmup": False} | more)


# --- cases ------------------------------------------------------------------------------------


def test_grid_is_the_product_with_the_last_one_first() -> None:
    cases = hf.cases.grid({"a": [1, 2], "b": ["x", "y"]})
    assert [tuple(case.values()) for case in cases] == [(1, "x"), (1, "y"), (2, "x"), (2, "y")]


@pytest.mark.parametrize("method", ["random", "latin", "sobol"])
def test_samples_follow_their_distributions(method: Any) -> None:
    from scipy.stats import triang

    cases = hf.cases.sample(
        512,
        {"u": {"uniform": [-1.0, 3.0]}, "l": {"log_uniform": [1e-3, 1e3]},
         "g": {"normal": [5.0, 2.0]}, "i": {"integers": [1, 6]}, "c": {"choice": ["a", "b"]},
         "t": triang(0.5)},
        method=method, seed=3,
    )  # fmt: skip
    column = {name: np.array([case[name] for case in cases]) for name in cases[0]}
    assert column["u"].min() >= -1 and column["u"].max() <= 3
    assert column["u"].mean() == pytest.approx(1.0, abs=0.2)
    assert np.median(np.log10(column["l"])) == pytest.approx(0.0, abs=0.4)
    assert (column["g"].mean(), column["g"].std()) == pytest.approx((5.0, 2.0), abs=0.25)
    assert set(column["i"].tolist()) == {1, 2, 3, 4, 5, 6}
    assert set(column["c"].tolist()) == {"a", "b"}
    assert column["t"].mean() == pytest.approx(0.5, abs=0.05)
    assert {type(value) for value in cases[0].values()} == {float, int, str}


@pytest.mark.parametrize("method", ["random", "sobol"])
def test_a_longer_sample_begins_with_the_shorter_one(method: Any) -> None:
    of = {"u": {"uniform": [0, 1]}, "v": {"normal": [0, 1]}}
    assert hf.cases.sample(50, of, method=method)[:7] == hf.cases.sample(7, of, method=method)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"uniformly": [0, 1]}, "log_uniform"),
        ({"uniform": [0]}, "uniform"),
        ({"log_uniform": [-1, 1]}, "positive"),
        ({"integers": [0.5, 1]}, "integers"),
        (3.0, "expected one of"),
    ],
)
def test_distributions_that_are_none_are_refused(given: Any, word: str) -> None:
    with pytest.raises(hf.InputError, match=r"sample\.mass.*" + word):
        hf.cases.sample(3, {"mass": given})


def test_csv_has_types(tmp_path: Path) -> None:
    path = tmp_path / "cases.csv"
    path.write_text("a,b,c,d,seed\n1,0.5,x,true,7\n2,1e-3,y,false,8\n\n")
    assert hf.cases.from_csv(path) == [
        {"a": 1, "b": 0.5, "c": "x", "d": True, "seed": 7},
        {"a": 2, "b": 0.001, "c": "y", "d": False, "seed": 8},
    ]


@pytest.mark.parametrize(
    ("text", "word"),
    [("a,b\n", "no case"), ("a,a\n1,2\n", "unique"), ("a,b\n1,2\n3\n", "line 3")],
)
def test_csv_that_is_none_is_refused(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "cases.csv"
    path.write_text(text)
    with pytest.raises(hf.InputError, match=word):
        hf.cases.from_csv(path)


def test_seeds_belong_to_cases() -> None:
    """Whatever the order of cases and parameters, and whatever other cases there are."""
    seeds = {key_of({k: v for k, v in case.items() if k != "seed"}): case["seed"]
             for case in with_seeds(CASES, 0)}  # fmt: skip
    assert len(set(seeds.values())) == len(CASES)
    for case in with_seeds([dict(reversed(case.items())) for case in reversed(CASES[::2])], 0):
        assert seeds[key_of({k: v for k, v in case.items() if k != "seed"})] == case["seed"]
    assert with_seeds(CASES, 1)[0]["seed"] != with_seeds(CASES, 0)[0]["seed"]
    assert with_seeds([{"a": 1, "seed": 5}], 0) == [{"a": 1, "seed": 5}]


def test_equal_cases_are_repetitions_with_seeds_of_their_own() -> None:
    table = run(sweep_tasks.spin, [{"x": 1.0, "n": 1}] * 4)
    assert len(set(table["noise"].tolist())) == 4
    with pytest.raises(hf.InputError, match="case 1 repeats case 0"):
        run(sweep_tasks.spin, [{"x": 1.0, "n": 1, "seed": 3}] * 2)


# --- tables -----------------------------------------------------------------------------------


def test_table_as_csv_keeps_all_digits(tmp_path: Path) -> None:
    table = run(sweep_tasks.spin, CASES, tmp_path / "t.csv")
    with open(tmp_path / "t.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    names = ["x", "n", "seed", "root", "noise", "norm", "even", "text", "count", "error"]
    assert list(lines[0]) == table.names == names
    assert [float(line["noise"]) for line in lines] == table["noise"].tolist()
    assert [line["even"] for line in lines[:2]] == ["true", "false"]
    assert {line["error"] for line in lines} == {""}


def test_table_as_parquet_has_types(tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    table = run(sweep_tasks.spin, CASES, tmp_path / "t.parquet")
    read = pq.read_table(tmp_path / "t.parquet")
    assert read.column_names == table.names
    types = {field.name: str(field.type) for field in read.schema}
    assert [types[name] for name in ("x", "n", "even", "text", "error")] == [
        "double", "int64", "bool", "string", "string",
    ]  # fmt: skip
    assert read.to_pylist() == table.rows


def test_failures_are_rows(tmp_path: Path) -> None:
    table = run(sweep_tasks.picky, hf.cases.grid({"n": range(6)}), tmp_path / "t.csv")
    assert [row["n"] for row in table.failed] == [0, 3]
    assert table.rows[3]["error"] == "ValueError: 3 is not to my taste"
    assert np.isnan(table["half"][0]) and table["half"][5] == 2.5
    journal = [json.loads(line) for line in journal_of(tmp_path / "t.csv").read_text().splitlines()]
    assert "picky" in journal[1]["traceback"]


def test_what_no_table_can_hold_is_a_failure_that_says_so() -> None:
    table = run(lambda n: {"pose": [1, 2, n]}, [{"n": 1}])
    assert "pose: is of type list" in str(table.rows[0]["error"])
    table = run(lambda n: {"n": n}, [{"n": 1}])
    assert "returned 'n'" in str(table.rows[0]["error"])
    assert run(lambda n: n + 0.5, [{"n": 1}])["result"].tolist() == [1.5]


# --- going on ---------------------------------------------------------------------------------


def test_finished_cases_are_not_run_again(tmp_path: Path) -> None:
    calls: list[int] = []

    def task(n: int) -> dict[str, int]:
        calls.append(n)
        if n == 2 and len(calls) < 4:
            raise RuntimeError("the first time")
        return {"square": n * n}

    out, more = tmp_path / "t.csv", {"backend": "threads"}
    first = run(task, hf.cases.grid({"n": [1, 2, 3]}), out, **more)
    assert len(first.failed) == 1
    run(task, hf.cases.grid({"n": [1, 2, 3]}), out, **more)
    assert calls == [1, 2, 3]
    table = run(task, hf.cases.grid({"n": [4, 3, 2, 1]}), out, **more)  # another order, one more
    assert calls == [1, 2, 3, 4] and table["n"].tolist() == [4, 3, 2, 1]
    table = run(task, hf.cases.grid({"n": [1, 2, 3]}), out, retry_failed=True, **more)
    assert calls == [1, 2, 3, 4, 2] and table["square"].tolist() == [1, 4, 9]
    run(task, hf.cases.grid({"n": [1, 2]}), out, fresh=True, **more)
    assert calls[5:] == [1, 2]


def test_results_of_another_task_are_refused(tmp_path: Path) -> None:
    run(sweep_tasks.picky, [{"n": 1}], tmp_path / "t.csv")
    with pytest.raises(hf.InputError, match=r"task was picky, is deadly.*--fresh"):
        run(sweep_tasks.deadly, [{"n": 1}], tmp_path / "t.csv")
    (tmp_path / "t.csv.journal").write_text("a letter\n")
    with pytest.raises(hf.InputError, match="not the journal of a sweep"):
        run(sweep_tasks.picky, [{"n": 1}], tmp_path / "t.csv")


def test_two_sweeps_into_one_file_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    first = Journal(tmp_path / "j", {})
    with pytest.raises(hf.InputError, match="another sweep is writing"):
        Journal(tmp_path / "j", {})
    first.close()
    Journal(tmp_path / "j", {}).close()


@pytest.mark.parametrize("tail", [b"", b'{"key":"b","ca', b"\0" * 500, b'{"key"\0\0'])
def test_journal_drops_a_line_that_is_not_complete(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "j"
    journal = Journal(path, {"task": 1})
    journal.append({"key": "a", "value": 1.0})
    journal.close()
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    journal = Journal(path, {"task": 1})
    assert list(journal.rows) == ["a"] and journal.damaged == 0
    journal.append({"key": "b", "value": 2.0})
    journal.close()
    assert path.read_bytes() == whole + b'{"key":"b","value":2.0}\n'


@pytest.mark.parametrize("cut", [1, 40, 200, 1000])
def test_journal_cut_off_anywhere_makes_the_same_table(tmp_path: Path, cut: int) -> None:
    out = tmp_path / "t.csv"
    run(sweep_tasks.spin, CASES, out)
    expected = out.read_bytes()
    journal = journal_of(out)
    journal.write_bytes(journal.read_bytes()[:-cut])
    run(sweep_tasks.spin, CASES, out)
    assert out.read_bytes() == expected


# --- what does not fit ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cases", "more", "word"),
    [
        ([], {}, "is empty"),
        ([{"m": 1}], {}, r"case 0 \(m\) does not fit the task picky"),
        ([{"n": [1]}], {}, "of type list"),
        ([{"n": float("nan")}], {}, "not finite"),
        ([{"n": 1}], {"workers": 0}, "workers: is 0"),
        ([{"n": 1}], {"backend": "mpi"}, "expected processes, threads, dask, ray"),
        ([{"n": 1}], {"scheduler": "tcp://here"}, "applies to the backends dask and ray"),
        ([{"n": 1}], {"out": "t.xlsx"}, r"\.parquet or \.csv"),
    ],
)
def test_what_does_not_fit_is_refused(cases: Any, more: Any, word: str) -> None:
    with pytest.raises(hf.InputError, match=word):
        run(sweep_tasks.picky, cases, **more)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(hf.InputError, match=r"file/t\.csv\.journal cannot be written"):
        run(sweep_tasks.picky, [{"n": 1}], tmp_path / "file" / "t.csv")


# --- workers ----------------------------------------------------------------------------------


def table_of(tmp_path: Path, name: str, **more: Any) -> bytes:
    out = tmp_path / name
    run(sweep_tasks.spin, CASES, out, **more)
    return out.read_bytes()


@pytest.mark.parametrize("suffix", ["csv", pytest.param("parquet", marks=pytest.mark.slow)])
def test_bytes_are_the_same_for_any_number_of_workers(tmp_path: Path, suffix: str) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    tables = [table_of(tmp_path, f"{n}.{suffix}", workers=n) for n in (1, 2, 4)]
    tables.append(table_of(tmp_path, f"threads.{suffix}", workers=3, backend="threads"))
    assert len(set(tables)) == 1


def test_a_case_that_kills_its_worker_is_a_row(tmp_path: Path) -> None:
    table = run(sweep_tasks.deadly, hf.cases.grid({"n": range(12)}), tmp_path / "t.csv", workers=2)
    assert [row["n"] for row in table.failed] == [5]
    assert "the worker died: SIGKILL" in str(table.rows[5]["error"])
    assert table["twice"][[4, 6]].tolist() == [8.0, 12.0]


def test_a_task_that_cannot_be_sent_is_refused() -> None:
    from threading import Lock

    lock = Lock()
    with pytest.raises(hf.InputError, match=r"task: .* cannot be sent to workers"):
        run(lambda n: {"free": lock.acquire(False)}, hf.cases.grid({"n": [1, 2]}), workers=2)


SCRIPT = """
import sys, holdfast as hf, sweep_tasks
cases = hf.cases.grid({"x": [0.5, 2.0, 3.0], "n": list(range(40))})
hf.sweep(getattr(sweep_tasks, sys.argv[1]), cases, sys.argv[2], workers=int(sys.argv[3]),
         progress=False, warmup=False)
"""


def start(task: str, out: Path, workers: int, **more: Any) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, (str(Path(__file__).parents[1]), os.getenv("PYTHONPATH"))))
    command = [sys.executable, "-c", SCRIPT, task, str(out), str(workers)]
    return subprocess.Popen(
        command, text=True, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}, **more
    )


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def finish(task: str, out: Path, workers: int) -> bytes:
    process = start(task, out, workers)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out.read_bytes()


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
@pytest.mark.parametrize("times", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_killed_the_table_is_the_same(tmp_path: Path, times: int) -> None:
    workers = 1 if times == 1 else 2
    expected = finish("slow", tmp_path / "whole.csv", workers)
    out = tmp_path / "killed.csv"
    journal = journal_of(out)
    for _ in range(times):
        before = lines(journal)
        process = start("slow", out, workers)
        end = time.monotonic() + 60
        while lines(journal) < before + 12 and time.monotonic() < end:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert before < lines(journal) < 121 and not out.exists()
    assert finish("slow", out, workers) == expected


def test_when_no_more_room_can_be_reserved_nothing_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not hasattr(os, "posix_fallocate"):
        pytest.skip("room is reserved by posix_fallocate")
    run(sweep_tasks.wordy, CASES, tmp_path / "whole.csv")
    real, calls = os.posix_fallocate, []

    def fill_up(fd: int, offset: int, size: int) -> None:
        calls.append(offset)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        real(fd, offset, size)

    out = tmp_path / "full.csv"
    monkeypatch.setattr(os, "posix_fallocate", fill_up)
    with pytest.raises(hf.SweepError, match=r"No space left .* of 60 cases are finished and saved"):
        run(sweep_tasks.wordy, CASES, out)
    kept = lines(journal_of(out)) - 1
    assert 0 < kept < 60 and len(calls) == 2
    monkeypatch.undo()
    run(sweep_tasks.wordy, CASES, out)
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_when_the_disk_is_full_nothing_is_lost(tmp_path: Path) -> None:
    """A limit for the size of files fails as a full disk does, at the same system calls."""
    import resource

    expected = finish("wordy", tmp_path / "whole.csv", 2)
    out = tmp_path / "full.csv"
    journal = journal_of(out)
    limit = ROOM + 12_000  # the journal of all cases is longer

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    process = start("wordy", out, 2, preexec_fn=limited)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 1 and "SweepError" in errors
    kept = lines(journal) - 1
    assert f"{kept} of 120 cases are finished and saved in {journal}" in errors
    assert "run the same sweep again" in errors
    assert 0 < kept < 120 and not out.exists()
    assert finish("wordy", out, 2) == expected
    assert journal.stat().st_size > limit


def test_a_table_that_cannot_be_written_leaves_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "t.csv"
    run(sweep_tasks.spin, CASES[:4], out)
    out.unlink()
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(hf.SweepError, match=r"No space left.*4 of 4 cases are finished"):
        run(sweep_tasks.spin, CASES[:4], out)
    assert not list(tmp_path.glob("*.part"))
    monkeypatch.undo()
    assert len(run(sweep_tasks.spin, CASES[:4], out)) == 4


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="processes by /proc")
def test_workers_of_a_killed_sweep_end(tmp_path: Path) -> None:
    if not Path("/proc/self/stat").exists():
        pytest.skip("processes by /proc")
    process = start("slow", tmp_path / "t.csv", 2)
    while lines(journal_of(tmp_path / "t.csv")) < 3:
        time.sleep(0.01)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    assert len(children) >= 2
    process.kill()
    process.wait()
    end = time.monotonic() + 10
    while any(_alive(pid) for pid in children) and time.monotonic() < end:
        time.sleep(0.1)
    assert not [pid for pid in children if _alive(pid)]


def _alive(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


# --- clusters, started here -----------------------------------------------------------------------


def drops() -> list[dict[str, Any]]:
    return hf.cases.sample(12, {"height": {"uniform": [0.0, 0.2]}})


@pytest.mark.slow
def test_a_local_dask_cluster_makes_the_same_table(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    expected = table_of(tmp_path, "here.csv")
    assert table_of(tmp_path, "started.csv", backend="dask", workers=2) == expected
    options = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster:
        more = {"backend": "dask", "scheduler": cluster.scheduler_address, "workers": None}
        assert table_of(tmp_path, "cluster.csv", **more) == expected
        run(sweep_tasks.drop, drops(), tmp_path / "a.csv", **more)
    run(sweep_tasks.drop, drops(), tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    with pytest.raises(hf.InputError, match="does not answer"):
        run(sweep_tasks.spin, CASES, backend="dask", scheduler="tcp")


@pytest.mark.slow
def test_local_ray_makes_the_same_table(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    expected = table_of(tmp_path, "here.csv")
    assert table_of(tmp_path, "ray.csv", backend="ray", workers=2) == expected
    run(sweep_tasks.drop, drops(), tmp_path / "a.csv", backend="ray", workers=2)
    run(sweep_tasks.drop, drops(), tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


# --- the worked example ---------------------------------------------------------------------------


def test_the_example_scores_grasps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from holdfast.tools.sweep.plan import load_plan

    folder = Path(__file__).parents[2] / "examples" / "grasps"
    monkeypatch.syspath_prepend(str(folder))
    import grasps

    plan = load_plan(folder / "plan.toml")
    cases = hf.cases.sample(2000, grasps.CANDIDATES, method="sobol")
    assert plan.cases == cases
    table = run(grasps.score, cases[:12])
    needed, held = table["required_friction"], table["time_held"]
    assert not table.failed and (held > 0).all()
    assert (held[needed < 0.5] > 0.99).all() and (held[np.isinf(needed)] < 0.5).all()
    monkeypatch.setattr(grasps, "drawn", lambda candidate: np.zeros((4, 4, 3)))
    grasps.picture(table, tmp_path / "grasps.png")
    assert (tmp_path / "grasps.png").stat().st_size > 10_000
