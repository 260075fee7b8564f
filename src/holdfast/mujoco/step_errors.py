"""Errors of steps that could not be taken: which bodies, joints or coordinates, by name."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from holdfast.contact.arrays import SolveStatus
from holdfast.errors import InputError, SolveError, UnsupportedError
from holdfast.mujoco import smooth
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.constraints import Kind
from holdfast.mujoco.contacts import name_of
from holdfast.mujoco.outcome import Outcome


def diverged(model: Any, data: Any, velocity: np.ndarray) -> tuple[str, int, int]:
    """Which coordinate is out of bounds, or the fastest: in words, MuJoCo's warning, its number."""
    kinds = mujoco.mjtWarning
    for name, values, kind in (
        ("qpos", data.qpos, kinds.mjWARN_BADQPOS), ("qvel", data.qvel, kinds.mjWARN_BADQVEL),
        ("the velocity after the step", velocity, kinds.mjWARN_BADQACC),
        ("act", data.act, kinds.mjWARN_BADQACC),
        ("qacc_smooth", data.qacc_smooth, kinds.mjWARN_BADQACC),
    ):  # fmt: skip
        bad = np.flatnonzero(~(np.abs(values) <= smooth.LARGEST))
        if bad.size:
            i = int(bad[0])
            who = _who_has(model, name, i)
            return f"{name}[{i}] is {values[i]:.3g} ({who})", int(kind), i
    if not data.qvel.size:
        return "a number is out of bounds", int(kinds.mjWARN_BADQACC), 0
    i = int(np.abs(data.qvel).argmax())
    text = f"qvel[{i}] is {data.qvel[i]:.3g} ({_who_has(model, 'qvel', i)})"
    return f"{text}, and no certified motion was found", int(kinds.mjWARN_BADQVEL), i


def raise_memory_full(data: Any) -> NoReturn:
    """Raise the error of a step in which MuJoCo had no memory for all contacts."""
    raise UnsupportedError("size/memory", "is too small for the contacts of this step, and "
                           f"MuJoCo has left some out: {data.narena} bytes; increase "
                           '<size memory="..."/> in the model')  # fmt: skip


def raise_unsolved(model: Any, outcome: Outcome, status: SolveStatus, residual: float) -> NoReturn:
    """Raise the error of a step whose solve has failed."""
    try:
        problem = outcome.problem()
    except InputError as error:  # what MuJoCo has listed is no problem: say that, too
        raise SolveError(
            f"no motion was found: {error}; {_who(model, outcome)}", status=status,
            problem=None,
        ) from error  # fmt: skip
    raise SolveError(
        f"no certified motion was found ({status.name}, residual {residual:.1e}); "
        f"{_who(model, outcome)}",
        status=status, problem=problem,
    )  # fmt: skip


def _who_has(model: Any, name: str, i: int) -> str:
    """The joint and body, or the actuator, that entry i of qpos, of a velocity or of act is of."""
    if name == "act":
        return "actuator " + name_of(model, "actuator", _last_at(model.actuator_actadr, i))
    joint = _last_at(model.jnt_qposadr, i) if name == "qpos" else int(model.dof_jntid[i])
    body = name_of(model, "body", int(model.jnt_bodyid[joint]))
    return f"joint {name_of(model, 'jnt', joint)} of body {body}"


def _last_at(addresses: np.ndarray, i: int) -> int:
    """Number of the entry with the largest address that is not beyond i."""
    reached = np.flatnonzero((addresses >= 0) & (addresses <= i))
    return int(reached[np.argmax(addresses[reached])])


def _who(model: Any, outcome: Outcome) -> str:
    """The bodies and joints of a problem, by name."""
    pairs = [
        " and ".join(name_of(model, "body", int(b)) for b in outcome.bodies[k])
        for k in np.flatnonzero(outcome.kind == Kind.CONTACT)
    ]
    named = ", ".join(list(dict.fromkeys(pairs))[:4]) or "no contacts"
    others = [f"{np.count_nonzero(outcome.kind == kind)} {text}" for kind, text in (
        (Kind.EQUALITY, "equality rows"), (Kind.LIMIT, "limits"),
        (Kind.FRICTION, "rows of dry friction"),
    ) if np.any(outcome.kind == kind)]  # fmt: skip
    return f"contacts between {named}" + (f"; {', '.join(others)}" if others else "")
