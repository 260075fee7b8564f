"""Whether contacts can have given the impulse between two samples, by their laws. For `verify`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from holdfast.tools._samples import DOUBT, Eye, Sample, lasting, same

SMALL = 1e-3  # impulses below this part of the largest are not asked for slip or parting
EDGES = 12  # of the pyramid about a friction cone
SLIDES = 2.0  # times what friction can stop between two samples: faster contacts slide all the time
SAME_WAY = 0.95  # cosine between directions of sliding that are one
ALLOWED = 0.5  # part of the change of forces and inertia that a mean over an interval may be off by


class Seen(Protocol):
    """A check that is told values."""

    def see(self, value: float, time: float) -> None:
        """Keep the largest value."""


class _Rows(NamedTuple):
    """What may have pushed between two samples."""

    of_a: np.ndarray  # contacts of the first sample
    of_b: np.ndarray  # and of the second
    limits_a: np.ndarray
    limits_b: np.ndarray


def _opened(gap: np.ndarray, N: np.ndarray, s: Sample, other: Sample, turn: Any,
            reach: float) -> np.ndarray:  # fmt: skip
    """(n,) whether contacts at the end of an interval touch, or can have parted within it."""
    dt = abs(s.time - other.time)
    if not len(gap):
        return np.zeros(0, dtype=bool)
    pull = N @ np.linalg.solve(s.M, s.f_end)
    parted = dt * np.maximum(N @ s.v, 0.0) + dt**2 * (np.maximum(pull, 0.0) + turn)
    return gap <= reach + parted


def _reached(gap: np.ndarray, N: np.ndarray, s: Sample, dt: float, turn: Any,
             reach: float) -> np.ndarray:  # fmt: skip
    """(n,) whether contacts at the start of an interval touch, or can be reached within it."""
    if not len(gap):
        return np.zeros(0, dtype=bool)
    pull = N @ np.linalg.solve(s.M, s.f)
    closing = dt * np.maximum(-(N @ s.v), 0.0) + dt**2 * (np.maximum(-pull, 0.0) + turn)
    return gap <= reach + closing


def _may_push(a: Sample, b: Sample, reach: float) -> _Rows:
    """Contacts and limits that can have pushed between two samples."""
    dt = b.time - a.time
    of_b = _opened(b.gap, b.N, b, a, b.turn, reach)
    of_a = _reached(a.gap, a.N, a, dt, a.turn, reach)
    later = same(a, b)
    known = later >= 0
    of_a[known] &= of_b[later[known]]
    # What turns: a patch has other corners at the end. One that touches then excuses its pair.
    for i in np.flatnonzero(~of_a & known & (a.gap <= reach)):
        of_a[i] = of_b[(b.geoms == a.geoms[i]).all(axis=1)].any()
    return _Rows(
        of_a, of_b, _reached(a.U_gap, a.U, a, dt, 0.0, reach),
        _opened(b.U_gap, b.U, b, a, 0.0, reach),
    )  # fmt: skip


def _columns(s: Sample, some: np.ndarray, other: Sample, near: np.ndarray) -> np.ndarray:
    """(k, nv) directions of the impulses that contacts may give, by their law; each has a sign.

    Args:
        s: a sample.
        some: (n,) which of its contacts.
        other: the sample beside it.
        near: (n,) the same contacts there, or -1.
    """
    rows = [np.zeros((0, s.N.shape[1]))]
    dt = abs(s.time - other.time)
    for i in np.flatnonzero(some):
        law, mu = s.law[i], s.mu[i]
        sides = np.stack([s.S[i], s.T[i]])
        if law.kind == "stick":
            rows += [s.N[i : i + 1], sides, -sides]
            continue
        rows.append(s.N[i : i + 1])
        if law.kind != "coulomb" or mu == 0.0 or not sides.any():
            continue
        u = sides @ s.v
        v = u if near[i] < 0 else np.stack([other.S[near[i]], other.T[near[i]]]) @ other.v
        speeds = float(np.linalg.norm(u)), float(np.linalg.norm(v))
        pull = float(np.linalg.norm(s.N[i] @ np.linalg.solve(s.M, s.f)))
        fast = SLIDES * dt * mu * max(pull, 9.81)
        if min(speeds) > fast and float(u @ v) > SAME_WAY * speeds[0] * speeds[1]:
            rows[-1] = s.N[i : i + 1] - mu * (u / speeds[0] @ sides)[None]
            continue
        angle = 2.0 * np.pi * np.arange(EDGES) / EDGES
        around = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        rows.append(s.N[i] + mu / np.cos(np.pi / EDGES) * (around @ sides))
    return np.vstack(rows)


def _drag(s: Sample, some: np.ndarray) -> np.ndarray:
    """(nv,) force of contacts that drag."""
    force = np.zeros_like(s.v)
    for i in np.flatnonzero(some & s.touching):
        if s.law[i].kind == "viscous":
            for row in (s.S[i], s.T[i]):
                force -= s.law[i].mu_v * row * (row @ s.v)
    return force


def _islands(tree_of: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(nv,) number of the island of each coordinate; -1 where no row touches its tree."""
    label = np.arange(tree_of.max(initial=-1) + 1)
    touched = np.zeros(len(label), dtype=bool)
    for row in rows:
        trees = np.unique(tree_of[row != 0.0])
        touched[trees] = True
        if len(trees):
            same = np.isin(label, label[trees])
            label[same] = label[trees].min()
    return np.where(touched[tree_of], label[tree_of], -1) if len(tree_of) else tree_of


