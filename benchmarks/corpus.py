"""Record contact problems of whole scenes: piles, stacks, walls, robots; consecutive steps.

    python benchmarks/corpus.py --out DIR [--only pile_020 robot] [--data DIR]

Scenes are stepped by `mj_step` with nearly rigid contacts (elliptic cone, 2 ms) and, a few
consecutive steps at a time, `holdfast.build_problem` is saved: ``DIR/<scene>_<part>_<step>.npz``,
to be read by `ContactProblem.load`. Which contact is which from one step to the next is told by
``DIR/contacts/<the same name>.npz``: `geoms` (n, 2) and `points` (n, 3). Scenes whose models are
not installed (dm_control, gymnasium) are left out with a printed reason.
"""

from __future__ import annotations

import argparse
import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

import holdfast as hf

COEFFICIENTS = (0.05, 0.2, 0.5, 1.0, 2.0)  # of the recorded problems of tests/data
OPTION = """<option timestep="0.002" cone="elliptic" impratio="10" iterations="200"/>
  <size memory="400M"/>"""
STIFF = ".006 1", ".99 .999 .0001"


@dataclass(frozen=True)
class Scene:
    """A scene and when to record it.

    Attributes:
        name: of the files.
        model: makes it.
        parts: name of a part of the run -> first steps of its sequences.
        length: consecutive steps of a sequence.
        start: sets the first state.
        control: spread of random controls, as a part of their range.
    """

    name: str
    model: Callable[[], Any]
    parts: dict[str, tuple[int, ...]]
    length: int = 10
    start: Callable[[Any, Any], None] | None = None
    control: float = 0.0


def arena(bodies: str, mu: float, half: float | None = 0.26, condim: int = 3) -> str:
    """A floor, four walls unless `half` is None, and bodies."""
    solref, solimp = STIFF
    walls = ""
    if half is not None:
        for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
            walls += (
                f'<geom type="plane" size="2 2 1" pos="{-half * x} {-half * y} 0" '
                f'zaxis="{x} {y} 0"/>'
            )
    return f"""<mujoco>{OPTION}
      <default><geom friction="{mu} 0.005 0.0001" solref="{solref}" solimp="{solimp}"
        density="1000" condim="{condim}"/></default>
      <worldbody><geom type="plane" size="5 5 1"/>{walls}{bodies}</worldbody></mujoco>"""


def random_pose(rng: np.random.Generator) -> str:
    q = rng.normal(size=4)
    return " ".join(f"{x:.9f}" for x in q / np.linalg.norm(q))


