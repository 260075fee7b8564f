"""The same contact problem in other words: other order, frames, copies of contacts."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

import holdfast as hf

Rng = np.random.Generator


def changed(problem: hf.ContactProblem, **new: Any) -> hf.ContactProblem:
    """The problem with other fields."""
    given = {f.name: getattr(problem, f.name) for f in fields(problem) if f.init}
    return hf.ContactProblem(**(given | new))


def reordered(p: hf.ContactProblem, rng: Rng) -> hf.ContactProblem:
    """Rows in another order."""
    n = rng.permutation(p.n)
    place = np.argsort(n)
    new: dict[str, Any] = {name: getattr(p, name)[n] for name in "NST" if len(getattr(p, name))}
    new |= {"c_N": p.c_N[n], "mu": p.mu[n]}
    if p.bodies is not None:
        new["bodies"] = p.bodies[n]
    if len(p.R):
        new["R_contact"] = place[p.R_contact]
    u, d, j = (rng.permutation(len(getattr(p, name))) for name in "UDJ")
    new |= {"U": p.U[u], "c_U": p.c_U[u], "D": p.D[d], "D_bound": p.D_bound[d]}
    new |= {"J": p.J[j], "c_J": p.c_J[j], "compliance_J": p.compliance_J[j]}
    return changed(p, **new)


def turned(p: hf.ContactProblem, rng: Rng) -> tuple[hf.ContactProblem, np.ndarray]:
    """Tangents turned, and coordinates w with v = Q w; also Q, body by body."""
    blocks = p.M if p.M.ndim == 3 else p.M[None]
    size = blocks.shape[1]
    Q = np.array([np.linalg.qr(rng.normal(size=(size, size)))[0] for _ in blocks])
    M = Q.transpose(0, 2, 1) @ blocks @ Q
    M = (M + M.transpose(0, 2, 1)) / 2

    def rows(A: np.ndarray) -> np.ndarray:
        parts = A.reshape(len(A), len(Q), size)
        return np.einsum("kbi,bij->kbj", parts, Q).reshape(A.shape)

    new: dict[str, Any] = {name: rows(getattr(p, name)) for name in "NSTRUDJ"}
    if p.mu.ndim == 1 and len(p.S) and len(p.T):
        angle = rng.uniform(0.0, 2.0 * np.pi, p.n)[:, None]
        c, s, S, T = np.cos(angle), np.sin(angle), new["S"], new["T"]
        new |= {"S": c * S + s * T, "T": c * T - s * S}
    new |= {"M": M if p.M.ndim == 3 else M[0], "v": rows(p.v[None])[0]}
    if p.f is not None:
        new["f"] = rows(p.f[None])[0]
    return changed(p, **new), Q


def doubled(p: hf.ContactProblem) -> hf.ContactProblem:
    """Every contact twice."""
    new: dict[str, Any] = {
        name: np.vstack([rows, rows]) for name in "NST" if len(rows := getattr(p, name))
    }
    new |= {"c_N": np.tile(p.c_N, 2), "mu": np.concatenate([p.mu, p.mu])}
    new["Ndot_v"] = None
    if p.bodies is not None:
        new["bodies"] = np.vstack([p.bodies, p.bodies])
    if len(p.R):
        new |= {"R": np.vstack([p.R, p.R]), "mu_R": np.tile(p.mu_R, 2)}
        new["R_contact"] = np.concatenate([p.R_contact, p.R_contact + p.n])
    return changed(p, **new)


def differ(p: hf.ContactProblem, one: np.ndarray, other: np.ndarray) -> float:
    """Difference of two motions, relative to the size of all, in the norm of the inertia."""
    blocks = np.linalg.cholesky(p.M if p.M.ndim == 3 else p.M[None])

    def size(v: np.ndarray) -> float:
        return float(np.linalg.norm(np.einsum("bji,bj->bi", blocks, v.reshape(len(blocks), -1))))

    return size(one - other) / max(size(p.free_velocity), size(one), size(p.v), 1e-300)
