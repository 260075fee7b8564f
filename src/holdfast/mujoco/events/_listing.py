"""What touches at one state: contacts, limits and equalities, by their rows and gaps.

Limits are contacts without tangents here: what is said of contacts (impact, time of impact,
transitions, projection) holds for them, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.mujoco._shadow import Shadow
from holdfast.mujoco.assemble import contact_rows, driven_speeds


@dataclass(eq=False)
class Listing:
    """Constraints within reach at one state.

    Attributes:
        rows: (nefc, m) all rows of MuJoCo's list.
        equality, dry: rows of these kinds.
        error: of the equality rows; driven ones have a `target` speed instead.
        loss: dry friction [N, N m].
        first: (n,) row of the normal of each contact, then of each limit.
        dim: (n,) 1 to 6; 1 for limits.
        gap: (n,) signed distance [m, rad].
        mu: (n,) declared coefficient of sliding.
        geoms: (n, 2); negative for limits.
        point: (n, 3) where it is; which side of a limit.
        normal: (n, 3) of contacts.
    """

    rows: np.ndarray
    equality: np.ndarray
    dry: np.ndarray
    error: np.ndarray
    target: np.ndarray
    loss: np.ndarray
    first: np.ndarray
    dim: np.ndarray
    gap: np.ndarray
    mu: np.ndarray
    geoms: np.ndarray
    point: np.ndarray
    normal: np.ndarray

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def N(self) -> np.ndarray:
        """(n, m) normals."""
        return self.rows[self.first]

    @cached_property
    def J(self) -> np.ndarray:
        """(j, m) equality rows."""
        return self.rows[self.equality]

    def tangents(self, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second tangents of the chosen contacts; zeros where there are none."""
        first, slides = self.first[some], self.dim[some] >= 3
        S, T = np.zeros((2, len(first), self.rows.shape[1]))
        S[slides] = self.rows[first[slides] + 1]
        T[slides] = self.rows[first[slides] + 2]
        return S, T

    def friction_rows(self, some: np.ndarray) -> np.ndarray:
        """Numbers of all friction rows (tangents, torsion, rolling) of the chosen contacts."""
        count = np.maximum(self.dim[some] - 1, 0)
        start = np.repeat(np.cumsum(count) - count, count)
        return np.repeat(self.first[some], count) + 1 + np.arange(count.sum()) - start

    def extra(self, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Rows of torsion and rolling of the chosen contacts, and which of them they belong to."""
        count = np.maximum(self.dim[some] - 3, 0)
        contact = np.repeat(np.arange(len(count)), count)
        start = np.repeat(np.cumsum(count) - count, count)
        return self.rows[self.first[some][contact] + 3 + np.arange(len(contact)) - start], contact

    def match(self, other: Listing) -> np.ndarray:
        """(n,) the same contacts in another listing, nearest points first; -1 where there is none.

        A pair of geoms may touch at several points, and a detector does not number them.
        """
        if len(self) == len(other) and np.array_equal(self.geoms, other.geoms):
            apart = np.abs(self.point - other.point).max(initial=0.0)
            if apart <= 0.25 * self._nearest:
                return np.arange(len(self))
        found = np.full(len(self), -1)
        free = np.ones(len(other), dtype=bool)
        for i in np.argsort(self.gap, kind="stable"):
            same = np.flatnonzero(free & (other.geoms == self.geoms[i]).all(axis=1))
            if same.size:
                distance = np.abs(other.point[same] - self.point[i]).max(axis=1)
                distance += self._size * np.abs(other.normal[same] - self.normal[i]).max(axis=1)
                found[i] = same[int(distance.argmin())]
                free[found[i]] = False
        return found

    @cached_property
    def _size(self) -> float:
        """Length that a turn of the normal by one stands for: the extent of the points."""
        return float(np.ptp(self.point, axis=0).max(initial=0.0))

    @cached_property
    def _nearest(self) -> float:
        """Smallest distance between two points of the same pair."""
        if len({*map(tuple, self.geoms.tolist())}) == len(self):
            return np.inf
        same = (self.geoms[:, None] == self.geoms[None]).all(axis=2)
        apart = np.abs(self.point[:, None] - self.point[None]).max(axis=2)
        np.fill_diagonal(same, False)
        return float(apart[same].min(initial=np.inf))


def listing(shadow: Shadow, data: Any) -> Listing:
    """Sort what `mj_makeConstraint` listed."""
    own, contact = shadow.model, data.contact
    ne, nf, nl = data.ne, data.nf, data.nl  # in this order, then contacts
    numbers, lengths = np.empty((7, data.ncon), dtype=np.int64), np.empty((2, data.ncon))
    n, size, rows = contact_rows(shadow, data, ne + nf + nl, numbers, lengths)
    which = numbers[0, :n]
    first, dim, gap, mu = numbers[1, :n], numbers[2, :n], lengths[0, :n], lengths[1, :n]
    geoms, point, normal = numbers[3:5, :n].T, contact.pos[which], contact.frame[which][:, :3]
    error, target = data.efc_pos[:ne].copy(), np.zeros(ne)
    if ne and own.nmocap:
        target = driven_speeds(own, data.efc_id[:ne], error, shadow.h)
    if nl:
        limit = np.arange(ne + nf, ne + nf + nl)
        label = np.column_stack([-1 - data.efc_type[limit], -1 - data.efc_id[limit]])
        again = np.append(False, (label[1:] == label[:-1]).all(axis=1))
        side = np.column_stack([again, np.zeros((nl, 2))])
        first, gap = np.append(first, limit), np.append(gap, data.efc_pos[limit])
        dim, mu = np.append(dim, np.ones(nl, dtype=np.int64)), np.append(mu, np.zeros(nl))
        geoms, point = np.concatenate([geoms, label]), np.concatenate([point, side])
        normal = np.concatenate([normal, np.zeros((nl, 3))])
    return Listing(
        rows=rows[:size],
        equality=np.arange(ne),
        dry=np.arange(ne, ne + nf),
        error=error,
        target=target,
        loss=np.array(data.efc_frictionloss[ne : ne + nf]),
        first=first,
        dim=dim,
        gap=gap,
        mu=mu,
        geoms=geoms,
        point=point,
        normal=normal,
    )
