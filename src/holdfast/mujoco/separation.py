"""Whether a contact that collision detection has found can be one.

A convex geom lies on one side of the plane of each of its contacts: its support along the normal,
the largest ``n x`` of its points, is where the contact is. Where surfaces just touch, MuJoCo's
search for contacts of meshes, cylinders and ellipsoids now and then returns normals that point
anywhere: then the geom reaches through the plane by about its size. (By less where faces meet: all
their contacts get the normal of one face.) Both geoms of a pair are looked at, each beside its own
size, since a small error of a normal lets a large one reach far.

A height field is collided triangle by triangle, each with walls below it that no body can touch. No
normal of such a surface is steeper than its steepest triangle nearby.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.linalg.vectors import square
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.structs import floats, integers, singles

_KINDS = mujoco.mjtGeom
HFIELD, SPHERE = int(_KINDS.mjGEOM_HFIELD), int(_KINDS.mjGEOM_SPHERE)
CAPSULE, ELLIPSOID = int(_KINDS.mjGEOM_CAPSULE), int(_KINDS.mjGEOM_ELLIPSOID)
CYLINDER, BOX, MESH = int(_KINDS.mjGEOM_CYLINDER), int(_KINDS.mjGEOM_BOX), int(_KINDS.mjGEOM_MESH)
SEARCHED = (HFIELD, ELLIPSOID, CYLINDER, MESH)  # their contacts are found by a search

FEW = 30  # vertices of a mesh that are all looked at; the hull of others is climbed
BORDER = 1e-3  # part of a cell of a height field: nearer to its border are its side walls
STEEPER = 0.25  # slope by which a normal may be steeper than all triangles


@kernel
def longest_of_mesh(s: Any, mesh: int, x: float, y: float, z: float) -> float:
    """Return how far a mesh reaches in a direction, all in its own frame."""
    at = np.int64(integers(s.mesh_vertadr, 1, s.nmesh)[0, mesh])
    count = np.int64(integers(s.mesh_vertnum, 1, s.nmesh)[0, mesh])
    vertex = singles(s.mesh_vert + 12 * at, count, 3)
    graph = np.int64(integers(s.mesh_graphadr, 1, s.nmesh)[0, mesh])
    best = -np.inf
    if count <= FEW or graph < 0:
        for k in range(count):
            best = max(best, x * vertex[k, 0] + y * vertex[k, 1] + z * vertex[k, 2])
        return best
    hull = np.int64(integers(s.mesh_graph + 4 * graph, 1, 2)[0, 0])
    faces = np.int64(integers(s.mesh_graph + 4 * graph, 1, 2)[0, 1])
    edge_at = integers(s.mesh_graph + 4 * (graph + 2), 1, hull)[0]
    number = integers(s.mesh_graph + 4 * (graph + 2 + hull), 1, hull)[0]
    edge = integers(s.mesh_graph + 4 * (graph + 2 + 2 * hull), 1, hull + 3 * faces)[0]
    k, climbs = 0, True
    while climbs:  # each round ends at a higher vertex; on a convex hull the last one is highest
        climbs = False
        e = np.int64(edge_at[k])
        while edge[e] >= 0:
            g = np.int64(number[edge[e]])
            reach = x * vertex[g, 0] + y * vertex[g, 1] + z * vertex[g, 2]
            if reach > best:
                best, k, climbs = reach, np.int64(edge[e]), True
            e += 1
    return best


@kernel
def has_support(kind: int) -> bool:
    """Return whether a geom of this type is convex, has an end, and its support is known here."""
    return kind in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)


@kernel
def support(s: Any, d: Any, g: int, x: float, y: float, z: float) -> float:
    """Return the largest ``n x`` of a geom, for the unit vector n = (x, y, z)."""
    R = floats(d.geom_xmat + 72 * g, 3, 3)
    c = floats(d.geom_xpos + 24 * g, 1, 3)[0]
    size = floats(s.geom_size + 24 * g, 1, 3)[0]
    a = R[0, 0] * x + R[1, 0] * y + R[2, 0] * z
    b = R[0, 1] * x + R[1, 1] * y + R[2, 1] * z
    e = R[0, 2] * x + R[1, 2] * y + R[2, 2] * z
    kind, reach = integers(s.geom_type, 1, s.ngeom)[0, g], 0.0
    if kind == SPHERE:
        reach = size[0]
    elif kind == CAPSULE:
        reach = size[0] + size[1] * abs(e)
    elif kind == ELLIPSOID:
        reach = np.sqrt(square(size[0] * a) + square(size[1] * b) + square(size[2] * e))
    elif kind == CYLINDER:
        reach = size[0] * np.sqrt(a * a + b * b) + size[1] * abs(e)
    elif kind == BOX:
        reach = size[0] * abs(a) + size[1] * abs(b) + size[2] * abs(e)
    else:
        reach = longest_of_mesh(s, np.int64(integers(s.geom_dataid, 1, s.ngeom)[0, g]), a, b, e)
    return x * c[0] + y * c[1] + z * c[2] + reach


@kernel
def overlap(s: Any, d: Any, g: int, c: Any, sign: float) -> float:
    """Return how far a geom reaches through the plane of a contact, its normal times a sign.

    The plane is where the contact says that the surface of the geom is.
    """
    x, y, z = sign * c.frame[0], sign * c.frame[1], sign * c.frame[2]
    place = x * c.pos[0] + y * c.pos[1] + z * c.pos[2] - 0.5 * c.dist
    return support(s, d, g, x, y, z) - place


@kernel
def steepest(s: Any, g: int, x: float, y: float) -> float:
    """Return the steepest slope of the triangles of a height field about a point of its frame.

    It is infinite at the border.
    """
    k = np.int64(integers(s.geom_dataid, 1, s.ngeom)[0, g])
    rows = np.int64(integers(s.hfield_nrow, 1, s.nhfield)[0, k])
    columns = np.int64(integers(s.hfield_ncol, 1, s.nhfield)[0, k])
    size = floats(s.hfield_size + 32 * k, 1, 4)[0]
    at = np.int64(integers(s.hfield_adr, 1, s.nhfield)[0, k])
    height = singles(s.hfield_data + 4 * at, rows, columns)
    dx, dy = 2.0 * size[0] / (columns - 1), 2.0 * size[1] / (rows - 1)
    p, q = (x + size[0]) / dx, (y + size[1]) / dy
    if not (BORDER < p < columns - 1 - BORDER and BORDER < q < rows - 1 - BORDER):
        return np.inf
    largest = 0.0
    for i in range(max(int(q) - 1, 0), min(int(q) + 2, rows - 1)):
        for j in range(max(int(p) - 1, 0), min(int(p) + 2, columns - 1)):
            for v in range(2):  # a triangle has a side in either direction
                for u in range(2):
                    along = size[2] * (height[i + v, j + 1] - height[i + v, j]) / dx
                    across = size[2] * (height[i + 1, j + u] - height[i, j + u]) / dy
                    largest = max(largest, along * along + across * across)
    return np.sqrt(largest)


@kernel
def is_too_steep(s: Any, d: Any, g: int, c: Any, sign: float) -> bool:
    """Return whether a normal, times a sign, does not point away from a height field."""
    R = floats(d.geom_xmat + 72 * g, 3, 3)
    centre = floats(d.geom_xpos + 24 * g, 1, 3)[0]
    x = y = up = side = other = 0.0
    for e in range(3):
        far, n = c.pos[e] - centre[e], sign * c.frame[e]
        x += R[e, 0] * far
        y += R[e, 1] * far
        side += R[e, 0] * n
        other += R[e, 1] * n
        up += R[e, 2] * n
    slope = steepest(s, g, x, y)
    return slope < np.inf and np.sqrt(side * side + other * other) > (slope + STEEPER) * up


@kernel
def is_checked(s: Any, c: Any) -> bool:
    """Return whether a contact is of a kind whose normal may be wrong."""
    if s.convex == 0 or c.geom[0] < 0 or c.geom[1] < 0:
        return False
    kinds = integers(s.geom_type, 1, s.ngeom)[0]
    a, b = kinds[c.geom[0]], kinds[c.geom[1]]
    known = (has_support(a) or a == HFIELD) and (has_support(b) or b == HFIELD)
    return known and (a in SEARCHED or b in SEARCHED)


@kernel
def is_right(s: Any, d: Any, c: Any) -> bool:
    """Return whether the geoms of a contact may touch along its normal.

    Args:
        s: the record of the step.
        d: data that the contact stands in.
        c: the contact.
    """
    if not is_checked(s, c):
        return True
    kinds, radius = integers(s.geom_type, 1, s.ngeom)[0], floats(s.radius, 1, s.ngeom)[0]
    a, b = np.int64(c.geom[0]), np.int64(c.geom[1])
    if kinds[a] == HFIELD and is_too_steep(s, d, a, c, 1.0):
        return False
    if kinds[b] == HFIELD and is_too_steep(s, d, b, c, -1.0):
        return False
    if has_support(kinds[a]) and overlap(s, d, a, c, 1.0) > s.wrong_normal * radius[a]:
        return False
    return not has_support(kinds[b]) or overlap(s, d, b, c, -1.0) <= s.wrong_normal * radius[b]


@kernel
def smaller(a: float, b: float) -> float:
    """Return the smaller of two radii; infinite if neither geom has an end, which is 0."""
    small = min(a, b) if min(a, b) > 0.0 else max(a, b)
    return small if small > 0.0 else np.inf
