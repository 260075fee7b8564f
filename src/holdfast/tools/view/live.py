"""A scene, simulated while one watches."""

from __future__ import annotations

import html
import time
from typing import Any

import numpy as np
import viser

from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.contacts import name_of
from holdfast.tools.view.laws import COULOMB, LAWS, MUJOCO, VISCOUS
from holdfast.tools.view.loop import FRAME, Loop, aim_cameras
from holdfast.tools.view.plots import NOTHING, Plot, add_plots
from holdfast.tools.view.scene import OPACITY, SceneView, size_of
from holdfast.tools.view.simulation import Sample, Simulation, drift

DIRECTIONS = {
    "+x": (1, 0, 0), "-x": (-1, 0, 0), "+y": (0, 1, 0), "-y": (0, -1, 0), "+z": (0, 0, 1),
    "-z": (0, 0, -1),
}  # fmt: skip
MOST_SLIDERS = 60
LEGEND = (
    '<div style="padding:0 1em .5em 1em;font-size:.8em">Force arrows, by the part of the friction '
    'cone in use: <b style="color:#2ea043">none</b>, <b style="color:#c9a400">half</b>, '
    '<b style="color:#d72828">all</b>, <b style="color:#9628c8">more than the model declares</b>'
    "</div>"
)


class LiveViewer(Loop):
    """One scene under one law, or under two side by side.

    Args:
        server: viser's.
        model: of the scene.
        law: to start with, one of `LAWS`.
        mu_v: viscous coefficient to start with [N s/m].
        keyframe: number of the keyframe to start from; None for the model's own state.
        beside: law of a second simulation beside the first; None for none.
    """

    def __init__(
        self,
        server: viser.ViserServer,
        model: Any,
        *,
        law: str = COULOMB,
        mu_v: float = 1.0,
        keyframe: int | None = None,
        beside: str | None = None,
    ) -> None:
        super().__init__(server)
        self.model, self.mu_v, self.keyframe = model, mu_v, keyframe
        self.left = Simulation(model, law, mu_v, keyframe)
        self.right: Simulation | None = None
        self._law_beside = beside or MUJOCO
        self.plots = {
            "creep": Plot("Creep, µm/s", scale=1e6),
            "penetration": Plot("Penetration, µm", scale=1e6),
            "required": Plot("Required friction"),
            "step": Plot("Time of a step, µs", scale=1e6),
        }
        self.drift_plot = Plot("Drift between the two, mm", scale=1e3, names=("drift",))
        self._view_left = SceneView(server, model, "left")
        self._view_right: SceneView | None = None
        self._separation, self._offset = 1.2 * size_of(model), np.zeros(3)
        self._samples: list[Sample] = []
        self._center, self._follow = self._middle(), False
        self._aim = aim_cameras(server, model, self._center, self._view_left.size)
        self._add_page()
        if beside is not None:
            self._set_beside(True)

    def _middle(self) -> np.ndarray:
        moves = self.model.body_weldid[self.model.geom_bodyid] > 0
        at = self.left.data.geom_xpos[moves]
        return at.mean(axis=0) if len(at) else np.array(self.model.stat.center)

    # --- the page ---------------------------------------------------------------------------------

    def _add_page(self) -> None:
        gui = self.server.gui
        self._status = gui.add_html("")
        tabs = gui.add_tab_group()
        with tabs.add_tab("Run", icon=viser.Icon.PLAYER_PLAY):
            self._add_laws(gui)
            self.add_playback(reset=self.reset, step=self.single_step)
            if self.model.nkey:
                self._add_keyframes(gui)
            self._add_push(gui)
        if self.model.nu:
            with tabs.add_tab("Actuators", icon=viser.Icon.ADJUSTMENTS):
                self._add_actuators(gui)
        with tabs.add_tab("Show", icon=viser.Icon.EYE):
            self._add_appearance(gui)
        add_plots(self.server, [self.drift_plot, *self.plots.values()])
        self.drift_plot.handle.visible = False
        self._name_lines()

    def _name_lines(self) -> None:
        for plot in self.plots.values():
            plot.set_lines(self.server.gui, self._names)

    def _add_laws(self, gui: viser.GuiApi) -> None:
        self._law = gui.add_dropdown("Law", options=LAWS, initial_value=self.left.law)
        self._mu_v = gui.add_slider("Viscous, N s/m", min=0.0, max=max(10.0, 2 * self.mu_v),
                                    step=0.01, initial_value=self.mu_v)  # fmt: skip
        self._both = gui.add_checkbox("Side by side", initial_value=False)
        self._beside = gui.add_dropdown("Law beside", options=LAWS,
                                        initial_value=self._law_beside)  # fmt: skip
        for handle in (self._law, self._mu_v, self._beside):
            self.on(handle, self._set_laws)
        self.on(self._both, lambda: self._set_beside(self._both.value))

    def _add_keyframes(self, gui: viser.GuiApi) -> None:
        names = [self.model.key(i).name or f"keyframe {i}" for i in range(self.model.nkey)]
        first = names[self.keyframe or 0]
        keys = gui.add_dropdown("Keyframe", options=names, initial_value=first)

        def load() -> None:
            self.keyframe = names.index(keys.value)
            self.reset()

        self.on(keys, load)

    def _add_push(self, gui: viser.GuiApi) -> None:
        model = self.model
        bodies = [i for i in range(1, model.nbody) if model.body_weldid[i] > 0]
        if not bodies:
            return
        names = [name_of(model, "body", i) for i in bodies]
        weight = float(model.body_subtreemass[0]) * 9.81
        with gui.add_folder("Push"):
            which = gui.add_dropdown("Body", options=names, initial_value=names[0])
            way = gui.add_dropdown("Direction", options=tuple(DIRECTIONS), initial_value="+x")
            force = gui.add_slider(
                "Force, N", min=0.0, max=_round(10 * weight), step=_round(weight / 100),
                initial_value=_round(weight),
            )  # fmt: skip
            seconds = gui.add_slider("Duration, s", min=0.01, max=1.0, step=0.01,
                                     initial_value=0.1)  # fmt: skip
            button = gui.add_button("Push", icon=viser.Icon.HAND_FINGER)

        def push() -> None:
            vector = force.value * np.array(DIRECTIONS[way.value], dtype=float)
            for run in self.runs:
                run.start_push(bodies[names.index(which.value)], vector, seconds.value)

        self.on(button, push)

    def _add_actuators(self, gui: viser.GuiApi) -> None:
        model = self.model
        self._sliders: list[Any] = []
        for i in range(min(model.nu, MOST_SLIDERS)):
            name, now = name_of(model, "actuator", i), float(self.left.data.ctrl[i])
            lo, hi = _control_range(model, i)
            slider = gui.add_slider(name, min=lo, max=hi, step=_round((hi - lo) / 400),
                                    initial_value=float(np.clip(now, lo, hi)))  # fmt: skip
            self._sliders.append(slider)
            self.on(slider, lambda i=i, slider=slider: self._set_control(i, slider.value))
        if model.nu > MOST_SLIDERS:
            gui.add_markdown(f"and {model.nu - MOST_SLIDERS} more")

    def _add_appearance(self, gui: viser.GuiApi) -> None:
        gui.add_html(LEGEND)
        points = gui.add_checkbox("Contact points", initial_value=True)
        forces = gui.add_checkbox("Contact forces", initial_value=True)
        opacity = gui.add_slider("Opacity", min=0.1, max=1.0, step=0.1, initial_value=OPACITY)
        apart = gui.add_slider(
            "Separation, m", min=0.0, max=_round(5 * self._separation),
            step=_round(self._separation / 20), initial_value=_round(self._separation),
        )  # fmt: skip

        follow = gui.add_checkbox("Follow moving bodies", initial_value=False)

        def set_follow() -> None:
            self._follow = follow.value
            self._place()

        def apply() -> None:
            for view in self._views:
                view.show_points, view.show_forces = points.value, forces.value

        def fade() -> None:
            for view in self._views:
                view.set_opacity(opacity.value)

        def separate() -> None:
            self._separation = apart.value
            self._place()

        self.on(points, apply)
        self.on(forces, apply)
        self.on(opacity, fade)
        self.on(apart, separate)
        self.on(follow, set_follow)

    # --- commands ---------------------------------------------------------------------------------

    @property
    def runs(self) -> list[Simulation]:
        """One simulation, or two."""
        return [self.left] if self.right is None else [self.left, self.right]

    @property
    def _views(self) -> list[SceneView]:
        return [self._view_left, *([self._view_right] if self._view_right else [])]

    @property
    def _names(self) -> tuple[str, ...]:
        if self.right is None:
            return (self.left.law,)
        names = self.left.law, self.right.law
        return names if names[0] != names[1] else (f"{names[0]}, left", f"{names[1]}, right")

    def _set_laws(self) -> None:
        """Take over the laws of the page, where they have changed."""
        mu_v = self._mu_v.value
        given = zip(self.runs, (self._law.value, self._beside.value), strict=False)
        for run, law in given:
            if run.law != law or (law == VISCOUS and mu_v != self.mu_v):
                run.set_law(law, mu_v)
        self.mu_v = mu_v
        self._law_beside = self._beside.value
        self._name_lines()

    def _set_beside(self, wanted: bool) -> None:
        """Start or end the second simulation."""
        if wanted == (self.right is not None):
            return
        if wanted:
            self.right = Simulation(self.model, self._law_beside, self.mu_v, self.keyframe)
            self.right.copy_state(self.left)
            self._view_right = SceneView(self.server, self.model, "right")
        else:
            assert self._view_right is not None
            self._view_right.remove()
            self.right = self._view_right = None
        self._both.value = wanted
        self.drift_plot.rows.clear()
        self.drift_plot.handle.visible = wanted
        self._set_laws()
        self._place()

    def _place(self) -> None:
        """Put the second scene to the right of the first, and aim at both."""
        azimuth = np.radians(self.model.vis.global_.azimuth)
        right = np.array([np.sin(azimuth), -np.cos(azimuth), 0.0])
        size, center = self._view_left.size, self._center
        self._offset = self._separation * right
        self._move_scenes()
        if self._view_right is not None:
            offset = self._offset
            size, center = size + self._separation, center + 0.5 * offset
        self._aim(center, size)

    def _move_scenes(self) -> None:
        """Put the scenes side by side; where the camera follows, they move under it instead."""
        shift = self._center - self._middle() if self._follow else np.zeros(3)
        self._view_left.root.position = shift
        if self._view_right is not None:
            self._view_right.root.position = self._offset + shift

    def _set_control(self, i: int, value: float) -> None:
        for run in self.runs:
            run.data.ctrl[i] = value

    def reset(self) -> None:
        """Start again from the chosen keyframe."""
        for run in self.runs:
            run.reset(self.keyframe)
        for plot in (*self.plots.values(), self.drift_plot):
            plot.rows.clear()
        for i, slider in enumerate(getattr(self, "_sliders", ())):
            slider.value = float(np.clip(self.left.data.ctrl[i], slider.min, slider.max))

    def single_step(self) -> None:
        """Take one step."""
        for run in self.runs:
            run.step()

    # --- the loop ---------------------------------------------------------------------------------

    def advance(self, seconds: float) -> float:
        """Step until so many seconds are over, or it is time for a picture."""
        h, done = self.model.opt.timestep, 0.0
        deadline = time.perf_counter() + FRAME
        while done + h <= seconds * (1 + 1e-9):
            if not all([run.step() for run in self.runs]):
                self.set_paused(True)
                return done
            done += h
            if time.perf_counter() > deadline:
                break
        return done

    def draw(self) -> None:
        """Show bodies and forces, and add points to the plots."""
        if self._follow:
            self._move_scenes()
        if any(not np.isfinite(run.data.qpos).all() for run in self.runs):
            return  # the page shows why, and the last state that can be drawn
        self._samples = []
        for run, view in zip(self.runs, self._views, strict=True):
            forces = run.forces()
            push = (run.push.body, run.push.force) if run.push else None
            view.update(run.data, forces, push)
            self._samples.append(run.sample(forces.required))
        for name, plot in self.plots.items():
            plot.add(self._samples[0].time, [getattr(sample, name) for sample in self._samples])
        if self.right is not None:
            self.drift_plot.add(float(self.left.data.time), [drift(self.left, self.right)])

    def refresh(self) -> None:
        """Update plots and the status."""
        for plot in (*self.plots.values(), *((self.drift_plot,) if self.right else ())):
            plot.show()
        lines = [
            f"<b>{'Paused' if self.paused else 'Running'}</b>, {self.left.data.time:.3f} s, "
            f"{self.rate:.2f} × real time, {self.fps:.0f} frames/s",
        ]
        for name, sample in zip(self._names, self._samples, strict=False):
            lines.append(
                f"<b>{name}</b>: creep {_short(sample.creep)} m/s, penetration "
                f"{_short(sample.penetration)} m, needs µ {sample.required:.2f}, "
                f"step {1e6 * sample.step:.0f} µs"
            )
        for run in self.runs:
            if run.problem:
                lines.append(f'<span style="color:#d72828">{html.escape(run.problem)}</span>')
        if self.right is not None:
            lines.append(f"drift between the two: {1e3 * drift(self.left, self.right):.4g} mm")
        text = "<br>".join(lines)
        self._status.content = f'<div style="padding:0 1em 1em 1em;font-size:.85em">{text}</div>'


def _short(value: float) -> str:
    return f"{value:.2g}" if value > NOTHING else f"below {NOTHING:.0e}"


def _round(value: float) -> float:
    """Two leading digits."""
    return float(f"{value:.2g}") or 1e-9


def _control_range(model: Any, i: int) -> tuple[float, float]:
    if model.actuator_ctrllimited[i]:
        return float(model.actuator_ctrlrange[i, 0]), float(model.actuator_ctrlrange[i, 1])
    used = max((abs(float(model.key_ctrl[k, i])) for k in range(model.nkey)), default=0.0)
    if model.actuator_trntype[i] == int(mujoco.mjtTrn.mjTRN_JOINT):
        joint = model.actuator_trnid[i, 0]
        servo = model.actuator_biastype[i] == int(mujoco.mjtBias.mjBIAS_AFFINE)
        if servo and model.jnt_limited[joint]:
            return float(model.jnt_range[joint, 0]), float(model.jnt_range[joint, 1])
        if servo:
            return -np.pi, np.pi
    largest = _round(max(2.0 * used, 1.0))
    return -largest, largest
