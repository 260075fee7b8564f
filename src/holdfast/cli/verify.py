"""``holdfast verify``: a saved run, checked by code that did not make it."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import isnan
from pathlib import Path
from typing import Annotated, Any, Literal
from zipfile import BadZipFile, ZipFile

import numpy as np
import tyro

from holdfast.cli._common import ContactName, exit_code, progress_bar
from holdfast.errors import InputError


@dataclass(frozen=True)
class Verify:
    """Check a saved run: distances, motion, momentum, complementarity, energy, slip.

    Reads a file of `holdfast simulate --out`, or any .npz with `time`, `qpos` and `qvel`
    (optionally `ctrl`) and a scene. The exit code is 0 if every check passes and 1 if one fails.
    """

    trajectory: Annotated[Path, tyro.conf.Positional]
    """.npz file with time, qpos, qvel."""
    scene: Path | None = None
    """MJCF or URDF file; by default the one that the trajectory names."""
    penetration: float = 1e-8
    """Tolerance of penetration [m]."""
    energy: float = 1e-6
    """Tolerance of the energy gain between two samples, relative to the largest kinetic energy."""
    fall: float = 1e-3
    """Tolerance of the unexplained part of a change of momentum of bodies without contact."""
    momentum: float = 0.02
    """Tolerance of the unexplained part of a change of momentum of bodies in contact."""
    motion: float = 0.02
    """Tolerance of the part of a displacement that the velocities do not explain, relative."""
    slip: float = 1e-6
    """Tolerance of sliding where contacts must not slide [m/s]."""
    contact: ContactName | None = None
    """Contact law that the run is checked against, for pairs to which the scene gives none. By
    default Coulomb friction with the coefficients of the scene, or no slip if the trajectory says
    so; laws that allow more have to be named here, because a forged file could name them."""
    mu_v: float = 0.1
    """Coefficient of the viscous law [N s/m]."""
    no_slip: bool | None = None
    """Require that pressed contacts do not slide; by default if the law is no slip."""
    format: Literal["human", "json"] = "human"
    """Output format of the verdict."""

    @exit_code
    def run(self) -> int:
        """Print the verdict; return the exit code."""
        from holdfast.tools import files
        from holdfast.tools.verify import Tolerances, verify

        metadata = read_metadata(self.trajectory)
        name, law = self._law(metadata)
        model = files.load_scene(self._scene(metadata))
        arrays = read(self.trajectory, {"qpos": model.nq, "qvel": model.nv, "ctrl": model.nu})
        no_slip = name.startswith("noslip") if self.no_slip is None else self.no_slip
        tolerances = Tolerances(
            distance=self.penetration,
            energy=self.energy,
            fall=self.fall,
            momentum=self.momentum,
            motion=self.motion,
            slip=self.slip,
        )
        with progress_bar("verifying", quiet=self.format == "json") as progress:
            verdict = verify(
                model, arrays["time"], arrays["qpos"], arrays["qvel"], arrays.get("ctrl"),
                no_slip=no_slip, law=law, tolerances=tolerances, progress=progress,
            )  # fmt: skip
        verdict.notes.append(f"contacts are judged by the law {name!r}")
        self._print(verdict)
        return 0 if verdict.passed else 1

    def _law(self, metadata: dict[str, Any]) -> tuple[str, Any]:
        """The law to judge by, by name and as one."""
        from holdfast.contact.laws import coulomb, frictionless, stick, viscous

        name, said = self.contact, metadata.get("contact", "coulomb")
        if name is None:
            if said not in ("coulomb", "noslip", "noslip-all"):
                raise InputError(
                    "contact", f"{self.trajectory} says of itself that its contacts are {said!r}; "
                    f"add --contact {said} (and --mu-v) if they shall be"
                )  # fmt: skip
            name = said
        law = {"coulomb": coulomb, "viscous": lambda: viscous(self.mu_v),
               "frictionless": frictionless}.get(name, stick)()  # fmt: skip
        return name, law

    def _scene(self, metadata: dict[str, Any]) -> Path:
        if self.scene is not None:
            return self.scene
        named = metadata.get("scene")
        if not named:
            raise InputError("scene", f"{self.trajectory} names none; give --scene")
        beside = self.trajectory.parent / str(named)
        return beside if beside.exists() and not Path(named).exists() else Path(named)

    def _print(self, verdict: Any) -> None:
        if self.format == "json":
            result = {
                "passed": verdict.passed,
                "samples": verdict.samples,
                "checks": [
                    asdict(c) | {"passed": c.passed, "time": None if isnan(c.time) else c.time}
                    for c in verdict.checks
                ],
                "notes": verdict.notes,
            }
            json.dump(result, sys.stdout, indent=1)
            print()
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.table import Table

        table = Table(title=escape(f"{self.trajectory.name}, {verdict.samples} samples"))
        for heading in ("check", "worst", "at, s", "passes below", "verdict"):
            table.add_column(heading, justify="left" if heading == "check" else "right")
        for c in verdict.checks:
            said = ("pass" if c.passed else "FAIL") if c.judged else "not judged"
            table.add_row(
                c.name, f"{c.worst:.3g} {c.unit}", f"{c.time:.6g}", f"{c.tolerance:.3g}", said
            )
        console = Console()
        console.print(table)
        for note in verdict.notes:
            console.print(escape(note))
        console.print("verdict: pass" if verdict.passed else "verdict: FAIL")


MOST = 1 << 30  # bytes of an array that are read
MOST_METADATA = 1 << 20


@contextmanager
def _opened(path: Path) -> Iterator[ZipFile]:
    """The trajectory as an archive; what is none is refused."""
    if not path.is_file():
        raise InputError("trajectory", f"{path} does not exist" if not path.exists() else
                         f"{path} is no file")  # fmt: skip
    try:
        with ZipFile(path) as archive:
            yield archive
    except InputError:
        raise
    except (ValueError, OSError, EOFError, KeyError, RuntimeError, NotImplementedError,
            BadZipFile, zlib.error) as error:  # fmt: skip
        raise InputError("trajectory", f"{path} cannot be read as .npz: {error}") from error


def _array(archive: ZipFile, name: str, most: int) -> tuple[tuple[int, ...], Any, Any]:
    """Shape and type of an array by its header, and what reads it; nothing else is read yet."""
    stream = archive.open(f"{name}.npy")
    version = np.lib.format.read_magic(stream)
    read_header = getattr(np.lib.format, f"read_array_header_{version[0]}_0")
    shape, in_fortran_order, dtype = read_header(stream)
    size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
    if dtype.hasobject:
        raise InputError("trajectory", f"{name} holds Python objects; expected numbers")
    if size > most:
        raise InputError("trajectory", f"{name} has {size:,} bytes; at most {most:,} are read")

    def load() -> np.ndarray:
        data = stream.read(size)
        if len(data) != size:
            raise InputError("trajectory", f"{name} is shorter than it says")
        order = "F" if in_fortran_order else "C"
        return np.frombuffer(data, dtype=dtype).reshape(shape, order=order)

    return shape, dtype, load


def read_metadata(path: Path) -> dict[str, Any]:
    """What a trajectory says of itself."""
    with _opened(path) as archive:
        names = {name.removesuffix(".npy") for name in archive.namelist()}
        missing = {"time", "qpos", "qvel"} - names
        if missing:
            raise InputError("trajectory", f"{path} holds {', '.join(sorted(names))}; it lacks "
                             f"{', '.join(sorted(missing))}")  # fmt: skip
        texts = {
            name: str(_array(archive, name, MOST_METADATA)[2]())
            for name in ("metadata", "scene", "model") if name in names
        }  # fmt: skip
    try:
        metadata = json.loads(texts.get("metadata", "{}"))
    except ValueError as error:
        raise InputError("trajectory", f"{path}: metadata is no JSON: {error}") from error
    if not isinstance(metadata, dict):
        raise InputError("trajectory", f"{path}: metadata is no table of names and values")
    for name in ("scene", "model"):
        if name in texts:
            metadata.setdefault("scene", texts[name])
    return metadata


def read(path: Path, widths: dict[str, int]) -> dict[str, np.ndarray]:
    """Arrays of a trajectory whose rows are so wide; shapes are checked before they are read."""
    arrays: dict[str, np.ndarray] = {}
    with _opened(path) as archive:
        shape, _, load = _array(archive, "time", MOST)
        if len(shape) != 1:
            raise InputError("time", f"has shape {shape}; expected one time of each sample")
        arrays["time"] = load()
        names = {name.removesuffix(".npy") for name in archive.namelist()}
        for name, width in widths.items():
            if name not in names:
                continue
            of, _, load = _array(archive, name, MOST)
            if of == (shape[0], width) and width:
                arrays[name] = load()
            elif name != "ctrl" or (0 not in of):
                raise InputError(name, f"has shape {of}; {shape[0]} samples of this model have "
                                 f"shape {(shape[0], width)}")  # fmt: skip
    for name in ("qpos", "qvel"):
        arrays.setdefault(name, np.zeros((shape[0], widths[name])))
    return arrays
