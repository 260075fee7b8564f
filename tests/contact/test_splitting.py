"""One constraint in the splitting: its impulses are the projection of z on what its law allows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.contact.splitting import split
from holdfast.contact.system import DISC, LINEAR, NOTHING
from plain_kernels import plain

NUMBERS = st.floats(-10.0, 10.0, allow_subnormal=False)


def answer(z: np.ndarray, normal: int, kind: int, mu: float, R: float, bound: float) -> Any:
    """Impulses, shifted speeds times beta and the shift of one constraint, the second of two."""
    n, beta = len(z), 0.5
    sy = SimpleNamespace(row=[0, 2, 2 + n], normal=[1, normal], tangent=[NOTHING, kind],
                         mu=[9.0, mu], bound=[9.0, bound], R=np.full(2 + n, R))  # fmt: skip
    r, w = np.full((2, 2 + n), np.nan)
    shift = plain(split)(sy, 1, np.append(7.0, z), 1, beta, r, w)
    assert np.isnan(r[:2]).all() and np.isnan(w[:2]).all()
    return r[2:], beta * w[2:], shift


@given(st.lists(NUMBERS, min_size=2, max_size=4), st.floats(0.01, 3.0))
def test_coulomb_friction_is_a_cone(z: list[float], mu: float) -> None:
    n, t = z[0], np.array(z[1:])
    pull = float(np.linalg.norm(t))
    if pull <= mu * n:
        expected = np.array(z)
    elif mu * pull <= -n:
        expected = np.zeros(len(z))
    else:
        size = (n + mu * pull) / (1.0 + mu * mu)
        expected = np.append(size, mu * size * t / pull)
    r, w, shift = answer(np.array(z), 1, DISC, mu, 0.0, 0.0)
    np.testing.assert_allclose(r, expected, atol=1e-12)
    np.testing.assert_allclose(w, r - z, atol=1e-12)
    np.testing.assert_allclose(shift, mu * np.linalg.norm(w[1:]) / 0.5, atol=1e-11)


@given(NUMBERS, NUMBERS, st.floats(0.0, 5.0))
def test_other_laws(n: float, t: float, size: float) -> None:
    """Contacts push, without friction or with drag; brakes have bounds; springs give way."""
    r, w, shift = answer(np.array([n, t]), 1, NOTHING, 0.0, 0.0, 0.0)
    assert (r == [max(n, 0.0), 0.0]).all() and w[1] == shift == 0.0
    r, _, shift = answer(np.array([n, t]), 1, LINEAR, 0.0, size, 0.0)
    np.testing.assert_allclose(r, [max(n, 0.0), t / (1.0 + 0.5 * size)], atol=1e-14)
    assert shift == 0.0
    r, _, _ = answer(np.array([t]), 0, DISC, 0.0, 0.0, size)
    np.testing.assert_allclose(r, np.clip(t, -size, size), atol=1e-14)
