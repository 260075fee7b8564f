"""``holdfast demo``: a cube that slides, a gripper that holds, a robot that stands."""

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
from holdfast.cli._common import check_outputs, exit_code, plain, progress_bar, say
from holdfast.errors import InputError
from holdfast.experiments.grasp.scene import grasp
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
    """Simulate three scenes with MuJoCo and with holdfast: tables, a picture, a video.

    With holdfast a cube slides without lifting, a gripper holds a capsule without creep, and a
    quadruped stands on a slope without drifting. The exit code is 1 if one of them does not.
    """

    duration: float = 5.0
    """Duration of the gripper scene [s]; the robot stands for twice as long. 0 skips all scenes."""
    picture: Path | None = None
    """Picture of all scenes to write, .png."""
    video: Path | None = None
    """Video of all scenes to write, .mp4 or .gif."""
    force: bool = False
    """Overwrite the picture and the video if they exist."""
    width: int = 400
    """Width of one panel of picture and video [pixels]; its height is three quarters of it."""
    fps: float = 20.0
    """Frames per second of the video."""
    boxes: tuple[int, ...] = ()
    """Also solve a step of the paper's grasp with every solver, for these numbers of boxes."""
    format: Literal["human", "json"] = "human"
    """Output format of the results."""

    @exit_code
    def run(self) -> int:
        """Print the tables, write what is asked for; return the exit code."""
        quiet = self.format == "json"
        self._check()
        video, picture = self._outputs()
        rows = [row for boxes in self.boxes for row in _rows(boxes)]
        shown = self._show(quiet=quiet) if self.duration > 0 else []
        if quiet:
            json.dump(
                {
                    "solvers": [asdict(row) for row in rows],
                    "scenes": [_as_json(each) for each in shown],
                },
                sys.stdout, indent=1,
            )  # fmt: skip
            print()
        else:
            for each in shown:
                _print_scene(each)
            if rows:
                _print(rows)
        if shown:
            self._draw(shown, video, picture, quiet=quiet)
        held = all(row.speed < 1e-12 for row in rows) and all(each.passed for each in shown)
        return 0 if held else 1

    def _check(self) -> None:
        """Refuse numbers that make no sense."""
        from holdfast.tools import files

        files.check_duration(self.duration, zero=True)
        bad = [boxes for boxes in self.boxes if boxes < 1]
        if bad:
            raise InputError("boxes", f"has {bad[0]}; a row needs at least one box")
        if self.width < 1:
            raise InputError("width", f"is {self.width}; expected a positive number of pixels")
        if not 0.0 < self.fps < np.inf:
            raise InputError("fps", f"is {self.fps:g}; expected frames per second above 0")

    def _outputs(self) -> tuple[Path | None, Path | None]:
        """Where to write video and picture; if nothing can be drawn here, say what to install."""
        from holdfast.tools.render import NoPictureError

        if self.duration == 0:
            return None, None
        try:
            return check_outputs(self.video, self.picture, force=self.force)
        except NoPictureError as error:
            say(f"no picture, {error}")
            return None, None

    def _show(self, *, quiet: bool) -> list[Any]:
        from holdfast.tools.showcase import show, showcase

        shown = []
        for scene in showcase(self.duration):
            with progress_bar("simulating", quiet=quiet) as progress:
                shown.append(show(scene, fps=self.fps, progress=progress))
        return shown

    def _draw(
        self, shown: list[Any], video: Path | None, picture: Path | None, *, quiet: bool
    ) -> None:
        """Write the files, and say where they are."""
        from holdfast.tools.showcase import draw_all, film_all

        how = {"width": self.width, "height": 3 * self.width // 4, "force": self.force}
        if picture is not None:
            place = draw_all(picture, shown, **how)
            print(plain(self.picture if place == picture else place), file=sys.stderr)
        if video is not None:
            with progress_bar(f"drawing {video.name}", quiet=quiet) as progress:
                place = film_all(video, shown, **how, progress=progress)
            print(plain(self.video if place == video else place), file=sys.stderr)


def _as_json(shown: Any) -> dict[str, Any]:
    headings = [measure.heading for measure in shown.scene.measures]
    return {
        "title": shown.scene.title,
        "exact": shown.scene.exact,
        "passed": shown.passed,
        "values": {
            name: dict(zip(headings, values, strict=True)) for name, values in shown.values.items()
        },
    }


def _print_scene(shown: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    scene = shown.scene
    table = Table(title=scene.title, caption=scene.exact, min_width=60)
    table.add_column("by")
    for measure in scene.measures:
        table.add_column(measure.heading, justify="right")
    for name, values in shown.values.items():
        cells = zip(scene.measures, values, strict=True)
        table.add_row(name, *(f"{value:{measure.format}}" for measure, value in cells))
    Console().print(table)


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
