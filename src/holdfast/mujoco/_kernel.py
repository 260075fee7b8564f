"""Kernels of this package: as `holdfast.lcp._kernel` compiles them, cached by all their sources.

They call kernels of other folders, whose changes a cached kernel would not notice.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.lcp import _kernel


def _stamp() -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of the source files of this folder and of the contact models."""
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *(here.parent / "models").glob("*.py")])
    stats = [(file.name, file.stat()) for file in files]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


_STAMP = _stamp()


def _stamped(compile_: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles, the cache stamped with these sources, too."""

    def decorate(function: Callable[..., Any]) -> Any:
        kernel = compile_(function)
        file: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
        if hasattr(file, "_source_stamp"):
            file._source_stamp = (file._source_stamp, _STAMP)
        return kernel

    return decorate


entry = _stamped(_kernel.entry)
kernel = _stamped(_kernel.kernel)
fast_kernel = _stamped(_kernel.fast_kernel)
