"""Whether contacts can have given the impulse between two samples, by their laws. For `verify`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np

from holdfast.tools._samples import DOUBT, Eye, Sample, lasting, part_of, same

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
COARSE = 1.5  # time steps from sample to sample, above which something may happen between them
RESTS = 1e-9  # part of the weight over an interval: impulses of this size are rounding at rest
TINY = 1e-300  # impulse that is none
ALLOWED = 0.5  # part of the change of forces and inertia that a mean over an interval may be off by


class Seen(Protocol):
    """A check that is told values."""

    tolerance: float
    judged: bool

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


def judge_impulse(a: Sample, b: Sample, checks: Mapping[str, Seen], eye: Eye) -> float:
    """Whether contacts could have given the impulse between two samples, and what they did.

    Returns:
        The work of equalities [J].
    """
    M, dt = 0.5 * (a.M + b.M), b.time - a.time
    if dt <= 0.0 or not len(a.v):
        return 0.0
    rows = _may_push(a, b, eye.reach)
    later, earlier = same(a, b), same(b, a)
    steady = _steady(a, b, eye.tree_of)
    friction, dry, most = _dry(a, b)
    lasts = lasting(a, b, later), lasting(b, a, earlier)
    pushing = [(a, rows.of_a, b, later, steady[0]), (b, rows.of_b, a, earlier, steady[1]),
               (eye.taken_back(a, b, rows.of_b), rows.of_b, a, earlier, steady[1])]  # fmt: skip
    hit = _hit(a, b, rows, lasts, eye)
    if hit is not None:
        pushing.append((hit, np.ones(len(hit.N), dtype=bool), a, same(hit, a),
                        np.zeros(len(hit.N), dtype=bool)))  # fmt: skip
    pushes = [_columns(*each) for each in pushing]
    pushes += [a.U[rows.limits_a], b.U[rows.limits_b], a.E, -a.E, b.E, -b.E]
    # What touches at both samples drags all the time; what may have touched, for a part of it.
    part_time = np.vstack(
        [_drag(a, rows.of_a & ~lasts[0], v) for v in (a.v, b.v)]
        + [_drag(b, rows.of_b & ~lasts[1], b.v)]
        + [_drag(s, some, v) for s, some, *_ in pushing[3:] for v in (a.v, b.v)]
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
        checks["fall"].see(_fall(a, b, M, change, eye, free), b.time)
    for number in np.unique(island[~free]):
        part = island == number
        touches = np.abs(columns[:, part]).max(axis=1, initial=0.0) > 0.0
        name = "sustained" if _is_calm(a, b, steady, part) else "momentum"
        _judge_island(a, b, M, change, forces, columns[touches], bound[touches], part, checks[name],
                      eye)  # fmt: skip
    lasts = lasting(b, a, earlier)
    if dt > COARSE * float(eye.model.opt.timestep):
        lasts &= steady[1]  # or what happens in between may have thrown it off after it pushed
    return _judge_pushes(a, b, M, change, forces, rows, earlier, lasts, hit, checks, eye)


def _hit(a: Sample, b: Sample, rows: _Rows, lasts: tuple[np.ndarray, np.ndarray],
         eye: Eye) -> Sample | None:  # fmt: skip
    """What smooth forces alone would have led into, with rows as the bodies stand at the start.

    Where a body comes down is not where its surface was nearest before, nor after it was turned.
    None if nothing is new.
    """
    if not ((rows.of_a & ~lasts[0]).any() or (rows.of_b & ~lasts[1]).any()):
        return None
    there = eye.ahead(a, b.time - a.time)
    some = there.gap <= eye.reach
    return part_of(eye.taken_back(a, there, some), some) if some.any() else None


def _is_calm(a: Sample, b: Sample, steady: tuple[np.ndarray, np.ndarray], part: np.ndarray) -> bool:
    """Whether coordinates have contacts, and nothing else happens about them."""
    some = [calm[(s.N[:, part] != 0.0).any(axis=1)]
            for s, calm in zip((a, b), steady, strict=True)]  # fmt: skip
    return bool(some[0].size and some[0].all() and some[1].all())


def _drags(s: Sample) -> np.ndarray:
    return np.array([law.kind == "viscous" for law in s.law], dtype=bool)


def _fall(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray, eye: Eye,
          free: np.ndarray) -> float:  # fmt: skip
    """Largest unexplained part of the change of momentum of coordinates that nothing touches."""
    dt, joint = b.time - a.time, eye.joint
    left = np.min([np.abs(change - dt * f) for f in (a.f, 0.5 * (a.f + b.f_end), b.f_end)], axis=0)
    # A force elsewhere acts through the inertia, too: on a chain, not only where it changes. What
    # changes turns with the body, so the whole change of a joint counts along each of its axes.
    shift = np.abs(M) @ (_sizes(dt * (b.f_end - a.f), joint) / M.diagonal())
    left -= ALLOWED * (shift + _sizes((b.M - a.M) @ (b.v - a.v), joint))
    # Along a chain what goes into the momentum of a joint cancels.
    whole = np.maximum(np.abs(M) @ np.abs(b.v - a.v), dt * np.maximum(np.abs(a.f), np.abs(b.f_end)))
    left -= DOUBT * eye.turned(a, b) ** 2 * whole
    size = np.zeros(joint.max(initial=-1) + 1)
    np.maximum.at(size, joint, whole)
    noise = 1e-12 * np.sqrt(M.diagonal()) * np.sqrt(float(b.v @ M @ b.v) + float(a.v @ M @ a.v))
    noise += RESTS * dt * eye.pull * np.sqrt(M.diagonal() * eye.mass_of_tree)
    part = np.maximum(left - noise, 0.0) / np.where(size[joint] > 0.0, size[joint], 1.0)
    return float(part[free].max(initial=0.0))


def _sizes(x: np.ndarray, joint: np.ndarray) -> np.ndarray:
    """(nv,) size of a vector of coordinates over the joint of each."""
    total = np.zeros(joint.max(initial=-1) + 1)
    np.add.at(total, joint, x * x)
    return np.sqrt(total)[joint]


def _judge_island(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray,
                  forces: list[np.ndarray], columns: np.ndarray, bound: np.ndarray,
                  part: np.ndarray, check: Seen, eye: Eye) -> None:  # fmt: skip
    """The momentum of bodies that touch each other.

    Between the samples forces change, rows turn with the bodies, and inertia turns, too.
    """
    dt, L = b.time - a.time, np.linalg.cholesky(M[np.ix_(part, part)])
    left, _, size = min(
        (_explain(L, (change - dt * f)[part], columns[:, part], bound) for f in forces),
        key=lambda answer: answer[0],
    )
    changed, given, shift, turned = (
        float(np.linalg.norm(np.linalg.solve(L, x[part])))
        for x in (change, dt * forces[0], dt * (forces[2] - forces[0]), (b.M - a.M) @ (b.v - a.v))
    )
    rows, turn = _turning(a, b, L, part), float(eye.turned(a, b)[part].max()) ** 2
    doubt = DOUBT * (shift + size * turn) + ALLOWED * (turned + size * rows)
    rest = RESTS * dt * eye.pull * float(np.sqrt(eye.mass_of_trees(part)))
    scale = max(size, changed, given, rest)
    if left - doubt > check.tolerance * scale:
        # What damps fast has died down early: the mean force of each joint is between those seen.
        groups = eye.joint[part]
        between = np.where(
            groups == np.unique(groups)[:, None], dt * (forces[2] - forces[0])[part], 0.0
        )
        both = np.vstack([columns[:, part], between])
        limit = np.concatenate([bound, np.ones(len(between))])
        left = min(left, _explain(L, (change - dt * forces[0])[part], both, limit)[0])
    check.see(max(left - doubt, 0.0) / scale if scale > 0.0 else 0.0, b.time)


def _turning(a: Sample, b: Sample, L: np.ndarray, part: np.ndarray) -> float:
    """By how much, relative to their length, normals of contacts that last turn at most."""
    later = same(a, b)
    lasts = lasting(a, b, later) & (a.N[:, part] != 0.0).any(axis=1)
    if not lasts.any():
        return 0.0
    before, after = a.N[lasts][:, part], b.N[later[lasts]][:, part]
    change, length = (
        np.linalg.norm(np.linalg.solve(L, x.T), axis=0) for x in (after - before, before)
    )
    return float(min((change / length).max(), 1.0))


class _Pushes:
    """Impulses that explain a change of momentum, as few of them by some contacts as can be."""

    def __init__(self, a: Sample, b: Sample, L: np.ndarray, changes: list[np.ndarray],
                 rows: _Rows, hit: Sample | None) -> None:  # fmt: skip
        later = same(a, b)
        some = [(a, np.flatnonzero(rows.of_a)), (b, np.flatnonzero(rows.of_b))]
        owner = [later[some[0][1]], some[1][1]]  # number at the end of the contact of a row, or -1
        if hit is not None:
            some.append((hit, np.arange(len(hit.N))))
            owner.append(np.full(len(hit.N), -1))
        normals = [s.N[k] for s, k in some]
        sides = [s.S[k] for s, k in some] + [s.T[k] for s, k in some]
        sides += [s.spin[i] for s, k in some for i in k]
        owners = np.concatenate(owner * 3)
        spun = [np.full(len(s.spin[i]), mine) for (s, k), of in zip(some, owner, strict=True)
                for i, mine in zip(k, of, strict=True)]  # fmt: skip
        self.count, self.end = len(b.N), sum(map(len, normals))
        limits, others = [a.U[rows.limits_a], b.U[rows.limits_b]], [a.D, a.E, b.E]
        self.limits = slice(self.end, self.end + sum(map(len, limits)))
        signed = np.vstack([*sides, *others])
        self.columns = np.vstack([*normals, *limits, signed, -signed])
        no_owner = [np.full(len(x), -1) for x in (np.vstack(limits), np.vstack(others))]
        of_signed = np.concatenate([owners[self.end :], *spun, no_owner[1]]).astype(int)
        self._owner = np.concatenate([owners[: self.end], no_owner[0], of_signed, of_signed])
        self.without_equalities = self.columns[
            : self.limits.stop + len(signed) - len(a.E) - len(b.E)
        ]
        self._L, self._changes, self._out = L, changes, set[int]()
        self.left, self.z, self.size = self._explained()

    def _explained(self) -> tuple[float, np.ndarray, float]:
        kept = ~np.isin(self._owner, list(self._out))
        z = np.zeros(len(kept))
        left, z[kept], size = min(
            (_explain(self._L, change, self.columns[kept]) for change in self._changes),
            key=lambda answer: answer[0],
        )
        return left, z, size

    def can_do_without(self, i: int, allowed: float) -> bool:
        """Whether what a contact of the end gave can be given by others; then it is."""
        self._out.add(i)
        left, z, size = self._explained()
        if left <= self.left + allowed:
            self.z, self.size = z, size
            return True
        self._out.remove(i)
        return False

    @property
    def normal(self) -> np.ndarray:
        """(n,) impulses of the contacts of the end along their normals."""
        total, owner = np.zeros(self.count), self._owner[: self.end]
        np.add.at(total, owner[owner >= 0], self.z[: self.end][owner >= 0])
        return total


def _judge_pushes(a: Sample, b: Sample, M: np.ndarray, change: np.ndarray,
                  forces: list[np.ndarray], rows: _Rows, earlier: np.ndarray,
                  lasts: np.ndarray, hit: Sample | None, checks: Mapping[str, Seen],
                  eye: Eye) -> float:  # fmt: skip
    """Contacts that pushed: whether they part, and whether they slide.

    Impulses are not unique. One that parts or slides has pushed only if what it gave cannot have
    been given by others.

    Returns:
        The work of equalities [J].
    """
    dt, L = b.time - a.time, np.linalg.cholesky(M)
    changes = [change - dt * f for f in forces]
    found = _Pushes(a, b, L, changes, rows, None)
    scale = max(found.size, *(float(np.linalg.norm(np.linalg.solve(L, x)))
                              for x in (change, dt * a.f)))  # fmt: skip
    if (
        hit is not None and found.left > SMALL * scale
    ):  # it came down elsewhere, and is turned since
        found = min(found, _Pushes(a, b, L, changes, rows, hit), key=lambda each: each.left)
    _judge_limits(a, b, L, found.z[found.limits], rows, SMALL * scale, checks, eye)
    others = found.without_equalities
    work = _judge_equalities(a, b, L, found.columns.T @ found.z, others, checks)
    length = np.linalg.norm(np.linalg.solve(L, b.N.T), axis=0)
    here = earlier >= 0
    behind, slides = b.N @ b.v, np.hypot(b.S @ b.v, b.T @ b.v)
    ahead, slid = behind.copy(), slides.copy()
    there = earlier[here]
    ahead[here] = a.N[there] @ b.v
    slid[here] = np.hypot(a.S[there] @ b.v, a.T[there] @ b.v)
    parting, slides = np.minimum(behind, ahead) - dt * b.turn, np.minimum(slides, slid)
    tried = np.zeros(len(b.N), dtype=bool)
    while True:
        normal = found.normal
        pushes = (normal > SMALL * found.z.max(initial=0.0)) & (normal * length > SMALL * scale)
        pushes &= rows.of_b
        thrown = np.where(
            pushes & lasts, parting * normal / max(normal.max(initial=0.0), TINY), 0.0
        )
        slip = np.where(pushes & lasts, slides, 0.0)
        offends = (thrown > checks["complementarity"].tolerance) | (
            checks["slip"].judged & (slip > checks["slip"].tolerance)
        )
        again = np.flatnonzero(offends & ~tried)
        if not again.size:
            break
        tried[again[0]] = True
        found.can_do_without(int(again[0]), SMALL * scale)
    checks["complementarity"].see(float(thrown.max(initial=0.0)), b.time)
    checks["slip"].see(float(slip.max(initial=0.0)), b.time)
    # One that was hit in between may be thrown off by an impact elsewhere, as one end of a rod
    # by that of the other; but not all that pushed bodies part from them.
    every, away = b.N[pushes], parting[pushes]
    island = _islands(eye.tree_of, every)
    of = np.array([island[np.flatnonzero(row)[0]] if row.any() else -1 for row in every])
    for number in np.unique(of):
        checks["complementarity"].see(max(float(away[of == number].min()), 0.0), b.time)
    return work


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
                      checks: Mapping[str, Seen]) -> float:  # fmt: skip
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

    Returns:
        The work that they did [J]: they are springs, whose energy MuJoCo does not count.
    """
    dt = b.time - a.time
    if not len(a.E) or len(a.E) != len(b.E):
        return 0.0
    first, last = (_EqualityLaw(s, dt, b.v - a.v, L, given, others) for s in (a, b))
    mean = 0.5 * (a.v + b.v)
    work = max(float(law.impulse @ (s.E @ mean)) for law, s in ((first, a), (last, b)))
    if dt > QUICK * a.E_slow:
        return work
    law, kept = _least_between(first.missed, last.missed), _least_between(a.E @ b.v, b.E @ b.v)
    motion = float(np.linalg.norm(L.T @ a.v) + np.linalg.norm(L.T @ b.v))
    whole = first.whole + STILL * first.length * motion
    part = np.minimum(law, kept) / np.where(whole > 0.0, whole, 1.0)
    checks["equality"].see(float(part.max()), b.time)
    return work


