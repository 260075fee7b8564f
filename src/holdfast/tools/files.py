"""Scenes, keyframes and controls from files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.support import check_timestep
from holdfast.tools.trajectory import read_arrays

Control = Callable[[float], np.ndarray]
MOST_STEPS = 1e15  # of a run: beyond that the time of a step is lost in that of the run


def check_duration(value: float, *, zero: bool = False) -> None:
    """Refuse a duration [s] that is not finite or not positive; `zero` allows none."""
    if not (0.0 < value < np.inf or (zero and value == 0.0)):
        raise InputError("duration", f"is {value:g}; expected a positive number of seconds")


def step_count(duration: float, model: Any) -> int:
    """How many steps of a model a duration [s] is, at least one."""
    check_duration(duration)
    check_timestep(model)
    steps = duration / model.opt.timestep
    if steps > MOST_STEPS:
        raise InputError("duration", f"is {duration:g} s, or {steps:.3g} time steps; at most "
                         f"{MOST_STEPS:.3g} can be counted")  # fmt: skip
    return max(1, round(steps))


def check_output(
    path: Path, *, force: bool, name: str = "out", inputs: Sequence[Path | None] = ()
) -> Path:
    """Where to write a file, looked at before the work begins.

    A link is followed: what it points to is written. Devices and folders are refused, and files
    that are there already unless `force`; but never one of the `inputs` of the run. The folder must
    be there and let us write. Errors are about the option `name`.

    Returns:
        The path without links.
    """
    place = Path(os.path.realpath(path))
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        pass  # said below
    except (OSError, ValueError) as error:  # a name that no file can have
        said = error.strerror if isinstance(error, OSError) else error
        raise InputError(name, f"{path} cannot be written: {said}") from error
    if place.is_symlink():
        raise InputError(name, f"{path} is a link that leads to itself")
    if place.is_dir():
        raise InputError(name, f"{path} is a folder; name a file in it")
    if place.exists() and not place.is_file():
        raise InputError(name, f"{path} is a device or a pipe; expected a regular file")
    if any(other is not None and place == Path(os.path.realpath(other)) for other in inputs):
        raise InputError(name, f"{path} is read by this run; name another file")
    if place.exists() and not force:
        raise InputError(name, f"{path} exists; add --force to overwrite it, or name another file")
    if not place.parent.is_dir():
        raise InputError(name, f"the folder {place.parent} does not exist; create it first")
    try:
        with tempfile.TemporaryFile(dir=place.parent):
            pass
    except OSError as error:
        raise InputError(name, f"{path} cannot be written: {error.strerror}") from error
    return place


def write_whole(path: Path, write: Callable[[Any], object], *, force: bool = True) -> None:
    """Write a file whole or not at all: a kill at any moment leaves the old file or the new one.

    Args:
        path: of the file.
        write: is called with a binary stream.
        force: overwrite a file that is there by now; its permissions stay.
    """
    part = tempfile.NamedTemporaryFile(  # noqa: SIM115 (it is renamed while it is closed)
        dir=path.parent, prefix=".holdfast-", suffix=".part", delete=False
    )
    try:
        with part as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(part.name, _mode(path))
        if force or not _put(part.name, path):
            os.replace(part.name, path)
    except BaseException:
        Path(part.name).unlink(missing_ok=True)
        raise


def _mode(path: Path) -> int:
    """Permissions of a file: those that it has, or those of new ones."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return 0o666 & ~_umask()


def _put(part: str, path: Path) -> bool:
    """Give a file its name, unless another one has it; False where there are no hard links."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        return False
    os.unlink(part)
    return True


def write_somewhere(path: Path, write: Callable[[Any], object], *, force: bool = True) -> Path:
    """Write a file whole; in the folder for temporary files if it cannot be where it should.

    What took long to compute is not lost because a disk is full, a folder has gone, or another run
    has written the file meanwhile (unless `force`).

    Returns:
        Where it is.
    """
    try:
        write_whole(path, write, force=force)
        return path
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="holdfast-"))
        write_whole(folder / path.name, write)
        return folder / path.name


def _umask() -> int:
    """The permissions that new files do not get; reading them means setting them."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def load_scene(path: Path) -> Any:
    """The model of an MJCF or URDF file."""
    if not path.exists():
        raise InputError("scene", f"{path} does not exist")
    if not path.is_file():
        raise InputError("scene", f"{path} is not a file")
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, mujoco.FatalError, OSError) as error:
        raise InputError("scene", f"{path} cannot be read: {error}") from error
    check_timestep(model)
    return model


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
    if keyframe.isdecimal() and int(keyframe) < model.nkey:
        return int(keyframe)
    known = ", ".join(f"{i} {name!r}" for i, name in enumerate(names)) or "none"
    raise InputError("keyframe", f"is {keyframe!r}; the model has {known}")


def load_control(path: Path, model: Any) -> Control:
    """Controls over time from a .npz (`ctrl`, perhaps `time`) or a .csv (perhaps time first).

    Each row holds until the next one's time; without times, a row is one step.
    """
    if not path.is_file():
        raise InputError("control", f"{path} does not exist")
    if path.suffix == ".npz":
        with open(path, "rb") as stream:
            arrays = read_arrays(stream, str(path), ("ctrl",), only=("ctrl", "time"), of="control")
        ctrl, time = np.atleast_2d(arrays["ctrl"]), arrays.get("time")
    elif path.suffix == ".csv":
        ctrl, time = _read_csv(path, model.nu)
    else:
        raise InputError("control", f"is {path.name}; expected .npz or .csv")
    if ctrl.dtype.kind not in "fiu" or (time is not None and time.dtype.kind not in "fiu"):
        raise InputError("control", f"{path} does not hold numbers")
    if ctrl.ndim != 2 or ctrl.shape[1] != model.nu:
        raise InputError("control", f"has shape {ctrl.shape}; the model has {model.nu} controls")
    if time is None:
        time = np.arange(len(ctrl)) * model.opt.timestep
    rises = time.shape == (len(ctrl),) and len(ctrl) > 0 and np.isfinite(time).all()
    if not rises or (np.diff(time) < 0).any() or not np.isfinite(ctrl).all():
        raise InputError("control", "needs one increasing time per row, and finite controls")
    reach = 1e-9 * model.opt.timestep  # times that were added up step by step

    def at(now: float) -> np.ndarray:
        row = int(np.searchsorted(time, now + reach, side="right")) - 1
        return ctrl[max(row, 0)]

    return at


def _read_csv(path: Path, nu: int) -> tuple[np.ndarray, np.ndarray | None]:
    try:
        lines = [line for line in path.read_text().splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InputError("control", f"{path} is not a text file: {error}") from error
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
