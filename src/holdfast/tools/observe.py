"""What can be seen of contact in a state: forces, use of the friction cone, creep, penetration.

The same code looks at states of MuJoCo and of holdfast. Forces are those that the last step left in
`mujoco.MjData`; creep and penetration are measured on the state itself, by rows of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.events.rows import dense_rows
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.private_model import PrivateModel

TOUCHING = 1e-6  # part of the mean size below which surfaces count as touching
PRESSED = 1e-9  # [N] normal force below which a contact carries nothing


@dataclass(frozen=True, eq=False)
class Forces:
    """Contact forces of the last step, one entry per contact that carries force.

    Attributes:
        point: (n, 3) place in the world [m].
        force: (n, 3) on the body that can move, in the world frame [N].
        use: (n,) part of the friction cone in use: 0 without friction, 1 on the cone; above 1
            where a contact without slip takes more than the model declares.
        required: largest friction coefficient that a pair of bodies needs, net friction force
            over net normal force.
    """

    point: np.ndarray
    force: np.ndarray
    use: np.ndarray
    required: float

    @classmethod
    def of(cls, model: Any, data: Any) -> Forces:
        """Read them from the data of a step."""
        rows: list[tuple[np.ndarray, np.ndarray, float]] = []
        sums: dict[tuple[int, int], np.ndarray] = {}
        six, weld = np.zeros(6), model.body_weldid
        for i in range(data.ncon):
            contact = data.contact[i]
            if contact.efc_address < 0 or contact.geom[0] < 0 or contact.geom[1] < 0:
                continue
            mujoco.mj_contactForce(model, data, i, six)
            if six[0] <= PRESSED:
                continue
            frame = contact.frame.reshape(3, 3)
            force = six[:3] @ frame
            a, b = (int(model.geom_bodyid[geom]) for geom in contact.geom)
            side = -1.0 if weld[b] == 0 and weld[a] != 0 else 1.0
            rows.append((contact.pos.copy(), side * force, _cone_use(six, contact)))
            net = sums.setdefault((min(a, b), max(a, b)), np.zeros(4))
            net += np.append((force - six[0] * frame[0]) * (1.0 if a <= b else -1.0), six[0])
        needs = [float(np.linalg.norm(net[:3]) / net[3]) for net in sums.values()]
        return cls(
            point=np.array([row[0] for row in rows]).reshape(-1, 3),
            force=np.array([row[1] for row in rows]).reshape(-1, 3),
            use=np.array([row[2] for row in rows]),
            required=max(needs, default=0.0),
        )

    @classmethod
    def none(cls) -> Forces:
        """No contact."""
        return cls(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0), 0.0)


def _cone_use(force: np.ndarray, contact: Any) -> float:
    """Tangential force over what the declared friction allows at this normal force."""
    if contact.dim < 3:
        return 0.0
    along, mu = force[1:3], contact.friction[:2]
    if not along.any():
        return 0.0
    return float(np.linalg.norm(along / np.maximum(mu, 1e-9)) / force[0])


@dataclass(frozen=True)
class Measures:
    """How contact fares in one state.

    Attributes:
        creep: mean sliding speed of the worst pair of geoms that touch [m/s].
        penetration: deepest [m].
        contacts: number that touch.
    """

    creep: float
    penetration: float
    contacts: int


class Observer:
    """Measures states of a model, on data of its own."""

    def __init__(self, model: Any) -> None:
        self.private = PrivateModel(model)
        self.data = mujoco.MjData(model)
        self.touch = TOUCHING * model.stat.meansize

    def measure(self, data: Any) -> Measures:
        """Creep and penetration of the state in `data`, which stays as it is."""
        own, private = self.data, self.private
        mujoco.mj_copyState(private.model, data, own, mujoco.mjtState.mjSTATE_INTEGRATION)
        private.follow()
        private.collide(own)
        contact = own.contact
        touching = np.flatnonzero((contact.efc_address >= 0) & (contact.dist <= self.touch))
        speeds: dict[tuple[int, ...], list[float]] = {}
        if len(touching):
            sliding = dense_rows(private.model, own) @ own.qvel
            for i in touching[contact.dim[touching] >= 3]:
                first = contact.efc_address[i]
                speed = float(np.hypot(sliding[first + 1], sliding[first + 2]))
                speeds.setdefault(tuple(contact.geom[i].tolist()), []).append(speed)
        return Measures(
            creep=max((float(np.mean(each)) for each in speeds.values()), default=0.0),
            penetration=max(0.0, -float(contact.dist.min(initial=0.0))),
            contacts=len(touching),
        )


_STOPS = np.array([0.0, 0.5, 0.9, 1.0])
_COLORS = np.array([[46, 160, 67], [240, 200, 40], [240, 120, 30], [215, 40, 40]]) / 255.0
_BEYOND = np.array([150, 40, 200]) / 255.0


def cone_colors(use: np.ndarray) -> np.ndarray:
    """(n, 3) colours between 0 and 1: green, yellow, red on the cone; violet beyond it."""
    use = np.asarray(use, dtype=float)
    colors = np.stack([np.interp(use, _STOPS, _COLORS[:, k]) for k in range(3)], axis=-1)
    colors[use > 1.0 + 1e-6] = _BEYOND
    return colors
