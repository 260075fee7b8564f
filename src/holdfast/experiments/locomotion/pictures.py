"""Pictures of the locomotion experiment."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm

from holdfast.experiments.locomotion.experiment import (
    DEFAULT,
    LABELS,
    NO_SLIP,
    RECIPE,
    SHELL,
    course_of,
    terrain_of,
)
from holdfast.experiments.locomotion.gait import RADIUS
from holdfast.experiments.locomotion.tables import Results, grounds, slid, walked
from holdfast.experiments.locomotion.walker import walker
from holdfast.experiments.parts import Figure
from holdfast.experiments.report.plots import COLORS, new_figure, tidy

FAINT, STRONG = 1e-7, 1e-3  # [m] slip between two samples, from the first colour to the last


def paths_figure(results: Results, ground: str) -> Figure:
    """Paths of a foot over the ground, slip marked."""
    trial = walked(results, ground)[0]
    shown = {LABELS[key]: trial["walks"][key] for key in (NO_SLIP, SHELL, DEFAULT, RECIPE)}
    viscous = [each for each in slid(results, ground) if each["seed"] == trial["seed"]]
    if viscous:
        shown["viscous"] = viscous[0]["walk"]
    figure = new_figure(10.0, 1.65 * len(shown))
    every = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    terrain = terrain_of(ground, trial["seed"])
    marked: Any = None
    for axes, (name, walk) in zip(every, shown.items(), strict=True):
        x, y, z, slip, touchdown = np.array(walk["path"]).reshape(-1, 5).T
        z = z - RADIUS  # lowest point of the foot
        tidy(axes).plot(x, 1e3 * z, color="#8a8f98", linewidth=0.8)
        profile = np.array([terrain.height(a, b) for a, b in zip(x, y, strict=True)])
        axes.plot(x, 1e3 * profile, color="#1c2430", linewidth=1.0, alpha=0.6)
        points = np.column_stack([x, 1e3 * z])
        pieces = np.stack([points[:-1], points[1:]], axis=1)
        slides = slip[1:] > FAINT
        marked = LineCollection(
            list(pieces[slides]), cmap="plasma_r", norm=LogNorm(FAINT, STRONG), linewidths=4.0
        )
        marked.set_array(slip[1:][slides])
        axes.add_collection(marked)
        lands = touchdown > FAINT
        axes.plot(x[lands], 1e3 * z[lands], "^", color=COLORS[2], markersize=4, alpha=0.8)
        axes.set_title(f"{name}: {1e3 * walk['slip_mean']:.2g} mm slip in a stance",
                       fontsize=9, loc="left")  # fmt: skip
        axes.set_ylabel("mm")
    every[-1].set_xlabel("front left foot, along the walk [m]")
    figure.colorbar(marked, ax=list(every), label="slip between two samples [m]", shrink=0.6)
    return Figure(
        f"locomotion_paths_{ground}", figure,
        f"Path of the front left foot from the side, {ground} ground. Where it is pressed on the "
        "ground and slides, the path is coloured by how far; green triangles are steps with which "
        "it comes down and moves along the ground. What is less than "
        f"{FAINT:g} m between two samples is not marked.",
    )  # fmt: skip


def times_figure(results: Results) -> Figure:
    """How long contact solves take."""
    from holdfast.experiments.locomotion.walk import BINS

    there = grounds(results, walked)
    viscous = grounds(results, slid)
    figure = new_figure(9.5, 3.4)
    every = figure.subplots(1, len(there) + bool(viscous), squeeze=False)[0]
    middle = 1e6 * np.sqrt(BINS[1:] * BINS[:-1])
    for axes, ground in zip(every, there, strict=False):
        for k, key in enumerate((NO_SLIP, SHELL)):
            counts = sum(np.array(each["walks"][key]["solve_times"])
                         for each in walked(results, ground))  # fmt: skip
            _fill(axes, middle, counts, COLORS[k], LABELS[key])
        axes.set_title(f"no-slip and Drumwright–Shell, {ground}", fontsize=9)
    if viscous:
        axes = every[-1]
        for k, (key, label) in enumerate((("solve_times", "modified PPM"),
                                          ("lemke_times", "Lemke"))):  # fmt: skip
            counts = sum(np.array(each["walk"][key])
                         for ground in viscous for each in slid(results, ground))  # fmt: skip
            _fill(axes, middle, counts, COLORS[2 + k], label)
        axes.set_title("viscous, the same LCPs", fontsize=9)
    every[0].set_ylabel("share of the solves")
    return Figure(
        "locomotion_solve_times", figure,
        "CPU times of single contact solves, all trials; methods take turns.",
    )  # fmt: skip


def _fill(axes: Any, middle: np.ndarray, counts: Any, color: str, label: str) -> None:
    share = np.asarray(counts, dtype=float)
    share /= max(share.sum(), 1.0)
    tidy(axes).fill_between(middle, share, step="mid", color=color, alpha=0.5, label=label)
    inside = np.flatnonzero(share)
    if inside.size:
        low, high = axes.get_xlim() if axes.has_data() and axes.get_xscale() == "log" else (
            np.inf, 0.0)  # fmt: skip
        axes.set_xscale("log")
        axes.set_xlim(min(low, middle[inside[0]] / 1.5), max(high, middle[inside[-1]] * 1.5))
    axes.set_xlabel("µs")
    axes.legend(fontsize=7, frameon=False)


def rendered(results: Results) -> tuple[list[Figure], list[str]]:
    """The robot on its terrain at the start, half way and at the end; or a note on why not."""
    from holdfast.tools.render import NoPictureError, render

    ground = grounds(results, walked)[-1]
    trial = walked(results, ground)[0]
    walk = trial["walks"][NO_SLIP]
    course = course_of(ground, trial["seed"])
    xml = walker(course.terrain, start=course.start, heading=course.heading)
    camera = {"lookat": [0.0, -0.05, 0.05], "distance": 1.05, "azimuth": 97, "elevation": -20}
    try:
        drawn = render(xml, walk["poses"], camera=camera, width=640, height=480)
    except NoPictureError as error:
        return [], [f"**No pictures of the robot:** {error}."]
    figure = new_figure(10.5, 2.9)
    times = np.linspace(0.0, walk["seconds"], len(drawn))
    for axes, picture, seconds in zip(
        figure.subplots(1, len(drawn), squeeze=False)[0], drawn, times, strict=True
    ):
        axes.imshow(picture)
        axes.set_axis_off()
        axes.set_title(f"{seconds:.1f} s", fontsize=10)
    return [Figure("locomotion_robot", figure, f"The quadruped on the {ground} under no-slip "
                   f"contact: {walk['distance']:.2f} m in {walk['seconds']:.1f} s. The map is "
                   "1 m x 1 m with 250 x 250 samples.")], []  # fmt: skip
