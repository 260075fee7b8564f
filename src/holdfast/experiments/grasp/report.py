"""The part of the report on the grasp: texts, targets, pictures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from holdfast.experiments.grasp.experiment import methods, timings
from holdfast.experiments.grasp.runs import CONTROL
from holdfast.experiments.grasp.tables import (
    Results,
    control_table,
    held_table,
    paper_table,
    pivots,
    ratio,
    rows_of,
)
from holdfast.experiments.parts import Figure, Section, Table
from holdfast.experiments.report import paper
from holdfast.experiments.report.plots import COLORS, new_figure, tidy

_STYLES = ("o-", "s--")
LEAST_DRAWN = 1e-18  # [m] so that zero can be drawn


def sections(results: Results) -> Iterator[Section]:
    """All sections on the grasp."""
    rows = rows_of(results)
    tables = [target_table(results), paper_table(results)]
    tables.append(held_table(results, reduced=False, boxes=rows[:1], name="grasp_maximal"))
    yield Section(
        "Grasping, as in the paper", [*_SCENE, *_differences(results)], tables,
        [pivot_figure(results), time_figure(results)],
    )  # fmt: skip
    reduced = held_table(results, reduced=True, boxes=rows[:1], name="grasp_reduced")
    drawn, words = _pictures(results)
    yield Section(
        "Grasping, through MuJoCo", [*_MUJOCO, *words], [reduced], [*drawn, drift_figure(results)]
    )
    longer = [
        held_table(results, reduced=False, boxes=rows[1:], name="grasp_maximal_rows"),
        held_table(results, reduced=True, boxes=rows[1:], name="grasp_reduced_rows"),
    ]
    yield Section("Longer rows, and one that must open", [*_longer(results)],
                  [*longer, control_table(results)], [])  # fmt: skip


_SCENE = [
    "Two grippers squeeze two boxes in a row: unit cubes of 1 kg with faces flush and at rest, "
    "20 N on each gripper, gravity on the boxes, steps of 0.01 s. In maximal coordinates, exactly "
    "as the original: m = 24, 10 bilateral rows, 36 contacts (each corner of a face three times), "
    "216 complementarity variables for Stewart-Trinkle with a pyramid of four sides against 36 "
    "for no-slip.",
    "Time stepping: after each solve positions and orientations are advanced with the new "
    "velocity, and contacts are found anew from the poses, at the corners of the rectangle in "
    "which two faces overlap. The gap enters the next problem as `-gap / h`; penetration is not "
    "corrected. Nothing is held fixed from step to step.",
]

_MUJOCO = [
    "The same boxes as an MJCF model, m = 14, with the contacts that MuJoCo's own collision "
    "detection finds, stepped by `mj_step` with several settings and by `hf.Stepper`. The recipe "
    "is what MuJoCo's documentation recommends against slip: elliptic cones, impratio 10, noslip "
    "iterations. Converged is the same with 1000 iterations and tolerance 0.",
    "MuJoCo's contacts are soft by design: boxes first sink in as far as the squeeze requires, and "
    "without noslip they creep. This is a design choice, not an error; the table shows how large "
    "the effect is here.",
]


def _longer(results: Results) -> Iterator[str]:
    """On rows of other lengths and on the negative control."""
    yield (
        "The original gave tangent rows to only half of the contacts, so rows of three and four "
        "boxes fell. A row that statics allows should be held, whatever its length. Eight boxes "
        "of ten newtons each are close to what a squeeze can carry at all: the weight bends the "
        "row with n m g L / 8 = 78.5 N m, the squeeze resists with F a = 80 N m. Soft contacts "
        "shift the pressure away from the edge and do not have this reserve."
    )
    yield (
        "The negative control is beyond that limit: eight boxes of 0.1 kg and 5 cm between pads "
        "that press with 5 N."
    )
    stuck = [each for each in methods()
             if results[f"control-{each.key}"]["farthest"] < CONTROL.size]  # fmt: skip
    if any(each.key == "reduced-ppm" for each in stuck):
        yield (
            'Through MuJoCo the paper\'s model to the letter (`grip="all"`) does not let it open: '
            "contacts are listed within a margin there, and that model holds the tangents of every "
            "listed contact, including one that has just opened. This is a failure of the model, "
            'not of a solver. With `grip="loaded"`, the default, contacts grip only where they are '
            "pressed."
        )


def _differences(results: Results) -> Iterator[str]:
    """What differs from the paper, and why."""
    loose, tight = results["hold-2-lemke-loose"], results["hold-2-lemke-tight"]
    ours = ratio(results, 2, "lemke-loose", "step", "ppm")
    solve = ratio(results, 2, "lemke-tight", "solve", "ppm")
    published = paper.GRASP_STEWART_TRINKLE.value / paper.GRASP_PPM.value
    yield (
        "**Boxes under Stewart-Trinkle.** In the paper they fall after about ten steps, with its "
        f"loose tolerances (1e-5 for zero, 1e-4 for a pivot). {_fate(loose)} The drift until then "
        f"is {loose['farthest']:.1e} m. Solved to 1e-10, the same LCP lets them move by "
        f"{tight['farthest']:.1e} m, because where contacts are redundant the model's motion is "
        "not unique: friction goes where Lemke's method happens to put the normal force. What the "
        "paper saw was a failure of its solver (Lemke with loose tolerances on its own assembly of "
        "the LCP, with friction of the same sign on both bodies), not of the model."
    )
    yield (
        f"**Ratios.** The paper compares whole simulations in MATLAB: {published:.1f}. Here all "
        f"solvers are compiled kernels under one Python interface, and a whole step of "
        f"Stewart-Trinkle takes {ours.median:.1f} times as long as one of no-slip "
        f"({ours.range()}); the contact solves alone, both with tight tolerances, take "
        f"{solve.median:.1f} times as long ({solve.range()}). Finding contacts, making the problem "
        "and checking it cost the same in both, which reduces the ratio of steps."
    )
    yield (
        "**Contact normals.** A footnote of the paper speaks of three normals per corner. Its "
        "sources list each corner three times with the same normal, along the row, and so does "
        "this scene: N has rank 9, [J; S; T] rank 18, and the 36 x 36 matrix rank 5."
    )


def _fate(loose: Mapping[str, Any]) -> str:
    """What became of the boxes under the paper's tolerances."""
    if loose["ended"]:
        return f"Here the run with these tolerances ends at step {loose['steps']}: " \
               f"{loose['ended']}."  # fmt: skip
    if min(loose["held"].values()) < 2:
        return "Here boxes are lost, too."
    return f"This was not reproduced: here they are held for all {loose['steps']} steps."


