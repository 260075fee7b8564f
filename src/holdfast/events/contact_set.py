"""What touches at one state: contacts, limits and equalities, by their rows and gaps.

Limits are contacts without tangents here: what is said of contacts (impact, time of impact,
transitions, projection) holds for them, too. A detector may list a contact twice, as on the edge
between two facets of a height field; here it is listed once.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from holdfast._jit import entry, kernel
from holdfast.events.rows import Rows, contact_rows, driven_speeds
from holdfast.mujoco.private_model import PrivateModel
from holdfast.mujoco.reach import LIMIT_REACH

MERGED = 1e-6  # part of the mean size within which points of a pair are one contact
PARALLEL = 1e-4  # if their normals differ by no more
STEADY = 0.25  # part of the distance to its neighbour that a contact moves, and is told from it


class Listing:
    """Constraints within reach at one state.

    Attributes:
        rows: (nefc, m) all rows; equalities first, then dry friction, limits, contacts.
        ne, nf: numbers of equalities and of rows with dry friction.
        error: of the equality rows; driven ones have a `target` speed instead.
        loss: dry friction [N, N m].
        first: (n,) row of the normal of each contact, then of each limit.
        contact: (n,) numbers in MuJoCo's list; -1 for limits.
        dim: (n,) 1, 3, 4 or 6; 1 for limits.
        geoms, bodies: (n, 2); geoms are negative for limits, and bodies the world.
        gap: (n,) signed distance [m, rad].
        mu: (n,) declared coefficient of sliding.
        mu_more: (3, n) of torsion, and of rolling about both tangents [m].
        place: (n, 6) point and normal; of a limit, which side it is.
        size: mean size of the model's bodies [m].
    """

    def __init__(
        self, rows: np.ndarray, ne: int, loss: np.ndarray, error: np.ndarray, target: np.ndarray,
        numbers: np.ndarray, lengths: np.ndarray, place: np.ndarray, size: float,
    ) -> None:  # fmt: skip
        self.rows, self.ne, self.nf = rows, ne, len(loss)
        self.loss, self.error, self.target = loss, error, target
        self.numbers, self.place, self.size = numbers, place, size
        self.contact, self.first, self.dim = numbers[0], numbers[1], numbers[2]
        self.geoms, self.bodies = numbers[3:5].T, numbers[5:7].T
        self.gap, self.mu, self.mu_more = lengths[0], lengths[1], lengths[2:]

    def __len__(self) -> int:
        return self.first.shape[0]

    @cached_property
    def N(self) -> np.ndarray:
        """(n, m) normals."""
        return self.rows[self.first]

    @property
    def J(self) -> np.ndarray:
        """(j, m) equality rows."""
        return self.rows[: self.ne]

    @property
    def drift(self) -> np.ndarray:
        """(j,) error of the equality rows that are not driven."""
        return np.where(self.target == 0.0, self.error, 0.0)

    def tangents(self, some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """First and second tangents of the chosen contacts; zeros where there are none."""
        first, slides = self.first[some], self.dim[some] >= 3
        S, T = np.zeros((2, len(first), self.rows.shape[1]))
        S[slides] = self.rows[first[slides] + 1]
        T[slides] = self.rows[first[slides] + 2]
        return S, T

    def match(self, other: Listing) -> np.ndarray:
        """(n,) the same contacts in another listing, nearest points first; -1 where there is none.

        A pair of geoms may touch at several points, and a detector does not number them.
        """
        where, work = np.empty((2, len(self)), dtype=np.int64)
        taken = np.empty(len(other), dtype=bool)
        match_contacts(self.numbers, self.gap, self.place, other.numbers, other.place,
                       work, taken, where)  # fmt: skip
        return where

    def moved(self, mask: np.ndarray, other: Listing) -> np.ndarray:
        """The chosen contacts in another listing, as a mask."""
        there = self.match(other)[mask]
        moved = np.zeros(len(other), dtype=bool)
        moved[there[there >= 0]] = True
        return moved

    def problem_rows(
        self, A: np.ndarray, f: np.ndarray, v: np.ndarray, h: float, some: np.ndarray,
        gap: np.ndarray, target: np.ndarray, loss: np.ndarray,
    ) -> Rows:  # fmt: skip
        """Rows of a step of h seconds in which the chosen contacts and limits alone matter.

        Args:
            A, f, v, h: the smooth step.
            some: (k,) rising numbers of contacts and limits.
            gap: (k,) that they may close within the step.
            target: speeds of the equality rows.
            loss: largest impulses of the rows with dry friction.
        """
        is_limit = self.contact[some] < 0
        contacts, limits = some[~is_limit], some[is_limit]
        start = self.ne + self.nf
        limit = np.flatnonzero(self.contact < 0)
        limit_gap = np.full(len(limit), LIMIT_REACH)
        limit_gap[self.first[limits] - start] = gap[is_limit]
        return Rows(
            A=A,
            f=f,
            v=v,
            h=h,
            efc_J=self.rows,
            equality=slice(0, self.ne),
            dry=slice(self.ne, start),
            limit=self.first[limit],
            contact=self.contact[contacts],
            first=self.first[contacts],
            dim=self.dim[contacts],
            gap=gap[~is_limit],
            limit_gap=limit_gap,
            error=self.error,
            target=target,
            loss=loss,
            size=self.size,
            mu=self.mu[contacts],
            mu_more=self.mu_more[:, contacts],
            geoms=self.geoms[contacts],
            bodies=self.bodies[contacts],
            place=self.place[contacts],
            sunk=np.zeros(len(contacts)),
        )


def listing(private: PrivateModel, data: Any) -> Listing:
    """Sort what `mj_makeConstraint` listed."""
    contact = data.contact
    ne, nf, nl = data.ne, data.nf, data.nl  # in this order, then contacts
    found, distances = np.empty((7, data.ncon), dtype=np.int64), np.empty((5, data.ncon))
    n, size, rows = contact_rows(private, data, ne + nf + nl, found, distances)
    error, target = data.efc_pos[:ne].copy(), np.zeros(ne)
    if ne and private.model.nmocap:
        target = driven_speeds(private.model, data.efc_id[:ne], error, private.h)
    numbers, lengths = np.empty((7, n + nl), dtype=np.int64), np.empty((5, n + nl))
    place = np.empty((n + nl, 6))
    count = sort_contacts(
        found, distances, contact.pos, contact.frame, data.efc_type, data.efc_id, data.efc_pos,
        numbers, lengths, place, n, ne + nf, nl, MERGED * private.size,
    )  # fmt: skip
    return Listing(
        rows[:size], ne, data.efc_frictionloss[ne : ne + nf].copy(), error, target,
        numbers[:, :count], lengths[:, :count], place[:count], private.size,
    )  # fmt: skip


@entry
def sort_contacts(
    found: np.ndarray,
    distances: np.ndarray,
    pos: np.ndarray,
    frame: np.ndarray,
    efc_type: np.ndarray,
    efc_id: np.ndarray,
    efc_pos: np.ndarray,
    numbers_out: np.ndarray,
    lengths_out: np.ndarray,
    place_out: np.ndarray,
    n: int,
    start: int,
    limits: int,
    merged: float,
) -> int:
    """Fill in contacts, each once, then limits, see `Listing`; return how many there are."""
    k = 0
    for i in range(n):
        where = found[0, i]
        for j in range(3):
            place_out[k, j], place_out[k, 3 + j] = pos[where, j], frame[where, j]
        again = False
        before = k - 1
        while before >= 0 and not again:  # those of a pair stand together
            if numbers_out[3, before] != found[3, i] or numbers_out[4, before] != found[4, i]:
                break
            again = True
            for j in range(3):
                if abs(place_out[before, j] - place_out[k, j]) > merged:
                    again = False
                if abs(place_out[before, 3 + j] - place_out[k, 3 + j]) > PARALLEL:
                    again = False
            if again and distances[0, i] < lengths_out[0, before]:  # the nearer one stays
                for j in range(7):
                    numbers_out[j, before] = found[j, i]
                for j in range(5):
                    lengths_out[j, before] = distances[j, i]
                for j in range(6):
                    place_out[before, j] = place_out[k, j]
            before -= 1
        if again:
            continue
        for j in range(7):
            numbers_out[j, k] = found[j, i]
        for j in range(5):
            lengths_out[j, k] = distances[j, i]
        k += 1
    for row in range(start, start + limits):
        numbers_out[0, k], numbers_out[1, k], numbers_out[2, k] = -1, row, 1
        numbers_out[3, k], numbers_out[4, k] = -1 - efc_type[row], -1 - efc_id[row]
        numbers_out[5, k] = numbers_out[6, k] = 0
        lengths_out[0, k] = efc_pos[row]
        for j in range(1, 5):
            lengths_out[j, k] = 0.0
        for j in range(6):
            place_out[k, j] = 0.0
        if row > start and efc_type[row] == efc_type[row - 1] and efc_id[row] == efc_id[row - 1]:
            place_out[k, 0] = 1.0  # the other side
        k += 1
    return k


@entry
def match_contacts(
    numbers: np.ndarray,
    gap: np.ndarray,
    place: np.ndarray,
    other: np.ndarray,
    other_place: np.ndarray,
    order_work: np.ndarray,
    taken_work: np.ndarray,
    where_out: np.ndarray,
) -> None:
    """Fill in where each contact is in the other listing, -1 for nowhere."""
    n, count = numbers.shape[1], other.shape[1]
    same = n == count
    i = 0
    while same and i < n:  # the usual case: nothing moved by more than the points are apart
        nearest, before = np.inf, i - 1
        while (
            before >= 0
            and numbers[3, before] == numbers[3, i]
            and (numbers[4, before] == numbers[4, i])
        ):
            nearest = min(nearest, _apart(place, before, place, i))
            before -= 1
        after = i + 1
        while (
            after < n
            and numbers[3, after] == numbers[3, i]
            and (numbers[4, after] == numbers[4, i])
        ):
            nearest = min(nearest, _apart(place, after, place, i))
            after += 1
        same = (
            numbers[3, i] == other[3, i]
            and numbers[4, i] == other[4, i]
            and (_apart(place, i, other_place, i) <= STEADY * nearest)
        )
        where_out[i] = i
        i += 1
    if same:
        return
    extent = 0.0  # length that a turn of the normal by one stands for
    for j in range(3):
        low, high = np.inf, -np.inf
        for i in range(n):
            low, high = min(low, place[i, j]), max(high, place[i, j])
        extent = max(extent, high - low)
    for i in range(n):  # in order of their gaps
        k = i
        while k > 0 and gap[order_work[k - 1]] > gap[i]:
            order_work[k] = order_work[k - 1]
            k -= 1
        order_work[k] = i
    for j in range(count):
        taken_work[j] = False
    for k in range(n):
        i = order_work[k]
        best, closest = -1, np.inf
        for j in range(count):
            if taken_work[j] or numbers[3, i] != other[3, j] or numbers[4, i] != other[4, j]:
                continue
            turn = 0.0
            for e in range(3, 6):
                turn = max(turn, abs(place[i, e] - other_place[j, e]))
            distance = _apart(place, i, other_place, j) + extent * turn
            if distance < closest:
                best, closest = j, distance
        where_out[i] = best
        if best >= 0:
            taken_work[best] = True


@kernel
def _apart(a: np.ndarray, i: int, b: np.ndarray, j: int) -> float:
    """Distance of two points, along the axis where it is largest."""
    return max(abs(a[i, 0] - b[j, 0]), abs(a[i, 1] - b[j, 1]), abs(a[i, 2] - b[j, 2]))
