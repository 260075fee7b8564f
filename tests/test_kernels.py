"""What kernels may not do: compiled, it would be something else than in Python, or slow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import holdfast

SOURCES = Path(holdfast.__file__).parent
DECORATORS = {"kernel", "fast_kernel", "inlined", "fast_inlined", "entry"}


def kernels(source: str) -> Iterator[ast.FunctionDef]:
    """All functions of a module that are compiled."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            names = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
            if names & DECORATORS:
                yield node


def misused(function: ast.FunctionDef) -> list[str]:
    """Indices that count from the end, slices with steps, and powers."""
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            of_two = isinstance(node.left, ast.Constant)  # 2 ** n, a number of cases
            found += [ast.unparse(node)] * (not of_two)
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for part in parts:
                bounds = [part.lower, part.upper] if isinstance(part, ast.Slice) else [part]
                stepped = isinstance(part, ast.Slice) and part.step is not None
                negative = any(isinstance(b, ast.UnaryOp) and isinstance(b.op, ast.USub)
                               for b in bounds)  # fmt: skip
                found += [ast.unparse(node)] * (stepped or negative)
    return found


def test_kernels_count_from_the_start_and_multiply() -> None:
    wrong = [
        f"{path.relative_to(SOURCES)}: {function.name}: {text}"
        for path in sorted(SOURCES.rglob("*.py"))
        for function in kernels(path.read_text())
        for text in misused(function)
    ]
    assert not wrong


def test_misuse_is_seen() -> None:
    source = "@kernel\ndef f(a, n):\n    return a[-1] + a[:-n][0] + a[::2][0] + a[n - 1] ** 2\n"
    (function,) = kernels(source)
    assert len(misused(function)) == 4
