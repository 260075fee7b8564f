"""Where MuJoCo keeps what a step reads and writes: addresses, and arrays at them.

An attribute of `mujoco.MjData` makes an array at each access, and handing an array to a compiled
kernel costs as much again; with thirty of them a small step would spend more time on arrays than
on contact. So the kernels of the usual step get addresses of fields in the struct mjData, and find
the arrays themselves. Where a field stands, MuJoCo's own description of the struct says; it is
believed only if it agrees with the attributes. Otherwise steps take the way through attributes.
"""

# pyright: reportAttributeAccessIssue=false, reportRedeclaration=false, reportCallIssue=false
# (Numba's configuration and intrinsics have no types.)

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from llvmlite.ir import FunctionType, VoidType
from numba import types
from numba.core.cgutils import raw_memcpy
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from holdfast._jit import COMPILED, entry, kernel
from holdfast.mujoco._layout import structure
from holdfast.mujoco._mj import mujoco, without_callbacks

# Fields of mjData, by their place among the addresses that kernels get: counts, then arrays.
COUNTS = ("ncon", "ne", "nf", "nl", "nefc", "warning", "flg_energypos")
ARRAYS = (
    "qpos", "qvel", "qacc", "qacc_warmstart", "qfrc_smooth", "qfrc_constraint", "M", "qDeriv",
    "cvel", "geom_xpos", "subtree_com", "efc_J", "efc_J_rowadr", "efc_J_rownnz", "efc_J_colind",
    "efc_pos", "efc_frictionloss", "efc_force", "contact",
)  # fmt: skip
NCON, NE, NF, NL, NEFC, WARNING, KNOWN = range(len(COUNTS))
(QPOS, QVEL, QACC, WARMSTART, SMOOTH, CONSTRAINT, M, DERIVATIVE, CVEL, GEOM_XPOS, SUBTREE_COM,
 EFC_J, EFC_BEGIN, EFC_LENGTH, EFC_COLUMN, EFC_POS, EFC_LOSS, EFC_FORCE,
 CONTACT) = range(7, 7 + len(ARRAYS))  # fmt: skip

# Fields of mjContact, by their place among the offsets that kernels get.
CONTACT_FIELDS = (
    "dist", "pos", "frame", "includemargin", "friction", "dim", "geom", "exclude", "efc_address",
)  # fmt: skip
DIST, POS, FRAME, MARGIN, FRICTION, DIM, GEOM, EXCLUDE, ADDRESS, STRIDE = range(10)

# What MuJoCo has worked out for a state when somebody asked, and does not work out again: flags,
# side by side from KNOWN on. A step begins with none of it.
ASKED_FOR = ("flg_energypos", "flg_energyvel", "flg_subtreevel", "flg_rnepost")

# MuJoCo's warnings about memory that does not suffice for contacts, or for their rows.
FULL = (int(mujoco.mjtWarning.mjWARN_CONTACTFULL), int(mujoco.mjtWarning.mjWARN_CNSTRFULL))

_PROBE = """<mujoco><option jacobian="sparse"/><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .09"><freejoint/><geom size=".1"/><body pos="0 0 1">
    <joint name="j" frictionloss="1" limited="true" range="1 2"/><geom size=".1"/></body></body>
  </worldbody><equality><joint joint1="j"/></equality></mujoco>"""

