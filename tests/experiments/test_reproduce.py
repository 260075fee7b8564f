"""The report on the paper's experiments: runner, resuming, interruption, page, command."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from command import holdfast
from holdfast.cli.reproduce import Reproduce
from holdfast.errors import InputError
from holdfast.experiments import provenance, registry, runner
from holdfast.experiments.parts import Figure, Section, Table, Trial
from holdfast.experiments.report import writer
from holdfast.experiments.report.page import html_page, inline, shown
from holdfast.experiments.report.plots import in_dark, new_figure
from holdfast.experiments.robustness import recorded

# --- an experiment of one line --------------------------------------------------------------------


@dataclass
class Squares:
    """Squares of small numbers; counts how often each trial runs."""

    name: str = "squares"
    seed: int = 0
    ran: list[str] = field(default_factory=list)
    fails_at: int = -1
    failure: BaseException = field(default_factory=KeyboardInterrupt)

    def trials(self, *, quick: bool) -> list[Trial]:
        return [Trial(f"square-{k}", self._square(k)) for k in range(2 if quick else 4)]

    def _square(self, k: int) -> Callable[..., dict[str, Any]]:
        def run(progress: Callable[[float], None]) -> dict[str, Any]:
            progress(0.5)
            if k == self.fails_at:
                raise self.failure
            self.ran.append(f"square-{k}")
            return {"square": k * k, "seed": self.seed}

        return run

    def sections(self, results: dict[str, dict[str, Any]]) -> list[Section]:
        rows = [{"trial": name, "square": result["square"]} for name, result in results.items()]
        figure = new_figure(3, 2)
        figure.subplots().plot([row["square"] for row in rows], color="black")
        met = [{"target": "squares [m]", "asked": "all", "measured": len(rows), "met": "yes"}]
        return [
            Section(
                "Squares & more",
                ["Of `k` and **so on**, a < b."],
                [Table("squares", "Their table", rows, "A note."), Table("aims", "Targets", met)],
                [Figure("squares_plot", figure, "A curve.")],
            )
        ]


STAMP = {"quick": False, "seed": 0}


def run(folder: Path, experiment: Squares, *, resume: bool = False, **stamp: Any) -> runner.Results:
    kept = runner.Folder(folder, STAMP | stamp, resume)
    return runner.run([experiment], kept, quick=False)["squares"]


def test_results_are_kept_one_by_one(tmp_path: Path) -> None:
    results = run(tmp_path / "out", Squares())
    assert {name: result["square"] for name, result in results.items()} == {
        "square-0": 0, "square-1": 1, "square-2": 4, "square-3": 9,
    }  # fmt: skip
    kept = json.loads((tmp_path / "out/trials/squares/square-3.json").read_text())
    assert kept["result"]["square"] == 9 and kept["stamp"] == STAMP and kept["seconds"] >= 0
    assert not list((tmp_path / "out").rglob("*.part"))


def test_resume_runs_only_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, Squares(fails_at=2))
    again = Squares()
    results = run(tmp_path, again, resume=True)
    assert again.ran == ["square-2", "square-3"]
    assert [result["square"] for result in results.values()] == [0, 1, 4, 9]


def test_without_resume_everything_runs_again(tmp_path: Path) -> None:
    run(tmp_path, Squares())
    again = Squares(fails_at=1)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, again)
    # what was there before is gone: resuming must not mix two runs
    assert [file.stem for file in (tmp_path / "trials/squares").iterdir()] == ["square-0"]


@pytest.mark.parametrize("change", [{"seed": 1}, {"quick": True}, {"versions": "new"}])
def test_other_settings_are_not_taken_for_the_same(tmp_path: Path, change: dict[str, Any]) -> None:
    run(tmp_path, Squares())
    again = Squares()
    run(tmp_path, again, resume=True, **change)
    assert len(again.ran) == 4


def test_a_broken_file_is_run_again(tmp_path: Path) -> None:
    run(tmp_path, Squares())
    (tmp_path / "trials/squares/square-1.json").write_text('{"stamp": {"qui')
    again = Squares()
    run(tmp_path, again, resume=True)
    assert again.ran == ["square-1"]


def test_the_stamp_knows_versions_and_sources() -> None:
    stamp = provenance.stamp(quick=True)
    assert stamp["quick"] and stamp["versions"]["numpy"] == np.__version__
    assert stamp["versions"]["holdfast"] == hf.__version__
    assert re.fullmatch("[0-9a-f]{16}", stamp["sources"])
    shows = [
        f"experiments/{name}.py"
        for name in ("report/page", "report/writer", "grasp/report", "grasp/tables")
    ]
    assert all(provenance.SHOWS.fullmatch(name) for name in [*shows, "cli/reproduce.py"])
    runs = (
        "experiments/grasp/runs.py",
        "experiments/scaling/experiment.py",
        "mujoco/stepper.py",
        "report.py",
    )
    assert not any(provenance.SHOWS.fullmatch(name) for name in runs)
    assert stamp == provenance.stamp(quick=True) != provenance.stamp(quick=False)


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("do not touch")
    with pytest.raises(InputError, match=r"out: .* holds other files"):
        runner.Folder(tmp_path, STAMP)
    with pytest.raises(InputError, match="is a file"):
        runner.Folder(tmp_path / "thesis.txt", STAMP)
    with pytest.raises(InputError, match="cannot be used"):
        runner.Folder(tmp_path / "thesis.txt" / "below", STAMP)
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), np.ones(2), {1, 2}])
def test_what_json_cannot_hold_is_named(tmp_path: Path, bad: Any) -> None:
    folder = runner.Folder(tmp_path, STAMP)
    with pytest.raises(InputError, match="squares/first returned what JSON cannot hold"):
        folder.save("squares", "first", {"value": bad}, 0.0)
    assert folder.count() == 0


@pytest.mark.parametrize("names", [("a", "a"), ("../up",), ("",), ("a b",)])
def test_names_of_trials_are_names_of_files(tmp_path: Path, names: tuple[str, ...]) -> None:
    experiment = Squares()
    experiment.trials = lambda *, quick: [Trial(name, lambda _: {}) for name in names]  # type: ignore[method-assign]
    with pytest.raises(InputError, match="trial"):
        run(tmp_path, experiment)


# --- the page -------------------------------------------------------------------------------------


class Outline(HTMLParser):
    """Ids, links, cells, and whether tags close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img", "source"):
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                assert value not in self.ids
                self.ids.add(value or "")
            if name == "href":
                self.links.add(value or "")
            if name in ("src", "srcset"):
                self.sources.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_needs_no_other_file() -> None:
    sections = Squares().sections({"square-2": {"square": 4}})
    text = html_page("Squares", sections, {"Command": "holdfast <x>"})
    outline = Outline()
    outline.feed(text)
    assert outline.open == []
    assert {link.removeprefix("#") for link in outline.links} <= outline.ids
    assert len(outline.sources) == 2  # by day and by night
    pictures = [each.removeprefix("data:image/png;base64,") for each in outline.sources]
    decoded = [base64.b64decode(each, validate=True) for each in pictures]
    assert all(each.startswith(b"\x89PNG") for each in decoded) and decoded[0] != decoded[1]
    assert "http" not in re.sub('base64,[^"]*', "", text)
    assert "Squares &amp; more" in text and "holdfast &lt;x&gt;" in text and "a &lt; b" in text
    assert "<code>k</code> and <strong>so on</strong>" in text
    assert 'name="viewport"' in text and "prefers-color-scheme: dark" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.0, "0"), (5, "5"), (1234567, "1\u2009234\u2009567"), (0.123456, "0.123"),
     (123456.0, "1.2·10⁵"), (-2.5e-17, "−2.5·10⁻¹⁷"), (1234.5, "1234"), (10.9681, "11.0"),
     (12.0, "12"), (123.4, "123"), (0.5, "0.5"), ("a", "a"), (True, "yes")],
)  # fmt: skip
def test_cells(value: Any, text: str) -> None:
    assert shown(value) == text


