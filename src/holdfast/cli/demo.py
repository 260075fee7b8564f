"""``holdfast demo``: the paper's grasp and a pinched capsule, held, beside MuJoCo."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from holdfast import lcp
from holdfast.cli._common import exit_code, progress_bar
from holdfast.cli.compare import print_rows
from holdfast.errors import InputError
from holdfast.experiments.grasp.scene import grasp
from holdfast.experiments.maximal import Scene

PICTURE = Path("holdfast-demo.png")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    boxes: int
    solver: str
    variables: int
    pivots: int
    residual: float
    speed: float  # largest entry of the velocity after the step [m/s, rad/s]; 0 is held
    microseconds: float


@dataclass(frozen=True)
class Demo:
    """The grasp of the paper and a pinched capsule: tables, and a picture beside MuJoCo.

    First one step of the grasp, a row of boxes held between two grippers: gravity pulls the boxes
    down, only the squeeze holds them. Every solver gets the same no-slip problem; the velocity
    after the step is zero when the boxes are held. Then the grasp and a capsule between two pads
    are simulated, by MuJoCo with several settings and by holdfast.
    """

    boxes: tuple[int, ...] = (2, 3, 4, 8)
    """How many boxes in the row; the paper has two."""
    duration: float = 1.0
    """Seconds to simulate of each scene; 0 leaves them out."""
    picture: Path | None = PICTURE
    """Where to draw how far the held objects slide; this file is overwritten."""
    force: bool = False
    """Overwrite the picture whatever its name."""
    format: Literal["human", "json"] = "human"
    """How to print the result."""

    @exit_code
    def run(self) -> int:
        """Print the tables; return the exit code, 1 if something was not held."""
        from holdfast.tools import files

        files.check_duration(self.duration, zero=True)
        bad = [boxes for boxes in self.boxes if boxes < 1]
        if bad:
            raise InputError("boxes", f"has {bad[0]}; a row has one box at least")
        picture = None
        if self.picture is not None and self.duration > 0:
            force = self.force or self.picture == PICTURE
            picture = files.check_output(self.picture, force=force)
        rows = [row for boxes in self.boxes for row in _rows(boxes)]
        human = self.format == "human"
        if human:
            _print(rows)
        scenes = _simulate(self.duration, quiet=not human) if self.duration > 0 else {}
        if not human:
            both = {
                "solvers": [asdict(row) for row in rows],
                "scenes": {name: [asdict(row) for row in table] for name, table in scenes.items()},
            }
            json.dump(both, sys.stdout, indent=1)
            print()
        else:
            for name, table in scenes.items():
                print_rows(f"{name}, {self.duration:g} s", table)
        if scenes and picture is not None:
            place = files.write_somewhere(picture, lambda stream: _draw(scenes, stream))
            shown = self.picture if place == picture else place
            print(shown if human else "", file=sys.stdout if human else sys.stderr)
        held = all(row.speed < 1e-12 for row in rows)
        held &= all(table[-1].drift < 1e-9 and not table[-1].problem for table in scenes.values())
        return 0 if held else 1


def _simulate(duration: float, *, quiet: bool) -> dict[str, list[Any]]:
    """Run the two scenes under MuJoCo's settings and ours."""
    from holdfast.mujoco._mj import mujoco
    from holdfast.tools import files, scenes
    from holdfast.tools.compare import compare

    tables = {}
    for name, xml in (
        ("The paper's grasp: two boxes between grippers", scenes.row_of_boxes(2)),
        ("A pinched capsule of 45 g", scenes.pinched_capsule()),
    ):
        model = mujoco.MjModel.from_xml_string(xml)
        data = mujoco.MjData(model)
        files.set_keyframe(model, data, None)
        with progress_bar("simulating", quiet=quiet) as progress:
            tables[name] = compare(model, data, duration=duration, progress=progress)
    return tables


