"""Tables of the locomotion experiment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.experiments.locomotion.experiment import GROUNDS, LABELS, LETTER, MU_V, NO_SLIP, SHELL
from holdfast.experiments.parts import Table, Value
from holdfast.experiments.report import paper
from holdfast.experiments.report.spread import Spread

Results = Mapping[str, dict[str, Any]]
Row = dict[str, Value]
PPM, LEMKE = "modified PPM", "Lemke"
FAR = 0.05  # [m] shorter walks have no energy per metre
LEAST_WALK, MOST_SLIP, RERUN_RATIO = 0.3, 1e-6, 1.67  # what was asked for


def walked(results: Results, ground: str) -> list[dict[str, Any]]:
    """The trials on a ground."""
    return [each for each in results.values() if "walks" in each and each["ground"] == ground]


def slid(results: Results, ground: str) -> list[dict[str, Any]]:
    """The viscous trials on a ground."""
    return [each for each in results.values() if "walk" in each and each["ground"] == ground]


def grounds(results: Results, of: Callable[[Results, str], list[Any]]) -> list[str]:
    """Grounds that there are trials of."""
    return [ground for ground in GROUNDS if of(results, ground)]


def per_step(walk: Mapping[str, Any], key: str = "running") -> float:
    """Time of a step [s]; a walk that ended early has fewer of them."""
    return walk[key] / max(walk["steps"], 1)


def ratio(results: Results, ground: str, method: str, to: str) -> Spread:
    """How much longer a method takes than another, trial by trial."""
    return Spread.of(
        per_step(each["walks"][method]) / per_step(each["walks"][to])
        for each in walked(results, ground)
    )


def lemke_ratio(results: Results, ground: str, what: str) -> Spread:
    """How much longer Lemke's method takes, trial by trial.

    For a "run", for "solves" from rows and inertia, or for "bare" ones, with the matrix formed.
    """

    def of(walk: Mapping[str, Any]) -> float:
        if what == "run":
            return walk["running_lemke"] / walk["running"]
        forming = walk["mean_forming"] if what == "solves" else 0.0
        return (walk["mean_lemke"] + forming) / walk["mean_solve"]

    return Spread.of(of(each["walk"]) for each in slid(results, ground))


LEMKE_RATIOS = {
    "run": "whole run",
    "solves": "solves, matrix and all",
    "bare": "solves, matrix given",
}


def duration(results: Results) -> str:
    """How long the walks are, in words."""
    found = sorted({each["duration"] for each in results.values()})
    return " and ".join(f"{seconds:g} s" for seconds in found)


def times_table(results: Results) -> Table:
    """Running times of no-slip, Drumwright-Shell and MuJoCo."""
    rows: list[Row] = []
    for ground in grounds(results, walked):
        for method, label in LABELS.items():
            walks = [each["walks"][method] for each in walked(results, ground)]
            running = Spread.of(walk["running"] for walk in walks)
            over = ratio(results, ground, method, NO_SLIP)
            rows.append({
                "ground": ground, "method": label, "trials": len(walks),
                "running time [s]": running.median, "from … to [s]": running.range(),
                "ratio": over.median, "ratio from … to": over.range(),
                **_solves(walks), **_contacts(walks), **_trouble(walks),
            })  # fmt: skip
    return Table(
        "locomotion_times", f"Running time, {duration(results)} at 1 ms", rows,
        "Running time: CPU time of the steps, without the controller and without measuring. Ratio: "
        "to the first row of the same ground, trial by trial. First row: forces only where "
        "contacts are pressed, the library's default, in one compiled search. Second row: the "
        "paper's model as it stands (`grip=\"all\"`), where every listed contact holds; its "
        "problems are made in Python, as Drumwright–Shell's are. Contact solves: from rows to "
        "forces. MuJoCo's solver is part of `mj_step` and is not timed separately. Contacts: those "
        "of the problem that is solved. Fallbacks: solves that were left to another method. "
        "Jammed: steps in which no set of contacts was found that stick exactly where they are "
        "pressed; such a foot is held, and the answer is certified nevertheless.",
    )  # fmt: skip


def _solves(walks: list[dict[str, Any]]) -> Row:
    mean = [walk["mean_solve"] for walk in walks if walk["mean_solve"] is not None]
    return {
        "contact solves": walks[0]["solves"] or None,
        "mean time of a solve [µs]": 1e6 * Spread.of(mean).median if mean else None,
    }


def _contacts(walks: list[dict[str, Any]]) -> Row:
    least, mean, most = zip(*(walk["contacts"] for walk in walks), strict=True)
    return {
        "contacts, least": min(least), "mean": sum(mean) / len(mean), "most": max(most),
    }  # fmt: skip


def _trouble(walks: list[dict[str, Any]]) -> Row:
    return {key: sum(walk[key] for walk in walks) for key in ("failures", "fallbacks", "jammed")}


def motion_table(results: Results) -> Table:
    """How the robot walked."""
    rows: list[Row] = []
    for ground in grounds(results, walked):
        for method, label in LABELS.items():
            walks = [each["walks"][method] for each in walked(results, ground)]
            rows.append({"ground": ground, "method": label, **_motion(walks)})
    for ground in grounds(results, slid):
        walks = [each["walk"] for each in slid(results, ground)]
        label = f"viscous, µ_v = {MU_V:g} N s/m, RK4"
        rows.append({"ground": ground, "method": label, **_motion(walks)})
    return Table(
        "locomotion_motion", f"The walk, {duration(results)}", rows,
        "Worst of all trials; energy is the median. Slip: path of the contact point along the "
        "ground in one stance while its contact is pressed, by the velocity that was solved for, "
        "from touchdown on. Touchdown: the same in the single step in which a foot comes down. "
        "Aloft: steps of a stance in which the foot is off the ground. "
        "Drift: how far the contact points actually moved in one stance, including second-order "
        "errors of the time step. Heading and distance from the line at the end. Falls: the trunk "
        "touches the ground or tips by more than 60 degrees. Energy: positive mechanical work of "
        "the servos, torque times joint speed with braking counted as zero, per metre walked.",
    )  # fmt: skip


def _motion(walks: list[dict[str, Any]]) -> Row:
    energy = [walk["work"] / walk["distance"] for walk in walks if walk["distance"] > FAR]
    stances = sum(walk["stances"] for walk in walks)
    mean = sum(walk["slip_mean"] * walk["stances"] for walk in walks) / max(stances, 1)
    return {
        "distance [m]": min(walk["distance"] for walk in walks),
        "heading [°]": max((walk["heading"] for walk in walks), key=abs),
        "off the line [mm]": 1e3 * max((walk["sideways"] for walk in walks), key=abs),
        "falls": sum(walk["falls"] for walk in walks),
        "stances": stances,
        "slip per stance, mean [m]": mean,
        "slip per stance, most [m]": max(walk["slip_most"] for walk in walks),
        "touchdown, most [m]": max(walk["touchdown_most"] for walk in walks),
        "aloft": sum(walk["aloft"] for walk in walks),
        "drift per stance, most [m]": max(walk["drift_most"] for walk in walks),
        "energy [J/m]": Spread.of(energy).median if energy else None,
    }


def viscous_table(results: Results) -> Table:
    """Modified PPM against Lemke on the same LCPs."""
    rows: list[Row] = []
    for ground in grounds(results, slid):
        walks = [each["walk"] for each in slid(results, ground)]
        for solver in (PPM, LEMKE):
            lemke = solver == LEMKE
            running = Spread.of(walk["running_lemke" if lemke else "running"] for walk in walks)
            mean = Spread.of(walk["mean_lemke" if lemke else "mean_solve"] for walk in walks)
            run, solve, bare = (lemke_ratio(results, ground, what) for what in LEMKE_RATIOS)
            rows.append({
                "ground": ground, "solver": solver, "trials": len(walks),
                "running time [s]": running.median, "from … to [s]": running.range(),
                "ratio": run.median if lemke else 1.0,
                "ratio from … to": run.range() if lemke else None,
                "LCPs": sum(walk["solves"] for walk in walks),
                "mean time of a solve [µs]": 1e6 * mean.median,
                "to form the matrix [µs]":
                    1e6 * Spread.of(walk["mean_forming"] for walk in walks).median
                    if lemke else None,
                "ratio of solves": solve.median if lemke else 1.0,
                "with the matrix given": bare.median if lemke else None,
                "pivots, mean": sum(walk["pivots"][lemke] for walk in walks) / len(walks),
                **_contacts(walks),
                "failures": sum(walk["lemke_failures" if lemke else "failures"] for walk in walks),
                "fallbacks": None if lemke else sum(walk["fallbacks"] for walk in walks),
                "impacts": None if lemke else sum(walk["impacts"] for walk in walks),
                "settled": None if lemke else sum(walk["settled"] for walk in walks),
                "largest difference":
                    max(walk["difference"] for walk in walks) if lemke else None,
            })  # fmt: skip
    return Table(
        "locomotion_viscous", f"Viscous contact, {duration(results)}, RK4 at 1 ms", rows,
        "Each LCP of the simulation is solved by both, one right after the other, in alternating "
        "order; the answer of the modified PPM is used. Running time: CPU time of the steps, "
        "without the solves of the other. Both answers are certified by the same criterion. "
        "Lemke's method needs the dense matrix; forming it is in its running time and in the "
        "ratio of solves, not in its mean time of a solve. The modified PPM takes rows and inertia "
        "as they are. Fallbacks: answers that needed a coarser rank tolerance. Settled: steps with "
        "so many impacts that they were finished at velocity level. Difference: between the "
        "accelerations, relative.",
    )  # fmt: skip


def paper_table(results: Results) -> Table:
    """The paper's ratios beside ours."""
    shell, no_slip = paper.WALK_DRUMWRIGHT_SHELL.value, paper.WALK_NO_SLIP.value
    again = paper.RERUN_WALK_DRUMWRIGHT_SHELL.value / paper.RERUN_WALK_NO_SLIP.value
    rows: list[Row] = []
    for ground in grounds(results, walked):
        for to, which in ((NO_SLIP, ""), (LETTER, " to the paper's letter")):
            ours = ratio(results, ground, SHELL, to)
            rows.append({
                "what": f"Drumwright–Shell over no-slip{which}, {ground}",
                "paper, slower [s]": shell, "paper, faster [s]": no_slip,
                "paper, ratio": shell / no_slip, "re-run, ratio": again,
                "ours, ratio": ours.median, "ours, from … to": ours.range(),
            })  # fmt: skip
    lemke, ppm = paper.WALK_LEMKE.value, paper.WALK_PPM.value
    for ground in grounds(results, slid):
        for what, words in LEMKE_RATIOS.items():
            ours = lemke_ratio(results, ground, what)
            rows.append({
                "what": f"viscous, Lemke over modified PPM, {ground}, {words}",
                "paper, slower [s]": lemke, "paper, faster [s]": ppm,
                "paper, ratio": lemke / ppm, "re-run, ratio": "no gain",
                "ours, ratio": ours.median, "ours, from … to": ours.range(),
            })  # fmt: skip
    return Table(
        "locomotion_paper", "The paper's figures beside ours", rows,
        f"Paper: {paper.WALK_NO_SLIP.source}; {paper.WALK_PPM.source}. Re-run: "
        f"{paper.RERUN_WALK_NO_SLIP.source}. The paper's machine and code were different: only "
        "ratios can be compared. The paper's flat ground was meant to be a terrain.",
    )  # fmt: skip