def judge_impulse(a: Sample, b: Sample, checks: Mapping[str, Seen], eye: Eye) -> None:
    """Whether contacts could have given the impulse between two samples, and what they did."""
    M, dt = 0.5 * (a.M + b.M), b.time - a.time
    if dt <= 0.0 or not len(a.v):
        return
    rows = _may_push(a, b, eye.reach)
    later, earlier = same(a, b), same(b, a)
    signed = np.vstack([a.E, b.E])
    pushes = [_columns(a, rows.of_a, b, later), _columns(b, rows.of_b, a, earlier)]
    columns = np.vstack([*pushes, a.U[rows.limits_a], b.U[rows.limits_b], signed, -signed])
    drags = [_drag(a, rows.of_a), _drag(b, rows.of_b)]
    listed = [s.N[some & _drags(s)] for s, some in ((a, rows.of_a), (b, rows.of_b))]
    island = _islands(eye.tree_of, np.vstack([columns, *listed]))
    change = M @ (b.v - a.v)
    forces = [a.f + drags[0], 0.5 * (a.f + b.f_end + sum(drags)), b.f_end + drags[1]]
    free = island < 0
    if free.any():
        checks["fall"].see(_fall(a, b, M, change, eye.joint, free), b.time)
    for number in np.unique(island[~free]):
        part = island == number
        touches = np.abs(columns[:, part]).max(axis=1, initial=0.0) > 0.0
        _judge_island(a, b, M, change, forces, columns[touches], part, checks)
    _judge_pushes(a, b, M, change, forces, rows, earlier, checks)


def _drags(s: Sample) -> np.ndarray:
    return np.array([law.kind == "viscous" for law in s.law], dtype=bool)


def _fall(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray, joint: np.ndarray,
          free: np.ndarray) -> float:  # fmt: skip
    """Largest unexplained part of the change of momentum of coordinates that nothing touches."""
    dt = b.time - a.time
    left = np.min([np.abs(change - dt * f) for f in (a.f, 0.5 * (a.f + b.f_end), b.f_end)], axis=0)
    left -= ALLOWED * (dt * np.abs(b.f_end - a.f) + np.abs((b.M - a.M) @ (b.v - a.v)))
    whole = np.maximum(np.abs(change), dt * np.maximum(np.abs(a.f), np.abs(b.f_end)))
    size = np.zeros(joint.max(initial=-1) + 1)
    np.maximum.at(size, joint, whole)
    noise = 1e-12 * np.sqrt(M.diagonal()) * np.sqrt(float(b.v @ M @ b.v) + float(a.v @ M @ a.v))
    part = np.maximum(left - noise, 0.0) / np.where(size[joint] > 0.0, size[joint], 1.0)
    return float(part[free].max(initial=0.0))


