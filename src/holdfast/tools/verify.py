"""A saved run, checked again by code that did not make it.

Nothing of holdfast's solvers or steppers is used: positions are set, MuJoCo says where surfaces are
and how rows and energies look, and NNLS asks whether contacts could have given the impulse between
two samples. So any trajectory can be audited, whoever made it.

===============  ==================================================================================
check            what is measured
===============  ==================================================================================
distance         smallest signed distance between surfaces at any sample [m]
motion           part of the displacement between two samples that their velocities do not explain
momentum         part of the change of momentum that no pushing contact, joint or smooth force
                 explains, relative to the largest of what goes into it
complementarity  speed at which a lasting contact parts that pushed, weighted by its impulse [m/s]
energy           largest gain between two samples beyond the work of actuators, relative; their
                 power is known at the samples alone, and the benefit of that doubt is given
slip             fastest sliding of a lasting contact that pushes [m/s], by its rows before the step
                 or behind, whichever is less: time stepping stops the one, an ODE the other;
                 judged where asked for
===============  ==================================================================================

Between samples nothing is known. Forces are averaged, and what may have been hit on the way may
have pushed, along its rows at the two samples; the momentum check allows for what that leaves.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from holdfast import _html
from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco

REACH = 1e-6  # [m over the mean size] surfaces closer than this may push
EXACT_DISTANCE = 1e-12
DOUBT = 0.125  # part of a change of smooth forces that their mean over a step may be off by
ROUNDING = 1e-12  # of positions, relative to the extent: what it lifts is no gain of energy
SMALL = 1e-3  # impulses below this part of the largest are not asked for slip or parting


@dataclass(frozen=True)
class Tolerances:
    """What passes."""

    distance: float = 1e-8
    """Deepest penetration [m]."""
    momentum: float = 0.02
    """Unexplained part of a change of momentum, relative."""
    motion: float = 0.02
    """Unexplained part of a displacement, relative."""
    complementarity: float | None = None
    """Parting of a contact that pushed [m/s]; what a free fall gains in two samples if None."""
    energy: float = 1e-6
    """Gain of energy between two samples, relative to the largest kinetic energy."""
    slip: float = 1e-6
    """Sliding of a contact that pushes, where there shall be none [m/s]."""


@dataclass
class Check:
    """One line of the verdict: the worst value, when it was, and whether it passes."""

    name: str
    unit: str
    tolerance: float
    worst: float = 0.0
    time: float = float("nan")
    judged: bool = True

    @property
    def passed(self) -> bool:
        """Whether the worst value is within the tolerance."""
        return not self.judged or self.worst <= self.tolerance

    def see(self, value: float, time: float) -> None:
        """Keep the largest value."""
        if not value <= self.worst or np.isnan(self.time):  # NaN counts as large
            self.worst, self.time = float(value), float(time)


class Sample(NamedTuple):
    """What MuJoCo says of one state."""

    time: float
    q: np.ndarray
    v: np.ndarray
    M: np.ndarray
    f: np.ndarray  # smooth forces, with the controls from here on
    f_end: np.ndarray  # with the controls up to here
    power: float  # of the actuators, likewise
    power_end: float
    energy: float
    kinetic: float
    distance: float
    touching: np.ndarray  # (n,) contacts whose surfaces meet
    geoms: np.ndarray  # (n, 2)
    point: np.ndarray  # (n, 3)
    N: np.ndarray
    S: np.ndarray
    T: np.ndarray
    E: np.ndarray  # rows without a sign: equalities, torsion, rolling, dry friction
    U: np.ndarray  # limits that are reached


@dataclass
class Verdict:
    """All checks of one run."""

    checks: list[Check]
    samples: int
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every check passes."""
        return all(check.passed for check in self.checks)

    def __getitem__(self, name: str) -> Check:
        return next(check for check in self.checks if check.name == name)

    def _repr_html_(self) -> str:
        rows = [
            (c.name, f"{c.worst:.3g} {c.unit}", f"{c.time:.6g}", f"{c.tolerance:.3g}",
             ("pass" if c.passed else "FAIL") if c.judged else "not judged")
            for c in self.checks
        ]  # fmt: skip
        said = f"{self.samples} samples, verdict: {'pass' if self.passed else 'FAIL'}"
        return _html.table(("check", "worst", "at, s", "passes below", "verdict"), rows, title=said,
                           note=" ".join(self.notes))  # fmt: skip


