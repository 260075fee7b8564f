"""A report: sections with their origin, written as one page, as JSON, and as CSV per table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.experiments.parts import Section, Table
from holdfast.experiments.report.page import html_page
from holdfast.experiments.runner import write_whole

PAGE = "index.html"


@dataclass(frozen=True)
class Origin:
    """What made a report."""

    command: str
    machine: dict[str, Any]
    versions: dict[str, str]
    settings: dict[str, Any]
    seconds: float  # spent on the trials of this report

    def facts(self) -> dict[str, str]:
        """Names and values to show."""
        each = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return {
            "Command": self.command,
            "Machine": f"{self.machine['processor']}, {self.machine['cores']} cores, "
                       f"{self.machine['system']}",
            "Python": self.machine["python"],
            "Versions": each,
            "Settings": settings,
            "Date": self.machine["date"],
            "Time of the trials": f"{self.seconds:.0f} s",
        }  # fmt: skip


def write(folder: Path, sections: Sequence[Section], origin: Origin) -> Path:
    """Write all files of a report; return the page.

    ``index.html`` needs no other file. ``report.json`` holds origin, texts and tables;
    ``tables/NAME.csv`` and ``.json`` one table each, ``figures/NAME.png`` the pictures.
    """
    tables, figures = folder / "tables", folder / "figures"
    for each in (tables, figures):
        each.mkdir(exist_ok=True)
    for section in sections:
        for table in section.tables:
            write_whole(tables / f"{table.name}.csv", as_csv(table))
            write_whole(tables / f"{table.name}.json", _json(as_data(table)))
        for figure in section.figures:
            figure.plot.savefig(figures / f"{figure.name}.png", dpi=150)
    write_whole(folder / "report.json", _json(everything(sections, origin)))
    write_whole(folder / PAGE, html_page("The paper's experiments", sections, origin.facts()))
    return folder / PAGE


def everything(sections: Sequence[Section], origin: Origin) -> dict[str, Any]:
    """The report as data."""
    return {
        "origin": {
            "command": origin.command, "machine": origin.machine, "versions": origin.versions,
            "settings": origin.settings, "seconds": origin.seconds,
        },
        "sections": [
            {
                "title": section.title,
                "text": section.text,
                "tables": [as_data(table) for table in section.tables],
                "figures": [
                    {"name": figure.name, "caption": figure.caption} for figure in section.figures
                ],
            }
            for section in sections
        ],
    }  # fmt: skip


def targets(sections: Sequence[Section]) -> list[dict[str, Any]]:
    """Rows of all tables of targets: those with the columns target, asked, measured and met."""
    named = {"target", "asked", "measured", "met"}
    every = [row for section in sections for table in section.tables for row in table.rows]
    return [dict(row) for row in every if named <= set(row)]


def as_data(table: Table) -> dict[str, Any]:
    """A table as data."""
    return {"name": table.name, "title": table.title, "note": table.note, "rows": table.rows}


def as_csv(table: Table) -> str:
    """A table as CSV, all digits kept."""
    columns = table.columns()
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator="\n", restval="")
    writer.writeheader()
    writer.writerows(table.rows)
    return text.getvalue()


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, allow_nan=False, ensure_ascii=False)
