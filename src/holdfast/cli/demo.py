"""``holdfast demo``: the paper's grasp, held."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Literal

import numpy as np

from holdfast import lcp
from holdfast.experiments.grasp import grasp
from holdfast.experiments.maximal import Scene


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
    """Solve one step of the grasp of the paper: a row of boxes held between two grippers.

    Gravity pulls the boxes down, only the squeeze holds them. Every solver gets the same no-slip
    problem; the velocity after the step is zero when the boxes are held.
    """

    boxes: tuple[int, ...] = (2, 3, 4, 8)
    """How many boxes in the row; the paper has two."""
    format: Literal["human", "json"] = "human"
    """How to print the result."""

    def run(self) -> int:
        """Print the table; return the exit code, 1 if a row of boxes was not held."""
        rows = [row for boxes in self.boxes for row in _rows(boxes)]
        if self.format == "json":
            json.dump([asdict(row) for row in rows], sys.stdout, indent=1)
            print()
        else:
            _print(rows)
        return 0 if all(row.speed < 1e-12 for row in rows) else 1


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
    for heading in ("boxes", "solver", "rows", "pivots", "residual", "speed, m/s", "time, µs"):
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
