"""States of constraints that the motion before a step suggests."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.contact.arrays import Arrays, ContactState, LawKind
from holdfast.contact.prediction import predict_states

OPEN, STICK, SLIDE = ContactState.OPEN, ContactState.STICK, ContactState.SLIDE


def one_contact(law: LawKind, free: list[float], target: list[float]) -> Arrays:
    """A point mass, with rows along the axes."""
    m, rows = len(free), len(target)
    return Arrays(
        np.array([0, m]), np.array([0, m * m]), np.eye(m).ravel(), np.array(free),
        np.array([int(law)]), np.array([0, rows]), np.array([0, 1]), np.array([0]), np.array([0]),
        np.eye(m)[:rows].ravel(), np.array(target), np.zeros(rows), np.zeros(rows), np.zeros(rows),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("law", "before", "free", "target", "state"),
    [
        (LawKind.COULOMB, [0.0, 0.0], [-0.1, 0.0], [0.0, 0.0], STICK),  # at rest
        (LawKind.COULOMB, [0.0, 1.0], [-0.1, 1.0], [0.0, 0.0], SLIDE),
        (LawKind.COULOMB, [1.0, 0.0], [0.9, 0.0], [0.0, 0.0], OPEN),  # parts
        (LawKind.COULOMB, [-0.5, 0.0], [-0.6, 0.0], [-1.0, 0.0], OPEN),  # too far to be reached
        (LawKind.COULOMB, [-1.5, 0.0], [-1.6, 0.0], [-1.0, 0.0], STICK),  # hits
        (LawKind.COULOMB, [0.0, 1.0], [-0.1, 1.0], [0.0, 1.0], STICK),  # on a surface that moves
        (LawKind.NO_SLIP, [0.0, 1.0], [-0.1, 1.0], [0.0, 0.0], STICK),
        (LawKind.VISCOUS, [0.0, 0.0], [-0.1, 0.0], [0.0, 0.0], SLIDE),
        (LawKind.FRICTIONLESS, [0.0, 1.0], [-0.1, 1.0], [0.0], STICK),
        (LawKind.DRY, [0.0, 0.0], [0.1, 0.0], [0.0], STICK),
        (LawKind.DRY, [1.0, 0.0], [1.0, 0.0], [0.0], SLIDE),
        (LawKind.RIGID, [1.0, 0.0], [1.0, 0.0], [0.0], STICK),
    ],
)
def test_prediction(
    law: LawKind, before: list[float], free: list[float], target: list[float], state: int
) -> None:
    found = np.full(1, -1)
    predict_states(one_contact(law, free, target), np.array(before), found)
    assert found[0] == state


def test_bodies_that_fall_together_are_pressed_by_others() -> None:
    """What the free motion changes is that of each body: between two that fall it is nothing."""
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    free, before = np.array([0.0, -0.1, 0.0, -0.1]), np.array([0.0, 0.0, 1e-17, -1e-17])
    a = Arrays(
        np.array([0, 2, 4]), np.array([0, 4, 8]), np.tile(np.eye(2).ravel(), 2), free,
        np.array([int(LawKind.COULOMB)]), np.array([0, 2]), np.array([0, 2]), np.array([0, 1]),
        np.array([0, 4]), np.concatenate([-rows.ravel(), rows.ravel()]), *np.zeros((4, 2)),
    )  # fmt: skip
    found = np.full(1, -1)
    predict_states(a, before, found)
    assert found[0] == STICK


def test_motion_that_is_rounding_of_what_others_do_is_none() -> None:
    """Squeezed without gravity a body does not move freely; what presses it does."""
    a = Arrays(
        np.array([0, 1, 2]), np.array([0, 1, 2]), np.ones(2), np.array([0.1, 0.0]),
        np.full(2, int(LawKind.FRICTIONLESS)), np.array([0, 1, 2]), np.array([0, 2, 3]),
        np.array([0, 1, 1]), np.array([0, 1, 2]), np.array([-1.0, 1.0, -1.0]), *np.zeros((4, 2)),
    )  # fmt: skip
    found = np.full(2, -1)
    predict_states(a, np.array([0.0, -1e-16]), found)
    assert list(found) == [STICK, STICK]
