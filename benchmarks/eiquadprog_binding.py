"""eiquadprog from Python: its wheel has no binding, so a small one is compiled on first use.

Needs g++, the ``eiquadprog`` wheel (library and headers) and the ``cmeel-eigen`` wheel
(headers). `load` says by name what is missing.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

from problem import Array, DenseForm

SOURCE = Path(__file__).with_name("eiquadprog_shim.cpp")
STATUS = ("solved", "infeasible", "unbounded", "iteration limit", "redundant equalities")


class EiquadprogMissingError(ImportError):
    """A part needed to use eiquadprog is missing."""


def load() -> Callable[[DenseForm], tuple[int, Array, Array]]:
    """Compile (once per source and library) and return a solve function.

    Returns:
        A function of a dense problem giving status (0 is solved), motion and impulses.

    Raises:
        EiquadprogMissingError: naming what is missing.
    """
    library = ctypes.CDLL(str(_compile()))
    call = library.eiquadprog_shim_solve
    call.argtypes = [ctypes.c_int] * 2 + [ctypes.c_void_p] * 6
    call.restype = ctypes.c_int

    def solve(problem: DenseForm) -> tuple[int, Array, Array]:
        n, m = problem.N.shape
        x, z = np.empty(m), np.empty(n)
        status = call(m, n, *problem.addresses, x.ctypes.data, z.ctypes.data)
        return status, x, z

    return solve


def _compile() -> Path:
    """The shim as a shared library, beside the byte code of this module."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise EiquadprogMissingError("no g++ on the path")
    solver = _find("include/eiquadprog/eiquadprog-fast.hpp", "eiquadprog")
    eigen = _find("include/eigen3/Eigen/Dense", "cmeel-eigen")
    key = hashlib.sha256(SOURCE.read_bytes() + str(solver).encode()).hexdigest()[:16]
    target = SOURCE.parent / "__pycache__" / f"eiquadprog_shim-{key}.so"
    target.parent.mkdir(exist_ok=True)
    if not target.exists():
        _run_compiler(compiler, solver, eigen, target)
    return target


def _run_compiler(compiler: str, solver: Path, eigen: Path, target: Path) -> None:
    """Compile with the wheel's own alignment: no -march, or Eigen's objects would not match."""
    part = target.with_suffix(".part")
    command = [compiler, "-O3", "-DNDEBUG", "-std=c++17", "-shared", "-fPIC", str(SOURCE)]
    command += [f"-I{solver / 'include'}", f"-I{eigen / 'include/eigen3'}", "-o", str(part)]
    command += [f"-L{solver / 'lib'}", "-leiquadprog", f"-Wl,-rpath,{solver / 'lib'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise EiquadprogMissingError(f"g++ failed: {done.stderr.strip()[:300]}")
    part.replace(target)


def _find(relative: str, wheel: str) -> Path:
    """The cmeel prefix on the path that holds a file."""
    for entry in sys.path:
        prefix = Path(entry or ".") / "cmeel.prefix"
        if (prefix / relative).exists():
            return prefix
    raise EiquadprogMissingError(f"{relative} not found: pip install {wheel}")
