"""A saved run, checked again by code that did not make it.

Nothing of holdfast's solvers or steppers is used: positions are set, MuJoCo says where surfaces are
and how rows and energies look, and NNLS asks whether contacts could have given the impulse between
two samples. So any trajectory can be audited, whoever made it.

===============  ==================================================================================
check            what is measured
===============  ==================================================================================
distance         smallest signed distance between surfaces at any sample, and on the way from one
                 to the next of bodies that change sides [m]
motion           part of the displacement between two samples that their velocities do not explain
drift            the same of the whole way while nothing happens: small parts add up
fall             part of the change of momentum of bodies that nothing can have touched, and that
                 smooth forces with the model's own masses do not explain; beyond what forces
                 and inertia change between the samples
sustained        the same of bodies whose contacts last, while forces stay as they are: what no
                 pushing contact, joint or smooth force explains, island by island
momentum         the same of all other bodies that touch, relative to the largest of what goes into
                 it; impacts within the interval leave more unexplained
complementarity  speed at which a contact parts that pushed, weighted by its impulse [m/s]:
                 impacts are inelastic, and what rests does not jump; the same of limits
limit            how far a joint or tendon is beyond its limit at any sample [m or rad]
equality         part of the motion along equalities that MuJoCo's law of them does not explain,
                 ``J dv + R p = dt a_ref``, relative; those that are kept exactly pass as well
energy           largest gain between two samples beyond the work of actuators, relative; their
                 power is known at the samples alone, and the benefit of that doubt is given
slip             fastest sliding of a lasting contact that pushes [m/s], by its rows before the step
                 or behind, whichever is less: time stepping stops the one, an ODE the other;
                 judged where asked for
===============  ==================================================================================

Between samples nothing is known. Forces are averaged, and what may have been hit on the way may
have pushed, along its rows at the two samples; the momentum check allows for what that leaves. But
a contact that is open at the second sample has pushed only if motion or smooth forces can have
opened it since: bodies do not hover.

Friction obeys the law that is asked for: within the cone that the model declares, and on its edge
against the motion where a contact slides all the time (Coulomb); any force, but no sliding (no
slip); drag (viscous); or none. Torsion, rolling and dry friction of joints are within their bounds,
and at them where they last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from holdfast import _html
from holdfast.contact.laws import Law
from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco
from holdfast.tools._impulses import COARSE, QUICK, judge_impulse
from holdfast.tools._samples import Eye, Path, Sample

UNIT = 1e-5  # by which the length of a quaternion may be off: files may be in single precision
ROUNDED = 1e-5  # of an interval: times that are known to less come from no run
SEEN = 1e-6  # of an interval: rounding of times that is told
ROUNDING = 1e-12  # of positions, relative to the extent: what it lifts is no gain of energy
_WITH_QUATERNION = (int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL))


@dataclass(frozen=True)
class Tolerances:
    """Largest values that pass."""

    distance: float = 1e-8
    """Deepest penetration [m]."""
    fall: float = 1e-3
    """Unexplained part of a change of momentum of what nothing touches, relative."""
    sustained: float = 1e-3
    """The same of bodies whose contacts last and change nothing."""
    momentum: float = 0.02
    """Unexplained part of a change of momentum, relative."""
    drift: float = 1e-3
    """Unexplained part of the whole way while nothing happens, relative."""
    motion: float = 0.02
    """Unexplained part of a displacement, relative."""
    limit: float = 1e-8
    """How far a joint or tendon is beyond its limit [m or rad]."""
    equality: float = 0.05
    """Part of the motion along equalities that their law does not explain, relative."""
    complementarity: float | None = None
    """Parting of a contact that pushed [m/s]; what a free fall gains in two samples if None."""
    energy: float = 1e-6
    """Gain of energy between two samples, relative to the largest kinetic energy."""
    slip: float = 1e-6
    """Sliding of a contact that pushes, where there shall be none [m/s]."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value is None and name == "complementarity":
                continue
            number = None if isinstance(value, bool) else value
            if not isinstance(number, int | float) or not 0.0 <= number < np.inf:
                raise InputError(name, f"is {value!r}; expected a tolerance, finite and not "
                                 "negative")  # fmt: skip


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


