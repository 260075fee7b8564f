"""Whether the contacts that collision detection has found can be those of two geoms.

Convex geoms overlap along a direction n by ``support(a, n) + support(b, -n)``, where the support is
the largest ``n x`` of their points, and along a normal by the depth of their deepest contact. Where
they overlap by more than that, the direction is no normal, or a deeper point was left out. MuJoCo's
search for contacts of meshes, cylinders and ellipsoids does both: where surfaces just touch,
normals may point anywhere, and round edges are polygons.

A height field is collided triangle by triangle, each with walls below it that no body can touch. No
normal of such a surface is steeper than its steepest triangle nearby, no convex geom reaches far
through the plane of a contact with it, and none has a point that is farther below it than their
deepest contact.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast._jit import kernel
from holdfast.linalg.vectors import square
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.structs import CONTACT_SIZE, contact_at, floats, integers, singles

_KINDS = mujoco.mjtGeom
HFIELD, SPHERE = int(_KINDS.mjGEOM_HFIELD), int(_KINDS.mjGEOM_SPHERE)
CAPSULE, ELLIPSOID = int(_KINDS.mjGEOM_CAPSULE), int(_KINDS.mjGEOM_ELLIPSOID)
CYLINDER, BOX, MESH = int(_KINDS.mjGEOM_CYLINDER), int(_KINDS.mjGEOM_BOX), int(_KINDS.mjGEOM_MESH)
SEARCHED = (HFIELD, ELLIPSOID, CYLINDER, MESH)  # their contacts are found by a search

FEW = 30  # vertices of a mesh that are all looked at; the hull of others is climbed
BORDER = 1e-3  # part of a cell of a height field: nearer to its border are its side walls
STEEPER = 0.25  # slope by which a normal may be steeper than all triangles
NEAR_MARGINS = 1e4  # a pair whose contacts are farther than this times what touches does not touch
ROUGH = 0.1  # part of a distance by which it may be wrong


@kernel
def farthest_of_mesh(s: Any, mesh: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return the vertex of a mesh that is farthest in a direction, all in its own frame."""
    at = np.int64(integers(s.mesh_vertadr, 1, s.nmesh)[0, mesh])
    count = np.int64(integers(s.mesh_vertnum, 1, s.nmesh)[0, mesh])
    vertex = singles(s.mesh_vert + 12 * at, count, 3)
    graph = np.int64(integers(s.mesh_graphadr, 1, s.nmesh)[0, mesh])
    best, g = -np.inf, np.int64(0)
    if count <= FEW or graph < 0:
        for k in range(count):
            reach = x * vertex[k, 0] + y * vertex[k, 1] + z * vertex[k, 2]
            if reach > best:
                best, g = reach, np.int64(k)
        return vertex[g, 0], vertex[g, 1], vertex[g, 2]
    hull = np.int64(integers(s.mesh_graph + 4 * graph, 1, 2)[0, 0])
    faces = np.int64(integers(s.mesh_graph + 4 * graph, 1, 2)[0, 1])
    edge_at = integers(s.mesh_graph + 4 * (graph + 2), 1, hull)[0]
    number = integers(s.mesh_graph + 4 * (graph + 2 + hull), 1, hull)[0]
    edge = integers(s.mesh_graph + 4 * (graph + 2 + 2 * hull), 1, hull + 3 * faces)[0]
    k, climbs = np.int64(0), True
    while climbs:  # each round ends at a higher vertex; on a convex hull the last one is highest
        climbs = False
        e = np.int64(edge_at[k])
        while edge[e] >= 0:
            other = np.int64(number[edge[e]])
            reach = x * vertex[other, 0] + y * vertex[other, 1] + z * vertex[other, 2]
            if reach > best:
                best, g, k, climbs = reach, other, np.int64(edge[e]), True
            e += 1
    return vertex[g, 0], vertex[g, 1], vertex[g, 2]


@kernel
def has_support(kind: int) -> bool:
    """Return whether a geom of this type is convex, has an end, and its support is known here."""
    return kind in (SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH)


