"""Contact models of every kind in a Stepper, and laws that are written as text."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.mujoco.pair_laws import parse

BOX = """
<mujoco>
  <option timestep="0.002"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1" friction="0.5"/>
    <body pos="0 0 {height}">
      <freejoint/>
      <geom name="box" type="box" size="0.1 0.1 0.1" mass="1" friction="0.5"/>
    </body>
  </worldbody>
</mujoco>
"""

MODELS = {
    "Coulomb": hf.Coulomb(),
    "Stewart and Trinkle": hf.StewartTrinkle(),
    "Anitescu and Potra": hf.AnitescuPotra(),
    "Drumwright and Shell": hf.DrumwrightShell(),
    "Coulomb at acceleration level": hf.CoulombAcceleration(),
}


@pytest.mark.parametrize("height", [0.1, 0.12])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_a_box_slides_and_stops(model: Any, height: float) -> None:
    """From the floor mu g brakes it; from 2 cm above the impact does. It stays on the floor."""
    scene = mujoco.MjModel.from_xml_string(BOX.format(height=height))
    data, stepper = mujoco.MjData(scene), hf.Stepper(scene, model)
    data.qvel[0] = 0.3
    stepper.step(data, nstep=100)
    brakes = isinstance(
        model, hf.CoulombAcceleration
    )  # its friction knows only the velocity before
    speed = 0.02 if brakes else 1e-9
    assert np.abs(data.qvel[:3]).max() <= speed
    above = 0.001 if isinstance(model, hf.AnitescuPotra) else 1e-6  # stops where it is listed
    assert -1e-9 <= data.qpos[2] - 0.1 <= above
    distance = 0.3**2 / (2 * 0.5 * 9.81)
    slid = data.qpos[0] - (0.3 * np.sqrt(2 * 0.02 / 9.81) if height > 0.1 else 0.0)
    assert -0.001 <= slid - (distance if height == 0.1 else 0.0) <= 0.001


@pytest.mark.parametrize(
    ("text", "law"),
    [
        ("coulomb", hf.coulomb()),
        ("coulomb 0.6", hf.coulomb(0.6)),
        (" viscous  0.1 ", hf.viscous(0.1)),
        ("stick", hf.stick()),
        ("frictionless", hf.frictionless()),
    ],
)
def test_laws_as_text(text: str, law: hf.Law) -> None:
    assert parse(text) == law


@pytest.mark.parametrize("text", ["", "coulomb a", "coulomb 0.1 0.2", "coulomb -1", "sticky"])
def test_texts_that_are_no_law(text: str) -> None:
    with pytest.raises(hf.InputError):
        parse(text)
