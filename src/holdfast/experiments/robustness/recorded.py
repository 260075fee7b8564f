"""Recorded problems: real machines, textbook LCPs, and cases on which pivoting rules fail.

Four groups, read from a data folder (``tests/data`` of the repository):

* ``contact``: real contact problems, frictionless. Bilateral rows J are removed for all solvers
  alike by restricting the motion to their null space.
* ``cycling``: contact problems on which the paper's Algorithm 1 cycles or breaks.
* ``quadruped``: dense no-slip LCPs of a walking quadruped, all rank deficient.
* ``textbook``: small dense symmetric positive semidefinite LCPs with exact answers.

Each is the LCP ``w = F z + e`` and, with ``F = N M^-1 N'`` and ``e = N v + b``, the contact
problem of N, M, v and b. What was recorded as a dense LCP gets a factor of F for N, and M = I.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import InputError

GROUPS = ("contact", "cycling", "quadruped", "textbook")

RANK_TOLERANCE = 1e-10
"""Eigenvalues of F below this part of the largest are rounding: recorded matrices are positive
semidefinite to about this much."""


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recorded problem.

    Attributes:
        group: which of the four groups.
        name: its name.
        M: inertia.
        N: contact rows.
        v: free motion.
        b: offsets of the rows.
        F: LCP matrix, where the problem was recorded as a dense LCP; None elsewhere.
        e: LCP vector, likewise.
    """

    group: str
    name: str
    M: np.ndarray
    N: np.ndarray
    v: np.ndarray
    b: np.ndarray
    F: np.ndarray | None = None
    e: np.ndarray | None = None

    def lcp(self) -> tuple[np.ndarray, np.ndarray]:
        """F and e, recorded or formed."""
        if self.F is not None and self.e is not None:
            return self.F, self.e
        F = self.N @ np.linalg.solve(self.M, self.N.T)
        return (F + F.T) / 2, self.N @ self.v + self.b


def default_folder() -> Path:
    """Where the recorded problems are in a checkout of the repository."""
    return Path(__file__).resolve().parents[4] / "tests" / "data"


def load(folder: Path) -> list[Recorded]:
    """All recorded problems of a data folder; groups that are not there are left out.

    Raises:
        InputError: there are none at all.
    """
    problems = [*_contact(folder), *_cycling(folder), *_quadruped(folder), *_textbook(folder)]
    if not problems:
        raise InputError(
            "data", f"no recorded problems in {folder}; they are in tests/data of the repository"
        )
    return problems


def contact_problems(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names and arguments of `holdfast.ContactProblem` of the group ``contact``."""
    for path in sorted((folder / "contact_problems").glob("*.npz")):
        with np.load(path) as data:
            yield path.stem, {name: data[name] for name in ("M", "N", "S", "T", "J", "v")}


def _contact(folder: Path) -> Iterator[Recorded]:
    for name, p in contact_problems(folder):
        M, N, v = without_joints(p["M"], p["N"], p["v"], p["J"])
        yield Recorded("contact", name, M, N, v, np.zeros(len(N)))


def without_joints(
    M: np.ndarray, N: np.ndarray, v: np.ndarray, J: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """M, N and v of the contact problem among the motions with ``J x = 0``."""
    from scipy.linalg import null_space

    if len(J) == 0:
        return M, N, v
    Z = null_space(J)
    inertia = Z.T @ M @ Z
    inertia = (inertia + inertia.T) / 2
    return inertia, N @ Z, np.linalg.solve(inertia, Z.T @ (M @ v))


def _cycling(folder: Path) -> Iterator[Recorded]:
    for path in sorted((folder / "pivoting_counterexamples").glob("*.npz")):
        with np.load(path) as data:
            N, M, v = (data[key].astype(float) for key in ("N", "M", "v0"))
            b = -data["h"].astype(float) if "h" in data else np.zeros(len(N))
        yield Recorded("cycling", path.stem, M, N, v, b)


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


def _dense_lcp(group: str, name: str, F: np.ndarray, e: np.ndarray) -> Recorded:
    values, vectors = np.linalg.eigh((F + F.T) / 2)
    kept = values > RANK_TOLERANCE * values.max(initial=0.0)
    N = vectors[:, kept] * np.sqrt(values[kept])
    rank = N.shape[1]
    return Recorded(group, name, np.eye(rank), N, np.zeros(rank), e, F, e)


def lcp_residual(F: np.ndarray, e: np.ndarray, z: np.ndarray) -> float:
    """Residual of a dense LCP ``0 <= z _|_ w = F z + e >= 0``, relative to the size of e.

    It is ``max |min(w_i, F_ii z_i)| / max |e|``: zero exactly at the solutions, in the units
    of w on both sides. Rows with a zero diagonal borrow the largest one.
    """
    if not np.all(np.isfinite(z)):
        return np.inf
    diagonal = np.diag(F)
    weight = np.where(diagonal > 0, diagonal, max(diagonal.max(initial=0.0), 1.0))
    gap = np.minimum(F @ z + e, weight * z)
    return float(np.abs(gap).max(initial=0.0) / (np.abs(e).max(initial=0.0) or 1.0))
