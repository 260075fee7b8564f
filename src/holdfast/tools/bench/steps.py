"""One step from Python: ours, MuJoCo's, and Drake's where it is installed."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper
from holdfast.tools.bench.scenes import STATE, Scene
from holdfast.tools.bench.timing import Call, Times, interleave

RESTART = 20  # samples between two restarts: MuJoCo's contacts creep
WARM = 5  # steps after a restart that do not count
OURS, DEFAULT, NOSLIP, DRAKE = "holdfast", "MuJoCo", "MuJoCo, noslip", "Drake, SAP"


def time_steps(scene: Scene, seconds: float) -> tuple[Times, list[str]]:
    """Times of a step, and what is left out and why."""
    noslip, stepper, notes = scene.with_noslip(), Stepper(scene.model, warn=False), []
    calls = {
        OURS: _stepped(scene, stepper.step),
        DEFAULT: _stepped(scene, lambda data: mujoco.mj_step(scene.model, data)),
        NOSLIP: _stepped(scene, lambda data: mujoco.mj_step(noslip, data)),
    }
    try:
        calls[DRAKE] = drake_step(scene)
    except MissingPeer as missing:
        notes.append(f"{DRAKE}: {missing}")
    return interleave(calls, seconds), notes


class MissingPeer(Exception):
    """Another simulator that is not installed or does not read the scene."""


def _stepped(scene: Scene, step: Callable[[Any], object]) -> Call:
    """A step as a call; now and then it starts again where the scene has settled."""
    data = copy.copy(scene.data)

    def restart() -> None:
        mujoco.mj_copyState(scene.model, scene.data, data, STATE)

    return Call(lambda: step(data), _now_and_then(restart, lambda: step(data)))


def _now_and_then(restart: Callable[[], None], step: Callable[[], object]) -> Callable[[], None]:
    """What is done before a sample: every so often a restart and some steps, to be warm again."""
    samples = 0

    def prepare() -> None:
        nonlocal samples
        if samples % RESTART == 0:
            restart()
            for _ in range(WARM):
                step()
        samples += 1

    return prepare


def drake_step(scene: Scene) -> Call:
    """A step of Drake's discrete MultibodyPlant, with its SAP solver.

    It has one contact point for each pair of geometries, where MuJoCo and we have up to four.
    """
    if find_spec("pydrake") is None:
        raise MissingPeer("not installed (pip install drake)")
    if scene.servos:
        raise MissingPeer("its parser leaves out keyframes and servos")
    logging.getLogger("drake").setLevel(logging.ERROR)
    h = float(scene.model.opt.timestep)
    drake: Any = import_module("pydrake.all")
    builder = drake.DiagramBuilder()
    plant, _ = drake.AddMultibodyPlantSceneGraph(builder, h)
    plant.set_discrete_contact_approximation(drake.DiscreteContactApproximation.kSap)
    try:
        drake.Parser(plant).AddModelsFromString(scene.xml, "xml")
    except RuntimeError as error:
        raise MissingPeer(f"cannot read the scene: {error}") from error
    plant.Finalize()
    simulator = drake.Simulator(builder.Build())
    root = simulator.get_mutable_context()
    context = plant.GetMyMutableContextFromRoot(root)
    if plant.num_actuators():
        plant.get_actuation_input_port().FixValue(context, scene.data.ctrl.copy())

    def restart() -> None:
        _set_state(drake, plant, context, scene)
        root.SetTime(0.0)
        simulator.Initialize()

    def step() -> None:
        simulator.AdvanceTo(root.get_time() + h)

    return Call(step, _now_and_then(restart, step))


def _set_state(drake: Any, plant: Any, context: Any, scene: Scene) -> None:
    """Positions as MuJoCo has them, at rest."""
    model, data = scene.model, scene.data
    plant.SetVelocities(context, plant.GetVelocities(context) * 0.0)
    for i in range(model.njnt):
        joint = model.joint(i)
        qpos = data.qpos[joint.qposadr[0] :]
        if joint.type[0] == mujoco.mjtJoint.mjJNT_FREE:
            pose = drake.RigidTransform(drake.Quaternion(*qpos[3:7]), qpos[:3])
            body = plant.GetBodyByName(model.body(joint.bodyid[0]).name)
            plant.SetFreeBodyPose(context, body, pose)
        elif joint.type[0] == mujoco.mjtJoint.mjJNT_SLIDE:
            plant.GetJointByName(joint.name).set_translation(context, qpos[0])
        else:
            plant.GetJointByName(joint.name).set_angle(context, qpos[0])
