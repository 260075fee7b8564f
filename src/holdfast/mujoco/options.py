"""Tolerances of a step, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from holdfast.contact.options import DEFAULT as SOLVER
from holdfast.errors import InputError


@dataclass(frozen=True)
class StepOptions:
    """Tolerances of a step; other ones of the contact solve are `holdfast.contact.Options`.

    Lengths are parts of the mean size of the model's bodies, ``model.stat.meansize``.

    Attributes:
        speed_reserve: margins are this times the distance travelled at the present speed,
        gravity_reserve: plus this times ``h^2 |g|``,
        size_reserve: plus this times the radius of a geom, or the range of a joint or tendon, for
            motion that starts within the step.
        touching: gaps below this count as closed.
        adhesion_margin: distance below which surfaces with adhesion attract each other.
        row_rounding: rows of contacts shorter than this part of the size of the scene are rounding.
        overlap_lever: part of the mean size below which the lever of a normal is short,
        overlap_turn: motion of all coordinates [rad, m] to first order above which an overlap with
            a short lever is left alone: rows say nothing about turns of more than about a radian.
        mocap_turn: a mocap body that turns by more in a step was placed, not moved [rad].
        memo_window: number of entries of the last step to search for a constraint: the order of
            constraints changes little from step to step.
        sunk: penetration above which a step is solved again; MuJoCo's collision detection is asked
            for this accuracy, too, where the model's own `ccd_tolerance` is less.
        bend: square of the turn of a coordinate in a step, in radians or mean sizes, above which
            its path is so curved that the surfaces are checked where the step ends.
        wrong_normal: part of a geom's radius by which it may reach through the plane of a contact
            with a height field; beyond that the normal is wrong.
        same_place: part of the smaller geom's radius within which points are one contact.
        similar_normal: cosine between normals of one contact.
        same_normal: cosine between normals that are the same.
        lookahead_rounds: how often a step is solved again at most.
        rough: residual of the laws that is enough to look where a step leads, and for corrections
            of the position of many bodies at once; the motion is then solved to the certificate.
        near: constraints that are closer than this are in the first solve of a step.
        certificate: residual of the laws, relative to the motion, up to which a step is certified.
        approximate: residual up to which a step is taken that misses the certificate.
        diverged: motion of a step, in mean sizes of bodies or radians, from which a solve that
            misses the certificate is a divergence: nothing is known of where such bodies meet.
        limit_rounds: how often a step is solved again because compliant limits begin to press.
        uncorrected: violations below this are not corrected.
        correction_step: largest displacement of a coordinate in one correction [m, rad], unless
            the island moves farther in the step.
        correction_lever: largest ratio of such a displacement to the violation that it corrects,
            over the mean size for angles.
        held_compliance: compliance of rows that hold in a correction, relative to their bodies.
        paid: largest part of the kinetic energy of an island that may be spent on a correction. A
            body that rolls needs ``(w h)^2`` of it, if w is the frequency at which it would rock.
        corrections: how often displacements are found at most, each after a look at the surfaces
            where the last ones lead, if what is violated is more than `sunk`.
        deep: penetration that a step begins with above which a correction is made even if no energy
            pays for it.
        helpful: part of the possible improvement that a correction must bring to count as helpful.
        slight: violations below this are always corrected, whether or not it helps.
        deep_period: deeper ones of a mechanism that a step begins with are corrected in one of so
            many steps, if it helps.
        hopeless_after: number of attempts in a row that do not help after which a warning says that
            the violation cannot be corrected.
        friction_excess: relative excess over the declared friction that causes a warning.
        no_force: impulses below this part of the largest one count as zero.
    """

    speed_reserve: float = 1.5
    gravity_reserve: float = 4.0
    size_reserve: float = 1e-3
    touching: float = 1e-6
    adhesion_margin: float = 1e-7
    row_rounding: float = 1e-10
    overlap_lever: float = 0.25
    overlap_turn: float = 1.0
    mocap_turn: float = 1.5
    memo_window: int = 64
    sunk: float = 5e-6
    bend: float = 1e-4
    wrong_normal: float = 0.25
    same_place: float = 0.05
    similar_normal: float = 0.9
    same_normal: float = 0.9999
    lookahead_rounds: int = 10
    rough: float = 1e-2
    near: float = 1e-4
    certificate: float = SOLVER.certificate
    approximate: float = SOLVER.approximate
    diverged: float = 1e3
    limit_rounds: int = 10
    uncorrected: float = 1e-6
    correction_step: float = 0.1
    correction_lever: float = 20.0
    held_compliance: float = 1e-7
    paid: float = 0.5
    corrections: int = 12
    deep: float = 1e-4
    helpful: float = 0.1
    slight: float = 1e-3
    deep_period: int = 4
    hopeless_after: int = 3
    friction_excess: float = 1e-6
    no_force: float = 1e-9

    def __post_init__(self) -> None:
        for field in fields(self):
            value, whole = getattr(self, field.name), field.type == "int"
            kind = int | np.integer if whole else int | float | np.number
            if isinstance(value, bool) or not isinstance(value, kind) or not 0 < value < np.inf:
                expected = "a positive integer" if whole else "a positive number"
                raise InputError(f"options.{field.name}", f"is {value!r}; expected {expected}")


DEFAULT = StepOptions()
