"""MuJoCo's structs as records for compiled code: mjData, mjContact and mjOption.

An attribute of `mujoco.MjData` makes an array at each access, which costs more than a small step
spends on contact. Kernels get the address of a struct instead and read its fields by name,
``d.ncon``; a field that is a pointer is an address, and ``floats(d.qvel, 1, nv)`` the array there.

The layout comes from the description of the structs in the package `mujoco`. A description is not
evidence: every field that is used is compared with the attribute of the same name, once, when the
first stepper is made. A MuJoCo that fails this check is refused by name.
"""

# pyright: reportAttributeAccessIssue=false, reportRedeclaration=false, reportCallIssue=false
# (Numba's configuration and intrinsics have no types.)

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numba import from_dtype, types
from numba.core.cgutils import raw_memcpy
from numba.extending import intrinsic

from holdfast._jit import COMPILED
from holdfast._lowering import Parts
from holdfast.errors import UnsupportedError
from holdfast.mujoco._mj import mujoco, without_callbacks

_TYPES = {
    "mjtNum": ctypes.c_double,
    "int": ctypes.c_int,
    "mjtSize": ctypes.c_int64,
    "mjtBool": ctypes.c_bool,
    "size_t": ctypes.c_size_t,
    "uintptr_t": ctypes.c_size_t,
    "uint64_t": ctypes.c_uint64,
}

COUNTS = ("ncon", "ne", "nf", "nl", "nefc", "efm_active", "nefmT", "nefmA", "nv_awake")
FLAGS = ("flg_energypos", "flg_energyvel", "flg_subtreevel", "flg_rnepost")
ARRAYS = (
    "qpos", "qvel", "act", "qacc", "qacc_warmstart", "qacc_smooth", "qfrc_smooth",
    "qfrc_passive", "qfrc_bias", "qfrc_actuator", "qfrc_applied", "xfrc_applied",
    "qfrc_constraint", "qfrc_spring", "qfrc_gravcomp", "M", "qDeriv", "cdof", "cvel", "cinert",
    "xpos", "xipos", "xquat", "geom_xpos", "geom_xmat", "subtree_com", "mocap_pos", "mocap_quat",
    "sensordata", "efc_type", "efc_id", "efc_J", "efc_J_rowadr", "efc_J_rownnz", "efc_J_colind",
    "efc_pos", "efc_vel", "efc_aref", "efc_KBIP", "efc_R", "efc_frictionloss", "efc_force", "efm_c",
    "efm_ca", "efm_diag", "efm_fluid", "efm_tid", "efm_ts", "efm_aid", "efm_as", "ten_J",
    "ten_length", "moment_rownnz", "moment_rowadr", "moment_colind", "actuator_moment",
    "tree_awake",
)  # fmt: skip
CONTACT_FIELDS = (
    "dist", "pos", "frame", "includemargin", "friction", "dim", "geom", "exclude", "efc_address",
)  # fmt: skip
OPTIONS = ("timestep", "gravity", "o_margin", "integrator", "cone", "jacobian", "solver",
           "noslip_iterations", "disableflags", "enableflags", "ccd_tolerance",
           "ccd_iterations")  # fmt: skip

# Warnings of MuJoCo about memory that does not suffice for contacts, or for their rows.
FULL = (int(mujoco.mjtWarning.mjWARN_CONTACTFULL), int(mujoco.mjtWarning.mjWARN_CNSTRFULL))

_PROBE = """<mujoco><option jacobian="sparse" integrator="discrete" density="2" viscosity="1"/>
  <worldbody>
  <geom type="plane" size="1 1 1"/><body mocap="true" pos="3 0 1"><geom size=".1"/></body>
  <body pos="0 0 .09"><freejoint/><geom size=".1"/><body pos="0 0 1">
    <joint name="j" frictionloss="1" limited="true" range="1 2" damping="1" stiffness="2"/>
    <geom size=".1"/></body></body>
  </worldbody><equality><joint joint1="j"/></equality>
  <tendon><fixed name="t" damping="3" stiffness="4"><joint joint="j" coef="2"/></fixed></tendon>
  <actuator><position joint="j" kp="3"/><general joint="j" dyntype="integrator"/></actuator>
  <sensor><jointpos joint="j"/></sensor></mujoco>"""


