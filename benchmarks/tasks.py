"""Tasks of other people's packages, done by the same policy with holdfast and with `mj_step`.

    python benchmarks/tasks.py [fetch] [metaworld] [robosuite] [gymnasium]
                               [--steppers mj_step holdfast compliant stiff] [--out DIR]

Needs the extra `models`. Every episode runs in a process of its own with a limit of time.
`publish.py` copies the tables into docs/gymnasium.rst; all numbers are in tasks.json.

fetch      FetchPickAndPlace, a scripted pick: above the cube, down, close, to the goal; 6 seeds
metaworld  25 tasks of MetaWorld, each with its own scripted policy, from states that `mj_step` has
           prepared: in a reset the hand is pulled through the wall of the table, which is possible
           only with soft contact
robosuite  Lift with a Panda, a scripted pick, 4 seeds
gymnasium  the 11 MuJoCo environments, version 5, 1000 random steps: rewards and episode lengths,
           and the time of a step; both steppers see the same actions

Steppers: mj_step; holdfast, that is `hf.step`; compliant, the same with contacts and limits that
give way as MuJoCo's do; stiff, `mj_step` with contacts as stiff as five times smaller steps allow.
What only soft contact can do, as pressing a button beyond its stop or letting a grip creep, fails
with that one, too.
"""

from __future__ import annotations

import argparse
import io
import json
import logging
import os
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("MUJOCO_GL", "disable")

import mujoco
import numpy as np

import holdfast as hf
import isolation
import model_sources

METAWORLD = (
    "assembly-v3", "basketball-v3", "bin-picking-v3", "box-close-v3", "button-press-v3",
    "button-press-topdown-v3", "coffee-button-v3", "dial-turn-v3", "door-close-v3",
    "door-open-v3", "drawer-close-v3", "drawer-open-v3", "faucet-open-v3", "hammer-v3",
    "handle-press-v3", "lever-pull-v3", "peg-insert-side-v3", "pick-place-v3", "plate-slide-v3",
    "push-v3", "reach-v3", "shelf-place-v3", "sweep-v3", "window-close-v3", "window-open-v3",
)  # fmt: skip
GYMNASIUM = ("Ant", "HalfCheetah", "Hopper", "Humanoid", "HumanoidStandup",
             "InvertedDoublePendulum", "InvertedPendulum", "Pusher", "Reacher", "Swimmer",
             "Walker2d")  # fmt: skip
RANDOM_STEPS = 1000
PICK = 50  # steps of Fetch
ABOVE = np.array([0.0, 0.0, 0.07])  # [m]
Step = Callable[..., None]
FINER = 5  # steps of the stiff stepper in one of the model
STIFF_SOLREF, STIFF_SOLIMP = (0.001, 1.0), (0.98, 0.99, 0.001, 0.5, 2.0)
STIFF_IMPRATIO = 100.0


class Compliant:
    """Our step with the compliance of MuJoCo's contacts and limits."""

    def __init__(self) -> None:
        self.stepper: hf.Stepper | None = None

    def __call__(self, model: Any, data: Any, nstep: int = 1) -> None:
        """Step."""
        if self.stepper is None or self.stepper.model is not model:
            self.stepper = hf.Stepper(model, limits="compliant", contacts="compliant", warn=False)
        self.stepper.step(data, nstep)


def stiff(model: Any, data: Any, nstep: int = 1) -> None:
    """MuJoCo's step with stiff contacts, in smaller steps."""
    model.geom_solref[:], model.geom_solimp[:] = STIFF_SOLREF, STIFF_SOLIMP
    model.opt.impratio = STIFF_IMPRATIO
    h = model.opt.timestep
    model.opt.timestep = h / FINER
    mujoco.mj_step(model, data, FINER * nstep)
    model.opt.timestep = h


STEPS: dict[str, Step] = {
    "mj_step": mujoco.mj_step, "holdfast": hf.step, "compliant": Compliant(), "stiff": stiff,
}  # fmt: skip


