"""Interrupts: KeyboardInterrupt at every line of a step, and signals at random moments.

Run as a script in a process of its own: a broken stepper may take the process with it.

    python -m fuzz.interrupts lines SCENE       an interrupt at every line event of an action
    python -m fuzz.interrupts random COUNT SEED signals at random moments
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import mujoco
import numpy as np

import holdfast as hf

PILE = "".join(
    f'<body pos=".{i} 0 {0.13 + 0.21 * i}" euler="{3 * i} {2 * i} 0"><freejoint/>'
    '<geom type="box" size=".1 .1 .1"/></body>'
    for i in range(3)
)
FLOOR = '<geom type="plane" size="5 5 1"/>'
COUPLED = """<body pos="0 0 1"><joint name="a" axis="0 1 0"/><geom size=".1"/></body>
  <body pos="1 0 1"><joint name="b" axis="0 1 0" range="-1 1" limited="true"/>
    <geom size=".1" pos=".2 0 0"/></body>"""
TENDON = """<tendon><fixed stiffness="20"><joint joint="a" coef="1"/><joint joint="b" coef="-1"/>
  </fixed></tendon>"""

# Names of what is interrupted: model, contact model, whether a callback is set, first step or not.
SCENES: dict[str, tuple[str, Any, bool, int]] = {
    "first": (PILE, None, False, 0),  # data are attached, memory grows
    "later": (PILE, None, False, 40),
    "callback": (PILE, None, True, 5),
    "own way": (PILE, hf.AnitescuPotra(mu=0.5), False, 2),
    "free": ('<body pos="0 0 2"><freejoint/><geom size=".1"/></body>', None, True, 1),
    "coupled": (COUPLED, None, False, 0),  # two trees become one block
}
AFTER = 20  # steps that are compared
AGAIN = 0.5  # [s] until the next signal, if Python has swallowed one in a finalizer
PHYSICS = mujoco.mjtState.mjSTATE_FULLPHYSICS
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


def model_of(name: str) -> Any:
    bodies = SCENES[name][0]
    discrete = '<option integrator="discrete"/>' if name == "coupled" else ""
    more = TENDON if name == "coupled" else ""
    return mujoco.MjModel.from_xml_string(
        f"<mujoco>{discrete}<worldbody>{FLOOR}{bodies}</worldbody>{more}</mujoco>"
    )


def state_of(model: Any, data: Any, kind: Any = STATE) -> np.ndarray:
    state = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    return state


class Interrupter:
    """Raises KeyboardInterrupt at the line event of a number; counts them if it is never met."""

    def __init__(self, number: int) -> None:
        self.number, self.count, self.where = number, 0, ""

    def __call__(self, frame: FrameType, event: str, _arg: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count == self.number:
                self.where = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self

    def run(self, action: Callable[[], None]) -> bool:
        """Whether the action was interrupted."""
        try:
            sys.settrace(self)
            try:
                action()
            finally:
                sys.settrace(None)
        except KeyboardInterrupt:
            return True
        return False


def forces_of(data: Any) -> np.ndarray:
    return np.concatenate([data.qacc, data.qfrc_constraint])


def apart(stepper: hf.Stepper, data: Any, fresh: hf.Stepper, other: Any) -> float:
    """How far the next steps of two steppers lead apart; infinite if one cannot step."""
    worst = 0.0
    for _ in range(AFTER):
        try:
            stepper.step(data)
        except Exception as error:
            print(f"# {type(error).__name__}: {error}", file=sys.stderr)
            return np.inf
        fresh.step(other)
        both = (data.qpos - other.qpos, data.qvel - other.qvel)
        worst = max(worst, *(float(np.abs(x).max(initial=0.0)) for x in both))
    return worst


def interrupt_lines(name: str, kind: str = "step") -> dict[str, Any]:
    """Interrupt an action of a scene at every line event, and look at what is left."""
    model = model_of(name)
    _, contact, callback, before = SCENES[name]
    start = mujoco.MjData(model)
    hf.Stepper(model, contact, warn=False).step(start, before)
    after = mujoco.MjData(model)
    begin = state_of(model, start)
    worst, lost, lines, bad = 0.0, 0, 0, []

    def made() -> tuple[hf.Stepper, Any]:
        data = mujoco.MjData(model)
        mujoco.mj_setState(model, data, begin, STATE)
        return hf.Stepper(model, contact, warn=False), data

    def action(stepper: hf.Stepper, data: Any) -> Callable[[], None]:
        if kind == "forward":
            return lambda: stepper.forward(data)
        return lambda: stepper.step(data, 2)

    if callback:
        mujoco.set_mjcb_control(lambda _model, _data: None)
    stepper, after = made()
    ends = [state_of(model, after, PHYSICS)]
    for _ in range(0 if kind == "forward" else 2):
        stepper.step(after)
        ends.append(state_of(model, after, PHYSICS))
    while True:
        stepper, data = made()
        interrupter = Interrupter(lines + 1)
        if not interrupter.run(action(stepper, data)):
            break
        lines += 1
        now, reached = state_of(model, data), state_of(model, data, PHYSICS)
        known = any(np.array_equal(reached, each) for each in ends)
        other = mujoco.MjData(model)
        mujoco.mj_setState(model, other, now, STATE)
        off = apart(stepper, data, hf.Stepper(model, contact, warn=False), other)
        worst, lost = max(worst, off), lost + (not known)
        if off > 1e-12 or not known:
            bad.append([interrupter.where, off, known])
    mujoco.set_mjcb_control(None)
    return {"lines": lines, "worst": worst, "lost": lost, "bad": bad[:20]}


def interrupt_at_random(count: int, seed: int) -> dict[str, Any]:
    """Signals at random moments while steppers step; checks every tenth time."""
    rng = random.Random(seed)

    def handler(_number: int, _frame: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, handler)
    names = [name for name in SCENES if name != "own way"]
    steppers = []
    for name in names:
        model = model_of(name)
        steppers.append((name, model, mujoco.MjData(model), hf.Stepper(model, warn=False)))
    done, steps, worst, failed = 0, 0, 0.0, 0
    while done < count:
        name, model, data, stepper = steppers[rng.randrange(len(names))]
        if data.time > 2.0:
            mujoco.mj_resetData(model, data)
        if SCENES[name][2]:
            mujoco.set_mjcb_control(lambda _model, _data: None)
        wait = 1e-6 + rng.choice([2e-5, 1e-4, 4e-4, 2e-3]) * rng.random()
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, wait, AGAIN)
                while True:
                    stepper.step(data)
                    steps += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
        except KeyboardInterrupt:
            done += 1
        except Exception as error:
            failed += 1
            print(f"# {type(error).__name__}: {error}", file=sys.stderr)
        if done % 10 == 0:
            other, now = mujoco.MjData(model), state_of(model, data)
            mujoco.mj_setState(model, other, now, STATE)
            worst = max(worst, apart(stepper, data, hf.Stepper(model, warn=False), other))
        mujoco.set_mjcb_control(None)
    return {"interrupts": done, "steps": steps, "worst": worst, "failed": failed}


if __name__ == "__main__":
    if sys.argv[1] == "lines":
        print(json.dumps(interrupt_lines(sys.argv[2], *sys.argv[3:])))
    else:
        print(json.dumps(interrupt_at_random(int(sys.argv[2]), int(sys.argv[3]))))
