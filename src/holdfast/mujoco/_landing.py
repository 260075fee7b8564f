"""Where a step ends: contacts that its rows, which are those of its start, do not show.

Rows are linear. A body that turns moves its corners along arcs, two boxes that meet at an edge have
other points in contact when the step is over, and a body that was hit meets others that were out of
its reach. So the surfaces are looked at where the motion leads:

1. move the bodies, as a trial, and list the contacts there;
2. a contact that has sunk in and stands in the list of the step is given the gap that it really
   had to close; one that is new is added to the list, taken back to where its point was before;
3. solve again, until nothing sinks in or a bound is reached.

Where the trial motion v led to the distance d along the normal n, the row asks for

    d + h n (v+ - v) >= 0,    that is   n v+ >= -gap / h   with   gap = d - h n v

but never for surfaces that part: gap >= 0. Such rows take energy out and add none.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any

import numpy as np

from holdfast._jit import entry
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._shadow import SIZE_RESERVE, Shadow
from holdfast.mujoco.assemble import Rows, gather

SUNK = 1e-5  # part of the mean size that surfaces may sink in before a step is solved again
CURVED = 1e-4  # squared turn of a coordinate, in radians or mean sizes, that bends its path
SAME_PLACE = 0.05  # part of the smaller geom's radius within which points are one contact
SAME_NORMAL = 0.9  # cosine between normals of one contact
SAME = 0.9999  # cosine between normals that are the same
ROUNDS = 10  # that a step is solved again


class Landing:
    """Looks where motions lead, on data of its own."""

    def __init__(self, shadow: Shadow) -> None:
        self._shadow = shadow

    @cached_property
    def trial(self) -> Any:
        """Data for the bodies where a motion leads."""
        return mujoco.MjData(self._shadow.model)

    def look(self, data: Any, velocity: np.ndarray) -> bool:
        """Move the bodies as a trial and list the contacts there; whether any has sunk in."""
        own = self._shadow.model
        trial, qpos = self.trial, np.array(data.qpos)
        mujoco.mj_integratePos(own, qpos, velocity, self._shadow.h)
        trial.qpos[:] = qpos
        if own.nmocap:
            trial.mocap_pos[:], trial.mocap_quat[:] = data.mocap_pos, data.mocap_quat
        self._shadow.narrow_margins(trial)
        mujoco.mj_kinematics(own, trial)
        mujoco.mj_collision(own, trial)
        return bool((trial.contact.dist < self._deep).any())

    @property
    def _deep(self) -> float:
        """Distances below this are looked at [m]."""
        return -SUNK * self._shadow.size

    def relist(self, data: Any, rows: Rows, velocity: np.ndarray) -> Rows | None:
        """Rows that know what the last look saw; None if they already do, or cannot.

        Pairs that have sunk in are looked at with all their contacts, also with those that have
        not: solved for one corner alone, a face would sink in at the next.
        """
        seen, listed = self.trial.contact, _by_pair(rows.geoms)
        dist, geoms = np.array(seen.dist), seen.geom.tolist()
        sunk = {tuple(geoms[e]) for e in np.flatnonzero(dist < self._deep)}
        gap, new = rows.gap.copy(), []
        rows.sunk[:] = 0.0
        for e in (e for e, pair in enumerate(geoms) if tuple(pair) in sunk):
            points = self._taken_back(data, geoms[e], seen.pos[e])
            among = listed.get(tuple(geoms[e]), [])
            k, likeness = self._find(data, rows, among, points, seen.frame[e, :3])
            end = rows.gap[k] + rows.h * float(rows.N[k] @ velocity) if k >= 0 else 0.0
            if likeness > SAME_NORMAL and rows.gap[k] > 0.0:
                gap[k] = min(gap[k], max(dist[e] - end + rows.gap[k], 0.0))
            elif k < 0 or (likeness <= SAME and dist[e] < self._deep):
                new.append((dist[e], _contact(seen[e], sum(points) / 2, slippery=bool(among))))
            if likeness > SAME_NORMAL:
                rows.sunk[k] = max(rows.sunk[k], end - dist[e])
        if not new and np.array_equal(gap, rows.gap):
            return None
        rows.gap[:] = gap
        return self._add(data, rows, velocity, new) if new else rows

    def _add(
        self, data: Any, rows: Rows, velocity: np.ndarray, new: list[tuple[float, Any]]
    ) -> Rows:
        """Add contacts to MuJoCo's list, each with the gap that leads to its distance."""
        before, gaps = data.ncon, dict(zip(rows.contact.tolist(), rows.gap.tolist(), strict=True))
        for _, contact in new:
            if mujoco.mj_addContact(self._shadow.model, data, contact):
                break  # no room; MuJoCo has warned
        mujoco.mj_makeConstraint(self._shadow.model, data)
        rows = gather(self._shadow, data, (rows.A, rows.f))
        for k, i in enumerate(rows.contact.tolist()):
            if i in gaps:
                rows.gap[k] = gaps[i]
            elif i >= before:
                closed = new[i - before][0] - rows.h * float(rows.N[k] @ velocity)
                rows.gap[k] = data.contact.dist[i] = max(closed, 0.0)
        return rows

    def _taken_back(self, data: Any, pair: list[int], point: np.ndarray) -> list[np.ndarray]:
        """Where a point of the trial was before, as part of either geom."""
        trial, places = self.trial, []
        for g in pair:
            local = trial.geom_xmat[g].reshape(3, 3).T @ (point - trial.geom_xpos[g])
            places.append(data.geom_xpos[g] + data.geom_xmat[g].reshape(3, 3) @ local)
        return places

    def _find(
        self, data: Any, rows: Rows, among: list[int], points: list[np.ndarray], normal: np.ndarray
    ) -> tuple[int, float]:
        """The listed contact at this place that is most like, and the cosine between normals.

        (-1, 0) if there is none.
        """
        best, likeness = -1, 0.0
        for k in among:
            radii = self._shadow.radius[rows.geoms[k]]
            reach = SAME_PLACE * radii[radii > 0.0].min(initial=np.inf) + max(rows.gap[k], 0.0)
            place = data.contact.pos[rows.contact[k]]
            if min(float(np.linalg.norm(point - place)) for point in points) <= reach:
                cosine = float(data.contact.frame[rows.contact[k], :3] @ normal)
                if best < 0 or cosine > likeness:
                    best, likeness = k, cosine
        return best, likeness