@cache
def structure(name: str) -> Any:
    """A struct of MuJoCo as a ctypes structure; None if its description has gaps."""
    try:
        from mujoco.introspect.structs import STRUCTS

        described: Any = STRUCTS[name].fields
    except (ImportError, KeyError):
        return None
    fields = []
    for field in described:
        kind = _type(str(field.type))
        if kind is None:
            return None
        fields.append((field.name, kind))
    return type(name, (ctypes.Structure,), {"_fields_": fields})


def _type(text: str) -> Any:
    if text.endswith("*"):
        return ctypes.c_void_p
    name, _, count = text.partition(" [")
    kind: Any = _TYPES.get(name) or structure(name)
    if kind is None or not count:
        return kind
    return kind * int(count[:-1])


def _record(name: str, fields: tuple[str, ...]) -> np.dtype:
    """Some fields of a struct as a NumPy dtype; pointers are integers."""
    layout = structure(name)
    if layout is None or any(not hasattr(layout, field) for field in fields):
        return np.dtype([(field, np.int64) for field in fields])  # `verify` refuses it
    kinds: dict[str, Any] = dict(layout._fields_)
    formats = [
        np.dtype(np.int64) if kinds[field] is ctypes.c_void_p else np.dtype(kinds[field])
        for field in fields
    ]
    offsets = [getattr(layout, field).offset for field in fields]
    size = ctypes.sizeof(layout)
    return np.dtype(
        {"names": list(fields), "formats": formats, "offsets": offsets, "itemsize": size}
    )


DATA = _record("mjData", COUNTS + FLAGS + ("time",) + ARRAYS + ("contact",))
CONTACT = _record("mjContact", CONTACT_FIELDS)
OPTION = _record("mjOption", OPTIONS)
CONTACT_SIZE = CONTACT.itemsize
_WARNING = getattr(structure("mjData"), "warning", None)
WARNING_AT = 0 if _WARNING is None else int(_WARNING.offset)


