"""Pictures of the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import linearity
from peers import OURS
from speed import CaseSummary, Entry

TARGET = 0.4
"""Ratio to the best peer that the project aims at."""


def speed_plot(entries: Sequence[Entry], path: Path) -> None:
    """Time over n, one panel per family, all solvers; hollow marks are wrong answers.

    Cases of a family differ in m too, which is written beside our own marks.
    """
    families = list(dict.fromkeys(each.family for each in entries))
    solvers = list(dict.fromkeys(each.solver for each in entries))
    figure, axes = plt.subplots(
        1, len(families), figsize=(4 * len(families), 4.2), sharey=True, squeeze=False
    )
    for axis, family in zip(axes[0], families, strict=True):
        for number, solver in enumerate(solvers):
            mine = [
                e for e in entries if (e.family, e.solver, e.status) == (family, solver, "solved")
            ]
            _speed_line(axis, sorted(mine, key=lambda e: (e.n, e.m)), solver, f"C{number}")
        axis.set(title=family, xlabel="contacts n", xscale="log", yscale="log")
        axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("time of a cold solve [s]")
    handles, labels = _legend(axes[0])
    figure.legend(handles, labels, loc="lower center", ncols=len(solvers), frameon=False)
    figure.tight_layout(rect=(0, 0.06, 1, 1))
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _speed_line(axis: Axes, entries: Sequence[Entry], solver: str, color: str) -> None:
    ours = solver == OURS.name
    n, seconds = [e.n for e in entries], [e.seconds for e in entries]
    style = {
        "color": "black" if ours else color,
        "lw": 2 if ours else 0.8,
        "alpha": 1 if ours else 0.8,
    }
    axis.plot(n, seconds, label=solver, zorder=3 if ours else 2, **style)
    for entry in entries if ours else ():
        axis.annotate(f" m {entry.m}", (entry.n, entry.seconds), fontsize=6, va="top")
    for entry in entries:
        face = style["color"] if entry.accurate else "white"
        axis.plot(entry.n, entry.seconds, "o", ms=4, mec=style["color"], mfc=face, zorder=4)


def _legend(axes: Sequence[Axes]) -> tuple[list, list[str]]:
    """Every label once, from whichever panel has it."""
    known: dict[str, object] = {}
    for axis in axes:
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    return list(known.values()), list(known)


def ratio_plot(summaries: Sequence[CaseSummary], path: Path) -> None:
    """Bars of our time over the best peer's, case by case."""
    figure, axis = plt.subplots(figsize=(max(6, 0.34 * len(summaries)), 4.5))
    families = list(dict.fromkeys(each.family for each in summaries))
    colors = [f"C{families.index(each.family)}" for each in summaries]
    heights = np.array([each.ratio for each in summaries]) - 1.0
    axis.bar(range(len(summaries)), heights, bottom=1.0, color=colors)
    labels = [f"m {each.m}, n {each.n}\n{each.best}" for each in summaries]
    axis.set_xticks(range(len(summaries)), labels, rotation=90, fontsize=7)
    axis.axhline(1.0, color="black", lw=1)
    axis.axhline(TARGET, color="black", lw=1, ls=":")
    axis.set(yscale="log", ylabel="time, holdfast / best accurate peer")
    low, high = axis.get_ylim()
    axis.set_ylim(min(low, 0.8 * TARGET), 2 * high)
    for family in families:
        axis.bar(0, np.nan, color=f"C{families.index(family)}", label=family)
    axis.legend(frameon=False, ncols=len(families), fontsize=7, loc="upper left")
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)


def linearity_plot(points: Sequence[linearity.Point], path: Path) -> None:
    """Time of a solve and of one pass over n."""
    figure, axis = plt.subplots(figsize=(6, 4.2))
    for number, form in enumerate(dict.fromkeys(each.form for each in points)):
        mine = [each for each in points if each.form == form]
        n, color = [each.n for each in mine], f"C{number}"
        axis.plot(n, [each.seconds for each in mine], "o-", color=color, label=f"solve, {form}")
        axis.plot(n, [each.pass_seconds for each in mine], ":", color=color, label=f"pass, {form}")
    axis.set(xscale="log", yscale="log", xlabel="contacts n", ylabel="time [s]")
    axis.grid(alpha=0.3)
    axis.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
