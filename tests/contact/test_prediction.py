"""States of constraints that the motion before a step suggests."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast._jit import entry
from holdfast.contact.arrays import ContactState
from holdfast.contact.newton import Island, relative_speeds
from holdfast.contact.prediction import FROM_MOTION, predict_states
from holdfast.contact.system import DISC, HELD, LINEAR, NOTHING, System
from holdfast.linalg.block_lu import Pattern

OPEN, STICK, SLIDE = ContactState.OPEN, ContactState.STICK, ContactState.SLIDE

# Laws: whether the first row is a normal, and what the others do.
COULOMB, NO_SLIP, VISCOUS, FRICTIONLESS = (1, DISC), (1, HELD), (1, LINEAR), (1, NOTHING)
DRY, RIGID = (0, DISC), (0, HELD)


@entry
def predict(sy, isl, free, change, u, state):
    relative_speeds(sy, isl, sy.y0, free)
    predict_states(sy, isl, free, change, u, state)


def predicted(
    laws: list[tuple[int, int]], panels: list[list[tuple[int, np.ndarray]]], tree: list[int],
    before: list[float], free: list[float], target: list[float], given: int = FROM_MOTION,
) -> list[int]:  # fmt: skip
    """States of constraints, of which each has panels (tree, rows), of trees with unit inertia."""
    n, trees = len(laws), len(tree) - 1
    row = np.cumsum([0, *(len(each[0][1]) for each in panels)])
    panel = np.cumsum([0, *map(len, panels)])
    values = [rows.ravel() for each in panels for _, rows in each]
    panel_at = np.cumsum([0, *map(len, values)])[:-1]
    numbers = np.zeros((5, row[-1]))
    sy = System(
        np.array(tree), row, panel, np.array([t for each in panels for t, _ in each]), panel_at,
        np.array(free), np.array(before), np.concatenate(values), np.array(target), numbers[0],
        np.array([law[0] for law in laws]), np.array([law[1] for law in laws]), np.ones(n),
        np.ones(n), np.ones(row[-1]),
    )  # fmt: skip
    order = np.arange(trees)
    table = np.zeros((trees, trees), dtype=np.int64)
    pattern = Pattern(order, np.diff(tree), np.array(tree[:-1]), table, table, order)
    isl = Island(np.arange(n), pattern, trees, order, np.zeros(1), np.zeros(1), np.zeros(1), row,
                 float(np.linalg.norm(free)))  # fmt: skip
    state = np.full(n, given)
    predict(sy, isl, numbers[1], np.zeros(tree[-1]), numbers[2], state)
    return state.tolist()


@pytest.mark.parametrize(
    ("law", "before", "free", "target", "state"),
    [
        (COULOMB, [0.0, 0.0], [-0.1, 0.0], [0.0, 0.0], STICK),  # at rest
        (COULOMB, [0.0, 1.0], [-0.1, 1.0], [0.0, 0.0], SLIDE),
        (COULOMB, [1.0, 0.0], [0.9, 0.0], [0.0, 0.0], OPEN),  # parts
        (COULOMB, [-0.5, 0.0], [-0.6, 0.0], [-1.0, 0.0], OPEN),  # too far to be reached
        (COULOMB, [-1.5, 0.0], [-1.6, 0.0], [-1.0, 0.0], STICK),  # hits
        (COULOMB, [0.0, 1.0], [-0.1, 1.0], [0.0, 1.0], STICK),  # on a surface that moves
        (NO_SLIP, [0.0, 1.0], [-0.1, 1.0], [0.0, 0.0], STICK),
        (VISCOUS, [0.0, 0.0], [-0.1, 0.0], [0.0, 0.0], SLIDE),
        (FRICTIONLESS, [0.0, 1.0], [-0.1, 1.0], [0.0], STICK),
        (DRY, [0.0, 0.0], [0.1, 0.0], [0.0], STICK),
        (DRY, [1.0, 0.0], [1.0, 0.0], [0.0], SLIDE),
        (RIGID, [1.0, 0.0], [1.0, 0.0], [0.0], STICK),
    ],
)
def test_prediction(
    law: tuple[int, int], before: list[float], free: list[float], target: list[float], state: int
) -> None:
    """A point mass, with rows along the axes."""
    rows = np.eye(2)[: len(target)]
    assert predicted([law], [[(0, rows)]], [0, 2], before, free, target) == [state]


def test_states_that_are_given_stay() -> None:
    given = predicted([COULOMB], [[(0, np.eye(2))]], [0, 2], [1.0, 0.0], [1.0, 0.0], [0.0, 0.0],
                      given=int(STICK))  # fmt: skip
    assert given == [STICK]


def test_bodies_that_fall_together_are_pressed_by_others() -> None:
    """What the free motion changes is that of each body: between two that fall it is nothing."""
    rows = np.eye(2)
    before, free = [0.0, 0.0, 1e-17, -1e-17], [0.0, -0.1, 0.0, -0.1]
    panels = [[(0, -rows), (1, rows)]]
    assert predicted([COULOMB], panels, [0, 2, 4], before, free, [0.0, 0.0]) == [STICK]


def test_motion_that_is_rounding_of_what_others_do_is_none() -> None:
    """Squeezed without gravity a body does not move freely; what presses it does."""
    one = np.ones((1, 1))
    found = predicted(
        [FRICTIONLESS, FRICTIONLESS], [[(0, -one), (1, one)], [(1, -one)]], [0, 1, 2],
        [0.0, -1e-16], [0.1, 0.0], [0.0, 0.0],
    )  # fmt: skip
    assert found == [STICK, STICK]
