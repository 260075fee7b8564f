"""The part of the report on scaling: fitted exponents and the log-log plot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from holdfast.experiments.parts import Figure, Section, Table, Value
from holdfast.experiments.report.plots import COLORS, new_figure, tidy
from holdfast.experiments.report.spread import Spread
from holdfast.experiments.scaling.experiment import BODIES, CONTACTS, METHODS

FROM = {"n": 1000, "m": 12}  # fits start here, where there are points enough beyond
BEYOND = 10_000  # contacts whose rows do not fit into a cache of the usual size
MOST = 1.05  # exponent in n that was asked for


def sections(results: Mapping[str, dict[str, Any]]) -> list[Section]:
    """The section on scaling."""
    tables = [_targets(results), _exponents(results), *(_times(results, s) for s in ("n", "m"))]
    return [Section("Scaling", [*_TEXT, *_missed(results)], tables, [_plot(results)])]


_TEXT = [
    "The paper claims that both of its models cost O(m³ + m² n): linear in the number of contacts. "
    "Its own code never implemented that, since it forms the n x n matrix. Here the claim is put "
    f"to the test: a tower of {BODIES} cubes (m = {6 * BODIES}) with up to a million contact "
    f"points scattered over its interfaces, and towers of growing height with {CONTACTS} points.",
    "Every time is that of `model.solve(problem)`: from a checked problem to certified forces. "
    "Methods that form a dense matrix are given larger problems until a solve takes too long or "
    "the matrix is too large; the table says where they stopped. The exponents of those that do "
    "not get far beyond 1000 contacts are fitted to the largest three sizes that they reach.",
]


def _points(results: Mapping[str, dict[str, Any]], sweep: str, key: str) -> list[dict[str, Any]]:
    return results[f"{sweep}-{key}"]["points"]


def fit(
    points: list[dict[str, Any]], over: str, start: int | None = None
) -> tuple[float, float, int, int] | None:
    """Exponent, steepest slope between neighbours, and the range of the fit; None if too few."""
    used = [p for p in points if p[over] >= (FROM[over] if start is None else start)]
    if len(used) < 3:  # did not get far: the largest three
        used = points[-3:]
    if len(used) < 3:
        return None
    size = np.log([p[over] for p in used])
    seconds = np.log([np.median(p["seconds"]) for p in used])
    slope = float(np.polyfit(size, seconds, 1)[0])
    steepest = float((np.diff(seconds) / np.diff(size)).max())
    return slope, steepest, used[0][over], used[-1][over]


def _missed(results: Mapping[str, dict[str, Any]]) -> Iterator[str]:
    """Where the exponent that was asked for is not reached, and what the slope is beyond."""
    for key, method in METHODS.items():
        points = _points(results, "n", key)
        fitted, beyond = fit(points, "n"), fit(points, "n", BEYOND)
        if method.ours and fitted is not None and beyond is not None and fitted[0] > MOST:
            cache = (
                "The rows of a thousand contacts fit into the caches of a processor, those of a "
                "million do not, so that each contact becomes more expensive."
            )
            yield (
                f"**{method.label[0].upper()}{method.label[1:]}: {fitted[0]:.2f} instead of at "
                f"most {MOST}.** The steepest step between two sizes has a slope of "
                f"{fitted[1]:.2f}; fitted from {beyond[2]} to {beyond[3]} contacts the exponent is "
                f"{beyond[0]:.2f}. "
                + (cache if beyond[0] <= MOST else "So it is not linear up to the largest sizes.")
            )


def _exponents(results: Mapping[str, dict[str, Any]]) -> Table:
    rows: list[dict[str, Value]] = []
    for key, method in METHODS.items():
        row: dict[str, Value] = {"method": method.label}
        for over in ("n", "m"):
            fitted = fit(_points(results, over, key), over)
            row |= {
                f"exponent in {over}": None if fitted is None else fitted[0],
                f"fitted over {over}": None if fitted is None else f"{fitted[2]} to {fitted[3]}",
                f"steepest in {over}": None if fitted is None else fitted[1],
            }
        largest = _points(results, "n", key)[-1]
        row["largest n"] = largest["n"]
        row["time there [ms]"] = 1e3 * float(np.median(largest["seconds"]))
        row["stopped"] = results[f"n-{key}"]["stopped"] or None
        rows.append(row)
    note = (
        "Least squares in logarithms. Steepest: largest slope between neighbouring sizes, which a "
        "fit can hide; it rises temporarily where rows no longer fit into a cache."
    )
    return Table("scaling_exponents", "Fitted exponents", rows, note)


def _targets(results: Mapping[str, dict[str, Any]]) -> Table:
    rows: list[dict[str, Value]] = []
    for key, method in METHODS.items():
        if not method.ours:
            continue
        fitted = fit(_points(results, "n", key), "n")
        if fitted is not None:
            rows.append({
                "target": f"exponent in n, {method.label}",
                "asked": f"at most {MOST} from 1000 to 1 000 000",
                "measured": fitted[0],
                "measured over": f"{fitted[2]} to {fitted[3]}",
                "met": "yes" if fitted[0] <= MOST else "**no**",
            })  # fmt: skip
    return Table("scaling_targets", "Targets", rows)


def _times(results: Mapping[str, dict[str, Any]], over: str) -> Table:
    rows: dict[int, dict[str, Value]] = {}
    for key, method in METHODS.items():
        for point in _points(results, over, key):
            row = rows.setdefault(point[over], {over: point[over]})
            spread = Spread.of(point["seconds"])
            row[f"{method.label} [ms]"] = 1e3 * spread.median
            if method.ours:
                row[f"{method.label}, pivots"] = round(float(np.mean(point["pivots"])))
    fixed = f"m = {6 * BODIES}" if over == "n" else f"n = {CONTACTS}"
    columns = [over, *(f"{method.label} [ms]" for method in METHODS.values())]
    columns += [f"{method.label}, pivots" for method in METHODS.values() if method.ours]
    ordered = [{column: row.get(column) for column in columns} for _, row in sorted(rows.items())]
    title = f"Time of a solve over {over}, {fixed}"
    return Table(f"scaling_{over}", title, ordered, "Medians over calls, then over scenes.")


def _plot(results: Mapping[str, dict[str, Any]]) -> Figure:
    figure = new_figure(10.5, 4.8)
    for axes, over in zip(figure.subplots(1, 2, sharey=True), ("n", "m"), strict=True):
        for k, (key, method) in enumerate(METHODS.items()):
            points = _points(results, over, key)
            size, spread = [p[over] for p in points], [Spread.of(p["seconds"]) for p in points]
            fitted = fit(points, over)
            label = method.label + ("" if fitted is None else f"  {over}^{fitted[0]:.2f}")
            axes.loglog(size, [s.median for s in spread], "o-" if method.ours else "s--",
                        color=COLORS[k], markersize=4, linewidth=2 if method.ours else 1.2,
                        label=label)  # fmt: skip
            axes.fill_between(size, [s.low for s in spread], [s.high for s in spread],
                              color=COLORS[k], alpha=0.2, linewidth=0)  # fmt: skip
        tidy(axes).set_xlabel("contacts n" if over == "n" else "coordinates m")
        axes.set_title(f"m = {6 * BODIES}" if over == "n" else f"n = {CONTACTS}", fontsize=10)
        axes.legend(fontsize=7, frameon=False)
        if over == "m":
            ticks = [p[over] for p in _points(results, over, next(iter(METHODS)))]
            axes.set_xticks(ticks, [str(m) for m in ticks])
            axes.minorticks_off()
    figure.axes[0].set_ylabel("seconds per solve")
    figure.axes[0].set_ylim(top=200 * figure.axes[0].get_ylim()[1] ** 0.5)  # room for legends
    return Figure(
        "scaling", figure, "Time of a solve with fitted exponents. Solid: the paper's models as "
        "holdfast solves them. Dashed: methods that form a dense matrix."
    )  # fmt: skip
