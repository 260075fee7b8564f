"""The paper's locomotion experiments (its Tables 2 and 3): a quadruped that trots for ten seconds.

One trial per ground and seed. All methods of a trial walk side by side, in turns of some steps,
so that their times are comparable on a machine that does other things, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.experiments.locomotion.gait import Gait
from holdfast.experiments.locomotion.terrain import Terrain, bumps, flat
from holdfast.experiments.locomotion.walker import START
from holdfast.experiments.parts import Report, Section, Trial

SECONDS = 10.0
TRIALS = 3
SAMPLES = 1000  # places of a foot that are kept
MU, MU_V = 100.0, 0.1  # of Drumwright-Shell, and of viscous contact [N s/m]
WARM_UP = 60  # steps that are not timed, in which the robot lands: kernels are compiled
GROUNDS = ("flat", "terrain")
QUICK_SECONDS = {"walk": 0.7, "viscous": 0.2}
ASIDE, ASKEW = 0.005, np.radians(2.0)  # largest start beside the line [m], and off its heading

NO_SLIP, LETTER, SHELL = "no-slip", "no-slip-all", "drumwright-shell"
DEFAULT, RECIPE = "mujoco", "mujoco-noslip"
LABELS = {
    NO_SLIP: "no-slip where pressed, contact solve",
    LETTER: "no-slip to the paper's letter, modified PPM",
    SHELL: f"Drumwright–Shell, µ = {MU:g}",
    DEFAULT: "MuJoCo, default",
    RECIPE: "MuJoCo, elliptic, impratio 10, noslip 10",
}


@dataclass(frozen=True)
class Locomotion:
    """The walks, on the flat and on a terrain map.

    Attributes:
        seed: of the first trial: terrain and start are drawn from it.
    """

    seed: int = 0
    name: str = "locomotion"

    def trials(self, *, quick: bool) -> list[Trial]:
        """Walks without slip and under MuJoCo, then viscous ones; the quick ones are short."""
        seeds = [self.seed] if quick else list(range(self.seed, self.seed + TRIALS))
        walk, viscous = QUICK_SECONDS.values() if quick else (SECONDS, SECONDS)
        found = [
            Trial(f"{ground}-{seed}", _walks(ground, seed, walk))
            for seed in seeds
            for ground in GROUNDS
        ]
        found += [Trial(f"viscous-flat-{seed}", _viscous("flat", seed, viscous)) for seed in seeds]
        if not quick:  # slow: on slippery bumps every step has impacts
            found.append(
                Trial(f"viscous-terrain-{self.seed}", _viscous("terrain", self.seed, viscous))
            )
        return found

    def sections(self, results: Mapping[str, dict[str, Any]]) -> list[Section]:
        """See the module `report` beside this one."""
        from holdfast.experiments.locomotion.report import sections

        return sections(results)


def terrain_of(ground: str, seed: int) -> Terrain:
    """The ground of a trial."""
    return flat() if ground == "flat" else bumps(seed)


def course_of(ground: str, seed: int) -> Any:
    """Ground, gait and start of a trial: a little beside the line and off its heading."""
    from holdfast.experiments.locomotion.walk import Course

    aside, askew = np.random.default_rng([seed, 1]).uniform(-1.0, 1.0, 2)
    start = (START, float(ASIDE * aside))
    return Course(terrain_of(ground, seed), Gait(), start, float(ASKEW * askew))


def _methods(course: Any) -> dict[str, Callable[[], Any]]:
    from holdfast.experiments.locomotion.methods import MujocoWalk, SteppedWalk
    from holdfast.models import DrumwrightShell, NoSlip
    from holdfast.tools.compare import RECIPES

    return {
        NO_SLIP: lambda: SteppedWalk(course, NoSlip()),
        LETTER: lambda: SteppedWalk(course, NoSlip(grip="all", solver="ppm")),
        SHELL: lambda: SteppedWalk(course, DrumwrightShell(mu=MU)),
        DEFAULT: lambda: MujocoWalk(course, RECIPES["MuJoCo"]),
        RECIPE: lambda: MujocoWalk(course, RECIPES["+ noslip 10"]),
    }


def _walks(ground: str, seed: int, seconds: float) -> Callable[[Report], dict[str, Any]]:
    def run(report: Report) -> dict[str, Any]:
        from holdfast.experiments.locomotion.walk import in_turns

        for start in _methods(course_of("terrain", seed)).values():
            _warm_up(start())
        methods = _methods(course_of(ground, seed))
        walks = {name: start() for name, start in methods.items()}
        in_turns(list(walks.values()), seconds, SAMPLES, report)
        return {
            "ground": ground, "seed": seed, "duration": seconds,
            "walks": {name: walk.summary() for name, walk in walks.items()},
        }  # fmt: skip

    return run


def _viscous(ground: str, seed: int, seconds: float) -> Callable[[Report], dict[str, Any]]:
    def run(report: Report) -> dict[str, Any]:
        from holdfast.experiments.locomotion.methods import ViscousWalk
        from holdfast.experiments.locomotion.walk import in_turns

        _warm_up(ViscousWalk(course_of("terrain", seed), MU_V))
        walk = ViscousWalk(course_of(ground, seed), MU_V)
        in_turns([walk], seconds, SAMPLES, report)
        return {"ground": ground, "seed": seed, "duration": seconds, "walk": walk.summary()}

    return run


def _warm_up(walk: Any) -> None:
    for _ in range(WARM_UP):
        walk.advance()
