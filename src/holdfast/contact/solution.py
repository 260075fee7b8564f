"""The solution of a contact problem, with its residuals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from holdfast.contact.arrays import ContactState, LawKind
from holdfast.contact.certificate import law_residuals
from holdfast.contact.dry_friction import dry_forces
from holdfast.contact.force_distribution import distribute_forces
from holdfast.contact.options import DEFAULT
from holdfast.contact.problem import ContactProblem
from holdfast.errors import InputError
from holdfast.lcp import Status
from holdfast.lcp.inertia import InertiaFactor

Level = Literal["velocity", "acceleration"]

DEPENDENT = 1e-10  # singular values of active rows below this part of the largest are rounding
UNHELD = 1e-9  # speed of a row over its length and the motion, above which it does not hold
BARELY = 1.001  # lengths that two ways of rounding put on either side of `zero_row` are short
NO_FORCE = 1e-12  # forces below this part of the largest one are rounding


class PairSums(NamedTuple):
    """Net contact impulse (or force) of each pair of bodies, in generalised coordinates."""

    pairs: np.ndarray  # (p, 2) body numbers, the smaller one first
    impulses: np.ndarray  # (p, m)


class Dissipation(NamedTuple):
    """Energy [J] that each contact dissipates in a step."""

    impact: np.ndarray  # (n,) by its normal impulse
    friction: np.ndarray  # (n,) by those along S, T and R


class LinearMap(NamedTuple):
    """Motion after the step as a linear function at the loaded set: ``A_v v + A_f f + offset``."""

    A_v: np.ndarray
    A_f: np.ndarray
    offset: np.ndarray

    def __call__(self, v: np.ndarray, f: np.ndarray) -> np.ndarray:
        """The motion for another velocity and force, while the loaded set stays the same."""
        return self.A_v @ v + self.A_f @ f + self.offset


@dataclass(frozen=True, eq=False, repr=False)
class ContactSolution:
    """Motion and forces of one contact problem.

    At velocity level forces are impulses [N s] and the motion is the velocity after the step. At
    acceleration level they are forces [N] and the motion is the acceleration; then the names are
    `acceleration`, `normal_force`, `tangent_force`, `bilateral_force`.

    Residuals are relative. A row i is measured by its length d_i in the metric of M^-1, a motion
    by `scale`, the largest of the motions involved in the metric of M: a relative speed is
    ``|speed| / (d_i scale)``, a relative impulse ``|impulse| d_i / scale``. They are also defined
    without contacts.

    Attributes:
        problem: what was solved.
        level: "velocity" or "acceleration".
        motion: (m,) velocity or acceleration.
        normal: (n,) normal impulse or force, >= 0.
        tangent: (n, 2) along S and T; includes viscous drag.
        bilateral: (j,) along J. Redundant rows share the load; from the solvers of `holdfast.lcp`
            they carry nothing.
        extra: (r,) along the further friction rows R.
        unilateral: (u,) along U, >= 0.
        dry: (d,) along D, at most `D_bound`.
        sticking: (n,) whether the tangents of a contact were held; with Coulomb friction, whether
            it sticks.
        status: how the solver ended.
        pivots: number of pivots over all rounds; of factorisations, for the contact solve.
        loaded: contacts (and, from n on, rows of U) that the solver ended with as equalities.
        bilateral_rows: rows of J that were kept as independent; the others carry nothing.
        rank: rank of the equality rows.
        rank_gap: smallest kept over largest rejected pivot of Find-Indices.
        rank_ambiguous: whether the motion may depend on the rank tolerance.
        consistent: with ``grip="loaded"``, whether tangential forces were found that act only
            where a contact is pressed.
        rounds: how often contacts were released or taken back, with the solvers of `holdfast.lcp`.
        active: (k, m) independent rows that hold with equality, for `linear_map`.
        drag: (m, m) viscous drag ``S' mu S + T' mu T``; zeros without viscosity.
        law: (n,) the `LawKind` of each contact; None if a solver of `holdfast.lcp` held the
            tangents of `sticking`.
        mu: (n,) or (n, 2) Coulomb coefficients that were used; None without Coulomb friction.
        mu_v: (n,) viscous coefficients that were used; None without viscosity.
        zero_row: rows shorter than this part of the longest one were left out, see `left_out`.
    """

    problem: ContactProblem
    level: Level
    motion: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray
    bilateral: np.ndarray
    extra: np.ndarray
    unilateral: np.ndarray
    dry: np.ndarray
    sticking: np.ndarray
    pivots: int
    loaded: np.ndarray
    active: np.ndarray
    drag: np.ndarray
    bilateral_rows: np.ndarray
    rank: int
    rank_gap: float
    rank_ambiguous: bool
    consistent: bool = True
    rounds: int = 0
    status: Status = Status.SOLVED
    law: np.ndarray | None = None
    mu: Any = None
    mu_v: Any = None
    zero_row: float = DEFAULT.zero_row

    # --- made from an answer -------------------------------------------------------------------

    @classmethod
    def of(cls, answer: Any, **known: Any) -> ContactSolution:
        """The solution whose fields are attributes of `answer`, looked up when first asked for.

        Fields that have a default are not looked up, but may be given.
        """
        solution = object.__new__(cls)
        solution.__dict__.update(known, _answer=answer)
        return solution

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """A field of a solution that was made by `of`."""
            fields = self.__dict__
            if "_answer" not in fields or name not in self.__dataclass_fields__:
                return object.__getattribute__(self, name)  # raises, and says why
            value = fields[name] = getattr(fields["_answer"], name)
            return value

    # --- names of the two levels ---------------------------------------------------------------

    def _at(self, level: Level, value: np.ndarray, name: str) -> np.ndarray:
        if self.level != level:
            raise AttributeError(f"{name} belongs to the {level} level; this is at {self.level}")
        return value

    @property
    def velocity(self) -> np.ndarray:
        """(m,) velocity after the step [m/s, rad/s]."""
        return self._at("velocity", self.motion, "velocity")

    @property
    def normal_impulse(self) -> np.ndarray:
        """(n,) normal impulses [N s]."""
        return self._at("velocity", self.normal, "normal_impulse")

    @property
    def tangent_impulse(self) -> np.ndarray:
        """(n, 2) tangential impulses along S and T [N s]."""
        return self._at("velocity", self.tangent, "tangent_impulse")

    @property
    def bilateral_impulse(self) -> np.ndarray:
        """(j,) impulses of the bilateral rows [N s]."""
        return self._at("velocity", self.bilateral, "bilateral_impulse")

    @property
    def acceleration(self) -> np.ndarray:
        """(m,) acceleration [m/s^2, rad/s^2]."""
        return self._at("acceleration", self.motion, "acceleration")

    @property
    def normal_force(self) -> np.ndarray:
        """(n,) normal forces [N]."""
        return self._at("acceleration", self.normal, "normal_force")

    @property
    def tangent_force(self) -> np.ndarray:
        """(n, 2) tangential forces along S and T [N]."""
        return self._at("acceleration", self.tangent, "tangent_force")

    @property
    def bilateral_force(self) -> np.ndarray:
        """(j,) forces of the bilateral rows [N]."""
        return self._at("acceleration", self.bilateral, "bilateral_force")

    # --- motion at the contacts ------------------------------------------------------------------

    @property
    def separation(self) -> np.ndarray:
        """(n,) ``N v+ - c_N``, or ``N a + Ndot v``: >= 0, and 0 where a contact is loaded."""
        p = self.problem
        offset = -p.c_N if self.level == "velocity" else p.Ndot_v
        return p.N @ self.motion + offset

    @property
    def sliding(self) -> np.ndarray:
        """(n, 2) tangential velocity ``S v+``, ``T v+`` (or acceleration ``S a``, ``T a``)."""
        return np.column_stack([self._along(self.problem.S), self._along(self.problem.T)])

    def _along(self, rows: np.ndarray) -> np.ndarray:
        return rows @ self.motion if len(rows) else np.zeros(self.problem.n)

    def relative_sliding(self) -> np.ndarray:
        """(n,) the larger of both tangential speeds of each contact, relative."""
        fastest = np.zeros(self.problem.n)
        for name in ("S", "T"):
            rows = getattr(self.problem, name)
            if len(rows):
                fastest = np.maximum(fastest, self._relative(name, rows @ self.motion))
        return fastest

    @property
    def state(self) -> np.ndarray:
        """(n,) what each contact does, as `ContactState`: OPEN 0, STICK 1 or SLIDE 2.

        A loaded contact that does not stick slides, with or without friction. Forces at the level
        of rounding are no load.
        """
        pressed = self.normal > NO_FORCE * self.normal.max(initial=0.0)
        loose = np.where(pressed, int(ContactState.SLIDE), int(ContactState.OPEN))
        return np.where(self.sticking, int(ContactState.STICK), loose)

    # --- judgement -------------------------------------------------------------------------------

    @cached_property
    def scale(self) -> float:
        """Sigma: the largest of what goes into the motion and the motion itself, as M measures.

        At velocity level the velocities before, without contact, and after the step. At
        acceleration level those that the forces and the drag alone would give, and the answer.
        """
        p = self.problem
        if self.level == "velocity":
            motions = (p.v, p.free_velocity, self.motion)
        else:
            motions = (p.solve(p.f), p.solve(self.drag @ p.v), self.motion)
        return max(p.factor.size(x) for x in motions) or 1.0

    def lengths(self, name: str) -> np.ndarray:
        """Lengths d of the rows ``problem.<name>`` in the metric of M^-1.

        Rows of zeros, and those that were taken for rounding, are given that of the longest row.
        """
        true = self._true_lengths
        if name not in true:
            return np.zeros(0)
        none = self._short[name] | (true[name] == 0.0)
        return np.where(none, _largest(*true.values()) or 1.0, true[name])

    @property
    def left_out(self) -> dict[str, np.ndarray]:
        """Rows that were taken for rounding and that the answer does not satisfy, by name.

        A row so much shorter than the longest one (`zero_row`) may be what cancellation left of a
        row of zeros, or a row in other units: the solve cannot know, and the residuals pass over
        it. It is listed if the motion breaks its law by more than `UNHELD`, by its own length.
        Friction with a bound is not: along so short a row its force can do nothing. Matrices
        without such rows are not listed.
        """
        p, found = self.problem, {}
        tight = self.sticking & ~self._coulomb
        held = {"S": tight, "T": tight, "R": tight[p.R_contact]}
        for name, short in self._short.items():
            if name == "D" or not short.any():
                continue
            miss = self._misses(name)
            miss = np.where(held[name], miss, 0.0) if name in held else miss
            wrong = short & (np.abs(miss) > UNHELD * self._true_lengths[name] * self.scale)
            if wrong.any():
                found[name] = np.flatnonzero(wrong)
        return found

    def _misses(self, name: str) -> np.ndarray:
        """By how much rows that must hold, or not close, miss that; those of friction: speeds."""
        if name == "N":
            return np.minimum(self.separation, 0.0)
        if name == "U":
            return np.minimum(self._distance, 0.0)
        return self._joint_misses if name == "J" else getattr(self.problem, name) @ self.motion

    @cached_property
    def _true_lengths(self) -> dict[str, np.ndarray]:
        """Lengths of the rows of each matrix that has any, however short."""
        p = self.problem
        every = p.whitened.items()
        return {name: np.linalg.norm(rows, axis=1) for name, rows in every if len(rows)}

    @cached_property
    def _short(self) -> dict[str, np.ndarray]:
        """Which rows the solve may have taken for rounding: those that are short in any metric.

        The solvers of `holdfast.lcp` have drag in the inertia, and judge many rows by its diagonal.
        """
        p, true = self.problem, self._true_lengths
        seen = [true]
        if self.law is None:
            inertia = p.inertia + (p.step * self.drag if self.drag.any() else 0.0)
            dragged = InertiaFactor(inertia[None]) if self.drag.any() else p.factor
            seen += [
                {name: np.linalg.norm(dragged.whiten(getattr(p, name)), axis=1) for name in true},
                {name: np.linalg.norm(getattr(p, name) / np.sqrt(np.diag(inertia)), axis=1)
                 for name in true},
            ]  # fmt: skip
        least = BARELY * self.zero_row * _largest(*(x for each in seen for x in each.values()))
        return {
            name: (length > 0.0) & (np.min([each[name] for each in seen], axis=0) <= least)
            for name, length in true.items()
        }

    def slip(self) -> float:
        """Largest relative speed along a tangent, or a row of R, of a contact that sticks.

        Rows that carry no force under Coulomb's law (of R, without a coefficient) are ignored.
        """
        p = self.problem
        turning = self.sticking[p.R_contact]
        if self._coulomb.any():
            resists = np.zeros(len(p.R)) if p.mu_R is None else p.mu_R
            turning = turning & ~(self._coulomb[p.R_contact] & (resists == 0.0))
        held = {"S": self.sticking, "T": self.sticking, "R": turning}
        speeds = [
            self._relative(name, getattr(p, name) @ self.motion)[which]
            for name, which in held.items()
            if len(getattr(p, name))
        ]
        return _largest(*speeds)

    @property
    def _coulomb(self) -> np.ndarray:
        """(n,) contacts with Coulomb friction, of which the natural map says all."""
        if self.law is None:
            return np.zeros(self.problem.n, dtype=bool)
        return self.law == int(LawKind.COULOMB)

    def _relative(self, name: str, speeds: np.ndarray) -> np.ndarray:
        """Relative speeds along the rows ``problem.<name>``, without sign."""
        return np.abs(speeds) / (self.lengths(name) * self.scale)

    def penetration_speed(self) -> float:
        """Largest relative speed at which a contact (or a row of U) is still closing."""
        closing = {"N": np.minimum(self.separation, 0.0), "U": np.minimum(self._distance, 0.0)}
        return _largest(*(self._relative(name, speed) for name, speed in closing.items()))

    @property
    def _distance(self) -> np.ndarray:
        """(u,) what `separation` is for contacts, for the rows of U."""
        p = self.problem
        return p.U @ self.motion + (-p.c_U if self.level == "velocity" else p.Udot_v)

    def complementarity(self) -> float:
        """Largest over contacts and rows of U of the smaller of relative impulse and separation."""
        rows = (("N", self.normal, self.separation), ("U", self.unilateral, self._distance))
        return _largest(*(
            np.minimum(np.abs(force) * self.lengths(name) / self.scale, self._relative(name, gap))
            for name, force, gap in rows
        ))  # fmt: skip

    def dry_residual(self) -> float:
        """Largest relative miss of the law of dry friction, over the rows of D.

        The impulse is at most `D_bound`, and where the row moves it is that bound, against the
        motion: a residual is the impulse beyond the bound, or the smaller of relative speed and
        of what the impulse lacks. At acceleration level the bound is ``D_bound / h``. A row that
        moves before has that force against its velocity, one that rests obeys the law above with
        its acceleration. Impulses are relative to the larger of sigma and the bound.
        """
        p = self.problem
        if len(p.D) == 0:
            return 0.0
        force, bound = self.dry, p.D_bound
        if self.level == "acceleration":
            given, bound = dry_forces(p)  # of rows that move; the others' bound
            force = force - given
        length, speed = self.lengths("D"), p.D @ self.motion
        size = np.maximum(self.scale, np.maximum(bound, np.abs(self.dry)) * length) / length
        lacks = np.abs(force + np.sign(speed) * bound) / size
        excess = np.maximum(np.abs(force) - bound, 0.0) / size
        return _largest(excess, np.minimum(self._relative("D", speed), lacks))

    def bilateral_residual(self) -> float:
        """Largest relative miss of ``J v+ + compliance_J f_J = c_J`` (or ``J a = -Jdot v``).

        The residual of a compliant row is that of its impulse: the miss over the compliance.
        """
        softness = 1.0
        if self.level == "velocity":
            softness = np.maximum(1.0, self.problem.compliance_J / self.lengths("J") ** 2)
        return _largest(self._relative("J", self._joint_misses) / softness)

    @property
    def _joint_misses(self) -> np.ndarray:
        """(j,) ``J v+ + compliance_J f_J - c_J``, or ``J a + Jdot v``."""
        p = self.problem
        if self.level == "acceleration":
            return p.J @ self.motion + p.Jdot_v
        return p.J @ self.motion + p.compliance_J * self.bilateral - p.c_J

    def law_residual(self) -> float:
        """Largest relative residual of the law of a contact: the natural map of Coulomb's.

        Zero if a solver of `holdfast.lcp` found the answer: `slip` and `complementarity` are the
        residuals of its laws. See `holdfast.contact.certificate`.
        """
        return 0.0 if self.law is None else _largest(law_residuals(self))

    def contact_momentum(self) -> np.ndarray:
        """(m,) what the contacts add to the momentum (or the force): ``N' f_n + S' f_s + ...``."""
        p = self.problem
        total = p.N.T @ self.normal + p.R.T @ self.extra
        if len(p.S):
            total = total + p.S.T @ self.tangent[:, 0]
        if len(p.T):
            total = total + p.T.T @ self.tangent[:, 1]
        return total

    def momentum_residual(self) -> float:
        """Size of ``M (v+ - v) - h f - (impulses of all rows)`` in the metric of M^-1, relative."""
        p = self.problem
        rows = self.contact_momentum() + p.J.T @ self.bilateral + p.U.T @ self.unilateral
        rows = rows + p.D.T @ self.dry
        if self.level == "velocity":
            residual = p.inertia @ self.motion - p.impulse - rows
        else:
            residual = p.inertia @ self.motion - p.f - rows
        size, total = np.linalg.norm(p.factor.whiten(np.stack([residual, rows])), axis=1)
        return float(size / max(self.scale, total))

    def is_exact(self, tol: float = 1e-9) -> bool:
        """Whether every residual is within tol and no contact pulls.

        It is computed from the given data, whichever solver found the solution: the law of each
        contact, momentum, bounds, complementarity, joints and dry friction.

        With no-slip contact, this checks the problem in which the contacts of `sticking` are held:
        motion and forces satisfy its equations. Whether those are the right contacts to hold is
        reported by `consistent`: with ``grip="loaded"``, no tangential force acts at a contact
        that is not pressed. A solution can be exact but not consistent.
        """
        residuals = (
            0.0 if self._coulomb.all() and self.problem.n else self.slip(),
            self.penetration_speed(),
            self.complementarity(),
            self.dry_residual(),
            self.bilateral_residual(),
            self.momentum_residual(),
            self.law_residual(),
        )
        pushes = (self.normal >= 0.0).all() and (self.unilateral >= 0.0).all()
        exact = all(residual <= tol for residual in residuals)  # not true of nan
        return self.status is Status.SOLVED and bool(pushes) and exact

    # --- forces ----------------------------------------------------------------------------------

    def required_friction(self) -> np.ndarray:
        """(n,) the Coulomb coefficient that each contact would need, ``|f_t| / f_n``.

        Zero where there is no tangential force, inf where there is one without a normal force.
        """
        tangential = np.linalg.norm(self.tangent, axis=1)
        floor = NO_FORCE * max(self.normal.max(initial=0.0), tangential.max(initial=0.0))
        needed = np.zeros(self.problem.n)
        pulled = tangential > floor
        with np.errstate(divide="ignore"):
            needed[pulled] = tangential[pulled] / self.normal[pulled]
        return needed

    def dissipation(self) -> Dissipation:
        """The energy that each contact dissipates in the step [J] (velocity level).

        An impulse r along a row does the work ``r (u + u+) / 2``, u and u+ the speeds along the
        row before and after: with the work of f at the mean velocity, and that of all other rows,
        these add up to the change of kinetic energy exactly. The part of friction can be
        negative where the sliding of a contact reverses within the step.
        """
        p, mean = self.problem, 0.5 * (self.problem.v + self.velocity)
        friction = np.zeros(p.n)
        for k, rows in enumerate((p.S, p.T)):
            if len(rows):
                friction -= self.tangent[:, k] * (rows @ mean)
        np.subtract.at(friction, p.R_contact, self.extra * (p.R @ mean))
        return Dissipation(-self.normal * (p.N @ mean), friction)

    def kinetic_energy(self) -> float:
        """1/2 v+' M v+ (velocity level)."""
        return float(0.5 * self.velocity @ self.problem.inertia @ self.velocity)

    def pair_sums(self) -> PairSums:
        """Net contact impulse of each pair of bodies: unique where single impulses are not."""
        p = self.problem
        if p.bodies is None:
            raise InputError("bodies", "is missing; pair_sums needs the two bodies of each contact")
        each = p.N * self.normal[:, None]
        for k, rows in enumerate((p.S, p.T)):
            if len(rows):
                each = each + rows * self.tangent[:, k : k + 1]
        pairs, which = np.unique(np.sort(p.bodies, axis=1), axis=0, return_inverse=True)
        sums = np.zeros((len(pairs), p.m))
        np.add.at(sums, which.ravel(), each)
        np.add.at(sums, which.ravel()[p.R_contact], p.R * self.extra[:, None])
        return PairSums(pairs, sums)

    def spread(self) -> ContactSolution:
        """The same motion with the contact forces distributed evenly, none of them pulling.

        Where contacts are redundant their forces are not unique, and a pivoting solver loads as
        few as possible: three of the four legs of a table. Here normal forces have the least sum of
        squares, and each contact that sticks takes tangential load in proportion to how hard it
        is pressed (see `holdfast.contact.force_distribution`). With Coulomb friction, which couples
        tangential and normal forces, the solution is returned unchanged.
        """
        if self._coulomb.any():
            return self
        forces = distribute_forces(self)
        return replace(
            self, normal=forces.normal, tangent=forces.tangent, bilateral=forces.bilateral,
            extra=forces.extra,
        )  # fmt: skip

    def linear_map(self) -> LinearMap:
        """The motion as a linear function of v and f, exact while the same rows stay loaded.

        Raises:
            AttributeError: a contact slides with Coulomb friction, which turns with the motion,
                or joints are compliant.
        """
        p = self.problem
        if p.compliance_J.any():
            raise AttributeError("linear_map needs rigid joints; compliance_J is not zero")
        slides = self._coulomb & (self.state == int(ContactState.SLIDE))
        if (self.tangent[slides] != 0.0).any():
            raise AttributeError("linear_map needs contacts that stick; a loaded one slides")
        if self.level == "velocity":
            h = p.h or 0.0
            P = _projector(p.inertia + h * self.drag, self.active)
            A_v, A_f = P @ p.inertia, h * P
        else:
            P = _projector(p.inertia, self.active)
            A_v, A_f = -P @ self.drag, P
        return LinearMap(A_v, A_f, self.motion - A_v @ p.v - A_f @ p.f)

    # --- as text ---------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._summary()})"

    def __str__(self) -> str:
        return self.table()

    def _summary(self) -> str:
        counts = [int((self.state == state).sum()) for state in range(3)]
        text = f"{self.problem.n} contacts: {counts[0]} open, {counts[1]} stick, {counts[2]} slide"
        text = f"{self.level}, {text}, {'exact' if self.is_exact() else 'not exact'}"
        short = ", ".join(f"{name} {rows.tolist()}" for name, rows in self.left_out.items())
        return text + f", rows left out as rounding: {short}" * bool(short)

    def table(self, most: int = 30) -> str:
        """Format a table of contacts: state, forces, sliding speed and dissipated energy.

        Args:
            most: largest number of contacts to list; the others are only counted.
        """
        force, speed = ("N s", "m/s") if self.level == "velocity" else ("N", "m/s^2")
        head = ["contact", "does", f"normal [{force}]", f"tangential [{force}]", "ratio",
                f"slides [{speed}]", f"leaves [{speed}]"]  # fmt: skip
        size, slides = (np.linalg.norm(x, axis=1) for x in (self.tangent, self.sliding))
        columns = [self.normal, size, self.required_friction(), slides, self.separation]
        if self.level == "velocity":
            head.append("dissipates [J]")
            columns.append(np.add(*self.dissipation()))
        words = [_DOES[state] for state in self.state[:most]]
        lines = [head] + [
            [str(i), word, *(f"{column[i]:.4g}" for column in columns)]
            for i, word in enumerate(words)
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        rows = ["  ".join(f"{x:>{w}}" for x, w in zip(line, widths, strict=True)) for line in lines]
        if self.problem.n > most:
            rows.append(f"and {self.problem.n - most} more")
        return "\n".join([self._summary(), *(rows if self.problem.n else [])])


_DOES = {
    int(ContactState.OPEN): "open", int(ContactState.STICK): "sticks",
    int(ContactState.SLIDE): "slides",
}  # fmt: skip


def _largest(*parts: np.ndarray) -> float:
    """The largest entry, nan if there is one, 0 if there is none."""
    return float(np.concatenate([np.zeros(1), *parts]).max())


def _projector(M: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``M^-1 - M^-1 E' (E M^-1 E')^-1 E M^-1`` for rows E, by a basis of their complement."""
    if len(M) == 0:
        return np.zeros((0, 0))
    factor = InertiaFactor(np.array(M[None], order="C"))
    inverse = factor.whiten(np.eye(len(M))).T  # L^-1
    if len(rows):  # rows may depend on each other: a brake on a joint that is held
        U, size, _ = np.linalg.svd(factor.whiten(rows).T, full_matrices=False)
        Q = U[:, size > DEPENDENT * size.max(initial=0.0)]
        return inverse.T @ (inverse - Q @ (Q.T @ inverse))
    return inverse.T @ inverse
