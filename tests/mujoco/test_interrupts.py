"""Ctrl-C at any moment: the state is that of a whole number of steps, and later steps are right.

`fuzz.interrupts` runs in a process of its own, because a broken stepper may take it along.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import mujoco
import pytest

import holdfast as hf
from holdfast._jit import uninterrupted
from holdfast.mujoco.claim import Claim

TESTS = Path(__file__).parents[1]


def fuzz(*arguments: str) -> dict[str, Any]:
    paths = os.pathsep.join([str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.interrupts", *arguments], capture_output=True, text=True,
        env=os.environ | {"PYTHONPATH": paths}, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.jit  # kernels that run as plain Python have too many lines
@pytest.mark.parametrize(
    "scene",
    ["later", "callback", pytest.param("first", marks=pytest.mark.slow),
     pytest.param("own way", marks=pytest.mark.slow), pytest.param("free", marks=pytest.mark.slow),
     pytest.param("coupled", marks=pytest.mark.slow)],
)  # fmt: skip
def test_an_interrupt_at_every_line_of_a_step(scene: str) -> None:
    found = fuzz("lines", scene)
    assert found["lines"] > 100  # else nothing was tried
    assert found["lost"] == 0, found["bad"]  # the state is that of a whole number of steps
    assert found["worst"] <= 1e-12, found["bad"]  # 20 steps after, beside a fresh stepper


@pytest.mark.jit
def test_an_interrupt_at_every_line_of_forward() -> None:
    found = fuzz("lines", "later", "forward")
    assert found["lines"] > 100 and found["lost"] == 0 and found["worst"] <= 1e-12, found["bad"]


@pytest.mark.jit
def test_interrupts_at_random_moments() -> None:
    found = fuzz("random", "500", "7")
    assert found["interrupts"] == 500 and found["failed"] == 0
    assert found["worst"] <= 1e-9  # beside a fresh stepper: sliding is solved to 1e-10 of its scale


def test_a_claim_ends_with_its_call() -> None:
    claim = Claim()

    def interrupted() -> None:
        claim.take(sys._getframe())
        raise KeyboardInterrupt  # never leaves

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    frame = sys._getframe()
    claim.take(frame)
    refused = []

    def other() -> None:
        try:
            claim.take(sys._getframe())
        except hf.HoldfastError as error:
            refused.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    other()
    assert len(refused) == 2
    claim.leave(frame)
    other()
    assert len(refused) == 2


def test_what_must_not_be_interrupted_goes_on() -> None:
    begun, go_on, done = threading.Event(), threading.Event(), threading.Event()

    @uninterrupted
    def load() -> int:
        begun.set()
        go_on.wait(10.0)
        done.set()
        return 7

    def interrupt() -> None:
        begun.wait(10.0)
        os.kill(os.getpid(), 2)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        load()
    assert not done.is_set()
    go_on.set()
    assert done.wait(10.0) and load() == 7

    @uninterrupted
    def fails() -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        fails()


def test_errors_leave_the_stepper_as_it_is() -> None:
    """An error is no interrupt: what is remembered of other data stays."""
    model = mujoco.MjModel.from_xml_string(
        '<mujoco><worldbody><geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>'
        '<geom type="box" size=".1 .1 .1"/></body></worldbody></mujoco>'
    )
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    stepper.step(data, 3)
    model.opt.timestep = 0.0
    with pytest.raises(hf.InputError):
        stepper.step(data)
    assert len(stepper._histories) == 1 and stepper._whole


THREADS = """
import os, sys, threading, time
from fuzz.interrupts import Interrupter
from holdfast._jit import uninterrupted

answer = uninterrupted(lambda: time.sleep(0.01))
lines = 0
while lines < 500 and Interrupter(lines + 1).run(answer):
    lines += 1
end = time.monotonic() + 10.0
while time.monotonic() < end and threading.active_count() > 1:
    time.sleep(0.01)
print(lines, threading.active_count() - 1, flush=True)
os._exit(0)  # a thread that waits for ever would keep the process
"""


def test_an_interrupt_leaves_no_thread_that_waits_for_ever() -> None:
    """At every line, also of Python's own threads: the process could not end."""
    done = subprocess.run(
        [sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=120, check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([*map(str, sys.path), str(TESTS)])},
    )  # fmt: skip
    lines, waiting = map(int, done.stdout.split())
    assert lines > 10 and waiting == 0
