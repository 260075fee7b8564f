"""Saved runs: .npz files with `time`, `qpos`, `qvel`, as `holdfast simulate --out` writes them."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import BadZipFile, ZipFile

import numpy as np

from holdfast.contact.laws import Law, coulomb, frictionless, stick, viscous
from holdfast.errors import InputError

LARGEST = 2**31  # bytes of a file, unpacked
NEEDED = ("time", "qpos", "qvel")


@dataclass(eq=False)
class Event:
    """One event of a run."""

    time: float  # [s]
    kind: str
    bodies: tuple[str, str]

    def __str__(self) -> str:
        return f"{self.time:.4f} s  {self.kind}, {' / '.join(self.bodies)}"


@dataclass(eq=False)
class Trajectory:
    """A run as it was saved.

    Attributes:
        name: of the file.
        arrays: all of them, by name: `time` (k,), `qpos` (k, nq), `qvel` (k, nv) and others.
        metadata: what the file says of itself; may be empty.
    """

    name: str
    arrays: dict[str, np.ndarray]
    metadata: dict[str, Any]

    @property
    def time(self) -> np.ndarray:
        """(k,) [s]."""
        return self.arrays["time"]

    @property
    def no_slip(self) -> bool:
        """Whether the file says that contacts which push do not slide."""
        return str(self.metadata.get("contact", "")).startswith("noslip")

    def law(self) -> Law | None:
        """The law that the file says its contacts follow; None if it names none that is known."""
        name, mu_v = self.metadata.get("contact"), self.metadata.get("mu_v")
        if name == "viscous" and isinstance(mu_v, int | float) and 0.0 <= mu_v < float("inf"):
            return viscous(float(mu_v))
        known = {
            "coulomb": coulomb,
            "noslip": stick,
            "noslip-all": stick,
            "frictionless": frictionless,
        }
        return known[str(name)]() if str(name) in known else None

    @property
    def events(self) -> list[Event]:
        """Events, if the run has any in its file; those that cannot be read are left out."""
        columns = [self.arrays.get(f"event_{name}") for name in ("time", "kind", "bodies")]
        if any(column is None for column in columns):
            return []
        time, kind, bodies = (np.asarray(column) for column in columns)
        if time.dtype.kind != "f" or bodies.shape != (len(time), 2) or kind.shape != time.shape:
            return []
        return [
            Event(float(t), str(k), (str(b[0]), str(b[1])))
            for t, k, b in zip(time, kind, bodies, strict=True) if np.isfinite(t)
        ]  # fmt: skip

    def scene(self, beside: Path) -> Path:
        """Path of the scene that the file names, perhaps in the folder `beside`."""
        named = self.metadata.get("scene")
        if not named:
            raise InputError("scene", f"{self.name} names none; give --scene")
        near = beside / str(named)
        return near if near.exists() and not Path(str(named)).exists() else Path(str(named))

    def check(self, model: Any) -> None:
        """Raise `InputError` unless the arrays fit the model and can be played."""
        from holdfast.tools.verify import check_arrays

        get = self.arrays.get
        check_arrays(model, get("time"), get("qpos"), get("qvel"), get("ctrl"))


def read_trajectory(path: Path) -> Trajectory:
    """Read a saved run.

    Raises:
        InputError: the file does not exist, is no .npz, or lacks an array.
    """
    if not path.exists():
        raise InputError("trajectory", f"{path} does not exist")
    if path.is_dir():
        raise InputError("trajectory", f"{path} is a folder; expected an .npz file")
    with open(path, "rb") as stream:
        return _read(stream, str(path))


def parse_trajectory(content: bytes, name: str) -> Trajectory:
    """A saved run from the bytes of its file; as `read_trajectory`."""
    return _read(io.BytesIO(content), name)


def _read(stream: BinaryIO, name: str) -> Trajectory:
    try:
        with ZipFile(stream) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > LARGEST:
            raise InputError("trajectory", f"{name} holds {size} bytes; at most {LARGEST} are read")
        stream.seek(0)
        with np.lib.npyio.NpzFile(stream) as file:
            arrays = {key: file[key] for key in file}
    except (ValueError, OSError, BadZipFile, EOFError, NotImplementedError, KeyError) as error:
        raise InputError("trajectory", f"{name} cannot be read as .npz: {error}") from error
    except Exception as error:
        if isinstance(error, InputError):
            raise
        raise InputError("trajectory", f"{name} cannot be read as .npz: {error!r}") from error
    missing = set(NEEDED) - set(arrays)
    if missing:
        raise InputError("trajectory", f"{name} holds {', '.join(arrays) or 'nothing'}; it lacks "
                         f"{', '.join(sorted(missing))}")  # fmt: skip
    arrays = {key: value for key, value in arrays.items() if isinstance(value, np.ndarray)}
    metadata = _metadata(arrays, name)
    if "ctrl" in arrays and arrays["ctrl"].size == 0:
        del arrays["ctrl"]
    return Trajectory(name, arrays, metadata)


def _metadata(arrays: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    try:
        metadata = json.loads(str(arrays["metadata"])) if "metadata" in arrays else {}
    except (ValueError, RecursionError) as error:
        raise InputError("trajectory", f"{name}: metadata is not JSON: {error}") from error
    if not isinstance(metadata, dict):
        raise InputError("trajectory", f"{name}: metadata is not a table of names and values")
    for key in ("scene", "model"):
        if key in arrays:
            metadata.setdefault("scene", str(arrays[key]))
    return metadata
