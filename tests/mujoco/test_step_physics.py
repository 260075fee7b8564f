"""MuJoCo scenes with exact contact: against closed forms, and what the product promises."""

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

G = 9.81


def load(xml: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    return model, data


def scene(body: str, *, options: str = "", extra: str = "", floor: str = "") -> str:
    floor = floor or '<geom name="floor" type="plane" size="5 5 1"/>'
    return f"<mujoco><option {options}/><worldbody>{floor}{body}</worldbody>{extra}</mujoco>"


# --- what must be held ---------------------------------------------------------------------------


def creep(seconds: float) -> tuple[float, float]:
    """Speed at which the pinched capsule creeps [m/s], and the largest penetration [m]."""
    model, data = load(scenes.pinched_capsule())
    stepper = hf.Stepper(model)
    stepper.step(data, 100)
    start = data.qpos.copy()
    steps = round(seconds / model.opt.timestep)
    stepper.step(data, steps)
    return float(np.abs(data.qpos - start).max() / seconds), stepper.largest_penetration


def test_pinched_capsule_does_not_creep() -> None:
    speed, depth = creep(2.0)
    assert speed < 1e-10
    assert depth < 1e-6


@pytest.mark.parametrize("xml", [scenes.pinched_capsule(), scenes.row_of_boxes(2)])
def test_bodies_at_rest_do_not_move_by_a_bit(xml: str) -> None:
    """Also where faces coincide, and which points MuJoCo lists depends on the last digit."""
    model, data = load(xml)
    stepper = hf.Stepper(model)
    stepper.step(data, 1000)
    start = data.qpos.copy()
    stepper.step(data, 200)
    np.testing.assert_array_equal(data.qpos, start)
    np.testing.assert_array_equal(data.qvel, 0.0)


@pytest.mark.slow
def test_pinched_capsule_for_a_minute() -> None:
    speed, depth = creep(60.0)
    assert speed < 1e-12
    assert depth < 1e-6


@pytest.mark.parametrize("boxes", [2, 5, pytest.param(10, marks=pytest.mark.slow),
                                   pytest.param(20, marks=pytest.mark.slow)])  # fmt: skip
def test_row_of_boxes_is_held(boxes: int) -> None:
    xml = scenes.row_of_boxes(boxes, size=0.1, squeeze=20 * boxes * G)
    model, data = load(xml)
    start = data.qpos.copy()
    hf.Stepper(model).step(data, 1000 if boxes > 5 else 300)
    assert np.abs(data.qpos - start).max() < 1e-9  # 1e-6 mm


def test_row_of_eight_holds_with_20_newtons() -> None:
    model, data = load(scenes.row_of_boxes(8, size=0.05, mass=0.1, squeeze=20.0))
    start = data.qpos.copy()
    hf.Stepper(model).step(data, 100)
    assert np.abs(data.qpos - start).max() < 1e-9


def test_row_of_eight_opens_with_5_newtons() -> None:
    """The bending moment exceeds what the squeeze can carry, and normals cannot pull.

    A row of n boxes between fixed ends carries at most the moment F a per joint about a face's
    edge: the weight's moment at the middle is n m g L / 8 with L = n a.
    """
    model, data = load(scenes.row_of_boxes(8, size=0.05, mass=0.1, squeeze=5.0))
    hf.Stepper(model).step(data, 50)
    middle = data.body("box3").xpos[2]
    assert middle < -1e-3


@pytest.mark.parametrize("timestep", [0.001, 0.002, 0.005])
def test_feet_do_not_slip_while_the_body_moves(timestep: float) -> None:
    model, data = load(scenes.quadruped(timestep=timestep))
    stepper = hf.Stepper(model)
    stand = data.ctrl.copy()
    stepper.step(data, round(0.05 / timestep))
    fastest, loaded = 0.0, 0
    for _ in range(round(0.3 / timestep)):
        data.ctrl[:] = scenes.squat(data.time, stand)
        stepper.step(data)
        solution = stepper.solution
        assert solution is not None
        pressed = solution.normal > 0.0
        loaded += int(pressed.sum())
        sliding = np.linalg.norm(solution.sliding[pressed], axis=1)
        fastest = max(fastest, float(sliding.max(initial=0.0)))
        # what was solved for is what was integrated
        assert np.array_equal(solution.velocity, data.qvel)
    assert loaded > 0.9 * 4 * round(0.3 / timestep)
    assert fastest < 1e-12  # 1e-9 mm/s


def feet_after(seconds: float) -> float:
    model, data = load(scenes.quadruped())
    stepper = hf.Stepper(model)
    stepper.step(data, 250)
    mujoco.mj_kinematics(model, data)
    feet = [data.geom(f"{leg}_foot").xpos.copy() for leg in ("fl", "fr", "hl", "hr")]
    stepper.step(data, round(seconds / model.opt.timestep))
    mujoco.mj_kinematics(model, data)
    after = [data.geom(f"{leg}_foot").xpos for leg in ("fl", "fr", "hl", "hr")]
    return float(np.abs(np.subtract(after, feet)).max())


def test_quadruped_stands() -> None:
    assert feet_after(0.5) < 1e-9


@pytest.mark.slow
def test_quadruped_stands_for_a_minute() -> None:
    assert feet_after(60.0) < 1e-9  # 1e-6 mm


# --- closed forms --------------------------------------------------------------------------------

ROUND = {"sphere": 2 / 5, "cylinder": 1 / 2}


@pytest.mark.parametrize("shape", ROUND)
def test_rolling_down_an_incline(shape: str) -> None:
    """a = g sin(t) / (1 + I / (m r^2)), exactly: the contact's path is straight."""
    t, r, h = np.radians(20.0), 0.1, 0.002
    size = "0.1" if shape == "sphere" else "0.1 0.1"
    n = np.array([np.sin(t), 0, np.cos(t)])
    body = (f'<body pos="{r * n[0]} 0 {r * n[2]}"><freejoint/>'
            f'<geom type="{shape}" size="{size}" euler="90 0 0"/></body>')  # fmt: skip
    plane = '<geom type="plane" size="50 50 1" euler="0 20 0"/>'
    model, data = load(scene(body, floor=plane))
    hf.Stepper(model).step(data, 250)
    down = np.array([np.cos(t), 0, -np.sin(t)])
    speed = G * np.sin(t) / (1 + ROUND[shape]) * 250 * h
    assert data.qvel[:3] @ down == pytest.approx(speed, rel=1e-6)
    assert abs(data.qvel[:3] @ n) < 1e-6 and abs(data.qvel[1]) < 1e-9


def test_sphere_thrown_on_a_floor() -> None:
    """First step: v0 / (1 + 2/5); then constant."""
    model, data = load(scene('<body pos="0 0 .1"><freejoint/><geom size=".1"/></body>'))
    data.qvel[0] = 1.0
    stepper = hf.Stepper(model, hf.NoSlip(), warn=False)
    stepper.step(data)
    assert data.qvel[0] == pytest.approx(5 / 7, rel=1e-12)
    stepper.step(data, 200)
    assert data.qvel[0] == pytest.approx(5 / 7, rel=1e-9)


def test_billiard_ball_slides_and_then_rolls() -> None:
    """Coulomb: with spin it rolls at 5/7 v0 + 2/7 R (w_y, -w_x) in the end."""
    model, data = load(scene('<body pos="0 0 .1"><freejoint/><geom size=".1"/></body>'))
    data.qvel[:] = [1.0, 0.0, 0.0, 3.0, -4.0, 0.0]
    hf.Stepper(model).step(data, 400)
    expected = [5 / 7 + 2 / 7 * 0.1 * -4.0, 2 / 7 * 0.1 * -3.0]
    assert data.qvel[:2] == pytest.approx(expected, rel=1e-9)


def test_block_rests_on_an_incline() -> None:
    t = np.radians(30.0)
    body = (f'<body pos="{0.1 * np.sin(t)} 0 {0.1 * np.cos(t)}" euler="0 30 0"><freejoint/>'
            '<geom type="box" size=".2 .2 .1" friction="2"/></body>')  # fmt: skip
    plane = '<geom type="plane" size="5 5 1" euler="0 30 0"/>'
    model, data = load(scene(body, floor=plane))
    stepper = hf.Stepper(model)
    start = data.qpos.copy()
    stepper.step(data, 500)
    assert np.abs(data.qpos - start).max() < 1e-10
    assert np.abs(data.qvel).max() < 1e-10
    (needs, _), *_ = stepper.contacts.pairs().values()
    assert needs == pytest.approx(np.tan(t), rel=1e-9)


def test_tipping_over_an_edge() -> None:
    """A thin tall box on its edge falls as a pendulum: w' = m g d sin(a) / I_edge."""
    angle, half, height = np.radians(20.0), 0.02, 0.2
    d = np.hypot(half, height)
    beta = np.arctan2(half, height)  # the centre stands over the edge at this lean
    lean = beta + angle
    # lean about +y: the edge at +x, -z is the pivot
    centre = np.array([d * np.sin(angle), 0.0, d * np.cos(angle)])
    quat = [np.cos(lean / 2), 0, np.sin(lean / 2), 0]
    body = (f'<body pos="{centre[0]} 0 {centre[2]}" quat="{quat[0]} 0 {quat[2]} 0"><freejoint/>'
            f'<geom type="box" size="{half} .1 {height}" mass="1"/></body>')  # fmt: skip
    model, data = load(scene(body, options='timestep="0.0005"'))
    stepper = hf.Stepper(model)
    inertia = (4 * half**2 + 4 * height**2) / 12 + d**2
    stepper.step(data)
    h = model.opt.timestep
    assert data.qvel[4] == pytest.approx(h * G * d * np.sin(angle) / inertia, rel=1e-9)
    stepper.step(data, 200)
    turned = 2 * np.arccos(data.qpos[3]) - beta  # lean of the centre
    speed = np.sqrt(2 * G * d * (np.cos(angle) - np.cos(turned)) / inertia)
    assert data.qvel[4] == pytest.approx(speed, rel=5e-3)


def test_stick_hits_the_floor() -> None:
    """A rod falls on its end: no slip, no bounce; v and w after the impact in closed form."""
    L, t, v0 = 1.0, np.radians(40.0), -2.0  # t: of the rod from the vertical
    axis = np.array([np.sin(t), 0.0, np.cos(t)])
    centre = 0.5 * L * axis
    inertia = L * L / 12.0
    body = (
        f'<body pos="{centre[0]} 0 {centre[2]}"><freejoint/>'
        f'<inertial pos="0 0 0" mass="1" diaginertia="{inertia} {inertia} {inertia}"/>'
        f'<geom type="sphere" size="0.001" pos="{-centre[0]} 0 {-centre[2] + 0.001}"/></body>'
    )
    model, data = load(scene(body, options='gravity="0 0 0"'))
    data.qvel[2] = v0
    hf.Stepper(model).step(data)
    r = np.array([-centre[0], 0.0, -centre[2]])  # from the centre to the end
    d2 = r @ r
    # angular momentum about the end is kept: w = (r x v0) . y-ish / (I + d^2)
    w = (np.cross(-r, [0, 0, v0]) / (inertia + d2))[1]
    assert data.qvel[4] == pytest.approx(w, rel=1e-9)
    v = -np.cross([0, w, 0], r)
    assert data.qvel[:3] == pytest.approx(v, abs=1e-9)


def test_ball_drops_and_stops_on_the_surface() -> None:
    model, data = load(scene('<body pos="0 0 1"><freejoint/><geom size=".1"/></body>'))
    stepper = hf.Stepper(model)
    stepper.step(data, 400)
    assert data.qpos[2] == pytest.approx(0.1, abs=1e-12)
    assert np.abs(data.qvel).max() < 1e-12
    assert stepper.largest_penetration < 1e-12


@pytest.mark.parametrize("gap", [0.0, 1e-4])
def test_ball_flies_past_a_wall(gap: float) -> None:
    """Nothing presses the ball against the wall, so the wall does not hold it."""
    wall = '<geom type="box" size="1 .1 1" pos="0 .1 0"/>'
    body = f'<body pos="0 {-0.1 - gap} 0"><freejoint/><geom size=".1"/></body>'
    model, data = load(scene(body, floor=wall, options='gravity="0 0 0"'))
    data.qvel[:] = [1.0, 0, 0.5, 0, 0, 3.0]
    before = data.qvel.copy()
    hf.Stepper(model).step(data, 100)
    assert np.abs(data.qvel - before).max() < 1e-12


def test_ball_slides_down_a_wall_that_nothing_presses_it_to() -> None:
    wall = '<geom type="box" size="1 .1 5" pos="0 .1 0"/>'
    model, data = load(
        scene('<body pos="0 -.1 0"><freejoint/><geom size=".1"/></body>', floor=wall)
    )
    hf.Stepper(model).step(data, 100)
    assert data.qvel[2] == pytest.approx(-G * 0.2, rel=1e-9)


def test_foot_lifts_off() -> None:
    """Pulled up by more than its weight, a box leaves the floor at once, with F / m - g."""
    model, data = load(scene('<body name="b" pos="0 0 .1"><freejoint/>'
                             '<geom type="box" size=".1 .1 .1" mass="1"/></body>'))  # fmt: skip
    data.xfrc_applied[1, 2] = 3 * G
    hf.Stepper(model).step(data, 50)
    assert data.qvel[2] == pytest.approx(2 * G * 0.1, rel=1e-12)


def test_box_slides_off_an_edge_and_falls() -> None:
    """Frictionless: v stays until it is off the table; then it falls to the floor below."""
    floor = ('<geom type="box" size=".5 .5 .1" pos="0 0 .5" condim="1" friction="0 0 0"/>'
             '<geom type="plane" size="9 9 1"/>')  # fmt: skip
    body = ('<body pos="0.3 0 .65"><freejoint/><geom type="box" size=".05 .05 .05" condim="1"'
            ' mass="1"/></body>')  # fmt: skip
    model, data = load(scene(body, floor=floor))
    data.qvel[0] = 1.0
    stepper = hf.Stepper(model, contact=hf.Frictionless())
    stepper.step(data, 75)
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-12)
    assert data.qpos[2] == pytest.approx(0.65, abs=1e-12)
    stepper.step(data, 400)
    assert data.qpos[0] > 0.55 and data.qpos[2] < 0.2