class _EqualityLaw:
    """The law of equalities by the rows of a sample.

    Impulses need not be unique: of all that explain the motion, those that obey the law best.

    Attributes:
        impulse: of each row.
        missed: what the law misses.
        whole: the largest of its terms.
        length: of each row.
    """

    def __init__(self, s: Sample, dt: float, change: np.ndarray, L: np.ndarray, given: np.ndarray,
                 others: np.ndarray) -> None:  # fmt: skip
        J, beside = np.linalg.solve(L, s.E.T), np.linalg.solve(L, others.T)
        self.length = np.linalg.norm(J, axis=0)
        unit = np.where(self.length > 0.0, self.length, 1.0)
        asked = dt * s.E_wanted - s.E @ change
        law = np.hstack([np.diag(s.E_soft / unit), np.zeros((len(unit), len(others)))])
        both = np.vstack([np.hstack([J, beside]), WEAK * law])
        right = np.concatenate([np.linalg.solve(L, given), WEAK * asked / unit])
        self.impulse = np.linalg.lstsq(both, right, rcond=None)[0][: len(unit)]
        soft = s.E_soft * self.impulse
        self.missed = asked - soft
        self.whole = np.max(np.abs([dt * s.E_wanted, s.E @ change, soft]), axis=0)


def _least_between(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Least size of what changes from one value to another; the step ends or begins in between."""
    return np.where(first * last < 0.0, 0.0, np.minimum(np.abs(first), np.abs(last)))


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
