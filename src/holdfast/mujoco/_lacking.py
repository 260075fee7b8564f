"""Friction that bodies need and the model does not declare, found in compiled code."""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from holdfast._jit import kernel
from holdfast.mujoco._forces import EXCEEDED, NO_FORCE


class Grip(NamedTuple):
    """What holds what in a step, by contact; see `Rows` and `Answer`."""

    bodies: np.ndarray  # (2, n)
    place: np.ndarray
    first: np.ndarray
    dim: np.ndarray
    mu: np.ndarray
    impulse: np.ndarray  # by row
    contacts: np.ndarray
    grips: np.ndarray


@kernel
def along(first: np.ndarray, dim: np.ndarray, impulse: np.ndarray, i: int) -> float:
    """Return the size of the friction of contact i."""
    if dim[i] < 3:
        return 0.0
    f_s, f_t = impulse[first[i] + 1], impulse[first[i] + 2]
    return np.sqrt(f_s * f_s + f_t * f_t)


@kernel
def lacks(
    bodies: np.ndarray, place: np.ndarray, first: np.ndarray, dim: np.ndarray, mu: np.ndarray,
    impulse: np.ndarray, contacts: np.ndarray, grips: np.ndarray, warned: np.ndarray, begin: int,
) -> int:  # fmt: skip
    """Return a contact of bodies that need more friction, together, than the model declares.

    Forces of single contacts are not unique where contacts are redundant; those of all contacts of
    a pair of bodies, added up, are what counts.

    Args:
        bodies, place, first, dim, mu, impulse, contacts, grips: see `Grip`.
        warned: (k, 2) pairs of bodies that do not count.
        begin: the first contact that is looked at.

    Returns:
        The first such contact whose own friction does not suffice, or -1.
    """
    n, largest = first.shape[0], 0.0
    for i in range(n):
        if contacts[i]:
            largest = max(largest, impulse[first[i]], along(first, dim, impulse, i))
    last_a = last_b = -1
    for i in range(begin, n):
        if not (contacts[i] and grips[i]):
            continue
        friction = along(first, dim, impulse, i)
        enough = impulse[first[i]] * mu[i] * (1.0 + EXCEEDED)
        a, b = bodies[0, i], bodies[1, i]
        if friction <= max(enough, NO_FORCE * largest) or (a == last_a and b == last_b):
            continue
        last_a, last_b, known = a, b, False
        for k in range(warned.shape[0]):
            known = known or (warned[k, 0] == min(a, b) and warned[k, 1] == max(a, b))
        if known:
            continue
        need, declared = friction_of_pair(bodies, place, first, dim, mu, impulse, contacts, i)
        if need > declared * (1.0 + EXCEEDED):
            return i
    return -1


@kernel
def friction_of_pair(
    bodies: np.ndarray, place: np.ndarray, first: np.ndarray, dim: np.ndarray, mu: np.ndarray,
    impulse: np.ndarray, contacts: np.ndarray, of: int,
) -> tuple[float, float]:  # fmt: skip
    """Return what friction the bodies of a contact need together, and the least declared one."""
    press = x = y = z = 0.0
    declared, a, b = mu[of], bodies[0, of], bodies[1, of]
    for i in range(first.shape[0]):
        turned = bodies[0, i] == b and bodies[1, i] == a
        if not (contacts[i] and (turned or (bodies[0, i] == a and bodies[1, i] == b))):
            continue
        declared = min(declared, mu[i])
        press += impulse[first[i]]
        if dim[i] >= 3:
            f_s, f_t = impulse[first[i] + 1], impulse[first[i] + 2]
            sign = -1.0 if turned else 1.0
            x += sign * (f_s * place[i, 6] + f_t * place[i, 9])
            y += sign * (f_s * place[i, 7] + f_t * place[i, 10])
            z += sign * (f_s * place[i, 8] + f_t * place[i, 11])
    net = np.sqrt(x * x + y * y + z * z)
    if press > 0.0:
        return net / press, declared
    return (np.inf if net > 0.0 else 0.0), declared