def test_frictionless_geoms_stay_so() -> None:
    body = '<body pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" condim="1"/></body>'
    floor = '<geom type="plane" size="5 5 1" condim="1"/>'
    model, data = load(scene(body, floor=floor))
    data.qvel[0] = 1.0
    hf.Stepper(model).step(data, 200)
    assert data.qvel[0] == pytest.approx(1.0, rel=1e-12)


def test_viscous_box_slows_down_exponentially() -> None:
    """Implicit Euler of v' = -k mu v / m, per step 1 / (1 + h k mu / m), here k = 4 contacts."""
    body = '<body pos="0 0 .1"><freejoint/><geom type="box" size=".4 .4 .1" mass="2"/></body>'
    model, data = load(scene(body))
    data.qvel[0] = 1.0
    stepper = hf.Stepper(model, laws={("floor", "*"): hf.viscous(0.5)})
    stepper.step(data, 100)
    h = model.opt.timestep
    assert data.qvel[0] == pytest.approx((1 + h * 4 * 0.5 / 2.0) ** -100, rel=1e-9)


@pytest.mark.parametrize("h", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_friction_of_an_impact_lifts_nothing(h: float, cone: str) -> None:
    """At 5 m/s along the floor and 1 m/s down, with mu = 1: the impulse takes 1 m/s of each."""
    body = ('<body pos="0 0 .101"><joint type="slide" axis="1 0 0"/>'
            '<joint type="slide" axis="0 1 0"/><joint type="slide" axis="0 0 1"/>'
            '<geom size=".1" mass="1" friction="1"/></body>')  # fmt: skip
    model, data = load(scene(body))
    model.opt.timestep, model.opt.gravity[:] = h, 0.0
    model.opt.cone = getattr(mujoco.mjtCone, f"mjCONE_{cone.upper()}")
    data.qvel[:] = 5.0, 0.0, -1.0
    hf.Stepper(model).step(data, round(0.05 / h))
    assert data.qvel == pytest.approx([4.0, 0.0, 0.0], abs=1e-9)


# --- joints, limits, loops -----------------------------------------------------------------------


def test_limit_is_reached_and_not_passed() -> None:
    body = ('<body pos="0 0 2"><joint name="j" axis="0 1 0" limited="true" range="-30 30"/>'
            '<geom type="capsule" size=".05" fromto="0 0 0 1 0 0" mass="1"/></body>')  # fmt: skip
    model, data = load(scene(body))
    stepper = hf.Stepper(model)
    highest = 0.0
    for _ in range(500):
        stepper.step(data)
        highest = max(highest, data.qpos[0])
    assert highest == pytest.approx(np.radians(30), abs=1e-12)
    assert data.qpos[0] == pytest.approx(np.radians(30), abs=1e-12)
    assert abs(data.qvel[0]) < 1e-12


@pytest.mark.parametrize(("force", "moves"), [(0.9, False), (1.1, True)])
def test_dry_friction_of_a_joint(force: float, moves: bool) -> None:
    body = ('<body pos="0 0 2"><joint type="slide" axis="1 0 0" frictionloss="1"/>'
            '<geom size=".1" mass="1"/></body>')  # fmt: skip
    model, data = load(scene(body))
    data.qfrc_applied[0] = force
    hf.Stepper(model).step(data, 100)
    expected = (force - 1.0) * 0.2 if moves else 0.0
    assert data.qvel[0] == pytest.approx(expected, abs=1e-12)


FOUR_BAR = """
<body name="a" pos="0 0 1"><joint axis="0 1 0"/>
  <geom type="capsule" size=".02" fromto="0 0 0 0 0 .3"/>
  <body name="b" pos="0 0 .3"><joint axis="0 1 0"/>
    <geom type="capsule" size=".02" fromto="0 0 0 .5 0 0"/>
    <body name="c" pos=".5 0 0"><joint axis="0 1 0"/>
      <geom type="capsule" size=".02" fromto="0 0 0 0 0 -.3"/></body></body></body>
"""


def test_closed_loop_does_not_drift() -> None:
    extra = ('<equality><connect body1="c" body2="world" anchor="0 0 -.3"/></equality>'
             "<default><geom contype='0' conaffinity='0'/></default>")  # fmt: skip
    model, data = load(scene(FOUR_BAR, extra=extra, floor='<site name="x"/>'))
    data.qvel[0] = 0.0
    stepper = hf.Stepper(model, equalities="rigid")
    data.qfrc_applied[0] = 1.0
    worst = 0.0
    for _ in range(1000):
        stepper.step(data)
        mujoco.mj_kinematics(model, data)
        end = data.body("c").xpos + data.body("c").xmat.reshape(3, 3) @ [0, 0, -0.3]
        worst = max(worst, float(np.abs(end - [0.5, 0, 1.0]).max()))
    assert np.abs(data.qvel).max() > 0.1  # it did move
    assert worst < 1e-3 * 0.3


# --- sensors -------------------------------------------------------------------------------------


def test_sensors_show_our_forces() -> None:
    body = ('<body name="b" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1" mass="2"/>'
            '<site name="s" type="box" size=".2 .2 .2"/></body>')  # fmt: skip
    extra = '<sensor><touch site="s"/><accelerometer site="s"/></sensor>'
    for cone in ("pyramidal", "elliptic"):
        model, data = load(scene(body, extra=extra, options=f'cone="{cone}"'))
        hf.Stepper(model).step(data, 10)
        assert data.sensordata[0] == pytest.approx(2 * G, rel=1e-9)
        assert data.sensordata[1:] == pytest.approx([0, 0, G], abs=1e-9)
        assert data.qfrc_constraint == pytest.approx([0, 0, 2 * G, 0, 0, 0], abs=1e-9)
        total = np.zeros(3)
        force = np.zeros(6)
        for i in range(data.ncon):
            mujoco.mj_contactForce(model, data, i, force)  # the user's own model
            total += data.contact.frame[i].reshape(3, 3).T @ force[:3]
        assert total == pytest.approx([0, 0, 2 * G], abs=1e-9)


@pytest.mark.parametrize("pull", [(-5.3, 6.4, 1.95), (1.0, 2.0, 3.0), (-5.0, 0.0, 2.0)])
@pytest.mark.parametrize("steps", [0, 5])
def test_what_is_lifted_off_does_not_rub(pull: tuple[float, ...], steps: int) -> None:
    """Normal forces that are rounding press nothing: bodies in a wind go their own ways."""
    model = mujoco.MjModel.from_xml_string(
        """<mujoco><option timestep=".001" density="1000" wind=".3 0 0" cone="elliptic"/><worldbody>
        <geom type="plane" size="1 1 1"/><body pos="0 0 .1"><freejoint/>
        <geom type="box" size=".1 .1 .1" condim="6"/></body><body pos="0 0 .25"><freejoint/>
        <geom type="box" size=".05 .07 .05" condim="6"/></body></worldbody></mujoco>"""
    )
    data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
    stepper.step(data, steps)
    model.opt.gravity[:] = pull
    free = mujoco.MjData(model)
    free.qpos[:], free.qvel[:] = data.qpos, data.qvel
    model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    mujoco.mj_step(model, free)
    model.opt.disableflags = 0
    stepper.step(data)
    np.testing.assert_allclose(data.qvel, free.qvel, atol=1e-12)
    assert stepper.fastest_slip < 1e-12


def test_bodies_of_very_different_masses_do_not_sink_in() -> None:
    """Rows of the heavy one are short beside those of the light one, and no rounding."""
    boxes = "".join(
        f'<body pos="0 0 {z}"><freejoint/>'
        f'<geom type="box" size="{r} {r} {r}" mass="{mass}"/></body>'
        for z, r, mass in ((0.1, 0.1, 1e15), (0.25, 0.05, 1e-12))
    )
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="3 3 1"/>{boxes}</worldbody></mujoco>'
    )
    data, stepper = mujoco.MjData(model), hf.Stepper(model)
    stepper.step(data, nstep=100)
    assert not stepper.solution.left_out
    np.testing.assert_allclose(data.qpos[[2, 9]], [0.1, 0.25], atol=1e-12)
