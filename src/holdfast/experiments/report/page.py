"""One HTML page that needs no other file: sections, tables, pictures, and their origin."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping, Sequence
from html import escape

from holdfast.experiments.parts import Figure, Section, Table, Value
from holdfast.experiments.report.plots import in_dark

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --soft: #5d6878; --paper: #ffffff;
  --raised: #f5f7fa; --line: #dce1e8; --accent: #1f6feb; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e7ee; --soft: #97a3b4; --paper: #12161d;
  --raised: #1a2029; --line: #2e3743; --accent: #6ea8fe; } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; scroll-padding-top: 1rem; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.6 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
.frame { display: grid; grid-template-columns: 15rem minmax(0, 1fr); max-width: 84rem;
  margin: 0 auto; }
nav { position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto;
  padding: 2rem 1rem 2rem 1.5rem; font-size: .875rem; line-height: 1.4; }
nav b { display: block; margin-bottom: .75rem; }
nav a { display: block; padding: .25rem 0; color: var(--soft); text-decoration: none; }
nav a.sub { padding-left: .9rem; font-size: .8rem; }
nav a:hover { color: var(--accent); }
main { padding: 2rem 2rem 5rem; min-width: 0; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.4rem; margin: 3.5rem 0 .75rem; padding-top: 1.25rem;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.02rem; margin: 2.2rem 0 .5rem; }
p { max-width: 46rem; margin: .6rem 0; }
code { font: .88em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  background: var(--raised); padding: .1em .3em; border-radius: 4px; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 8px; }
.hint { color: var(--soft); font-size: .8rem; text-align: right; max-width: none; margin: .2rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .85rem; line-height: 1.4;
  font-variant-numeric: tabular-nums; }
th, td { padding: .5rem .7rem; text-align: right; border-bottom: 1px solid var(--line);
  vertical-align: top; }
tr:last-child td { border-bottom: 0; }
th { background: var(--raised); font-weight: 600; vertical-align: bottom; }
th:first-child, td:first-child, .words { text-align: left; }
td:first-child { min-width: 9rem; background: var(--paper); }
th:first-child, td:first-child { position: sticky; left: 0; }
.words { min-width: 8rem; }
.wide .words:last-child { min-width: 20rem; }
tbody tr:hover, tbody tr:hover td { background: var(--raised); }
.note { color: var(--soft); font-size: .85rem; }
figure { margin: 1.5rem 0; }
figure img { display: block; max-width: 100%; height: auto; border: 1px solid var(--line);
  border-radius: 8px; }
figcaption { color: var(--soft); font-size: .88rem; margin-top: .5rem; max-width: 46rem; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .3rem 1.2rem;
  font-size: .88rem; margin: 1.5rem 0 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; }
@media (max-width: 56rem) {
  .frame { display: block; }
  nav { position: static; max-height: none; padding: 1.25rem 1.25rem 0; }
  nav div { columns: 2; } nav a.sub { display: none; }
  main { padding: 1rem 1.25rem 3rem; }
  h1 { font-size: 1.6rem; }
  td:first-child { min-width: 7rem; max-width: 10rem; }
  dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .6rem; }
}
@media print { nav { display: none; } .frame { display: block; } }
"""

_FITTING = 10  # columns that fit beside the list of contents


def html_page(title: str, sections: Sequence[Section], origin: Mapping[str, str]) -> str:
    """The page as text."""
    body = "\n".join(_section(number, each) for number, each in enumerate(sections, start=1))
    facts = "".join(
        f"<dt>{escape(name)}</dt><dd>{_value(name, value)}</dd>" for name, value in origin.items()
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<div class="frame">
<nav><b>{escape(title)}</b><div>{_contents(sections)}</div></nav>
<main>
<h1>{escape(title)}</h1>
<p>Evan Drumwright, <i>Rapidly computable viscous friction and no-slip rigid contact models</i>,
reproduced by one command. Every number of ours on this page was measured by it.</p>
<dl>{facts}</dl>
{body}
</main>
</div>
</body>
</html>
"""


def _value(name: str, value: str) -> str:
    return f"<code>{escape(value)}</code>" if name == "Command" else escape(value)


def _contents(sections: Sequence[Section]) -> str:
    links = []
    for number, section in enumerate(sections, start=1):
        links.append(f'<a href="#s{number}">{escape(section.title)}</a>')
        links += [
            f'<a class="sub" href="#{escape(table.name)}">{escape(table.title)}</a>'
            for table in section.tables
        ]
    return "".join(links)


def _section(number: int, section: Section) -> str:
    parts = [f'<section id="s{number}"><h2>{escape(section.title)}</h2>']
    parts += [f"<p>{inline(text)}</p>" for text in section.text]
    parts += [_table(table) for table in section.tables]
    parts += [_figure(figure) for figure in section.figures]
    return "\n".join([*parts, "</section>"])


def inline(text: str) -> str:
    """Text with `code` and **strong words** as HTML."""
    text = escape(text, quote=False)
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    return re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", text)


def _table(table: Table) -> str:
    columns = table.columns()
    wordy = {
        column for column in columns if any(isinstance(row.get(column), str) for row in table.rows)
    }
    head = "".join(f"<th{_class(c in wordy)}>{escape(c)}</th>" for c in columns)
    rows = "\n".join(
        "<tr>" + "".join(
            f"<td{_class(c in wordy)}>{inline(shown(row.get(c)))}</td>" for c in columns
        ) + "</tr>"
        for row in table.rows
    )  # fmt: skip
    wide = len(columns) > _FITTING
    hint = f'<p class="hint">{len(columns)} columns: scroll to the right →</p>' if wide else ""
    note = f'<p class="note">{inline(table.note)}</p>' if table.note else ""
    return f"""<h3 id="{escape(table.name)}">{escape(table.title)}</h3>
{hint}<div class="scroll{" wide" if wide else ""}"><table><thead><tr>{head}</tr></thead><tbody>
{rows}
</tbody></table></div>{note}"""


def _class(wordy: bool) -> str:
    return ' class="words"' if wordy else ""


def shown(value: Value) -> str:
    """A cell for people: three digits, powers of ten where they are needed."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace(",", "\u2009") if abs(value) >= 10_000 else str(value)
    if isinstance(value, float):
        return _number(value)
    return value


def _number(value: float) -> str:
    if value == 0:
        return "0"
    if 1e-3 <= abs(value) < 1e5:
        three = f"{value:.3g}"
        if abs(value) >= 1000:
            three = f"{value:.0f}"
        elif abs(value) >= 10 and "." not in three and value != int(value):
            three = f"{value:.1f}" if abs(value) < 100 else three
        return three.replace("-", "−")
    mantissa, power = f"{value:.1e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{mantissa}·10{raised}".replace("-", "−")


def _figure(figure: Figure) -> str:
    light = _png(figure)
    with in_dark(figure.plot):
        dark = _png(figure)
    return (
        f'<figure id="{escape(figure.name)}"><picture>'
        f'<source media="(prefers-color-scheme: dark)" srcset="{dark}">'
        f'<img src="{light}" alt="{escape(figure.caption)}"></picture>'
        f"<figcaption>{inline(figure.caption)}</figcaption></figure>"
    )


def _png(figure: Figure) -> str:
    file = io.BytesIO()
    figure.plot.savefig(file, format="png", dpi=150)
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