def target_table(results: Results) -> Table:
    """What was asked for, and whether it is met."""
    against = ratio(results, 2, "lemke-loose", "solve", "ppm")
    tight = ratio(results, 2, "lemke-tight", "solve", "ppm")
    mean, most = pivots(results["hold-2-ppm"]) or (0.0, 0)
    rows: list[dict[str, Any]] = []

    def add(what: str, target: str, value: float | str, met: bool) -> None:
        rows.append({"target": what, "asked": target, "measured": value,
                     "met": "yes" if met else "**no**"})  # fmt: skip

    add("contact solve, Stewart-Trinkle (paper's tolerances) over modified PPM", "at least 50",
        against.median, against.median >= 50)  # fmt: skip
    add("contact solve, Stewart-Trinkle (tight) over modified PPM", "at least 50",
        tight.median, tight.median >= 50)  # fmt: skip
    add("pivots of the modified PPM, mean", "about 5", mean, mean <= 5.5)
    add("pivots of the modified PPM, most", "at most 7", most, most <= 7)
    for key, where in (("ppm", "maximal"), ("reduced-ppm-pressed", "through MuJoCo")):
        result = results[f"hold-2-{key}"]
        add(f"drift after {result['steps']} steps, {where} [m]", "below 1e-9",
            result["farthest"], result["farthest"] < 1e-9 and not result["ended"])  # fmt: skip
    opened = [key for key in ("ppm-pressed", "reduced-ppm-pressed")
              if results[f"control-{key}"]["farthest"] > CONTROL.size]  # fmt: skip
    add("the negative control opens (ours, default)", "both", f"{len(opened)} of 2",
        len(opened) == 2)  # fmt: skip
    return Table("grasp_targets", "Targets", rows)


