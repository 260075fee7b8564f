"""Contact at velocity level for the event-driven simulation: impacts, and what sticks in a step.

Impacts are inelastic and take no time, so only impulses act: a viscous contact, whose force is
finite, gives none along its tangents. Sustained contact without slip is decided at velocity level,
as the paper argues it must be: at acceleration level a contact may slide under unlimited friction.

Drag is put into the inertia of the step, ``(A + h C) (v+ - v) = h (f - C v) + ...``: then all that
is left is to stick or to slide freely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from holdfast.contact.arrays import Answer, Arrays, ContactState, LawKind, SolveStatus
from holdfast.contact.ladder import NEEDED, REPORT
from holdfast.contact.laws import Law, frictionless, stick, viscous
from holdfast.contact.options import DEFAULT
from holdfast.contact.solve import solve
from holdfast.errors import InputError, SolveError
from holdfast.events.contact_set import Listing
from holdfast.events.rows import Rows
from holdfast.events.sustained import Grip, drag
from holdfast.models import ContactModel, Frictionless, Mixed, Viscous
from holdfast.mujoco.pair_laws import PairLaws, law_of_model
from holdfast.mujoco.reach import LIMIT_REACH

PRESSED = 1e-9  # impulse, as part of the largest, that counts as pressing
BEYOND = 1e-6  # part of the bound by which friction that holds may be beyond it: rounding


class Impulses(NamedTuple):
    """Velocity afterwards, and what the contacts gave."""

    velocity: np.ndarray
    impulse: np.ndarray  # (nefc,) along all rows [N s]
    normal: np.ndarray  # (k,) of the chosen contacts [N s]
    held: np.ndarray  # (k,) contacts that stick


class VelocityLevel:
    """Solves impacts and steps by one contact model and laws per pair.

    Attributes:
        coulomb: whether any contact may obey Coulomb's law.
        own_way: whether the model is no single law: then it solves by itself, at velocity level.
    """

    def __init__(
        self, model: Any, contact: ContactModel, laws: Mapping[tuple[str, str], Law] | None
    ) -> None:
        default, self._per_pair = None, False
        if isinstance(contact, Viscous):
            if np.ndim(contact.mu_v) != 0:
                raise InputError("contact", "has one mu_v per contact, but contacts change during "
                                 "a simulation; give one number, or laws per pair")  # fmt: skip
            default, self._per_pair = viscous(contact.mu_v), contact.per_pair
            contact = Frictionless(solver=contact.solver, options=contact.options)
        law = law_of_model(contact)
        self._contact, self.own_way = contact, law is None
        self._laws = PairLaws(model, laws, default or law or stick())
        kinds = [each.kind for each in (self._laws.default, *self._laws.laws)]
        self.coulomb = self.own_way or "coulomb" in kinds
        if self.own_way and self._laws.laws:
            raise InputError("laws", f"cannot be mixed with {type(contact).__name__}")

    def grip(self, listed: Listing, some: np.ndarray) -> Grip:
        """The chosen contacts as sustained ones, each by its law; those that may stick are held."""
        dim, laws = (
            listed.dim[some],
            [self._laws.of_pair(int(a), int(b)) for a, b in listed.geoms[some]],
        )
        held = np.array([law.kind in ("stick", "coulomb") for law in laws], dtype=bool) & (dim > 1)
        limited = np.array([law.kind == "coulomb" for law in laws], dtype=bool) & held
        mu_v = np.array([law.mu_v if law.kind == "viscous" else 0.0 for law in laws])
        mu_v[dim < 3] = 0.0
        if self._per_pair and len(some):
            bodies = np.sort(listed.bodies[some], axis=1)
            _, which, count = np.unique(bodies, axis=0, return_inverse=True, return_counts=True)
            mu_v = mu_v / count[which.ravel()]
        return Grip(some, held, mu_v, limited)

    def impact(self, M: np.ndarray, v: np.ndarray, listed: Listing, some: np.ndarray) -> Impulses:
        """Velocity after an inelastic impact at the chosen contacts."""
        grip = self.grip(listed, some)
        driven = np.where(listed.target == 0.0, 0.0, listed.J @ v)
        rows = listed.problem_rows(M, np.zeros(len(v)), v, 1.0, some, np.zeros(len(some)), driven,
                                   np.zeros(listed.nf))  # fmt: skip
        return self._solved(rows, listed, grip)

    def step(
        self, A: np.ndarray, f: np.ndarray, v: np.ndarray, h: float, listed: Listing, grip: Grip,
        gap: np.ndarray | None = None,
    ) -> Impulses:  # fmt: skip
        """Velocity after h seconds; with `gap`, contacts may close it within the step."""
        some = grip.sustained
        slides = grip.mu_v.any()
        if slides:
            C = drag(listed, grip)
            A, f = A + h * C, f - C @ v
        gap = np.zeros(len(some)) if gap is None else gap
        rows = listed.problem_rows(A, f, v, h, some, gap, listed.target, h * listed.loss)
        found = self._solved(rows, listed, grip)
        if slides:
            S, T = listed.tangents(some)
            dragged = np.flatnonzero(grip.mu_v)
            for e, along in ((1, S), (2, T)):
                found.impulse[listed.first[some[dragged]] + e] = (
                    -h * grip.mu_v[dragged] * (along[dragged] @ found.velocity)
                )
        return found

    def _solved(self, rows: Rows, listed: Listing, grip: Grip) -> Impulses:
        sticks = grip.held[: len(rows.contact)]
        if self.coulomb:
            velocity, impulse, held = self._by_model(rows, listed, grip)
        else:
            velocity, impulse, held = solve_rows(rows, sticks)
        normal = impulse[listed.first[grip.sustained]]
        grips = np.zeros(len(normal), dtype=bool)
        grips[: len(rows.contact)] = held
        grips &= normal > PRESSED * normal.max(initial=0.0)
        return Impulses(velocity, impulse, normal, grips)

    def slides(self, grip: Grip, found: Impulses) -> bool:
        """Whether a contact with Coulomb's law is pressed and does not stick."""
        pressed = found.normal > PRESSED * found.normal.max(initial=0.0)
        return bool((grip.limited & pressed & ~found.held).any())

    def holds(self, grip: Grip, listed: Listing, force: np.ndarray) -> bool:
        """Whether friction suffices for the forces that hold contacts with Coulomb's law.

        At velocity level the load of a contact on a body that turns is not known to less than what
        its surface curves away in a step; at acceleration level it is. How contacts of a pair share
        a load is not unique: their sum counts.

        Args:
            grip: sustained contacts.
            listed: where they are.
            force: (nefc,) along all rows, at acceleration level [N].
        """
        loads: dict[tuple[int, int], tuple[float, np.ndarray]] = {}
        for k in np.flatnonzero(grip.limited & grip.held):
            i = grip.sustained[k]
            first, (a, b) = listed.first[i], map(int, listed.geoms[i])
            law = self._laws.of_pair(a, b)
            most = max(float(force[first]), 0.0) * (listed.mu[i] if law.mu is None else law.mu)
            before, sides = loads.get((a, b), (0.0, np.zeros(2)))
            loads[a, b] = before + most, sides + force[first + 1 : first + 3]
        return all(np.hypot(*sides) <= (1.0 + BEYOND) * most for most, sides in loads.values())

    def _model(self, listed: Listing, some: np.ndarray) -> ContactModel:
        """The contact model of the chosen contacts; drag is part of the inertia already."""
        if not self._laws.laws:
            return self._contact
        laws = [self._laws.of_pair(int(a), int(b)) for a, b in listed.geoms[some]]
        return Mixed([frictionless() if law.kind == "viscous" else law for law in laws])

    def _by_model(
        self, rows: Rows, listed: Listing, grip: Grip
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Velocity, impulses and contacts that stick, by the contact model itself."""
        contacts, limits = np.ones(len(rows.contact), dtype=bool), rows.limit_gap < LIMIT_REACH
        model = self._model(listed, grip.sustained[: len(contacts)])
        solution = model.solve(rows.problem(contacts, limits))
        impulse = np.zeros(len(rows.efc_J))
        impulse[rows.equality], impulse[rows.dry] = solution.bilateral, solution.dry
        impulse[rows.limit[limits]], impulse[rows.first] = solution.unilateral, solution.normal
        slides = rows.dim >= 3
        for e in range(2):
            impulse[rows.first[slides] + 1 + e] = solution.tangent[slides, e]
        impulse[rows.extra(rows.first, rows.dim)[0]] = solution.extra
        return solution.velocity, impulse, solution.sticking & (solution.normal > 0.0)


def solve_rows(rows: Rows, sticks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Velocity, impulses along all rows, and contacts that are held, by the contact solve.

    Args:
        rows: of a step.
        sticks: (n,) contacts without slip; the others have no friction.
    """
    m, near = len(rows.v), rows.limit_gap < LIMIT_REACH
    kinds: list[tuple[int, int, int]] = [  # law, first row, number of rows
        *((int(LawKind.RIGID), r, 1) for r in range(rows.equality.stop)),
        *((int(LawKind.DRY), r, 1) for r in range(rows.dry.start, rows.dry.stop)),
        *((int(LawKind.FRICTIONLESS), int(r), 1) for r in rows.limit[near]),
        *((int(LawKind.NO_SLIP if on else LawKind.FRICTIONLESS), int(r), int(k) if on else 1)
          for on, r, k in zip(sticks, rows.first, rows.dim, strict=True)),
    ]  # fmt: skip
    law = np.array([kind for kind, _, _ in kinds], dtype=np.int64)
    sizes = [count for *_, count in kinds]
    which = np.concatenate([np.arange(r, r + k) for _, r, k in kinds] or [np.zeros(0)]).astype(int)
    n, row = len(kinds), np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    target, bound = np.zeros((2, len(rows.efc_J)))
    target[rows.equality], bound[rows.dry] = rows.target, rows.loss
    target[rows.limit] = np.minimum(-rows.limit_gap / rows.h, 0.0)
    target[rows.first] = np.minimum(-rows.gap / rows.h, 0.0)
    nothing = np.zeros(len(which))
    arrays = Arrays(
        np.array([0, m]), np.array([0, m * m]), np.ascontiguousarray(rows.A).ravel(), rows.v_free,
        law, row, np.arange(n + 1), np.zeros(n, dtype=np.int64), row[:-1] * m,
        np.ascontiguousarray(rows.efc_J[which]).ravel(), target[which], nothing, bound[which],
        nothing,
    )  # fmt: skip
    answer = Answer(np.array(rows.v), np.zeros(len(which)), np.full(n, -1), np.zeros(REPORT))
    work = np.zeros(4096)
    while True:
        status = solve(arrays, answer, work, work.view(np.int64), DEFAULT.numbers())
        if status != SolveStatus.MORE_MEMORY:
            break
        work = np.zeros(int(answer.report[NEEDED]) + 1024)
    contacts = np.ones(len(rows.contact), dtype=bool)
    if status not in (SolveStatus.SOLVED, SolveStatus.APPROXIMATE):
        raise SolveError(f"no certified motion was found ({SolveStatus(status).name})",
                         status=SolveStatus(status),
                         problem=rows.problem(contacts, near))  # fmt: skip
    impulse = np.zeros(len(rows.efc_J))
    impulse[which] = answer.impulse
    first = n - len(rows.contact)
    held = sticks & (answer.state[first:] == ContactState.STICK)
    return answer.velocity, impulse, held