class Fields:
    """The fields of a record as attributes; `numpy.record` has some names of its own."""

    __slots__ = ("_record",)

    def __init__(self, record: Any) -> None:
        object.__setattr__(self, "_record", record)

    def __getattr__(self, name: str) -> Any:
        return self._record[name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._record[name] = value


def record_reader(dtype: np.dtype) -> Any:
    """A function for kernels that returns the record of this dtype at an address."""
    if not COMPILED:

        def at(address: int) -> Any:
            there: Any = (ctypes.c_char * dtype.itemsize).from_address(int(address))
            return Fields(np.ndarray((1,), dtype=dtype, buffer=there)[0])

        return at
    kind: Any = from_dtype(dtype)

    def _at(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(kind))

        return kind(types.int64), codegen

    return intrinsic(_at)


data_at: Any = record_reader(DATA)
contact_at: Any = record_reader(CONTACT)
option_at: Any = record_reader(OPTION)


def plain_view(address: int, rows: int, columns: int, kind: Any) -> np.ndarray:
    """Return the array (rows, columns) of a ctypes kind at an address; not for kernels."""
    if rows * columns == 0:
        return np.zeros((int(rows), int(columns)), dtype=kind)
    there = (kind * int(rows * columns)).from_address(int(address))
    return np.ctypeslib.as_array(there).reshape(int(rows), int(columns))


def plain_floats(address: int, rows: int, columns: int) -> np.ndarray:
    """Return the array (rows, columns) of doubles at an address."""
    return plain_view(address, rows, columns, ctypes.c_double)


def plain_words(address: int, rows: int, columns: int) -> np.ndarray:
    """Return the array (rows, columns) of 64-bit integers at an address."""
    return plain_view(address, rows, columns, ctypes.c_int64)


if not COMPILED:
    floats: Any = plain_floats
    words: Any = plain_words

    def integers(address: int, rows: int, columns: int) -> np.ndarray:
        """Return the array (rows, columns) of 32-bit integers at an address."""
        return plain_view(address, rows, columns, ctypes.c_int32)

    def booleans(address: int, rows: int, columns: int) -> np.ndarray:
        """Return the array (rows, columns) of booleans at an address."""
        return plain_view(address, rows, columns, ctypes.c_bool)

    def singles(address: int, rows: int, columns: int) -> np.ndarray:
        """Return the array (rows, columns) of single-precision numbers at an address."""
        return plain_view(address, rows, columns, ctypes.c_float)

    def copy(target: int, source: int, size: int) -> None:
        """Copy so many bytes from one address to another."""
        ctypes.memmove(int(target), int(source), int(size))

else:  # as intrinsics, because a kernel without reference counting cannot return a new array

    def _view(kind: Any) -> Any:
        whole = types.int64
        array = types.Array(kind, 2, "C")

        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            entry = context.get_data_type(kind)
            return Parts(array, [builder.inttoptr(args[0], entry.as_pointer()), *args[1:]])

        return array(whole, whole, whole), codegen

    def _floats(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of doubles at an address."""
        return _view(types.float64)

    def _integers(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of 32-bit integers at an address."""
        return _view(types.int32)

    def _words(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of 64-bit integers at an address."""
        return _view(types.int64)

    def _booleans(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of booleans at an address."""
        return _view(types.boolean)

    def _singles(typingctx: Any, address: Any, rows: Any, columns: Any) -> Any:
        """Return the array (rows, columns) of single-precision numbers at an address."""
        return _view(types.float32)

    def _copy(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
        """Copy so many bytes from one address to another."""

        def codegen(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            pointer = context.get_data_type(types.uint8).as_pointer()
            to, of = (builder.inttoptr(each, pointer) for each in args[:2])
            raw_memcpy(builder, to, of, args[2], 1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, types.int64), codegen

    floats: Any = intrinsic(_floats)
    integers: Any = intrinsic(_integers)
    words: Any = intrinsic(_words)
    booleans: Any = intrinsic(_booleans)
    singles: Any = intrinsic(_singles)
    copy: Any = intrinsic(_copy)


@cache
def verify() -> None:
    """Compare the records with what the attributes of a probe say.

    Raises:
        UnsupportedError: they differ, or MuJoCo does not describe its structs.
    """
    wrong = [*_wrong_options(), *_wrong_data()]
    if wrong:
        raise UnsupportedError(
            "mujoco", f"{mujoco.__version__} lays out {', '.join(sorted(set(wrong))[:5])} in a way "
            "that this version does not know; install mujoco 4.0"
        )  # fmt: skip


def _wrong_options() -> list[str]:
    """Options that do not stand where the layout says: each is changed and looked up."""
    layout = structure("mjOption")
    if layout is None:
        return ["mjOption"]
    with without_callbacks():
        model = mujoco.MjModel.from_xml_string("<mujoco/>")
    options, wrong = layout.from_address(option_address(model)), []
    for value, (name, kind) in enumerate(layout._fields_, start=1):
        if kind in (ctypes.c_double, ctypes.c_int):
            setattr(model.opt, name, value)
            found = [getattr(options, name)]
        else:
            getattr(model.opt, name)[:] = value
            found = list(getattr(options, name))
        wrong += [f"mjOption.{name}"] * any(each != value for each in found)
    return wrong


def _wrong_data() -> list[str]:
    """Fields of mjData and mjContact that are not what the attributes show."""
    layout, of_contact = structure("mjData"), structure("mjContact")
    with without_callbacks():
        model = mujoco.MjModel.from_xml_string(_PROBE)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
    if layout is None or of_contact is None or not hasattr(data, "_address"):
        return ["mjData"]
    found, contact = layout.from_address(data._address), data.contact
    wrong = [f for f in COUNTS if not getattr(found, f) == getattr(data, f) > 0]
    for kind in FULL:
        data.warning[kind].number = 7 + kind
        wrong += ["warning"] * (found.warning[kind].number != 7 + kind)
    for k, name in enumerate(FLAGS):
        setattr(data, name, k % 2 == 0)
    wrong += [name for k, name in enumerate(FLAGS) if getattr(found, name) is not (k % 2 == 0)]
    data.time = 0.25
    wrong += ["time"] * (found.time != data.time)
    for name in ARRAYS:
        array = getattr(data, name)
        wrong += [name] * (array.size == 0 or getattr(found, name) != array.ctypes.data)
    begin = contact.dist.ctypes.data - of_contact.dist.offset
    wrong += ["contact"] * (found.contact != begin or contact.dist.strides != (CONTACT_SIZE,))
    for name in CONTACT_FIELDS:
        each: Any = getattr(contact, name)
        kind = np.int32 if name in ("dim", "geom", "exclude", "efc_address") else np.float64
        true = each.ctypes.data == begin + getattr(of_contact, name).offset and each.dtype == kind
        wrong += [f"mjContact.{name}"] * (not true)
    return wrong


def option_address(model: Any) -> int:
    """Address of the options of a model, from that of an array within."""
    layout = structure("mjOption")
    return model.opt.gravity.ctypes.data - layout.gravity.offset
