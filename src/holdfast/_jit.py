"""How kernels are compiled: one place for Numba's switches.

Kernels take plain arrays and work arrays, return a status, and never raise, print or allocate.
That allows two switches that matter in microsecond solves: division follows IEEE (no check for
zero at every division), and no reference counting (views into the caller's arrays are only read
while the caller holds them). Each kernel is plain Python: NUMBA_DISABLE_JIT=1 runs it as such.

Numba caches a compiled kernel until the file that it is written in changes, and does not notice
changes in the files of the kernels that it calls. Here the stamp of a cached kernel covers all
files that kernels are made of, so that an edited or updated checkout never runs yesterday's kernel,
and an edited command or tool compiles nothing again; see `holdfast._cache`.

By default Numba optimises every kernel and makes machine code of it, then does so again as part of
each kernel that calls it. Kernels that only others call are compiled as parts here: only those that
Python calls become machine code, and are cached. That halves the time to compile.

Those parts are internal to the whole: the optimiser sees all their callers, inlines what is called
once, and does not hand over what nobody reads of an array, which is seven words. Kernels never
index from the end of one, which Numba would look for at every access.

Loops over coordinates and contacts are short. Unrolled, as compilers do for long ones, they fill
the processor's instruction cache and are slower when a step comes to them after other work. They
are vectorised, not unrolled, and a loop that sets a few numbers to zero is no call of a function.
Vectors have four numbers even where the processor has longer ones: of eight at once, six to
twenty coordinates would leave up to seven to be taken one by one.

Most of the time to compile would be spent in Numba, not in LLVM: see `holdfast._lowering` and
`holdfast._shortcuts` for what is left out.

Compiling and loading must not be interrupted: what Numba has half of, it breaks on later. Ctrl-C
reaches the main thread alone, so kernels are compiled and loaded in another one. The main thread
waits for it and can be interrupted there; the next call finds the kernel, or waits on.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ClassVar

from llvmlite.binding import Linkage, create_pass_builder, create_pipeline_tuning_options
from numba import config, njit, types
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.event import register

from holdfast import _cache, _lowering
from holdfast._shortcuts import OwnFlags, WhileCompiling

COMPILED = not getattr(config, "DISABLE_JIT", False)  # whether kernels are


_ATTRIBUTES = ('"no-builtin-memset"', '"prefer-vector-width"="256"')  # of all functions


class _Library(JITCodeLibrary):
    """Kernels whose loops stay loops: LLVM would call `memset` to set three numbers to zero."""

    is_part = False
    raises = True

    def add_ir_module(self, ir_module: Any) -> None:
        for function in ir_module.functions:
            for attribute in _ATTRIBUTES:
                set.add(function.attributes, attribute)  # past the list of known names
        super().add_ir_module(ir_module)


class _Whole(_Library):
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
        for function in self._final_module.functions:
            if function.linkage == Linkage.linkonce_odr:
                function.linkage = Linkage.internal
        options = create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = options.slp_vectorization = True
        options.loop_interleaving = options.loop_unrolling = False
        passes = create_pass_builder(self._codegen._tm, options)
        passes.getModulePassManager().run(self._final_module, passes)


class _Part(_Library):
    """A kernel that only others call: it is optimised and becomes machine code as part of them."""

    is_part = True

    def add_llvm_module(self, ll_module: Any) -> None:
        """Take the only module of a part as it is: there is nothing to link it with."""
        ll_module.data_layout = self._codegen._data_layout
        passes, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
        self._final_module = ll_module

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

    library: ClassVar[type[_Library]] = _Whole

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any,
                 *others: Any) -> None:  # fmt: skip
        library = self.library(target.codegen(), "kernel")
        library.enable_object_caching()
        super().__init__(typing, target, library, args, result, OwnFlags(flags), *others)

    def define_pipelines(self) -> list[Any]:
        """What kernels go through."""
        return [_lowering.passes()]


class _PartCompiler(_Compiler):
    """For kernels that only others call."""

    library = _Part


_SWITCHES: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
    "no_rewrites": True,
    "pipeline_class": _Compiler,
}
_PART = {
    **_SWITCHES,
    "no_cpython_wrapper": True,
    "pipeline_class": _PartCompiler,
}
_FAST = {**_PART, "fastmath": {"reassoc", "contract"}}


_WHILE_COMPILING = WhileCompiling()

ENTRIES: list[Any] = []  # all kernels that Python or C calls


_LOOK = 0.05  # [s] between looks whether the thread that compiles has ended
_STACK = 64 << 20  # [bytes] of the thread that compiles: as much as the main thread may have


def uninterrupted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, called in another thread where Ctrl-C does not come; the main thread waits.

    `Thread.start` is not for the main thread either: an interrupt in it can leave a lock taken that
    the new thread waits for, and the process with it when it ends. A bare thread calls it.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            return function(*args, **kwargs)
        result: list[Any] = []
        error: list[BaseException] = []
        done = _thread.allocate_lock()
        done.acquire()

        def run() -> None:
            try:
                result.append(function(*args, **kwargs))
            except BaseException as raised:
                error.append(raised)
            finally:
                done.release()

        worker = threading.Thread(target=run, name="holdfast: compiling")
        _thread.start_new_thread(_launch, (worker, error, done))
        while not done.acquire(timeout=_LOOK):
            pass  # a signal is seen in between, whichever thread has got it
        if error:
            raise error[0]
        return result[0]

    return call


def _launch(worker: threading.Thread, error: list[BaseException], done: Any) -> None:
    """Start a thread with a large stack."""
    usual = threading.stack_size(_STACK)
    try:
        worker.start()
    except BaseException as raised:
        error.append(raised)
        done.release()
    finally:
        threading.stack_size(usual)


def _compiler(switches: dict[str, Any]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles with these switches."""

    def compile_(function: Callable[..., Any]) -> Any:
        return _without_literals(njit(**switches)(function))

    return compile_


