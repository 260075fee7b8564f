"""The memory of a stepper: the record that compiled code reads, and the arrays it points to."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from holdfast.contact.system import FREE_BODY
from holdfast.mujoco import c_api, smooth, structs
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.history import History, no_data
from holdfast.mujoco.loop import FULL_PHYSICS
from holdfast.mujoco.pair_laws import PairLaws, law_kind
from holdfast.mujoco.private_model import PrivateModel
from holdfast.mujoco.reach import FACE, LINE
from holdfast.mujoco.record import RECORD, SHAPES
from holdfast.mujoco.sleep import make_awake
from holdfast.mujoco.support import check_data
from holdfast.mujoco.writeback import LIMIT_SENSORS

_SINGLE = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
_BODY_EQUALITIES = (int(mujoco.mjtEq.mjEQ_CONNECT), int(mujoco.mjtEq.mjEQ_WELD))
_REDUCED = (int(mujoco.mjtGeom.mjGEOM_CYLINDER), int(mujoco.mjtGeom.mjGEOM_MESH))
_CONVEX = (*_REDUCED, int(mujoco.mjtGeom.mjGEOM_ELLIPSOID), int(mujoco.mjtGeom.mjGEOM_HFIELD))


class StepMemory:
    """The record of a model, its arrays, and the histories of the data that are stepped.

    Args:
        model: `mujoco.MjModel`.
        laws: laws of its contacts.
    """

    def __init__(self, model: Any, laws: PairLaws) -> None:
        self._laws = laws
        self.private = PrivateModel(model)
        self.record = np.zeros(1, dtype=RECORD)
        self._keep: dict[str, Any] = {}  # arrays whose addresses the record has
        self._histories: dict[int, tuple[weakref.ref[Any], History]] = {}
        self._history: History | None = None
        self._data: Any = no_data
        self._fill_record(model)

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            self.record[name] = value

    def _get(self, name: str) -> Any:
        return self.record[name][0]

    def _put(self, **arrays: Any) -> None:
        """Let the record have the addresses of arrays of ours."""
        for name, array in arrays.items():
            array = np.ascontiguousarray(array)
            self._keep[name] = array
            self.record[name] = array.ctypes.data

    def _fill_record(self, model: Any) -> None:
        """Tell compiled code all that does not change from step to step."""
        private, own = self.private, self.private.model
        self._set(
            **{name: getattr(own, name) for name in (
                "nq", "nv", "na", "nbody", "ngeom", "npair", "njnt", "ntendon", "nmocap", "nsensor",
                "neq", "nmesh", "nhfield",
            )},
            nM=len(own.M_colind), entries_of_D=len(own.D_colind),
            poly=own.dof_dampingpoly.shape[1], nsegment=len(private.segments),
            nmoving=len(private.moving), nstate=mujoco.mj_stateSize(own, smooth.STATE_KIND),
            adhesive=private.adhesive, spins=private.spins,
            state_kind=_without_empty(own, smooth.STATE_KIND),
            physics_kind=_without_empty(own, FULL_PHYSICS),
            watched=own.nsensor > 0 or own.nplugin > 0,
            chooses_sparse=_chooses_sparse(own), size=private.size, left_time=np.nan,
            api=c_api.functions().ctypes.data, model=own._address,
            opt=structs.option_address(own),
        )  # fmt: skip
        for name in ("geom_margin", "pair_margin", "jnt_margin", "tendon_margin"):
            self._set(**{f"user_{name}": getattr(model, name).ctypes.data})  # keeps no model
        for name in ("dof_damping", "dof_dampingpoly", "dof_frictionloss", "tendon_frictionloss",
                     "jnt_limited", "jnt_range", "geom_contype", "geom_conaffinity", "eq_solref",
                     "dof_treeid", "dof_parentid", "body_treeid", "ten_J_rownnz", "ten_J_rowadr",
                     "ten_J_colind", "tendon_limited", "tendon_range", "sensor_type",
                     "sensor_objid", "sensor_cutoff", "sensor_adr", "body_mass",
                     "dof_armature"):  # fmt: skip
            self._set(**{name: getattr(model, name).ctypes.data})
        for name in ("geom_margin", "geom_gap", "body_margin", "pair_margin", "pair_gap",
                     "jnt_margin", "tendon_margin", "pair_geom1", "pair_geom2",
                     *SHAPES):  # fmt: skip
            self._set(**{name: getattr(own, name).ctypes.data})
        root = np.array(model.body_rootid)[private.geom_body]
        mocap = np.array(model.body_mocapid)
        of_geom = np.where(root > 0, mocap[root], -1) if model.ngeom else root
        single = np.isin(model.jnt_type, _SINGLE)
        sensors = np.flatnonzero(np.isin(model.sensor_type, LIMIT_SENSORS))
        capsule = model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE
        reduced = np.isin(model.geom_type, _REDUCED)
        curved = FACE * reduced + LINE * capsule
        boxes = _pairs_of_boxes(model)
        kind, value = law_kind(self._laws.default)
        kinds, values = self._laws.numbers()
        self._set(default_law=kind, default_value=value, nrule=len(kinds), nboxes=len(boxes),
                  nlimit_sensor=len(sensors), curved=bool(reduced.any()),
                  convex=bool(np.isin(model.geom_type, _CONVEX).any()))  # fmt: skip
        self._put(
            segments=private.segments, geom_body=private.geom_body.astype(np.int32),
            geom_root=root.astype(np.int32), geom_curved=curved.astype(np.int64),
            moving=private.moving.astype(np.int64), radius=private.radius,
            geom_mocap=of_geom.astype(np.int64),
            mocap_body=_bodies_of_mocaps(mocap), mocap_size=_sizes_of_mocaps(model, of_geom),
            joints=np.stack([single, model.jnt_qposadr, model.jnt_dofadr], axis=1).astype(np.int64),
            eq_driven=_driven(model), rule_first=self._laws.first, rule_second=self._laws.second,
            rule_law=kinds, rule_value=values, limit_sensors=sensors.astype(np.int64),
            before=np.zeros(self._get("nstate")), velocity=np.zeros(own.nv),
            qacc=np.zeros(own.nv), mocap_velocity=np.zeros((own.nmocap, 6)),
            warned=np.zeros((0, 2), dtype=np.int64), free=np.zeros(own.nv), row=np.zeros(own.nv),
            last_dof=_last_dofs(model), boxes=boxes,
            energy=np.zeros(3 * own.nbody), displacement=np.zeros(own.nv),
            drift=np.zeros(3), twist=np.zeros((own.nv, 9)), now=np.zeros(2, dtype=np.int64),
            row_numbers=np.zeros(2 * _most_rows(own)),
        )  # fmt: skip
        self._uncouple()
        self._grow(0, 16)
        self._trial = make_awake(own)
        self._set(trial=self._trial._address)

    def _uncouple(self) -> None:
        """Let the inertia have one block for each kinematic tree."""
        own = self.private.model
        tree = np.searchsorted(own.dof_treeid, np.arange(own.ntree + 1))
        self._set_blocks(tree.astype(np.int64))
        self._set(coupled=0)

    def _set_blocks(self, tree: np.ndarray) -> None:
        """Lay out the inertia: one dense block for the coordinates between entries of `tree`."""
        model = self.private.model
        size = np.diff(tree)
        block = np.concatenate([[0], np.cumsum(size**2)]).astype(np.int64)
        of_dof = np.searchsorted(tree, np.arange(model.nv), side="right") - 1
        body_tree = np.array(model.body_treeid, dtype=np.int64)
        if len(tree) != model.ntree + 1:
            body_tree = np.where(body_tree >= 0, 0, -1)
        in_M, in_D = smooth.places_of_entries(model, tree, block)
        scratch = np.zeros(len(tree) + 256)
        kind = model.jnt_type[model.dof_jntid[tree[:-1]]]
        free = (kind == mujoco.mjtJoint.mjJNT_FREE) & (size == FREE_BODY)
        self._put(tree=tree, block=block, tree_of=of_dof.astype(np.int64), tree_of_body=body_tree,
                  M_at=in_M, D_at=in_D, inertia=np.zeros(block[-1]), scratch=scratch,
                  factor=np.zeros(block[-1]), factored=np.zeros(len(size), dtype=np.int64),
                  island=np.zeros(len(size), dtype=np.int64), linked=(~free).astype(np.int64),
                  below=np.zeros(block[-1] + model.nv, dtype=np.int64))  # fmt: skip
        self._set(ntree=len(size), nblock=block[-1], nD=len(in_D))

    def _grow(self, work: int, contacts: int) -> None:
        """Make room for constraints; whatever is read is complete before its size is known."""
        size, capacity = int(self._get("work_size")), int(self._get("capacity"))
        if work >= size:
            made = np.zeros(int(1.5 * work) + 1024)
            self._set(work_size=0)
            self._put(work=made)
            self._set(work_size=len(made))
        if contacts >= capacity:
            gaps = np.zeros(2 * contacts + 64)
            gaps[:capacity] = self._keep["gaps"][:capacity] if capacity else 0.0
            self._set(capacity=0)
            self._put(gaps=gaps)
            self._set(capacity=len(gaps))
        if self._history is not None:
            self._history_room()

    def _history_room(self) -> None:
        """Let the history of the present data be as long as the list of constraints may be."""
        history, wanted = self._history, int(self._get("constraints")) + self._get("capacity")
        if history is not None and wanted > len(history.memo_key):
            self._set(memo_size=0)
            history.grow(int(wanted))
            self._put_history(history)

    def _put_history(self, history: History) -> None:
        self._put(memo_key=history.memo_key, memo_impulse=history.memo_impulse,
                  memo_place=history.memo_place, left=history.left,
                  mocap_pose=history.mocap_pose,
                  kept_contacts=history.kept_contacts)  # fmt: skip
        self._set(memo_size=len(history.memo_key))

    def _attach(self, data: Any) -> None:
        """Step these data from now on, with their own history."""
        check_data(self.private.model, data)
        if self._history is not None:
            self._history.values = {name: self._get(name) for name in History.scalars}
        self._data, self._history = no_data, None
        self._histories = {k: v for k, v in self._histories.items() if v[0]() is not None}
        found = self._histories.get(id(data))
        if found is None or found[0]() is not data:
            found = weakref.ref(data), History(self.private.model)
            self._histories[id(data)] = found
        self._set(memo_size=0, data=data._address)
        self._put_history(found[1])
        self._set(**found[1].values)
        self._history = found[1]
        self._data = found[0]


def _most_rows(own: Any) -> int:
    """Most rows that the constraints of a model have which are no contacts."""
    return 6 * own.neq + own.nv + 2 * own.njnt + 3 * own.ntendon


def _without_empty(model: Any, kind: int) -> int:
    """A kind of state without the parts of which the model has none: MuJoCo looks at each."""
    parts = (1 << k for k in range(int(mujoco.mjtState.mjNSTATE)))
    return sum(part for part in parts if kind & part and mujoco.mj_stateSize(model, part))


def _last_dofs(model: Any) -> np.ndarray:
    """(nbody,) last coordinate that moves each body, -1 if none does."""
    last = np.full(model.nbody, -1, dtype=np.int64)
    for body in range(1, model.nbody):
        own = model.body_dofadr[body] + model.body_dofnum[body] - 1
        last[body] = own if model.body_dofnum[body] else last[model.body_parentid[body]]
    return last


def _chooses_sparse(own: Any) -> bool:
    """Whether MuJoCo lists rows by their entries where it is free to choose."""
    given, own.opt.jacobian = own.opt.jacobian, smooth.AUTO
    chosen = bool(mujoco.mj_isSparse(own))
    own.opt.jacobian = given
    return chosen


def _pairs_of_boxes(model: Any) -> np.ndarray:
    """Boxes (k, 2) that can collide as far as their bodies are concerned, and those of pairs."""
    boxes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_BOX)
    one, other = (boxes[each] for each in np.triu_indices(len(boxes), 1))
    body, weld = np.array(model.geom_bodyid), np.array(model.body_weldid)
    parent = weld[np.array(model.body_parentid)[weld]]
    a, b = body[one], body[other]
    keep = weld[a] != weld[b]
    if not model.opt.disableflags & mujoco.mjtDisableBit.mjDSBL_FILTERPARENT:
        kin = (weld[a] == parent[weld[b]]) | (weld[b] == parent[weld[a]])
        keep &= ~kin | (weld[a] == 0) | (weld[b] == 0)
    keep &= ~np.isin((a << 16) + b, model.exclude_signature)
    listed = np.stack([model.pair_geom1, model.pair_geom2], axis=1)
    listed = listed[np.isin(listed, boxes).all(axis=1)]
    pairs = np.concatenate([np.stack([one, other], axis=1)[keep], listed])
    return np.ascontiguousarray(pairs, dtype=np.int64)


def _bodies_of_mocaps(mocap: np.ndarray) -> np.ndarray:
    """Body of each mocap number."""
    bodies = np.flatnonzero(mocap >= 0)
    return bodies[np.argsort(mocap[bodies])].astype(np.int64)


def _sizes_of_mocaps(model: Any, of_geom: np.ndarray) -> np.ndarray:
    """How far the geoms of each mocap body reach [m]: a longer jump is no motion."""
    sizes = np.full(model.nmocap, float(model.stat.meansize))
    for g in np.flatnonzero(of_geom >= 0):
        reach = 2.0 * float(model.geom_rbound[g]) + float(np.linalg.norm(model.geom_pos[g]))
        sizes[of_geom[g]] = max(sizes[of_geom[g]], reach)
    return sizes


def _driven(model: Any) -> np.ndarray:
    """(neq,) whether an equality ties a body to a mocap body."""
    mocap = np.append(model.body_mocapid, -1) >= 0
    of_bodies = np.isin(model.eq_type, _BODY_EQUALITIES)
    bodies = np.stack([model.eq_obj1id, model.eq_obj2id], axis=1)
    sites = of_bodies & (model.eq_objtype == int(mujoco.mjtObj.mjOBJ_SITE))
    if model.nsite:
        bodies[sites] = model.site_bodyid[bodies[sites]]
    return of_bodies & mocap[np.where(of_bodies[:, None], bodies, -1)].any(axis=1)
