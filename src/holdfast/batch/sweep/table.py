"""The table of a sweep: one row per case, as Parquet or CSV."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.batch.sweep.cases import Scalar
from holdfast.errors import InputError, SweepError

FORMATS = (".parquet", ".csv")
INT64 = 2**63


@dataclass(frozen=True)
class SweepTable:
    """Results of a sweep, one row per case, in the order of the cases.

    Columns are the parameters, `seed`, what the task returned, and `error`: None, or the exception
    of a failed case, whose results are None.

    Attributes:
        names: names of the columns.
        rows: one dictionary per case.
        path: file of the table, or None.
    """

    names: list[str]
    rows: list[dict[str, Scalar]]
    path: Path | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Scalar]]:
        return iter(self.rows)

    def __getitem__(self, name: str) -> np.ndarray:
        """Return a column as an array; missing numbers are NaN."""
        if name not in self.names:
            raise KeyError(f"{name!r}; the columns are {', '.join(self.names)}")
        values = [row[name] for row in self.rows]
        known = [value for value in values if value is not None]
        if 0 < len(known) < len(values) and all(_is_number(value) for value in known):
            return np.array([np.nan if value is None else value for value in values], dtype=float)
        return np.array(values)

    @property
    def failed(self) -> list[dict[str, Scalar]]:
        """Rows of failed cases."""
        return [row for row in self.rows if row["error"] is not None]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def make_table(rows: Sequence[Mapping[str, Any]], path: Path | None) -> SweepTable:
    """The table of journal rows, given in the order of the cases."""
    parameters = dict.fromkeys(name for row in rows for name in row["case"] if name != "seed")
    results = dict.fromkeys(name for row in rows for name in row["result"] or ())
    names = [*parameters, "seed", *results, "error"]
    table = [
        {name: None for name in names} | row["case"] | (row["result"] or {})
        | {"error": row["error"]}
        for row in rows
    ]  # fmt: skip
    return SweepTable(names, table, path)


def place_of(out: str | Path) -> Path:
    """Where a table is written: links are followed."""
    path = Path(out)
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def check_place(path: Path, journal: Path, *, fresh: bool) -> None:
    """Refuse to overwrite what no sweep has written: beside its tables there are journals."""
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise InputError("out", f"{path} is a folder, a device or a pipe; expected a file")
    if path.is_symlink():
        raise InputError("out", f"{path} is a link that leads nowhere")
    if path.exists() and not journal.exists() and not fresh:
        raise InputError("out", f"{path} exists, and no sweep has written it; name another file, "
                         "or overwrite it with fresh=True (--fresh)")  # fmt: skip


def check_format(path: Path) -> None:
    """Refuse names of files that no table can have, and formats that nothing here can write."""
    if path.suffix not in FORMATS:
        raise InputError("out", f"is {path}; expected a name ending in .parquet or .csv")
    if path.suffix == ".parquet":
        _pyarrow()


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet

        return pyarrow
    except ImportError as error:
        raise InputError("out", "Parquet needs pyarrow: pip install 'holdfast[parquet]', or choose "
                         "a .csv file") from error  # fmt: skip


def write(table: SweepTable) -> None:
    """Write the file of a table, whole or not at all; the same rows make the same bytes.

    Raises:
        SweepError: the file could not be written.
    """
    path = table.path
    assert path is not None
    beside = path.with_name(path.name + ".part")
    try:
        (_write_parquet if path.suffix == ".parquet" else _write_csv)(table, beside)
        with open(beside, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise SweepError(f"{path} cannot be written: {error.strerror or error}") from error


def _write_csv(table: SweepTable, path: Path) -> None:
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.names)
        writer.writerows([_cell(row[name]) for name in table.names] for row in table.rows)


def _cell(value: Scalar) -> Any:
    """Numbers with all their digits; true and false in small letters, as `from_csv` reads them."""
    return str(value).lower() if isinstance(value, bool) else value


def _write_parquet(table: SweepTable, path: Path) -> None:
    pa = _pyarrow()
    columns = {name: _arrow(pa, [row[name] for row in table.rows]) for name in table.names}
    pa.parquet.write_table(pa.table(columns), path)


def _arrow(pa: Any, values: list[Scalar]) -> Any:
    """A column of the one type that holds all values; text if they have nothing in common."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return pa.array(values, pa.bool_() if kinds else pa.string())
    if kinds == {int} and all(-INT64 <= v < INT64 for v in values if isinstance(v, int)):
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array([None if v is None else float(v) for v in values], pa.float64())
    return pa.array([None if v is None else str(v) for v in values], pa.string())
