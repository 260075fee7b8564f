"""Whether contacts can have given the impulse between two samples, by their laws. For `verify`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np

from holdfast.tools._samples import DOUBT, Eye, Sample, lasting, same

SMALL = 1e-3  # impulses below this part of the largest are not asked for slip or parting
EDGES = 12  # of the pyramid about a friction cone
SLIDES = 2.0  # times what friction can stop between two samples: faster contacts slide all the time
STEADY = 1e-3  # part of that where nothing else happens: slower ones may be called at rest
CHANGED = 0.05  # part of the smooth forces: where they change by more, something happens
AGAINST = 0.7  # least cosine between friction with torsion or rolling and what it is against
SAME_WAY = 0.95  # cosine between directions of sliding that are one
QUICK = 0.5  # times the time constant of equalities: samples that are closer together judge them
WEAK = 1e-3  # weight of the law of equalities beside the impulse that they gave
STILL = 1e-9  # part of the motion: equalities whose rows move less are at rest
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
    # What met in between is apart by what surfaces curve away along the way since.
    of_b = _opened(b.gap, b.N, b, a, b.turn + b.around, reach)
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


def _same_way(speeds: list[np.ndarray], doubt: float, slow: float) -> bool:
    """Whether a contact whose speeds are seen so slides all the time, and in one direction."""
    sizes = [float(np.linalg.norm(u)) for u in speeds]
    if min(sizes) - 2.0 * doubt <= slow:
        return False
    ways = [u / size for u, size in zip(speeds, sizes, strict=True)]
    return all(float(ways[0] @ way) > SAME_WAY for way in ways[1:])


def _columns(s: Sample, some: np.ndarray, other: Sample, near: np.ndarray,
             steady: np.ndarray) -> np.ndarray:  # fmt: skip
    """(k, nv) directions of the impulses that contacts may give, by their law; each has a sign.

    Friction is within a polygon about the cone, with torsion and rolling in a box beside it. A
    contact that slides, spins or rolls all the time pushes against its motion, as it is seen at
    either sample or between rows and velocities of the two; where something else happens and it
    spins or rolls, along the directions that are against it. What the turning of its rows shows
    of a motion is in doubt: a body that rolls fast slides by the rows of another moment.

    Args:
        s: a sample.
        some: (n,) which of its contacts.
        other: the sample beside it.
        near: (n,) the same contacts there, or -1.
        steady: (n,) contacts about which nothing else happens between the samples.
    """
    rows = [np.zeros((0, s.N.shape[1]))]
    dt = abs(s.time - other.time)
    for i in np.flatnonzero(some):
        law, mu = s.law[i], s.mu[i]
        sides = np.vstack([s.S[i], s.T[i], s.spin[i]])
        rows.append(s.N[i : i + 1])
        if law.kind == "stick":
            rows += [sides, -sides]
            continue
        if law.kind != "coulomb":
            rows += [s.spin[i], -s.spin[i]]
            continue
        if mu == 0.0 or not sides.any():
            continue
        scale = np.concatenate([[mu, mu], s.mu_spin[i]])
        speeds, doubt = [scale / mu * (sides @ s.v)], 0.0
        if near[i] >= 0 and len(other.spin[near[i]]) == len(s.spin[i]):
            beside = np.vstack([other.S[near[i]], other.T[near[i]], other.spin[near[i]]])
            # Velocities of time stepping obey the rows before the step, those of an ODE its own.
            end, ahead = (other.v, sides) if other.time > s.time else (s.v, beside)
            speeds += [scale / mu * (beside @ other.v), scale / mu * (ahead @ end)]
            doubt = float(np.linalg.norm(scale / mu * ((sides - beside) @ end)))
        pull = float(np.linalg.norm(s.N[i] @ np.linalg.solve(s.M, s.f)))
        slow = SLIDES * dt * mu * max(pull, 9.81) * (STEADY if steady[i] else 1.0)
        sliding = _same_way(speeds, doubt, slow)
        if sliding and (len(sides) == 2 or steady[i]):
            rows.pop()
            rows += [s.N[i : i + 1] - (scale * u / np.linalg.norm(u) @ sides)[None] for u in speeds]
            continue
        around = _friction_directions(len(sides))
        if sliding:
            against = around @ (speeds[0] / np.linalg.norm(speeds[0])) <= -AGAINST
            around, rows[-1] = around[against], rows[-1][:0]
        rows.append(s.N[i] + (around * scale) @ sides)
    return np.vstack(rows)


@cache
def _friction_directions(count: int) -> np.ndarray:
    """(k, count) corners of a polygon about the unit circle, times those of a box about it."""
    angle = 2.0 * np.pi * np.arange(EDGES) / EDGES
    polygon = np.stack([np.cos(angle), np.sin(angle)], axis=1) / np.cos(np.pi / EDGES)
    box = np.array(list(product((-1.0, 1.0), repeat=count - 2)))  # without them one, with no entry
    return np.hstack([np.repeat(polygon, len(box), axis=0), np.tile(box, (EDGES, 1))])


def _steady(a: Sample, b: Sample, tree_of: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) contacts of both samples about which nothing else happens between them.

    All contacts of their island last, no limit is near, and smooth forces stay as they are.
    """
    island = _islands(tree_of, np.vstack([a.N, b.N, a.E, a.D]))
    busy = np.zeros(len(tree_of) + 1, dtype=bool)  # by number of the island
    for s, other in ((a, b), (b, a)):
        for row in np.vstack([s.N[~lasting(s, other, same(s, other))], s.U]):
            busy[island[row != 0.0]] = True
    L = np.linalg.cholesky(0.5 * (a.M + b.M))
    for number in np.unique(island[island >= 0]):
        part = island == number
        change, force = (
            float(np.linalg.norm(np.linalg.solve(L, np.where(part, x, 0.0))))
            for x in (b.f_end - a.f, a.f)
        )
        busy[number] |= change > CHANGED * force
    return tuple(
        np.array([not busy[island[row != 0.0]].any() for row in s.N], dtype=bool) for s in (a, b)
    )  # pyright: ignore[reportReturnType]


