"""Answers that miss the certificate: taken and counted, or an error.

Rounding leaves about 1e-16 of any residual, so that a certificate of 1e-18 is missed by every step
in contact that sticks and slides, and by how much is known: less than the usual certificate.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.contact import Options
from holdfast.mujoco import StepOptions
from holdfast.mujoco.step_warnings import _least_certain_pair

OUT_OF_REACH = 1e-18
STRICTER = StepOptions(certificate=OUT_OF_REACH)
HOPELESS = replace(STRICTER, approximate=2 * OUT_OF_REACH)
SCENE = """<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
  <body name="sled" pos="0 0 .1"><freejoint/>
    <geom name="runner" type="box" size=".3 .2 .1" friction=".3"/></body>
  <body name="load" pos=".05 .03 .3" euler="0 0 20"><freejoint/>
    <geom name="crate" type="box" size=".1 .1 .1"/></body>
</worldbody></mujoco>"""


def sled() -> tuple[Any, Any]:
    """A sled that slides and turns, with a load on it."""
    model = mujoco.MjModel.from_xml_string(SCENE)
    data = mujoco.MjData(model)
    data.qvel[[0, 1, 5]] = 1.0, 0.5, 2.0
    return model, data


def state(model: Any, data: Any) -> np.ndarray:
    kind = mujoco.mjtState.mjSTATE_INTEGRATION
    found = np.zeros(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, found, kind)
    return found


def test_an_answer_that_misses_the_certificate_is_taken_counted_and_said_once() -> None:
    model, data = sled()
    stepper = hf.Stepper(model, options=STRICTER)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in range(20):
            stepper.step(data)
            assert stepper.solution is not None
            assert stepper.solution.is_exact(1e-9)  # by the usual measure it is a good answer
    assert 10 <= stepper.uncertified_steps <= 20
    (warning,) = said
    assert issubclass(warning.category, hf.StepWarning)
    assert "uncertified_steps" in str(warning.message)
    assert "between floor and runner" in str(warning.message) or (
        "between runner and crate" in str(warning.message)
    )
    stepper.reset()
    assert stepper.uncertified_steps == 0


def test_an_answer_that_misses_the_certificate_is_sought_twice_at_most() -> None:
    model, data = sled()
    stepper = hf.Stepper(model, options=STRICTER, warn=False)
    stepper.step(data, 2)
    assert stepper.uncertified_steps == 2
    assert stepper.solution is not None and stepper.solution.is_exact(1e-9)


@pytest.mark.parametrize(
    ("strict", "options"),
    [(True, STRICTER), (False, HOPELESS), (True, HOPELESS)],
    ids=["strict", "beyond", "both"],
)
def test_strict_or_beyond_it_is_an_error_and_the_state_is_restored(
    strict: bool, options: StepOptions
) -> None:
    model, data = sled()
    stepper = hf.Stepper(model, strict=strict, options=options)
    before = state(model, data)
    with pytest.raises(hf.SolveError, match=r"no certified motion.*world and sled") as caught:
        for _ in range(20):
            before = state(model, data)
            stepper.step(data)
    assert np.array_equal(state(model, data), before)
    assert stepper.uncertified_steps == 0 and stepper.solution is None
    problem = caught.value.problem
    assert problem is not None
    assert hf.Coulomb().solve(problem).is_exact(1e-9)  # the error carries what was to be solved


def test_on_matrices_it_is_always_an_error() -> None:
    model, data = sled()
    problem = hf.build_problem(model, data)
    options = Options(certificate=OUT_OF_REACH)
    with pytest.raises(hf.SolveError):
        hf.Coulomb(options=options).solve(problem)


def test_what_is_said_of_a_step_does_not_end_it() -> None:
    """Of bodies very far away the inertia is lost in rounding: it is that of no contact problem."""
    model, data = sled()
    stepper = hf.Stepper(model)
    stepper.step(data, 5)
    outcome = stepper._copy_outcome()
    outcome.A = -outcome.A
    assert "inertia" in _least_certain_pair(model, outcome)
