"""Exact Coulomb friction: who solves recorded contact problems, how exactly, how fast.

    python benchmarks/corpus.py                       # records the problems, once
    python benchmarks/coulomb.py [--quick] [--only pile_020 robot] [--solvers holdfast Siconos]

All solvers take turns on every problem, cold, with one thread, and one judge that shares no code
with any of them says how far each answer is from the law (`coulomb_residual.py`). Peers are asked
for half of the 1e-10 that certifies, and given many iterations. A time is the median over a few
solves of a problem, or a single one where it takes longer than 0.1 s.

Siconos: Debian's python3-siconos and python3-scipy; its interpreter is found at /usr/bin/python3 or
named by SICONOS_PYTHON. Pinocchio: `pip install pin`. What is not there is left out.
"""

# ruff: noqa: E402  (threads are limited before NumPy loads)

from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy

import argparse
import json
import platform
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import mujoco
import numpy as np

import holdfast as hf
from coulomb_peers import OURS, SOLVERS, Case, Solver, median, sample
from coulomb_residual import CERTIFIED, Judge
from delassus import delassus, unfit
from isolation import Limits

LEVELS = (CERTIFIED, 1e-8, 1e-6)
MODELS = ("Coulomb", "StewartTrinkle", "AnitescuPotra", "DrumwrightShell")


@dataclass(frozen=True)
class Entry:
    """One solver on one problem.

    Attributes:
        problem: its name.
        m, n: coordinates, contacts.
        solver: its name.
        peer: whether it counts for the fastest peer.
        residual: of its answer; nan where there is none.
        seconds: median time of a solve.
        build: time to form what it takes: the Delassus matrix; 0 for those that need none.
        note: what went wrong, if anything.
    """

    problem: str
    m: int
    n: int
    solver: str
    peer: bool
    residual: float
    seconds: float
    build: float
    note: str

    @property
    def certified(self) -> bool:
        """Whether the answer obeys the law."""
        return self.residual <= CERTIFIED

    @property
    def group(self) -> str:
        """The kind of scene: what comes before the coefficient, or the step, in the name."""
        if self.problem.startswith("data_"):
            return "data"
        if self.problem.startswith("robot_"):
            return "22 humanoids" if "22" in self.problem else "robots"
        name = re.sub(r"_\d+$", "", self.problem)
        calm = " at rest" if re.search(r"_rest\d*$", name) else ""
        return re.sub(r"_mu.*", "", name).replace("_rest", "").replace("_", " ") + calm


def measure(name: str, problem: hf.ContactProblem, solvers: Iterable[Solver], limits: Limits,
            turn: int) -> Iterator[Entry]:  # fmt: skip
    """All solvers on one problem; who comes first changes from problem to problem."""
    judge, form, build = Judge(problem), None, 0.0
    if not unfit(problem):
        form, times = sample(delassus, lambda: problem, 0.01)
        build = median(times)
    case = Case(problem, form)
    order = list(solvers)
    for solver in order[turn % len(order) :] + order[: turn % len(order)]:
        if solver.unfit(problem):
            continue
        answer = solver.run(case, limits)
        residual = np.nan if answer.impulses is None else judge.residual(answer.impulses)
        more = build if solver.wants_W else 0.0
        yield Entry(name, problem.m, problem.n + len(problem.U), solver.name, solver.peer, residual,
                    median(answer.seconds), answer.build + more, answer.note)  # fmt: skip


@dataclass(frozen=True)
class Summary:
    """One solver on many problems."""

    solver: str
    tried: int
    within: tuple[int, ...]
    alone: tuple[float, ...]  # quartiles and 90 % of the times [s]
    built: tuple[float, ...]  # the same with what comes before

    @classmethod
    def of(cls, solver: str, entries: list[Entry]) -> Summary:
        """Count and sort."""
        residuals = np.array([e.residual for e in entries])
        within = tuple(int((residuals <= level).sum()) for level in LEVELS)
        timed = [e for e in entries if np.isfinite(e.seconds)]
        alone = _percentiles([e.seconds for e in timed])
        return cls(solver, len(entries), within, alone,
                   _percentiles([e.seconds + e.build for e in timed]))  # fmt: skip