def test_words_are_escaped() -> None:
    assert inline("<b> `x < 1` **y**") == "&lt;b&gt; <code>x &lt; 1</code> <strong>y</strong>"


def test_figures_are_turned_to_night_and_back() -> None:
    figure = new_figure()
    axes = figure.subplots()
    (line,) = axes.plot([1, 2], color="black")
    (other,) = axes.plot([2, 1], color="#2f7fd6")
    (bar,) = axes.bar([1], [2], color="#2f7fd6", alpha=0.5)
    before = axes.title.get_color()
    with in_dark(figure):
        assert line.get_color() != "black" and axes.title.get_color() != before
        assert other.get_color() == "#2f7fd6" and bar.get_edgecolor()[3] == 0
        assert figure.get_facecolor() != (1, 1, 1, 1)
    assert line.get_color() == "black" and axes.title.get_color() == before
    assert figure.get_facecolor() == (1, 1, 1, 1)


def test_the_same_numbers_as_json_and_csv(tmp_path: Path) -> None:
    results = {f"square-{k}": {"square": k / 3} for k in range(3)}
    origin = writer.Origin("holdfast reproduce", provenance.machine(), {"numpy": "2"}, {}, 1.0)
    page = writer.write(tmp_path, Squares().sections(results), origin)
    assert page.read_text().startswith("<!DOCTYPE html>")
    everything = json.loads((tmp_path / "report.json").read_text())
    rows = everything["sections"][0]["tables"][0]["rows"]
    assert rows == json.loads((tmp_path / "tables/squares.json").read_text())["rows"]
    read = list(csv.DictReader(io.StringIO((tmp_path / "tables/squares.csv").read_text())))
    assert [float(row["square"]) for row in read] == [row["square"] for row in rows]
    assert everything["origin"]["versions"] == {"numpy": "2"}
    assert (tmp_path / "figures/squares_plot.png").stat().st_size > 1000


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def squares(monkeypatch: pytest.MonkeyPatch) -> Squares:
    experiment = Squares()

    def make(name: str, *, seed: int) -> Squares:
        experiment.seed = seed
        return experiment

    monkeypatch.setattr(registry, "load", make)
    return experiment


