"""Functions of Numba's that are others while one of our kernels is compiled: they take less time.

Much of the time to compile goes into questions that come up again and again: which of dozens of
implementations an operator has for these types, what type a field of a record has, how large a type
is, whether the compiler's options are still the same. The answers are remembered. Other time goes
into reports for errors and for listeners, which are left out.

Compilation makes millions of small objects that live until it ends; Python's cycle collector walks
over them again and again for nothing, and is stopped meanwhile.
"""

# pyright: reportAttributeAccessIssue=false
# (Numba's properties have no types.)

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from llvmlite.binding import ffi
from numba import types
from numba.core import ir, typeinfer
from numba.core.compiler import Flags
from numba.core.errors import ForceLiteralArg, TypingError
from numba.core.event import Event, Listener
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.types.functions import BaseFunction
from numba.cpython import slicing
from numba.np import arrayobj

OURS = "_ZN8holdfast"  # how the names of our kernels begin when they are compiled

_PLAIN = (types.Number, types.Boolean, types.Array, types.BaseTuple, types.Record, types.SliceType,
          types.RangeType, types.NoneType)  # fmt: skip


class OwnFlags(Flags):
    """Options of a compilation, which are compared at every call: faster than Numba's."""

    __slots__ = ("_text",)

    @property
    def text(self) -> str:
        """What the options say; they are not changed any more when somebody asks."""
        try:
            return self._text
        except AttributeError:
            self._text = self.summary()
            return self._text

    def __hash__(self) -> int:
        return hash(self.text)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, OwnFlags):
            return self is other or self.text == other.text
        return super().__eq__(other)


