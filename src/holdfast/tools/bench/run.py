"""The whole benchmark, and what it says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from holdfast.tools.bench import machine, rollouts, scenes, solvers, steps
from holdfast.tools.bench.timing import Times

PARTS = ("step", "rollout", "solve")
BUSY = 0.9  # of a core: below, times are those of a busy machine


@dataclass
class Section:
    """One table: calls of one kind on one scene; ratios are over the first one, which is ours.

    Attributes:
        part: "step", "rollout" or "solve".
        scene: by name.
        contacts: in it.
        times: of a step or a solve [s].
        residuals: of answers, where there are some.
        notes: what was left out, and why.
    """

    part: str
    scene: str
    contacts: int
    times: Times | None
    residuals: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary per call: who, seconds, and its time over ours, with quartiles."""
        if self.times is None:
            return []
        return [
            {"who": name, "seconds": asdict(seconds), "ratio": asdict(self.times.ratios[name]),
             "residual": self.residuals.get(name)}
            for name, seconds in self.times.seconds.items()
        ]  # fmt: skip


@dataclass
class Bench:
    """What was measured."""

    sections: list[Section]
    core_share: float
    parallel_speedup: float
    cores: int
    load: float | None
    warnings: list[str]


def run(
    names: Iterable[str],
    parts: Iterable[str],
    seconds: float,
    progress: Callable[[float], None] = lambda part: None,
) -> Bench:
    """Measure parts on scenes, each for about so many seconds."""
    load, share = machine.load_average(), machine.core_share()
    cores = machine.usable_cores()
    speedup = machine.parallel_speedup(cores) if cores > 1 else 1.0
    names, parts = list(names), list(parts)
    sections = []
    for i, name in enumerate(names):
        scene = scenes.load(name)
        for k, part in enumerate(parts):
            progress((i * len(parts) + k) / (len(names) * len(parts)))
            sections.append(_measure(part, scene, seconds))
    progress(1.0)
    shares = [section.times.share for section in sections
              if section.times is not None and section.part != "rollout"]  # fmt: skip
    worst = min([share, machine.core_share(), *shares])
    return Bench(sections, worst, speedup, cores, load, _warnings(worst, speedup, cores, load))


def _measure(part: str, scene: scenes.Scene, seconds: float) -> Section:
    contacts = int(scene.data.ncon)
    if part == "solve":
        return Section(part, scene.name, contacts, *solvers.time_solvers(scene, seconds))
    measure = steps.time_steps if part == "step" else rollouts.time_rollouts
    times, notes = measure(scene, seconds)
    return Section(part, scene.name, contacts, times, notes=notes)


def _warnings(share: float, speedup: float, cores: int, load: float | None) -> list[str]:
    found = []
    if share < BUSY:
        busy = "" if load is None else f", the load was {load:.1f} before"
        found.append(
            f"the machine is busy: a thread got {100 * share:.0f} % of a core{busy}; "
            "times are too long, and ratios less certain. Measure again when it is quiet"
        )
    if cores > 1 and speedup < 0.85 * cores:
        found.append(f"{cores} threads of a plain C loop do {speedup:.2f} times the work of one: "
                     "rollouts on this machine cannot scale better now")  # fmt: skip
    return found