HEADINGS = ("check", "worst", "at, s", "passes below", "verdict")


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

    def rows_as_text(self) -> list[tuple[str, ...]]:
        """Cells of a table with `HEADINGS`, one row per check."""
        return [
            (c.name, f"{c.worst:.3g} {c.unit}".strip(),
             "" if np.isnan(c.time) else f"{c.time:.6g}", f"{c.tolerance:.3g}",
             ("pass" if c.passed else "FAIL") if c.judged else "not judged")
            for c in self.checks
        ]  # fmt: skip

    def _repr_html_(self) -> str:
        said = f"{self.samples} samples, verdict: {'pass' if self.passed else 'FAIL'}"
        return _html.table(HEADINGS, self.rows_as_text(), title=said, note=" ".join(self.notes))


def verify(
    model: Any,
    time: np.ndarray,
    qpos: np.ndarray,
    qvel: np.ndarray,
    ctrl: np.ndarray | None = None,
    *,
    no_slip: bool = False,
    law: Law | None = None,
    tolerances: Tolerances | None = None,
    progress: Callable[[float], None] = lambda _: None,
) -> Verdict:
    """Check a trajectory.

    Args:
        model: `mujoco.MjModel` of the run; not changed.
        time: (k,) times of the samples [s].
        qpos: (k, nq) positions.
        qvel: (k, nv) velocities.
        ctrl: (k, nu) controls that held from each sample on; None for zeros.
        no_slip: whether to require that loaded contacts do not slide.
        law: law of contacts for which the model sets none; None allows any friction.
        tolerances: largest values that pass.
        progress: called with the fraction that is done.
    """
    tol = tolerances or Tolerances()
    check_arrays(model, time, qpos, qvel, ctrl)
    time = np.asarray(time) if np.asarray(time).dtype.kind == "f" else np.asarray(time, float)
    if time.dtype == float and _rounding(time) > ROUNDED:
        raise InputError(
            "time", f"ends at {time[-1]:g} s, where intervals of {np.diff(time).min():g} s are "
            f"known to {_rounding(time):.1g} of their length; let it start at 0"
        )  # fmt: skip
    step, pull = float(np.diff(time).max()), float(np.linalg.norm(model.opt.gravity)) or 1.0
    eye = Eye(model, step, law)
    parting = 2.0 * step * pull if tol.complementarity is None else tol.complementarity
    checks = {
        "distance": Check("distance", "m", tol.distance, worst=-np.inf),
        "motion": Check("motion", "", tol.motion),
        "drift": Check("drift", "", tol.drift),
        "fall": Check("fall", "", tol.fall),
        "sustained": Check("sustained", "", tol.sustained),
        "momentum": Check("momentum", "", tol.momentum),
        "complementarity": Check("complementarity", "m/s", parting),
        "limit": Check("limit", "m or rad", tol.limit),
        "equality": Check("equality", "", tol.equality, judged=model.neq > 0),
        "energy": Check("energy", "", tol.energy),
        "slip": Check("slip", "m/s", tol.slip, judged=no_slip),
    }
    verdict = Verdict(list(checks.values()), len(time))
    verdict.notes += _cannot(model, time, parting, tol)
    if model.na:
        checks["energy"].judged = False
        verdict.notes.append("energy is not judged: activations of actuators are not in the file")
    if _outrun(model, time):
        checks["energy"].judged = False
    gains, largest, before, path = [], 0.0, None, Path(eye)
    for k in range(len(time)):
        controls = None if ctrl is None else (ctrl[max(k - 1, 0)], ctrl[k])
        now = eye.look(time[k], qpos[k], qvel[k], controls)
        checks["distance"].see(-now.distance, now.time)
        checks["limit"].see(abs(float(now.U_gap.min(initial=0.0))), now.time)
        largest = max(largest, now.kinetic)
        if before is not None:
            dt = now.time - before.time
            work = dt * max(before.power, now.power_end)
            work += max(judge_impulse(before, now, checks, eye), 0.0)
            gain = now.energy - before.energy - work
            gains.append((gain, now.time, _first_order(before, gain, work, dt, eye)))
            checks["motion"].see(eye.unexplained(before, now), now.time)
            checks["drift"].see(path.unexplained(before, now), now.time)
            checks["distance"].see(eye.through(before, now), now.time)
        before = now
        progress((k + 1) / len(time))
    rounding = ROUNDING * pull * float(model.body_mass.sum()) * model.stat.extent
    for gain, at, _ in gains:
        checks["energy"].see(max(gain - rounding, 0.0) / (largest or 1.0), at)
    if not checks["energy"].passed and all(gain <= doubt for gain, _, doubt in gains):
        verdict.notes.append(
            "energy: no gain is larger than what a step of first order may gain "
            "(h^2 f' M^-1 f / 2, and more where inertia turns); for such a run raise the tolerance"
        )
    return verdict