def _judge_island(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray,
                  forces: list[np.ndarray], columns: np.ndarray, part: np.ndarray,
                  checks: Mapping[str, Seen]) -> None:  # fmt: skip
    """The momentum of bodies that touch each other."""
    dt, L = b.time - a.time, np.linalg.cholesky(M[np.ix_(part, part)])
    left, _, size = min(
        (_explain(L, (change - dt * f)[part], columns[:, part]) for f in forces),
        key=lambda answer: answer[0],
    )
    changed, given, shift = (
        float(np.linalg.norm(np.linalg.solve(L, x[part])))
        for x in (change, dt * forces[0], dt * (forces[2] - forces[0]))
    )
    scale, left = max(size, changed, given), max(left - DOUBT * shift, 0.0)
    checks["momentum"].see(left / scale if scale > 0.0 else 0.0, b.time)


def _judge_pushes(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray,
                  forces: list[np.ndarray], rows: _Rows, earlier: np.ndarray,
                  checks: Mapping[str, Seen]) -> None:  # fmt: skip
    """Contacts that pushed: whether they part, and whether they slide."""
    dt, L = b.time - a.time, np.linalg.cholesky(M)
    some = [np.flatnonzero(rows.of_a), np.flatnonzero(rows.of_b)]
    sides = [s.S[k] for s, k in zip((a, b), some, strict=True)]
    sides += [s.T[k] for s, k in zip((a, b), some, strict=True)]
    signed = np.vstack([*sides, a.E, b.E])
    columns = np.vstack(
        [a.N[some[0]], b.N[some[1]], a.U[rows.limits_a], b.U[rows.limits_b], signed, -signed]
    )
    _, z, size = min(
        (_explain(L, change - dt * f, columns) for f in forces), key=lambda answer: answer[0]
    )
    scale = max(size, *(float(np.linalg.norm(np.linalg.solve(L, x)))
                        for x in (change, dt * a.f)))  # fmt: skip
    z_a, z_b = np.zeros(len(a.N)), np.zeros(len(b.N))
    z_a[some[0]], z_b[some[1]] = z[: len(some[0])], z[len(some[0]) : len(some[0]) + len(some[1])]
    normal = _at_the_end(a, b, np.concatenate([z_a, z_b]))
    weight = np.linalg.norm(np.linalg.solve(L, b.N.T), axis=0) * normal  # as `scale`
    pushes = (normal > SMALL * z.max(initial=0.0)) & (weight > SMALL * scale) & rows.of_b
    if not pushes.any():
        return
    behind, there = b.N[pushes] @ b.v, earlier[pushes]
    ahead = np.where(there >= 0, a.N[there] @ b.v if len(a.N) else 0.0, behind)
    parting = np.minimum(behind, ahead) - dt * b.turn[pushes]
    parting = parting * normal[pushes] / normal[pushes].max()
    checks["complementarity"].see(max(float(parting.max()), 0.0), b.time)
    pushes &= lasting(b, a, earlier)
    if pushes.any():
        behind = np.hypot(b.S[pushes] @ b.v, b.T[pushes] @ b.v)
        there = earlier[pushes]
        ahead = np.hypot(a.S[there] @ b.v, a.T[there] @ b.v)
        checks["slip"].see(float(np.minimum(behind, ahead).max()), b.time)


def _at_the_end(a: Sample, b: Sample, z: np.ndarray) -> np.ndarray:
    """(n,) impulses of the contacts at the second sample, with those of the first beside them."""
    normal = z[len(a.N) :].copy()
    later = same(a, b)
    np.add.at(normal, later[later >= 0], z[: len(a.N)][later >= 0])
    return normal


def _explain(
    L: np.ndarray, impulse: np.ndarray, rows: np.ndarray
) -> tuple[float, np.ndarray, float]:
    """What NNLS leaves of an impulse by rows with a sign, their multipliers, and its size."""
    from scipy.optimize import nnls

    whole = np.linalg.solve(L, impulse)
    size = float(np.linalg.norm(whole))
    if len(rows) == 0 or size == 0.0:
        return size, np.zeros(len(rows)), size
    z, left = nnls(np.linalg.solve(L, rows.T), whole, maxiter=30 * len(rows))
    return float(left), z, size
