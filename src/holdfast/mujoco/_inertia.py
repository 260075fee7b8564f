"""The smooth part of a step: free velocity, and the inertia that contacts act on.

MuJoCo's integrators treat damping implicitly: ``A (v+ - v) = h f`` with ``A = M + h D``. When
contact is solved with M and damping is applied afterwards, the velocity that is integrated is not
the one that was solved for, and feet slip. Here contact impulses act through the same A:

    A (v+ - v_free) = (impulses),    v_free = v + h A^-1 f

so that the velocity that is certified is the velocity that is integrated. What D is, the model's
integrator says. Without contacts the step is MuJoCo's own.

============  ==============================================================================
integrator    A
============  ==============================================================================
Euler, RK4    M + h (joint damping); M alone with the flag eulerdamp disabled
implicitfast  M - h (derivative of all smooth forces but Coriolis by velocity), symmetric part
implicit      the same with Coriolis, symmetric part; M where that is not positive definite
discrete      M + h D + h^2 K, with springs and position servos, too
============  ==============================================================================
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import entry
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco._shadow import Shadow

UNDAMPED = int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP | mujoco.mjtDisableBit.mjDSBL_DAMPER)
_STATE = int(mujoco.mjtState.mjSTATE_FULLPHYSICS | mujoco.mjtState.mjSTATE_WARMSTART)
_EULER = int(mujoco.mjtIntegrator.mjINT_EULER)
_IMPLICIT = int(mujoco.mjtIntegrator.mjINT_IMPLICIT)
_DISCRETE = int(mujoco.mjtIntegrator.mjINT_DISCRETE)
_IMPLICITFAST = int(mujoco.mjtIntegrator.mjINT_IMPLICITFAST)

# How the usual step finds A: not at all, or M alone, with joint damping, with the derivative; with
# that, and f from MuJoCo's own velocity, because it treats free bodies apart.
GIVEN, PLAIN, DAMPED, IMPLICIT, SPINNING = range(5)


def quick_kind(shadow: Shadow, data: Any, v_free_out: np.ndarray) -> int | None:
    """PLAIN, DAMPED, IMPLICIT or SPINNING, with v_free_out filled then; None if A takes more."""
    if shadow.integrator == _EULER:
        return PLAIN if shadow.user_flags & UNDAMPED else DAMPED
    if shadow.integrator == _IMPLICITFAST:
        v_free_out[:] = _implicit(shadow.model, data)
        return SPINNING if shadow.spins else IMPLICIT
    return None


def effective_inertia(shadow: Shadow, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """The matrix A (nv, nv) and the force f (nv,) of the smooth step ``A (v_free - v) = h f``.

    Args:
        shadow: the stepper's model.
        data: after `mj_fwdAcceleration`.
    """
    own, h, kind = shadow.model, shadow.h, shadow.integrator
    M = np.empty((own.nv, own.nv))
    mujoco.mj_fullM(own, data, M)
    if kind == _EULER:
        if not shadow.user_flags & UNDAMPED:
            add_damping(own.dof_damping, own.dof_dampingpoly, data.qvel, M, h)
        return M, data.qfrc_smooth.copy()
    if kind == _DISCRETE:
        if not data.efm_active:
            return M, data.qfrc_smooth.copy()
        return M + _discrete_terms(own, data), data.qfrc_smooth + data.efm_c + data.efm_ca
    v_free = _implicit(own, data)
    A, f = M.copy(), np.empty(own.nv)
    subtract_derivative(data.qDeriv, own.D_rownnz, own.D_colind, A, h)
    if kind == _IMPLICITFAST and not shadow.spins:
        return A, data.qfrc_smooth.copy()
    if kind == _IMPLICIT and not _is_positive_definite(A):
        A = M
    np.matmul(A, (v_free - data.qvel) / h, out=f)
    return A, f


@entry
def add_damping(
    damping: np.ndarray, poly: np.ndarray, qvel: np.ndarray, M_inout: np.ndarray, h: float
) -> None:
    """Add h times the derivative of the damping force ``a v + b v |v| + c v^3`` to the diagonal."""
    for i in range(qvel.shape[0]):
        slope, speed = damping[i], 1.0
        for k in range(poly.shape[1]):
            speed *= abs(qvel[i])
            slope += (k + 2) * poly[i, k] * speed
        M_inout[i, i] += h * max(slope, 0.0)


def entries(model: Any) -> tuple[np.ndarray, np.ndarray]:
    """Where the entries of M (nC, 2) and of its derivative (pairs, 4) are in a dense matrix.

    M holds entries at or left of the diagonal, each of which stands twice in the matrix; the
    derivative holds those on the right, too: of each pair it is told where these two are, as well,
    in the order of `subtract_derivative`.
    """
    m = model.nv
    i, j = np.repeat(np.arange(m), model.M_rownnz), model.M_colind.astype(np.int64)
    in_M = np.stack([i * m + j, j * m + i], axis=1)
    i, j = np.repeat(np.arange(m), model.D_rownnz), model.D_colind.astype(np.int64)
    where = np.zeros((m, m), dtype=np.int64)
    where[i, j] = np.arange(len(i))
    i, j = i[j <= i], j[j <= i]
    return in_M, np.stack([i * m + j, j * m + i, where[j, i], where[i, j]], axis=1)


@entry
def subtract_derivative(
    derivative: np.ndarray, rownnz: np.ndarray, colind: np.ndarray, A_inout: np.ndarray, h: float
) -> None:
    """Subtract h times the symmetric part of a sparse derivative."""
    k = 0
    for i in range(rownnz.shape[0]):
        for _ in range(rownnz[i]):
            j = colind[k]
            A_inout[i, j] -= 0.5 * h * derivative[k]
            A_inout[j, i] -= 0.5 * h * derivative[k]
            k += 1


def _implicit(own: Any, data: Any) -> np.ndarray:
    """The velocity without constraints, MuJoCo's; the derivative of the forces is in qDeriv then.

    `mj_implicit` advances the state as a side effect; the state is put back.
    """
    before = np.empty(mujoco.mj_stateSize(own, _STATE))
    mujoco.mj_getState(own, data, before, _STATE)
    data.qfrc_constraint[:] = 0.0
    mujoco.mj_implicit(own, data)
    v_free = data.qvel.copy()
    mujoco.mj_setState(own, data, before, _STATE)
    return v_free


def _discrete_terms(own: Any, data: Any) -> np.ndarray:
    """``h D + h^2 K`` of the discrete integrator, gathered from where MuJoCo keeps its parts."""
    terms = np.zeros((own.nv, own.nv))
    row = np.repeat(np.arange(own.nv), own.M_rownnz)
    if data.efm_fluid.size:
        terms[row, own.M_colind] = data.efm_fluid
        terms = terms + np.tril(terms, -1).T
    terms[np.diag_indices(own.nv)] += data.efm_diag
    for k, i in enumerate(data.efm_tid[: data.nefmT]):
        j = np.zeros(own.nv)
        at = slice(own.ten_J_rowadr[i], own.ten_J_rowadr[i] + own.ten_J_rownnz[i])
        j[own.ten_J_colind[at]] = data.ten_J[at]
        terms += data.efm_ts[k] * np.outer(j, j)
    for k, i in enumerate(data.efm_aid[: data.nefmA]):
        j = np.zeros(own.nv)
        at = slice(data.moment_rowadr[i], data.moment_rowadr[i] + data.moment_rownnz[i])
        j[data.moment_colind[at]] = data.actuator_moment[at]
        terms += data.efm_as[k] * np.outer(j, j)
    return terms


def _is_positive_definite(A: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True