@entry
def may_land(velocity: np.ndarray, before: np.ndarray, h: float, size: float) -> bool:
    """Return whether a motion is so fast that rows of its start may be wrong about its end."""
    fastest = change = 0.0
    for j in range(velocity.shape[0]):
        fastest = max(fastest, abs(velocity[j]))
        change = max(change, abs(velocity[j] - before[j]))
    step = h * max(1.0, 1.0 / size)
    return (step * fastest) ** 2 > CURVED or step * change > SIZE_RESERVE


def _by_pair(geoms: np.ndarray) -> dict[tuple[int, ...], list[int]]:
    """Numbers of the contacts between each pair of geoms."""
    pairs: dict[tuple[int, ...], list[int]] = {}
    for k, pair in enumerate(geoms.tolist()):
        pairs.setdefault(tuple(pair), []).append(k)
    return pairs


def _contact(seen: Any, point: Any, *, slippery: bool) -> Any:
    """A contact of the trial at another place; without friction where its pair has other contacts.

    Its place is less exact than that of contacts that MuJoCo found together, and tangents that
    differ a little only hold a body fast.
    """
    contact = copy.copy(seen)
    contact.pos[:] = point
    contact.dist, contact.includemargin = 0.0, 1.0
    contact.exclude, contact.efc_address = 0, -1
    if slippery:
        contact.dim = 1
    return contact
