"""The factor of the inertia from the leaves to the root, and rows that are independent."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest

from holdfast.linalg import ltl
from holdfast.linalg.ltl import all_to_white, factor, from_white, motion_to_white, to_white
from holdfast.tools import scenes


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels that only others call are run as they are written."""
    for name in ("add", "dot"):
        kernel = getattr(ltl, name)
        monkeypatch.setattr(ltl, name, getattr(kernel, "py_func", kernel))


def call(kernel, *args):
    return getattr(kernel, "py_func", kernel)(*args)


def factored(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L as the kernel has it, where its entries are, and L itself."""
    m = len(A)
    L, below = np.full((m, m), np.nan), np.zeros((m, m + 1), dtype=np.int64)
    assert call(factor, A, L, below)
    true = np.tril(L, -1)
    for k in range(m):
        true[k, : below[k, 1]] = 0.0
        true[k, k] = 1.0 / L[k, k]
    return L, below, true


def inertia_of_the_quadruped() -> np.ndarray:
    model = mujoco.MjModel.from_xml_string(scenes.quadruped())
    data = mujoco.MjData(model)
    data.qpos[:] = np.random.default_rng(3).normal(size=model.nq)
    mujoco.mj_forward(model, data)
    M = np.empty((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M


def dense() -> np.ndarray:
    R = np.random.default_rng(4).normal(size=(7, 9))
    return R @ R.T


def filled_in() -> np.ndarray:
    """An arrow that points the wrong way for this order: no tree, and all of it fills in."""
    A = 5.0 * np.eye(5)
    A[4, :4] = A[:4, 4] = 1.0
    return A


@pytest.mark.parametrize("make", [inertia_of_the_quadruped, dense, filled_in])
def test_factor_and_solves(make) -> None:
    A = make()
    m = len(A)
    L, below, true = factored(A)
    assert np.allclose(true.T @ true, A, rtol=1e-12, atol=1e-13 * np.abs(A).max())
    b = np.random.default_rng(5).normal(size=(m, 3))
    white, W = b[:, 0].copy(), b.copy()
    call(to_white, L, below, white)
    call(all_to_white, L, below, 2, W)
    assert np.allclose(white, np.linalg.solve(true.T, b[:, 0]), rtol=1e-9)
    assert np.allclose(W[:, :2], np.linalg.solve(true.T, b[:, :2]), rtol=1e-9)
    assert np.array_equal(W[:, 2], b[:, 2])
    call(from_white, L, below, white)
    assert np.allclose(A @ white, b[:, 0], rtol=1e-8, atol=1e-9)
    x, y = b[:, 1], np.empty(m)
    call(motion_to_white, L, below, x, y)
    assert np.linalg.norm(y) == pytest.approx(np.sqrt(x @ A @ x), rel=1e-12)


def test_legs_do_not_know_of_each_other() -> None:
    _, below, true = factored(inertia_of_the_quadruped())
    assert np.count_nonzero(true[9:12, 6:9]) == np.count_nonzero(true[15:18, 6:15]) == 0
    assert below[17, 0] == 8  # the trunk's six coordinates, and two of the leg


@pytest.mark.parametrize("wrong", [np.nan, -1.0, 0.0])
def test_what_is_not_positive_definite_is_refused(wrong: float) -> None:
    A = dense()
    A[2, 2] = wrong
    assert not call(factor, A, np.empty((7, 7)), np.zeros((7, 8), dtype=np.int64))
    A = np.ones((2, 2))  # singular
    assert not call(factor, A, np.empty((2, 2)), np.zeros((2, 3), dtype=np.int64))