def verify(
    model: Any,
    time: np.ndarray,
    qpos: np.ndarray,
    qvel: np.ndarray,
    ctrl: np.ndarray | None = None,
    *,
    no_slip: bool = False,
    tolerances: Tolerances | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Verdict:
    """Check a trajectory.

    Args:
        model: `mujoco.MjModel` of the run; not changed.
        time: (k,) [s].
        qpos: (k, nq).
        qvel: (k, nv).
        ctrl: (k, nu) controls that held from each sample on; None for zeros.
        no_slip: whether contacts that push shall not slide.
        tolerances: what passes.
        progress: told the part that is done.
    """
    tol = tolerances or Tolerances()
    check_arrays(model, time, qpos, qvel, ctrl)
    step, pull = float(np.diff(time).max()), float(np.linalg.norm(model.opt.gravity)) or 1.0
    eye = _Eye(model, step)
    parting = 2.0 * step * pull if tol.complementarity is None else tol.complementarity
    checks = {
        "distance": Check("distance", "m", tol.distance, worst=-np.inf),
        "motion": Check("motion", "", tol.motion),
        "momentum": Check("momentum", "", tol.momentum),
        "complementarity": Check("complementarity", "m/s", parting),
        "energy": Check("energy", "", tol.energy),
        "slip": Check("slip", "m/s", tol.slip, judged=no_slip),
    }
    verdict = Verdict(list(checks.values()), len(time))
    if model.na:
        checks["energy"].judged = False
        verdict.notes.append("energy is not judged: activations of actuators are not in the file")
    gains, largest, before = [], 0.0, None
    for k in range(len(time)):
        controls = None if ctrl is None else (ctrl[max(k - 1, 0)], ctrl[k])
        now = eye.look(time[k], qpos[k], qvel[k], controls)
        checks["distance"].see(-now.distance, now.time)
        largest = max(largest, now.kinetic)
        if before is not None:
            dt = now.time - before.time
            work = dt * max(before.power, now.power_end)
            gain = now.energy - before.energy - work
            first_order = 0.5 * dt**2 * float(before.f @ np.linalg.solve(before.M, before.f))
            gains.append((gain, now.time, first_order))
            _judge_impulse(before, now, checks)
            checks["motion"].see(eye.unexplained(before, now), now.time)
        before = now
        progress((k + 1) / len(time))
    rounding = ROUNDING * pull * float(model.body_mass.sum()) * model.stat.extent
    for gain, at, _ in gains:
        checks["energy"].see(max(gain - rounding, 0.0) / (largest or 1.0), at)
    if not checks["energy"].passed and all(gain <= doubt for gain, _, doubt in gains):
        verdict.notes.append(
            "energy: no gain is larger than what a step of first order may gain, "
            "h^2 f' M^-1 f / 2; for such a run raise the tolerance"
        )
    return verdict


def _judge_impulse(a: Sample, b: Sample, checks: dict[str, Check]) -> None:
    """Whether contacts could have given the impulse between two samples, and what they did."""
    M, dt = 0.5 * (a.M + b.M), b.time - a.time
    L = np.linalg.cholesky(M)
    change = M @ (b.v - a.v)
    left, z, size = min(
        (_explain(L, change - dt * f, a, b) for f in (a.f, 0.5 * (a.f + b.f_end), b.f_end)),
        key=lambda answer: answer[0],
    )
    changed, given, shift = (
        float(np.linalg.norm(np.linalg.solve(L, x)))
        for x in (change, dt * a.f, dt * (b.f_end - a.f))
    )
    scale, left = max(size, changed, given), max(left - DOUBT * shift, 0.0)
    checks["momentum"].see(left / scale if scale > 0.0 else 0.0, b.time)
    earlier = _same(b, a)
    lasts = _lasting(b, a, earlier)
    normal = _at_the_end(a, b, z)
    weight = np.linalg.norm(np.linalg.solve(L, b.N.T), axis=0) * normal  # as `scale`
    pushes = (normal > SMALL * z.max(initial=0.0)) & (weight > SMALL * scale) & lasts
    if pushes.any():
        parting = (b.N @ b.v) * normal / normal.max()
        checks["complementarity"].see(max(float(parting[pushes].max()), 0.0), b.time)
        behind = np.hypot(b.S[pushes] @ b.v, b.T[pushes] @ b.v)
        there = earlier[pushes]
        ahead = np.hypot(a.S[there] @ b.v, a.T[there] @ b.v)
        checks["slip"].see(float(np.minimum(behind, ahead).max()), b.time)


def _same(a: Sample, b: Sample) -> np.ndarray:
    """(n,) the nearest contact of the same geoms in another sample; -1 for none."""
    found = np.full(len(a.N), -1)
    for i in range(len(a.N)):
        same = np.flatnonzero((b.geoms == a.geoms[i]).all(axis=1))
        if same.size:
            found[i] = same[np.linalg.norm(b.point[same] - a.point[i], axis=1).argmin()]
    return found


def _lasting(a: Sample, b: Sample, other: np.ndarray) -> np.ndarray:
    """(n,) which contacts of a sample touch in it and in the other one."""
    lasts = (other >= 0) & a.touching
    lasts[lasts] = b.touching[other[lasts]]
    return lasts


def _at_the_end(a: Sample, b: Sample, z: np.ndarray) -> np.ndarray:
    """(n,) impulses of the contacts at the second sample, with those of the first beside them."""
    normal = z[len(a.N) :].copy()
    later = _same(a, b)
    np.add.at(normal, later[later >= 0], z[: len(a.N)][later >= 0])
    return normal


def _explain(
    L: np.ndarray, impulse: np.ndarray, a: Sample, b: Sample
) -> tuple[float, np.ndarray, float]:
    """What NNLS leaves of an impulse, the normal impulses at both samples, and its size."""
    from scipy.optimize import nnls

    signed = np.vstack([a.S, a.T, b.S, b.T, a.E, b.E])
    rows = np.vstack([a.N, b.N, a.U, b.U, signed, -signed])
    whole = np.linalg.solve(L, impulse)
    size = float(np.linalg.norm(whole))
    if len(rows) == 0 or size == 0.0:
        return size, np.zeros(len(a.N) + len(b.N)), size
    columns = np.linalg.solve(L, rows.T)
    z, left = nnls(columns, whole, maxiter=30 * len(rows))
    return float(left), z[: len(a.N) + len(b.N)], size


class _Eye:
    """Looks at states with a model and data of its own."""

    def __init__(self, model: Any, step: float) -> None:
        own = self.model = copy.copy(model)
        own.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
        own.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
        own.opt.ccd_tolerance = min(own.opt.ccd_tolerance, EXACT_DISTANCE)
        own.opt.ccd_iterations = max(own.opt.ccd_iterations, 200)
        self.reach = REACH * max(own.stat.meansize, 1e-6)
        own.geom_gap[:] = 0.0
        own.pair_gap[:] = 0.0
        self.step = step
        self._body = np.array(model.geom_bodyid)
        self._size = np.where(np.isfinite(own.geom_rbound), own.geom_rbound, 0.0)
        self.data = mujoco.MjData(own)

    def look(
        self,
        time: float,
        qpos: np.ndarray,
        qvel: np.ndarray,
        controls: tuple[np.ndarray, np.ndarray] | None,
    ) -> Sample:
        """Measure one state, with the controls up to it and those from it on."""
        own, data = self.model, self.data
        data.time = time
        data.qpos[:], data.qvel[:] = qpos, qvel
        self._widen()
        mujoco.mj_fwdPosition(own, data)
        mujoco.mj_fwdVelocity(own, data)
        acting = [self._forces(ctrl) for ctrl in controls or (None,)]
        mujoco.mj_energyPos(own, data)
        mujoco.mj_energyVel(own, data)
        M = np.empty((own.nv, own.nv))
        mujoco.mj_fullM(own, data, M)
        J = data.efc_J.reshape(data.nefc, own.nv)
        listed = np.flatnonzero(data.contact.efc_address >= 0)
        first, dim = data.contact.efc_address[listed], data.contact.dim[listed]
        S, T = np.zeros((2, len(listed), own.nv))
        S[dim >= 3], T[dim >= 3] = J[first[dim >= 3] + 1], J[first[dim >= 3] + 2]
        kind, kinds = data.efc_type, mujoco.mjtConstraint
        limits = (kind == int(kinds.mjCNSTR_LIMIT_JOINT)) | (
            kind == int(kinds.mjCNSTR_LIMIT_TENDON)
        )
        free = np.zeros(data.nefc, dtype=bool)
        free[: data.ne + data.nf] = True
        for start, count in zip(first, dim, strict=True):
            free[start + 3 : start + count] = True
        return Sample(
            time=float(time),
            q=np.array(qpos),
            v=np.array(qvel),
            M=M,
            f=acting[-1][0],
            f_end=acting[0][0],
            power=acting[-1][1],
            power_end=acting[0][1],
            energy=float(data.energy.sum()),
            kinetic=float(data.energy[1]),
            distance=float(data.contact.dist.min(initial=self.reach)),
            touching=data.contact.dist[listed] <= self.reach,
            geoms=data.contact.geom[listed].reshape(-1, 2),
            point=data.contact.pos[listed],
            N=J[first].copy(),
            S=S,
            T=T,
            E=J[free].copy(),
            U=J[limits].copy(),
        )

    def unexplained(self, a: Sample, b: Sample) -> float:
        """Part of the way between two samples that no velocities between theirs can have gone.

        Smooth motion goes about the mean way. Where something may have been hit in between, its
        impulses may have turned the velocity as far as the energy lost allows.
        """
        own, dt, L = self.model, b.time - a.time, np.linalg.cholesky(b.M)
        reached, off = a.q.copy(), np.empty(own.nv)
        mujoco.mj_integratePos(own, reached, 0.5 * (a.v + b.v), dt)
        mujoco.mj_differentiatePos(own, off, 1.0, reached, b.q)
        first, last, change, missed = (
            float(np.linalg.norm(L.T @ x)) for x in (a.v, b.v, b.v - a.v, off)
        )
        pull = dt * float(np.linalg.norm(np.linalg.solve(L, a.f)))
        allowed = (0.5 + DOUBT) * change
        steady = _lasting(a, b, _same(a, b)).all() and _lasting(b, a, _same(b, a)).all()
        if not steady or len(a.U) or len(b.U):
            allowed += change + pull + np.sqrt(max(first**2 - last**2, 0.0))
        slack = self.reach * float(np.sqrt(b.M.diagonal().max(initial=0.0)))
        whole = dt * max(first, last, pull) + slack
        return max(missed - dt * allowed - slack, 0.0) / whole if whole > 0.0 else 0.0

    def _forces(self, ctrl: np.ndarray | None) -> tuple[np.ndarray, float]:
        """Smooth forces under these controls, and the power of the actuators."""
        own, data = self.model, self.data
        if ctrl is not None:
            data.ctrl[:] = ctrl
        mujoco.mj_fwdActuation(own, data)
        mujoco.mj_fwdAcceleration(own, data)
        return np.array(data.qfrc_smooth), float(data.qfrc_actuator @ data.qvel)

    def _widen(self) -> None:
        """Margins as wide as bodies move between samples: what they may have hit is listed."""
        own, data = self.model, self.data
        mujoco.mj_fwdKinematics(own, data)
        mujoco.mj_comVel(own, data)
        both = data.cvel[self._body]
        arm = data.geom_xpos - data.subtree_com[own.body_rootid[self._body]]
        speed = np.linalg.norm(both[:, 3:] + np.cross(both[:, :3], arm), axis=1)
        speed += np.linalg.norm(both[:, :3], axis=1) * self._size
        pull = float(np.linalg.norm(own.opt.gravity))
        reach = self.reach + self.step * (speed + self.step * pull)
        own.geom_margin[:] = reach
        own.body_margin[:] = 0.0
        np.maximum.at(own.body_margin, self._body, reach)
        own.pair_margin[:] = reach[own.pair_geom1] + reach[own.pair_geom2]
        own.jnt_margin[:] = self.reach + self.step * np.abs(data.qvel).max(initial=0.0)


def check_arrays(model: Any, time: Any, qpos: Any, qvel: Any, ctrl: Any) -> None:
    """Raise `InputError` unless the arrays are a trajectory of the model."""
    for name, array in (("time", time), ("qpos", qpos), ("qvel", qvel), ("ctrl", ctrl)):
        if array is not None and np.asarray(array).dtype.kind not in "fiu":
            raise InputError(name, f"holds {np.asarray(array).dtype}; expected numbers")
    if np.ndim(time) != 1:
        raise InputError("time", f"has shape {np.shape(time)}; expected one time of each sample")
    k = len(time)
    wanted = {"qpos": (qpos, model.nq), "qvel": (qvel, model.nv)}
    if ctrl is not None:
        wanted["ctrl"] = (ctrl, model.nu)
    for name, (array, width) in wanted.items():
        if np.shape(array) != (k, width):
            raise InputError(name, f"has shape {np.shape(array)}; {k} samples of this model have "
                             f"shape {(k, width)}")  # fmt: skip
        if not np.isfinite(array).all():
            raise InputError(name, "is not finite")
    if k < 2 or not (np.diff(time) >= 0).all():
        raise InputError("time", "must rise, and hold two samples at least")
