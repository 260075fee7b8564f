"""The part of the report on locomotion: texts, tables, pictures."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.experiments.locomotion.experiment import LETTER, MU, MU_V, NO_SLIP, SHELL
from holdfast.experiments.locomotion.gait import Gait
from holdfast.experiments.locomotion.pictures import paths_figure, rendered, times_figure
from holdfast.experiments.locomotion.tables import (
    LEMKE,
    Results,
    grounds,
    lemke_ratio,
    motion_table,
    paper_table,
    ratio,
    slid,
    target_table,
    times_table,
    viscous_table,
    walked,
)
from holdfast.experiments.locomotion.terrain import LONGEST, PEAK, SAMPLES, SHORTEST, bumps
from holdfast.experiments.parts import Section


def sections(results: Results) -> list[Section]:
    """The sections on locomotion."""
    drawn, note = rendered(results)
    paths = [paths_figure(results, ground) for ground in grounds(results, walked)]
    walk = Section(
        "Locomotion", [*_scene(results), *note, *_differences(results)],
        [target_table(results), paper_table(results), times_table(results), motion_table(results)],
        [*drawn, *paths, times_figure(results)],
    )  # fmt: skip
    found = [walk]
    if grounds(results, slid):
        text = [*_VISCOUS, *_ended(results)]
        found.append(Section("Locomotion with viscous contact", text, [viscous_table(results)], []))
    return found


def _scene(results: Results) -> Iterator[str]:
    gait = Gait()
    seeds = sorted({each["seed"] for each in results.values() if each["ground"] == "terrain"})
    mean, most = zip(*(bumps(seed).steepness for seed in seeds or [0]), strict=True)
    yield (
        "A quadruped of 1.34 kg with twelve servos of at most 4 N m, built from the published "
        "figures, on flat ground and on a terrain map of its own: "
        f"{SAMPLES} x {SAMPLES} samples over 1 m x 1 m, waves of {100 * SHORTEST:g} to "
        f"{100 * LONGEST:g} cm added and scaled to {100 * PEAK:g} cm from the lowest to the "
        f"highest point, drawn from a seed (slope {100 * sum(mean) / len(mean):.0f} % in the mean, "
        f"{100 * max(most):.0f} % at most). The original's heights had a standard deviation of a "
        "micrometre and were looked up wrongly: it walked on flat ground."
    )
    yield (
        f"It trots: duty factor {gait.duty:g}, period {gait.period:g} s, steps {gait.lift:g} m "
        f"high, {gait.speed:g} m/s commanded. Feet follow Bezier curves, joint angles come from "
        "inverse kinematics, servos are PD controllers with damping on the velocity error. The "
        "height of the next foothold is looked up in the map; a foot that touches the ground ends "
        "its swing and is loaded gradually; strides are steered back to the line. The published "
        "step height suffices on this terrain. All methods have the same controller, each on its "
        "own state."
        f" Symplectic Euler at 1 ms; Drumwright–Shell with µ = {MU:g}."
    )


def _differences(results: Results) -> Iterator[str]:
    """What differs from the paper, and why."""
    there = grounds(results, walked)
    whole = ", ".join(f"{ratio(results, g, SHELL, NO_SLIP).median:.1f} ({g})" for g in there)
    alike = ", ".join(f"{ratio(results, g, SHELL, LETTER).median:.1f} ({g})" for g in there)
    yield (
        f"**Ratio.** The time of a step of Drumwright–Shell over that of no-slip is {whole}. Part "
        "of this is implementation, not method: no-slip motions are found in one compiled search, "
        "while for Drumwright–Shell the problem is made and checked in Python before compiled "
        'kernels solve it. Over the paper\'s own model (`grip="all"`), which takes the same way '
        f"through Python, the ratio is {alike}: this is the one to compare with the paper's."
    )
    far = {
        g: min(each["walks"][LETTER]["distance"] / each["walks"][NO_SLIP]["distance"]
               for each in walked(results, g))
        for g in there
    }  # fmt: skip
    yield (
        "**The paper's model as it stands** holds the tangents of every listed contact, pressed or "
        "not. Where a foot has several contacts with different normals, as on a terrain map, it "
        "can hardly be lifted. Distance walked, relative to the library's default: "
        + ", ".join(f"{100 * part:.0f} % ({g})" for g, part in far.items()) + "."
    )  # fmt: skip
    ours = [each["walks"][NO_SLIP] for g in there for each in walked(results, g)]
    jammed, steps = sum(walk["jammed"] for walk in ours), sum(walk["steps"] for walk in ours)
    slip, down = (max(walk[what] for walk in ours) for what in ("slip_most", "touchdown_most"))
    yield (
        f"**Slip.** Feet on the ground slide by {slip:.1g} m in the worst stance. In the step in "
        f"which it comes down, a foot moves by at most {down:.1g} m along the ground. In {jammed} "
        f"of {steps} steps a foot jams: held it is not pressed, released it is. It is then held, "
        "and the step is marked as inconsistent, because no finite friction would do that."
    )


_VISCOUS = [
    f"The same trot with viscous contact, µ_v = {MU_V:g} N s/m and no Coulomb friction, simulated "
    "from event to event (`hf.EventDriven`): Runge–Kutta of fourth order with contact forces at "
    "acceleration level in every stage, and inelastic impacts. A foot that slides at the commanded "
    f"speed is dragged with {1e3 * MU_V * Gait().speed:g} mN: the ground is like ice.",
    "The original compared modified PPM with Lemke on two different LCPs, and applied viscous "
    f"forces twice and outside of the LCP. Here modified PPM and {LEMKE} solve the very same "
    "LCPs, and agree.",
]


def _ended(results: Results) -> Iterator[str]:
    for ground in grounds(results, slid):
        whole = lemke_ratio(results, ground, "run")
        walks = [each["walk"] for each in slid(results, ground)]
        far = ", ".join(f"{walk['distance']:.2f} m in {walk['seconds']:g} s" for walk in walks)
        yield (
            f"**{ground.capitalize()}.** The robot covers {far}. The whole run takes "
            f"{whole.median:.2f} times as long with Lemke: most of the time goes into kinematics, "
            "collision detection and finding the times of impact, which are the same for both."
        )
        for each in slid(results, ground):
            if each["walk"]["problem"]:
                yield f"**Seed {each['seed']} ended early:** {each['walk']['problem']}."