class Clock:
    """A step that keeps its times."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.times: list[float] = []

    def __call__(self, model: Any, data: Any, nstep: int = 1) -> None:
        """Step, and look at the clock."""
        begin = time.thread_time()
        self.step(model, data, nstep)
        self.times.append((time.thread_time() - begin) / nstep)

    @property
    def micros(self) -> float:
        """Median time of a step [µs]."""
        return 1e6 * float(np.median(self.times or [0.0]))


@dataclass
class Episode:
    """What came of one episode, or of 1000 random steps."""

    success: bool = False
    reward: float = 0.0  # sum; of random steps the mean per episode
    length: float = 0.0  # steps of the environment; of random steps the mean per episode
    micros: float = 0.0  # median time of a step of the physics, of the processor [µs]


def fetch(seed: int, stepper: str) -> Episode:
    """One scripted pick of FetchPickAndPlace."""
    import gymnasium
    import gymnasium_robotics

    gymnasium.register_envs(gymnasium_robotics)
    clock = Clock(STEPS[stepper])
    import gymnasium_robotics.envs.fetch.pick_and_place  # its modules, to be adapted

    model_sources.adapt("gymnasium_robotics", clock)
    environment = gymnasium.make("FetchPickAndPlace-v4")
    seen, _ = environment.reset(seed=seed)
    closed, reward, info = 0, 0.0, {}
    for _ in range(PICK):
        grip, cube = seen["observation"][:3], seen["observation"][3:6]
        open_ = 1.0
        if closed:
            closed += 1
            target, open_ = (cube, -1.0) if closed < 6 else (seen["desired_goal"], -1.0)
        elif np.linalg.norm(cube[:2] - grip[:2]) > 0.008 and grip[2] > cube[2] + 0.03:
            target = cube + ABOVE
        else:
            target = cube
            closed = int(np.linalg.norm(cube - grip) < 0.012)
        move = np.clip(10.0 * (target - grip), -1.0, 1.0)
        seen, gain, _, _, info = environment.step(np.append(move, open_))
        reward += float(gain)
    return Episode(bool(info["is_success"]), reward, PICK, clock.micros)


def metaworld(task: str, stepper: str) -> Episode:
    """One episode of a task with its own policy."""
    import metaworld as package
    from metaworld.policies import ENV_POLICY_MAP

    clock = Clock(mujoco.mj_step)
    for name in ("metaworld", "gymnasium"):
        model_sources.adapt(name, clock)
    bench = package.MT1(task, seed=1)
    environment = bench.train_classes[task]()
    environment.set_task(bench.train_tasks[0])
    seen, _ = environment.reset()
    clock.step = STEPS[stepper]
    clock.times.clear()
    policy, reward, success = ENV_POLICY_MAP[task](), 0.0, False
    length = 0
    while length < 400 and not success:
        length += 1
        seen, gain, _, _, info = environment.step(np.clip(policy.get_action(seen), -1, 1))
        reward += float(gain)
        success = bool(info["success"])
    return Episode(success, reward, length, clock.micros)


def robosuite(seed: int, stepper: str) -> Episode:
    """One scripted lift of a cube."""
    clock = Clock(STEPS[stepper])
    environment = model_sources.make_robosuite("Lift", "Panda", clock, seed=seed, horizon=200)
    seen = environment.reset()
    closed, reward, length = 0, 0.0, 0
    while length < 120 and not environment._check_success():
        length += 1
        grip, cube = seen["robot0_eef_pos"], seen["cube_pos"]
        target, finger = cube + ABOVE, -1.0
        if closed:
            closed += 1
            target, finger = (cube, 1.0) if closed < 12 else (cube + 3 * ABOVE, 1.0)
        elif np.linalg.norm(cube[:2] - grip[:2]) < 0.012 or grip[2] < cube[2] + 0.03:
            target = cube
            closed = int(abs(grip[2] - cube[2]) < 0.008)
        move = np.clip(12.0 * (target - grip), -1.0, 1.0)
        seen, gain, *_ = environment.step(np.concatenate([move, np.zeros(3), [finger]]))
        reward += float(gain)
    success = bool(environment._check_success())
    return Episode(success, reward, length, clock.micros)


def gymnasium_(name: str, stepper: str) -> Episode:
    """Random steps of an environment."""
    import gymnasium

    clock = Clock(STEPS[stepper])
    environment = gymnasium.make(f"{name}-v5")
    model_sources.adapt("gymnasium", clock)
    rng = np.random.default_rng(0)
    environment.reset(seed=0)
    space: Any = environment.action_space
    rewards, lengths, total, length = [], [], 0.0, 0
    for k in range(RANDOM_STEPS):
        _, gain, ended, cut, _ = environment.step(rng.uniform(space.low, space.high))
        total, length = total + float(gain), length + 1
        if ended or cut or k == RANDOM_STEPS - 1:
            rewards.append(total)
            lengths.append(length)
            total, length = 0.0, 0
            environment.reset(seed=k)
    return Episode(True, float(np.mean(rewards)), float(np.mean(lengths)), clock.micros)


GROUPS: dict[str, tuple[Callable[[Any, str], Episode], tuple[Any, ...]]] = {
    "fetch": (fetch, tuple(range(6))),
    "metaworld": (metaworld, METAWORLD),
    "robosuite": (robosuite, tuple(range(4))),
    "gymnasium": (gymnasium_, GYMNASIUM),
}


def quietly(function: Callable[[Any, str], Episode], item: tuple[Any, str]) -> Episode:
    """Run an episode without what packages print."""
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        return function(*item)


def run_group(name: str, steppers: list[str], seconds: float) -> list[dict[str, Any]]:
    """All episodes of a group with all steppers, each in a process of its own."""
    function, items = GROUPS[name]
    rows = []
    for item in items:
        row: dict[str, Any] = {"group": name, "item": item}
        for stepper in steppers:
            work, limits = partial(quietly, function), isolation.Limits(seconds, 8e9)
            (outcome,) = isolation.run_isolated(work, [(item, stepper)], limits)
            row[stepper] = asdict(outcome.value) if outcome.value else {"failure": outcome.failure}
        rows.append(row)
        print("  ".join(cells(row, steppers)), flush=True)
    for stepper in steppers:
        done = sum(succeeds(row[stepper]) for row in rows)
        print(f"{name}: {stepper} {done} of {len(rows)}", flush=True)
    return rows


def markdown(title: str, lines: list[tuple[str, ...]]) -> str:
    """A table with a title, the first line as its heading."""
    ruled = [lines[0], ("---",) * len(lines[0]), *lines[1:]]
    return f"**{title}**\n\n" + "\n".join("| " + " | ".join(line) + " |" for line in ruled)


def tables(rows: list[dict[str, Any]], steppers: list[str]) -> list[str]:
    """How many tasks were done, in how many steps, and what random steps came to."""
    tasks = [row for row in rows if row["group"] != "gymnasium"]
    random = [row for row in rows if row["group"] == "gymnasium"]
    found = []
    if tasks:
        groups = {row["group"]: [r for r in tasks if r["group"] == row["group"]] for row in tasks}
        done = [(name, *counts(group, steppers)) for name, group in groups.items()]
        found.append(markdown("Tasks done", [("group", *steppers), *done]))
        each = [(f"{row['group']} {row['item']}", *(steps_to_success(row[s]) for s in steppers))
                for row in tasks]  # fmt: skip
        title = "Steps of the environment until success; an episode of fetch has 50"
        found.append(markdown(title, [("task", *steppers), *each]))
    if random:
        first, *others = steppers
        heading = ["environment"]
        heading += [f"{name}: {what}" for what in ("reward", "length") for name in steppers]
        heading += [f"{name}: time" for name in others]
        lines = [(row["item"], *numbers(row, steppers), *(ratio(row, s, first) for s in others))
                 for row in random]  # fmt: skip
        title = f"{RANDOM_STEPS} random steps: means of an episode, median times of a step over "
        found.append(markdown(f"{title}those of {first}", [tuple(heading), *lines]))
    return found


def counts(group: list[dict[str, Any]], steppers: list[str]) -> list[str]:
    """How many tasks of a group each stepper has done."""
    return [f"{sum(succeeds(row[each]) for row in group)} of {len(group)}" for each in steppers]


def numbers(row: dict[str, Any], steppers: list[str]) -> list[str]:
    """Rewards and lengths of all steppers."""
    kinds = (("reward", ".4g"), ("length", ".0f"))
    return [format(row[each][what], form) if what in row[each] else "failed"
            for what, form in kinds for each in steppers]  # fmt: skip


def ratio(row: dict[str, Any], stepper: str, to: str) -> str:
    """How long a step takes with one stepper, over the other."""
    one, other = (row[each].get("micros", 0.0) for each in (stepper, to))
    return f"{one / other:.2f}" if one and other else "failed"


def succeeds(one: dict[str, Any]) -> bool:
    """Whether an episode ended in success."""
    return bool(one.get("success"))


def steps_to_success(one: dict[str, Any]) -> str:
    """How many steps an episode took to success, or that it had none."""
    return f"{one['length']:.0f}" if succeeds(one) else one.get("failure", "never")


def cells(row: dict[str, Any], steppers: list[str]) -> tuple[str, ...]:
    """One line of what is printed."""
    found = [row["group"], str(row["item"])]
    for stepper in steppers:
        one = row[stepper]
        if "failure" in one:
            found += [one["failure"], "", "", ""]
        else:
            found += ["done" if one["success"] else "not done", f"{one['reward']:.1f}",
                      f"{one['length']:.0f}", f"{one['micros']:.0f}"]  # fmt: skip
    return tuple(found)


def main() -> None:
    """Run the groups, print a line per episode, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("groups", nargs="*", help=f"of {', '.join(GROUPS)}; all by default")
    parser.add_argument("--steppers", nargs="+", choices=STEPS, default=["mj_step", "holdfast"])
    parser.add_argument("--seconds", type=float, default=240.0, help="limit of an episode")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    hf.step(model, mujoco.MjData(model))  # compiled here, children are forked
    rows = [
        row
        for name in given.groups or GROUPS
        if name != "fetch" or model_sources.folder_of("gymnasium_robotics")
        for row in run_group(name, given.steppers, given.seconds)
    ]
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "tasks.md").write_text("\n\n".join(tables(rows, given.steppers)) + "\n")
    (given.out / "tasks.json").write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
