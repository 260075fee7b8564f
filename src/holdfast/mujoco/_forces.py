"""Kernels about the forces of a step: shared out, checked, judged."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import fast_kernel, inlined, kernel
from holdfast.linalg.ltl import motion_to_white, to_white
from holdfast.linalg.vectors import add, dot
from holdfast.linalg.views import part
from holdfast.models._sharing import PRESSED, SHARED, share_normals, share_tangents
from holdfast.models._spread import TOUCHING
from holdfast.mujoco._components import component_of, compress, list_dofs, split
from holdfast.mujoco._release import BALANCED
from holdfast.mujoco._scene import EXCESS, SCALE, SLIP, Found, Numbers, Scene, Work

WEDGED = 1e-2  # normal impulse of a contact that jams, as a part of the largest one
NO_FORCE = 1e-12  # as in `holdfast.contact.solution`
NOTHING = 1e-13  # impulse that is rounding, relative to one that would stop the motion
EXCEEDED = 1e-6  # required friction beyond the declared one by this part is no rounding


@kernel
def nothing(longest2: float, out: Found) -> float:
    """Return the normal impulse up to which nothing is pressed, whatever the others are: rounding.

    Args:
        longest2: squared length of the longest row of a normal.
        out: with the size of the motion.
    """
    return NOTHING * out.numbers[SCALE] / np.sqrt(longest2) if longest2 > 0.0 else 0.0


@fast_kernel
def length2(sc: Scene, row: int) -> float:
    """Return about the squared length of a row, as if the inertia were diagonal."""
    total = 0.0
    for j in range(sc.v.shape[0]):
        x = sc.rows[row, j]
        total += x * x / sc.A[0, j, j]
    return total


@kernel
def least_pressure(sc: Scene, out: Found) -> float:
    """Return `nothing` for rows that are not measured yet."""
    longest = 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            longest = max(longest, length2(sc, sc.first[i]))
    return nothing(longest, out)


@kernel
def closing(sc: Scene, nr: Numbers, i: int, out: Found) -> float:
    """Return the speed that closes the gap of contact i within the step."""
    return 0.0 if out.closed[i] else max(sc.gap[i], 0.0) / nr.h


@kernel
def whiten(sc: Scene, wk: Work, row: int, y_out: np.ndarray) -> float:
    """Fill y_out with a whitened row; return its length."""
    for j in range(y_out.shape[0]):
        y_out[j] = sc.rows[row, j]
    to_white(wk.L, wk.below, y_out)
    return np.sqrt(dot(y_out, y_out))


@inlined
def size_of(wk: Work, x: np.ndarray) -> float:
    """Return the size of a motion in the metric of the inertia; wk.x[7] is it, whitened."""
    motion_to_white(wk.L, wk.below, x, wk.x[7])
    return np.sqrt(dot(wk.x[7], wk.x[7]))


@kernel
def measure(sc: Scene, nr: Numbers, wk: Work, out: Found) -> tuple[int, float]:
    """Fill the whitened normals of the problem's contacts, and their relative separation.

    Writes wk.which[0] (the contacts), wk.white (their normals), wk.each[0] (separation speed),
    wk.each[1] (normal impulse).

    Returns:
        How many contacts there are, and the scale of the motion.
    """
    scale = max(out.numbers[SCALE], size_of(wk, out.motion))
    if scale == 0.0:
        scale = 1.0
    n, longest = 0, 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            wk.which[0, n] = i
            wk.each[2, n] = whiten(sc, wk, sc.first[i], wk.white[n])
            longest = max(longest, wk.each[2, n])
            n += 1
    for c in range(n):
        i = wk.which[0, c]
        length = wk.each[2, c]
        if length <= nr.zero_row * longest:
            length = longest if longest > 0.0 else 1.0
        away = dot(sc.rows[sc.first[i]], out.motion) + closing(sc, nr, i, out)
        wk.each[0, c] = away / (length * scale)
        wk.each[1, c] = out.impulse[sc.first[i]]
    return n, scale


@kernel
def drive_in(sc: Scene, n: int, wedge: float, wk: Work, out: Found) -> bool:
    """Fill wk.each[4] with impulses that press contacts that jam, wk.each[1] with what is left.

    Held, such a contact is wedged in between others, and forces of least squares do not show it.

    Returns:
        Whether there is any.
    """
    some = False
    for c in range(n):
        i = wk.which[0, c]
        jams = wedge > 0.0 and wk.masks[4, i] and wk.masks[0, c]
        some = some or jams
        wk.each[4, c] = wedge if jams else 0.0
        wk.each[1, c] = out.impulse[sc.first[i]] - wk.each[4, c]
    return some


@kernel
def share(sc: Scene, ne: int, held: np.ndarray, n: int, wk: Work, out: Found) -> int:
    """Share the forces out among the problem's contacts; fill out.impulse, wk.masks[1] (pressed).

    Returns:
        SHARED, or another status if tangential forces at pressed contacts do not suffice (then
        the impulses stay as they are), or -1 if the normal forces could not be shared.
    """
    m, nefc = sc.v.shape[0], wk.at.shape[0]
    total, rest = wk.x[0], wk.x[1]
    for j in range(m):
        total[j] = 0.0
    for r in range(nefc):
        if out.impulse[r] != 0.0:
            add(out.impulse[r], sc.rows[r], total)
    dry_and_limits = ne + (sc.loss.shape[0] + sc.limit_gap.shape[0])
    for r in range(ne, dry_and_limits):
        add(-out.impulse[r], sc.rows[r], total)
    for j in range(m):
        rest[j] = total[j]

    # normals
    k = 0
    for r in range(nefc):
        equality = out.loaded[r] and (r < ne or r >= dry_and_limits)
        if equality:
            wk.at[k] = r
            k += 1
    for c in range(n):  # loaded normals are no equality rows
        row = sc.first[wk.which[0, c]]
        for l in range(k):
            if wk.at[l] == row:
                wk.at[l] = -1
    kept = 0
    for l in range(k):
        if wk.at[l] >= 0:
            wk.at[kept] = wk.at[l]
            kept += 1
    largest = 0.0
    for c in range(n):
        wk.masks[0, c] = abs(wk.each[0, c]) <= TOUCHING
        largest = max(largest, wk.each[1, c])
    wedge, wedged = WEDGED * largest, True
    status, components = -1, split(sc, ne, wk, out)
    while status != SHARED and wedged:  # the second time without
        wedged = drive_in(sc, n, wedge, wk, out)
        wedge, status = 0.0, SHARED
        for k in range(components):
            if status == SHARED:
                status = share_pressure(sc, n, kept, k, wk)
    if status != SHARED:
        return -1
    rounding = least_pressure(sc, out)
    for c in range(n):
        wk.each[3, c] += wk.each[4, c]
        if wk.each[3, c] <= rounding:
            wk.each[3, c] = 0.0
        largest = max(largest, wk.each[3, c])
    for c in range(n):
        wk.masks[1, c] = wk.each[3, c] > PRESSED * largest
        add(-wk.each[3, c], sc.rows[sc.first[wk.which[0, c]]], rest)

    # tangents
    to_white(wk.L, wk.below, total)
    to_white(wk.L, wk.below, rest)
    joints = 0
    for l in range(kept):  # joints stand first in MuJoCo's list
        if wk.at[l] < ne:
            wk.at[joints] = wk.at[l]
            joints += 1
    found = wk.bounds[2]
    for r in range(nefc):
        found[r] = 0.0
    size = np.sqrt(dot(total, total))
    for k in range(components):
        status = share_friction(sc, held, n, joints, k, rest, size, wk, found)
        if status != SHARED:
            return status
    for r in range(nefc):
        if r < ne or r >= dry_and_limits:
            out.impulse[r] = found[r]
    for c in range(n):
        out.impulse[sc.first[wk.which[0, c]]] = wk.each[3, c]
    return SHARED


@kernel
def put_white(sc: Scene, wk: Work, row: int, at: int, m: int) -> int:
    """Make a row, whitened, with the m coordinates that wk.dofs lists, row `at` of wk.white."""
    flat = wk.white.reshape(wk.white.size)
    whiten(sc, wk, row, wk.white[at])
    compress(wk.white[at], wk.dofs, m, flat[at * m : (at + 1) * m])
    return at + 1


@kernel
def share_pressure(sc: Scene, n: int, kept: int, k: int, wk: Work) -> int:
    """Share the normal forces of component k out; fill wk.each[3]. See `share_normals`."""
    m, flat = list_dofs(k, wk), wk.white.reshape(wk.white.size)
    touching, normal, force = wk.masks[1], wk.bounds[0], wk.bounds[1]
    count = 0
    for c in range(n):
        row = sc.first[wk.which[0, c]]
        of = component_of(row, wk)
        if of == k:
            touching[count], normal[count] = wk.masks[0, c], wk.each[1, c]
            count = put_white(sc, wk, row, count, m)
        elif of < 0:
            wk.each[3, c] = 0.0
    if count == 0:
        return SHARED
    end = count
    for l in range(kept):
        if component_of(wk.at[l], wk) == k:
            end = put_white(sc, wk, wk.at[l], end, m)
    status = share_normals(
        flat[: count * m].reshape(count, m), flat[count * m : end * m].reshape(end - count, m),
        touching[:count], normal[:count], wk.square,
        part(wk.vector.reshape(wk.vector.size), 0, 5, m),
        wk.columns[: 2 * m * count].reshape(2, m, count), wk.long[: 2 * count].reshape(2, count),
        wk.E[: count * m].reshape(count, m), wk.pivots, force[:count],
    )  # fmt: skip
    count = 0
    for c in range(n):
        if component_of(sc.first[wk.which[0, c]], wk) == k:
            wk.each[3, c] = force[count]
            count += 1
    return status


@kernel
def share_friction(sc: Scene, held: np.ndarray, n: int, joints: int, k: int, rest: np.ndarray,
                   size: float, wk: Work, found_out: np.ndarray) -> int:  # fmt: skip
    """Share out what is left for tangents, torsion and joints of component k, by row.

    See `share_tangents`.
    """
    m, flat = list_dofs(k, wk), wk.white.reshape(wk.white.size)
    left = wk.x[2]
    for a in range(m):
        left[a] = rest[wk.dofs[a]]
    free = 0
    for l in range(joints):
        if component_of(wk.at[l], wk) == k:
            wk.play.at[free] = wk.at[l]
            free = put_white(sc, wk, wk.at[l], free, m)
    for c in range(n):
        i = wk.which[0, c]
        if held[i] and wk.masks[1, c]:
            for row in range(sc.first[i] + 3, sc.first[i] + sc.dim[i]):
                if component_of(row, wk) == k:
                    wk.play.at[free] = row
                    free = put_white(sc, wk, row, free, m)
    t = 0
    for c in range(n):
        i = wk.which[0, c]
        if held[i] and wk.masks[1, c]:
            for row in range(sc.first[i] + 1, sc.first[i] + 3):
                if component_of(row, wk) == k:
                    wk.warm[t] = c  # the solver is done with it
                    wk.play.at[free + t] = row
                    put_white(sc, wk, row, free + t, m)
                    t += 1
    along, others = wk.bounds[0], wk.bounds[1]
    status = share_tangents(
        flat[free * m : (free + t) * m].reshape(t, m), wk.warm[:t],
        flat[: free * m].reshape(free, m), wk.each[3, :n], left[:m], size, wk.square,
        part(wk.vector.reshape(wk.vector.size), 0, 5, m),
        wk.columns[: 2 * m * t].reshape(2, m, t), wk.long[: 2 * t].reshape(2, t),
        wk.E[: t * m].reshape(t, m), wk.values.reshape(wk.values.size)[: free * m].reshape(free, m),
        wk.pivots, along[:t], others[:free],
    )  # fmt: skip
    if status == SHARED:
        for l in range(free):
            found_out[wk.play.at[l]] = others[l]
        for l in range(t):
            found_out[wk.play.at[free + l]] = along[l]
    return status


@kernel
def tied_as_solved(sc: Scene, held: np.ndarray, shared: bool, n: int, wk: Work,
                   out: Found) -> bool:  # fmt: skip
    """Return whether friction acts at pressed contacts only, forces taken as the solver has them.

    Rows can be so nearly dependent that sharing forces out loses what they add up to, while the
    forces of the solver are good. Where they are all there is, wk.masks[1] (pressed) is filled
    accordingly; a contact that is held and carries nothing needs no release.
    """
    normal = friction = 0.0
    rounding = least_pressure(sc, out)
    for c in range(n):
        i = wk.which[0, c]
        if abs(out.impulse[sc.first[i]]) <= rounding:
            out.impulse[sc.first[i]] = 0.0
        normal = max(normal, out.impulse[sc.first[i]])
        wk.each[4, c] = 0.0
        for e in range(1, sc.dim[i]):
            wk.each[4, c] = max(wk.each[4, c], abs(out.impulse[sc.first[i] + e]))
        friction = max(friction, wk.each[4, c])
    tied = True
    for c in range(n):
        i = wk.which[0, c]
        pressed = out.impulse[sc.first[i]] > PRESSED * normal
        tied = tied and (pressed or wk.each[4, c] <= PRESSED * friction)
    for c in range(n):
        i = wk.which[0, c]
        pressed = out.impulse[sc.first[i]] > PRESSED * normal
        if tied:
            wk.masks[1, c] = pressed
        elif not shared:
            wk.masks[1, c] = pressed or (held[i] and wk.each[4, c] <= PRESSED * friction)
    return tied


@inlined
def balanced(sc: Scene, wk: Work, out: Found) -> bool:
    """Return whether the impulses add up to the motion."""
    m = sc.v.shape[0]
    rest, total = wk.x[0], wk.x[1]
    for j in range(m):
        wk.x[2, j] = out.motion[j] - out.v_free[j]
        total[j] = 0.0
    for r in range(out.impulse.shape[0]):
        if out.impulse[r] != 0.0:
            add(out.impulse[r], sc.rows[r], total)
    for j in range(m):
        rest[j] = dot(sc.A[0, j], wk.x[2]) - total[j]
    to_white(wk.L, wk.below, rest)
    left, scale = np.sqrt(dot(rest, rest)), out.numbers[SCALE]
    if left <= BALANCED * scale and np.isfinite(scale):
        return True
    size = max(size_of(wk, out.motion), scale)
    return np.isfinite(size) and left <= BALANCED * size


@inlined
def judge(sc: Scene, nr: Numbers, out: Found) -> None:
    """Fill in the fastest sliding of a pressed contact that sticks, and whether friction lacks."""
    largest = friction = 0.0
    for i in range(sc.gap.shape[0]):
        if out.contacts[i]:
            largest = max(largest, out.impulse[sc.first[i]])
            if sc.dim[i] >= 3:
                f_s, f_t = out.impulse[sc.first[i] + 1], out.impulse[sc.first[i] + 2]
                friction = max(friction, np.sqrt(f_s * f_s + f_t * f_t))
    slip = excess = 0.0
    for i in range(sc.gap.shape[0]):
        if not (out.contacts[i] and sc.sticks[i]):
            continue
        row = sc.first[i]
        pressed = out.impulse[row] > PRESSED * largest
        if pressed and (out.grips[i] or sc.gap[i] <= nr.open):
            s, t = dot(sc.rows[row + 1], out.motion), dot(sc.rows[row + 2], out.motion)
            slip = max(slip, np.sqrt(s * s + t * t))
        if out.grips[i]:
            f_s, f_t = out.impulse[row + 1], out.impulse[row + 2]
            along = np.sqrt(f_s * f_s + f_t * f_t)
            lacks = along > out.impulse[row] * sc.mu[i] * (1.0 + EXCEEDED)
            if lacks and along > NO_FORCE * max(largest, friction):
                excess = 1.0
    out.numbers[SLIP], out.numbers[EXCESS] = slip, excess
