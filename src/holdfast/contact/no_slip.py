"""No slip where pressed: the search for the contacts that hold.

Friction without a limit, only where a contact is pressed, is the limit of Coulomb's law for large
coefficients. It is not a closed law: held, a contact may not be pressed, and released, it is. So
contacts are held and released until the two agree:

1. hold all contacts but those that separate when nothing is held: what leaves by itself needs no
   force, though held it might turn, press, and so justify that it is held;
2. solve with the tangents of the held contacts as equalities, a convex problem;
3. release what is held and not pressed, take back what is pressed and slides, and solve again,
   until nothing changes: then exactly the pressed contacts stick, and the answer is consistent.

If a contact that was released and taken back is to be released once more, or the held tangents
contradict each other, the search begins anew, with every contact held, then with none.

Which contacts are pressed depends on how redundant contacts share a load: here, as equal springs
do. Where no beginning leads to an answer, the three are tried once more, with every set of held
contacts accepted whose motion *some* impulses make that press all of them, and nothing that slides
(`press`). If there are few contacts, all sets of them are tried then: of those that are consistent,
the one that holds the most contacts is taken, and of several such the one whose motion is smallest.

If all of this fails, *the jam rule* applies: a contact that is taken back for the second time jams,
and is held whatever presses it, as Coulomb friction does in the limit with a normal force that
tends to zero; but one that only lands in this step, or whose tangents others contradict, has no
friction instead. Islands with contacts that jam are counted as inconsistent.

The order of the search does not depend on a warm start, which only makes it faster.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import kernel
from holdfast.contact.active_set import read_states
from holdfast.contact.arrays import Arrays
from holdfast.contact.convex import solve_convex
from holdfast.contact.ladder import (
    BY_RUNG,
    FACTORISATIONS,
    JAMMED,
    STATES,
    Work,
    has_friction,
    solve_island,
    take_last,
)
from holdfast.contact.newton import Island, certify, fill, norm, relative_speeds, scale_of
from holdfast.contact.options import Numbers
from holdfast.contact.proximal import store
from holdfast.contact.system import HELD, NO_SLIP, NOTHING, System, add_impulse, speeds

PRESSED = 1e-9  # normal impulse, relative to the largest of a contact, that counts as pressing
SLIDING = 1e-9  # relative speed that counts as sliding, or as separation
LANDING = 1e-3  # a contact whose gap takes this part of the motion to close is in the air
FEW = 6  # contacts up to which every set is tried
ROUNDS = 20  # of releasing and taking back, from one beginning
SAME = 1e-9  # relative difference of motions that is none
SHARE = 1e-6  # impulse, relative to the largest one, that held contacts are pressed by
AWAY = 1e30  # speed that a contact which must not be pressed is away from touching

# Why a round of the search ends.
CONSISTENT, JAMS, UNSOLVED = range(3)

# What is done with a contact: no friction for good, released, held, just taken back, held for good.
NEVER, RELEASED, HOLDS, AGAIN, ALWAYS = range(-1, 4)


@kernel
def may_stick(a: Arrays, i: int) -> bool:
    """Return whether a constraint is a contact without slip, with tangents."""
    return a.law[i] == NO_SLIP and a.row[i + 1] > a.row[i] + 1


@kernel
def has_no_slip(a: Arrays, members: np.ndarray) -> bool:
    """Return whether any contact of an island must not slip."""
    some = False
    for i in members:
        some = some or may_stick(a, i)
    return some


@kernel
def hold(a: Arrays, sy: System, isl: Island, held: np.ndarray) -> None:
    """Make the tangents of held contacts equalities, those of others free."""
    for i in isl.member:
        if may_stick(a, i):
            sy.tangent[i] = HELD if held[i] >= HOLDS else NOTHING


@kernel
def solve_held(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
               held: np.ndarray, o: Numbers, report: np.ndarray) -> float:  # fmt: skip
    """Solve with the tangents of held contacts as equalities, those of others free.

    Returns:
        The relative residual; infinite where the tangents contradict each other.
    """
    hold(a, sy, isl, held)
    if has_friction(sy, isl):
        for i in isl.member:
            if sy.tangent[i] == NOTHING:
                for k in range(sy.row[i] + 1, sy.row[i + 1]):
                    wk.v.r[k] = 0.0
        done, least = take_last(sy, isl, wk.v, state, o)
        if done:
            return least
        return solve_island(sy, isl, size, wk, state, True, least, o, report)
    miss, count = solve_convex(sy, isl, size, wk.v, wk.CG, wk.shift, wk.start, state, False, o)
    report[FACTORISATIONS] += count
    report[BY_RUNG + STATES] += 1.0
    return miss


@kernel
def exchange(a: Arrays, sy: System, isl: Island, wk: Work, jam: bool, held: np.ndarray,
             freed: np.ndarray) -> int:  # fmt: skip
    """Release what is not pressed, take back what is pressed and slides.

    Args:
        a, sy, isl, wk: impulses are v.r, motion and speeds v.y and v.u.
        jam: whether the jam rule applies.
        held: (n,) what is done with each contact.
        freed: (n,) how often it was released.

    Returns:
        How many contacts changed, or -1 if one would have to be released a second time.
    """
    r, u = wk.v.r, wk.v.u
    sigma, largest = scale_of(sy, isl, wk.v.y, r), 0.0
    for i in isl.member:
        if sy.normal[i] == 1:
            for k in range(sy.row[i], sy.row[i + 1]):
                largest = max(largest, abs(r[k]))
    changed = 0
    for i in isl.member:
        first, end = sy.row[i], sy.row[i + 1]
        if not may_stick(a, i) or held[i] in (NEVER, ALWAYS):
            continue
        pressed = r[first] > PRESSED * largest
        if held[i] >= HOLDS:
            held[i] = HOLDS
            if not pressed:
                if freed[i] > 0 and not jam:
                    return -1
                held[i] = RELEASED
                freed[i] += 1
                changed += 1
        elif pressed:
            speed = 0.0
            for k in range(first + 1, end):
                speed = max(speed, abs(u[k]))
            if speed > SLIDING * sigma:
                held[i] = AGAIN
                if jam and freed[i] > 1:
                    held[i] = ALWAYS if sy.c[first] > -LANDING * sigma else NEVER
                changed += 1
    return changed


@kernel
def press(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
          held: np.ndarray, o: Numbers, report: np.ndarray) -> float:  # fmt: skip
    """Look for impulses that make the motion at hand and press every held contact.

    Held contacts are pressed by a small impulse, those that slide are taken away, and the rest is
    solved again. There are such impulses if the motion stays.

    Returns:
        The residual of these impulses, left in v.r, or infinity; then impulses are as before.
    """
    v, given = wk.v, wk.start
    if has_friction(sy, isl):
        return np.inf
    store(sy, isl, v.r, wk.kept)
    store(sy, isl, sy.c, given)
    least, largest = SLIDING * scale_of(sy, isl, v.y, v.r), 0.0
    for i in isl.member:
        speed = 0.0
        for k in range(sy.row[i], sy.row[i + 1]):
            largest = max(largest, abs(v.r[k]))
            if k > sy.row[i]:
                speed = max(speed, abs(v.u[k]))
        if may_stick(a, i) and held[i] < HOLDS and speed > least:
            sy.c[sy.row[i]] = -AWAY
    share = SHARE * largest
    fill(isl, v.trial, 0.0)
    for i in isl.member:
        for k in range(sy.row[i], sy.row[i + 1]):
            v.new[k] = 0.0
        if may_stick(a, i) and held[i] >= HOLDS:
            v.new[sy.row[i]] = share
            add_impulse(sy, i, v.new, v.trial)
    for i in isl.member:
        speeds(sy, i, v.trial, v.u)
        for k in range(sy.row[i], sy.row[i + 1]):
            sy.c[k] -= v.u[k]
    _, count = solve_convex(sy, isl, size, v, wk.CG, wk.shift, wk.digits, state, False, o)
    report[FACTORISATIONS] += count
    store(sy, isl, given, sy.c)
    for i in isl.member:
        if may_stick(a, i) and held[i] >= HOLDS:
            v.r[sy.row[i]] += share
    miss = certify(sy, isl, v.r, v.y, v.u)
    if miss <= o.certificate:
        return miss
    store(sy, isl, wk.kept, v.r)
    certify(sy, isl, v.r, v.y, v.u)
    return np.inf


@kernel
def rounds(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
           held: np.ndarray, freed: np.ndarray, share: bool, o: Numbers,
           report: np.ndarray) -> tuple[int, float]:  # fmt: skip
    """Release and take back until nothing changes; return why it ended, and the residual.

    With `share`, a set is also accepted if some impulses press all of it, see `press`.
    """
    miss = np.inf
    for i in isl.member:
        freed[i] = 0
    for _ in range(ROUNDS):
        miss = solve_held(a, sy, isl, size, wk, state, held, o, report)
        if not miss <= o.certificate:
            return UNSOLVED, miss
        if share:
            shared = press(a, sy, isl, size, wk, state, held, o, report)
            if shared <= o.certificate:
                return CONSISTENT, shared
        changed = exchange(a, sy, isl, wk, False, held, freed)
        if changed == 0:
            return CONSISTENT, miss
        if changed < 0:
            break
    return JAMS, miss


@kernel
def jam(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
        held: np.ndarray, freed: np.ndarray, o: Numbers, report: np.ndarray) -> float:  # fmt: skip
    """The same by the jam rule; return the residual."""
    miss = np.inf
    for i in isl.member:
        freed[i] = 0
    for k in range(3 * ROUNDS):
        miss = solve_held(a, sy, isl, size, wk, state, held, o, report)
        if miss <= o.certificate:
            if exchange(a, sy, isl, wk, True, held, freed) == 0:
                break
        elif not give_up(isl, held, k == 0):
            break
    return miss


@kernel
def give_up(isl: Island, held: np.ndarray, begins: bool) -> bool:
    """Release all contacts to begin with, later those for good that were taken back last, or all.

    Returns:
        Whether any was held.
    """
    some = last = False
    for i in isl.member:
        some, last = some or held[i] >= HOLDS, last or held[i] == AGAIN
    for i in isl.member:
        if held[i] == AGAIN or (held[i] >= HOLDS and not last):
            held[i] = RELEASED if begins else NEVER
    return some


@kernel
def hold_all(a: Arrays, isl: Island, value: int, held_out: np.ndarray) -> int:
    """Hold all contacts that may stick, or none; return how many there are."""
    count = 0
    for i in isl.member:
        held_out[i] = value
        if may_stick(a, i):
            count += 1
    return count


@kernel
def leave(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
          held: np.ndarray, o: Numbers, report: np.ndarray) -> None:  # fmt: skip
    """Hold all contacts but those that separate when nothing is held."""
    relative_speeds(sy, isl, sy.y0, wk.v.u)
    separates = False
    for i in isl.member:
        if a.law[i] == NO_SLIP:
            separates = separates or wk.v.u[sy.row[i]] > 0.0
    hold_all(a, isl, HOLDS, held)
    if not separates:
        return
    hold_all(a, isl, RELEASED, held)
    solve_held(a, sy, isl, size, wk, state, held, o, report)
    hold_all(a, isl, HOLDS, held)
    least = SLIDING * scale_of(sy, isl, wk.v.y, wk.v.r)
    for i in isl.member:
        if sy.normal[i] == 1 and wk.v.u[sy.row[i]] > least:
            held[i] = RELEASED


@kernel
def choose(a: Arrays, isl: Island, chosen: int, held_out: np.ndarray) -> int:
    """Hold the contacts of a set, by its bits; return how many they are."""
    k = count = 0
    for i in isl.member:
        held_out[i] = 0
        if may_stick(a, i):
            held_out[i] = (chosen >> k) & 1
            count += held_out[i]
            k += 1
    return count


@kernel
def try_all(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
            held: np.ndarray, freed: np.ndarray, contacts: int, o: Numbers,
            report: np.ndarray) -> float:  # fmt: skip
    """Take the best of all consistent sets, see the module; infinite if there is none."""
    best, most, least = -1, 0, np.inf
    for i in isl.member:
        freed[i] = 0
    for chosen in range(2**contacts):
        count = choose(a, isl, chosen, held)
        if best >= 0 and count < most:
            continue
        miss = solve_held(a, sy, isl, size, wk, state, held, o, report)
        if not miss <= o.certificate:
            continue
        length = norm(isl, wk.v.y)
        if best >= 0 and count == most and not length < (1.0 - SAME) * least:
            continue
        shared = press(a, sy, isl, size, wk, state, held, o, report)
        if shared <= o.certificate or exchange(a, sy, isl, wk, False, held, freed) == 0:
            best, most, least = chosen, count, length
            store(sy, isl, wk.v.r, wk.digits)
    if best < 0:
        return np.inf
    choose(a, isl, best, held)
    hold(a, sy, isl, held)
    store(sy, isl, wk.digits, wk.v.r)
    miss = certify(sy, isl, wk.v.r, wk.v.y, wk.v.u)
    read_states(sy, isl, wk.v.r, wk.v.u, 0.0, state)
    return miss


@kernel
def search(a: Arrays, sy: System, isl: Island, size: int, wk: Work, state: np.ndarray,
           held: np.ndarray, freed: np.ndarray, o: Numbers,
           report: np.ndarray) -> float:  # fmt: skip
    """Solve an island with contacts that do not slip where pressed; see the module.

    Impulses are left in v.r; the relative residual is returned.
    """
    for attempt in range(6):
        if attempt % 3 == 0:
            leave(a, sy, isl, size, wk, state, held, o, report)
        else:
            hold_all(a, isl, HOLDS if attempt % 3 == 1 else RELEASED, held)
        share = attempt >= 3
        reason, miss = rounds(a, sy, isl, size, wk, state, held, freed, share, o, report)
        if reason == CONSISTENT:
            return miss
    contacts = hold_all(a, isl, RELEASED, held)
    if contacts <= FEW:
        miss = try_all(a, sy, isl, size, wk, state, held, freed, contacts, o, report)
        if miss <= o.certificate:
            return miss
    leave(a, sy, isl, size, wk, state, held, o, report)
    report[JAMMED] += 1.0
    return jam(a, sy, isl, size, wk, state, held, freed, o, report)
