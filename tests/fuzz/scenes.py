"""Random scenes: every kind of geom, joint, tendon, actuator and equality, over all scales.

A seed is a scene, on every machine. Bodies do not overlap when they start, so what penetration
there is later was made by the steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mujoco
import numpy as np

GEOMS = ("box", "sphere", "capsule", "cylinder", "ellipsoid", "mesh")
GROUNDS = ("plane", "plane", "box", "hfield", "mesh")
INTEGRATORS = ("Euler", "Euler", "implicitfast", "implicit", "RK4", "discrete")


@dataclass(frozen=True)
class Scene:
    """A scene, and what to do with it."""

    seed: int
    xml: str
    kinds: frozenset[str]  # what it contains: geoms, "chain", "tendon", "actuator", ...
    speed: float  # of the start [m/s]
    size: float  # length scale [m]

    def load(self) -> tuple[Any, Any]:
        """Model and data; bodies have random velocities, mocap bodies stand."""
        model = mujoco.MjModel.from_xml_string(self.xml)
        data = mujoco.MjData(model)
        rng = np.random.default_rng([self.seed, 1])
        for j in range(model.njnt):
            first = int(model.jnt_dofadr[j])
            if model.jnt_type[j] == mujoco.mjtJoint.mjJNT_FREE:
                data.qvel[first : first + 3] = self.speed * rng.normal(size=3)
                data.qvel[first + 3 : first + 6] = self.speed / self.size * rng.normal(size=3)
        data.ctrl[:] = rng.normal(size=model.nu)
        return model, data

    def drive(self, model: Any, data: Any, k: int) -> None:
        """What happens before step k: mocap bodies move, controls change now and then."""
        rng = np.random.default_rng([self.seed, 2, k // 50])
        if model.nmocap:
            way = 0.2 * self.size * np.array([np.sin(0.05 * k), np.cos(0.03 * k) - 1.0, 0.0])
            data.mocap_pos[:] = model.body_pos[model.body_mocapid >= 0] + way
        if model.nu and k % 50 == 0:
            data.ctrl[:] = rng.normal(size=model.nu)

    @property
    def passive(self) -> bool:
        """Whether nothing can add energy."""
        return not self.kinds & {"actuator", "mocap", "weld"}


def random_scene(
    seed: int,
    *,
    scales: tuple[float, float] = (1e-3, 100.0),
    geoms: tuple[str, ...] = GEOMS,
    grounds: tuple[str, ...] = GROUNDS,
) -> Scene:
    """The scene of a seed."""
    rng = np.random.default_rng(seed)
    return _Maker(rng, seed, scales, geoms, grounds).make()


class _Maker:
    def __init__(self, rng: Any, seed: int, scales: tuple[float, float], geoms: tuple[str, ...],
                 grounds: tuple[str, ...]) -> None:  # fmt: skip
        self.rng, self.seed, self.geoms, self.grounds = rng, seed, geoms, grounds
        self.size = self.between(*scales) if rng.random() < 0.5 else 0.1 * self.between(0.5, 2.0)
        self.assets: list[str] = []
        self.kinds: set[str] = set()
        self.joints: list[str] = []
        self.bodies: list[str] = []

    def between(self, low: float, high: float) -> float:
        """Log-uniform."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def pick(self, choices: tuple[str, ...]) -> str:
        return str(choices[self.rng.integers(len(choices))])

    def make(self) -> Scene:
        rng = self.rng
        ground = self.ground()
        free = "".join(self.free_body(i) for i in range(int(rng.integers(1, 7))))
        chain = self.chain() if rng.random() < 0.4 else ""
        mocap = self.mocap() if rng.random() < 0.2 else ""
        tendon = self.tendon() if len(self.joints) > 1 and rng.random() < 0.5 else ""
        actuator = self.actuators() if self.joints and rng.random() < 0.5 else ""
        equality = self.equalities() if rng.random() < 0.3 else ""
        h = self.between(1e-4, 2e-2)
        speed = float(np.sqrt(9.81 * self.size) * rng.choice([0.0, 0.3, 1.0, 3.0]))
        cone = self.pick(("pyramidal", "elliptic"))
        xml = f"""<mujoco>
  <option timestep="{h:.6g}" integrator="{self.pick(INTEGRATORS)}" cone="{cone}"/>
  <size memory="20M"/>
  <asset>{"".join(self.assets)}</asset>
  <worldbody>{ground}{free}{chain}{mocap}</worldbody>
  {tendon}{actuator}{equality}
</mujoco>"""
        return Scene(self.seed, xml, frozenset(self.kinds), speed, self.size)

    def contact(self) -> str:
        mu = self.rng.choice([0.0, 0.1, 0.5, 1.0, 1.5])
        condim = self.rng.choice([1, 3, 3, 3, 4, 6])
        return f'friction="{mu} 0.005 0.0001" condim="{condim}"'

    def ground(self) -> str:
        kind, L = self.pick(self.grounds), self.size
        self.kinds.add(f"ground {kind}")
        tilt = self.rng.choice([0.0, 0.0, 5.0, 20.0])
        where = f'euler="{tilt} {0.5 * tilt} 0" {self.contact()} name="ground"'
        if kind == "plane":
            return f'<geom type="plane" size="{50 * L} {50 * L} {L}" {where}/>'
        if kind == "box":
            return f'<geom type="box" size="{30 * L} {30 * L} {L}" pos="0 0 {-L}" {where}/>'
        if kind == "mesh":
            return (
                f'<geom type="mesh" mesh="{self.mesh(15 * L, 0.2)}" pos="0 0 {-3.1 * L}" {where}/>'
            )
        n = int(self.rng.integers(4, 12))
        elevation = " ".join(f"{x:.4f}" for x in self.rng.random(n * n))
        self.assets.append(f'<hfield name="field" nrow="{n}" ncol="{n}" elevation="{elevation}" '
                           f'size="{12 * L} {12 * L} {L} {L}"/>')  # fmt: skip
        return f'<geom type="hfield" hfield="field" pos="0 0 {-L}" {where}/>'

    def mesh(self, size: float, flat: float = 1.0) -> str:
        """A convex mesh of random points on a sphere, flattened."""
        points = self.rng.normal(size=(int(self.rng.integers(6, 20)), 3))
        points *= size / np.linalg.norm(points, axis=1, keepdims=True)
        points[:, 2] *= flat
        name = f"mesh{len(self.assets)}"
        text = " ".join(f"{x:.6g}" for x in points.ravel())
        self.assets.append(f'<mesh name="{name}" vertex="{text}"/>')
        return name

    def geom(self, L: float) -> str:
        """A geom within a ball of the radius L."""
        kind, rng = self.pick(self.geoms), self.rng
        self.kinds.add(kind)
        a, b, c = (L * x for x in rng.uniform(0.2, 0.57, size=3))
        mass = max(self.between(0.01, 100.0) * 1000.0 * L**3, 2e-13 / L**2)
        sizes = {
            "box": f"{a} {b} {c}", "sphere": f"{a}", "capsule": f"{0.6 * a} {0.6 * b}",
            "cylinder": f"{a} {b}", "ellipsoid": f"{a} {b} {c}",
        }  # fmt: skip
        if kind == "mesh":
            name = self.mesh(0.8 * L)
            return f'<geom type="mesh" mesh="{name}" mass="{mass:.6g}" {self.contact()}/>'
        return f'<geom type="{kind}" size="{sizes[kind]}" mass="{mass:.6g}" {self.contact()}/>'

    def place(self, i: int) -> str:
        """The i-th place of a grid above the ground, three in a layer."""
        L, rng = self.size, self.rng
        x, y = 2.2 * L * (i % 3 - 1), 2.2 * L * ((i // 3) % 2)
        z = 2.2 * L + 2.2 * L * (i // 6) + 0.5 * L * rng.random()
        z += 0.55 * (abs(x) + abs(y))  # above a ground that is tilted
        turn = rng.normal(size=4)
        return (f'pos="{x:.6g} {y:.6g} {z:.6g}" '
                f'quat="{turn[0]:.6g} {turn[1]:.6g} {turn[2]:.6g} {turn[3]:.6g}"')  # fmt: skip

    def free_body(self, i: int) -> str:
        name = f"free{i}"
        self.bodies.append(name)
        part = self.size * (1.0 if self.rng.random() < 0.7 else self.between(0.1, 1.0))
        return f'<body name="{name}" {self.place(i)}><freejoint/>{self.geom(part)}</body>'

    def chain(self) -> str:
        L, rng = self.size, self.rng
        self.kinds.add("chain")
        text, ends = "", ""
        for k in range(int(rng.integers(2, 5))):
            name = f"joint{k}"
            kind = self.pick(("hinge", "hinge", "slide", "ball"))
            axis = rng.normal(size=3)
            limit = L if kind == "slide" else 1.0
            more = ""
            if kind != "ball":
                self.joints.append(name)
                more = f'axis="{axis[0]:.4f} {axis[1]:.4f} {axis[2]:.4f}"'
                if rng.random() < 0.5:
                    more += f' limited="true" range="{-limit * rng.random():.6g} {limit:.6g}"'
                if rng.random() < 0.3:
                    more += f' frictionloss="{self.between(1e-3, 1.0) * 1e3 * L**4:.6g}"'
            damping = rng.choice([0.0, self.between(1e-3, 1.0) * 1e3 * L**4])
            where = f"{-3 * L:.6g} {-3 * L:.6g} {5 * L:.6g}" if k == 0 else f"0 0 {1.3 * L:.6g}"
            text += (f'<body name="link{k}" pos="{where}"><joint name="{name}" type="{kind}" '
                     f'damping="{damping:.6g}" {more}/>{self.geom(L)}')  # fmt: skip
            self.bodies.append(f"link{k}")
            ends += "</body>"
        return text + ends

    def mocap(self) -> str:
        self.kinds.add("mocap")
        L = self.size
        return (f'<body name="hand" mocap="true" pos="{3.5 * L:.6g} 0 {2.5 * L:.6g}">'
                f"{self.geom(L)}</body>")  # fmt: skip

    def tendon(self) -> str:
        self.kinds.add("tendon")
        limit = 'limited="true" range="-1 1"' if self.rng.random() < 0.5 else 'stiffness="1"'
        rows = "".join(
            f'<joint joint="{name}" coef="{self.rng.normal():.4f}"/>' for name in self.joints[:2]
        )
        return f'<tendon><fixed name="tendon" {limit}>{rows}</fixed></tendon>'

    def actuators(self) -> str:
        self.kinds.add("actuator")
        unit = 1e3 * self.size**4 * 9.81
        kinds = ("motor", "position", "velocity")
        text = ""
        for name in self.joints:
            kind = self.pick(kinds)
            gain = {"motor": f'gear="{unit:.6g}"', "position": f'kp="{unit:.6g}"',
                    "velocity": f'kv="{0.1 * unit:.6g}"'}[kind]  # fmt: skip
            text += f'<{kind} joint="{name}" {gain}/>'
        return f"<actuator>{text}</actuator>"

    def equalities(self) -> str:
        text, rng = "", self.rng
        free = [name for name in self.bodies if name.startswith("free")]
        if len(free) > 1 and rng.random() < 0.7:
            kind = self.pick(("connect", "weld"))
            self.kinds.add(kind)
            anchor = f'anchor="0 0 {self.size:.6g}"' if kind == "connect" else ""
            text += f'<{kind} body1="{free[0]}" body2="{free[1]}" {anchor}/>'
        if len(self.joints) > 1 and rng.random() < 0.5:
            self.kinds.add("joint equality")
            text += f'<joint joint1="{self.joints[0]}" joint2="{self.joints[1]}"/>'
        return f"<equality>{text}</equality>" if text else ""
