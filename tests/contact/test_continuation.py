"""The path of vanishing compliance: its tangent."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast._jit import entry
from holdfast.contact.continuation import LOG_WEIGHT, find_tangent, point_residual
from holdfast.contact.newton import Island, Vectors
from holdfast.contact.system import DISC, System
from holdfast.linalg.block_lu import Pattern


@entry
def tangent(sy, isl, size, v, CG, d, s, sigma, out):
    return find_tangent(sy, isl, size, v, CG, d, s, sigma, out)


@entry
def left(sy, isl, v, d, rho, out):
    return point_residual(sy, isl, v, d, rho, out)


def contacts(rng: np.random.Generator, m: int, count: int) -> tuple[System, Island, Vectors]:
    """Contacts with friction of one tree, at a point of a path with some impulses and speeds."""
    rows, whole = 3 * count, np.arange(count + 1)
    G = rng.normal(size=(rows, m))
    G /= np.linalg.norm(G, axis=1)[:, None]
    one, y0, none = np.zeros(1, dtype=np.int64), rng.normal(size=m), np.zeros(rows)
    sy = System(
        np.array([0, m]), 3 * whole, whole, np.zeros(count, dtype=np.int64), 3 * m * whole[:-1],
        y0, y0.copy(), G.ravel(), none, none.copy(), np.ones(count, dtype=np.int64),
        np.full(count, DISC), rng.uniform(0.1, 1.0, count), np.zeros(count), np.ones(rows),
    )  # fmt: skip
    pattern = Pattern(one, np.array([m]), one, one.reshape(1, 1), one.reshape(1, 1), one)
    isl = Island(whole[:-1], pattern, 1, one, np.zeros(m * m), np.zeros(1), np.zeros(9 * count),
                 9 * whole, 1.0)  # fmt: skip
    v = Vectors(*np.zeros((6, m)), *np.zeros((6, rows)))
    v.r[:], v.best[:] = rng.normal(size=(2, rows))
    v.r[::3] = np.abs(v.r[::3])
    return sy, isl, v


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([0.1, 1.0, 10.0]))
def test_along_the_tangent_nothing_changes(seed: int, count: int, sigma: float) -> None:
    """To first order; it is a direction of length one in motions and in log rho."""
    rng, m, s = np.random.default_rng(seed), 7, -1.0
    sy, isl, v = contacts(rng, m, count)
    d, way, F = 0.1 * rng.normal(size=m), np.zeros(m), np.zeros((2, m))
    along = tangent(sy, isl, m * m, v, np.zeros(m * 6), d, s, sigma, way)
    length2 = way @ way / sigma**2 + LOG_WEIGHT * along**2
    np.testing.assert_allclose(length2, 1.0, rtol=1e-12)
    step = 1e-7
    for k, sign in enumerate((1.0, -1.0)):
        left(sy, isl, v, d + sign * step * way, np.exp(s + sign * step * along), F[k])
    change = np.abs(F[0] - F[1]).max() / (2.0 * step)
    other = np.zeros((2, m))  # the same way where the compliance stays
    for k, sign in enumerate((1.0, -1.0)):
        left(sy, isl, v, d + sign * step * way, np.exp(s), other[k])
    assert change <= 1e-5 * (1.0 + np.abs(other[0] - other[1]).max() / (2.0 * step))