class _Remembered:
    """Answers of Numba's, by the identity of types, of which there is only one object each."""

    def __init__(self) -> None:
        self.calls: dict[Any, Any] = {}
        self.attributes: dict[Any, Any] = {}
        self.sizes: dict[Any, int] = {}

    def call_type(self, plain: Any, function: Any, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call of one of Numba's functions; once for all options."""
        if kws or not all(isinstance(kind, _PLAIN) for kind in args):
            return plain(function, context, args, kws)
        options: Any = ConfigStack.top_or_none()
        text = options.text if isinstance(options, OwnFlags) else ""
        key = (id(function), tuple(map(id, args)), text)
        found = self.calls.get(key) if text else None
        if found is None:
            signature = plain(function, context, args, kws)
            if text and signature is not None:
                implementation = function._impl_keys[signature.args]
                self.calls[key] = signature, implementation, function, args
            return signature
        signature, implementation, *_ = found
        function._impl_keys[signature.args] = implementation
        return signature

    def attribute(self, plain: Any, kind: Any, name: str) -> Any:
        """Return the type of an attribute."""
        found = self.attributes.get((id(kind), name))
        if found is None:
            found = plain(kind, name)
            if found is not None and isinstance(kind, _PLAIN):
                self.attributes[id(kind), name] = found
                self.attributes[id(kind)] = kind
        return found

    def size(self, plain: Any, kind: Any) -> int:
        """Return how many bytes a type of LLVM takes, for which llvmlite parses a module."""
        text = str(kind)
        if text not in self.sizes:
            self.sizes[text] = plain(kind)
        return self.sizes[text]


def _propagate(network: Any, inferer: Any) -> list[Exception]:
    """Propagate types, as Numba does; no warning is collected for each statement."""
    found: list[Exception] = []
    for constraint in network.constraints:
        try:
            constraint(inferer)
        except ForceLiteralArg as error:
            found.append(error)
        except TypingError as error:
            text = TypingError(str(error), loc=constraint.loc, highlighting=False)
            text.__cause__ = error
            found.append(text)
    return found


_NOTHING = contextlib.nullcontext()


def _no_context(*_args: Any, **_kwargs: Any) -> Any:
    return _NOTHING


def _variables_of(values: Any) -> list[Any]:
    """Variables among the values of a statement's fields."""
    found: list[Any] = []
    for value in values:
        kind = type(value)
        if kind is ir.Var:
            found.append(value)
        elif kind is ir.Loc or kind is str:
            continue
        elif isinstance(value, ir.Inst):
            found += value.list_vars()
        elif kind is list or kind is tuple:
            found += _variables_of(value)
        elif kind is dict:
            found += _variables_of(value.values())
    return found


def _of_statement(self: Any) -> list[Any]:
    return _variables_of(self.__dict__.values())


def _of_expression(self: Any) -> list[Any]:
    return _variables_of(self._kws.values())


class _FromTheStart:
    """Looks up entries and parts of arrays as C does, in our kernels: none counts from the end.

    For other functions that are compiled meanwhile, Numba's own, it stays as it is.
    """

    def __init__(self) -> None:
        self._index, self._slice = arrayobj.fix_integer_index, slicing.fix_slice

    def fix_index(self, context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        """Return an index."""
        if not _is_ours(builder):
            return self._index(context, builder, kind, index, size)
        return context.cast(builder, index, kind, types.intp)

    def fix_slice(self, builder: Any, part: Any, size: Any) -> None:
        """Bound a slice by the size of the array."""
        if not _is_ours(builder):
            self._slice(builder, part, size)
            return
        beyond = builder.icmp_signed(">", part.stop, size)  # as where no end is given
        part.stop = builder.select(beyond, size, part.stop)


def _is_ours(builder: Any) -> bool:
    return builder.function.name.startswith(OURS)


def _replacements() -> Iterator[tuple[Any, str, Any]]:
    """Objects, attributes of them, and what they are meanwhile."""
    known, typing, target = _Remembered(), cpu_target.typing_context, cpu_target.target_context
    plain = BaseFunction.get_call_type

    def get_call_type(function: Any, context: Any, args: Any, kws: Any) -> Any:
        return known.call_type(plain, function, context, args, kws)

    yield BaseFunction, "get_call_type", get_call_type
    yield typing, "resolve_getattr", partial(known.attribute, typing.resolve_getattr)
    yield target, "get_abi_sizeof", partial(known.size, target.get_abi_sizeof)
    yield typeinfer.ConstraintNetwork, "propagate", _propagate
    yield typeinfer, "new_error_context", _no_context
    yield ir.Stmt, "list_vars", _of_statement
    yield ir.Expr, "list_vars", _of_expression
    yield ffi.lib._lock, "_cblist", []  # events of a lock that is taken at each call of LLVM
    start = _FromTheStart()
    yield arrayobj, "fix_integer_index", start.fix_index
    yield slicing, "fix_slice", start.fix_slice


class WhileCompiling(Listener):
    """Puts the replacements in place, and stops the cycle collector, while ours are compiled."""

    def __init__(self) -> None:
        self._replacements: list[tuple[Any, str, Any]] = []
        self._undo: list[Callable[[], None]] = []
        self._depth = 0
        self._ours: list[bool] = []

    def start(self) -> None:
        """Begin; within another one this does nothing."""
        self._depth += 1
        if self._depth > 1:
            return
        if not self._replacements:
            self._replacements = list(_replacements())
        for owner, name, new in self._replacements:
            if name in vars(owner):
                self._undo.append(partial(setattr, owner, name, vars(owner)[name]))
            else:
                self._undo.append(partial(delattr, owner, name))
            setattr(owner, name, new)
        if gc.isenabled():
            gc.disable()
            self._undo.append(gc.enable)

    def stop(self) -> None:
        """End."""
        self._depth -= 1
        while self._depth == 0 and self._undo:
            self._undo.pop(0)()

    def on_start(self, event: Event) -> None:
        """Begin if one of ours is compiled."""
        data: Any = event.data
        self._ours.append(data["dispatcher"].py_func.__module__.startswith("holdfast."))
        if self._ours[-1]:
            self.start()

    def on_end(self, event: Event) -> None:
        """End likewise."""
        if self._ours.pop():
            self.stop()

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        """Begin and end."""
        self.start()
        try:
            yield
        finally:
            self.stop()
