"""No slip where pressed: the search for the contacts that hold.

Friction without a limit, only where a contact is pressed, is the limit of Coulomb's law for large
coefficients. It is not a closed law: held, a contact may not be pressed, and released, it is. So
contacts are held and released until the two agree:

1. hold all contacts but those that separate when nothing is held: what leaves by itself needs no
   force, though held it might turn, press, and so justify that it is held;
2. solve with the tangents of the held contacts as equalities, a convex problem;
3. release what is held and not pressed, take back what is pressed and slides, and solve again,
   until nothing changes: then exactly the pressed contacts stick, and the answer is consistent.

If a contact that was released and taken back is to be released once more, the search begins anew,
with every contact held, then with none, then, if there are few, with each set of them. If all of
these fail, *the jam rule* applies: a contact that is taken back for the second time jams, and is
held whatever presses it, as Coulomb friction does in the limit with a normal force that tends to
zero; but one that only lands in this step has no friction instead, for in the air nothing jams.
Islands with contacts that jam are counted as inconsistent.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.arrays import Arrays
from holdfast.contact.cone import OPEN
from holdfast.contact.ladder import JAMMED, Work, solve_island
from holdfast.contact.newton import Island, certify, scale_of
from holdfast.contact.options import Numbers
from holdfast.contact.system import HELD, NO_SLIP, NOTHING, System

PRESSED = 1e-9  # normal impulse, relative to the largest one, that counts as pressing
SLIDING = 1e-9  # relative speed that counts as sliding, or as separation
FEW = 4  # contacts up to which every set is tried
ROUNDS = 20  # of releasing and taking back, from one beginning

# Why a round of the search ends.
CONSISTENT, JAMS, UNSOLVED = range(3)


@kernel
def has_no_slip(a: Arrays, members: np.ndarray) -> bool:
    """Return whether any contact of an island must not slip."""
    some = False
    for i in members:
        some = some or (a.law[i] == NO_SLIP and a.row[i + 1] > a.row[i] + 1)
    return some


@kernel
def hold(a: Arrays, sy: System, members: np.ndarray, held: np.ndarray) -> None:
    """Make the tangents of held contacts equalities, those of others free."""
    for i in members:
        if a.law[i] == NO_SLIP and a.row[i + 1] > a.row[i] + 1:
            sy.tangent[i] = HELD if held[i] > 0 else NOTHING


@kernel
def exchange(a: Arrays, sy: System, isl: Island, wk: Work, sigma: float, jam: bool,
             held: np.ndarray, freed: np.ndarray) -> int:  # fmt: skip
    """Release what is not pressed, take back what is pressed and slides.

    Args:
        a, sy, isl, wk: impulses are v.r, speeds v.u.
        sigma: scale of the motion.
        jam: whether the jam rule applies.
        held: (n,) 1 if a contact is held, 2 if for good, -1 if it has no friction for good.
        freed: (n,) how often it was released, and taken back: 2 a + b.

    Returns:
        How many contacts changed, or -1 if one would have to be released a second time.
    """
    r, u = wk.v.r, wk.v.u
    largest = 0.0
    for i in isl.member:
        if sy.normal[i] == 1:
            largest = max(largest, r[sy.row[i]])
    changed = 0
    for i in isl.member:
        first, end = sy.row[i], sy.row[i + 1]
        if a.law[i] != NO_SLIP or end == first + 1 or abs(held[i]) == 2:
            continue
        pressed = r[first] > PRESSED * largest
        if held[i] == 1:
            if not pressed:
                if freed[i] > 0 and not jam:
                    return -1
                held[i] = 0
                freed[i] += 1
                changed += 1
        elif pressed:
            speed = 0.0
            for k in range(first + 1, end):
                speed = max(speed, abs(u[k]))
            if speed > SLIDING * sigma:
                held[i] = 1
                if jam and freed[i] > 1:
                    held[i] = 2 if sy.c[first] > -SLIDING * sigma else -2
                changed += 1
    return changed


@kernel
def rounds(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
           held: np.ndarray, freed: np.ndarray, jam: bool, o: Numbers,
           report: np.ndarray) -> tuple[int, float]:  # fmt: skip
    """Release and take back until nothing changes; return why it ended, and the residual."""
    miss = np.inf
    for i in isl.member:
        freed[i] = 0
    for _ in range(ROUNDS if not jam else 3 * ROUNDS):
        hold(a, sy, isl.member, held)
        forget_released(a, sy, isl, wk, held, state)
        miss = solve_island(sy, isl, size, wk, state, True, o, report)
        if not miss <= o.certificate:
            return UNSOLVED, miss
        changed = exchange(a, sy, isl, wk, scale_of(sy, isl, wk.v.y, wk.v.r), jam, held, freed)
        if changed == 0:
            return CONSISTENT, miss
        if changed < 0:
            return JAMS, miss
    return JAMS, miss


@kernel
def forget_released(a: Arrays, sy: System, isl: Island, wk: Work, held: np.ndarray,
                    state: np.ndarray) -> None:  # fmt: skip
    """Take the friction of contacts that are not held out of the impulses to begin with."""
    for i in isl.member:
        if sy.tangent[i] == NOTHING:
            for k in range(sy.row[i] + 1, sy.row[i + 1]):
                wk.v.r[k] = 0.0
    certify(sy, isl, wk.v.r, wk.v.y, wk.v.u)


@kernel
def leave(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
          held: np.ndarray, o: Numbers, report: np.ndarray) -> None:  # fmt: skip
    """Hold all contacts but those that separate when nothing is held."""
    for i in isl.member:
        held[i] = 0
    hold(a, sy, isl.member, held)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            wk.v.r[k] = 0.0
    certify(sy, isl, wk.v.r, wk.v.y, wk.v.u)
    separates = False
    for i in isl.member:
        if a.law[i] == NO_SLIP:
            separates = separates or wk.v.u[sy.row[i]] > 0.0
        held[i] = 1
    if not separates:
        return
    solve_island(sy, isl, size, wk, state, False, o, report)
    least = SLIDING * scale_of(sy, isl, wk.v.y, wk.v.r)
    for i in isl.member:
        if sy.normal[i] == 1 and wk.v.u[sy.row[i]] > least:
            held[i] = 0


@kernel
def search(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray, warm: bool,
           held: np.ndarray, freed: np.ndarray, o: Numbers,
           report: np.ndarray) -> float:  # fmt: skip
    """Solve an island with contacts that do not slip where pressed; see the module.

    Impulses are left in v.r; the relative residual is returned.
    """
    if warm:
        for i in isl.member:
            held[i] = 0 if state[i] == OPEN else 1
        reason, miss = rounds(a, sy, isl, size, wk, state, held, freed, False, o, report)
        if reason == CONSISTENT:
            return miss
    leave(a, sy, isl, size, wk, state, held, o, report)
    reason, miss = rounds(a, sy, isl, size, wk, state, held, freed, False, o, report)
    if reason == CONSISTENT:
        return miss
    count = 0
    for i in isl.member:
        held[i] = 1
        count += 1 if a.law[i] == NO_SLIP and a.row[i + 1] > a.row[i] + 1 else 0
    reason, miss = rounds(a, sy, isl, size, wk, state, held, freed, False, o, report)
    if reason == CONSISTENT:
        return miss
    sets = 2**count - 1 if count <= FEW else 1
    for chosen in range(sets):
        k = 0
        for i in isl.member:
            held[i] = 0
            if a.law[i] == NO_SLIP and a.row[i + 1] > a.row[i] + 1:
                held[i] = (chosen >> k) & 1
                k += 1
        reason, miss = rounds(a, sy, isl, size, wk, state, held, freed, False, o, report)
        if reason == CONSISTENT:
            return miss
    leave(a, sy, isl, size, wk, state, held, o, report)
    reason, miss = rounds(a, sy, isl, size, wk, state, held, freed, True, o, report)
    if reason == UNSOLVED:  # too much is held
        for i in isl.member:
            held[i] = 0
        reason, miss = rounds(a, sy, isl, size, wk, state, held, freed, True, o, report)
    report[JAMMED] += 1.0
    return miss
