"""The contacts of a step as a table: who touches whom, where, how hard, and on what friction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast import _html
from holdfast.contact.laws import Law, frictionless
from holdfast.mujoco.options import DEFAULT
from holdfast.mujoco.outcome import Outcome
from holdfast.mujoco.pair_laws import PairLaws


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts of the last step, one entry each; forces are averages over the step.

    Attributes:
        bodies: names of the two bodies, or their numbers if they have no names.
        geoms: names of the two geoms.
        point: (n, 3) position in the world frame [m].
        normal: (n, 3) from the first body to the second.
        gap: (n,) distance before the step [m]; negative is penetration.
        normal_force: (n,) [N].
        tangent_force: (n,) size of the friction force [N].
        force: (n, 3) on the second body, in the world frame [N].
        required: (n,) friction that the motion needs, tangential over normal force.
        declared: (n,) coefficient in the model.
        law: what each contact does along its tangents.
    """

    bodies: list[tuple[str, str]]
    geoms: list[tuple[str, str]]
    point: np.ndarray
    normal: np.ndarray
    gap: np.ndarray
    normal_force: np.ndarray
    tangent_force: np.ndarray
    force: np.ndarray
    required: np.ndarray
    declared: np.ndarray
    law: list[Law]

    @classmethod
    def of(cls, model: Any, outcome: Outcome, laws: PairLaws) -> Contacts:
        """The contacts that mattered in a step, each with its law."""
        some, solution = outcome.contacts, outcome.solution
        place, geoms, bodies = outcome.place[some], outcome.geom[some], outcome.bodies[some]
        dim = outcome.row[some + 1] - outcome.row[some]
        frames = place[:, 3:].reshape(-1, 3, 3)
        normal, tangent = solution.normal / outcome.h, solution.tangent / outcome.h
        return cls(
            bodies=[_names(model, "body", pair) for pair in bodies.tolist()],
            geoms=[_names(model, "geom", pair) for pair in geoms.tolist()],
            point=place[:, :3],
            normal=frames[:, 0],
            gap=outcome.gap[some],
            normal_force=normal,
            tangent_force=np.linalg.norm(tangent, axis=1),
            force=np.einsum("ni,nij->nj", np.column_stack([normal, tangent]), frames),
            required=solution.required_friction(),
            declared=outcome.mu[some],
            law=[
                laws.of_pair(a, b) if rows > 1 else frictionless()
                for (a, b), rows in zip(geoms.tolist(), dim.tolist(), strict=True)
            ],
        )

    @classmethod
    def none(cls) -> Contacts:
        """An empty table."""
        three, one = np.zeros((0, 3)), np.zeros(0)
        return cls(
            bodies=[], geoms=[], point=three, normal=three, gap=one, normal_force=one,
            tangent_force=one, force=three, required=one, declared=one, law=[],
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.bodies)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    @property
    def exceeded(self) -> np.ndarray:
        """(n,) contacts that stick and need more friction than the model declares."""
        sticks = np.array([law.kind == "stick" for law in self.law], dtype=bool)
        return sticks & (self.required > self.declared * (1 + DEFAULT.friction_excess))

    def pairs(self, law: str | None = None) -> dict[tuple[str, str], tuple[float, float]]:
        """Return, per pair of bodies, the friction that it needs and the least declared.

        Args:
            law: kind of the contacts to include; all by default.

        Single contact forces are not unique where contacts are redundant; the net friction of
        a pair over its net normal force is unique.
        """
        result: dict[tuple[str, str], tuple[float, float]] = {}
        for pair in dict.fromkeys(self.bodies):
            turned = pair[::-1]
            if turned in result:
                continue
            some = [i for i, other in enumerate(self.bodies) if other in (pair, turned)
                    and law in (None, self.law[i].kind)]  # fmt: skip
            if not some:
                continue
            sign = np.array([1.0 if self.bodies[i] == pair else -1.0 for i in some])
            normal = float(self.normal_force[some].sum())
            along = self.force[some] - self.normal_force[some, None] * self.normal[some]
            net = float(np.linalg.norm(sign @ along))
            need = net / normal if normal > 0.0 else (np.inf if net > 0.0 else 0.0)
            result[pair] = (need, float(self.declared[some].min()))
        return result

    def rows(self) -> list[dict[str, Any]]:
        """Return one dictionary per contact, with plain numbers and names."""
        return [
            {
                "bodies": self.bodies[i],
                "geoms": self.geoms[i],
                "point": self.point[i].tolist(),
                "normal": self.normal[i].tolist(),
                "gap": float(self.gap[i]),
                "normal_force": float(self.normal_force[i]),
                "tangent_force": float(self.tangent_force[i]),
                "required_friction": float(self.required[i]),
                "declared_friction": float(self.declared[i]),
                "law": self.law[i].kind,
            }
            for i in range(len(self))
        ]

    def _repr_html_(self) -> str:
        return _html.of_contacts(self)

    def __str__(self) -> str:
        heading = ("bodies", "point", "normal", "f_n [N]", "f_t [N]", "needs", "declared", "law")
        lines: list[tuple[str, ...]] = [heading]
        for i in range(len(self)):
            lines.append((
                " / ".join(self.bodies[i]),
                " ".join(f"{x:.4g}" for x in self.point[i]),
                " ".join(f"{x:.3g}" for x in self.normal[i]),
                f"{self.normal_force[i]:.4g}",
                f"{self.tangent_force[i]:.4g}",
                f"{self.required[i]:.3g}" + ("!" if self.exceeded[i] else ""),
                f"{self.declared[i]:.3g}",
                self.law[i].kind,
            ))  # fmt: skip
        width = [max(len(line[k]) for line in lines) for k in range(len(heading))]
        return "\n".join(
            "  ".join(cell.ljust(w) for cell, w in zip(line, width, strict=True)).rstrip()
            for line in lines
        )


def name_of(model: Any, kind: str, i: int) -> str:
    """What a body or geom is called; its number if it has no name."""
    if kind == "body" and i == 0:
        return "world"
    named = "joint" if kind == "jnt" else kind
    return getattr(model, kind)(i).name or f"{named} {i}"


def _names(model: Any, kind: str, pair: list[int]) -> tuple[str, str]:
    return name_of(model, kind, pair[0]), name_of(model, kind, pair[1])