def _without_literals(made: Any) -> Any:
    """A kernel that is compiled once for `True` and `False`, 0 and 1: not for each constant."""
    if COMPILED:
        plain = made.get_call_template

        def get_call_template(args: Any, kws: Any) -> Any:
            named = {name: types.unliteral(kind) for name, kind in kws.items()}
            return plain(tuple(map(types.unliteral, args)), named)

        made.get_call_template = get_call_template
    return made


def _entry(function: Callable[..., Any]) -> Any:
    """The decorator of kernels that Python calls: they are kept, and compiled by one at a time."""
    made: Any = njit(**_SWITCHES)(function)
    if not COMPILED:
        return made
    plain, file = made.compile, function.__code__.co_filename
    cached = made._cache = _cache.cache_of(function)

    def compile_in_turn(signature: Any) -> Any:
        with _cache.compiling(cached, signature, made.targetctx, file):
            return plain(signature)

    made.compile = uninterrupted(compile_in_turn)
    ENTRIES.append(made)
    return made


class CEntry:
    """A kernel of an address that C can call.

    It is compiled when it is needed first.

    Args:
        kernel: takes one argument, ``void*``, as an integer; or four, of which the last one
            matters: ``void*, void*, int, void*``.
        announced: what to say is compiled, on stderr, if it is not in the cache.
        seconds: that it takes on the machine of `holdfast._cache.estimate`.
    """

    def __init__(
        self, kernel: Callable[..., None], announced: str = "", seconds: float = 0.0
    ) -> None:
        self._kernel, self._announced, self._seconds = kernel, announced, seconds
        self._count = kernel.__code__.co_argcount
        self._made: Any = None
        self._lock = threading.Lock()
        ENTRIES.append(self)

    @property
    def _compiled(self) -> Any:
        if self._made is None:
            self._load()
        return self._made

    @uninterrupted
    def _load(self) -> None:
        with self._lock:
            if self._made is None:
                self._made = self._compile()

    def _compile(self) -> Any:
        options = {"nopython": True, "error_model": "numpy", "_nrt": False, "no_rewrites": True}
        pointer = types.intp
        given = (pointer, pointer, types.int32, pointer)[4 - self._count :]
        made: Any = CFunc(self._kernel, (given, types.void), {}, options, pipeline_class=_Compiler)
        made._cache = _cache.cache_of(self._kernel)
        target = made._targetdescr.target_context
        file = self._kernel.__code__.co_filename
        with (
            _cache.compiling(made._cache, made._sig, target, file, self._announcement),
            global_compiler_lock,
            _WHILE_COMPILING.within(),
        ):
            made.compile()
        return made

    def _announcement(self) -> str:
        """What to say before it is compiled."""
        if not self._announced:
            return ""
        time = _cache.estimate(self._seconds)
        return f"holdfast: compiling {self._announced}, once after installation; {time}"

    @property
    def kernel(self) -> Callable[..., None]:
        """The kernel as it is written."""
        return self._kernel

    @property
    def is_compiled(self) -> bool:
        """Whether it is compiled or loaded in this process."""
        return self._made is not None

    @property
    def address(self) -> int:
        """Where it is."""
        return self._compiled.address

    def call(self, argument: int) -> None:
        """Call it from Python; the kernel as it is written if nothing is compiled."""
        function = self._compiled.ctypes if COMPILED else self._kernel
        function(*(0,) * (self._count - 1), argument)


register("numba:compile", _WHILE_COMPILING)

# Called from Python.
entry = _entry

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