def _draw(tables: dict[str, list[Any]], stream: Any) -> None:
    """How far each setting lets the held object slide and sink in, on a logarithmic scale."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    least = 1e-18  # [m] so that zero can be drawn
    for axes, (name, rows) in zip(figure.subplots(1, len(tables)), tables.items(), strict=True):
        places = np.arange(len(rows))[::-1]
        for shift, attribute, label in (
            (0.2, "drift", "slides"),
            (-0.2, "penetration", "sinks in"),
        ):
            sizes = [max(getattr(row, attribute), least) for row in rows]
            axes.barh(places + shift, sizes, 0.38, left=least, label=label)
        axes.set_yticks(places, [row.name for row in rows])
        axes.set_xscale("log")
        axes.set_xlabel("m, over the run")
        axes.set_title(name, fontsize=10)
        axes.legend(loc="lower right", fontsize=8)
    figure.savefig(stream, dpi=120, format="png")


def _rows(boxes: int) -> Iterator[Row]:
    """Solve one step of the grasp with each solver."""
    scene = grasp(boxes)
    M, N, G = scene["M"], scene["N"], _equalities(scene)
    v = scene["v"] + scene["h"] * np.linalg.solve(M, scene["f"])
    everything = np.vstack([G, N])
    lo = np.concatenate([np.full(len(G), -np.inf), np.zeros(len(N))])

    # The LCP of the normals alone, as the paper has it: the equality rows are eliminated.
    A = np.block([[M, -G.T], [G, np.zeros((len(G), len(G)))]])
    C = np.vstack([-N.T, np.zeros((len(G), len(N)))])
    reduced = lcp.reduce_mlcp(
        A, C, -C.T, np.zeros((len(N), len(N))), np.concatenate([-M @ v, np.zeros(len(G))]),
        np.zeros(len(N)),
    )  # fmt: skip

    def factored() -> tuple[lcp.LCPResult, np.ndarray]:
        answer = lcp.solve_factored(everything, M, v, lo=lo)
        return answer, answer.motion

    def dense(method: str) -> Callable[[], tuple[lcp.LCPResult, np.ndarray]]:
        def solve() -> tuple[lcp.LCPResult, np.ndarray]:
            answer = lcp.solve(reduced.F, reduced.e, method)
            return answer, reduced.free(answer.z)[: len(v)]

        return solve

    solvers = {
        "pivoting, factored": (factored, len(everything)),
        "pivoting, dense": (dense("ppm"), len(N)),
        "QP (daqp)": (dense("qp"), len(N)),
        "Lemke": (dense("lemke"), len(N)),
    }
    for name, (solve, variables) in solvers.items():
        answer, motion = solve()
        yield Row(
            boxes=boxes,
            solver=name,
            variables=variables,
            pivots=answer.pivots,
            residual=answer.residuals.largest,
            speed=float(np.abs(motion).max()),
            microseconds=1e6 * _median_time(solve),
        )


def _equalities(scene: Scene) -> np.ndarray:
    """Joint rows and tangents, cut down to an independent set."""
    chosen = lcp.find_indices(scene["M"], scene["J"], scene["S"], scene["T"])
    matrices = (scene["J"], scene["S"], scene["T"])
    return np.vstack([rows[kept] for rows, kept in zip(matrices, chosen, strict=True)])


def _median_time(solve: Callable[[], object], repeats: int = 30) -> float:
    """Median time of a call [s]."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        solve()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _print(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="One step of the grasp: boxes held between two grippers")
    for heading in ("boxes", "solver", "rows", "pivots", "residual", "speed, m/s", "µs"):
        table.add_column(heading, justify="left" if heading == "solver" else "right", no_wrap=True)
    for before, row in zip([None, *rows], rows, strict=False):
        if before is not None and before.boxes != row.boxes:
            table.add_section()
        table.add_row(
            str(row.boxes),
            row.solver,
            str(row.variables),
            str(row.pivots),
            f"{row.residual:.0e}",
            f"{row.speed:.0e}",
            f"{row.microseconds:.0f}",
        )
    console = Console()
    console.print(table)
    held = all(row.speed < 1e-12 for row in rows)
    console.print(
        "The factored solver starts from M, N and the equality rows, the others from the LCP."
    )
    console.print(
        "Held: gravity would have given the boxes 0.098 m/s in this step."
        if held
        else "NOT held: some velocity after the step is not zero."
    )