def test_interruption_leaves_a_folder_to_resume(
    squares: Squares, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report"
    squares.fails_at = 3
    assert Reproduce(what="scaling", out=out, format="json").run() == 130
    printed = capsys.readouterr()
    assert "3 finished trials" in printed.err and "--resume" in printed.err
    assert not (out / "index.html").exists()
    squares.fails_at, squares.ran = -1, []
    assert Reproduce(what="scaling", out=out, resume=True, format="json").run() == 0
    assert squares.ran == ["square-3"]
    answer = json.loads(capsys.readouterr().out)
    assert Path(answer["page"]) == out / "index.html" and (out / "index.html").exists()
    assert answer["targets"] == [
        {"target": "squares [m]", "asked": "all", "measured": 4, "met": "yes"}
    ]


def test_the_command_is_on_the_page(squares: Squares, tmp_path: Path) -> None:
    out = tmp_path / "a b"
    assert Reproduce(what="scaling", out=out, quick=True, seed=3, format="json").run() == 0
    origin = json.loads((out / "report.json").read_text())["origin"]
    assert origin["command"] == f"holdfast reproduce scaling --out '{out}' --quick --seed 3"
    assert origin["settings"] == {"quick": True, "seed": 3}
    assert squares.seed == 3 and squares.ran == ["square-0", "square-1"]


def test_targets_for_people(
    squares: Squares, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Reproduce(what="grasp", out=tmp_path / "r").run() == 0
    printed = capsys.readouterr().out
    assert "squares [m]" in printed and "index.html" in printed


def test_a_failing_trial_fails_the_command(squares: Squares, tmp_path: Path) -> None:
    squares.fails_at = 1
    squares.failure = hf.SolveError("no luck", status=hf.lcp.Status.RAY, problem=None)
    assert Reproduce(what="grasp", out=tmp_path / "r", format="json").run() == 1
    assert not (tmp_path / "r/index.html").exists()


def test_bad_out_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    done = holdfast("reproduce", "scaling", "--out", str(tmp_path))
    assert done.returncode == 2
    assert "holds other files" in done.stderr and "Traceback" not in done.stderr


def test_unknown_experiments_are_refused() -> None:
    with pytest.raises(InputError, match=r"what: is 'dance'; expected one of grasp"):
        registry.names_of("dance")
    assert registry.names_of("all") == list(registry.EXPERIMENTS)


@pytest.mark.parametrize("name", registry.EXPERIMENTS)
@pytest.mark.parametrize("quick", [True, False])
def test_registered_experiments_can_be_made(name: str, quick: bool) -> None:
    experiment = registry.load(name, seed=1)
    assert experiment.name == name
    runner._check_names(name, experiment.trials(quick=quick))


# --- the experiments themselves -------------------------------------------------------------------


def test_recorded_problems_are_found() -> None:
    problems = recorded.load(recorded.default_folder())
    assert {each.group for each in problems} == set(recorded.GROUPS)
    F, e = problems[0].lcp()
    assert recorded.lcp_residual(F, e, np.full(len(e), np.nan)) == np.inf


def test_robustness_without_data_says_so(tmp_path: Path) -> None:
    from holdfast.experiments.robustness.experiment import Robustness

    experiment = Robustness(data=tmp_path)
    results = {each.name: each.run(lambda _: None) for each in experiment.trials(quick=True)}
    (section,) = experiment.sections(results)
    assert "tests/data" in section.text[0] and str(tmp_path) in section.text[0]
    assert not section.tables


def test_ours_is_accurate_on_every_recorded_problem() -> None:
    from holdfast.experiments.robustness.experiment import Robustness

    experiment = Robustness()
    trials = {each.name: each for each in experiment.trials(quick=True)}
    result = trials["solver-ppm"].run(lambda _: None)
    assert len(result["verdicts"]) == 252
    assert {each["verdict"] for each in result["verdicts"]} == {"accurate"}
    printed = trials["solver-algorithm1-printed"].run(lambda _: None)
    assert {"failed", "wrong"} <= {each["verdict"] for each in printed["verdicts"]}


def test_scaling_sweeps_and_fits() -> None:
    from holdfast.experiments.scaling import experiment as scaling
    from holdfast.experiments.scaling import report as scaling_report

    method = scaling.METHODS["noslip"]
    found = scaling._sweep(method, [(1, 8), (1, 16), (1, 32)], range(1), 10.0)(lambda _: None)
    assert [point["n"] for point in found["points"]] == [8, 16, 32] and not found["stopped"]
    # a method that grows too fast stops by itself, and says so
    slow = scaling.Method("slow", lambda problem: 0, rows=10**4)
    stopped = scaling._sweep(slow, [(1, 8)], range(1), 1.0)(lambda _: None)
    assert stopped["points"] == [] and "GB" in stopped["stopped"]
    points = [{"n": n, "m": 12, "seconds": [3e-7 * n**1.5]} for n in (10, 1000, 10_000, 100_000)]
    fitted = scaling_report.fit(points, "n")
    assert fitted is not None
    assert fitted[0] == pytest.approx(1.5) and fitted[2:] == (1000, 100_000)
    assert scaling._expected(points, 2 * 10**6) == pytest.approx(3e-7 * 10**9, rel=1e-6)


def test_dense_pivoting_agrees_with_the_model() -> None:
    from holdfast.experiments.scaling.experiment import dense_ppm, tower

    problem = tower(2, 30, 0)
    solution = hf.NoSlip(grip="all").solve(problem)
    assert abs(dense_ppm(problem) - (solution.pivots - solution.rank)) <= 4
