"""Event-driven simulation: impacts at their time, sustained contact as an ODE, no penetration.

A time step of the model is divided into pieces between events:

1. contacts that touch and approach give an inelastic impact, at velocity level;
2. contacts that touch and do not open are sustained: the motion follows an ODE with contact forces
   at acceleration level, by Runge-Kutta; which contacts stick is decided at velocity level;
3. the motion is followed until a further contact closes, found by conservative advancement, or to
   the end of the step;
4. drift by integration is removed from position and velocity.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from holdfast.contact.laws import Law
from holdfast.errors import EventError, HoldfastError, InputError, SolveError
from holdfast.events import projection
from holdfast.events.contact_set import Listing
from holdfast.events.gyroscopic import TURNED
from holdfast.events.impacts import VelocityLevel
from holdfast.events.integrators import Flow, RungeKutta, SymplecticEuler
from holdfast.events.log import EventLog
from holdfast.events.nearest_motion import Solve, nearest
from holdfast.events.publish import publish
from holdfast.events.rows import gather
from holdfast.events.state import Probe, State
from holdfast.events.sustained import Grip
from holdfast.events.time_of_impact import LANDED, Arrival, Lost, Search, Slow
from holdfast.events.transitions import NOTHING, Touching, Transitions
from holdfast.lcp.checks import check_choice
from holdfast.models import ContactModel, Coulomb
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.claim import Claim, alone
from holdfast.mujoco.pipeline import forward_in_python
from holdfast.mujoco.private_model import PrivateModel
from holdfast.mujoco.smooth import LARGEST, is_finite
from holdfast.mujoco.support import (
    MOST,
    UnsupportedError,
    check_data,
    check_finite,
    check_timestep,
    whole_number,
)

_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
TOUCH = 1e-9  # [m over the mean size, at most 1 m] gaps below are closed
SLOW = 1e-5  # part of the speed of a fall from the mean size; slower approach is no impact
MAX_IMPACTS = 32  # in one step; then the rest of the step is one step at velocity level
MAX_PIECES = 200  # of one step, likewise
MOMENT = 1e-12  # part of a step that is no time
DEEPEST = 1e-8  # [m] no step ends with a deeper penetration
HALVINGS = 8  # of a piece whose contacts drift by more than this part of the mean size:
DRIFT = {"rk4": 1e-7, "symplectic_euler": 1e-4}
ROUGH = 0.1  # or whose stages disagree by more than this part of the speed
MAX_SETTLED = 200  # steps at velocity level that end one with too many events
PULL = 1e-3  # part of the mean size by which a loaded contact may drift in one piece
LEVER = 20.0  # a correction of what was given moves coordinates by no more than this times it
STILL = 1e-6  # part of the mean size that bodies may be moved by without any motion
_NO_INERTIA = np.empty((0, 0))  # forces are known: nothing is solved with it


class TooDeep(HoldfastError):
    """Drift that no correction takes out."""


class TooFar(HoldfastError):
    """A motion beyond what its speed allows."""


class Applied(NamedTuple):
    """Where the last piece started, and what acted there."""

    state: State
    a: np.ndarray
    force: np.ndarray  # (nefc,) along all rows


class EventDriven:
    """Event-driven simulation of a model.

    Args:
        model: `mujoco.MjModel`.
        contact: `Coulomb` (default, with the friction that the model declares), `NoSlip`,
            `Viscous`, `Frictionless`, or another contact model such as `StewartTrinkle`.
        laws: laws of pairs of geoms or bodies, as for `Stepper`.
        integrator: "rk4", of fourth order between events and in sustained contact; or
            "symplectic_euler", with sustained contact at velocity level. Pieces in which a contact
            slides by Coulomb's law are taken at velocity level, whatever the integrator; so are
            all pieces with contact for models such as `StewartTrinkle`.

    Attributes:
        events: log of the events so far, an `EventLog`; prints as a table.
        smallest_gap: smallest signed distance at the end of any piece so far [m].
        solve: solver of sustained contact at acceleration level; the modified PPM by default.

    Example:
        A ball falls 1 m and stays on the floor:

        >>> import mujoco, holdfast as hf
        >>> model = mujoco.MjModel.from_xml_string('''<mujoco><worldbody>
        ...   <geom type="plane" size="1 1 1"/>
        ...   <body name="ball" pos="0 0 1.1"><freejoint/><geom size="0.1" mass="1"/></body>
        ... </worldbody></mujoco>''')
        >>> data, simulation = mujoco.MjData(model), hf.EventDriven(model)
        >>> simulation.advance(data, 1.0)
        >>> print(simulation.events)
           0.451523641 s  impact    world / ball  4.42945 N s at 4.42945 m/s, 9.81 J lost
           0.451523641 s  made      world / ball
    """

    def __init__(
        self,
        model: Any,
        contact: ContactModel | None = None,
        laws: Mapping[tuple[str, str], Law] | None = None,
        *,
        integrator: Literal["rk4", "symplectic_euler"] = "rk4",
    ) -> None:
        if not isinstance(model, mujoco.MjModel):
            raise InputError("model", f"is {type(model).__name__}; expected mujoco.MjModel")
        contact = Coulomb() if contact is None else contact
        if not isinstance(contact, ContactModel):
            raise InputError(
                "contact", f"is {contact!r}; expected a contact model such as Coulomb()"
            )
        check_choice("integrator", integrator, ("rk4", "symplectic_euler"))
        self.contact, self.integrator = contact, integrator
        self._choices = {"laws": dict(laws) if isinstance(laws, Mapping) else laws,
                         "integrator": integrator}  # fmt: skip
        self.private = PrivateModel(model)
        if self.private.adhesive:
            raise UnsupportedError("adhesion", "is not supported here; use hf.Stepper")
        self._in_use = Claim()
        self.events = EventLog()
        self.smallest_gap = np.inf
        self.solve: Solve = nearest
        self._probe = Probe(self.private)
        self._level = VelocityLevel(model, contact, laws)
        self._transitions = Transitions(model, self._probe, self.events)
        size = float(model.stat.meansize)
        self._touch = TOUCH * min(1.0, size)
        self._size = size
        self._last: Applied
        self._depth = 0.0  # of the deepest penetration where the piece begins [m]

    @property
    def model(self) -> Any:
        """The model that is simulated."""
        return self.private.user

    @alone
    def reset(self) -> None:
        """Forget all events and contacts, as if the simulation were new."""
        self.events.clear()
        self.smallest_gap = np.inf
        self._transitions.memory = NOTHING

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "contact": self.contact, **self._choices,
                "solve": self.solve}  # fmt: skip

    def __setstate__(self, given: dict[str, Any]) -> None:
        """Make a copy: a new simulation of the same model and choices, with an empty log."""
        solve = given.pop("solve")
        self.__init__(**given)
        self.solve = solve

    def step(self, data: Any, nstep: int = 1) -> None:
        """Advance `data` by `nstep` time steps of the model, with all events within.

        Raises:
            EventError, InputError: as `advance`.
        """
        count = whole_number("nstep", nstep)
        check_timestep(self.model)
        for _ in range(count):
            self.advance(data, self.model.opt.timestep)

    def advance(self, data: Any, duration: float) -> None:
        """Advance `data` by a time [s], in steps of the model and a shorter last one.

        Raises:
            EventError: a step could not be completed. It carries the state it got to; `data` and
                the log of events are what they were before the call.
            InputError: NaN in the state, or a negative duration.
            HoldfastError: the simulation is in the middle of a step, in another thread or because a
                callback calls it.
        """
        number = isinstance(duration, int | float | np.number) and not isinstance(duration, bool)
        if not number or np.iscomplexobj(duration) or not 0.0 <= duration < np.inf:
            raise InputError("duration", f"is {duration!r}; it must be finite and not negative")
        check_timestep(self.model)
        if float(duration) / self.model.opt.timestep > MOST:
            raise InputError("duration", f"is {duration!r}: too many steps of "
                             f"{self.model.opt.timestep:g} s")  # fmt: skip
        check_data(self.model, data)
        self._advance_or_restore(data, float(duration))

    @alone
    def _advance_or_restore(self, data: Any, duration: float) -> None:
        before = np.empty(mujoco.mj_stateSize(self.model, _STATE))
        mujoco.mj_getState(self.model, data, before, _STATE)
        if not is_finite(before):
            check_finite(data)
        count, smallest, memory = len(self.events), self.smallest_gap, self._transitions.memory
        try:
            self._advance(data, duration)
        except BaseException as error:  # Ctrl-C, too
            reached = self._probe.state()
            mujoco.mj_setState(self.model, data, before, _STATE)
            del self.events.events[count:]
            self.smallest_gap, self._transitions.memory = smallest, memory
            if isinstance(error, HoldfastError):
                raise EventError(
                    f"the step from {data.time:.9g} s could not be completed at "
                    f"{reached.time:.9g} s: {error}",
                    time=reached.time, qpos=reached.qpos, qvel=reached.qvel,
                ) from error  # fmt: skip
            raise

    def _advance(self, data: Any, duration: float) -> None:
        probe, h = self._probe, float(self.model.opt.timestep)
        start = float(data.time)
        steps = int(np.ceil(duration / h * (1.0 - 1e-12)))
        for k in range(steps):
            probe.follow(data)
            self._check_bounds(probe.state())
            if mujoco.get_mjcb_control() is not None:
                forward_in_python(self.private, data)  # the user's function may look at anything
                probe.follow(data)
            end = start + min((k + 1) * h, duration)
            state = self._step(probe.state(), end)
            if k == steps - 1:
                self._publish(data)
            _put(data, state)

    def _check_bounds(self, state: State) -> None:
        """Refuse numbers beyond MuJoCo's own bound."""
        for name in ("qpos", "qvel", "act"):
            values = getattr(state, name)
            bad = np.flatnonzero(~(np.abs(values) <= LARGEST))
            if bad.size:
                i = int(bad[0])
                raise HoldfastError(
                    f"the simulation has diverged: {name}[{i}] is {values[i]:.3g}"
                    f"{self._whose(name, i)}; a shorter time step may help"
                )

    def _whose(self, name: str, i: int) -> str:
        """The body that a number of a state belongs to, in brackets; nothing for activations."""
        model = self.model
        if name == "act":
            return ""
        first = model.jnt_qposadr if name == "qpos" else model.jnt_dofadr
        body = int(model.jnt_bodyid[np.searchsorted(first, i, side="right") - 1])
        return f" (body {model.body(body).name or body})"

    def _check_way(self, begin: State, state: State) -> None:
        """Refuse a piece that has led a coordinate farther than its speeds allow."""
        self._check_bounds(state)
        h = state.time - begin.time
        way = np.empty(self.model.nv)
        mujoco.mj_differentiatePos(self.model, way, 1.0, begin.qpos, state.qpos)
        speed = float(np.maximum(np.abs(begin.qvel), np.abs(state.qvel)).max(initial=0.0))
        pull = float(np.linalg.norm(self.model.opt.gravity))
        small = min(1.0, self._size)
        allowed = 2.0 * h * (speed + h * pull) / small
        allowed += (LEVER * self._depth + STILL * self._size) / small
        k = int(np.abs(way).argmax()) if way.size else 0
        if way.size and not abs(way[k]) <= allowed:
            raise TooFar(
                f"qvel[{k}]{self._whose('qvel', k)} would lead by {way[k]:.3g} m or rad, farther "
                f"than its speed allows ({allowed:.3g}); a shorter time step may help"
            )

    def _step(self, state: State, end: float) -> State:
        """One step, from event to event."""
        impacts, touching = 0, self._transitions.recall(state)
        done = end - MOMENT * (end - state.time) - 4.0 * float(np.spacing(end))
        for _ in range(MAX_PIECES):
            self._probe.widen(state)
            listed = self._probe.list(state)
            self._depth = max(0.0, -float(listed.gap.min(initial=0.0)))
            touching = touching.moved(listed)
            state, touching, hit = self._land(state, listed, touching)
            impacts += hit
            if impacts > MAX_IMPACTS:
                break
            try:
                state, touching = self._piece(state, listed, touching, end - state.time)
            except (Lost, TooDeep, TooFar, SolveError):
                break
            if state.time >= done:
                break
        if state.time < done:
            state, touching = self._settle(state, end, done)
        state = state._replace(time=end)
        self._transitions.remember(state, touching)
        return state

    @property
    def _slow(self) -> Slow:
        pull = float(np.linalg.norm(self.model.opt.gravity)) or 1.0
        return Slow(SLOW * float(np.sqrt(pull * self._size)), self._touch, self._probe.radius)

    def _land(
        self, state: State, listed: Listing, touching: Touching
    ) -> tuple[State, Touching, bool]:
        """Impact of the contacts that touch and approach."""
        speed = listed.N @ state.qvel
        hitting = (listed.gap <= 2.0 * LANDED * self._touch) & ~touching.loaded & (speed < 0.0)
        if hitting.any():
            hitting &= speed < -self._slow(listed, state.qvel)
        if not hitting.any():
            return state, touching, False
        some = np.flatnonzero((listed.gap <= self._touch) | touching.loaded)
        answer = self._level.impact(self._probe.inertia(), state.qvel, listed, some)
        after = state._replace(qvel=answer.velocity)
        self._transitions.impact(state, after, listed, some, answer.normal, speed[some])
        return after, Touching.none(listed), True

    def _sustained(self, state: State, listed: Listing, touching: Touching) -> np.ndarray:
        """Contacts that touch and do not part."""
        closed = (listed.gap <= self._touch) & ~touching.loaded
        if closed.any():
            speed, slow = listed.N @ state.qvel, self._slow(listed, state.qvel)
            coming = (speed < -slow) & (listed.gap > 2.0 * LANDED * self._touch)
            closed &= (speed <= slow) & ~coming
        return np.flatnonzero(touching.loaded | closed)

    def _piece(
        self, state: State, listed: Listing, touching: Touching, h: float
    ) -> tuple[State, Touching]:
        """Follow the motion until something closes, or for h seconds."""
        some = self._sustained(state, listed, touching)
        self._transitions.note(state, listed, some)
        grip, flow = self._flow(state, listed, some, h)
        self._last = Applied(state, flow.a, flow.force)
        exempt = np.zeros(len(listed), dtype=bool)
        exempt[some] = True
        search = Search(self._probe, flow, listed, exempt, self._touch, self._slow)
        h = min(h, flow.longest)
        for halving in range(HALVINGS + 1):
            arrival = search.run(h)
            last, there = halving == HALVINGS, listed.match(arrival.listed)[some]
            smooth = flow.name != "rk4" or flow.rough <= ROUGH
            if last and not smooth:
                raise Lost(f"forces change too fast to be followed at {state.time:.9g} s")
            if last or (smooth and self._stays(arrival, there, flow)):
                try:
                    return self._corrected(arrival, there, grip, flow)
                except TooDeep:  # the surface turns too fast for this length
                    if last:
                        raise
            h = 0.5 * arrival.s
        raise AssertionError("unreachable")

    def _stays(self, arrival: Arrival, there: np.ndarray, flow: Flow) -> bool:
        """Whether sustained contacts stay on their surface.

        Args:
            arrival: where the motion got to.
            there: (k,) where sustained contacts are in its listing, or -1.
            flow: the motion.
        """
        gap = np.zeros(len(there))  # of those that are beyond reach: they carry nothing any more
        gap[there >= 0] = arrival.listed.gap[there[there >= 0]]
        drift = np.where(flow.loaded, np.abs(gap), -gap).max(initial=0.0)
        return bool(drift <= DRIFT[flow.name] * self._size)

    def _flow(self, state: State, listed: Listing, some: np.ndarray, h: float) -> tuple[Grip, Flow]:
        level, probe = self._level, self._probe
        grip = level.grip(listed, some)
        probe.look(state)
        if self.integrator == "rk4" and not (level.own_way and some.size):
            smooth = probe.smooth()
            if grip.held.any():
                answer = level.step(smooth.M, smooth.f, state.qvel, h, listed, grip)
                if level.slides(grip, answer):
                    return self._euler(state, listed, grip, h, None)
                grip = grip._replace(held=answer.held)
            flow = RungeKutta(probe, state, listed, smooth, grip, self.solve)
            if not level.holds(grip, listed, flow.force):
                return self._euler(state, listed, grip, h, None)
            return grip, flow
        return self._euler(state, listed, grip, h, None)

    def _euler(
        self, state: State, listed: Listing, grip: Grip, h: float, gap: np.ndarray | None
    ) -> tuple[Grip, SymplecticEuler]:
        """One step at velocity level; with `gap`, contacts may close it within the step.

        Without, it is shorter where inertial forces would turn the motion.
        """
        A, f, act_dot, turned = self._probe.implicit(h)
        if gap is None and turned > TURNED:
            h *= max(TURNED / turned, 0.5**HALVINGS)
            A, f, act_dot, turned = self._probe.implicit(h)
        answer = self._level.step(A, f, state.qvel, h, listed, grip, gap)
        flow = SymplecticEuler(
            self._probe, state, act_dot, answer.velocity, h, answer.impulse, answer.normal > 0.0,
            turned,
        )  # fmt: skip
        return grip._replace(held=answer.held), flow

    def _corrected(
        self, arrival: Arrival, there: np.ndarray, grip: Grip, flow: Flow
    ) -> tuple[State, Touching]:
        """The state at the end of a piece, without drift; arguments as of `_stays`."""
        state, after, probe = arrival.state, arrival.listed, self._probe
        keep, held = np.zeros((2, len(after)), dtype=bool)
        if there.size:
            near = flow.loaded & (there >= 0)
            near[near] = after.gap[there[near]] <= PULL * self._size
            keep[there[near]] = True
            held[there[near & grip.held]] = True
        state, after, keep, held = projection.position(
            probe, state, after, keep, held, self._touch, self._farthest(arrival, flow)
        )
        deepest = float(after.gap.min(initial=np.inf))
        if deepest < -DEEPEST:
            raise TooDeep(f"bodies are {-deepest:.3g} m deep in each other, and no small "
                          "displacement brings them apart")  # fmt: skip
        self.smallest_gap = min(self.smallest_gap, deepest)
        exact = isinstance(flow, RungeKutta) or arrival.hit
        if exact and (keep.any() or after.ne):
            probe.look(state)
            v = projection.velocity(probe.inertia(), state.qvel, after, keep, held)
            state = state._replace(qvel=v)
        if not exact and flow.rough > TURNED:
            state = probe.limited(flow.start, state)
        self._check_way(flow.start, state)
        return state, Touching(after, keep)

    def _farthest(self, arrival: Arrival, flow: Flow) -> float:
        """How far a correction may move a coordinate [m, rad]: not beyond the motion itself.

        Bodies that were in each other at the start may be moved by more, to get them out.
        """
        fastest = max(float(np.abs(each.qvel).max(initial=0.0))
                      for each in (flow.start, arrival.state))  # fmt: skip
        pull = float(np.linalg.norm(self.model.opt.gravity))
        small = min(1.0, self._size)
        motion = arrival.s * (fastest + arrival.s * pull) / small
        return motion + (LEVER * self._depth + STILL * self._size) / small

    def _settle(self, state: State, end: float, done: float) -> tuple[State, Touching]:
        """The rest of a step with too many events: one step at velocity level, gaps included.

        Where bodies turn so far in it that they end in each other, it is several.
        """
        h, halvings = end - state.time, 0
        for _ in range(MAX_SETTLED):
            try:
                state, touching = self._settle_for(state, h)
            except (TooDeep, TooFar, SolveError):
                if halvings == HALVINGS:
                    raise
                h, halvings = 0.5 * h, halvings + 1
                continue
            if state.time >= done:
                return state, touching
            h, halvings = min(2.0 * h, end - state.time), 0
        raise Lost(f"no end to the step after {MAX_SETTLED} steps at velocity level")

    def _settle_for(self, state: State, h: float) -> tuple[State, Touching]:
        """One step at velocity level of h seconds, gaps included."""
        probe = self._probe
        probe.widen(state)
        listed = probe.list(state)
        self._depth = max(0.0, -float(listed.gap.min(initial=0.0)))
        A, f, _, _ = probe.implicit(h)
        free = state.qvel + h * np.linalg.solve(A, f)
        closing = listed.gap + h * (listed.N @ free) <= self._touch
        some = np.flatnonzero(closing | (listed.gap <= self._touch))
        grip, flow = self._euler(
            state, listed, self._level.grip(listed, some), h, np.maximum(listed.gap[some], 0.0)
        )
        self._last = Applied(state, flow.a, flow.force)
        arrival = Search(
            probe, flow, listed, np.zeros(len(listed), dtype=bool), self._touch, self._slow
        ).look(h)
        there = listed.match(arrival.listed)[some]
        state, touching = self._corrected(arrival, there, grip, flow)
        self._transitions.settled(state, listed, some[flow.loaded])
        return state, touching

    def _publish(self, data: Any) -> None:
        """Contacts, forces, acceleration and sensors of the last piece, where MuJoCo keeps them."""
        last, private = self._last, self.private
        _put(data, last.state)
        forward_in_python(private, data, control=False)
        rows = gather(private, data, (_NO_INERTIA, last.a))
        publish(private, data, rows, rows.v + rows.h * last.a, rows.h * last.force)


def _put(data: Any, state: State) -> None:
    """Write a state."""
    data.time = state.time
    data.qpos[:], data.qvel[:] = state.qpos, state.qvel
    if state.act.size:
        data.act[:] = state.act