def _dry(a: Sample, b: Sample) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dry friction: (nv,) force of what slides all the time; other rows, and their bounds."""
    force, dt = np.zeros_like(a.v), b.time - a.time
    left = []
    for i, (row, most) in enumerate(zip(a.D, a.D_most, strict=True)):
        stops = SLIDES * dt * most * float(row @ np.linalg.solve(a.M, row))
        before, after = float(row @ a.v), float(row @ b.v)
        if before * after > 0.0 and min(abs(before), abs(after)) > stops:
            force -= most * np.sign(before) * row
        else:
            left.append(i)
    return force, a.D[left], dt * a.D_most[left]


def _drag(s: Sample, some: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(k, nv) forces of the contacts that drag, at this velocity; of two at one point, one."""
    forces, points = [np.zeros((0, len(v)))], []
    for i in np.flatnonzero(some & _drags(s)):
        if any((s.geoms[i] == s.geoms[k]).all() and np.array_equal(s.point[i], s.point[k])
               for k in points):  # fmt: skip
            continue
        points.append(i)
        forces.append(-s.law[i].mu_v * (s.S[i] * (s.S[i] @ v) + s.T[i] * (s.T[i] @ v))[None])
    return np.vstack(forces)


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
    steady = _steady(a, b, eye.tree_of)
    friction, dry, most = _dry(a, b)
    back = eye.taken_back(a, b, rows.of_b)
    pushes = [_columns(a, rows.of_a, b, later, steady[0]),
              _columns(b, rows.of_b, a, earlier, steady[1]),
              _columns(back, rows.of_b, a, earlier, steady[1])]  # fmt: skip
    pushes += [a.U[rows.limits_a], b.U[rows.limits_b], a.E, -a.E, b.E, -b.E]
    lasts = lasting(a, b, later), lasting(b, a, earlier)
    # What touches at both samples drags all the time; what may have touched, for a part of it.
    part_time = np.vstack(
        [_drag(a, rows.of_a & ~lasts[0], a.v), _drag(b, rows.of_b & ~lasts[1], b.v)]
    )
    columns = np.vstack([*pushes, dry, -dry, part_time])
    free_signs = len(columns) - 2 * len(dry) - len(part_time)
    bound = np.concatenate([np.full(free_signs, np.inf), most, most, np.full(len(part_time), dt)])
    dragging = ((a, lasts[0], a.v), (b, lasts[1], b.v), (a, lasts[0], b.v))
    drags = [friction + _drag(s, some, v).sum(axis=0) for s, some, v in dragging]
    listed = [s.N[some & _drags(s)] for s, some in ((a, rows.of_a), (b, rows.of_b))]
    island = _islands(eye.tree_of, np.vstack([columns, *listed, a.D]))
    change = M @ (b.v - a.v)
    forces = [a.f + drags[0], 0.5 * (a.f + b.f_end + drags[0] + drags[1]), b.f_end + drags[1],
              a.f + drags[2]]  # fmt: skip
    free = island < 0
    if free.any():
        checks["fall"].see(_fall(a, b, M, change, eye.joint, free), b.time)
    for number in np.unique(island[~free]):
        part = island == number
        touches = np.abs(columns[:, part]).max(axis=1, initial=0.0) > 0.0
        name = "sustained" if _is_calm(a, b, steady, part) else "momentum"
        _judge_island(a, b, M, change, forces, columns[touches], bound[touches], part, checks[name])
    _judge_pushes(a, b, M, change, forces, rows, earlier, checks, eye)


