"""Copy tables and pictures of a report into docs/: numbers are never typed.

    python benchmarks/publish_report.py [REPORT]

REPORT is the folder that `holdfast reproduce` wrote, report by default. docs/_generated gets the
tables and the pictures for docs/reproduce.rst.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from holdfast.experiments.report.page import shown
from publish import ROOT, to_rst

CHOSEN = ("_targets", "_paper", "scaling_exponents", "robustness_solvers")
LEFT_OUT = ("source", "stopped")  # columns that are too long for here
PICTURES = ("grasp_after", "grasp_drift", "scaling")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "report"
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    tables = [
        (section["title"], table)
        for section in report["sections"]
        for table in section["tables"]
        if table["name"].endswith(CHOSEN)
    ]
    text = "\n\n".join([origin(report["origin"]), *(markdown(*each) for each in tables)])
    generated = ROOT / "docs" / "_generated"
    generated.mkdir(exist_ok=True)
    # not named .rst: it is a part of a page, not a page
    (generated / "reproduce.txt").write_text(to_rst(text) + "\n", encoding="utf-8")
    for picture in sorted((folder / "figures").glob("*.png")):
        if picture.stem in PICTURES or picture.stem.startswith("locomotion"):
            shutil.copy(picture, generated / picture.name)


def origin(made: dict[str, Any]) -> str:
    """Where the numbers come from, in a line."""
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    processor, spent = made["machine"]["processor"], made["seconds"] / 60
    return (
        f"Measured by `{made['command']}` on {processor} ({versions}); "
        f"{spent:.0f} minutes of trials."
    )


def markdown(title: str, table: dict[str, Any]) -> str:
    """A table as Markdown."""
    rows = table["rows"]
    columns = [c for c in dict.fromkeys(c for row in rows for c in row) if c not in LEFT_OUT]
    numeric = [all(not isinstance(row.get(c), str) for row in rows) for c in columns]
    lines = [
        columns,
        ["---:" if each else "---" for each in numeric],
        *([shown(row.get(c)) for c in columns] for row in rows),
    ]
    body = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    what = table["title"]
    return f"**{title}: {what[0].lower()}{what[1:]}**\n\n{body}"


if __name__ == "__main__":
    main()