def _percentiles(times: list[float]) -> tuple[float, ...]:
    if not times:
        return (np.nan,) * 4
    return tuple(float(t) for t in np.percentile(times, (25, 50, 75, 90)))


def ratios(entries: list[Entry]) -> tuple[list[float], list[float], int, int]:
    """Our time over that of the fastest certified peer, without and with what comes before it.

    Also on how many problems we alone are certified, and on how many only a peer is.
    """
    alone, built, only_us, only_them = [], [], 0, 0
    for each in _by(entries, "problem").values():
        ours = [e for e in each if e.solver == OURS.name and e.certified]
        peers = [e for e in each if e.peer and e.certified]
        compared = any(e.peer for e in each) and any(e.solver == OURS.name for e in each)
        only_us += bool(compared and ours and not peers)
        only_them += bool(compared and peers and not ours)
        if ours and peers:
            alone.append(ours[0].seconds / min(e.seconds for e in peers))
            built.append(ours[0].seconds / min(e.seconds + e.build for e in peers))
    return alone, built, only_us, only_them


def _by(entries: list[Entry], name: str) -> dict[str, list[Entry]]:
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        groups.setdefault(getattr(entry, name), []).append(entry)
    return groups


# --- tables -----------------------------------------------------------------------------------

HEADINGS = ("solver", "tried", "1e-10", "1e-8", "1e-6", "median", "quartiles", "90 %",
            "median with W", "90 % with W")  # fmt: skip
CAPTION = """\
Certified: the natural map of De Saxcé's law, the motion rebuilt from the impulses, rows of unit
length, is at most 1e-10 of the size of the motion; the columns beside count 1e-8 and 1e-6. Times in
ms over all problems that a solver tried, solved or not, one thread, cold; one that does not end
counts with the limit. Peers take the Delassus matrix W and free speeds; forming them, with NumPy,
is left out of *median*, *quartiles* and *90 %* and is counted in the columns *with W*. holdfast
takes the rows and needs no W. Peers do not know dry friction of joints, torsion and rolling; the
pyramid models are other laws, judged by this one, and are tried on small problems, Anitescu-Potra
only where all contacts touch."""


def table(lines: list[tuple[str, ...]]) -> str:
    """Markdown, the first line the headings."""
    rows = [lines[0], ("---", *["---:"] * (len(lines[0]) - 1)), *lines[1:]]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"


def _ms(seconds: float) -> str:
    return "–" if np.isnan(seconds) else f"{1e3 * seconds:.3g}"


def solver_table(entries: list[Entry]) -> str:
    """One line per solver."""
    lines = [HEADINGS]
    for solver, each in sorted(_by(entries, "solver").items(), key=lambda item: _place(item[0])):
        s = Summary.of(solver, each)
        low, middle, high, most = s.alone
        lines.append((solver, str(s.tried), *map(str, s.within), _ms(middle),
                      f"{_ms(low)} – {_ms(high)}", _ms(most), _ms(s.built[1]), _ms(s.built[3]),
                      ))  # fmt: skip
    return table(lines)


def _place(solver: str) -> int:
    return [s.name for s in SOLVERS].index(solver)


def group_table(entries: list[Entry]) -> str:
    """Certified answers and median times, one line per kind of scene."""
    solvers = sorted(_by(entries, "solver"), key=_place)
    lines = [("scene", "problems", "contacts", *solvers)]
    for group, each in _by(entries, "group").items():
        cells = []
        for solver in solvers:
            mine = [e for e in each if e.solver == solver]
            s = Summary.of(solver, mine)
            cells.append(f"{s.within[0]}/{s.tried}, {_ms(s.alone[1])}" if mine else "–")
        problems = _by(each, "problem")
        contacts = np.median([entries[0].n for entries in problems.values()])
        lines.append((group, str(len(problems)), f"{contacts:.0f}", *cells))
    return table(lines)


