"""Models that come with other people's packages, by name, and what these need under MuJoCo 4.

A source is a text: ``gymnasium/envs/mujoco/assets/ant.xml`` is a file of an installed package,
``suite:walker/run`` an environment of dm_control's suite, ``manipulation:stack_2_bricks_features``
one of its manipulation tasks, ``robosuite:Lift/Panda`` one of robosuite's. Environments are made in
the process that asks for their model; nothing is written to the packages.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mujoco

PACKAGES = ("dm_control", "gymnasium", "gymnasium_robotics", "metaworld", "robosuite",
            "mujoco_playground")  # fmt: skip
# Packages with models that few of the rules were made on. They are looked for, not asked for:
# `pip install --no-deps`, or unpacked wheels on PYTHONPATH.
FURTHER = ("brax", "d4rl", "dm_robotics", "fancy_gym", "gym_aloha", "gym_hil", "gym_xarm",
           "mani_skill", "mjlab", "mujoco_maze", "mujoco_py", "mujoco_warp", "myo_sim", "myosuite",
           "newton", "robopianist", "robosuite_models", "safety_gymnasium")  # fmt: skip
ROBOSUITE = (
    "Lift/Panda", "Stack/Panda", "NutAssembly/Sawyer", "PickPlace/IIWA", "Door/Panda", "Wipe/UR5e",
    "ToolHang/Kinova3", "TwoArmLift/Baxter", "TwoArmPegInHole/Baxter", "TwoArmHandover/Baxter",
)  # fmt: skip


def folder_of(package: str) -> Path | None:
    """Where a package is installed, found without importing it."""
    spec = importlib.util.find_spec(package)
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


def all_sources() -> list[str]:
    """Every model and environment of the packages that are installed."""
    return [*_files(), *_suite(), *_manipulation(), *_robosuite()]


def _files() -> Iterator[str]:
    for package in (*PACKAGES, *FURTHER):
        folder = folder_of(package)
        for path in sorted(folder.rglob("*.xml")) if folder else ():
            if "<mujoco" in path.read_text(errors="ignore").replace("<mujocoinclude", ""):
                yield str(path.relative_to(folder.parent))


def _suite() -> Iterator[str]:
    if folder_of("dm_control"):
        from dm_control import suite

        yield from (f"suite:{domain}/{task}" for domain, task in suite.ALL_TASKS)


def _manipulation() -> Iterator[str]:
    if folder_of("dm_control"):
        from dm_control import manipulation

        yield from (f"manipulation:{name}" for name in manipulation.ALL if "features" in name)


def _robosuite() -> Iterator[str]:
    if folder_of("robosuite"):
        yield from (f"robosuite:{name}" for name in ROBOSUITE)


def load(source: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """The model of a source, and data in the state in which its environment begins."""
    kind, colon, name = source.partition(":")
    if colon:
        return {"suite": _load_suite, "manipulation": _load_manipulation,
                "robosuite": _load_robosuite}[kind](name)  # fmt: skip
    folder = folder_of(source.partition("/")[0])
    if folder is None:
        raise FileNotFoundError(f"the package of {source} is not installed")
    model = mujoco.MjModel.from_xml_path(str(folder.parent / source))
    data = mujoco.MjData(model)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    return model, data


def _patch_dm_control() -> None:
    """Let dm_control forget arrays that MuJoCo 4 no longer has."""
    from dm_control.mujoco.wrapper.mjbindings import sizes

    for struct, kind in (("mjmodel", mujoco.MjModel), ("mjdata", mujoco.MjData)):
        known = sizes.array_sizes[struct]
        for name in [name for name in known if not hasattr(kind, name)]:
            del known[name]


def _load_suite(name: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    from dm_control import suite

    _patch_dm_control()
    return _of_physics(suite.load(*name.split("/"), task_kwargs={"random": 0}))


def _load_manipulation(name: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    from dm_control import manipulation

    _patch_dm_control()
    return _of_physics(manipulation.load(name, seed=0))


def _of_physics(environment: Any) -> tuple[mujoco.MjModel, mujoco.MjData]:
    environment.reset()
    physics = environment.physics
    return physics.model.ptr, physics.data.ptr


def _load_robosuite(name: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    environment = make_robosuite(*name.split("/"))
    environment.reset()
    return environment.sim.model._model, environment.sim.data._data


def make_robosuite(
    task: str, robot: str, step: Callable[..., None] | None = None, **options: Any
) -> Any:
    """An environment of robosuite, without pictures."""
    logging.getLogger("robosuite_logs").setLevel(logging.ERROR)
    import robosuite

    adapt("robosuite", step)

    given = {"has_renderer": False, "has_offscreen_renderer": False, "use_camera_obs": False,
             "seed": 0, **options}  # fmt: skip
    return robosuite.make(task, robots=robot, **given)


# --- what packages written for MuJoCo 3 ask of MuJoCo 4 -------------------------------------------


class OldMujoco:
    """The module `mujoco` as such packages expect it, with a step of choice.

    In MuJoCo 3 joint types compare equal to integers within tuples, and `mj_fullM` takes the
    inertia; `mj_step` may be any function of model, data and nstep.
    """

    mjtJoint = SimpleNamespace(
        **{name: int(value) for name, value in mujoco.mjtJoint.__members__.items()}
    )

    def __init__(self, step: Callable[..., None] | None = None) -> None:
        self.mj_step = step or mujoco.mj_step
        if step is not None:  # of a step in two halves the second one does all
            self.mj_step2 = step

    def __getattr__(self, name: str) -> Any:
        return getattr(mujoco, name)

    @staticmethod
    def mj_fullM(model: Any, out: Any, data: Any) -> None:
        """MuJoCo 3 wants the inertia itself, which here are the data that hold it."""
        mujoco.mj_fullM(model, getattr(data, "_data", data), out)


def adapt(package: str, step: Callable[..., None] | None = None) -> None:
    """Let the modules of a package that are loaded see `OldMujoco`, in memory only."""
    old = OldMujoco(step)
    for name, module in list(sys.modules.items()):
        seen = getattr(module, "mujoco", None)
        if name.split(".")[0] == package and (seen is mujoco or isinstance(seen, OldMujoco)):
            module.__dict__["mujoco"] = old
    if package == "metaworld":
        from metaworld.sawyer_xyz_env import SawyerMocapBase

        SawyerMocapBase.reset_mocap_welds = _reset_welds
    if package == "robosuite":
        from robosuite.utils import binding_utils

        binding_utils.MjData.qM = property(lambda self: self)


def _reset_welds(environment: Any) -> None:
    """Metaworld's own, for rows of 11 numbers or more."""
    model = environment.model
    for i in range(model.neq if model.nmocap else 0):
        if model.eq_type[i] == mujoco.mjtEq.mjEQ_WELD:
            model.eq_data[i, :11] = [0.0] * 6 + [-1.0, 0.0, 0.0, 0.0, 5.0]
