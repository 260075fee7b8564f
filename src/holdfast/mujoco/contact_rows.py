"""The rows of contacts, along the axes of their frames, from the motions of bodies.

A joint moves the point p of a body that it carries by its axis, the angular part a and the linear
part l of `cdof` about the point c of the body's tree,

    dp = (l + a x (p - c)) dq,     and turns it by   a dq

A row of a contact is an axis of its frame times the difference of that between its two bodies: the
normal and two tangents for sliding, the same axes for torsion and rolling. MuJoCo's list of rows
has them too, with stiffness and reference that rigid contact has no use for, and where cones are
pyramids it has edges in the place of axes. It is made for those who look, see `writeback`.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import inlined, kernel
from holdfast.mujoco.structs import CONTACT_SIZE, contact_at, data_at, floats, integers, words


@kernel
def any_listed(s: Any) -> bool:
    """Return whether anything is within reach: MuJoCo has listed rows, or there is a contact."""
    d = data_at(s.data)
    found = d.nefc > 0
    for i in range(d.ncon):
        found = found or contact_at(d.contact + i * CONTACT_SIZE).exclude == 0
    return found


@inlined
def tree_of_geom(s: Any, geom: int) -> int:
    """Return the tree that a geom moves with; -1 for what is fixed."""
    if geom < 0:
        return -1
    body = integers(s.geom_body, 1, s.ngeom)[0, geom]
    return words(s.tree_of_body, 1, s.nbody)[0, body]


@kernel
def add_panel(s: Any, d: Any, c: Any, side: int, begin: int, size: int, dim: int, at: int,
              values: np.ndarray) -> None:  # fmt: skip
    """Add what the geom on one side of a contact does to its panel, which begins at `at`.

    Args:
        s: the record of the step.
        d: the data.
        c: the contact.
        side: 0 or 1; the first geom counts with the other sign.
        begin: first coordinate of the tree.
        size: its coordinates.
        dim: rows.
        at: where the panel begins.
        values: is added to.
    """
    g, f, sign = np.int64(c.geom[side]), c.frame, 1.0 if side == 1 else -1.0
    n0, n1, n2 = sign * f[0], sign * f[1], sign * f[2]
    s0, s1, s2 = sign * f[3], sign * f[4], sign * f[5]
    t0, t1, t2 = sign * f[6], sign * f[7], sign * f[8]
    body = integers(s.geom_body, 1, s.ngeom)[0, g]
    centre = floats(d.subtree_com, s.nbody, 3)[integers(s.geom_root, 1, s.ngeom)[0, g]]
    x, y, z = c.pos[0] - centre[0], c.pos[1] - centre[1], c.pos[2] - centre[2]
    parent, cdof = integers(s.dof_parentid, 1, s.nv)[0], floats(d.cdof, s.nv, 6)
    i = words(s.last_dof, 1, s.nbody)[0, body]
    while i >= 0:
        a, b, e, j = cdof[i, 0], cdof[i, 1], cdof[i, 2], at + i - begin
        u = cdof[i, 3] + b * z - e * y
        v = cdof[i, 4] + e * x - a * z
        w = cdof[i, 5] + a * y - b * x
        values[j] += n0 * u + n1 * v + n2 * w
        if dim > 1:
            values[j + size] += s0 * u + s1 * v + s2 * w
            values[j + 2 * size] += t0 * u + t1 * v + t2 * w
        if dim > 3:
            values[j + 3 * size] += n0 * a + n1 * b + n2 * e
        if dim > 4:
            values[j + 4 * size] += s0 * a + s1 * b + s2 * e
            values[j + 5 * size] += t0 * a + t1 * b + t2 * e
        i = np.int64(parent[i])


@inlined
def fill_panel(s: Any, d: Any, c: Any, t: int, dim: int, at: int, values: np.ndarray) -> int:
    """Fill the rows of a contact for the coordinates of tree t, from `at` on; return the end."""
    tree = words(s.tree, 1, s.ntree + 1)[0]
    begin, size = tree[t], tree[t + 1] - tree[t]
    end = at + dim * size
    for j in range(at, end):
        values[j] = 0.0
    for side in range(2):
        if tree_of_geom(s, c.geom[side]) == t:
            add_panel(s, d, c, side, begin, size, dim, at, values)
    return end


@kernel
def normal_speed(s: Any, d: Any, c: Any, velocity: np.ndarray) -> float:
    """Return how fast a motion parts the surfaces of a contact."""
    total = 0.0
    for side in range(2):
        t = tree_of_geom(s, c.geom[side])
        if t < 0:
            continue
        row = floats(s.row, 1, s.nv)[0]
        for j in range(s.nv):
            row[j] = 0.0
        add_panel(s, d, c, side, 0, s.nv, 1, 0, row)
        for j in range(s.nv):
            total += row[j] * velocity[j]
    return total