def pivot_figure(results: Results) -> Figure:
    """How often there were how many pivots."""
    figure = new_figure(9, 3.6)
    left, right = figure.subplots(1, 2)
    shown = [method for method in methods() if not method.reduced]
    for axes, keys in ((left, ("ppm", "qp")), (right, ("lemke-loose", "lemke-tight"))):
        for k, method in enumerate(each for each in shown if each.key in keys):
            counts = Counter({int(c): t for c, t in
                              results[f"hold-2-{method.key}"]["pivots"].items()})  # fmt: skip
            color = COLORS[k if axes is left else k + 2]
            if axes is left:
                axes.bar(list(counts), list(counts.values()), 0.8, color=color, alpha=0.75,
                         label=method.label)  # fmt: skip
                axes.set_xlim(0, max(10, *counts))
            else:
                axes.hist(list(counts.elements()), bins=range(0, max(counts) + 5, 5),
                          color=color, alpha=0.75, label=method.label)  # fmt: skip
        tidy(axes).set_xlabel("pivots in a step")
        axes.legend(fontsize=8, frameon=False)
    left.set_ylabel("steps")
    return Figure("grasp_pivots", figure, "Pivots per step over the whole run, two boxes in "
                  "maximal coordinates. Left: 36 variables; right: 216.")  # fmt: skip


def time_figure(results: Results) -> Figure:
    """Times of single contact solves, all trials."""
    figure = new_figure(9, 4)
    axes = tidy(figure.subplots())
    every = methods()
    for k, method in enumerate(every):
        times = [t for each in timings(results, 2, method.key) for t in each[method.key]["solve"]]
        if not times:
            continue
        places = np.full(len(times), len(every) - k) + 0.3 * (_shuffled(len(times)) - 0.5)
        color = COLORS[1 if method.reduced else 0]
        axes.plot(1e6 * np.array(times), places, "o", markersize=3, alpha=0.35, color=color)
        axes.plot(1e6 * np.median(times), len(every) - k, "|", markersize=16, color=color,
                  markeredgewidth=2.5)  # fmt: skip
    labels = [method.label + (" (reduced)" if method.reduced else "") for method in every]
    axes.set_yticks(range(len(every), 0, -1), labels, fontsize=8)
    axes.set_xscale("log")
    axes.set_xlabel("µs per contact solve")
    return Figure("grasp_times", figure, "Every timed contact solve of the grasp with two boxes; "
                  "bars are medians. Reduced: through MuJoCo.")  # fmt: skip


def _shuffled(count: int) -> np.ndarray:
    """Numbers from 0 to 1 that fill a line evenly."""
    return np.mod(0.61803398875 * np.arange(count), 1.0)


def drift_figure(results: Results) -> Figure:
    """How far the boxes have moved, over time."""
    figure = new_figure(9, 4.2)
    axes = tidy(figure.subplots())
    for k, method in enumerate(each for each in methods() if each.reduced):
        drift = results[f"hold-2-{method.key}"]["drift"]
        steps = [int(mark) for mark in drift]
        axes.loglog(steps, [max(x, LEAST_DRAWN) for x in drift.values()], _STYLES[k % 2],
                    markersize=5, color=COLORS[k], label=method.label)  # fmt: skip
    axes.set_xlabel("steps of 0.01 s")
    axes.set_ylabel("largest drift so far [m]")
    axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return Figure("grasp_drift", figure, "Largest distance that either box has moved from its "
                  "initial position, through MuJoCo.")  # fmt: skip


def _pictures(results: Results) -> tuple[list[Figure], list[str]]:
    """The grasp at the end of the run under MuJoCo and under ours; or a note on why not."""
    from holdfast.tools.render import NoPictureError, render
    from holdfast.tools.scenes import row_of_boxes

    shown = {"MuJoCo, default": "mujoco-default", "MuJoCo, recipe": "mujoco-recipe",
             "holdfast": "reduced-ppm-pressed"}  # fmt: skip
    found = {name: results[f"hold-2-{key}"] for name, key in shown.items()}
    camera = {"lookat": [0, 0, -0.1], "distance": 4.6, "azimuth": 90, "elevation": -12}
    try:
        drawn = render(row_of_boxes(2), [each["state"] for each in found.values()], camera=camera,
                       width=720, height=480)  # fmt: skip
    except NoPictureError as error:
        return [], [f"**No pictures of the boxes:** {error}."]
    figure = new_figure(10.5, 3)
    for axes, picture, (name, each) in zip(
        figure.subplots(1, len(drawn)), drawn, found.items(), strict=True
    ):
        axes.imshow(picture)
        axes.set_axis_off()
        axes.set_title(f"{name}: moved {each['farthest']:.1e} m", fontsize=10)
    seconds = 0.01 * max(each["steps"] for each in found.values())
    return [Figure("grasp_after", figure, f"The grasp after {seconds:g} s. The two boxes in the "
                   "middle are held by the squeeze of the outer ones alone.")], []  # fmt: skip
