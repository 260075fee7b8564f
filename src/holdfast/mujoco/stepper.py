"""Stepping a MuJoCo model with exact contact: `Stepper`, and what a step has found."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Literal

import numpy as np

from holdfast.contact.laws import Law, coulomb
from holdfast.contact.solution import ContactSolution
from holdfast.errors import InputError
from holdfast.models import ContactModel
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.claim import alone
from holdfast.mujoco.contacts import Contacts
from holdfast.mujoco.history import no_data
from holdfast.mujoco.options import DEFAULT, StepOptions
from holdfast.mujoco.pair_laws import PairLaws, law_of_model
from holdfast.mujoco.record import Stage, Status
from holdfast.mujoco.stages import Stages
from holdfast.mujoco.step import count_contacts_at
from holdfast.mujoco.support import MOST, whole_number

_DONE, _PAUSED = int(Status.DONE), int(Status.PAUSED)


class Stepper(Stages):
    """Steps a model like `mujoco.mj_step`, with exact rigid contact.

    The stepper works on a copy of the model, kept up to date with it, and on the user's data.
    If anything goes wrong in a step, the state in `data` is as it was before that step. One
    stepper may serve several data in turn. Threads that step at the same time need a stepper each.

    Args:
        model: `mujoco.MjModel`.
        contact: law of all contacts for which `laws` has no entry: `Coulomb` (the default, with
            the friction that the model declares), `NoSlip`, `Viscous`, `Frictionless`, a law such
            as ``hf.coulomb(0.5)``, or any other `ContactModel`.
        laws: laws of pairs of geoms or bodies, ``{("finger", "cube"): hf.viscous(0.1)}``;
            ``"*"`` matches any name. They can also be set in the MJCF, see
            `holdfast.mujoco.pair_laws`.
        equalities: "compliant": equality constraints have the compliance that `solref` and `solimp`
            give them in MuJoCo; "rigid": they have none, and drift is corrected.
        limits: "rigid": joints and tendons stop at their limits; "compliant": limits give way as in
            MuJoCo, by `solreflimit` and `solimplimit`, from the joint's `margin` on.
        contacts: "rigid": surfaces stop where they touch, and what sticks does not move;
            "compliant": they give way as in MuJoCo, by `solref` and `solimp`, from `margin` on, and
            what sticks creeps by `impratio`. Friction is limited by the cone all the same, and acts
            along the surface. Not for what must not slip, nor for models that solve problems
            themselves.
        correct: whether to correct penetration and drift of the position.
        warn: whether to warn, once per pair of bodies, when a no-slip contact needs more friction
            than the model declares.
        strict: raise an error if an answer misses the certificate or the state diverges. Otherwise
            such answers are counted, MuJoCo's reset applies to states that diverge, and a
            `StepWarning` is issued once.
        options: tolerances of the step.

    Example:
        >>> import mujoco, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="1 1 1" euler="0 20 0"/>
        ...   <body euler="0 20 0"><freejoint/>
        ...     <geom type="box" pos="0 0 0.1" size="0.1 0.1 0.1"/></body>
        ... </worldbody></mujoco>''')
        >>> data, stepper = mujoco.MjData(model), hf.Stepper(model)
        >>> stepper.step(data, nstep=500)
        >>> bool(abs(data.qpos[0]) < 1e-12), stepper.solution.is_exact()
        (True, True)
    """

    def __init__(
        self,
        model: Any,
        contact: ContactModel | Law | None = None,
        laws: Mapping[tuple[str, str], Law] | None = None,
        *,
        equalities: Literal["compliant", "rigid"] = "compliant",
        limits: Literal["compliant", "rigid"] = "rigid",
        contacts: Literal["compliant", "rigid"] = "rigid",
        correct: bool = True,
        warn: bool = True,
        strict: bool = False,
        options: StepOptions = DEFAULT,
    ) -> None:
        if not isinstance(model, mujoco.MjModel):
            raise InputError("model", f"is {type(model).__name__}; expected mujoco.MjModel")
        for name, choice in (("equalities", equalities), ("limits", limits),
                             ("contacts", contacts)):  # fmt: skip
            if not isinstance(choice, str) or choice not in ("compliant", "rigid"):
                raise InputError(name, f"is {choice!r}; expected 'compliant' or 'rigid'")
        if not isinstance(options, StepOptions):
            raise InputError("options", f"is {options!r}; expected holdfast.mujoco.StepOptions")
        default = law_of_model(contact)
        self._choices = {"laws": dict(laws) if isinstance(laws, Mapping) else laws,
                         "equalities": equalities, "limits": limits, "contacts": contacts,
                         "correct": correct, "strict": strict, "options": options}  # fmt: skip
        pair_laws = PairLaws(model, laws, default or coulomb())
        if default is None and pair_laws.laws:
            raise InputError("laws", f"cannot be mixed with {type(contact).__name__}")
        sticks = any(law.kind == "stick" for law in (pair_laws.default, *pair_laws.laws))
        if contacts == "compliant" and sticks:
            raise InputError("contacts", "cannot be compliant where they must not slip; use "
                             "Coulomb friction with a large coefficient")  # fmt: skip
        if contacts == "compliant" and default is None:
            raise InputError("contacts", f"cannot be compliant with {type(contact).__name__}, "
                             "which solves its problems itself")  # fmt: skip
        own_way = default is None  # the contact model solves problems itself
        super().__init__(model, contact, pair_laws, options, own_way)
        self._set(rigid_equalities=equalities == "rigid" or own_way,
                  rigid_limits=limits == "rigid" or own_way,
                  rigid_contacts=contacts == "rigid" or own_way, correct=correct, quiet=not warn,
                  strict=strict, integrate=1, stop=Stage.NONE,
                  **asdict(options))  # fmt: skip
        self._whole = True

    def step(self, data: Any, nstep: int = 1) -> None:
        """Advance `data` by `nstep` steps.

        Raises:
            SolveError: no certified motion was found; the state is as before the failing step.
            InputError: the time step or the state is invalid, for example NaN.
            HoldfastError: the stepper is in the middle of a step, in another thread or because a
                callback calls it.
        """
        count = nstep if type(nstep) is int and 0 < nstep <= MOST else whole_number("nstep", nstep)
        frame = sys._getframe()
        try:  # as `alone` does, without a call more
            self._in_use.take(frame)
            self._ready(data)
            if self._own_way:
                for _ in range(count):
                    self._step_in_stages(data)
                return
            if count > 0:
                self._outcome, self._stepped, self._whole = None, False, False
                if count > 1:
                    self._more[0] = count - 1
                self._call()
                if self._status[0] != _DONE:
                    self._go_on_stepping(data)
                self._stepped = self._whole = True
        finally:
            self._in_use.leave(frame)

    def _go_on_stepping(self, data: Any) -> None:
        """Take the steps that are left after a call in which Python had something to do."""
        call, status, more = self._call, self._status, self._more
        while status[0] != _DONE:
            if status[0] != _PAUSED:  # signals are handled between calls
                left, more[0] = more[0], 0
                self._go_on(data)
                if left == 0:
                    return
                self._outcome, self._stepped = None, False
                more[0] = left - 1
            call()

    @alone
    def forward(self, data: Any) -> None:
        """Compute contact forces, accelerations and sensors at the present state; no time passes.

        Like `mujoco.mj_forward`, which finds no force in contacts at distance zero.
        """
        self._ready(data)
        self._outcome, self._stepped = None, False
        self._whole = False
        self._set(integrate=0)
        if self._own_way:
            self._step_in_stages(data)
        else:
            self._call()
            if self._status[0] != _DONE:
                self._go_on(data)
        self._end_step()
        self._stepped = self._whole = True

    # --- what is remembered ----------------------------------------------------------------------

    @alone
    def detach(self) -> None:
        """Forget all data stepped so far, and the results of the last step."""
        self._data, self._history, self._outcome = no_data, None, None
        self._histories.clear()
        self._stepped = False

    @alone
    def reset(self) -> None:
        """Forget all histories and statistics, as if the stepper were new."""
        self._whole = False
        self._data, self._history, self._outcome = no_data, None, None
        self._histories.clear()
        self._stepped = False
        self._set(deepest=0.0, fastest=0.0, corrected=0.0, redone=0, solves=0,
                  factorisations=0, uncertified=0, inconsistent=0,
                  told_overlap=0, told_rk4=0, told_uncertified=0, nwarned=0)  # fmt: skip
        self._renew()

    def _warn_again(self) -> None:
        """Forget what was warned of."""
        self._set(told_overlap=0, told_rk4=0, told_uncertified=0, nwarned=0)
        self._put(warned=np.zeros((0, 2), dtype=np.int64))

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "contact": self.contact, "warn": self.warn, **self._choices}

    def __setstate__(self, given: dict[str, Any]) -> None:
        """Make a copy: a new stepper of the same model and choices, without histories."""
        self.__init__(**given)

    # --- what a step has found -------------------------------------------------------------------

    @property
    def solution(self) -> ContactSolution | None:
        """Motion and forces of the last step; None before the first, and after one that failed."""
        return self._copy_outcome().solution if self._stepped else None

    @property
    def contacts(self) -> Contacts:
        """The contacts of the last step, as a table."""
        if not self._stepped:
            return Contacts.none()
        return Contacts.of(self.model, self._copy_outcome(), self._laws)

    @property
    def contact_count(self) -> int:
        """Number of contacts that mattered in the last step: those that its motion has closed."""
        return int(count_contacts_at(self.record.ctypes.data)) if self._stepped else 0

    @property
    def largest_penetration(self) -> float:
        """Deepest penetration at the start of any step so far [m]."""
        return float(self._get("deepest"))

    @property
    def fastest_slip(self) -> float:
        """Fastest sliding speed so far of a loaded no-slip contact [m/s]."""
        return float(self._get("fastest"))

    @property
    def largest_correction(self) -> float:
        """Largest displacement of a coordinate by position correction so far [m, rad]."""
        return float(self._get("corrected"))

    @property
    def resolved_steps(self) -> int:
        """How often a step was solved again so far, with the contacts found at its end."""
        return int(self._get("redone"))

    @property
    def inconsistent_steps(self) -> int:
        """Number of steps so far in which a no-slip contact jams: loaded only if it is let go."""
        return int(self._get("inconsistent"))

    @property
    def uncertified_steps(self) -> int:
        """Number of steps so far that missed the certificate but obey the laws within 1e-6."""
        return int(self._get("uncertified"))

    @property
    def warn(self) -> bool:
        """Whether to warn of no-slip contacts that need more friction than the model declares."""
        return not self._get("quiet")

    @warn.setter
    def warn(self, wanted: bool) -> None:
        self._set(quiet=not wanted)
