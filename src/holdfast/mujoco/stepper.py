"""Stepping a MuJoCo model with exact contact.

A step is build, solve, apply:

1. MuJoCo computes kinematics, contacts within reach, controls and smooth forces;
2. the contact model finds the velocity after the step, and certifies it;
3. forces, acceleration and sensors are written where MuJoCo keeps them, the state is advanced
   with exactly that velocity, and what is left of penetration is taken out of the position.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from itertools import compress
from typing import Any

import numpy as np

from holdfast.contact.laws import Law, frictionless, stick
from holdfast.contact.solution import ContactSolution
from holdfast.errors import HoldfastError, InputError
from holdfast.models import ContactModel, NoSlip
from holdfast.mujoco import _at_once as usual
from holdfast.mujoco._answer import Answer, from_found, from_solution
from holdfast.mujoco._correct import Given, Wrong, correction, potential_force, violated
from holdfast.mujoco._direct import Direct
from holdfast.mujoco._islands import Island, Islands, apart, together
from holdfast.mujoco._landing import ROUNDS, Landing, may_land
from holdfast.mujoco._laws import Laws
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._motion import Motion
from holdfast.mujoco._pipeline import forward
from holdfast.mujoco._publish import publish, show_sensors
from holdfast.mujoco._quick import OPEN, Quick
from holdfast.mujoco._shadow import Shadow
from holdfast.mujoco._support import check_finite, is_finite
from holdfast.mujoco._usual import FOUND
from holdfast.mujoco._watch import FrictionWatch, grip_of
from holdfast.mujoco._whole import DONE, LOOK, NOT_TRIED
from holdfast.mujoco.assemble import TOUCHING, Rows, gather
from holdfast.mujoco.contacts import Contacts

_STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


class Stepper:
    """Steps a model as `mujoco.mj_step` does, with contact that does not slip or sink in.

    The stepper works on a copy of the model, kept up to date with it, and on the user's data.
    If anything goes wrong in a step, the state in `data` is as it was before that step.
    Threads that step at the same time need a stepper each.

    Args:
        model: `mujoco.MjModel`.
        contact: the law of all contacts that no other law names: `NoSlip`, `Viscous`,
            `Frictionless`, or any other `ContactModel`.
        laws: laws of pairs of geoms or bodies, ``{("finger", "cube"): hf.viscous(0.1)}``;
            ``"*"`` is anything. The MJCF can say the same, see `holdfast.mujoco._laws`.
        correct: whether to take penetration and drift out of the position.
        warn: whether to warn, once per pair of bodies, when a contact needs more friction than
            the model declares.

    Attributes:
        corrected: largest displacement of a coordinate by position correction so far.
        inconsistent: steps so far in which it was not so that exactly the pressed contacts
            stick: a contact jams, or its rows were too nearly dependent to hold it.
        redone: how often so far a step was solved again, with contacts seen where it ended.

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
        contact: ContactModel | None = None,
        laws: Mapping[tuple[str, str], Law] | None = None,
        *,
        correct: bool = True,
        warn: bool = True,
    ) -> None:
        if not isinstance(model, mujoco.MjModel):
            raise InputError("model", f"is {type(model).__name__}; expected mujoco.MjModel")
        self.contact = NoSlip() if contact is None else contact
        if not isinstance(self.contact, ContactModel):
            raise InputError("contact", f"is {contact!r}; expected a contact model, as NoSlip()")
        self.shadow = Shadow(model)
        self._before = np.empty(mujoco.mj_stateSize(model, _STATE))
        self.correct = correct
        self._found: Answer | None = None  # in the last step, if somebody has asked
        self._stepped = False
        self._deepest = 0.0
        self.corrected = 0.0
        self.inconsistent = 0
        self._fastest = 0.0
        self._solver = Motion(self.contact)
        self._laws = Laws(model, laws, self._solver.law or stick())
        if self._solver.law is None and not self._laws.uniform:
            raise InputError("laws", f"cannot be mixed with {type(self.contact).__name__}")
        self._landing, self.redone = Landing(self.shadow), 0
        self._given = Given(model.nq)
        self._direct = Direct(
            self.contact, self.shadow, self._laws, self._landing, self._before, self._given.left
        )
        self.warn = warn
        self._quick, self._islands = Quick(self.contact), Islands(model, self.contact)
        self._solved: dict[bytes, tuple[Island, Answer]] = {}  # in this step, by its trees
        self._watch = FrictionWatch()
        self._warm: tuple[bytes, np.ndarray] | None = None
        self._in_use = threading.Lock()

    @property
    def warn(self) -> bool:
        """Whether to warn, once per pair of bodies, of friction that does not suffice."""
        return self._direct.warn

    @warn.setter
    def warn(self, wanted: bool) -> None:
        self._direct.warn = wanted

    @property
    def model(self) -> Any:
        """The model that is stepped."""
        return self.shadow.user

    @property
    def _answer(self) -> Answer | None:
        """What the last step found."""
        return self._ask() if self._stepped else None

    def _ask(self) -> Answer:
        """The same, copied from the arrays of the usual path when somebody asks."""
        if self._found is None:
            self._found = self._in_parts()
        return self._found

    def _in_parts(self) -> Answer:
        """What the usual path found, as the answers of all islands."""
        rows, (found, numbers) = self._direct.rows(), self._direct.found()
        islands = self._islands.of(rows) if len(numbers) > 1 else []
        if not islands:
            return from_found(lambda: rows, found)
        answers = apart(islands, found, numbers)
        for island, answer in zip(islands, answers, strict=True):
            self._solved[island.trees] = island, answer
        return together(rows, islands, answers)

    @property
    def solution(self) -> ContactSolution | None:
        """Of the last step; None before the first, and after one that failed."""
        return None if self._answer is None else self._answer.solution

    @property
    def largest_penetration(self) -> float:
        """Deepest penetration at the start of any step so far [m]."""
        return max(self._deepest, float(self._direct.report[usual.SUNK]))

    @property
    def slipped(self) -> float:
        """Fastest sliding so far of a pressed contact whose law is to stick [m/s]."""
        return max(self._fastest, float(self._direct.report[usual.SLIPPED]))

    @property
    def count(self) -> int:
        """Number of contacts that mattered in the last step."""
        if not self._stepped:
            return 0
        if self._found is None:
            return int(self._direct.report[usual.COUNT])
        return int(np.count_nonzero(self._found.contacts))

    def step(self, data: Any, nstep: int = 1) -> None:
        """Advance `data` by `nstep` steps.

        Raises:
            SolveError: no certified motion exists or was found; the state is as before the
                failing step.
            UnsupportedError: a state that cannot be stepped, as one with NaN.
            HoldfastError: the stepper is in the middle of a step, in another thread or because a
                callback calls it.
        """
        if not self._in_use.acquire(False):
            raise HoldfastError("the stepper is in the middle of a step; make another one for each "
                                "thread, and for callbacks")  # fmt: skip
        try:
            direct = self._direct
            if data is None or direct.data() is not data:  # None is also what is left of old data
                direct.attach(data)
            while nstep > 0:
                nstep -= 1
                self._found, self._stepped = None, False
                status = direct.whole(data)
                if status == DONE:
                    self._stepped = True
                else:
                    self._go_on(data, status)
        finally:
            self._in_use.release()

    def _go_on(self, data: Any, status: int) -> None:
        """Take a step that was not done in one call; if that fails, restore the state."""
        model, before = self.shadow.model, self._before
        if status == NOT_TRIED:
            mujoco.mj_getState(model, data, before, _STATE)
            if not is_finite(before):
                check_finite(data)
        try:
            self._step(data, status)
        except BaseException:  # Ctrl-C, too
            self._found, self._stepped = None, False
            mujoco.mj_setState(model, data, before, _STATE)
            raise

    def _step(self, data: Any, status: int) -> None:
        """Go on where that has ended."""
        shadow = self.shadow
        if status == NOT_TRIED:
            shadow.follow()
            forward(shadow, data)
            status = self._at_once(data)
        if status == usual.LANDS and not self._landing.look(data, self._direct.velocity):
            status = self._direct.publish()
        if status in (FOUND, LOOK):
            self._stepped = True
            self._finish(data, done=status == LOOK)
            return
        self._solved.clear()
        found = status == usual.LANDS
        answer = self._in_parts() if found else self._solve(gather(shadow, data))
        rows = answer.rows
        if may_land(answer.velocity, rows.v, rows.h, rows.size):
            answer = self._land(data, answer)
        self._found, self._stepped = answer, True
        publish(shadow, data, answer.rows, answer.velocity, answer.impulse)
        self._remember(answer.slip, answer.consistent, answer.excess)
        self._advance(data, answer)

    def _at_once(self, data: Any) -> int:
        """Find the motion and publish it in one call, if the step is a usual one."""
        return self._direct.step(data)

    def _finish(self, data: Any, *, done: bool) -> None:
        """Advance after a usual step, unless that is done, and see to what it leaves."""
        shadow, report = self.shadow, self._direct.report.tolist()
        if not done:
            if report[usual.PUBLISHED] == 0.0:
                self._direct.publish_again(data)
            else:
                show_sensors(shadow, data)
            self._direct.finish(data)
        consistent = report[usual.TIED] > 0.0
        self._remember(report[usual.WORST_SLIP], consistent, report[usual.LACKS] > 0.0)
        left = report[usual.LEFT] > TOUCHING * shadow.size
        self._correct(data, report[usual.DEEPEST], violated(self._ask())[1] if left else [])

    def _land(self, data: Any, answer: Answer) -> Answer:
        """Solve again where the motion would sink in, with what is seen there."""
        landing = self._landing
        for _ in range(ROUNDS):
            if not landing.look(data, answer.velocity):
                break
            rows = landing.relist(data, answer.rows, answer.velocity)
            if rows is None:  # what is left is for the position
                return answer
            self.redone += 1
            answer = self._solve(rows)
        answer.rows.sunk[:] = 0.0
        return answer

    def _solve(self, rows: Rows) -> Answer:
        """Find the motion of all islands."""
        islands = self._islands.of(rows) if self._solver.law is not None else []
        if not islands:
            return self._solve_one(rows, self._quick)
        answers = []
        for island in islands:
            before, answer = self._solved.get(island.trees, (None, None))
            if before is None or answer is None or not island.is_like(before):
                answer = self._solve_one(island.rows, self._islands.quick(island))
            self._solved[island.trees] = island, answer
            answers.append(answer)
        return together(rows, islands, answers)

    def _solve_one(self, rows: Rows, quick: Quick) -> Answer:
        """Find the motion: the usual way, or the long one where that is in doubt."""
        if quick.applies:
            sticks = self._laws.sticking(rows.geoms, rows.dim)
            if sticks is not None:
                answer = quick(rows, sticks)
                if answer is not None:
                    return answer
        return self._solve_long(rows)

    def _solve_long(self, rows: Rows) -> Answer:
        """Solve for the contacts that matter: those that the motion would close.

        Contacts that the free motion closes come first; what the answer would still close is
        added, until nothing is.
        """
        contacts, limits = rows.within_reach(rows.v_free)
        landing = rows.gap > OPEN * rows.size
        every = self._laws_of(rows)
        while True:
            laws = list(compress(every, contacts.tolist()))
            problem = rows.problem(contacts, limits)
            warm = self._warm_start(rows, contacts, limits)
            solution = self._solver(problem, laws, landing[contacts], warm)
            gap = rows.gap + rows.h * (rows.N @ solution.velocity) < -rows.touch
            limit = rows.limit_gap + rows.h * (rows.U @ solution.velocity) < -rows.touch
            if not (gap & ~contacts).any() and not (limit & ~limits).any():
                break
            contacts, limits = contacts | gap, limits | limit
        if not np.isfinite(solution.velocity).all():
            raise HoldfastError("the velocity after the step is not finite")
        self._warm = (_key(rows, contacts, limits), solution.loaded)
        sticks = np.array(
            [self._solver.law is not None and law.kind == "stick" for law in laws], dtype=bool
        )
        return from_solution(rows, solution, contacts, limits, sticks, landing[contacts])

    def _laws_of(self, rows: Rows) -> list[Law]:
        """Law of each listed contact; those with a normal alone are frictionless."""
        free, laws = frictionless(), self._laws.of(rows.geoms)
        return [law if dim > 1 else free for law, dim in zip(laws, rows.dim.tolist(), strict=True)]

    def _warm_start(
        self, rows: Rows, contacts: np.ndarray, limits: np.ndarray
    ) -> np.ndarray | None:
        """Loaded rows of the last step, if the same contacts are there."""
        if self._warm is None or self._warm[0] != _key(rows, contacts, limits):
            return None
        return self._warm[1]

    def _remember(self, slip: float, consistent: bool, excess: bool) -> None:
        """Keep count; warn where friction is asked too much."""
        if not consistent:
            self.inconsistent += 1
        self._fastest = max(self._fastest, slip)
        if self.warn and excess:
            held = self._direct.grip() if self._found is None else grip_of(self._found)
            try:
                self._watch(self.model, held)
            finally:  # warnings may be errors
                self._direct.mute(self._watch.warned)

    def _advance(self, data: Any, answer: Answer) -> None:
        """Integrate with exactly the velocity that was solved for; then correct the position."""
        own, acceleration = self.shadow.model, data.qacc.copy()
        data.qvel[:] = answer.velocity
        data.qacc[:] = 0.0
        mujoco.mj_Euler(own, data)
        data.qacc[:] = acceleration
        data.qacc_warmstart[:] = acceleration
        self._correct(data, *violated(answer))

    def _correct(self, data: Any, deepest: float, wrong: Wrong) -> None:
        """Take out of the position what is left of penetration and drift."""
        self._deepest = max(self._deepest, deepest)
        if self.correct and wrong:
            own = self.shadow.model
            given = self._given.is_new(self._before[1 : 1 + own.nq])
            dq, pull = np.zeros(own.nv), None if given else potential_force(own, data)
            for dofs, sunk, part in wrong:
                dq[dofs] = correction(part, sunk, None if pull is None else pull[dofs])
            qpos = np.array(data.qpos)
            mujoco.mj_integratePos(self.shadow.model, qpos, dq, 1.0)
            data.qpos[:] = qpos
            self.corrected = max(self.corrected, float(np.abs(dq).max(initial=0.0)))
        self._given.left[:] = data.qpos

    @property
    def contacts(self) -> Contacts:
        """The contacts of the last step, as a table."""
        if self._answer is None:
            return Contacts.none()
        laws = compress(self._laws_of(self._answer.rows), self._answer.contacts.tolist())
        return Contacts.of(self.model, self._answer, list(laws))


def _key(rows: Rows, contacts: np.ndarray, limits: np.ndarray) -> bytes:
    return rows.geoms[contacts].tobytes() + limits.tobytes()
