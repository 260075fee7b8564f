"""Passive scenes: bodies fall, hit each other and come to rest; nothing gains energy or sinks in.

With the impulses p of a step and free bodies about their centres, whose inertia is constant and
whose potential is linear, a step changes their energy by

    E+ - E = p v+ - 1/2 |v+ - v|^2 - h b v+ + (potential gained by position correction)

The third term is the work of the gyroscopic forces b, which do none along v: MuJoCo's own explicit
treatment of free rotation, there without contact, too. It is taken out below. What is left must not
be positive.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

import holdfast as hf
from holdfast.tools import scenes

pytestmark = [
    pytest.mark.filterwarnings("ignore::holdfast.mujoco.FrictionWarning"),
    pytest.mark.jit,  # thousands of steps: without compilation they take too long
]

FLOOR = '<geom type="plane" size="5 5 1"/>'


def box(pos: str, euler: str = "0 0 0", size: str = ".06 .05 .04") -> str:
    return (f'<body pos="{pos}" euler="{euler}"><freejoint/>'
            f'<geom type="box" size="{size}" mass=".5"/></body>')  # fmt: skip


def scene(bodies: str, options: str = 'timestep="0.005"') -> str:
    return f"<mujoco><option {options}/><worldbody>{FLOOR}{bodies}</worldbody></mujoco>"


class Ledger:
    """Energy of a scene, step by step."""

    def __init__(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        self.model, self.data, self.copy = model, data, mujoco.MjData(model)
        self.stepper: hf.Stepper | None = None
        self.energy = self._measure()

    def _measure(self) -> float:
        model, copy = self.model, self.copy
        copy.qpos[:], copy.qvel[:] = self.data.qpos, 0.0
        mujoco.mj_fwdPosition(model, copy)
        mujoco.mj_fwdVelocity(model, copy)
        gravity = copy.qfrc_bias.copy()
        copy.qvel[:] = self.data.qvel
        mujoco.mj_fwdVelocity(model, copy)
        mujoco.mj_energyPos(model, copy)
        mujoco.mj_energyVel(model, copy)
        self.gyroscopic = copy.qfrc_bias - gravity
        return float(copy.energy.sum())

    def gain(self) -> float:
        """What contact and correction added in the last step [J].

        Free motion gains by its gyroscopic terms, at the velocity that was integrated; a
        correction may have been paid for with a part of that velocity since.
        """
        before, b = self.energy, self.gyroscopic
        self.energy = self._measure()
        integrated = self.data.qvel if self.stepper is None else self.stepper._keep["velocity"]
        free = -self.model.opt.timestep * float(b @ integrated)
        return self.energy - before - free

    @property
    def penetration(self) -> float:
        """Of the state, as MuJoCo sees it [m]."""
        return max(0.0, -float(self.copy.contact.dist.min(initial=0.0)))


SHAPES = "".join(
    f'<body pos="{0.05 * np.cos(2.4 * i)} {0.05 * np.sin(2.4 * i)} {0.2 + 0.16 * i}"'
    f' euler="{37 * i} {53 * i} 0"><freejoint/>'
    f'<geom type="{shape}" size="{size}" mass=".5"/></body>'
    for i, (shape, size) in enumerate([
        ("box", ".06 .05 .04"), ("capsule", ".03 .05"), ("cylinder", ".05 .04"),
        ("ellipsoid", ".06 .05 .03"), ("sphere", ".05"), ("box", ".1 .02 .04"),
    ])
)  # fmt: skip

SCENES: dict[str, tuple[str, list[float], int]] = {
    "tumbling box": (scene(box("0 0 .5", "20 30 10", ".1 .15 .05")), [1.5, 0, 0, 3, 8, 1], 400),
    "on its corner": (scene(box("0 0 .6", "45 35.264 0", ".05 .05 .05")), [], 300),
    "on its edge": (scene(box("0 0 .6", "45 0 0")), [0, 0, -3, 0, 0, 0], 300),
    "stack of ten": (scene("".join(box(f"0 0 {0.04 + 0.081 * i}") for i in range(10))), [], 200),
    "thrown at each other": (
        scene(box("-.4 0 .3", "10 20 30") + box(".4 .02 .3", "40 10 5")),
        [4, 0, 1, 5, 3, 1, -4, 0, 1, -3, 6, 2],
        300,
    ),
    "falling rod": (
        scene(
            '<body pos="0 0 .6" euler="0 60 5"><freejoint/>'
            '<geom type="capsule" size=".03 .3"/></body>'
        ),
        [],
        600,
    ),
    "cylinder": (
        scene(
            '<body pos="0 0 .3" euler="70 0 0"><freejoint/>'
            '<geom type="cylinder" size=".1 .05"/></body>'
        ),
        [],
        600,
    ),
    "all shapes": (scene(SHAPES), [], 500),
    "heap of six": (scenes.pile(6, 1, reach=0.1), [], 400),
    "pile of five": (scenes.pile(5, 0), [], 400),
    "pile of ten": (scenes.pile(10, 1), [], 400),
    "pile of ten, fine": (scenes.pile(10, 0).replace("0.005", "0.002"), [], 1000),
    "pile of twenty": (scenes.pile(20, 1), [], 500),
    "another pile of twenty": (scenes.pile(20, 0), [], 500),
}
ROUND = ("all shapes",)  # they roll: what sinks in by the second order waits to be paid for
LONG = ("pile of ten, fine", "pile of twenty", "another pile of twenty")


def start(name: str) -> tuple[hf.Stepper, Ledger]:
    xml, velocity, _ = SCENES[name]
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    if velocity:
        data.qvel[:] = velocity
    stepper, ledger = hf.Stepper(model), Ledger(model, data)
    ledger.stepper = stepper
    return stepper, ledger


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in LONG else n for n in SCENES]
)
def test_passive_scene_gains_no_energy_and_sinks_in_nowhere(name: str) -> None:
    (stepper, ledger), count = start(name), SCENES[name][2]
    first = ledger.energy
    for _ in range(count):
        stepper.step(ledger.data)
        assert ledger.gain() <= 1e-12 * first
        assert ledger.penetration < (5e-4 if name in ROUND else 2e-5)
    assert ledger.energy < 0.99 * first  # something did happen
    assert stepper.inconsistent_steps <= 0.2 * count
    assert stepper.fastest_slip < 1e-4  # in hard impacts
    if "box" in name or "stack" in name:  # at rest, flat, on its own weight
        assert np.abs(ledger.data.qvel).max() < 1e-9
        assert np.abs(stepper.contacts.gap).max() < 1e-6
        assert stepper.contacts.tangent_force.max() < 1.0
    elif "pile" in name or "heap" in name:
        assert np.abs(ledger.data.qvel).max() < 1e-4


CRADLE = scene(
    "".join(box(f"{x} 0 .5", size=".04 .04 .04") for x in (-0.5, 0.0, 0.083)),
    'timestep="0.005" gravity="0 0 0"',
)


def test_a_body_that_is_hit_meets_another_in_the_same_step() -> None:
    """The middle box is at rest and nothing is near it when the step begins that drives it on."""
    model = mujoco.MjModel.from_xml_string(CRADLE)
    data = mujoco.MjData(model)
    data.qvel[0] = 8.0
    stepper = hf.Stepper(model)
    for _ in range(30):
        stepper.step(data)
        x = data.qpos[[0, 7, 14]]
        assert (np.diff(x) > 0.08 - 1e-6).all()
    assert stepper.resolved_steps > 0
    assert data.qvel[[0, 6, 12]] == pytest.approx(np.full(3, 8.0 / 3.0), rel=1e-9)


def test_islands_are_solved_as_if_together() -> None:
    """Solved apart or in one, a falling pile moves alike, and its solution judges itself alike."""
    model = mujoco.MjModel.from_xml_string(scenes.pile(8, 0))
    data, other = mujoco.MjData(model), mujoco.MjData(model)
    apart, one = hf.Stepper(model), hf.Stepper(model)
    one._set_blocks(np.array([0, model.nv]))  # one block of inertia: one island
    compared = 0
    for _ in range(60):
        mujoco.mj_copyState(model, data, other, mujoco.mjtState.mjSTATE_INTEGRATION)
        apart.step(data)
        one.step(other)
        solution, whole = apart.solution, one.solution
        assert solution is not None and whole is not None
        assert solution.momentum_residual() < 1e-9
        if solution.consistent and whole.consistent:
            assert solution.is_exact() == whole.is_exact()
            assert data.qvel == pytest.approx(other.qvel, abs=1e-8 * np.abs(other.qvel).max())
            assert solution.normal.sum() == pytest.approx(whole.normal.sum(), rel=1e-6, abs=1e-9)
            compared += len(solution.normal) > 0
    assert compared > 20


def test_a_pile_falls_the_same_way_twice() -> None:
    model = mujoco.MjModel.from_xml_string(scenes.pile(6, 3))
    ends = []
    for _ in range(2):
        data = mujoco.MjData(model)
        hf.Stepper(model).step(data, 150)
        ends.append(np.array(data.qpos))
    assert np.array_equal(*ends)


def test_rocking_gains_no_energy() -> None:
    """The point of contact wanders: each step sinks in by its second order, and is lifted out."""
    body = ('<body pos="0 0 .1" euler="0 25 0"><freejoint/><geom type="ellipsoid"'
            ' size=".3 .3 .1" mass="1"/></body>')  # fmt: skip
    model = mujoco.MjModel.from_xml_string(scene(body, 'timestep="0.002"'))
    data = mujoco.MjData(model)
    data.qpos[2] = np.hypot(0.3 * np.sin(np.radians(25)), 0.1 * np.cos(np.radians(25)))
    stepper, ledger = hf.Stepper(model), Ledger(model, data)
    first, fastest = ledger.energy, 0.0
    for _ in range(500):
        stepper.step(data)
        assert ledger.gain() <= 1e-12 * first
        assert ledger.penetration < 2e-4
        fastest = max(fastest, float(np.abs(data.qvel).max()))
    assert fastest > 1.0


@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit", "discrete"])
def test_landing_with_every_integrator(integrator: str) -> None:
    xml = scenes.pile(4, 1, reach=0.05).replace("<option ", f'<option integrator="{integrator}" ')
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    stepper = hf.Stepper(model)
    stepper.step(data, 150)
    assert stepper.resolved_steps > 0 and stepper.largest_penetration < 1e-4
    total = stepper.contacts.force[["world" in pair for pair in stepper.contacts.bodies]]
    assert np.isfinite(total).all()
