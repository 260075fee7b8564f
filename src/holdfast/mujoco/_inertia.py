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

from holdfast.mujoco._mj import mujoco

_EULERDAMP = int(mujoco.mjtDisableBit.mjDSBL_EULERDAMP)
_DAMPER = int(mujoco.mjtDisableBit.mjDSBL_DAMPER)
_STATE = mujoco.mjtState.mjSTATE_FULLPHYSICS | mujoco.mjtState.mjSTATE_WARMSTART
_INTEGRATOR = mujoco.mjtIntegrator


def effective_inertia(own: Any, data: Any, flags: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix A (nv, nv) and the force f (nv,) of the smooth step ``A (v_free - v) = h f``.

    Args:
        own: the stepper's model.
        data: after `mj_fwdAcceleration`.
        flags: the user's disable flags.
    """
    M = np.empty((own.nv, own.nv))
    mujoco.mj_fullM(own, data, M)
    h, kind = own.opt.timestep, own.opt.integrator
    if kind == _INTEGRATOR.mjINT_EULER:
        if not flags & (_EULERDAMP | _DAMPER):
            M[np.diag_indices(own.nv)] += h * _joint_damping(own, data)
        return M, np.array(data.qfrc_smooth)
    if kind == _INTEGRATOR.mjINT_DISCRETE:
        if not data.efm_active:
            return M, np.array(data.qfrc_smooth)
        return M + _discrete_terms(own, data), data.qfrc_smooth + data.efm_c + data.efm_ca
    derivative, v_free = _implicit(own, data)
    A = M - 0.5 * h * (derivative + derivative.T)
    if kind == _INTEGRATOR.mjINT_IMPLICIT and not _is_positive_definite(A):
        A = M
    return A, A @ (v_free - data.qvel) / h


def _joint_damping(own: Any, data: Any) -> np.ndarray:
    """Derivative of the damping force ``a v + b v |v| + c v^3`` of each coordinate."""
    damping = np.array(own.dof_damping)
    if own.dof_dampingpoly.any():
        speed = np.abs(data.qvel)
        for k in range(own.dof_dampingpoly.shape[1]):
            damping += (k + 2) * own.dof_dampingpoly[:, k] * speed ** (k + 1)
    return np.maximum(damping, 0.0)


def _implicit(own: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """Derivative of the smooth forces, and the velocity without constraints, both MuJoCo's.

    `mj_implicit` advances the state as a side effect; the state is put back.
    """
    before = np.empty(mujoco.mj_stateSize(own, _STATE))
    mujoco.mj_getState(own, data, before, _STATE)
    data.qfrc_constraint[:] = 0.0
    data.qacc[:] = data.qacc_smooth
    mujoco.mj_implicit(own, data)
    v_free = np.array(data.qvel)
    mujoco.mj_setState(own, data, before, _STATE)
    derivative = np.zeros((own.nv, own.nv))
    row = np.repeat(np.arange(own.nv), own.D_rownnz)
    derivative[row, own.D_colind] = data.qDeriv
    return derivative, v_free


def _discrete_terms(own: Any, data: Any) -> np.ndarray:
    """``h D + h^2 K`` of the discrete integrator, gathered from where MuJoCo keeps its parts."""
    terms = np.zeros((own.nv, own.nv))
    row = np.repeat(np.arange(own.nv), own.M_rownnz)
    if data.efm_fluid.size:
        terms[row, own.M_colind] = data.efm_fluid
        terms = terms + np.tril(terms, -1).T
    terms[np.diag_indices(own.nv)] += data.efm_diag
    for i in data.efm_tid[: data.nefmT]:
        j = np.zeros(own.nv)
        at = slice(own.ten_J_rowadr[i], own.ten_J_rowadr[i] + own.ten_J_rownnz[i])
        j[own.ten_J_colind[at]] = data.ten_J[at]
        terms += data.efm_ts[i] * np.outer(j, j)
    for i in data.efm_aid[: data.nefmA]:
        j = np.zeros(own.nv)
        at = slice(data.moment_rowadr[i], data.moment_rowadr[i] + data.moment_rownnz[i])
        j[data.moment_colind[at]] = data.actuator_moment[at]
        terms += data.efm_as[i] * np.outer(j, j)
    return terms


def _is_positive_definite(A: np.ndarray) -> bool:
    try:
        np.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return False
    return True