def _is_calm(a: Sample, b: Sample, steady: tuple[np.ndarray, np.ndarray], part: np.ndarray) -> bool:
    """Whether coordinates have contacts, and nothing else happens about them."""
    some = [calm[(s.N[:, part] != 0.0).any(axis=1)]
            for s, calm in zip((a, b), steady, strict=True)]  # fmt: skip
    return bool(some[0].size and some[0].all() and some[1].all())


def _drags(s: Sample) -> np.ndarray:
    return np.array([law.kind == "viscous" for law in s.law], dtype=bool)


def _fall(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray, joint: np.ndarray,
          free: np.ndarray) -> float:  # fmt: skip
    """Largest unexplained part of the change of momentum of coordinates that nothing touches."""
    dt = b.time - a.time
    left = np.min([np.abs(change - dt * f) for f in (a.f, 0.5 * (a.f + b.f_end), b.f_end)], axis=0)
    # A force elsewhere acts through the inertia, too: on a chain, not only where it changes.
    shift = np.abs(M) @ (dt * np.abs(b.f_end - a.f) / M.diagonal())
    left -= ALLOWED * (shift + np.abs((b.M - a.M) @ (b.v - a.v)))
    whole = np.maximum(np.abs(change), dt * np.maximum(np.abs(a.f), np.abs(b.f_end)))
    size = np.zeros(joint.max(initial=-1) + 1)
    np.maximum.at(size, joint, whole)
    noise = 1e-12 * np.sqrt(M.diagonal()) * np.sqrt(float(b.v @ M @ b.v) + float(a.v @ M @ a.v))
    part = np.maximum(left - noise, 0.0) / np.where(size[joint] > 0.0, size[joint], 1.0)
    return float(part[free].max(initial=0.0))


def _judge_island(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray,
                  forces: list[np.ndarray], columns: np.ndarray, bound: np.ndarray,
                  part: np.ndarray, check: Seen) -> None:  # fmt: skip
    """The momentum of bodies that touch each other."""
    dt, L = b.time - a.time, np.linalg.cholesky(M[np.ix_(part, part)])
    left, _, size = min(
        (_explain(L, (change - dt * f)[part], columns[:, part], bound) for f in forces),
        key=lambda answer: answer[0],
    )
    changed, given, shift = (
        float(np.linalg.norm(np.linalg.solve(L, x[part])))
        for x in (change, dt * forces[0], dt * (forces[2] - forces[0]))
    )
    scale, left = max(size, changed, given), max(left - DOUBT * shift, 0.0)
    check.see(left / scale if scale > 0.0 else 0.0, b.time)


def _judge_pushes(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray,
                  forces: list[np.ndarray], rows: _Rows, earlier: np.ndarray,
                  checks: Mapping[str, Seen], eye: Eye) -> None:  # fmt: skip
    """Contacts that pushed: whether they part, and whether they slide."""
    dt, L = b.time - a.time, np.linalg.cholesky(M)
    some = [np.flatnonzero(rows.of_a), np.flatnonzero(rows.of_b)]
    sides = [s.S[k] for s, k in zip((a, b), some, strict=True)]
    sides += [s.T[k] for s, k in zip((a, b), some, strict=True)]
    sides += [s.spin[i] for s, k in zip((a, b), some, strict=True) for i in k]
    signed = np.vstack([*sides, a.D, a.E, b.E])
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
    first = len(some[0]) + len(some[1])
    _judge_limits(a, b, L, z[first : first + int(rows.limits_a.sum() + rows.limits_b.sum())],
                  rows, SMALL * scale, checks, eye)  # fmt: skip
    others = columns[: len(columns) - len(signed) - len(a.E) - len(b.E)]
    _judge_equalities(a, b, L, columns.T @ z, others, checks)
    if not pushes.any():
        return
    behind, there = b.N[pushes] @ b.v, earlier[pushes]
    ahead = np.where(there >= 0, a.N[there] @ b.v if len(a.N) else 0.0, behind)
    parting = np.minimum(behind, ahead) - dt * b.turn[pushes]
    # One that was hit in between may be thrown off by an impact elsewhere, as one end of a rod
    # by that of the other; but not all that pushed bodies part from them.
    island = _islands(eye.tree_of, b.N[pushes])
    of = np.array([island[np.flatnonzero(row)[0]] if row.any() else -1 for row in b.N[pushes]])
    for number in np.unique(of):
        least = float(parting[of == number].min())
        checks["complementarity"].see(max(least, 0.0), b.time)
    lasts = lasting(b, a, earlier)
    weighted = (parting * normal[pushes] / normal[pushes].max())[lasts[pushes]]
    checks["complementarity"].see(max(float(weighted.max(initial=0.0)), 0.0), b.time)
    pushes &= lasts
    if pushes.any():
        behind = np.hypot(b.S[pushes] @ b.v, b.T[pushes] @ b.v)
        there = earlier[pushes]
        ahead = np.hypot(a.S[there] @ b.v, a.T[there] @ b.v)
        checks["slip"].see(float(np.minimum(behind, ahead).max()), b.time)


