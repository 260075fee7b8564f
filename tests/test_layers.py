"""Folders are layers: imports go one way, and private modules stay private.

    errors, _command, _cache, _lowering, _shortcuts, _jit, _html < linalg < lcp < contact < models
      < mujoco < events < batch < gym < tools < experiments < cli

A module may import from its own folder and from those before it. Modules whose name begins with an
underscore are imported only from within the folder that they are in. Imports inside functions
count, too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import holdfast

ROOT = Path(holdfast.__file__).parent
BASE = ("errors", "_command", "_cache", "_lowering", "_shortcuts", "_jit", "_html")
LAYERS = (
    "linalg", "lcp", "contact", "models", "mujoco", "events", "batch", "gym", "tools",
    "experiments", "cli",
)  # fmt: skip
KNOWS_MUJOCO = ("mujoco", "events", "batch", "gym", "tools", "experiments", "cli")
ENTRANCES = ("__init__", "__main__")  # of the package: they may import anything

# Exceptions, until what they name is rewritten. First: up the layers.
UPWARD: set[tuple[str, str]] = set()
# Private modules that other folders import from, and which folders.
STILL_PRIVATE = {
    "lcp._solve": {"models"},
    "mujoco._mj": {"events", "batch", "gym", "tools", "experiments", "cli"},
}


class Import(NamedTuple):
    """One module of the package that imports from another, without the package's name."""

    source: str
    target: str


def named_modules() -> dict[str, Path]:
    """Every module and folder of the package by its name, and its file."""
    files = {file.relative_to(ROOT).with_suffix(""): file for file in ROOT.rglob("*.py")}
    return {".".join(path.parts).removesuffix(".__init__"): file for path, file in files.items()}


MODULES = named_modules()


def imported(file: Path) -> Iterator[str]:
    """Full names of what a file imports, of modules or of names in them."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports() -> Iterator[Import]:
    """Imports within the package."""
    for source, file in MODULES.items():
        for name in imported(file):
            package, _, target = name.partition(".")
            if package == "holdfast" and target:
                found = target if target in MODULES else target.rpartition(".")[0]
                yield Import(source, found or "__init__")


IMPORTS = sorted(set(imports()))


def layer(module: str) -> str:
    return module.partition(".")[0]


def level(module: str) -> int:
    first = layer(module)
    return -1 if first in BASE else LAYERS.index(first)


def folder(module: str) -> str:
    """The folder that a module is in; of a folder, that folder itself."""
    is_folder = MODULES[module].name == "__init__.py"
    return module if is_folder else module.rpartition(".")[0]


def keeper(module: str) -> str | None:
    """The folder that keeps a module private, or None if it is public."""
    parts = module.split(".")
    private = [k for k, part in enumerate(parts) if part.startswith("_")]
    return ".".join(parts[: private[0]]) if private else None


def may_see(source: str, target: str) -> bool:
    kept_in, inside = keeper(target), folder(source)
    return kept_in is None or kept_in == "" or f"{inside}.".startswith(f"{kept_in}.")


def test_every_folder_is_a_layer() -> None:
    assert {layer(module) for module in MODULES} == {*BASE, *LAYERS, *ENTRANCES}


def test_imports_go_one_way() -> None:
    upward = {
        pair for pair in IMPORTS
        if pair.source not in ENTRANCES and pair.target not in ENTRANCES
        and level(pair.target) > level(pair.source)
    }  # fmt: skip
    assert upward == UPWARD


def test_private_modules_are_imported_within_their_folder() -> None:
    seen: dict[str, set[str]] = {}
    for source, target in IMPORTS:
        if source not in ENTRANCES and target not in ENTRANCES and not may_see(source, target):
            seen.setdefault(target, set()).add(layer(source))
    assert seen == STILL_PRIVATE


@pytest.mark.parametrize("module", [each for each in MODULES if layer(each) not in KNOWS_MUJOCO])
def test_mujoco_is_imported_by_few(module: str) -> None:
    names = set(imported(MODULES[module]))
    assert not any(layer(name) == "mujoco" for name in names)
    if module not in ENTRANCES:
        assert not any(f"{name}.".startswith("holdfast.mujoco.") for name in names)


def test_what_the_stamp_of_kernels_leaves_out_has_none() -> None:
    """Kernels are compiled again when a file changes that may hold some, and only then."""
    from holdfast._cache import sources

    left_out = set(ROOT.rglob("*.py")) - set(sources())
    assert {path.relative_to(ROOT).parts[0] for path in left_out} == {
        "_command.py", "_html.py", "batch", "gym.py", "tools", "experiments", "cli",
    }  # fmt: skip
    made = re.compile(r"^\s*@(\w+\.)*(entry|kernel|fast_kernel|cfunc|njit|jit)\b", re.MULTILINE)
    assert [path for path in left_out if made.search(path.read_text())] == []
    assert sum(bool(made.search(path.read_text())) for path in sources()) > 20
