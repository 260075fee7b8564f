"""Tolerances of a step, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from holdfast.errors import InputError


@dataclass(frozen=True)
class StepOptions:
    """Tolerances of a step; those of the contact solve are `holdfast.contact.Options`.

    Lengths are parts of the mean size of the model's bodies, ``model.stat.meansize``.

    Attributes:
        speed_reserve: margins reach this times the way at the present speed.
        gravity_reserve: and this times ``h^2 |g|``.
        size_reserve: and this times the radius of a geom, or the range of a joint or tendon, for
            motion that starts within the step.
        touching: gaps below it are closed.
        adhesion_margin: surfaces closer than this attract each other, if they are to.
        closed: contacts nearer than this touch, for contact models that know no gaps.
        row_rounding: rows of contacts shorter than this part of the size of the scene are rounding.
        narrow_pyramid: edges of a pyramid with less friction are too close to tell its axes.
        mocap_turn: a mocap body that turns by more in a step was placed, not moved [rad].
        memo_window: entries of the last step that are looked at for a constraint: lists have
            about the same order from step to step.
        sunk: surfaces may sink in by this before a step is solved again.
        bend: squared turn of a coordinate in a step, in radians or mean sizes, that bends its
            path so much that the surfaces are looked at where it leads.
        same_place: part of the smaller geom's radius within which points are one contact.
        similar_normal: cosine between normals of one contact.
        same_normal: cosine between normals that are the same.
        lookahead_rounds: how often a step is solved again.
        near: constraints that are closer are in the first solve of a step.
        limit_rounds: how often it is solved again because compliant limits begin to press.
        uncorrected: violations below it are left as they are.
        correction_step: a correction moves no coordinate by more [m, rad]: rows are linear.
        correction_lever: nor by more than this times the violation, over the mean size for angles.
        held_compliance: of rows that hold in a correction, as a part of that of their bodies.
        paid: largest part of the kinetic energy of an island that pays for a correction.
        deep: what nobody can pay for and is deeper is lifted out.
        helpful: part of what it may remove that a correction removes, if it helps.
        slight: corrections of less are not judged, and always made.
        stuck_after: corrections in a row that do not help, after which they become fewer.
        hopeless_after: the same, after which it is said that what is violated stays so.
        seldom: most steps between corrections that have not helped.
        friction_excess: relative excess over the declared friction that is warned of.
        no_force: part of the largest impulse that counts as none.
    """

    speed_reserve: float = 1.5
    gravity_reserve: float = 4.0
    size_reserve: float = 1e-3
    touching: float = 1e-9
    adhesion_margin: float = 1e-7
    closed: float = 1e-7
    row_rounding: float = 1e-10
    narrow_pyramid: float = 1e-3
    mocap_turn: float = 1.5
    memo_window: int = 64
    sunk: float = 1e-5
    bend: float = 1e-4
    same_place: float = 0.05
    similar_normal: float = 0.9
    same_normal: float = 0.9999
    lookahead_rounds: int = 10
    near: float = 1e-4
    limit_rounds: int = 10
    uncorrected: float = 1e-6
    correction_step: float = 0.02
    correction_lever: float = 20.0
    held_compliance: float = 1e-7
    paid: float = 0.02
    deep: float = 1e-4
    helpful: float = 0.1
    slight: float = 1e-3
    stuck_after: int = 5
    hopeless_after: int = 10
    seldom: int = 64
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
