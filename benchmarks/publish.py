"""Copy the tables of the last benchmark run into README.md and docs/: numbers are never typed.

    python benchmarks/publish.py [RESULTS]

RESULTS is the folder that the benchmarks wrote, benchmarks/results by default. In README.md the
text between ``<!-- generated: overview -->`` and ``<!-- end -->`` is replaced by the table of
`overview.py`, if that was run, and docs/_generated/episodes.txt and tasks.txt by those of
`episodes.py` and `tasks.py`. If `run.py` was run, docs/_generated/bench.txt (the summary for
docs/numbers.rst), docs/benchmarks.rst and the plots in docs/_generated are written anew.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEAD = """Benchmarks
==========

holdfast against other solvers, in one run on one machine: see ``benchmarks/README.md`` for what
is measured and how. This page is written by ``benchmarks/publish.py``."""
END = "<!-- end -->"
PAGES = ("episodes", "tasks")  # tables that pages include


def main() -> None:
    results = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "benchmarks" / "results"
    overview = table(results, "overview")
    if overview:
        replace_block(ROOT / "README.md", "overview", overview)
    for name in PAGES:
        text = table(results, name)
        if text:
            page = ROOT / "docs" / "_generated" / f"{name}.txt"
            page.write_text(to_rst(text) + "\n", encoding="utf-8")
    if (results / "results.json").exists():
        publish_pages(results, ROOT / "docs")


def publish_pages(results: Path, docs: Path) -> None:
    """Write the tables and plots of a run into the documentation."""
    source = origin(json.loads((results / "results.json").read_text()))
    generated = docs / "_generated"
    generated.mkdir(exist_ok=True)
    (generated / "bench.txt").write_text(summary(results, source) + "\n", encoding="utf-8")
    plots = sorted(results.glob("*.png"))
    for plot in plots:
        shutil.copy(plot, generated / plot.name)
    tables = [
        file for file in sorted(results.glob("*.md")) if file.stem not in ("overview", *PAGES)
    ]
    page = [HEAD, to_rst(source), *(to_rst(file.read_text()) for file in tables)]
    page += [f".. image:: _generated/{plot.name}" for plot in plots]
    (docs / "benchmarks.rst").write_text("\n\n".join(page) + "\n", encoding="utf-8")


def summary(results: Path, source: str) -> str:
    """The tables that say most, as reStructuredText."""
    tables = [table(results, name) for name in ("speed_families", "robustness", "grasp", "step")]
    tables += [words(results, name) for name in ("linearity", "warm")]
    return to_rst("\n\n".join([source, *(table for table in tables if table)]))


def replace_block(file: Path, name: str, text: str) -> None:
    """Write what is between ``<!-- generated: NAME -->`` and the next ``<!-- end -->``."""
    begin = f"<!-- generated: {name} -->"
    before, rest = file.read_text(encoding="utf-8").split(begin)
    after = rest.split(END, 1)[1]
    file.write_text(f"{before}{begin}\n\n{text}\n\n{END}{after}", encoding="utf-8")


def to_rst(markdown: str) -> str:
    """Markdown of the tables that benchmarks write, as reStructuredText."""
    lines: list[str] = []
    rows: list[list[str]] = []
    for line in [*markdown.splitlines(), ""]:
        if line.startswith("|"):
            cells = [cell.strip().replace("`", "``") for cell in line.strip("|").split("|")]
            if not all(cell and set(cell) <= set("-: ") and len(cell) > 2 for cell in cells):
                rows.append(cells)
            continue
        if rows:
            lines += ["", ".. list-table::", "   :header-rows: 1", "   :class: wide", ""]
            for row in rows:
                marks = ["*", *[" "] * (len(row) - 1)]
                both = zip(marks, row, strict=True)
                lines += [f"   {mark} - {in_cell(cell)}" for mark, cell in both]
            lines.append("")
            rows = []
        lines.append(line.replace("`", "``"))
    return "\n".join(lines).strip()


def in_cell(text: str) -> str:
    """Text of a cell: a lone dash is no bullet."""
    return "\\" + text if text in ("-", "+", "*") else text


def table(results: Path, name: str) -> str:
    """One Markdown table, empty if that section was not run."""
    file = results / f"{name}.md"
    return file.read_text().strip() if file.exists() else ""


def words(results: Path, name: str) -> str:
    """What stands around a table: its title and conclusions. The table itself is in the docs."""
    lines = table(results, name).splitlines()
    return "\n".join(line for line in lines if line and not line.startswith("|"))


def origin(data: dict) -> str:
    """Where the numbers come from, in a line."""
    machine = data.get("machine", {})
    versions = data.get("versions", {})
    what = ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))
    return f"Measured with `make bench` on {machine.get('processor', 'this machine')} ({what})."


if __name__ == "__main__":
    main()