if not COMPILED:

    def _array(address: int, rows: int, columns: int, kind: Any) -> np.ndarray:
        there = (kind * int(rows * columns)).from_address(int(address))
        return np.ctypeslib.as_array(there).reshape(rows, columns)

    def floats(address: int, rows: int, columns: int) -> np.ndarray:
        """Return the array (rows, columns) of doubles at an address."""
        return _array(address, rows, columns, ctypes.c_double)

    def integers(address: int, rows: int, columns: int) -> np.ndarray:
        """Return the array (rows, columns) of 32-bit integers at an address."""
        return _array(address, rows, columns, ctypes.c_int32)

    def words(address: int, rows: int, columns: int) -> np.ndarray:
        """Return the array (rows, columns) of 64-bit integers at an address."""
        return _array(address, rows, columns, ctypes.c_int64)

    def booleans(address: int, rows: int, columns: int) -> np.ndarray:
        """Return the array (rows, columns) of booleans at an address."""
        return _array(address, rows, columns, ctypes.c_bool)

    def word(address: int) -> int:
        """Return the 64-bit integer at an address."""
        return int(_array(address, 1, 1, ctypes.c_int64)[0, 0])

    def call(function: int, model: int, data: int) -> None:
        """Call a function of MuJoCo's, at an address, with a model and data."""
        ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(int(function))(model, data)

    def call_state(function: int, model: int, data: int, state: int, kind: int) -> None:
        """The same with the address of a state and which one it is."""
        pointer = ctypes.c_void_p
        made = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_int)(int(function))
        made(model, data, state, kind)

    def call_flag(function: int, model: int, data: int, flag: int) -> None:
        """The same with an integer."""
        pointer = ctypes.c_void_p
        ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_int)(int(function))(model, data, flag)

    def call_batch(function: int, batch: int, callee: int, argument: int) -> None:
        """Call `mjb_apply`, at an address, for the only simulation of a batch."""
        pointer, whole = ctypes.c_void_p, ctypes.c_int
        kinds = (pointer, pointer, whole, pointer, pointer, whole)
        ctypes.CFUNCTYPE(whole, *kinds)(int(function))(batch, None, 1, callee, argument, 0)

    def copy(target: int, source: int, size: int) -> None:
        """Copy so many bytes from one address to another."""
        ctypes.memmove(int(target), int(source), int(size))

    def call_integrate(function: int, model: int, qpos: int, qvel: int, h: float) -> None:
        """The same with the addresses of a position and a velocity, and a time."""
        pointer = ctypes.c_void_p
        made = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, ctypes.c_double)(int(function))
        made(model, qpos, qvel, h)