def ratio_text(entries: list[Entry]) -> str:
    """Ours beside the fastest certified peer."""
    alone, built, only_us, only_them = ratios(entries)
    if not alone:
        return ""
    parts = []
    for label, values in (("its solve alone", alone), ("its solve with W", built)):
        low, middle, high = np.percentile(values, (25, 50, 75))
        parts.append(f"{label}: median {middle:.2f}, quartiles {low:.2f} to {high:.2f}")
    return (
        f"holdfast's time over that of the fastest certified peer, problem by problem "
        f"({len(alone)} problems that both solve): {'; '.join(parts)}. Certified by holdfast and "
        f"no peer: {only_us}; by a peer and not by holdfast: {only_them}.\n"
    )


def report(entries: list[Entry]) -> str:
    """All tables."""
    return "\n".join([
        "**Exact Coulomb friction on recorded problems**\n", solver_table(entries), CAPTION + "\n",
        ratio_text(entries), "**Certified of tried, and median solve in ms, by scene**\n",
        group_table(entries),
    ])  # fmt: skip


# --- the run ----------------------------------------------------------------------------------


def chosen(folder: Path, only: list[str] | None, every: int) -> list[Path]:
    """Problem files, or every k-th of them."""
    files = sorted(folder.glob("*.npz"))
    if only:
        files = [f for f in files if any(f.name.startswith(word) for word in only)]
    return files[::every]


def available(names: list[str] | None) -> list[Solver]:
    """Solvers that are asked for and there; says who is not."""
    solvers = []
    for solver in SOLVERS:
        if names and not any(solver.name.startswith(name) for name in names):
            continue
        reason = solver.missing()
        if reason:
            print(f"{solver.name} is left out: {reason}")
        else:
            solvers.append(solver)
    return solvers


def warm_up(files: list[Path]) -> None:
    """Compile kernels in this process, of which the children are copies."""
    models = [getattr(hf, name) for name in MODELS if hasattr(hf, name)]
    small = sorted(files, key=lambda file: file.stat().st_size)[: max(40, len(files) // 8)]
    for file in small[:: max(1, len(small) // 10)]:
        problem = hf.ContactProblem.load(file)
        for model in models if 0 < problem.n <= 20 else ():
            with suppress(hf.HoldfastError):
                model().solve(problem)


def main() -> None:
    """Run, print a line per problem, write tables and numbers."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--corpus", type=Path, default=here / "results/corpus")
    parser.add_argument("--out", type=Path, default=here / "results")
    parser.add_argument("--quick", action="store_true", help="every tenth problem")
    parser.add_argument("--every", type=int, help="every k-th problem")
    parser.add_argument("--only", nargs="*", help="problems whose name begins with one of these")
    parser.add_argument("--solvers", nargs="*", help="solvers whose name begins with one of these")
    parser.add_argument("--seconds", type=float, default=20.0, help="limit of one solver's turn")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    files = chosen(given.corpus, given.only, given.every or (10 if given.quick else 1))
    solvers = available(given.solvers)
    if not files:
        raise SystemExit(f"no problems in {given.corpus}; run benchmarks/corpus.py first")
    warm_up(files)
    given.out.mkdir(parents=True, exist_ok=True)
    entries: list[Entry] = []
    limits = Limits(seconds=given.seconds)
    for turn, file in enumerate(files):
        problem = hf.ContactProblem.load(file)
        if problem.n + len(problem.U) == 0:
            continue
        new = list(measure(file.stem, problem, solvers, limits, turn))
        entries += new
        new.sort(key=lambda e: _place(e.solver))
        line = "  ".join(f"{e.solver} {e.residual:.0e} {_ms(e.seconds)}" for e in new)
        print(f"{turn + 1}/{len(files)} {file.stem}: {line}", flush=True)
        if turn % 20 == 19 or file == files[-1]:
            write(given.out, entries)
    write(given.out, entries)
    print("\n" + report(entries))


def write(out: Path, entries: list[Entry]) -> None:
    """Tables and numbers of what is done so far."""
    machine = {"machine": platform.machine(), "python": platform.python_version(),
               "numpy": np.__version__, "mujoco": mujoco.__version__,
               "holdfast": hf.__version__}  # fmt: skip
    numbers = {"machine": machine, "entries": [asdict(e) for e in entries]}
    (out / "coulomb.json").write_text(json.dumps(numbers, indent=1))
    (out / "coulomb.md").write_text(report(entries))


if __name__ == "__main__":
    main()
