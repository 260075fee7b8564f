"""One simulation in viser's scene: bodies by mjviser, contact points and forces by us."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import viser
from mjviser import ViserMujocoScene

from holdfast.tools.observe import Forces, cone_colors

USUAL_ARROW = 0.3  # length of the usual force, in sizes of the scene
LONGEST_ARROW = 3.0  # in lengths of the usual one
OPACITY = 0.5  # of bodies that move, where forces are seen through them


class _Prefixed:
    """Viser's scene or server with all names below one node."""

    def __init__(self, scene: Any, prefix: str) -> None:
        self._scene, self._prefix = scene, prefix

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._scene, name)
        if not name.startswith("add_"):
            return found
        return lambda node, *given, **named: found(f"{self._prefix}{node}", *given, **named)


class _Server:
    """Viser's server as mjviser sees it."""

    def __init__(self, server: viser.ViserServer, prefix: str) -> None:
        self._server = server
        self.scene = _Prefixed(server.scene, prefix)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)


class SceneView:
    """Draws one simulation.

    Args:
        server: to draw on.
        model: of the scene.
        name: of the node that everything hangs on.
        offset: of the whole scene [m].
    """

    def __init__(
        self, server: viser.ViserServer, model: Any, name: str, offset: np.ndarray | None = None
    ) -> None:
        self._server, self._prefix = server, f"/{name}"
        self._shown = copy.copy(model)  # mjviser changes colours and scales
        self._opaque = np.array(model.geom_rgba[:, 3]), np.array(model.mat_rgba[:, 3])
        self.root = server.scene.add_frame(
            self._prefix, show_axes=False, position=np.zeros(3) if offset is None else offset
        )
        with server.atomic():
            self._scene = ViserMujocoScene(
                _Server(server, self._prefix),  # type: ignore[arg-type]
                self._shown,
                num_envs=1,
            )
        self._scene.camera_tracking_enabled = False
        self.size = size_of(model)
        self._usual = 0.0  # [N] running mean of the largest force
        self._arrows: Any = None
        self._points: Any = None
        self._push: Any = None
        self.show_forces = self.show_points = True
        self.set_opacity(OPACITY)

    def set_opacity(self, opacity: float) -> None:
        """How opaque bodies that move are."""
        model = self._shown
        moves = model.body_weldid[model.geom_bodyid] > 0
        model.geom_rgba[moves, 3] = np.minimum(self._opaque[0][moves], opacity)
        materials = np.unique(model.geom_matid[moves & (model.geom_matid >= 0)])
        model.mat_rgba[materials, 3] = np.minimum(self._opaque[1][materials], opacity)
        self._scene.rebuild_visual_handles()

    def update(self, data: Any, forces: Forces, push: tuple[int, np.ndarray] | None = None) -> None:
        """Show a state, its contact forces, and a push on a body."""
        with self._server.atomic():
            self._scene.update_from_mjdata(data)
            self._draw_points(forces)
            self._draw_arrows(forces)
            self._draw_push(data, push)

    def _draw_points(self, forces: Forces) -> None:
        if self._points is not None:
            self._points.remove()
            self._points = None
        if self.show_points and len(forces.point):
            self._points = self._server.scene.add_point_cloud(
                f"{self._prefix}/contact_points", points=forces.point.astype(np.float32),
                colors=_bytes(forces.use), point_size=0.03 * self.size, point_shape="circle",
            )  # fmt: skip

    def _draw_arrows(self, forces: Forces) -> None:
        lengths = np.linalg.norm(forces.force, axis=1, keepdims=True)
        largest = float(lengths.max(initial=0.0))
        if largest > 0.0:
            self._usual += (largest - self._usual) * (0.05 if self._usual else 1.0)
        shown = self.show_forces and largest > 0.0
        if not shown:
            if self._arrows is not None:
                self._arrows.visible = False
            return
        part = np.minimum(lengths / self._usual, LONGEST_ARROW)
        vector = forces.force / np.maximum(lengths, 1e-12) * part * USUAL_ARROW * self.size
        points = np.stack([forces.point, forces.point + vector], axis=1).astype(np.float32)
        colors = _bytes(forces.use)
        if self._arrows is None:
            self._arrows = self._arrow_node("contact_forces", points, colors)
        else:
            self._arrows.points, self._arrows.colors = points, colors
            self._arrows.visible = True

    def _draw_push(self, data: Any, push: tuple[int, np.ndarray] | None) -> None:
        if push is None:
            if self._push is not None:
                self._push.visible = False
            return
        body, force = push
        tip = data.xipos[body]
        along = force / (np.linalg.norm(force) or 1.0) * 1.5 * USUAL_ARROW * self.size
        points = np.stack([tip - along, tip])[None].astype(np.float32)
        if self._push is None:
            self._push = self._arrow_node("push", points, np.array([[40, 90, 230]], np.uint8))
        else:
            self._push.points, self._push.visible = points, True

    def _arrow_node(self, name: str, points: np.ndarray, colors: np.ndarray) -> Any:
        radius = 0.012 * self.size
        return self._server.scene.add_arrows(
            f"{self._prefix}/{name}", points, colors, shaft_radius=radius,
            head_radius=2.2 * radius, head_length=5 * radius,
        )  # fmt: skip

    def remove(self) -> None:
        """Take everything away."""
        self.root.remove()


def _bytes(use: np.ndarray) -> np.ndarray:
    return np.rint(255 * cone_colors(use)).astype(np.uint8)


def size_of(model: Any) -> float:
    """Size of what moves in a scene [m]: of the box about it, at the model's own pose."""
    from holdfast.mujoco._mj import mujoco

    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    seen = model.body_weldid[model.geom_bodyid] > 0
    seen &= np.isfinite(model.geom_rbound) & (model.geom_rbound > 0)
    if not seen.any():
        return float(model.stat.extent)
    radius, at = model.geom_rbound[seen][:, None], data.geom_xpos[seen]
    return float(np.linalg.norm((at + radius).max(axis=0) - (at - radius).min(axis=0)))
