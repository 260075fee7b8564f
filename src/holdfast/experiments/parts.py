"""What an experiment is made of: trials that are run, sections of the report made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from matplotlib.figure import Figure as Plot

Value = str | int | float | None
Report = Callable[[float], None]  # told the part of a trial that is done, 0 to 1


@dataclass(frozen=True)
class Trial:
    """One run whose result is kept on disk, so that an interrupted report can go on.

    Attributes:
        name: unique within the experiment; also the name of the file.
        run: returns what JSON can hold (numbers, strings, lists, dicts); called with a function
            that is told the part that is done.
    """

    name: str
    run: Callable[[Report], dict[str, Any]]


@dataclass(frozen=True)
class Table:
    """Rows under named columns; also written as CSV and JSON under its name."""

    name: str
    title: str
    rows: list[dict[str, Value]]
    note: str = ""

    def columns(self) -> list[str]:
        """All columns, in the order in which they first appear."""
        return list(dict.fromkeys(column for row in self.rows for column in row))


@dataclass(frozen=True)
class Figure:
    """A plot, or a rendered picture drawn into one, with its caption."""

    name: str
    plot: Plot
    caption: str


@dataclass(frozen=True)
class Section:
    """A part of the report: what was run, what came out, what differs from the paper."""

    title: str
    text: list[str]
    tables: list[Table]
    figures: list[Figure]


class Experiment(Protocol):
    """A name, the trials to run (fewer and shorter if `quick`), and the sections made of them.

    A class of `registry.EXPERIMENTS`. If it is a dataclass with a field ``seed``, it is given the
    seed of the command line.
    """

    name: str

    def trials(self, *, quick: bool) -> list[Trial]:
        """What to run."""
        ...

    def sections(self, results: Mapping[str, dict[str, Any]]) -> list[Section]:
        """What the report says, given the result of each trial by name."""
        ...
