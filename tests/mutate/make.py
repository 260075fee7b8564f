"""Choose the mutants: a fixed list, drawn once from the sources and kept in mutants.json.

    python -m mutate.make [--renew] [--seed TEXT]

A mutant is one change of one line: a comparison, an operator, a constant, a branch, or a statement
that is left out. It is known by the text of its line, so that the list stays valid while code
around it moves; what no longer exists is reported as stale by `mutate.score`, and replaced by
`--renew`. Each file has a share of its folder's mutants, by the number of changes that are possible
in it; those that are drawn go to the file that lacks most, so that new files are not left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mutate.mutant import LIST, PACKAGE

AREAS = {"contact": 75, "lcp": 60, "mujoco": 80, "events": 60}  # folders, and how many mutants

COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
}  # fmt: skip
OPERATORS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")}


class Finder(ast.NodeVisitor):
    """Collects (line, begin, end, replacement) of possible changes."""

    def __init__(self, lines: list[str]) -> None:
        self.lines, self.found = lines, []

    def between(self, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        """Replace an operator that stands between two operands of one line."""
        if left.end_lineno != right.lineno:
            return
        line = self.lines[right.lineno - 1]
        at = line.find(old, left.end_col_offset, right.col_offset)
        if at >= 0:
            self.found.append((right.lineno, at, at + len(old), new))

    def visit_Compare(self, node: ast.Compare) -> None:
        if type(node.ops[0]) in COMPARISONS and len(node.ops) == 1:
            self.between(node.left, node.comparators[0], *COMPARISONS[type(node.ops[0])])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if type(node.op) in OPERATORS:
            self.between(node.left, node.right, *OPERATORS[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        pair = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self.between(node.values[0], node.values[1], *pair)
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            at = node.col_offset
            self.found.append((node.lineno, at, at + 4, ""))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, bool):
            new = str(not value)
        elif isinstance(value, int | float) and node.lineno == node.end_lineno:
            new = repr(value + 1 if isinstance(value, int) else 10.0 * value or 1.0)
        else:
            return
        self.found.append((node.lineno, node.col_offset, node.end_col_offset, new))

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Name) and node.func.id in ("min", "max"):
            new = "max" if node.func.id == "min" else "min"
            at = node.func.col_offset
            self.found.append((node.lineno, at, at + 3, new))
        self.generic_visit(node)

    def leave_out(self, node: ast.stmt) -> None:
        if node.lineno == node.end_lineno:
            self.found.append((node.lineno, node.col_offset, node.end_col_offset, "pass"))

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.leave_out(node)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self.leave_out(node)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        test = node.test
        if test.lineno == test.end_lineno:
            self.found.append((test.lineno, test.col_offset, test.end_col_offset, "False"))
        self.generic_visit(node)


def changes(file: Path) -> Iterator[dict[str, object]]:
    """Every change of a file."""
    text = file.read_text()
    lines = text.splitlines()
    finder = Finder(lines)
    tree = ast.parse(text)
    for node in ast.walk(tree):  # inside functions: tables and types are no behaviour
        if isinstance(node, ast.FunctionDef):
            for statement in node.body:
                finder.visit(statement)
    for number, begin, end, new in sorted(set(finder.found)):
        line = lines[number - 1]
        if not line.isascii():
            continue  # offsets are in bytes
        same = [k for k, other in enumerate(lines) if other == line]
        yield {
            "file": str(file.relative_to(PACKAGE)), "line": line, "which": same.index(number - 1),
            "begin": begin, "end": end, "new": new,
        }  # fmt: skip


def filled(
    kept: list[dict[str, object]], every: list[dict[str, object]], count: int, draw: random.Random
) -> list[dict[str, object]]:
    """Mutants of a folder: what is kept, and changes of files that have less than their share."""
    possible, chosen = Counter(each["file"] for each in every), list(kept)
    while len(chosen) < count:
        have = Counter(each["file"] for each in chosen)
        file = max(possible, key=lambda f: count * possible[f] / len(every) - have[f])
        chosen.append(draw.choice([c for c in every if c["file"] == file and c not in chosen]))
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--renew", action="store_true", help="replace only mutants that are stale")
    parser.add_argument("--seed", default="", help="another one draws other mutants")
    choices = parser.parse_args()
    chosen = []
    for area, count in AREAS.items():
        every = [
            change for file in sorted((PACKAGE / area).glob("*.py")) for change in changes(file)
        ]
        old = json.loads(LIST.read_text()) if choices.renew else []
        kept = [mutant for mutant in old if mutant in every]
        chosen += filled(kept, every, count, random.Random(area + choices.seed))
    LIST.write_text(json.dumps(chosen, indent=1) + "\n")
    print(f"{len(chosen)} mutants in {LIST}")


if __name__ == "__main__":
    main()
