"""What a stepper remembers of each `mujoco.MjData` between its steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.mujoco.constraints import COLUMNS
from holdfast.mujoco.structs import CONTACT_SIZE
from holdfast.mujoco.warm_start import MOST


class History:
    """What is remembered of one `mujoco.MjData` between its steps.

    Warm starts, the position and time that the last step left, poses of mocap bodies, and how
    corrections of the position went.
    """

    scalars = ("left_time", "memo_count", "kept_count", "stuck")

    def __init__(self, model: Any) -> None:
        self.left = np.full(model.nq, np.nan)
        self.mocap_pose = np.full((model.nmocap, 7), np.nan)
        self.values: dict[str, Any] = dict.fromkeys(self.scalars, 0) | {"left_time": np.nan}
        self.memo_key = np.zeros(64, dtype=np.int64)
        self.memo_impulse, self.memo_place = np.zeros((64, COLUMNS)), np.zeros((64, 3))
        self.kept_contacts = np.zeros(MOST * CONTACT_SIZE, dtype=np.uint8)

    def grow(self, size: int) -> None:
        """Make room for so many constraints; what is remembered stays."""
        for name in ("memo_key", "memo_impulse", "memo_place"):
            before = getattr(self, name)
            after = np.zeros((size, *before.shape[1:]), before.dtype)
            after[: len(before)] = before
            setattr(self, name, after)


def no_data() -> object:
    """No data yet, and none that anybody has."""
    return no_data