def _first_order(before: Sample, gain: float, work: float, dt: float, eye: Eye) -> float:
    """Energy that a scheme of first order may gain, ``h^2 f' M^-1 f / 2`` and what inertia adds.

    The latter is what such a step gains where nothing touches: its inertia turns with the bodies.
    """
    least = 0.5 * dt**2 * float(before.f @ np.linalg.solve(before.M, before.f))
    if gain <= least:
        return least
    return least + max(eye.ahead(before, dt).energy - before.energy - work, 0.0)


def _rounding(time: np.ndarray) -> float:
    """Rounding of the times, relative to the shortest interval."""
    return float(np.spacing(np.abs(time).max()) / np.diff(time).min())


def _cannot(model: Any, time: np.ndarray, parting: float, tol: Tolerances) -> list[str]:
    """What cannot be checked at this sampling, and of this model."""
    notes = [
        f"not seen: jumps slower than {parting:.2g} m/s, and less than {tol.momentum:.2g} of what "
        "goes into an impact, such as masses that are wrong by so much"
    ]
    h, step = float(model.opt.timestep), float(np.diff(time).max())
    if _rounding(time) > SEEN:
        notes.append(f"times are rounded to {_rounding(time):.1g} of an interval: so are forces")
    if step > COARSE * h:
        notes.append(
            f"samples are up to {step:.3g} s apart, {step / h:.3g} time steps: contacts that met "
            "and parted in between are not seen"
        )
    if _outrun(model, time):
        notes.append(
            "equalities act faster than the samples follow each other: neither they nor the "
            "energy, which they may put in, are judged"
        )
    if model.nmocap:
        notes.append("poses of mocap bodies are not in the file: they are taken to stand")
    return notes


def _outrun(model: Any, time: np.ndarray) -> bool:
    """Whether equalities act faster than samples show."""
    return bool(model.neq) and np.diff(time).max() > QUICK * float(model.eq_solref[:, 0].min()) > 0


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
    for j in np.flatnonzero(np.isin(model.jnt_type, _WITH_QUATERNION)):
        first = int(model.jnt_qposadr[j]) + 3 * (model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE)
        size = np.linalg.norm(np.asarray(qpos)[:, first : first + 4], axis=1)
        bad = np.flatnonzero(np.abs(size - 1.0) > UNIT)
        if bad.size:
            name = model.joint(j).name or f"joint {j}"
            raise InputError("qpos", f"holds a quaternion of length {size[bad[0]]:.6g} in sample "
                             f"{bad[0]} ({name}); expected 1")  # fmt: skip
    if k < 2 or not np.isfinite(time).all() or not (np.diff(time) > 0).all():
        raise InputError(
            "time", "must increase from sample to sample and have at least two entries"
        )
