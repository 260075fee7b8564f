"""Tables of the grasp, from the results of its trials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from holdfast.experiments.grasp.experiment import Method, methods, timings
from holdfast.experiments.grasp.runs import CONTROL
from holdfast.experiments.parts import Table, Value
from holdfast.experiments.report import paper
from holdfast.experiments.report.spread import Spread

Results = Mapping[str, dict[str, Any]]
MICRO = 1e-6
REFERENCE = "ppm"  # ratios are to this method, in maximal coordinates


def spread(results: Results, boxes: int, key: str, what: str) -> Spread:
    """Median seconds of a step in each timing trial; `what` is "solve" or "step"."""
    return Spread.of(float(np.median(each[key][what])) for each in timings(results, boxes, key))


def ratio(results: Results, boxes: int, key: str, what: str, to: str) -> Spread:
    """How many times as long as another method, trial by trial."""
    return Spread.of(
        float(np.median(each[key][what]) / np.median(each[to][what]))
        for each in timings(results, boxes, key, to)
    )


def whole_run(results: Results, key: str) -> Spread:
    """Seconds of the paper's ten steps, all of them."""
    return Spread.of(float(np.sum(each[key]["step"])) for each in timings(results, 2))


def pivots(result: Mapping[str, Any]) -> tuple[float, int] | None:
    """Mean and largest number of pivots of a run."""
    counts = {int(count): times for count, times in result["pivots"].items()}
    if not counts:
        return None
    return sum(c * t for c, t in counts.items()) / sum(counts.values()), max(counts)


def rows_of(results: Results) -> list[int]:
    """Numbers of boxes that were run."""
    return sorted({int(name.split("-")[1]) for name in results if name.startswith("hold-")})


def marks_of(results: Results) -> list[int]:
    """Steps to show: 10, 100 and the last."""
    every = sorted(int(mark) for result in results.values() for mark in result.get("held", {}))
    return sorted({10, 100, every[-1]}.intersection(every))


def measured(results: Results, name: str, boxes: int, marks: list[int]) -> dict[str, Value]:
    """Columns on how a run went."""
    result = results[name]
    count = pivots(result)
    row: dict[str, Value] = {
        "pivots, mean": None if count is None else round(count[0], 2),
        "pivots, most": None if count is None else count[1],
    }
    for mark in marks:
        held = result["held"].get(str(mark))
        row[f"held after {mark}"] = "?" if held is None else f"{held} of {boxes}"
    return row | {
        "largest drift [m]": result["farthest"],
        "penetration [m]": result["penetration"],
        "complementarity": result["complementarity"],
        "ended early": result["ended"] or None,
    }


def timed(results: Results, boxes: int, method: Method) -> dict[str, Value]:
    """Columns on time. The ratio is of contact solves, to the modified PPM of the same kind."""
    key, to = method.key, f"reduced-{REFERENCE}-pressed" if method.reduced else REFERENCE
    if not any(timings(results, boxes, key, to)):
        return {}
    solve, step = (spread(results, boxes, key, what) for what in ("solve", "step"))
    return {
        "contact solve [µs]": solve.median / MICRO,
        "spread [µs]": solve.range(MICRO),
        "ratio": ratio(results, boxes, key, "solve", to).median,
        "whole step [µs]": step.median / MICRO,
        "ratio of steps": ratio(results, boxes, key, "step", to).median,
    }


def held_table(results: Results, *, reduced: bool, boxes: list[int], name: str) -> Table:
    """All methods of one kind of coordinates on rows of boxes."""
    marks = marks_of(results)
    rows = []
    for count in boxes:
        for method in methods():
            if method.reduced == reduced:
                trial = f"hold-{count}-{method.key}"
                head: dict[str, Value] = {"method": method.label}
                if len(boxes) > 1:
                    head["boxes"] = count
                size = "rows" if reduced else "LCP variables"
                rows.append(
                    head
                    | timed(results, count, method)
                    | {size: results[trial]["variables"]}
                    | measured(results, trial, count, marks)
                )
    where = "through MuJoCo, reduced coordinates" if reduced else "maximal coordinates"
    many = f"{boxes[0]} boxes" if len(boxes) == 1 else "longer rows"
    return Table(name, f"The grasp, {many}, {where}", rows, _NOTES[reduced])


_COLUMNS = (
    "Times are medians over the trials of the median step, in one process, all methods taking "
    "turns in each trial, as many steps in a row as the paper timed; the spread is the smallest "
    "and largest trial. Held: moved by less than 1 % of its size. A `?` marks a run that did not "
    "get that far. Complementarity: the largest value over the run of min(impulse, separation "
    "speed), both relative."
)
_NOTES = {
    False: _COLUMNS + " Contact solve: from `ContactProblem` to forces, public API. Pivots of the "
    "modified PPM do not count the loading of the equality rows; the last row uses the contact "
    "solve and counts factorisations.",
    True: _COLUMNS + " Contact solve: `mj_fwdConstraint` for MuJoCo; from rows to certified "
    "forces for ours. MuJoCo's friction coefficient is its default of 1, which is enough to hold, "
    "except in the row with the paper's 100. Ratios are to the last row.",
}