def pile(count: int, mu: float, shape: str = "box", condim: int = 3, seed: int = 0) -> str:
    """Bodies of random size and pose in layers of nine above the floor, between walls."""
    rng = np.random.default_rng([seed, count])
    bodies = ""
    for i in range(count):
        layer, place = divmod(i, 9)
        x, y = np.array([place % 3 - 1, place // 3 - 1]) * 0.165 + rng.uniform(-0.01, 0.01, 2)
        z = 0.12 + 0.17 * layer
        if shape == "box":
            size = rng.uniform(0.025, 0.055, 3)
        elif shape == "capsule":
            size = rng.uniform((0.02, 0.025), (0.035, 0.045))
        else:
            size = rng.uniform((0.03,), (0.065,))
        bodies += (
            f'<body pos="{x:.9f} {y:.9f} {z:.9f}" quat="{random_pose(rng)}"><freejoint/>'
            f'<geom type="{shape}" size="{" ".join(f"{s:.9f}" for s in size)}"/></body>'
        )
    return arena(bodies, mu, condim=condim)


def stack(count: int, mu: float, seed: int = 0) -> str:
    """Boxes on top of each other, a little shifted and turned, the first a little above ground."""
    rng = np.random.default_rng([seed, 1])
    bodies, z = "", 0.001
    for _ in range(count):
        a, b, c = rng.uniform(0.08, 0.12), rng.uniform(0.08, 0.12), rng.uniform(0.03, 0.06)
        x, y = rng.uniform(-0.01, 0.01, 2)
        z += c
        bodies += (
            f'<body pos="{x:.9f} {y:.9f} {z:.9f}" euler="0 0 {rng.uniform(0, 90):.9f}">'
            f'<freejoint/><geom type="box" size="{a:.9f} {b:.9f} {c:.9f}"/></body>'
        )
        z += c + 0.001
    return arena(bodies, mu, None)


def bricks(rows: int, columns: int, mu: float, ball: bool = True) -> str:
    """A wall of bricks in running bond, hit by a ball."""
    half, bodies = (0.1, 0.05, 0.04), ""
    for row in range(rows):
        for column in range(columns):
            x = (column + 0.35 * (row % 2)) * 2.02 * half[0]
            bodies += (
                f'<body pos="{x:.9f} 0 {half[2] + 2 * half[2] * row:.9f}"><freejoint/>'
                f'<geom type="box" size="{half[0]} {half[1]} {half[2]}"/></body>'
            )
    if ball:
        bodies += (
            f'<body pos="{columns * half[0]:.9f} -0.5 {rows * half[2]:.9f}"><freejoint/>'
            '<geom type="sphere" size="0.08" density="4000"/></body>'
        )
    return arena(bodies, mu, None)


def dominoes(count: int, mu: float) -> str:
    """A row of upright tiles; the first leans."""
    bodies = ""
    for i in range(count):
        lean = 12 if i == 0 else 0
        bodies += (
            f'<body pos="{0.06 * i:.9f} 0 {0.0805 if lean else 0.08}" euler="0 {lean} 0">'
            '<freejoint/><geom type="box" size="0.01 0.04 0.08"/></body>'
        )
    return arena(bodies, mu, None)


def chains(count: int, links: int, mu: float) -> str:
    """Chains of capsules with limits and dry friction in their joints, some closed to a ring."""
    bodies, ties = "", ""
    for i in range(count):
        x, y = -0.16 * np.cos(0.7 * i), -0.16 * np.sin(0.7 * i)
        place = f'pos="{x:.9f} {y:.9f} {0.05 + 0.08 * i}" euler="0 0 {np.degrees(0.7 * i):.9f}"'
        bodies += f'<body name="c{i}_0" {place}><freejoint/>{_LINK}'
        for k in range(1, links):
            axis = "0 1 0" if k % 2 else "0 0 1"
            bodies += (
                f'<body name="c{i}_{k}" pos=".08 0 0"><joint axis="{axis}" pos="-.04 0 0" '
                f'limited="true" range="-60 60" frictionloss="0.02"/>{_LINK}'
            )
        bodies += "</body>" * links
        if i % 3 == 0:
            ties += f'<connect body1="c{i}_0" body2="c{i}_2" anchor=".08 0 .02"/>'
    scene = arena(bodies, mu)
    return scene.replace("</mujoco>", f"<equality>{ties}</equality></mujoco>")


_LINK = '<geom type="capsule" fromto="-.03 0 0 .03 0 0" size=".015"/>'


def _from(xml: Callable[[], str]) -> Callable[[], Any]:
    return lambda: mujoco.MjModel.from_xml_string(xml())


def _throw_ball(model: Any, data: Any) -> None:
    data.qvel[-5] = 6.0


def piles() -> Iterator[Scene]:
    for count in (20, 60, 100):
        falls = {20: (70, 110, 150, 220), 60: (100, 180, 260, 350), 100: (120, 240, 340, 440)}
        for mu in (1.0, 0.4):
            parts = {"fall": falls[count], "rest": (1500,)}
            yield Scene(f"pile_{count:03d}_mu{mu}", _from(partial(pile, count, mu)), parts)


def others() -> Iterator[Scene]:
    parts = {"fall": (60, 120, 180, 300), "rest": (1500,)}
    yield Scene("spheres_060_mu0.5", _from(partial(pile, 60, 0.5, "sphere")), parts)
    yield Scene("capsules_040_mu0.5", _from(partial(pile, 40, 0.5, "capsule")), parts)
    rolling = _from(partial(pile, 20, 0.5, "sphere", 6))
    yield Scene("spheres_020_condim6_mu0.5", rolling, parts)
    boxes = _from(partial(pile, 20, 0.5, "box", 4))
    yield Scene("pile_020_condim4_mu0.5", boxes, parts)
    yield Scene("chains_008_mu0.5", _from(partial(chains, 8, 5, 0.5)), parts)
    for mu in (0.3, 0.8):
        parts = {"land": (8,), "rest": (400,)}
        yield Scene(f"stack_010_mu{mu}", _from(partial(stack, 10, mu)), parts)
    yield Scene("wall_6x6_rest_mu0.6", _from(partial(bricks, 6, 6, 0.6, False)), {"rest": (5, 200)})
    parts = {"hit": (60, 80, 120), "after": (400,)}
    wall = _from(partial(bricks, 6, 6, 0.6))
    yield Scene("wall_6x6_hit_mu0.6", wall, parts, start=_throw_ball)
    parts = {"fall": (60, 150, 300, 500), "rest": (1500,)}
    yield Scene("dominoes_020_mu0.3", _from(partial(dominoes, 20, 0.3)), parts)


def _suite_text(domain: str) -> tuple[str, dict[str, bytes]]:
    """Model and assets of dm_control's suite; its environments need an older MuJoCo."""
    from importlib import import_module

    module = import_module(f"dm_control.suite.{domain}")
    if domain == "dog":
        text, assets = module.get_model_and_assets(floor_size=10, remove_ball=True)
    elif domain == "quadruped":
        text, assets = module.make_model(floor_size=10), module.common.ASSETS
    else:
        text, assets = module.get_model_and_assets()
    return text if isinstance(text, str) else text.decode(), dict(assets)


def _suite(domain: str) -> Any:
    return mujoco.MjModel.from_xml_string(*_suite_text(domain))


def _gymnasium(name: str) -> Any:
    from importlib.util import find_spec

    package = find_spec("gymnasium")
    if package is None or package.origin is None:
        raise ImportError("gymnasium is not installed")
    folder = Path(package.origin).parent / "envs/mujoco/assets"
    return mujoco.MjModel.from_xml_path(str(folder / f"{name}.xml"))


def _many_humanoids(count: int) -> Any:
    text, assets = _suite_text("humanoid")
    include = {key.removeprefix("./"): value for key, value in assets.items()}
    scene = mujoco.MjSpec.from_string(arena("", 0.8, None))
    for i in range(count):
        one = mujoco.MjSpec.from_string(text, include=include)
        for geom in list(one.worldbody.geoms):
            one.delete(geom)
        place = [0.8 * (i % 3), 0.8 * (i // 3 % 3), 0.05 + 1.75 * (i // 9)]
        frame = scene.worldbody.add_frame(pos=place)
        frame.attach_body(one.worldbody.first_body(), f"h{i}_", "")
    return scene.compile()


def _lift(height: float, tilt: float = 0.0) -> Callable[[Any, Any], None]:
    """Start `height` above the floor, the first geom, in the model's first pose, tilted."""

    def start(model: Any, data: Any) -> None:
        free = model.njnt > 0 and model.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
        if not free:
            return
        if tilt:
            axis = np.array([0.6, 0.8, 0.0])
            turn = np.empty(4)
            mujoco.mju_axisAngle2Quat(turn, axis, tilt)
            mujoco.mju_mulQuat(data.qpos[3:7], turn, data.qpos[3:7].copy())
        data.qpos[2] += 1.0
        for _ in range(1000):  # down to the floor
            mujoco.mj_forward(model, data)
            if np.any(data.contact.geom1 == 0):
                break
            data.qpos[2] -= 0.002
        data.qpos[2] += height

    return start


def robots() -> Iterator[Scene]:
    parts = {"land": (60, 120), "lie": (800,)}
    for domain in ("humanoid", "quadruped", "dog", "humanoid_CMU", "walker", "cheetah", "hopper"):
        yield Scene(
            f"robot_suite_{domain}", partial(_suite, domain), parts, 5, _lift(0.05, 0.3), 0.3
        )
    for name in ("ant", "humanoid", "half_cheetah", "walker2d", "hopper", "humanoidstandup"):
        yield Scene(f"robot_gym_{name}", partial(_gymnasium, name), parts, 5, _lift(0.05, 0.3), 0.3)
    parts = {"fall": (150, 300, 450), "lie": (1000,)}
    yield Scene("robot_22_humanoids", partial(_many_humanoids, 22), parts)


def _blocks(problem: hf.ContactProblem) -> hf.ContactProblem:
    """The same problem with M as 6 x 6 blocks if it has no other entries."""
    M = problem.M
    if M.ndim != 2 or problem.m % 6 or problem.m == 6:
        return problem
    count = problem.m // 6
    parts = M.reshape(count, 6, count, 6)
    outside = parts.copy()
    outside[np.arange(count), :, np.arange(count), :] = 0.0
    if outside.any():
        return problem
    named = {field.name: getattr(problem, field.name) for field in fields(problem)}
    return hf.ContactProblem(**{**named, "M": parts[np.arange(count), :, np.arange(count), :]})


def _rolling(problem: hf.ContactProblem, friction: np.ndarray) -> hf.ContactProblem:
    """The same problem with the coefficients of torsion and rolling, if it has none yet."""
    if not len(problem.R) or problem.mu_R is not None:
        return problem
    contact = problem.R_contact
    number = np.arange(len(contact)) - np.searchsorted(contact, contact)
    return replace(problem, mu_R=friction[contact, 2 + number])


def next_problem(model: Any, data: Any) -> tuple[hf.ContactProblem, np.ndarray, np.ndarray]:
    """The problem of the next step, geoms (n, 2) and points (n, 3) of its contacts."""
    data = copy.copy(data)
    problem = hf.build_problem(model, data)  # lists its contacts in the data
    listed = data.contact.efc_address >= 0
    problem = _rolling(_blocks(problem), data.contact.friction[listed])
    return problem, data.contact.geom[listed], data.contact.pos[listed]


def record(scene: Scene, out: Path) -> int:
    """Step a scene and save its problems; how many there were."""
    model = scene.model()
    model.opt.timestep = min(model.opt.timestep, 0.002) if model.opt.timestep > 0 else 0.002
    model.geom_margin[:] = 0.0  # soft contacts hover at the edge of a margin
    data = mujoco.MjData(model)
    if scene.start is not None:
        scene.start(model, data)
    rng = np.random.default_rng(11)
    wanted = {
        first + k: (part, number, k)
        for part, begins in scene.parts.items()
        for number, first in enumerate(begins)
        for k in range(scene.length)
    }
    saved, control = 0, np.zeros(model.nu)
    for step in range(max(wanted) + 1):
        if scene.control and model.nu and step % 50 == 0:
            low, high = model.actuator_ctrlrange.T
            wide = np.where(high > low, high - low, 2.0)
            middle = np.where(high > low, (high + low) / 2, 0.0)
            control = middle + scene.control * wide * rng.uniform(-0.5, 0.5, model.nu)
        data.ctrl[:] = control
        if step in wanted:
            problem, geoms, points = next_problem(model, data)
            part, number, k = wanted[step]
            if problem.n + len(problem.U):
                name = f"{scene.name}_{part}{number}_{k:02d}.npz"
                problem.save(out / name)
                np.savez_compressed(out / "contacts" / name, geoms=geoms, points=points)
                saved += 1
        mujoco.mj_step(model, data)
    return saved


def recorded(folder: Path) -> Iterator[tuple[str, hf.ContactProblem]]:
    """The contact problems of a data folder under several coefficients of friction."""
    known = {field.name for field in fields(hf.ContactProblem)}
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as arrays:
            named = {key: arrays[key] for key in arrays if key in known - {"mu", "h", "mu_v"}}
        problem = hf.ContactProblem(**named)
        for mu in COEFFICIENTS:
            yield f"data_{file.stem}_mu{mu}", replace_mu(problem, mu)


def replace_mu(problem: hf.ContactProblem, mu: float) -> hf.ContactProblem:
    """The same problem with one coefficient of friction."""
    return replace(problem, mu=np.full(problem.n, mu))


def main() -> None:
    """Record what is asked for."""
    here = Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=here / "results" / "corpus")
    parser.add_argument("--data", type=Path, default=here.parent / "tests/data/contact_problems")
    parser.add_argument("--only", nargs="*", help="only scenes whose name begins with one of these")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    (given.out / "contacts").mkdir(parents=True, exist_ok=True)

    def asked(name: str) -> bool:
        return not given.only or any(name.startswith(word) for word in given.only)

    if asked("data"):
        for name, problem in recorded(given.data):
            problem.save(given.out / f"{name}.npz")
    for scene in (*piles(), *others(), *robots()):
        if not asked(scene.name):
            continue
        try:
            print(scene.name, record(scene, given.out), flush=True)
        except (ImportError, hf.HoldfastError, ValueError, OSError) as error:
            print(f"{scene.name}: left out ({type(error).__name__}: {error})", flush=True)


if __name__ == "__main__":
    main()
