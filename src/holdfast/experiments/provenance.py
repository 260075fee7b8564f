"""Where numbers come from: machine, versions, and the sources that made them."""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import holdfast

RUNS = ("numpy", "scipy", "numba", "mujoco", "daqp", "matplotlib")
SHOWS = re.compile(r"cli/.*|experiments/(report/\w+|\w+/(report|tables))\.py")
"""Files that no result of a trial depends on."""


def machine() -> dict[str, Any]:
    """What is measured on."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def versions(names: Iterable[str] = RUNS) -> dict[str, str]:
    """Versions of distributions, and of holdfast itself."""
    found = {"holdfast": holdfast.__version__}
    for name in sorted(names):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def fingerprint() -> str:
    """Of the sources of the package, but for those that only show results."""
    root = Path(holdfast.__file__).parent
    digest = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        place = file.relative_to(root).as_posix()
        if not SHOWS.fullmatch(place):
            digest.update(place.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


def stamp(**settings: Any) -> dict[str, Any]:
    """All that must be the same for results of two runs to belong together."""
    where = machine()
    return settings | {
        "sources": fingerprint(), "versions": versions(), "python": where["python"],
        "processor": where["processor"], "system": where["system"],
    }  # fmt: skip
