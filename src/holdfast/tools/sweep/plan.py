"""Plans: a sweep as a TOML file.

A plan names a scene (simulated and measured, see `scene_task`) or a function in a Python file, and
the cases: a grid, a sample, the lines of a CSV file, or all combinations of these::

    scene = "gripper.xml"            # or: task = "score.py:grasp"
    out = "grasps.parquet"
    duration = 2.0

    [targets]                        # short names of places in the scene
    squeeze = ["ctrl.left", "ctrl.right"]

    [grid]
    squeeze = [1, 2, 5]

    [sample]
    count = 100
    method = "sobol"

    [sample.parameters]
    "geom.cube.friction[0]" = { uniform = [0.2, 1.0] }
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from holdfast.batch.sweep import cases as make
from holdfast.batch.sweep.cases import Case
from holdfast.errors import InputError
from holdfast.tools.sweep.scene_task import SceneTask, Until

WHAT = ("task", "scene")
CASES = ("grid", "sample", "csv")
OF_SCENE = tuple(each.name for each in fields(SceneTask) if each.name != "scene")
KNOWN = (*WHAT, "out", "seed", "repeats", *CASES, *OF_SCENE)


@dataclass(frozen=True)
class Plan:
    """A sweep that is ready to run.

    Attributes:
        task: called with each case.
        cases: without seeds, unless the plan or its CSV file gives some.
        out: table to write.
        seed: random seed from which the seeds of cases are derived.
    """

    task: Callable[..., Any]
    cases: list[Case]
    out: Path
    seed: int


@dataclass(frozen=True)
class FileTask:
    """A function of a Python file or module, found again by each worker."""

    where: str
    function: str

    def __call__(self, **case: Any) -> Any:
        """Call the function."""
        return load_function(self.where, self.function)(**case)

    @property
    def __signature__(self) -> Any:
        import inspect

        return inspect.signature(load_function(self.where, self.function))

    @property
    def stamp(self) -> dict[str, str]:
        """Name, and what the file says."""
        named = {"function": self.function, "file": Path(self.where).name}
        if not self.where.endswith(".py"):
            return named
        return named | {"source": sha256(Path(self.where).read_bytes()).hexdigest()[:16]}


@lru_cache(maxsize=16)
def load_function(where: str, name: str) -> Callable[..., Any]:
    """A function of a .py file or of a module."""
    try:
        if where.endswith(".py"):
            module = _load_file(Path(where))
        else:
            module = importlib.import_module(where)
    except (ImportError, OSError, SyntaxError) as error:
        raise InputError("task", f"{where} cannot be imported: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise InputError("task", f"{where} has no function {name!r}")
    return function


def _load_file(path: Path) -> Any:
    """A file as a module; it finds modules beside it as a script does."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    name = f"_sweep_{path.stem}_{sha256(str(path).encode()).hexdigest()[:8]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError("not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_plan(path: Path) -> Plan:
    """Read and check a plan; files that it names are beside it.

    Raises:
        InputError: names the file, the entry, and what was expected.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError("plan", f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError("plan", f"{path} is not TOML: {error}") from error
    unknown = sorted(given.keys() - set(KNOWN))
    if unknown:
        raise InputError("plan", f"{path} has {unknown[0]!r}; known are {', '.join(KNOWN)}")
    if ("task" in given) == ("scene" in given):
        raise InputError("plan", f"{path} must have a task or a scene, and not both")
    folder = path.resolve().parent
    listed = _cases(given, folder, path)
    out = Path(given["out"]) if "out" in given else Path(path.stem + ".csv")
    task = _file_task(given, folder, path) if "task" in given else _scene_task(given, folder)
    if isinstance(task, SceneTask):
        task.check(listed[0])
    return Plan(task, listed, folder / out, _integer(given, "seed", 0))


def _integer(given: Mapping[str, Any], name: str, default: int) -> int:
    value = given.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InputError(name, f"is {value!r}; expected a whole number")
    return value


def _cases(given: Mapping[str, Any], folder: Path, path: Path) -> list[Case]:
    parts = []
    if "csv" in given:
        parts.append(make.from_csv(folder / given["csv"]))
    if "grid" in given:
        parts.append(make.grid(given["grid"]))
    if "sample" in given:
        parts.append(_sample(given["sample"]))
    if not parts:
        raise InputError("plan", f"{path} has no cases; expected {', '.join(CASES)}")
    names = [name for part in parts for name in part[0]]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError("plan", f"{path}: {twice[0]!r} is in more than one of {', '.join(CASES)}")
    listed = make.combine(*parts)
    return [case for case in listed for _ in range(_integer(given, "repeats", 1))]


def _sample(given: Mapping[str, Any]) -> list[Case]:
    known = {"count", "seed", "method", "parameters"}
    unknown = sorted(given.keys() - known)
    if unknown or not {"count", "parameters"} <= given.keys():
        raise InputError("sample", f"has {', '.join(given)}; expected count, [sample.parameters], "
                         "and optionally seed and method")  # fmt: skip
    return make.sample(
        _integer(given, "count", 0),
        given["parameters"],
        seed=_integer(given, "seed", 0),
        method=given.get("method", "random"),
    )


def _file_task(given: Mapping[str, Any], folder: Path, path: Path) -> FileTask:
    extra = sorted(given.keys() & set(OF_SCENE))
    if extra:
        raise InputError("plan", f"{path}: {extra[0]!r} applies only to plans with a scene")
    where, _, function = str(given["task"]).rpartition(":")
    if not where or not function:
        raise InputError("task", f"is {given['task']!r}; expected file.py:function or "
                         "module:function")  # fmt: skip
    task = FileTask(str(folder / where) if where.endswith(".py") else where, function)
    load_function(task.where, task.function)
    return task


def _scene_task(given: Mapping[str, Any], folder: Path) -> SceneTask:
    settings = {name: given[name] for name in OF_SCENE if name in given}
    if "control" in settings:
        settings["control"] = folder / settings["control"]
    if "keyframe" in settings:
        settings["keyframe"] = str(settings["keyframe"])
    targets = settings.get("targets", {})
    settings["targets"] = {
        name: (places,) if isinstance(places, str) else tuple(places)
        for name, places in targets.items()
    }
    if "until" in settings:
        try:
            settings["until"] = Until(**settings["until"])
        except TypeError as error:
            raise InputError("until", f"is {settings['until']!r}; expected sensor, below, above"
                             ) from error  # fmt: skip
    return SceneTask(scene=folder / given["scene"], **settings)
