"""Contact models on the one contact solve (`holdfast.contact.solve`).

A model says which law each contact has; the rest is the same for all of them. Where the solve does
not certify an answer:

1. redundant rows of J that do not quite agree with each other are left out, and it is tried again;
2. pivoting (`holdfast.lcp`) is asked for an answer without friction: if not even that exists, its
   proof says which rows contradict each other;
3. else an error carries the problem and the best answer.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, NoReturn

import numpy as np

from holdfast import lcp
from holdfast.contact.arrays import ContactState, LawKind, SolveStatus
from holdfast.contact.build import DEFAULT_NUMBERS, LEFT_OUT, Laws, Solved, solve_laws
from holdfast.contact.ladder import LARGE
from holdfast.contact.newton import EPS
from holdfast.contact.options import Numbers, Options
from holdfast.contact.problem import ContactProblem
from holdfast.contact.solution import ContactSolution
from holdfast.contact.solved import Answered
from holdfast.errors import InfeasibleError, SolveError, UncertifiedError
from holdfast.models._projection import warm_rows
from holdfast.models._reduction import check_held, check_targets
from holdfast.models._velocity import solve_velocity

FREE = int(LawKind.FRICTIONLESS)
_NO_ROWS = np.empty(0, dtype=np.int64)
CONVEX = (FREE, int(LawKind.VISCOUS))
CANCEL = 1e3  # times the motion: larger impulses of an answer cancel each other
COPY, COPY_ROUNDING = 1e-5, 1e-14  # relative difference of rows of contacts that are copies


def solve_newton(
    problem: ContactProblem,
    law: np.ndarray,
    mu: np.ndarray | None = None,
    mu_v: np.ndarray | None = None,
    options: Options | lcp.Options | None = None,
    warm_start: Any = None,
) -> ContactSolution:
    """Velocity after the step, with a law for each contact.

    Args:
        problem: what is known before.
        law: (n,) `LawKind` of each contact.
        mu: (n,) or (n, 2) Coulomb coefficients; None if no contact has such friction.
        mu_v: (n,) viscous coefficients [N s/m]; None if no contact drags.
        options: tolerances.
        warm_start: an earlier solution, or contacts (and rows of U) expected to be loaded.

    Raises:
        InfeasibleError: rows contradict each other; with the proof.
        SolveError: no answer was certified; with the problem and the best one.
    """
    numbers = numbers_of(options)
    laws = make_laws(problem, law, mu, mu_v)
    solved = solve_laws(problem, laws, numbers, *_warm(problem, law, warm_start))
    if solved.status != SolveStatus.SOLVED and problem.j:
        solved, laws = _without_redundant(problem, laws, numbers, solved)
    known: dict[str, Any] = {"law": law, "mu": mu, "mu_v": mu_v, "zero_row": numbers.zero_row}
    if solved.status == SolveStatus.SOLVED:
        if problem.j and problem.c_J.any():  # rows of zeros, too, which the solve passes over
            _check_joints(problem, solved)
        answer = Answered(problem, laws, solved)
        solution = ContactSolution.of(answer, consistent=answer.consistent, **known)
        if not answer.consistent and problem.j and problem.c_J.any():
            sticks = law == int(LawKind.NO_SLIP)
            check_held(solution, sticks & (solution.normal > 0.0))
        return solution
    prove_infeasible(problem)
    status = lcp.Status.UNCERTIFIED
    answer = Answered(problem, laws, solved)
    _refuse(problem, solved, numbers, ContactSolution.of(answer, status=status, **known))


def numbers_of(options: Options | lcp.Options | None) -> Numbers:
    """Tolerances for the kernels; of the options of `holdfast.lcp` the certificate counts."""
    if options is None:
        return DEFAULT_NUMBERS
    if isinstance(options, Options):
        return options.numbers()
    return Options(certificate=options.certificate).numbers()


def make_laws(
    problem: ContactProblem,
    law: np.ndarray,
    mu: np.ndarray | None = None,
    mu_v: np.ndarray | None = None,
) -> Laws:
    """The laws of contacts and joints as arrays; see `solve_newton`."""
    p = problem
    s, t, r, j, *_, k = p.stack.ends
    friction, compliance = np.zeros((2, k))
    if mu is not None:
        by_tangent = mu[:, None] if mu.ndim == 1 else mu
        if s:
            friction[:s] = by_tangent[:, 0]
        if t > s:
            friction[s:t] = by_tangent[:, -1]
        if p.mu_R is not None:
            friction[t:r] = p.mu_R
    if mu_v is None:
        law = np.where(law == int(LawKind.VISCOUS), FREE, law)
    else:
        with np.errstate(divide="ignore"):
            softness = 1.0 / (p.step * mu_v)
        law = np.where((law == int(LawKind.VISCOUS)) & (mu_v == 0.0), FREE, law)
        if s:
            compliance[:s] = softness
        if t > s:
            compliance[s:t] = softness
    if j == r:
        joint = np.zeros(0, dtype=np.int64)
    else:
        compliance[r:j] = p.compliance_J
        joint = np.where(p.compliance_J > 0.0, int(LawKind.COMPLIANT), int(LawKind.RIGID))
    return Laws(law, joint, friction, compliance)


def _warm(
    problem: ContactProblem, law: np.ndarray, warm_start: Any
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Impulses and states to begin with; None where they are not known."""
    p = problem
    if warm_start is None:
        return None, None
    counts = (len(p.U), len(p.D), p.j)
    if isinstance(warm_start, ContactSolution) and _same_rows(warm_start, p):
        w = warm_start
        tangents = [w.tangent[:, k] for k, rows in enumerate((p.S, p.T)) if len(rows)]
        impulse = np.concatenate([*tangents, w.extra, w.bilateral, w.normal, w.unilateral, w.dry])
        if (law == int(LawKind.COULOMB)).any():  # of several answers it must not decide which
            return (impulse if p.n + sum(counts) > LARGE else None), None
        brakes = np.where(np.abs(w.dry) < p.D_bound, int(ContactState.STICK), 2)
        state = [w.state, (w.unilateral > 0.0) * int(ContactState.STICK), brakes]
        state.append(np.full(p.j, int(ContactState.STICK)))
        return impulse, np.concatenate(state).astype(np.int64)
    loaded = warm_rows(warm_start, p)
    if not np.isin(law, CONVEX).all() or sum(counts[1:]):
        return None, None  # whether they stick is not known
    state = np.zeros(p.n + counts[0], dtype=np.int64)
    state[loaded] = int(ContactState.SLIDE)
    return None, state


