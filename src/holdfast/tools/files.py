"""Scenes, keyframes and controls from files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco

Control = Callable[[float], np.ndarray]


def load_scene(path: Path) -> Any:
    """The model of an MJCF or URDF file."""
    if not path.exists():
        raise InputError("scene", f"{path} does not exist")
    try:
        return mujoco.MjModel.from_xml_path(str(path))
    except ValueError as error:
        raise InputError("scene", f"{path} cannot be read: {error}") from error


def set_keyframe(model: Any, data: Any, keyframe: str | None) -> None:
    """Put `data` into a keyframe, by name or number; None takes the first if there is one."""
    number = keyframe_number(model, keyframe)
    if number is not None:
        mujoco.mj_resetDataKeyframe(model, data, number)


def keyframe_number(model: Any, keyframe: str | None) -> int | None:
    """Number of a keyframe, by name or number; None asks for the first if there is one."""
    names = [model.key(i).name for i in range(model.nkey)]
    if keyframe is None:
        return 0 if names else None
    if keyframe in names:
        return names.index(keyframe)
    if keyframe.isdigit() and int(keyframe) < model.nkey:
        return int(keyframe)
    known = ", ".join(f"{i} {name!r}" for i, name in enumerate(names)) or "none"
    raise InputError("keyframe", f"is {keyframe!r}; the model has {known}")


def load_control(path: Path, model: Any) -> Control:
    """Controls over time from a .npz (`ctrl`, perhaps `time`) or a .csv (perhaps time first).

    Each row holds until the next one's time; without times, a row is one step.
    """
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            if "ctrl" not in arrays:
                raise InputError("control", f"{path} holds {', '.join(arrays)}; expected ctrl")
            ctrl = np.atleast_2d(arrays["ctrl"])
            time = arrays.get("time")
    elif path.suffix == ".csv":
        ctrl, time = _read_csv(path, model.nu)
    else:
        raise InputError("control", f"is {path.name}; expected .npz or .csv")
    if ctrl.ndim != 2 or ctrl.shape[1] != model.nu:
        raise InputError("control", f"has shape {ctrl.shape}; the model has {model.nu} controls")
    if time is None:
        time = np.arange(len(ctrl)) * model.opt.timestep
    if time.shape != (len(ctrl),) or (np.diff(time) < 0).any() or not np.isfinite(ctrl).all():
        raise InputError("control", "times must rise, one per row, and controls be finite")
    reach = 1e-9 * model.opt.timestep  # times that were added up step by step

    def at(now: float) -> np.ndarray:
        row = int(np.searchsorted(time, now + reach, side="right")) - 1
        return ctrl[max(row, 0)]

    return at


def _read_csv(path: Path, nu: int) -> tuple[np.ndarray, np.ndarray | None]:
    lines = [line for line in path.read_text().splitlines() if line.strip()]
    if not lines:
        raise InputError("control", f"{path} is empty")
    start = 0 if _is_numbers(lines[0]) else 1
    try:
        table = np.array([[float(x) for x in line.split(",")] for line in lines[start:]], ndmin=2)
    except ValueError as error:
        raise InputError("control", f"{path}: {error}") from error
    if table.shape[1] == nu + 1:
        return table[:, 1:], table[:, 0]
    return table, None


def _is_numbers(line: str) -> bool:
    try:
        [float(x) for x in line.split(",")]
    except ValueError:
        return False
    return True
