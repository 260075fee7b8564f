"""Saved runs: .npz files with `time`, `qpos`, `qvel`, as `holdfast simulate --out` writes them."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile, ZipInfo

import numpy as np

from holdfast.contact.laws import Law, coulomb, frictionless, stick, viscous
from holdfast.errors import InputError

LARGEST = 2**31  # bytes of a file, unpacked
LARGEST_TEXT = 2**20  # of its metadata
TEXTS = ("metadata", "scene", "model")
HELD = ("coulomb", "noslip", "noslip-all")  # laws that a file may name; others allow more
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
        metadata: description of the run; may be empty.
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

    def law(self, name: str | None = None, mu_v: float = 0.1) -> tuple[str, Law]:
        """The law to judge the run by, by name and as one.

        Args:
            name: as of `holdfast verify --contact`; None takes what the file says, or Coulomb's
                law, but none that allows more: a forged file can name such a law, too.
            mu_v: coefficient of the viscous law [N s/m].
        """
        if name is None:
            name = self.metadata.get("contact", "coulomb")
            if name not in HELD:
                raise InputError(
                    "contact", f"{self.name} declares its contacts as {name!r}; "
                    f"add --contact {name} (and --mu-v) to judge it by that law"
                )  # fmt: skip
        drag = viscous(mu_v)  # refuses what is no coefficient, whatever the law
        known = {"coulomb": coulomb, "viscous": lambda: drag, "frictionless": frictionless}
        return name, known.get(name, stick)()

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
            raise InputError("scene", f"{self.name} does not name one; pass --scene")
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
    if not path.is_file():
        raise InputError("trajectory", f"{path} is not a file")
    with open(path, "rb") as stream:
        return _read(stream, str(path))


def parse_trajectory(content: bytes, name: str) -> Trajectory:
    """A saved run from the bytes of its file; as `read_trajectory`."""
    return _read(io.BytesIO(content), name)


def read_arrays(
    stream: BinaryIO, name: str, needed: Sequence[str], *, only: Sequence[str] = (),
    of: str = "trajectory",
) -> dict[str, np.ndarray]:  # fmt: skip
    """Arrays of an .npz file, of which no more is read than it needs.

    Args:
        stream: the file.
        name: of the file, for errors.
        needed: names of arrays that must be there.
        only: names of those that are read; all if empty.
        of: what errors are about.
    """
    try:
        with ZipFile(stream) as archive:
            return _arrays(archive, name, needed, only)
    except Exception as error:  # whatever a damaged file makes of the readers
        raise InputError(of, f"{name} cannot be read as .npz: {error}") from error


def _read(stream: BinaryIO, name: str) -> Trajectory:
    arrays = read_arrays(stream, name, NEEDED)
    metadata = _metadata(arrays, name)
    if "ctrl" in arrays and arrays["ctrl"].size == 0:
        del arrays["ctrl"]
    return Trajectory(name, arrays, metadata)


def _arrays(archive: ZipFile, name: str, needed: Sequence[str],
            only: Sequence[str]) -> dict[str, np.ndarray]:  # fmt: skip
    """The arrays of a file; sizes are looked at before anything is read."""
    entries = {e.filename.removesuffix(".npy"): e for e in archive.infolist()
               if e.filename.endswith(".npy")}  # fmt: skip
    missing = set(needed) - set(entries)
    if missing:
        raise ValueError(f"it holds {', '.join(sorted(entries)) or 'nothing'}; "
                         f"it lacks {', '.join(sorted(missing))}")  # fmt: skip
    entries = {key: entry for key, entry in entries.items() if not only or key in only}
    size = sum(entry.file_size for entry in entries.values())
    if size > LARGEST:
        raise ValueError(f"it holds {size:,} bytes; at most {LARGEST:,} are read")
    return {
        key: _array(archive, entry, key, LARGEST_TEXT if key in TEXTS else LARGEST)
        for key, entry in entries.items()
    }


def _array(archive: ZipFile, entry: ZipInfo, name: str, most: int) -> np.ndarray:
    """One array; its header is believed only as far as there is room."""
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
        shape, in_fortran_order, dtype = read_header(stream)
        size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
        if dtype.hasobject:
            raise ValueError(f"{name} holds Python objects; expected numbers")
        if size > most:
            raise ValueError(f"{name} has {size:,} bytes; at most {most:,} are read")
        if size > entry.file_size:
            raise ValueError(f"{name} has {entry.file_size:,} bytes; its header says {size:,}")
        content = stream.read(size)
    if len(content) != size:
        raise ValueError(f"{name} is shorter than its header says")
    order = "F" if in_fortran_order else "C"
    return np.ndarray(shape, dtype, buffer=content, order=order)


def _metadata(arrays: dict[str, np.ndarray], name: str) -> dict[str, Any]:
    try:
        metadata = json.loads(str(arrays["metadata"])) if "metadata" in arrays else {}
    except (ValueError, RecursionError) as error:
        raise InputError("trajectory", f"{name}: metadata is not JSON: {error}") from error
    if not isinstance(metadata, dict):
        raise InputError("trajectory", f"{name}: metadata is not a JSON object")
    for key in ("scene", "model"):
        if key in arrays:
            metadata.setdefault("scene", str(arrays[key]))
    return metadata
