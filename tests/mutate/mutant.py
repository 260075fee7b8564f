"""One mutant: its name, its text, and whether kernels are changed by it."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "holdfast"
LIST = Path(__file__).with_name("mutants.json")
DECORATORS = {"entry", "kernel", "fast_kernel", "inlined", "fast_inlined"}  # of holdfast._jit

Mutant = dict[str, Any]  # file, line, which, begin, end, new: see mutate.make


def key(mutant: Mutant) -> str:
    """The mutant as text: its file, its line with the change, and which of equal lines it is."""
    line, which = mutant["line"], mutant["which"]
    changed = line[: mutant["begin"]] + "{" + line[mutant["begin"] : mutant["end"]] + " -> "
    text = (changed + mutant["new"] + "}" + line[mutant["end"] :]).strip()
    return f"{mutant['file']}: {text}" + (f" (#{which + 1})" if which else "")


def line_of(mutant: Mutant) -> int | None:
    """Number of the mutant's line, from 1; None if it is gone."""
    file = PACKAGE / mutant["file"]
    lines = file.read_text().split("\n") if file.exists() else []
    same = [k for k, line in enumerate(lines, 1) if line == mutant["line"]]
    return same[mutant["which"]] if len(same) > mutant["which"] else None


def mutated(mutant: Mutant) -> str:
    """The text of the file with the change."""
    lines, at, line = (PACKAGE / mutant["file"]).read_text().split("\n"), line_of(mutant), ""
    if at is None:
        raise ValueError(f"its line is gone: {key(mutant)}")
    line = lines[at - 1]
    lines[at - 1] = line[: mutant["begin"]] + mutant["new"] + line[mutant["end"] :]
    return "\n".join(lines)


def is_kernel(node: ast.FunctionDef, text: str) -> bool:
    """Whether a function is compiled."""
    names = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
    return bool(names & DECORATORS) or f"CEntry({node.name}" in text


@cache
def kernel_lines(file: str) -> frozenset[int]:
    """Lines of a file that are compiled."""
    text = (PACKAGE / file).read_text()
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and is_kernel(node, text):
            found.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return frozenset(found)


def changes_kernel(mutant: Mutant) -> bool:
    """Whether the mutant is in a kernel."""
    return line_of(mutant) in kernel_lines(mutant["file"])