@kernel
def farthest(s: Any, d: Any, g: int, x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return a point of a geom that is farthest along the unit vector (x, y, z)."""
    R = floats(d.geom_xmat + 72 * g, 3, 3)
    c = floats(d.geom_xpos + 24 * g, 1, 3)[0]
    size = floats(s.geom_size + 24 * g, 1, 3)[0]
    a = R[0, 0] * x + R[1, 0] * y + R[2, 0] * z
    b = R[0, 1] * x + R[1, 1] * y + R[2, 1] * z
    e = R[0, 2] * x + R[1, 2] * y + R[2, 2] * z
    kind = integers(s.geom_type, 1, s.ngeom)[0, g]
    if kind in (SPHERE, CAPSULE):
        a, b, e = size[0] * a, size[0] * b, size[0] * e
        if kind == CAPSULE:
            e += np.copysign(size[1], e)
    elif kind == ELLIPSOID:
        length = np.sqrt(square(size[0] * a) + square(size[1] * b) + square(size[2] * e))
        a, b, e = a * square(size[0]), b * square(size[1]), e * square(size[2])
        a, b, e = a / length, b / length, e / length
    elif kind == CYLINDER:
        length = np.sqrt(a * a + b * b)
        scale = size[0] / length if length > 0.0 else 0.0
        a, b, e = scale * a, scale * b, np.copysign(size[1], e)
    elif kind == BOX:
        a, b, e = np.copysign(size[0], a), np.copysign(size[1], b), np.copysign(size[2], e)
    else:
        mesh = np.int64(integers(s.geom_dataid, 1, s.ngeom)[0, g])
        a, b, e = farthest_of_mesh(s, mesh, a, b, e)
    return (
        c[0] + R[0, 0] * a + R[0, 1] * b + R[0, 2] * e,
        c[1] + R[1, 0] * a + R[1, 1] * b + R[1, 2] * e,
        c[2] + R[2, 0] * a + R[2, 1] * b + R[2, 2] * e,
    )


@kernel
def support(s: Any, d: Any, g: int, x: float, y: float, z: float) -> float:
    """Return the largest ``n x`` of a geom, for the unit vector n = (x, y, z)."""
    p, q, r = farthest(s, d, g, x, y, z)
    return x * p + y * q + z * r


@kernel
def apart_along(s: Any, d: Any, a: int, b: int, n: np.ndarray) -> float:
    """Return how far apart two convex geoms are along the direction n from a to b."""
    return -support(s, d, a, n[0], n[1], n[2]) - support(s, d, b, -n[0], -n[1], -n[2])


@kernel
def reaches_through(s: Any, d: Any, c: Any) -> float:
    """Return how far the second geom of a contact reaches through its plane.

    The plane is where the contact says that the surface of the geom is.
    """
    x, y, z = c.frame[0], c.frame[1], c.frame[2]
    place = x * c.pos[0] + y * c.pos[1] + z * c.pos[2] + 0.5 * c.dist
    return place + support(s, d, np.int64(c.geom[1]), -x, -y, -z)


@kernel
def field_of(s: Any, g: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the size of height field g, and its heights (rows, columns) over that size."""
    k = np.int64(integers(s.geom_dataid, 1, s.ngeom)[0, g])
    rows = np.int64(integers(s.hfield_nrow, 1, s.nhfield)[0, k])
    columns = np.int64(integers(s.hfield_ncol, 1, s.nhfield)[0, k])
    at = np.int64(integers(s.hfield_adr, 1, s.nhfield)[0, k])
    heights = singles(s.hfield_data + 4 * at, rows, columns)
    return floats(s.hfield_size + 32 * k, 1, 4)[0], heights


@kernel
def steepest(s: Any, g: int, x: float, y: float) -> float:
    """Return the steepest slope of the triangles of a height field about a point of its frame.

    It is infinite at the border.
    """
    size, heights = field_of(s, g)
    rows, columns = heights.shape
    dx, dy = 2.0 * size[0] / (columns - 1), 2.0 * size[1] / (rows - 1)
    p, q = (x + size[0]) / dx, (y + size[1]) / dy
    if not (BORDER < p < columns - 1 - BORDER and BORDER < q < rows - 1 - BORDER):
        return np.inf
    largest = 0.0
    for i in range(max(int(q) - 1, 0), min(int(q) + 2, rows - 1)):
        for j in range(max(int(p) - 1, 0), min(int(p) + 2, columns - 1)):
            for v in range(2):  # a triangle has a side in either direction
                for u in range(2):
                    along = size[2] * (heights[i + v, j + 1] - heights[i + v, j]) / dx
                    across = size[2] * (heights[i + 1, j + u] - heights[i, j + u]) / dy
                    largest = max(largest, along * along + across * across)
    return np.sqrt(largest)


@kernel
def is_too_steep(s: Any, d: Any, g: int, c: Any) -> bool:
    """Return whether the normal of a contact does not point away from height field g.

    A field is a body with a base: what is nearer to that than to the surface is below it.
    """
    R = floats(d.geom_xmat + 72 * g, 3, 3)
    centre = floats(d.geom_xpos + 24 * g, 1, 3)[0]
    x = y = z = up = side = other = 0.0
    for e in range(3):
        far, n = c.pos[e] - centre[e], c.frame[e]
        x += R[e, 0] * far
        y += R[e, 1] * far
        z += R[e, 2] * far
        side += R[e, 0] * n
        other += R[e, 1] * n
        up += R[e, 2] * n
    slope, away = steepest(s, g, x, y), np.sqrt(side * side + other * other)
    if slope == np.inf:
        return False
    size, _ = field_of(s, g)
    if 2.0 * z < height(s, g, x, y) - size[3]:
        return away > -STEEPER * up
    return away > (slope + STEEPER) * up


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
def below_field(s: Any, d: Any, g: int, b: int, c: Any) -> float:
    """Return how far the farthest point of geom b along a contact is below height field g.

    That is along the normal, if the field is as steep there as at the contact; negative above.
    """
    p, q, r = farthest(s, d, b, -c.frame[0], -c.frame[1], -c.frame[2])
    R = floats(d.geom_xmat + 72 * g, 3, 3)
    centre = floats(d.geom_xpos + 24 * g, 1, 3)[0]
    p, q, r = p - centre[0], q - centre[1], r - centre[2]
    x = R[0, 0] * p + R[1, 0] * q + R[2, 0] * r
    y = R[0, 1] * p + R[1, 1] * q + R[2, 1] * r
    z = R[0, 2] * p + R[1, 2] * q + R[2, 2] * r
    up = R[0, 2] * c.frame[0] + R[1, 2] * c.frame[1] + R[2, 2] * c.frame[2]
    return (height(s, g, x, y) - z) * up


@kernel
def height(s: Any, g: int, x: float, y: float) -> float:
    """Return the height of a field at a point of its frame; -inf beyond its border.

    The diagonals of its cells go from the corner where x and y are least to the opposite one.
    """
    size, heights = field_of(s, g)
    rows, columns = heights.shape
    p = 0.5 * (x / size[0] + 1.0) * (columns - 1)
    q = 0.5 * (y / size[1] + 1.0) * (rows - 1)
    if not (0.0 <= p < columns - 1 and 0.0 <= q < rows - 1):
        return -np.inf
    j, i = int(p), int(q)
    u, v = p - j, q - i
    low, high = heights[i, j], heights[i + 1, j + 1]
    between = heights[i + 1, j] if v >= u else heights[i, j + 1]
    return size[2] * (low + max(u, v) * (between - low) + min(u, v) * (high - between))


@kernel
def is_steep(s: Any, d: Any, c: Any) -> bool:
    """Return whether the normal of a contact cannot be one of its height field, if it has one."""
    g = np.int64(c.geom[0])  # MuJoCo has geoms in the order of their types
    return integers(s.geom_type, 1, s.ngeom)[0, g] == HFIELD and is_too_steep(s, d, g, c)


@kernel
def is_near(s: Any, c: Any) -> bool:
    """Return whether a contact nearly touches."""
    return c.dist <= NEAR_MARGINS * s.touching * s.size and c.exclude == 0


@kernel
def are_doubtful(s: Any, d: Any, begin: int, end: int) -> bool:
    """Return whether contacts of a pair, from `begin` to `end`, cannot be all that there is.

    One of them is steeper than its height field, or the geoms are in each other more deeply than
    the deepest contact.
    """
    kinds, deepest, some = integers(s.geom_type, 1, s.ngeom)[0], np.inf, False
    for i in range(begin, end):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        if is_near(s, c):
            deepest, some = min(deepest, c.dist), True
            if is_steep(s, d, c):
                return True
    if not some:
        return False
    for i in range(begin, end):
        c = contact_at(d.contact + i * CONTACT_SIZE)
        if not is_near(s, c):
            continue
        a, b = np.int64(c.geom[0]), np.int64(c.geom[1])
        if kinds[a] == HFIELD:
            apart = -below_field(s, d, a, b, c)
        else:
            apart = apart_along(s, d, a, b, c.frame)
        if apart < deepest - 2.0 * s.sunk * s.size - ROUGH * abs(deepest):
            return True
    return False


@kernel
def smaller(a: float, b: float) -> float:
    """Return the smaller of two radii; infinite if neither geom has an end, which is 0."""
    small = min(a, b) if min(a, b) > 0.0 else max(a, b)
    return small if small > 0.0 else np.inf
