"""Trees with few rows are solved along these rows: the same motion as with all coordinates."""

from __future__ import annotations

import mujoco
import numpy as np

import holdfast as hf

LINK = '<body pos="0.1 0 0"><joint axis="0 {y} {z}" damping="0.02" {more}/>' \
       '<geom type="capsule" size="0.02" fromto="0 0 0 0.1 0 0" conaffinity="0"/>'  # fmt: skip


def snake(links: int, more: str = "") -> str:
    body = "".join(LINK.format(y=k % 2, z=1 - k % 2, more=more) for k in range(links))
    return f"<freejoint/><geom size='0.05' conaffinity='0'/>{body}{'</body>' * links}"


def scene(links: int, more: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(
        '<mujoco><option timestep="0.002"/><default><geom friction="0.6"/></default><worldbody>'
        '<geom type="plane" size="9 9 1"/>'
        f'<body pos="0 0 0.2" euler="0 -5 0">{snake(links, more)}</body>'
        '<body pos="0.5 0.02 0.9"><freejoint/><geom type="box" size="0.06 0.06 0.06"/></body>'
        "</worldbody></mujoco>"
    )


def test_motion_is_that_of_the_problem_with_all_coordinates() -> None:
    """All are exact; where the look-ahead puts contacts next to others, few have another motion."""
    model = scene(24)
    data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
    data.qvel[6 : 6 + 24] = np.random.default_rng(1).normal(size=24)
    compared = others = 0
    for k in range(150):
        stepper.step(data)
        solution = stepper.solution
        if k % 2 or solution is None or len(solution.normal) == 0:
            continue
        rows = len(solution.normal) * 3
        if rows > 0.5 * model.nv:
            continue
        compared += 1
        assert solution.is_exact()
        other = hf.Coulomb().solve(solution.problem)
        assert other.is_exact()
        speed = 1.0 + np.abs(other.motion).max()
        others += np.abs(solution.motion - other.motion).max() > 1e-8 * speed
    assert compared >= 15 and others <= 0.2 * compared


def test_rows_that_depend_on_each_other_span_less() -> None:
    """Limits and dry friction of one joint, and contacts on one line: rank below their number."""
    more = 'limited="true" range="-20 20" frictionloss="0.001"'
    model = scene(14, more)
    model.dof_frictionloss[8:] = 0.0  # few rows
    data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
    for _ in range(150):
        stepper.step(data)
        solution = stepper.solution
        assert solution is None or solution.is_exact()
    assert np.isfinite(data.qpos).all()


def test_constraints_of_different_sizes() -> None:
    """The first contact has no friction, others have; and joints have limits."""
    model = scene(24, 'limited="true" range="-40 40"')
    model.geom_contype[2:] = model.geom_conaffinity[-1] = 0  # no box, no other links
    model.geom_condim[0] = model.geom_condim[1] = 1
    model.geom_size[1] = 0.02
    for g, condim in ((8, 3), (16, 4)):
        model.geom_contype[g], model.geom_condim[g] = 1, condim
    data, stepper = mujoco.MjData(model), hf.Stepper(model, warn=False)
    data.qpos[2], data.qpos[3:7] = 0.0201, [1.0, 0.0, 0.0, 0.0]
    data.qvel[6 : 6 + 24] = 0.1 * np.random.default_rng(2).normal(size=24)
    sizes = set()
    for _ in range(12):
        stepper.step(data)
        solution = stepper.solution
        if solution is None or len(solution.normal) < 2:
            continue
        sizes.add(tuple(data.contact.dim.tolist()))
        assert solution.is_exact()
        other = hf.Coulomb().solve(solution.problem)
        speed = 1.0 + np.abs(other.motion).max()
        assert np.abs(solution.motion - other.motion).max() <= 1e-8 * speed
    assert any(each[0] == 1 and 3 in each for each in sizes), sizes
