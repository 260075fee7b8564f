"""Films of single cases of a sweep, which are run once more to be watched.

A task that can be watched has an argument `watch`, None by default, and calls
``watch(model, data)`` after every step of the run that is worth seeing.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from holdfast.batch.sweep.backends import run_case
from holdfast.batch.sweep.cases import Case, Scalar
from holdfast.batch.sweep.run import Task, arguments_of
from holdfast.batch.sweep.table import SweepTable
from holdfast.errors import InputError
from holdfast.tools.video import Film

DEFAULT = "required_friction"  # the column that chooses cases; scenes always have it
LINE, LINES = 56, 3  # characters and lines of a caption
CLOSE = 1e-6  # relative difference between two runs of a case, on different machines at most


@dataclass(frozen=True)
class Chosen:
    """A case to draw: its number in the table, counted from 0, and why it was chosen."""

    number: int
    reason: str = ""


def check_watchable(task: Task) -> None:
    """Refuse a task that cannot be watched."""
    if "watch" not in inspect.signature(task).parameters:
        raise InputError("task", "cannot be drawn: it has no argument `watch`; give it one, None "
                         "by default, and call watch(model, data) after every step")  # fmt: skip


def check_numbers(numbers: Sequence[int], count: int) -> None:
    """Refuse numbers of cases that do not exist."""
    for number in numbers:
        if not 0 <= number < count:
            raise InputError("case", f"is {number}; expected 0 to {count - 1}")


def lowest_and_highest(table: SweepTable, column: str | None = None) -> list[Chosen]:
    """The cases with the lowest and the highest value of a column; the first ones of several.

    Cases that failed are left out. If all values are the same there is one case.

    Args:
        table: of a finished sweep.
        column: by name; `required_friction` by default.
    """
    name = column or DEFAULT
    if name not in table.names:
        raise InputError("by", f"is {name!r}; the columns are {', '.join(table.names)}")
    values = {
        number: float(value)
        for number, row in enumerate(table)
        if isinstance(value := row[name], int | float) and not np.isnan(value)
    }
    if not values:
        raise InputError("by", f"is {name!r}, a column without numbers")
    low, high = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    if values[low] == values[high]:
        return [Chosen(low, f"{name}: {values[low]:.3g}")]
    return [
        Chosen(number, f"{which} {name}: {values[number]:.3g}")
        for which, number in (("lowest", low), ("highest", high))
    ]


def film_case(task: Task, case: Case, row: Mapping[str, Scalar], chosen: Chosen) -> Film:
    """Run a case once more and film it; a case that fails is filmed until it does.

    Args:
        task: the task of the sweep.
        case: with its seed.
        row: of the case in the table.
        chosen: its number, and the title of the film.

    Raises:
        InputError: the task shows nothing, or its results are not those of the table.
    """
    films: list[Film] = []
    number, text = f"case {chosen.number}", _as_text(case)
    title, text = (chosen.reason, f"{number}: {text}") if chosen.reason else (number, text)
    caption = "\n".join(textwrap.wrap(text, LINE, max_lines=LINES, placeholder=" …"))

    def watch(model: Any, data: Any) -> None:
        if not films:
            films.append(Film(model, title, caption=lambda _: caption))
        films[0].watch(data)

    (arguments,) = arguments_of(task, [case])
    again = run_case(partial(task, watch=watch), "", case, arguments, 0)
    if not films or not films[0].moments:
        reason = again["error"] or "the task did not call `watch`"
        raise InputError("case", f"{chosen.number} has nothing to draw: {reason}")
    for name, value in (again["result"] or {}).items():
        if not _same(value, row.get(name)):
            raise InputError(
                "case",
                f"{chosen.number} gave {name} = {row.get(name)} in the sweep and {value} when it "
                "was run again to be drawn; make its randomness depend on the argument `seed`",
            )
    return films[0]


def _as_text(case: Case) -> str:
    """The parameters of a case in one line."""
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in case.items() if name != "seed"
    )  # fmt: skip


def _same(value: Scalar, before: Scalar) -> bool:
    if isinstance(value, int | float) and isinstance(before, int | float):
        return bool(np.isclose(value, before, rtol=CLOSE, atol=CLOSE, equal_nan=True))
    return value == before