else:  # as intrinsics, because a kernel without reference counting cannot return a new array

    def _array(kind: Any) -> Any:
        whole = types.int64
        array = types.Array(kind, 2, "C")

        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            entry = context.get_data_type(kind)
            data = builder.inttoptr(args[0], entry.as_pointer())
            size = context.get_constant(whole, context.get_abi_sizeof(entry))
            made = make_array(array)(context, builder)
            populate_array(
                made, data, shape=args[1:], strides=[builder.mul(args[2], size), size],
                itemsize=size, meminfo=None,
            )  # fmt: skip
            return made._getvalue()

        return array(whole, whole, whole), codegen

    def _floats(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of doubles at an address."""
        return _array(types.float64)

    def _integers(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of 32-bit integers at an address."""
        return _array(types.int32)

    def _words(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of 64-bit integers at an address."""
        return _array(types.int64)

    def _booleans(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of booleans at an address."""
        return _array(types.boolean)

    def _word(typingctx: Any, address: Any) -> Any:
        """Return the 64-bit integer at an address."""

        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = context.get_data_type(types.int64).as_pointer()
            return builder.load(builder.inttoptr(args[0], pointer))

        return types.int64(types.int64), codegen

    def _copy(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
        """Copy so many bytes from one address to another."""

        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = context.get_data_type(types.uint8).as_pointer()
            to, of = (builder.inttoptr(each, pointer) for each in args[:2])
            raw_memcpy(builder, to, of, args[2], 1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    def _calls(*kinds: Any) -> Any:
        """A call of the function at the first argument with the others, of these kinds."""

        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            given = [context.get_value_type(kind) for kind in kinds]
            pointer = FunctionType(VoidType(), given).as_pointer()
            builder.call(builder.inttoptr(args[0], pointer), args[1:])
            return context.get_dummy_value()

        return types.void(types.int64, *kinds), codegen

    def _call(typingctx: Any, function: Any, model: Any, data: Any) -> Any:
        """Call a function of MuJoCo's, at an address, with a model and data."""
        return _calls(types.int64, types.int64)

    def _call_state(typingctx: Any, function: Any, model: Any, data: Any, state: Any,
                    kind: Any) -> Any:  # fmt: skip
        """The same with the address of a state and which one it is."""
        return _calls(types.int64, types.int64, types.int64, types.int32)

    def _call_flag(typingctx: Any, function: Any, model: Any, data: Any, flag: Any) -> Any:
        """The same with an integer."""
        return _calls(types.int64, types.int64, types.int32)

    def _call_batch(typingctx: Any, function: Any, batch: Any, callee: Any, argument: Any) -> Any:
        """Call `mjb_apply`, at an address, for the only simulation of a batch."""
        kinds = (types.int64, types.int64, types.int32, types.int64, types.int64, types.int32)
        _, made = _calls(*kinds)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            none, one, zero = (
                context.get_constant(kind, value)
                for kind, value in ((types.int64, 0), (types.int32, 1), (types.int32, 0))
            )
            given = args[0], args[1], none, one, args[2], args[3], zero
            return made(context, builder, signature, given)

        return types.void(*[types.int64] * 4), codegen

    def _call_integrate(typingctx: Any, function: Any, model: Any, qpos: Any, qvel: Any,
                        h: Any) -> Any:  # fmt: skip
        """The same with the addresses of a position and a velocity, and a time."""
        return _calls(types.int64, types.int64, types.int64, types.float64)

    floats: Any = intrinsic(_floats)
    integers: Any = intrinsic(_integers)
    words: Any = intrinsic(_words)
    booleans: Any = intrinsic(_booleans)
    word: Any = intrinsic(_word)
    call: Any = intrinsic(_call)
    call_state: Any = intrinsic(_call_state)
    call_flag: Any = intrinsic(_call_flag)
    call_batch: Any = intrinsic(_call_batch)
    call_integrate: Any = intrinsic(_call_integrate)
    copy: Any = intrinsic(_copy)


@kernel
def count(places: np.ndarray, field: int) -> int:
    """Return the value of one of COUNTS."""
    return np.int64(integers(places[field], 1, 1)[0, 0])  # pyright: ignore[reportReturnType]


@kernel
def warnings_of(places: np.ndarray) -> int:
    """Return how often memory did not suffice for contacts or rows, see `FULL`."""
    total = 0
    for kind in FULL:  # each has two numbers: what it was about, and how often
        total += integers(places[WARNING] + 8 * kind + 4, 1, 1)[0, 0]
    return total


@kernel
def forget(places: np.ndarray) -> None:
    """Mark as unknown what was worked out for an earlier state."""
    known = booleans(places[KNOWN], 1, len(ASKED_FOR))[0]
    for k in range(known.shape[0]):
        known[k] = False


@entry
def copy_segments(segments: np.ndarray) -> None:
    """Copy stretches of memory, (k, 3): target, source, size [bytes]."""
    for k in range(segments.shape[0]):
        copy(segments[k, 0], segments[k, 1], segments[k, 2])


_UNKNOWN = np.zeros(0, dtype=np.int64), np.array([0] * len(CONTACT_FIELDS) + [64])


class Memory:
    """Addresses of the fields of mjData, and offsets of those of mjContact.

    Attributes:
        known: whether they are; otherwise there are no places.
        contact: offsets of CONTACT_FIELDS within the struct, then its size [bytes].
    """

    def __init__(self) -> None:
        offsets = _offsets()
        self.known = offsets is not None
        self._offsets, self.contact = offsets or _UNKNOWN
        self._places, self._address = self._offsets, 0

    def places(self, data: Any) -> np.ndarray:
        """Address of each of COUNTS and ARRAYS."""
        address = data._address
        if address != self._address:
            self._places, self._address = self._offsets + address, address
        return self._places


@cache
def _offsets() -> tuple[np.ndarray, np.ndarray] | None:
    """Offsets in mjData and in mjContact, if what MuJoCo says of them is so."""
    layout, of_contact = structure("mjData"), structure("mjContact")
    with without_callbacks():
        model = mujoco.MjModel.from_xml_string(_PROBE)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
    if layout is None or of_contact is None or not hasattr(data, "_address"):
        return None
    found, contact = layout.from_address(data._address), data.contact
    begin = contact.dist.ctypes.data - of_contact.dist.offset
    true = [getattr(found, name) == getattr(data, name) > 0 for name in COUNTS[:WARNING]]
    for kind in FULL:
        data.warning[kind].number = 7 + kind
        true += [found.warning[kind].number == 7 + kind]
    for k, name in enumerate(ASKED_FOR):
        setattr(data, name, k % 2 == 0)
        true += [getattr(layout, name).offset == getattr(layout, ASKED_FOR[0]).offset + k]
    true += [getattr(found, name) is (k % 2 == 0) for k, name in enumerate(ASKED_FOR)]
    true += [getattr(found, name) == getattr(data, name).ctypes.data for name in ARRAYS[:-1]]
    true += [found.contact == begin, contact.dist.strides == (ctypes.sizeof(of_contact),)]
    for name in CONTACT_FIELDS:
        each: Any = getattr(contact, name)
        true += [each.ctypes.data == begin + getattr(of_contact, name).offset]
        true += [each.dtype == (np.int32 if name in CONTACT_FIELDS[DIM:] else np.float64)]
    if not all(true):
        return None
    offsets = [getattr(layout, name).offset for name in COUNTS + ARRAYS]
    within = [getattr(of_contact, name).offset for name in CONTACT_FIELDS]
    return np.array(offsets), np.array([*within, ctypes.sizeof(of_contact)])