def _same_rows(solution: ContactSolution, problem: ContactProblem) -> bool:
    q, names = solution.problem, "NSTRUDJ"
    return solution.level == "velocity" and all(
        len(getattr(q, name)) == len(getattr(problem, name)) for name in names
    )


def _without_redundant(
    problem: ContactProblem, laws: Laws, numbers: Numbers, failed: Solved
) -> tuple[Solved, Laws]:
    """Try again without rows of J that depend on others."""
    p, rigid = problem, np.flatnonzero(problem.compliance_J == 0.0)
    kept = rigid[lcp.find_indices(p.M, p.J[rigid]).J_rows]
    if len(kept) == len(rigid):
        return failed, laws
    joint = np.where(p.compliance_J == 0.0, LEFT_OUT, laws.joint)
    joint[kept] = int(LawKind.RIGID)
    fewer = laws._replace(joint=joint)
    solved = solve_laws(p, fewer, numbers)
    if solved.status != SolveStatus.SOLVED:
        return failed, laws
    _check_joints(p, solved)
    return solved, fewer


def _check_joints(problem: ContactProblem, solved: Solved) -> None:
    """Refuse rigid rows of J that contradict others, or are zero and have a target."""
    p = problem
    target = p.c_J - p.compliance_J * p.stack.split(solved.impulse)[3]
    check_targets(p.M, p.J, target, _NO_ROWS, solved.velocity, p.free_velocity)


def prove_infeasible(problem: ContactProblem) -> None:
    """Raise an error with a proof if no motion satisfies all rigid rows.

    Raises:
        InfeasibleError: none does.
        InputError: a row of J contradicts those that it depends on.
    """
    p, rigid = problem, problem.compliance_J == 0.0
    part = p
    if p.stack.compliant:
        given: dict[str, Any] = {field.name: getattr(p, field.name) for field in fields(p)}
        given |= {name: given[name][rigid] for name in ("J", "c_J", "Jdot_v", "compliance_J")}
        part = ContactProblem(**given)
    try:
        solve_velocity(part, np.zeros(p.n, dtype=bool))
    except InfeasibleError as error:
        weights = np.zeros(p.j)
        weights[rigid] = error.equality_weights["J"]
        error.problem, error.equality_weights["J"] = p, weights
        raise
    except SolveError:  # nothing is proven
        return


def nearly_equal(problem: ContactProblem) -> tuple[int, int, float] | None:
    """Two contacts whose rows differ by little, and by how much, relatively; None if none do.

    Of several pairs it is the one whose rows differ most.
    """
    p = problem
    rows = np.hstack([each for each in (p.N, p.S, p.T) if len(each)]) if p.n else p.N
    found = None
    for i in range(p.n):
        size = max(float(np.abs(rows[i]).max(initial=0.0)), np.finfo(float).tiny)
        distance = np.abs(rows[i + 1 :] - rows[i]).max(axis=1, initial=0.0) / size
        near = np.flatnonzero((distance > COPY_ROUNDING) & (distance < COPY))
        if len(near):
            k = near[np.argmax(distance[near])]
            if found is None or distance[k] > found[2]:
                found = i, i + 1 + int(k), float(distance[k])
    return found


def _refuse(
    problem: ContactProblem, solved: Solved, numbers: Numbers, best: ContactSolution
) -> NoReturn:
    if solved.status in (SolveStatus.FAILED, SolveStatus.APPROXIMATE):
        size = float((best.normal * best.lengths("N")).max(initial=0.0) / best.scale)
        advice = "save the problem of this error (.problem.save) and report it"
        copies = nearly_equal(problem)
        if copies is not None:
            i, j, distance = copies
            advice = (
                f"contacts {i} and {j} are copies whose rows differ by {distance:.0e}. If "
                "copies jam, nothing but that difference limits impulses, and those of more than "
                f"{numbers.certificate / EPS:.0e} times the motion are rounded by more than the "
                "tolerance: make rows that are meant to be equal the same, or leave the copies out"
            )
        elif size > CANCEL:
            advice = (
                f"its impulses are {size:.0e} times the motion and cancel each other, because "
                "contacts jam whose rows are nearly dependent: make rows that are meant to be "
                "equal the same, or leave the copies out"
            )
        raise UncertifiedError(
            f"no certified answer was found: the best one misses the law of a contact by "
            f"{solved.residual:.1e}, more than {numbers.certificate:.0e} of the motion; {advice}",
            status=best.status, problem=problem, result=best,
        )  # fmt: skip
    raise SolveError(
        f"the contact solve ended with {solved.status.name}", status=best.status, problem=problem
    )
