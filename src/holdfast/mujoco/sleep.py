"""Trees that sleep: MuJoCo's own sleeping, with the contacts of the step.

With the flag `sleep` MuJoCo leaves out of its pipeline what rests: `mj_fwdKinematics` wakes trees
that the user has pushed or moved, and the integrators let islands fall asleep whose trees have been
slow for a while. The step uses both. What is left to do here:

* a tree that another one can reach in the step wakes up;
* trees that sleep have no velocity, and take no part in the look-ahead or in position correction;
* islands are found from the list that the step leaves, so that `mj_Euler` knows who may sleep.

Nothing sleeps with adhesion, whose forces are computed with other margins than contacts are listed
with, nor with RK4: the stages of `mj_RungeKutta` wake trees that gravity acts on.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.mujoco import c_api, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.structs import CONTACT_SIZE, contact_at, data_at, integers

SLEEP = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
NO_ISLANDS = int(mujoco.mjtDisableBit.mjDSBL_ISLAND)


@kernel
def any_asleep(s: Any) -> bool:
    """Return whether any tree sleeps."""
    return data_at(s.data).nv_awake < s.nv


@kernel
def sleeping_tree(s: Any, geom: int) -> int:
    """Return the tree of a geom if it is asleep, else -1."""
    body = integers(s.geom_body, 1, s.ngeom)[0, geom]
    tree = integers(s.body_treeid, 1, s.nbody)[0, body]
    awake = integers(data_at(s.data).tree_awake, 1, s.nv)[0]
    return tree if tree >= 0 and awake[tree] == 0 else -1


@kernel
def pair_sleeps(s: Any, c: Any) -> bool:
    """Return whether one of the bodies of a contact is asleep."""
    return sleeping_tree(s, c.geom[0]) >= 0 or sleeping_tree(s, c.geom[1]) >= 0


@kernel
def rouse_reached(s: Any) -> bool:
    """Mark the trees that are asleep and in contact with one that is awake; whether there are any.

    The mark is the one that MuJoCo sets on trees whose position the user has changed.
    """
    d, found = data_at(s.data), False
    awake = integers(d.tree_awake, 1, s.nv)[0]
    for i in range(d.ncon):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        for side in range(2):
            tree = sleeping_tree(s, c.geom[side])
            if tree >= 0:
                awake[tree] = 1
                found = True
    return found


@kernel
def wake(s: Any, api: Any) -> None:
    """Wake the trees that others reach, those that these reach, and so on.

    Trees that are tied to others by equality constraints are woken by `mj_fwdPosition`, which takes
    it as an error if a tree within its margins does not sleep in the same island.
    """
    d, awake = data_at(s.data), -1
    while any_asleep(s) and awake != d.nv_awake:
        awake = d.nv_awake
        c_api.call(api.mj_collision, s.model, s.data)
        if rouse_reached(s):
            c_api.call(api.mj_fwdKinematics, s.model, s.data)
        elif s.neq > 0:
            c_api.call(api.mj_fwdPosition, s.model, s.data)


@kernel
def hold(s: Any, motion: np.ndarray) -> None:
    """Set the coordinates of a motion to zero that are of trees which sleep."""
    if not any_asleep(s):
        return
    awake = integers(data_at(s.data).tree_awake, 1, s.nv)[0]
    tree = integers(s.dof_treeid, 1, s.nv)[0]
    for j in range(s.nv):
        if awake[tree[j]] == 0:
            motion[j] = 0.0


@kernel
def collide_trial(s: Any, api: Any) -> None:
    """List the contacts of the trial data, in which all trees are awake, without those that sleep.

    What a step hits beyond its reach wakes up in the next one.
    """
    c_api.call(api.mj_collision, s.model, s.trial)
    if not any_asleep(s):
        return
    trial, kept = data_at(s.trial), 0
    for i in range(trial.ncon):
        at = trial.contact + i * CONTACT_SIZE
        if not pair_sleeps(s, contact_at(at)):
            structs.copy(trial.contact + kept * CONTACT_SIZE, at, CONTACT_SIZE)
            kept += 1
    trial.ncon = kept


@kernel
def find_islands(s: Any, api: Any) -> None:
    """Find the islands in which trees may fall asleep, from the constraints that are listed."""
    if structs.option_at(s.opt).enableflags & SLEEP:
        c_api.call(api.mj_island, s.model, s.data)


def make_awake(own: Any) -> Any:
    """Data of a model in which all trees are awake, and static bodies have their places."""
    given = own.opt.enableflags
    own.opt.enableflags = given & ~SLEEP
    data = mujoco.MjData(own)
    mujoco.mj_kinematics(own, data)
    own.opt.enableflags = given
    return data
