"""How kernels are compiled: one place for Numba's switches.

Kernels take plain arrays and work arrays, return a status, and never raise, print or allocate.
That allows two switches that matter in microsecond solves: division follows IEEE (no check for
zero at every division), and no reference counting (views into the caller's arrays are only read
while the caller holds them). Each kernel is plain Python: NUMBA_DISABLE_JIT=1 runs it as such.

Numba caches a compiled kernel until the file that it is written in changes, and does not notice
changes in the files of the kernels that it calls. Here the stamp of a cached kernel covers all
files of the folders that have kernels, so that an edited or updated checkout never runs
yesterday's kernel, and an edited command or tool compiles nothing again.

By default Numba optimises every kernel and makes machine code of it, then does so again as part of
each kernel that calls it. Kernels that only others call are compiled as parts here: only those that
Python calls become machine code, and are cached. That halves the time to compile.

Loops over coordinates and contacts are short. Unrolled, as compilers do for long ones, they fill
the processor's instruction cache and are slower when a step comes to them after other work. They
are vectorised, not unrolled.

Compilation makes millions of small objects that live until it ends; Python's cycle collector
walks over them again and again for nothing, and is stopped meanwhile.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar

from llvmlite.binding import create_pass_builder, create_pipeline_tuning_options
from numba import config, njit, types
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.event import Event, Listener, register

COMPILED = not getattr(config, "DISABLE_JIT", False)  # whether kernels are


class _Whole(JITCodeLibrary):
    """A kernel that Python or C calls, with all kernels that it calls, each linked once."""

    def finalize(self) -> None:
        seen: dict[Any, None] = {}
        left = list(self._linking_libraries)
        while left:
            library = left.pop(0)
            if library not in seen:
                seen[library] = None
                left += library._linking_libraries if isinstance(library, _Part) else []
        self._linking_libraries = list(seen)
        super().finalize()

    def _optimize_final_module(self) -> None:
        options = create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        options.loop_interleaving = options.loop_unrolling = False
        passes = create_pass_builder(self._codegen._tm, options)
        passes.getModulePassManager().run(self._final_module, passes)


class _Part(JITCodeLibrary):
    """A kernel that only others call: it is optimised and becomes machine code as part of them."""

    def finalize(self) -> None:
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0  # nothing to call from Python

    @property
    def codegen(self) -> Any:
        """What Numba asks to `set_env`."""
        return self

    def set_env(self, name: str, env: Any) -> None:
        """Keep no environment: it is for exceptions and printing, which kernels do not do."""


class _Compiler(Compiler):
    """Numba's compiler, with one of these libraries."""

    library: ClassVar[type[JITCodeLibrary]] = _Whole

    def __init__(self, typing: Any, target: Any, library: Any, *others: Any) -> None:
        library = self.library(target.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typing, target, library, *others)


class _PartCompiler(_Compiler):
    """For kernels that only others call."""

    library = _Part


_SWITCHES: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_rewrites": True,
    "pipeline_class": _Compiler,
}
_PART = {
    **_SWITCHES,
    "cache": False,
    "no_cpython_wrapper": True,
    "pipeline_class": _PartCompiler,
}
_FAST = {**_PART, "fastmath": {"reassoc", "contract"}}


_NO_KERNELS = ("_html.py", "tools", "experiments", "cli")  # parts of the package without any


def _stamp() -> tuple[tuple[str, int, int], ...]:
    """Name, time and size of every source file of the package that may hold kernels."""
    root = Path(__file__).parent
    files = sorted(root.rglob("*.py"))
    files = [file for file in files if file.relative_to(root).parts[0] not in _NO_KERNELS]
    stats = [(file.name, file.stat()) for file in files]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


def _mujoco() -> str:
    """Version of MuJoCo: kernels know where the fields of its structs are."""
    try:
        return version("mujoco")
    except PackageNotFoundError:
        return ""


_STAMP = (*_stamp(), _mujoco())


def _stamped(kernel: Any) -> Any:
    """The kernel, its cache stamped with all sources."""
    file: Any = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if hasattr(file, "_source_stamp"):
        file._source_stamp = (file._source_stamp, _STAMP)
    return kernel


def _compiler(switches: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles with these switches."""

    def compile_(function: Callable[..., Any]) -> Any:
        return _stamped(njit(**switches)(function))

    return compile_


def _is_cached(made: Any) -> bool:
    """Whether a stamped kernel is in the cache; true if Numba does not tell."""
    load = getattr(getattr(made._cache, "_cache_file", None), "_load_index", None)
    return load is None or bool(load())


class CEntry:
    """A kernel of an address that C can call.

    It is compiled when it is needed first.

    Args:
        kernel: takes one argument, ``void*``, as an integer; or four, of which the last one
            matters: ``void*, void*, int, void*``.
        announced: what to say, on stderr, when it has to be compiled and is not in the cache.
    """

    def __init__(self, kernel: Callable[..., None], announced: str = "") -> None:
        self._kernel, self._announced = kernel, announced
        self._count = kernel.__code__.co_argcount

    @cached_property
    def _compiled(self) -> Any:
        options = {"nopython": True, "error_model": "numpy", "_nrt": False, "no_rewrites": True}
        pointer = types.intp
        given = (pointer, pointer, types.int32, pointer)[4 - self._count :]
        made: Any = CFunc(self._kernel, (given, types.void), {}, options, pipeline_class=_Compiler)
        made.enable_caching()
        if self._announced and not _is_cached(_stamped(made)):
            print(self._announced, file=sys.stderr, flush=True)
        made.compile()
        return made

    @cached_property
    def address(self) -> int:
        """Where it is."""
        return self._compiled.address

    def call(self, argument: int) -> None:
        """Call it from Python; the kernel as it is written if nothing is compiled."""
        function = self._compiled.ctypes if COMPILED else self._kernel
        function(*(0,) * (self._count - 1), argument)


class _CollectLater(Listener):
    """Stops the cycle collector while one of our kernels is compiled."""

    def __init__(self) -> None:
        self._resume: list[bool] = []

    def on_start(self, event: Event) -> None:
        data: Any = event.data
        ours = data["dispatcher"].py_func.__module__.startswith("holdfast.")
        self._resume.append(ours and gc.isenabled())
        if ours:
            gc.disable()

    def on_end(self, event: Event) -> None:
        if self._resume.pop():
            gc.enable()


register("numba:compile", _CollectLater())

# Called from Python.
entry = _compiler(_SWITCHES)

# Called from other kernels only, which saves time to compile them. Rounding is exactly as
# written: for comparisons and compensated arithmetic.
kernel = _compiler(_PART)

# The same, as a part of each kernel that calls it: where there are so many arrays that it takes
# longer to hand them over than to use them.
inlined = _compiler({**_PART, "forceinline": True})

# Both of it.
fast_inlined = _compiler({**_FAST, "forceinline": True})

# The same as `kernel`, where sums may be reassociated so that loops vectorise. The order is fixed
# when the kernel is compiled, so results are still the same bits at every run.
fast_kernel = _compiler(_FAST)
