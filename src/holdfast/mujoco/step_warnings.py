"""Warnings of steps that were taken: overlap, missed certificates, undeclared friction."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.contact.arrays import SolveStatus
from holdfast.contact.certificate import law_residuals
from holdfast.errors import FrictionWarning, InputError, StepWarning
from holdfast.mujoco import smooth
from holdfast.mujoco.constraints import Kind
from holdfast.mujoco.contacts import Contacts, name_of
from holdfast.mujoco.memory import StepMemory
from holdfast.mujoco.options import StepOptions
from holdfast.mujoco.outcome import Outcome

Tell = Callable[[str, type[Warning], Any], None]  # warns of something: text, category, about what

_PACKAGE = str(Path(__file__).parents[1])


def report(memory: StepMemory, copy_outcome: Callable[[], Outcome], options: StepOptions,
           tell: Tell) -> None:  # fmt: skip
    """Say what a step that was taken has to say, except of friction."""
    if memory._get("integrator") == smooth.RK4 and not memory._get("told_rk4"):
        memory._set(told_rk4=1)
        tell("the integrator RK4 has no stages where bodies touch: steps with contact are taken "
             "at velocity level, as with Euler", StepWarning, "rk4")  # fmt: skip
    hopeless = memory._get("overlaps") > 0 or memory._get("stuck") >= options.hopeless_after
    if hopeless and not memory._get("told_overlap"):
        memory._set(told_overlap=1)
        pair = _deepest_pair(memory.private.user, copy_outcome())
        tell(f"{pair} overlap, and no motion removes it; it is left", StepWarning, "overlap")
    if memory._get("solve_status") == SolveStatus.APPROXIMATE and not memory._get(
        "told_uncertified"
    ):
        memory._set(told_uncertified=1)
        pair = _least_certain_pair(memory.private.user, copy_outcome())
        tell(f"a step obeys the laws of contact within {memory._get('residual'):.1e} only, most of "
             f"it between {pair}; stepper.uncertified_steps counts such steps", StepWarning,
             "uncertified")  # fmt: skip


def _deepest_pair(model: Any, outcome: Outcome) -> str:
    contacts = np.flatnonzero(outcome.kind == Kind.CONTACT)
    if not contacts.size:
        return "joints"
    return _names(model, outcome.geom[contacts[np.argmin(outcome.gap[contacts])]])


def _least_certain_pair(model: Any, outcome: Outcome) -> str:
    """The geoms of the contact whose law is missed by most."""
    if not outcome.contacts.size:
        return "joints"
    try:
        worst = np.argmax(law_residuals(outcome.solution))
    except InputError:  # an inertia that is lost in rounding, say, as bodies are very far away
        return "bodies whose rows or inertia are no problem of contact"
    return _names(model, outcome.geom[outcome.contacts[worst]])


def _names(model: Any, pair: np.ndarray) -> str:
    names = [name_of(model, "geom", int(g)) for g in pair]
    return f"{names[0]} and {names[1]}"


def warn_of_friction(memory: StepMemory, outcome: Outcome, options: StepOptions,
                     tell: Tell) -> None:  # fmt: skip
    """Warn about pairs that need more friction than the model declares, once each."""
    model, warned = memory.private.user, memory._keep["warned"]
    table = Contacts.of(model, outcome, memory._laws)
    new, texts = [], []
    bodies = {tuple(table.bodies[i]): np.sort(outcome.bodies[k])
              for i, k in enumerate(outcome.contacts)}  # fmt: skip
    for pair, (need, declared) in table.pairs("stick").items():
        numbers = bodies[pair]
        if (
            need > declared * (1 + options.friction_excess)
            and not (warned == numbers).all(axis=1).any()
        ):
            new.append(numbers)
            names = [name_of(model, "body", int(body)) for body in numbers]
            texts.append(f"{names[0]} and {names[1]} hold on unlimited friction: they need a "
                         f"coefficient of {need:.3g}, the model declares "
                         f"{declared:.3g}")  # fmt: skip
    if new:
        memory._set(nwarned=0)
        memory._put(warned=np.vstack([warned, new]).astype(np.int64))
        memory._set(nwarned=len(memory._keep["warned"]))
    for text, numbers in zip(texts, new, strict=True):
        tell(text, FrictionWarning, tuple(numbers.tolist()))


def warn(text: str, kind: type[Warning]) -> None:
    """Warn where the user's own code calls us."""
    frame, count = sys._getframe(0), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, count = frame.f_back, count + 1
    warnings.warn(text, kind, stacklevel=count)


def tell_user(text: str, kind: type[Warning], _about: Any) -> None:
    """Warn at once, whatever it is about."""
    warn(text, kind)
