"""The work array of a step: its parts lie one after the other, and suffice."""

from __future__ import annotations

import mujoco
import numpy as np

import holdfast as hf
from holdfast.mujoco import structs
from holdfast.mujoco.constraints import size_needed
from holdfast.mujoco.step import carve_in_python

SCENE = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 0.1"><freejoint/><geom type="box" size="0.1 0.1 0.1"/></body>
  <body pos="1 0 0.5"><joint limited="true" range="-1 10" frictionloss="0.1"/>
    <geom type="capsule" size="0.05 0.2"/></body></worldbody></mujoco>"""


def test_parts_lie_one_after_the_other() -> None:
    model = mujoco.MjModel.from_xml_string(SCENE)
    stepper, data = hf.Stepper(model, warn=False), mujoco.MjData(model)
    stepper.step(data)
    arrays, answer, constraints, rest = carve_in_python(stepper.record)
    s = stepper.record[0]
    begin, end = int(s["work"]), int(s["work"] + 8 * s["work_size"])
    every = [each for each in (*arrays, *answer, *constraints)
             if begin <= each.ctypes.data < end]  # fmt: skip
    every.sort(key=lambda each: each.ctypes.data)
    at = begin
    for each in every:
        assert each.ctypes.data == at
        at += each.nbytes
    assert at == rest <= end
    assert len(arrays.target) == s["rows"] > len(arrays.law) == s["constraints"] >= 5
    needed = getattr(size_needed, "py_func", size_needed)(structs.Fields(s))
    assert rest - begin <= 8 * needed <= end - begin
    assert arrays.row[-1] == len(arrays.target) and arrays.panel[-1] == len(arrays.panel_tree)
    assert all(np.isfinite(each).all() for each in (arrays.values, arrays.target, answer.impulse))
