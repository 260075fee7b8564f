"""Tests in a process of their own that sees other texts of some modules.

The process is forked from one that has imported what takes long; modules of holdfast are imported
in the child. Sources on the disk stay as they are, and so do the stamps of kernels in the cache:
where only Python is changed, nothing is compiled again. Children of the child see no change.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from mutate.mutant import PACKAGE, ROOT

HEAVY = ("mujoco", "numba", "numpy", "scipy.optimize", "scipy.linalg")
Code = Callable[[], Any]  # text or syntax tree of a module

# A test that fails is enough: no examples are made smaller.
settings.register_profile(
    "mutate",
    derandomize=True,
    deadline=None,
    max_examples=15,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


class Changed(MetaPathFinder):
    """Finds modules as ever, and loads some from other code."""

    def __init__(self, codes: dict[str, Code]) -> None:
        self._codes = codes

    def find_spec(self, name: str, path: Any, target: Any = None) -> ModuleSpec | None:
        """What Python asks for a module."""
        spec = PathFinder.find_spec(name, path, target) if name.startswith("holdfast.") else None
        if spec is None or not spec.origin or not Path(spec.origin).is_relative_to(PACKAGE):
            return None
        make = self._codes.get(str(Path(spec.origin).relative_to(PACKAGE)))
        if make is None:
            return None
        spec.loader, spec.cached = Loader(name, spec.origin, make), None
        return spec


class Loader(SourceFileLoader):
    """Loads a module from other code."""

    def __init__(self, name: str, path: str, make: Code) -> None:
        super().__init__(name, path)
        self._make = make

    def get_code(self, fullname: str) -> CodeType:
        """What Python runs."""
        return compile(self._make(), self.path, "exec", dont_inherit=True)


def prepare() -> None:
    """Import what takes long, once."""
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "HYPOTHESIS_PROFILE": "mutate"}
    sys.path[:0] = [str(PACKAGE.parent), str(ROOT / "tests")]
    for name in HEAVY:
        import_module(name)


def run(
    given: list[str], codes: dict[str, Code], plugin: Any, output: Path, *,
    compiled: bool, afresh: str = "", limit: int | None = None,
) -> int:  # fmt: skip
    """Run tests in a child and return what pytest does; minus a signal if one has ended it.

    Args:
        given: arguments of pytest: tests, in order.
        codes: of modules that are changed, by file.
        plugin: of pytest.
        output: what it prints.
        compiled: whether kernels are.
        afresh: a file whose kernels are not taken from the cache.
        limit: on the time of the processor [s].
    """
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        status = 70
        with contextlib.suppress(BaseException):
            status = _child(given, codes, plugin, output, compiled, afresh, limit)
        os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def _child(
    given: list[str], codes: dict[str, Code], plugin: Any, output: Path, compiled: bool,
    afresh: str, limit: int | None,
) -> int:  # fmt: skip
    file = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.chdir(ROOT)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    os.environ["NUMBA_DISABLE_JIT"] = "0" if compiled else "1"
    config = import_module("numba").config
    config.DISABLE_JIT = not compiled
    sys.meta_path.insert(0, Changed(codes))
    if afresh:
        _forget(str(PACKAGE / afresh))
    marks = "not slow" if compiled else "not slow and not jit"
    usual = ["-q", "-p", "no:cacheprovider", "-p", "no:benchmark", "-m", marks]
    return int(pytest.main([*usual, *given], plugins=[plugin]))


def _forget(file: str) -> None:
    """Let kernels of a file be compiled and not be kept."""
    from numba.core.caching import NullCache

    cache: Any = import_module("holdfast._cache")
    usual = cache.cache_of
    cache.cache_of = lambda function: (
        NullCache() if function.__code__.co_filename == file else usual(function)
    )
