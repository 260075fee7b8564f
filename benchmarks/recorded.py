"""Recorded problems: real machines, textbook LCPs, and cases on which pivoting rules fail.

Four groups, read from a data folder:

* ``contact``: real contact problems, frictionless. Bilateral rows J are removed for all solvers
  alike by restricting the motion to their null space.
* ``cycling``: contact problems on which the paper's Algorithm 1 cycles or breaks.
* ``quadruped``: dense no-slip LCPs of a walking quadruped, all rank deficient.
* ``textbook``: small dense symmetric positive semidefinite LCPs with exact answers.

A dense LCP ``w = F z + e`` is given to holdfast and Lemke as it is. QP and least-squares
peers get a factor of F: with ``F = N N'`` it is the projection of the origin onto
``N x + e >= 0``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.linalg import null_space

from accuracy import Yardstick, lcp_residual
from problem import Array, Problem

GROUPS = ("contact", "cycling", "quadruped", "textbook")

RANK_TOLERANCE = 1e-10
"""Eigenvalues of F below this part of the largest are rounding: recorded matrices are positive
semidefinite to about this much."""


@dataclass(frozen=True)
class Recorded:
    """A recorded problem.

    Attributes:
        group: which of the four groups.
        name: its name.
        problem: the factored form.
        F: LCP matrix, where the problem was recorded as a dense LCP.
        e: LCP vector, likewise.
    """

    group: str
    name: str
    problem: Problem
    F: Array | None = None
    e: Array | None = None

    def residual(self, x: Array, z: Array) -> float:
        """Largest relative residual of an answer, on the data as they were recorded."""
        if self.F is not None and self.e is not None:
            return lcp_residual(self.F, self.e, z)
        return Yardstick.of(self.problem).residuals(x, z).worst


def load(folder: Path) -> list[Recorded]:
    """All recorded problems of a data folder; groups that are not there are left out.

    Raises:
        FileNotFoundError: there are none at all.
    """
    problems = [*_contact(folder), *_cycling(folder), *_quadruped(folder), *_textbook(folder)]
    if not problems:
        raise FileNotFoundError(f"no recorded problems in {folder}; pass --data FOLDER")
    return problems


def _contact(folder: Path) -> Iterator[Recorded]:
    for path in sorted((folder / "contact_problems").glob("*.npz")):
        with np.load(path) as data:
            problem = without_joints(data["M"], data["N"], data["v"], data["J"])
        yield Recorded("contact", path.stem, problem)


def without_joints(M: Array, N: Array, v: Array, J: Array) -> Problem:
    """The contact problem among the motions with ``J x = 0``."""
    if len(J) == 0:
        return Problem(M, N, v)
    Z = null_space(J)
    inertia = Z.T @ M @ Z
    inertia = (inertia + inertia.T) / 2
    return Problem(inertia, N @ Z, np.linalg.solve(inertia, Z.T @ (M @ v)))


def _cycling(folder: Path) -> Iterator[Recorded]:
    for path in sorted((folder / "pivoting_counterexamples").glob("*.npz")):
        with np.load(path) as data:
            N, M, v = (data[key].astype(float) for key in ("N", "M", "v0"))
            b = -data["h"].astype(float) if "h" in data else None
        yield Recorded("cycling", path.stem, Problem(M, N, v, b=b))


def _quadruped(folder: Path) -> Iterator[Recorded]:
    path = folder / "quadruped_noslip_lcps.npz"
    if not path.exists():
        return
    with np.load(path) as data:
        for key in data.files:
            if key.endswith("_F"):
                name = key.removesuffix("_F")
                yield _dense_lcp("quadruped", name, data[key], data[f"{name}_e"])


def _textbook(folder: Path) -> Iterator[Recorded]:
    path = folder / "lcp_small.json"
    if not path.exists():
        return
    for entry in json.loads(path.read_text()):
        if entry["symmetric"] and entry["psd"] and entry["solvable"] is True:
            F, e = np.array(entry["Q"], dtype=float), np.array(entry["r"], dtype=float)
            yield _dense_lcp("textbook", entry["name"], F, e)


def _dense_lcp(group: str, name: str, F: Array, e: Array) -> Recorded:
    values, vectors = np.linalg.eigh((F + F.T) / 2)
    kept = values > RANK_TOLERANCE * values.max(initial=0.0)
    N = vectors[:, kept] * np.sqrt(values[kept])
    rank = N.shape[1]
    return Recorded(group, name, Problem(np.eye(rank), N, np.zeros(rank), b=e), F, e)
