"""The paper's published figures, and those of a re-run of its simulator: the only typed numbers.

Source of all: E. Drumwright, "Rapidly computable viscous friction and no-slip rigid contact
models"; where it is said so, a re-run of its public sources in Octave.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Published:
    """A figure of the paper.

    Attributes:
        value: in the unit of the quantity.
        source: where it stands.
        spread: standard deviation, where one is given.
    """

    value: float
    source: str
    spread: float | None = None


_TABLE_1 = "the paper, Table 1: ten steps, everything included, mean of ten trials"

GRASP_STEWART_TRINKLE = Published(10.9681, _TABLE_1, 2.1812)  # [s]
GRASP_QP = Published(1.9892, _TABLE_1, 0.2640)  # [s]
GRASP_PPM = Published(1.6680, _TABLE_1, 0.3669)  # [s]

GRASP_PIVOTS_MEAN = Published(5.5, "the paper, grasping experiment")
GRASP_PIVOTS_MOST = Published(7, "the paper, grasping experiment")
GRASP_VARIABLES_STEWART_TRINKLE = Published(216, "the paper, grasping experiment")
GRASP_VARIABLES_NO_SLIP = Published(36, "the paper, grasping experiment")
GRASP_STEPS_STEWART_TRINKLE = Published(10, "the paper: boxes fall after around ten steps")
GRASP_STEPS_NO_SLIP = Published(100, "the paper: at least 100 steps")

_RERUN = "re-run of the original simulator in Octave"
RERUN_PPM = Published(4.9e-3, _RERUN)  # contact solve of a step [s]
RERUN_STEWART_TRINKLE_LEAST = Published(111e-3, _RERUN)  # [s]
RERUN_STEWART_TRINKLE_MOST = Published(299e-3, _RERUN)  # [s]
RERUN_PIVOTS_MEAN = Published(4.6, _RERUN)

_TABLE_2 = "the paper, Table 2: ten seconds of locomotion, whole simulation"
WALK_DRUMWRIGHT_SHELL = Published(416.3, _TABLE_2)  # [s]
WALK_NO_SLIP = Published(301.8, _TABLE_2)  # [s]
_TABLE_3 = "the paper, Table 3: ten seconds of locomotion, whole simulation"
WALK_LEMKE = Published(2936.0, _TABLE_3)  # [s]
WALK_PPM = Published(2140.0, _TABLE_3)  # [s]

_WALK_RERUN = "re-run of the original simulator, CPU time"
RERUN_WALK_DRUMWRIGHT_SHELL = Published(71.6, _WALK_RERUN)  # [s]
RERUN_WALK_NO_SLIP = Published(42.9, _WALK_RERUN)  # [s]
