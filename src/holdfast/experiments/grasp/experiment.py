"""The grasp as an experiment: which trials are run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.experiments.grasp.runs import (
    CONTROL,
    MODELS,
    PPM,
    PRESSED,
    SHELL,
    TIGHT,
    MaximalRun,
    Run,
    Scale,
    follow,
    time_in_turns,
)
from holdfast.experiments.parts import Report, Section, Trial

MARKS = (10, 30, 100, 300, 1000, 3000, 6000)  # steps after which the boxes are looked at
QUICK_MARKS = (10, 30, 100)
TIMED_STEPS = 10  # the paper's
TRIALS, QUICK_TRIALS = 10, 3
SECONDS, QUICK_SECONDS = 20.0, 4.0  # for a run of a rival on more boxes than the paper's
ROWS = (2, 3, 4, 8)  # boxes; the paper has two


@dataclass(frozen=True)
class Method:
    """One row of the tables."""

    key: str  # in the names of files
    label: str
    reduced: bool
    start: Callable[[Scale], Run]

    @property
    def ours(self) -> bool:
        """Whether it is no-slip by the modified PPM or by the contact solve."""
        return self.label in (PPM, PRESSED)


def methods() -> list[Method]:
    """All methods: in maximal coordinates, then through MuJoCo."""
    from holdfast.experiments.grasp.mujoco_runs import SETTINGS, HoldfastRow, MujocoRow

    keys = ("lemke-loose", "lemke-tight", "drumwright-shell", "qp", "ppm", "ppm-pressed")
    found = [
        Method(key, label, False, _maximal(label)) for key, label in zip(keys, MODELS, strict=True)
    ]
    keys = ("mujoco-default", "mujoco-friction", "mujoco-recipe", "mujoco-converged")
    for key, label in zip(keys, SETTINGS, strict=True):
        found.append(Method(key, label, True, _mujoco(MujocoRow, label)))
    for key, label in (("lemke-tight", TIGHT), ("drumwright-shell", SHELL), ("ppm", PPM),
                       ("ppm-pressed", PRESSED)):  # fmt: skip
        start = _mujoco(HoldfastRow, MODELS[label])
        found.append(Method(f"reduced-{key}", label, True, start))
    return found


def _maximal(label: str) -> Callable[[Scale], Run]:
    return lambda scale: MaximalRun(MODELS[label], scale)


def _mujoco(kind: Callable[..., Run], how: Any) -> Callable[[Scale], Run]:
    return lambda scale: kind(how, scale.boxes, scale.options())


@dataclass(frozen=True)
class Grasp:
    """The paper's grasping experiment, and rows of other lengths."""

    name: str = "grasp"

    def trials(self, *, quick: bool) -> list[Trial]:
        """Timings of all methods in turns, then each method by itself for a minute."""
        marks, seconds = (QUICK_MARKS, QUICK_SECONDS) if quick else (MARKS, SECONDS)
        rows = ROWS[:2] if quick else ROWS
        count = QUICK_TRIALS if quick else TRIALS
        found = [
            Trial(f"time-{boxes}-{k:02}", _timing(Scale(boxes)))
            for boxes in rows
            for k in range(1, count + 1)
        ]
        for scale, name in (*((Scale(boxes), f"hold-{boxes}") for boxes in rows),
                            (CONTROL, "control")):  # fmt: skip
            for each in methods():
                limit = math.inf if each.ours or scale.boxes == ROWS[0] else seconds
                found.append(Trial(f"{name}-{each.key}", _holding(each, scale, marks, limit)))
        return found

    def sections(self, results: Mapping[str, dict[str, Any]]) -> list[Section]:
        """See the module `report` beside this one."""
        from holdfast.experiments.grasp.report import sections

        return list(sections(results))


def _timing(scale: Scale) -> Callable[[Report], dict[str, Any]]:
    def run(report: Report) -> dict[str, Any]:
        every = methods()
        for k, method in enumerate(every):  # so that nothing is compiled while it is timed
            time_in_turns({method.key: method.start(scale)}, 1)
            report(0.5 * (k + 1) / len(every))
        times = time_in_turns({each.key: each.start(scale) for each in every}, TIMED_STEPS)
        report(1.0)
        return {"times": times}

    return run


def _holding(
    method: Method, scale: Scale, marks: tuple[int, ...], seconds: float
) -> Callable[[Report], dict[str, Any]]:
    def run(report: Report) -> dict[str, Any]:
        grasp = method.start(scale)
        found = follow(grasp, scale, marks, seconds, report)
        return found | {"state": grasp.state()}

    return run


def timings(
    results: Mapping[str, dict[str, Any]], boxes: int, *keys: str
) -> Iterator[dict[str, Any]]:
    """Results of the timing trials of a row in which the methods of these keys took a step."""
    for name, result in results.items():
        if name.startswith(f"time-{boxes}-"):
            times = result["times"]
            if all(times[key]["step"] for key in keys):
                yield times
