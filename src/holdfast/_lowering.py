"""Kernels to LLVM: Numba's compiler, with less to do.

Numba is made for all of Python: for exceptions, closures, reference counting and debuggers. Kernels
have none of that, and compile through fewer passes (`passes`).

Most of what Numba writes for LLVM moves records of arrays about. An array is seven words to it, a
record of thirty arrays two hundred; a kernel puts them together from its arguments word by word,
stores them, loads all of them to look at one, and takes them apart again to call the next kernel.
Here arrays and tuples stay in parts until somebody wants them whole (`KernelLower`), and a part of
a kernel gets only the words that tell one array from another: the address, the shape, and strides
if it is not contiguous (`leaf_types`).

A variable that is set once is the value that it is set to: it needs no memory and is not deleted.
A part that cannot raise is not asked whether it has.
"""

# pyright: reportIncompatibleMethodOverride=false, reportAttributeAccessIssue=false
# pyright: reportCallIssue=false
# (Numba's and llvmlite's methods have no types.)

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from llvmlite import ir as llvm
from numba.core import cgutils, ir, types
from numba.core.callconv import excinfo_ptr_t
from numba.core.compiler_machinery import FunctionPass, PassManager, register_pass
from numba.core.funcdesc import default_mangler
from numba.core.interpreter import Interpreter, peep_hole_delete_with_exit
from numba.core.ir_utils import build_definitions
from numba.core.lowering import Lower
from numba.core.ssa import reconstruct_ssa
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import (
    BaseNativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.untyped_passes import FixupArgs
from numba.np.arrayobj import load_item, store_item

_WORD = llvm.IntType(64)
_CODE = llvm.IntType(32)
_EXCEPTION = llvm.PointerType(excinfo_ptr_t)


class Parts:
    """A value in parts: those of `fields`; of an array the address, the shape and strides."""

    __slots__ = ("kind", "parts")

    def __init__(self, kind: Any, parts: Sequence[Any]) -> None:
        self.kind, self.parts = kind, parts


def is_array(kind: Any) -> bool:
    """Whether a type is that of arrays in memory of their own."""
    return type(kind) is types.Array


_Field = tuple[int, Any]
_FIELDS: dict[int, tuple[list[_Field] | None, Any]] = {}  # by identity: a type is one object
_LEAVES: dict[int, tuple[list[Any], Any]] = {}


def fields(kind: Any) -> list[_Field] | None:
    """Where the parts of a value stand in Numba's struct, and their types; None if it has none."""
    found = _FIELDS.get(id(kind))
    if found is None:
        found = _FIELDS[id(kind)] = _fields(kind), kind
    return found[0]


def _fields(kind: Any) -> list[_Field] | None:
    if isinstance(kind, types.BaseTuple):
        return list(enumerate(kind.types))
    if isinstance(kind, types.Pair):
        return [(0, kind.first_type), (1, kind.second_type)]
    if isinstance(kind, types.RangeType):
        return [(k, kind.dtype) for k in range(3)]
    if isinstance(kind, types.RangeIteratorType):  # next number, step, how many are left
        number = kind.yield_type
        return [(0, types.CPointer(number)), (2, number), (3, types.CPointer(number))]
    if isinstance(kind, types.SliceType):
        return [(k, types.intp) for k in range(3)]
    if (
        isinstance(kind, types.ArrayIterator)
        and is_array(array := kind.array_type)
        and (array.ndim == 1 and array.layout != "F")
    ):
        return [(0, types.EphemeralPointer(types.uintp)), (1, kind.array_type)]
    return None


def leaf_types(context: Any, kind: Any) -> list[Any]:
    """LLVM's types of what a value is handed over as."""
    found = _LEAVES.get(id(kind))
    if found is None:
        found = _LEAVES[id(kind)] = _leaf_types(context, kind), kind
    return found[0]


def _leaf_types(context: Any, kind: Any) -> list[Any]:
    if isinstance(kind, types.Omitted | types.NoneType):
        return []
    if is_array(kind):
        sizes = kind.ndim if kind.layout == "C" else 2 * kind.ndim
        return [context.get_data_type(kind.dtype).as_pointer(), *[_WORD] * sizes]
    known = fields(kind)
    if known is None:
        return [context.get_value_type(kind)]
    return [leaf for _, member in known for leaf in leaf_types(context, member)]


def gather(context: Any, kind: Any, leaves: Iterator[Any]) -> Any:
    """A value of what it was handed over as."""
    if isinstance(kind, types.Omitted | types.NoneType):
        return context.get_dummy_value()
    if is_array(kind):
        return Parts(kind, [next(leaves) for _ in leaf_types(context, kind)])
    known = fields(kind)
    if known is None:
        return next(leaves)
    return Parts(kind, [gather(context, member, leaves) for _, member in known])


def take_apart(builder: Any, kind: Any, value: Any) -> Any:
    """A value in parts, if its type has any."""
    if isinstance(value, Parts):
        return value
    if is_array(kind):
        shape = [builder.extract_value(value, [5, k]) for k in range(kind.ndim)]
        strides = [] if kind.layout == "C" else [
            builder.extract_value(value, [6, k]) for k in range(kind.ndim)
        ]  # fmt: skip
        return Parts(kind, [builder.extract_value(value, 4), *shape, *strides])
    known = fields(kind)
    if known is None:
        return value
    return Parts(kind, [take_apart(builder, member, builder.extract_value(value, k))
                        for k, member in known])  # fmt: skip


def spread(builder: Any, kind: Any, value: Any) -> Iterator[Any]:
    """What a value is handed over as."""
    if isinstance(kind, types.Omitted | types.NoneType):
        return
    value = take_apart(builder, kind, value)
    known = fields(kind)
    if is_array(kind):
        yield from value.parts
    elif known is None:
        yield value
    else:
        for (_, member), part in zip(known, value.parts, strict=True):
            yield from spread(builder, member, part)


def whole(context: Any, builder: Any, value: Any) -> Any:
    """A value as Numba's other functions know it."""
    if not isinstance(value, Parts):
        return value
    kind = value.kind
    made = llvm.Constant(context.get_value_type(kind), None)
    if not is_array(kind):
        for (k, _), part in zip(fields(kind) or (), value.parts, strict=True):
            made = builder.insert_value(made, whole(context, builder, part), k)
        return made
    data, shape = value.parts[0], value.parts[1 : 1 + kind.ndim]
    size = _WORD(context.get_abi_sizeof(data.type.pointee))
    steps, count = [size], shape[0] if shape else _WORD(1)
    for length in shape[1:]:
        count = builder.mul(count, length)
    for length in reversed(shape[1:]):
        steps.insert(0, builder.mul(steps[0], length))
    strides = steps if kind.layout == "C" else value.parts[1 + kind.ndim :]
    for k, each in ((2, count), (3, size), (4, data)):
        made = builder.insert_value(made, each, k)
    for k in range(kind.ndim):
        made = builder.insert_value(made, shape[k], [5, k])
        made = builder.insert_value(made, strides[k], [6, k])
    return made


_IN_PARTS: dict[Any, Callable[..., Any]] = {}


def in_parts(function: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate what writes calls of a function: it takes arguments in parts, and may return so.

    It is called with Numba's context, a builder, the signature and the arguments.
    """

    def register(write: Callable[..., Any]) -> Callable[..., Any]:
        _IN_PARTS[function] = write
        return write

    return register


@in_parts(range)
def _range(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
    """A range; one that steps by one has this as a constant."""
    zero, one = (context.get_constant(signature.return_type.dtype, k) for k in (0, 1))
    begin, end, step = {1: (zero, *args, one), 2: (*args, one), 3: args}[len(args)]
    return Parts(signature.return_type, [begin, end, step])


@in_parts(slice)
def _slice(context: Any, builder: Any, signature: Any, args: Sequence[Any]) -> Any:
    """A slice without step, from the start to the end where nothing is given."""
    if len(args) != 2:
        return None
    parts = [_WORD(0), _WORD((1 << 63) - 1), _WORD(1)]
    for k, (kind, value) in enumerate(zip(signature.args, args, strict=True)):
        if not isinstance(kind, types.NoneType):
            parts[k] = context.cast(builder, value, kind, types.intp)
    return Parts(signature.return_type, parts)


def function_type(context: Any, fndesc: Any) -> Any:
    """LLVM's type of a part: it writes its result, may write an exception, and returns a code."""
    result = llvm.LiteralStructType(leaf_types(context, fndesc.restype))
    given = [leaf for kind in fndesc.argtypes for leaf in leaf_types(context, kind)]
    return llvm.FunctionType(_CODE, [result.as_pointer(), _EXCEPTION, *given])


class KernelLower(Lower):
    """Writes a kernel for LLVM."""

    def init(self) -> None:
        """Find variables that are set once, before they are used."""
        seen: set[str] = set()
        again: set[str] = set()
        for _, block in sorted(self.blocks.items()):
            for inst in block.body:
                if isinstance(inst, ir.Assign):
                    used = variables(inst.value)
                    name = inst.target.name
                    again.update(each for each in used if each not in seen)
                    if name in seen:
                        again.add(name)
                    seen.add(name)
                else:
                    again.update(each for each in variables(inst) if each not in seen)
        self._singly_assigned_vars = seen - again
        self._blk_local_varmap: dict[str, Any] = {}
        self._leaves: dict[str, list[Any]] = {}
        self._is_part = getattr(self.library, "is_part", False)
        plain = self.context.cast

        def cast(builder: Any, value: Any, given: Any, wanted: Any) -> Any:
            if given is wanted or given == wanted:
                return value
            return plain(builder, whole(self.context, builder, value), given, wanted)

        self.context.cast = cast

    # Variables

    def peek(self, name: str) -> Any:
        """The value of a variable, perhaps in parts."""
        found = self._blk_local_varmap.get(name)
        if found is not None:
            return found
        kind = self.typeof(name)
        loaded = (self.builder.load(slot) for slot in self._slots(name, kind))
        return gather(self.context, kind, loaded)

    def loadvar(self, name: str) -> Any:
        """The value of a variable, whole."""
        return whole(self.context, self.builder, self.peek(name))

    def storevar(self, value: Any, name: str, argidx: Any = None) -> None:
        """Set a variable."""
        kind = self.typeof(name)
        if name in self._singly_assigned_vars:
            self._blk_local_varmap[name] = take_apart(self.builder, kind, value)
            return
        leaves = list(spread(self.builder, kind, value))
        for leaf, slot in zip(leaves, self._slots(name, kind), strict=True):
            self.builder.store(leaf, slot)

    def _slots(self, name: str, kind: Any) -> list[Any]:
        """Where a variable is kept that is set more than once."""
        found = self._leaves.get(name)
        if found is None:
            found = self._leaves[name] = [
                cgutils.alloca_once(self.builder, leaf, name=name)
                for leaf in leaf_types(self.context, kind)
            ]
        return found

    def delvar(self, name: str) -> None:
        """Nothing is counted."""

    # Functions

    def emit_environment_object(self) -> None:
        """An environment is for exceptions, which Python gets from entries only."""
        if not self._is_part:
            super().emit_environment_object()

    def setup_function(self, fndesc: Any) -> None:
        """Begin the function."""
        if not self._is_part:
            super().setup_function(fndesc)
            return
        kind = function_type(self.context, fndesc)
        self.function = llvm.Function(self.module, kind, fndesc.mangled_name)
        self.function.linkage = "linkonce_odr"
        if fndesc.inline:
            self.function.attributes.add("alwaysinline")
        for pointer in self.function.args[:2]:
            pointer.add_attribute("noalias")
        self.entry_block = self.function.append_basic_block("entry")
        self.builder = llvm.IRBuilder(self.entry_block)
        self.call_helper = self.call_conv.init_call_helper(self.builder)

    def extract_function_arguments(self) -> Any:
        """Take the arguments."""
        if not self._is_part:
            return super().extract_function_arguments()
        leaves = iter(self.function.args[2:])
        self.fnargs = [gather(self.context, kind, leaves) for kind in self.fndesc.argtypes]
        return self.fnargs

    def lower_normal_function(self, fndesc: Any) -> None:
        """Write the function, and note whether it can raise."""
        super().lower_normal_function(fndesc)
        self.library.raises = any(may_raise(block) for block in self.function.blocks)

    def lower_block(self, block: Any) -> None:
        """Write a block."""
        self._cur_ir_block = block
        for inst in block.body:
            self.loc = inst.loc
            self.lower_inst(inst)

    def lower_inst(self, inst: Any) -> None:
        """Write a statement."""
        kind = type(inst)
        if kind is ir.Assign:
            name = inst.target.name
            self.storevar(self.lower_assign(self.typeof(name), inst), name)
        elif kind is ir.Return and self._is_part:
            self._return(inst.value.name)
        elif kind is ir.SetItem:
            self._set_item(inst, inst.index.name)
        elif kind is ir.StaticSetItem:
            self._set_item(inst, inst.index_var.name)
        elif kind is not ir.Del:
            super().lower_inst(inst)

    def _return(self, name: str) -> None:
        kind, place = self.fndesc.restype, self.function.args[0]
        value = self.context.cast(self.builder, self.peek(name), self.typeof(name), kind)
        for k, leaf in enumerate(spread(self.builder, kind, value)):
            self.builder.store(leaf, self.builder.gep(place, [_CODE(0), _CODE(k)], inbounds=True))
        self.builder.ret(_CODE(0))

    def lower_assign(self, ty: Any, inst: Any) -> Any:
        """Write the right-hand side of an assignment."""
        value = inst.value
        if isinstance(value, ir.Var):
            return self.context.cast(self.builder, self.peek(value.name),
                                     self.typeof(value.name), ty)  # fmt: skip
        return super().lower_assign(ty, inst)

    def lower_expr(self, resty: Any, expr: Any) -> Any:
        """Write an expression."""
        write: Any = self._own.get(expr.op)
        made = None if write is None else write(self, resty, expr)
        return super().lower_expr(resty, expr) if made is None else made

    # Tuples and arrays

    def _get_attribute(self, resty: Any, expr: Any) -> Any:
        kind = self.typeof(expr.value.name)
        if isinstance(kind, types.BaseNamedTuple) and expr.attr in kind.fields:
            k = kind.fields.index(expr.attr)
            return self._member(expr.value.name, kind, k, resty)
        if is_array(kind) and expr.attr == "shape":
            array = take_apart(self.builder, kind, self.peek(expr.value.name))
            return Parts(resty, array.parts[1 : 1 + kind.ndim])
        return None

    def _member(self, name: str, kind: Any, k: int, resty: Any) -> Any:
        value = take_apart(self.builder, kind, self.peek(name)).parts[k]
        return self.context.cast(self.builder, value, kind.types[k], resty)

    def _get_static_item(self, resty: Any, expr: Any) -> Any:
        kind, name = self.typeof(expr.value.name), expr.value.name
        if type(expr.index) is not int or expr.index < 0:
            return None
        if isinstance(kind, types.BaseTuple):
            return self._member(name, kind, expr.index, resty)
        if is_array(kind):
            return self._entry(name, kind, [_WORD(expr.index)], resty)
        return None

    def _get_item(self, resty: Any, expr: Any) -> Any:
        kind, name = self.typeof(expr.value.name), expr.value.name
        by = self.typeof(expr.index.name)
        if isinstance(kind, types.BaseTuple) and isinstance(by, types.IntegerLiteral):
            return self._member(name, kind, by.literal_value, resty)
        if not is_array(kind):
            return None
        contiguous = kind.layout == "C" == getattr(resty, "layout", "")
        if isinstance(by, types.SliceType) and not by.has_step and contiguous:
            return self._view(name, kind, self.peek(expr.index.name), resty)
        indices = self._indices(expr.index.name)
        return None if indices is None else self._entry(name, kind, indices, resty)

    def _view(self, name: str, kind: Any, part: Any, resty: Any) -> Any:
        """Some of the first dimension of an array; a slice has no negative bound."""
        builder = self.builder
        begin, end, _ = take_apart(builder, types.slice2_type, part).parts
        array = take_apart(builder, kind, self.peek(name)).parts
        end = builder.select(builder.icmp_signed(">", end, array[1]), array[1], end)
        size = builder.sub(end, begin)
        size = builder.select(builder.icmp_signed("<=", end, begin), _WORD(0), size)
        return Parts(resty, [self._address(kind, array, [begin]), size, *array[2:]])

    def _indices(self, name: str) -> list[Any] | None:
        """Integers that a variable holds; None if it holds anything else."""
        kind = self.typeof(name)
        kinds = kind.types if isinstance(kind, types.BaseTuple) else (kind,)
        if not all(isinstance(each, types.Integer) for each in kinds):
            return None
        value = self.peek(name)
        parts = take_apart(self.builder, kind, value).parts if kinds != (kind,) else [value]
        return [self.context.cast(self.builder, *pair, types.intp)
                for pair in zip(parts, kinds, strict=True)]  # fmt: skip

    def _entry(self, name: str, kind: Any, indices: list[Any], resty: Any) -> Any:
        """An entry of an array, or a part of it."""
        if kind.layout == "F" or len(indices) > kind.ndim:
            return None
        array = take_apart(self.builder, kind, self.peek(name)).parts
        place = self._address(kind, array, indices)
        if len(indices) == kind.ndim:
            value = load_item(self.context, self.builder, kind, place)
            return self.context.cast(self.builder, value, kind.dtype, resty)
        taken, rest = len(indices), array[1 : 1 + kind.ndim]
        if not is_array(resty) or resty.layout != kind.layout:
            return None
        strides = [] if kind.layout == "C" else array[1 + kind.ndim + taken :]
        return Parts(resty, [place, *rest[taken:], *strides])

    def _address(self, kind: Any, array: Sequence[Any], indices: list[Any]) -> Any:
        builder, shape = self.builder, array[1 : 1 + kind.ndim]
        if kind.layout != "C":
            strides = array[1 + kind.ndim :]
            offset = builder.mul(strides[0], indices[0])
            for index, stride in zip(indices[1:], strides[1:], strict=False):
                offset = builder.add(offset, builder.mul(stride, index))
            return cgutils.pointer_add(builder, array[0], offset)
        offset = indices[0]
        for k in range(1, kind.ndim):
            offset = builder.mul(offset, shape[k])
            if k < len(indices):
                offset = builder.add(offset, indices[k])
        return builder.gep(array[0], [offset])

    def _set_item(self, inst: Any, index: str) -> None:
        kind, signature = self.typeof(inst.target.name), self.fndesc.calltypes[inst]
        given = self.typeof(inst.value.name)
        number = isinstance(given, types.Number | types.Boolean)
        if is_array(kind) and kind.layout != "F" and number:
            indices = self._indices(index)
            if indices is not None and len(indices) == kind.ndim:
                array = take_apart(self.builder, kind, self.peek(inst.target.name)).parts
                value = self.peek(inst.value.name)
                for wanted in (signature.args[2], kind.dtype):
                    value = self.context.cast(self.builder, value, given, wanted)
                    given = wanted
                place = self._address(kind, array, indices)
                store_item(self.context, self.builder, kind, value, place)
                return
        super().lower_inst(inst)

    def _operate(self, resty: Any, expr: Any) -> Any:
        """Write an operation of two numbers."""
        given = [self.typeof(each.name) for each in (expr.lhs, expr.rhs)]
        if not all(isinstance(kind, types.Number | types.Boolean) for kind in given):
            return None
        signature = self.fndesc.calltypes[expr]
        typing, sign = self.context.typing_context, expr.fn
        if expr.op == "inplace_binop":
            sign = expr.immutable_fn
        function = typing.resolve_value_type(sign)
        args = [self._cast_var(*each)
                for each in zip((expr.lhs, expr.rhs), signature.args, strict=True)]  # fmt: skip
        call = function.get_call_type(typing, signature.args, {})
        made = self.context.get_function(function, call)(self.builder, args)
        return self.context.cast(self.builder, made, signature.return_type, resty)

    def _build_tuple(self, resty: Any, expr: Any) -> Any:
        given = ((self.peek(each.name), self.typeof(each.name)) for each in expr.items)
        return Parts(resty, [self.context.cast(self.builder, *each, wanted)
                             for each, wanted in zip(given, resty.types, strict=True)])  # fmt: skip

    def _get_iterator(self, resty: Any, expr: Any) -> Any:
        kind, builder = self.typeof(expr.value.name), self.builder
        if is_array(kind) and fields(resty) is not None:
            place = cgutils.alloca_once(builder, _WORD)
            builder.store(_WORD(0), place)
            return Parts(resty, [place, self.peek(expr.value.name)])
        if not isinstance(kind, types.RangeType):
            return None
        begin, end, step = take_apart(builder, kind, self.peek(expr.value.name)).parts
        by = getattr(step, "constant", None)
        if by not in (1, -1):
            return None
        place, left = (cgutils.alloca_once(builder, begin.type) for _ in range(2))
        builder.store(begin, place)
        count, zero = builder.sub(*((end, begin) if by == 1 else (begin, end))), begin.type(0)
        count = builder.select(builder.icmp_signed(">", count, zero), count, zero)
        builder.store(count, left)
        return Parts(resty, [place, step, left])

    def _next(self, resty: Any, expr: Any) -> Any:
        kind, builder = self.typeof(expr.value.name), self.builder
        if fields(kind) is None:
            return None
        iterator = take_apart(builder, kind, self.peek(expr.value.name)).parts
        if isinstance(kind, types.ArrayIterator):
            return self._next_entry(resty, kind.array_type, *iterator)
        place, step, left = iterator
        count, value = builder.load(left), builder.load(place)
        builder.store(builder.sub(count, count.type(1), flags=["nsw"]), left)
        builder.store(builder.add(value, step), place)
        return Parts(resty, [value, builder.icmp_signed(">", count, count.type(0))])

    def _next_entry(self, resty: Any, kind: Any, place: Any, array: Any) -> Any:
        """The next entry of an array, if there is one."""
        builder, parts = self.builder, take_apart(self.builder, kind, array).parts
        index = builder.load(place)
        valid = builder.icmp_signed("<", index, parts[1])
        slot = cgutils.alloca_once(builder, self.context.get_value_type(kind.dtype))
        with builder.if_then(valid):
            entry = load_item(self.context, builder, kind, self._address(kind, parts, [index]))
            builder.store(entry, slot)
            builder.store(builder.add(index, _WORD(1), flags=["nsw"]), place)
        return Parts(resty, [builder.load(slot), valid])

    def _first(self, resty: Any, expr: Any) -> Any:
        return self._of_pair(resty, expr, 0)

    def _second(self, resty: Any, expr: Any) -> Any:
        return self._of_pair(resty, expr, 1)

    def _of_pair(self, resty: Any, expr: Any, k: int) -> Any:
        kind = self.typeof(expr.value.name)
        value = take_apart(self.builder, kind, self.peek(expr.value.name)).parts[k]
        wanted = kind.second_type if k else kind.first_type
        return self.context.cast(self.builder, value, wanted, resty)

    def _exhaust(self, resty: Any, expr: Any) -> Any:
        kind = self.typeof(expr.value.name)
        if isinstance(kind, types.BaseTuple):
            return self.context.cast(self.builder, self.peek(expr.value.name), kind, resty)
        return None

    _own: dict[str, Callable[..., Any]] = {  # noqa: RUF012
        "binop": _operate,
        "inplace_binop": _operate,
        "getattr": _get_attribute,
        "static_getitem": _get_static_item,
        "getitem": _get_item,
        "build_tuple": _build_tuple,
        "exhaust_iter": _exhaust,
        "getiter": _get_iterator,
        "iternext": _next,
        "pair_first": _first,
        "pair_second": _second,
    }

    # Calls

    def _cast_var(self, var: Any, ty: Any) -> Any:
        if not isinstance(var, ir.Var):
            return super()._cast_var(var, ty)
        return self.context.cast(self.builder, self.peek(var.name), self.typeof(var.name), ty)

    def fold_call_args(self, *args: Any) -> Any:
        """Arguments of a call, whole."""
        folded = super().fold_call_args(*args)
        return [whole(self.context, self.builder, value) for value in folded]

    def _lower_call_normal(self, fnty: Any, expr: Any, signature: Any) -> Any:
        folded = super().fold_call_args(fnty, signature, expr.args, expr.vararg, expr.kws)
        if isinstance(fnty, types.NamedTupleClass):
            kinds = zip(folded, signature.args, signature.return_type.types, strict=True)
            return Parts(signature.return_type,
                         [self.context.cast(self.builder, *each) for each in kinds])  # fmt: skip
        if isinstance(fnty, types.Dispatcher):
            made = fnty.dispatcher.overloads.get(tuple(signature.args))
            if made is not None and getattr(made.library, "is_part", False):
                return self._call_part(made, folded)
        write = _IN_PARTS.get(fnty.typing_key) if isinstance(fnty, types.Function) else None
        if write is not None:
            made = write(self.context, self.builder, signature, folded)
            if made is not None:
                return made
        args = [whole(self.context, self.builder, value) for value in folded]
        if signature.recvr:
            args.insert(0, self.loadvar(expr.func.name))
        return self.context.get_function(fnty, signature)(self.builder, args, self.loc)

    def _call_part(self, made: Any, args: Sequence[Any]) -> Any:
        context, builder, fndesc = self.context, self.builder, made.fndesc
        context.add_linking_libs([made.library])
        kind = function_type(context, fndesc)
        function = cgutils.get_or_insert_function(self.module, kind, fndesc.mangled_name)
        result = cgutils.alloca_once(builder, kind.args[0].pointee)
        given = [leaf for each in zip(fndesc.argtypes, args, strict=True)
                 for leaf in spread(builder, *each)]  # fmt: skip
        if made.library.raises:
            exception = cgutils.alloca_once(builder, _EXCEPTION.pointee)
        else:
            exception = llvm.Constant(_EXCEPTION, None)
        code = builder.call(function, [result, exception, *given])
        if made.library.raises:
            status = self.call_conv._get_return_status(builder, code, builder.load(exception))
            with cgutils.if_unlikely(builder, status.is_error):
                self.call_conv.return_status_propagate(builder, status)
        leaves = (
            builder.load(builder.gep(result, [_CODE(0), _CODE(k)], inbounds=True))
            for k in range(len(kind.args[0].pointee.elements))
        )
        return gather(context, fndesc.restype, leaves)


def may_raise(block: Any) -> bool:
    """Whether a block ends a function with another code than success."""
    last = block.terminator
    if last is None or last.opname != "ret":
        return False
    (code,) = last.operands
    return not isinstance(code, llvm.Constant) or code.constant != 0


def variables(inst: Any) -> Iterator[str]:
    """Names of variables in a statement or an expression."""
    for each in inst.list_vars() if isinstance(inst, ir.Inst) else (inst,):
        if isinstance(each, ir.Var):
            yield each.name


class _Interpreter(Interpreter):
    """Reads bytecode; ends of `with` statements are not looked for."""

    def post_process(self, peepholes: Any, func_ir: Any) -> Any:
        """Rewrite the function."""
        used = [each for each in peepholes if each is not peep_hole_delete_with_exit]
        return super().post_process(used, func_ir)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Read(FunctionPass):
    """From bytecode to statements."""

    _name = "holdfast_read"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Read the function."""
        state["func_ir"] = _Interpreter(state["func_id"]).interpret(state["bc"])
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _AssignOnce(FunctionPass):
    """Static single assignment."""

    _name = "holdfast_assign_once"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Rewrite the function."""
        found = state.func_ir
        found.blocks = canonicalize_cfg(found.blocks)
        found.generator_info = None
        state.func_ir = reconstruct_ssa(found)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _WithoutPhis(PreLowerStripPhis):
    """Assignments in the place of phi nodes."""

    _name = "holdfast_without_phis"

    def run_pass(self, state: Any) -> bool:
        """Rewrite the function."""
        state.func_ir = self._strip_phi_nodes(state.func_ir)
        state.func_ir._definitions = build_definitions(state.func_ir.blocks)
        state.type_annotation = None
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _Lowering(BaseNativeLowering):
    """From typed statements to LLVM."""

    _name = "holdfast_lowering"

    @property
    def lowering_class(self) -> Any:
        """What does it."""
        return KernelLower

    def run_pass(self, state: Any) -> bool:
        """Write the function; parts get short names, which do not tell the types of arguments."""
        if not state.library.is_part:
            return super().run_pass(state)
        state.targetctx.mangler = _short_name
        try:
            return super().run_pass(state)
        finally:
            del state.targetctx.mangler


def _short_name(name: str, _types: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
    """A name of a function that no other module can see; its number is unique in a process."""
    return default_mangler(name, (), abi_tags=(), uid=uid)


def passes() -> PassManager:
    """What a kernel goes through."""
    made = PassManager("holdfast")
    for each in (_Read, FixupArgs, _AssignOnce, NopythonTypeInference, _WithoutPhis,
                 _Lowering, NoPythonBackend):  # fmt: skip
        made.add_pass(each, each.__name__)
    made.finalize()
    return made
