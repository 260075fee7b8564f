"""Models that come with MuJoCo, and hard ones of our own: stepped, or refused by name."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco import UnsupportedError

pytestmark = pytest.mark.jit  # hundreds of steps: without compilation they take too long
SHIPPED = sorted(Path(mujoco.__file__).parent.glob("testdata/*.xml"))
OWN = sorted((Path(__file__).parents[1] / "models_mujoco").glob("*.xml"))


@pytest.mark.parametrize("path", SHIPPED + OWN, ids=lambda path: path.stem)
def test_model_is_stepped_or_refused(path: Path) -> None:
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    try:
        stepper = hf.Stepper(model, warn=False)
    except UnsupportedError as error:
        assert error.argument
        return
    rng, fastest = np.random.default_rng(0), 1.0
    for _ in range(100):
        data.ctrl[:] = 0.1 * rng.normal(size=model.nu)
        stepper.step(data)
        solution = stepper.solution
        assert solution is not None
        assert solution.momentum_residual() < 1e-9
        assert solution.penetration_speed() < 1e-9
        assert (solution.normal >= 0.0).all()
        if stepper._keep["displacement"].any():  # a correction is paid for with speed
            np.testing.assert_allclose(data.qvel, solution.velocity, rtol=0.011)
        else:
            assert np.array_equal(solution.velocity, data.qvel)
        fastest = max(fastest, float(np.abs(data.qvel).max(initial=0.0)))
    assert np.isfinite(data.qpos).all()
    assert stepper.fastest_slip < 2e-6 * fastest  # tangents as close as the rank tolerance are one


def test_shipped_models_were_found() -> None:
    assert SHIPPED and OWN