def _judge_limits(a: Sample, b: Sample, L: np.ndarray, z: np.ndarray, rows: _Rows, least: float,
                  checks: Mapping[str, Seen], eye: Eye) -> None:  # fmt: skip
    """Limits that pushed: whether they part.

    A limit that pushes may be thrown open by another one, or by a contact of its tree; but not by
    itself. Speeds of joints that turn count with the radius of gyration of what they carry.
    """
    every = np.vstack([a.U[rows.limits_a], b.U[rows.limits_b]])
    for row, push in zip(every, z, strict=True):
        around = np.linalg.solve(L, row)
        trees = np.isin(eye.tree_of, eye.tree_of[row != 0.0])
        alone = sum(bool(other[trees].any()) for other in (*a.N, *b.N)) == 0
        if not alone or push * float(np.linalg.norm(around)) <= least:
            continue
        size = np.sqrt(1.0 / float(around @ around) / eye.mass_of_trees(trees))
        checks["complementarity"].see(max(min(size, 1.0) * float(row @ b.v), 0.0), b.time)


def _judge_equalities(a: Sample, b: Sample, L: np.ndarray, given: np.ndarray, others: np.ndarray,
                      checks: Mapping[str, Seen]) -> None:  # fmt: skip
    """Equalities: ``J dv + R p = dt a_ref`` with the impulse p that they gave, or ``J v = 0``.

    What is not explained, relative to the largest of these. MuJoCo's equalities act within a time
    constant; where samples are not much closer together, forces change too much between them.

    Args:
        a: the first sample.
        b: the second one.
        L: factor of the inertia.
        given: (nv,) impulse of all constraints.
        others: rows of constraints that are no equalities.
        checks: told what is missed.
    """
    dt = b.time - a.time
    if not len(a.E) or len(a.E) != len(b.E) or dt > QUICK * a.E_slow:
        return
    J, beside = np.linalg.solve(L, a.E.T), np.linalg.solve(L, others.T)
    length = np.linalg.norm(J, axis=0)
    length[length == 0.0] = 1.0
    change = a.E @ (b.v - a.v)
    asked = dt * a.E_wanted - change
    # Impulses need not be unique: of all that explain the motion, those that obey the law best.
    law = np.hstack([np.diag(a.E_soft / length), np.zeros((len(length), len(others)))])
    both = np.vstack([np.hstack([J, beside]), WEAK * law])
    right = np.concatenate([np.linalg.solve(L, given), WEAK * asked / length])
    soft = a.E_soft * np.linalg.lstsq(both, right, rcond=None)[0][: len(length)]
    missed = np.minimum(np.abs(asked - soft), np.abs(a.E @ b.v))
    motion = float(np.linalg.norm(L.T @ a.v) + np.linalg.norm(L.T @ b.v))
    whole = np.max(np.abs([dt * a.E_wanted, change, soft]), axis=0) + STILL * length * motion
    checks["equality"].see(float((missed / np.where(whole > 0.0, whole, 1.0)).max()), b.time)


def _at_the_end(a: Sample, b: Sample, z: np.ndarray) -> np.ndarray:
    """(n,) impulses of the contacts at the second sample, with those of the first beside them."""
    normal = z[len(a.N) :].copy()
    later = same(a, b)
    np.add.at(normal, later[later >= 0], z[: len(a.N)][later >= 0])
    return normal


def _explain(
    L: np.ndarray, impulse: np.ndarray, rows: np.ndarray, bound: np.ndarray | None = None
) -> tuple[float, np.ndarray, float]:
    """What least squares leave of an impulse by rows with multipliers from zero to their bounds.

    Returns:
        The size of what is left, the multipliers, and the size of the impulse.
    """
    from scipy.optimize import lsq_linear, nnls

    whole = np.linalg.solve(L, impulse)
    size = float(np.linalg.norm(whole))
    if len(rows) == 0 or size == 0.0:
        return size, np.zeros(len(rows)), size
    A = np.linalg.solve(L, rows.T)
    if bound is None or np.isinf(bound).all():
        z, left = nnls(A, whole, maxiter=30 * len(rows))
        return float(left), z, size
    z = lsq_linear(A, whole, (0.0, bound), method="bvls", tol=1e-12).x
    return float(np.linalg.norm(A @ z - whole)), z, size