def target_table(results: Results) -> Table:
    """What was asked for, and whether it is met."""
    rows: list[Row] = []

    def add(what: str, asked: str, found: Value, met: bool | None) -> None:
        verdict = {True: "yes", False: "**no**", None: "not tested"}[met]
        rows.append({"target": what, "asked": asked, "measured": found, "met": verdict})

    for ground in grounds(results, walked):
        trials = walked(results, ground)
        ours = [each["walks"][NO_SLIP] for each in trials]
        least = ratio(results, ground, SHELL, NO_SLIP).low
        add(f"Drumwright–Shell over no-slip, whole run, {ground}, least of the trials",
            f"more than {RERUN_RATIO}", least, least > RERUN_RATIO)  # fmt: skip
        full = min(each["duration"] for each in trials) >= 10.0
        far = min(walk["distance"] for walk in ours)
        fell = sum(walk["falls"] for walk in ours)
        add(f"distance walked without slip in 10 s, {ground} [m]",
            f"at least {LEAST_WALK}, no fall", far if full else None,
            far >= LEAST_WALK and not fell if full else None)  # fmt: skip
        slip = max(walk["slip_most"] for walk in ours)
        add(f"foot slip per stance, {ground} [m]", "below 1e-6", slip, slip < MOST_SLIP)
        bad = sum(walk["failures"] + walk["fallbacks"] for walk in ours)
        add(f"solver failures and fallbacks, no-slip, {ground}", "none", bad, bad == 0)
    for ground in grounds(results, slid):
        for what, words in LEMKE_RATIOS.items():
            least = lemke_ratio(results, ground, what).low
            add(f"Lemke over modified PPM, viscous, {ground}, {words}, least of the trials",
                "more than 1", least, least > 1.0)  # fmt: skip
        walks = [each["walk"] for each in slid(results, ground)]
        bad = sum(walk["failures"] + walk["fallbacks"] for walk in walks)
        add(f"solver failures and fallbacks, viscous, {ground}", "none", bad, bad == 0)
    return Table("locomotion_targets", "Targets", rows)
