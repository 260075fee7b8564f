"""The record of a step: all that the compiled stages read and write, by name.

Python fills one record per stepper and hands its address to compiled code. Arrays appear as the
address of their first entry; their lengths follow from the counts.
"""

from __future__ import annotations

from dataclasses import fields
from enum import IntEnum
from typing import Any

import numpy as np

from holdfast.mujoco import structs
from holdfast.mujoco.options import StepOptions


class Stage(IntEnum):
    """Where a compiled call begins, or after which stage it ends."""

    SMOOTH = 0  # kinematics, collision, smooth forces
    CONSTRAINTS = 1  # rows, each with its law; solve; look-ahead
    WRITE = 2  # motion and forces are written where MuJoCo keeps its own
    INTEGRATE = 3  # sensors have been read: integration, position correction
    LEAVE = 4  # Python has integrated a step in which nothing touches
    NONE = 9


class Status(IntEnum):
    """How a compiled call ended."""

    DONE = 0  # the step is taken
    REPORT = 1  # it is taken, and Python has something to say about it
    STOPPED = 2  # after the stage that the record names
    WRITTEN = 3  # forces are written; sensors are left to Python, which has callbacks to call
    FREE = 4  # nothing touches; sensors and integration are left to Python
    MORE_MEMORY = 5  # work arrays must be as long as the record says; begin with CONSTRAINTS again
    MORE_BLOCKS = 6  # trees are coupled; the inertia must be one block
    CALLBACKS = 7  # nothing was done: callbacks in Python have to be called
    BAD_TIMESTEP = 8  # nothing was done
    NOT_FINITE = 9  # nothing was done: NaN or infinity in the state or the controls
    DIVERGED = 10  # beyond MuJoCo's bounds
    FULL = 11  # MuJoCo has left out contacts for lack of memory
    UNSOLVED = 12  # the contact solve failed
    MUJOCO_ERROR = 13  # the call was ended by an error of MuJoCo
    PAUSED = 14  # between steps, so that Python may handle signals; call again to go on
    UNCOUPLE = 15  # a run begins, and the inertia must have one block for each tree again


class Inertia(IntEnum):
    """Which implicit terms the inertia of a step contains."""

    PLAIN = 0
    DAMPED = 1  # h (joint damping)
    DERIVATIVE = 2  # -h (derivative of the smooth forces), MuJoCo's implicitfast
    MUJOCO = 3  # the same, with the free velocity that mj_implicit finds
    DISCRETE = 4  # h D + h^2 K


_COUNTS = (
    "nq", "nv", "na", "nbody", "ngeom", "npair", "njnt", "ntendon", "ntree", "nmocap", "nM", "nD",
    "poly", "nsensor", "entries_of_D", "nsegment", "nmoving", "nrule", "nstate",
    "nlimit_sensor", "neq", "nmesh", "nhfield", "nboxes", "state_kind", "physics_kind",
)  # fmt: skip
_CHOICES = (
    "adhesive", "convex", "curved", "spins", "chooses_sparse", "correct",
    "rigid_equalities", "rigid_limits", "rigid_contacts", "quiet", "integrate", "default_law",
    "callbacks", "strict", "watched",
)  # fmt: skip
_STATE = (  # of the step under way
    "stage", "stop", "lookaheads", "only_read", "status", "solve_status", "begun", "sparse",
    "cone", "integrator", "disabled", "inertia_kind", "contact_free", "work_needed",
    "capacity_needed", "most_contacts", "constraints", "rows", "panels", "entries",
    "lacks", "uncertified", "inconsistent", "redone", "has_inertia", "has_gaps",
    "precise",  # whether a motion has been solved for to the certificate, within the step
    "accelerated", "stuck",
    "solves", "factorisations", "rung",
    "overlaps", "told_overlap", "told_rk4", "told_uncertified", "collided", "kept_rows",
    "kept_limits",
)  # fmt: skip
_LOOP = (  # of many steps in one call
    "more",  # steps to take after the one under way
    "last",  # whether the call ends with this step, and the user may look at what it has written
    "runs",  # address of a record `holdfast.mujoco.loop.RUNS`, or 0
    "coupled",  # whether the inertia is one block, see MORE_BLOCKS
    "now",  # address of a time, two integers
)
_STRUCTS = ("api", "model", "data", "trial", "opt")
_USER = (  # arrays of the user's model
    "dof_damping", "dof_dampingpoly", "dof_frictionloss", "tendon_frictionloss",
    "user_geom_margin", "user_pair_margin", "user_jnt_margin",
    "user_tendon_margin", "jnt_limited", "jnt_range", "geom_contype", "geom_conaffinity",
    "eq_solref", "dof_treeid", "dof_parentid", "body_treeid",
    "ten_J_rownnz", "ten_J_rowadr", "ten_J_colind", "tendon_limited", "tendon_range",
    "sensor_type", "sensor_objid", "sensor_cutoff", "sensor_adr", "body_mass", "dof_armature",
)  # fmt: skip
_OWN = (  # arrays of the private model that the step writes
    "geom_margin", "geom_gap", "body_margin", "pair_margin", "pair_gap", "jnt_margin",
    "tendon_margin", "pair_geom1", "pair_geom2",
)  # fmt: skip
SHAPES = (  # arrays of the private model that say what geoms are
    "geom_type", "geom_size", "geom_dataid", "mesh_vertadr", "mesh_vertnum", "mesh_vert",
    "mesh_graphadr", "mesh_graph", "hfield_size", "hfield_nrow", "hfield_ncol", "hfield_adr",
    "hfield_data",
)  # fmt: skip
_TABLES = (  # made once per stepper
    "segments", "geom_body", "geom_root", "geom_curved", "moving", "radius", "geom_mocap",
    "mocap_body", "mocap_size", "tree", "block", "tree_of", "tree_of_body", "last_dof", "M_at",
    "D_at", "joints", "eq_driven", "rule_first", "rule_second", "rule_law", "rule_value",
    "limit_sensors", "linked", "boxes",
)  # fmt: skip
_BUFFERS = (  # filled by the step
    "before", "velocity", "qacc", "mocap_velocity", "warned", "work", "gaps", "energy",
    "inertia", "factor", "below", "factored", "free", "row", "scratch", "displacement", "island",
    "row_numbers", "drift", "twist",
)  # fmt: skip
_HISTORY = (  # what is remembered of the data that are stepped
    "memo_key", "memo_impulse", "memo_place", "left", "mocap_pose", "kept_contacts",
)  # fmt: skip
_SIZES = (
    "work_size", "capacity", "memo_size", "memo_count", "kept_count", "nwarned", "nblock",
)  # fmt: skip
_NUMBERS = (
    "h", "size", "default_value", "left_time", "deepest", "left_over",
    "fastest", "corrected", "residual", "until",
)  # fmt: skip

RECORD = np.dtype(
    [
        (name, np.int64)
        for group in (_COUNTS, _CHOICES, _STATE, _LOOP, _STRUCTS, _USER, _OWN, SHAPES, _TABLES,
                      _BUFFERS, _HISTORY, _SIZES)
        for name in group
    ]
    + [(name, np.float64) for name in _NUMBERS]
    + [(f.name, np.int64 if f.type == "int" else np.float64) for f in fields(StepOptions)]
)  # fmt: skip

record_at: Any = structs.record_reader(RECORD)