def control_table(results: Results) -> Table:
    """The row that must open."""
    rows = []
    for method in methods():
        result = results[f"control-{method.key}"]
        rows.append({
            "coordinates": "reduced" if method.reduced else "maximal",
            "method": method.label,
            "opens": "yes" if result["farthest"] > CONTROL.size else "no",
            "largest drift [m]": result["farthest"],
            "how it ended": result["ended"] or f"ran {result['steps']} steps",
        })  # fmt: skip
    note = "Normals cannot pull, so the row must open. Opens: a box moved by more than its size."
    return Table("grasp_control", "Negative control: a row that must open", rows, note)


def paper_table(results: Results) -> Table:
    """The paper's figures beside ours."""
    return Table("grasp_paper", "The paper's figures beside ours", list(_beside(results)), _BESIDE)


_BESIDE = (
    "Whole simulation: ten steps with everything included, as in the paper, one row per method. "
    "Seconds cannot be compared between machines; ratios within a run can. Ours over the paper's: "
    "below 1 is less than the paper's figure."
)


def _beside(results: Results) -> Iterator[dict[str, Value]]:
    def row(what: str, published: float, ours: float, spread: str = "", source: str = "") -> Any:
        return {
            "quantity": what, "paper": published, "ours": ours, "spread of ours": spread or None,
            "ours / paper": ours / published, "source": source,
        }  # fmt: skip

    p = paper
    for what, key, published in (
        ("Stewart-Trinkle, Lemke [s]", "lemke-loose", p.GRASP_STEWART_TRINKLE),
        ("no-slip, active-set QP [s]", "qp", p.GRASP_QP),
        ("no-slip, modified PPM [s]", "ppm", p.GRASP_PPM),
    ):
        ours = whole_run(results, key)
        yield row(f"whole simulation, {what}", published.value, ours.median, ours.range(),
                  published.source)  # fmt: skip
    for what, key, published in (
        ("Stewart-Trinkle over modified PPM", "ppm", p.GRASP_PPM),
        ("Stewart-Trinkle over QP", "qp", p.GRASP_QP),
    ):
        ours = ratio(results, 2, "lemke-loose", "step", key)
        of_paper = p.GRASP_STEWART_TRINKLE.value / published.value
        yield row(f"ratio of whole simulations, {what}", of_paper, ours.median, ours.range(),
                  published.source)  # fmt: skip
    ours = ratio(results, 2, "lemke-loose", "solve", "ppm")
    for which, published in (
        ("least", p.RERUN_STEWART_TRINKLE_LEAST), ("most", p.RERUN_STEWART_TRINKLE_MOST),
    ):  # fmt: skip
        yield row(f"ratio of contact solves, Stewart-Trinkle over modified PPM ({which})",
                  published.value / p.RERUN_PPM.value, ours.median, ours.range(),
                  published.source)  # fmt: skip
    mean, most = pivots(results["hold-2-ppm"]) or (0.0, 0)
    yield row("pivots of the modified PPM, mean", p.GRASP_PIVOTS_MEAN.value, mean,
              source=f"{p.GRASP_PIVOTS_MEAN.source}; the re-run: "
                     f"{p.RERUN_PIVOTS_MEAN.value}")  # fmt: skip
    yield row("pivots of the modified PPM, most", p.GRASP_PIVOTS_MOST.value, most,
              source=p.GRASP_PIVOTS_MOST.source)  # fmt: skip
    for what, key, variables, steps in (
        ("Stewart-Trinkle", "lemke-loose", p.GRASP_VARIABLES_STEWART_TRINKLE,
         p.GRASP_STEPS_STEWART_TRINKLE),
        ("no-slip", "ppm", p.GRASP_VARIABLES_NO_SLIP, p.GRASP_STEPS_NO_SLIP),
    ):  # fmt: skip
        result = results[f"hold-2-{key}"]
        yield row(f"LCP variables, {what}", variables.value, result["variables"],
                  source=variables.source)  # fmt: skip
        yield row(f"steps with both boxes held, {what}", steps.value, steps_held(result),
                  source=steps.source)  # fmt: skip


def steps_held(result: Mapping[str, Any]) -> int:
    """The last mark at which all boxes were held; at most what was run."""
    full = max(result["held"].values(), default=0)
    kept = [int(mark) for mark, held in result["held"].items() if held == full and full > 0]
    return max(kept, default=0)
