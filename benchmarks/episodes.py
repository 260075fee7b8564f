"""Episodes of Gymnasium's MuJoCo environments under random actions, beside those of `mj_step`.

    python benchmarks/episodes.py [NAME ...] [--episodes 40] [--out DIR]

Every environment of version 5 runs the same number of episodes with `mj_step` and with
`holdfast.gym.use`, with compliant and with rigid limits of joints. Initial states and actions are
random with fixed seeds, other ones for each, so that samples are independent. The table has the
means of episode lengths and of rewards per episode, and the p-values of two-sample tests
(Kolmogorov-Smirnov) against `mj_step`: a small one says that the distributions differ.

Needs the extras `gym` and `dev` (SciPy).
"""

from __future__ import annotations

import argparse
import json
import os
import warnings
from pathlib import Path
from typing import Any, Literal, NamedTuple

os.environ.setdefault("MUJOCO_GL", "disable")

import gymnasium
import numpy as np
from scipy.stats import ks_2samp

import holdfast.gym
from tasks import GYMNASIUM

Limits = Literal["compliant", "rigid"]
STEPPERS: dict[str, Limits | None] = {
    "mj_step": None, "compliant limits": "compliant", "rigid limits": "rigid",
}  # fmt: skip
SEEDS = 100_000  # between those of two steppers
UNLIKELY = 0.01  # p-values below are marked


class Sample(NamedTuple):
    """Episodes of one environment with one stepper."""

    lengths: list[int]
    rewards: list[float]


def make(name: str, limits: Limits | None) -> Any:
    """Make an environment, with the step that Gymnasium or we have."""
    environment = gymnasium.make(f"{name}-v5")
    return environment if limits is None else holdfast.gym.use(environment, limits=limits)


def run(environment: Any, episodes: int, seed: int) -> Sample:
    """Run episodes to their ends with random actions."""
    space, sample = environment.action_space, Sample([], [])
    for k in range(seed, seed + episodes):
        environment.reset(seed=k)
        rng = np.random.default_rng(k)
        length, reward, done = 0, 0.0, False
        while not done:
            _, gain, ended, cut, _ = environment.step(rng.uniform(space.low, space.high))
            length, reward, done = length + 1, reward + float(gain), ended or cut
        sample.lengths.append(length)
        sample.rewards.append(reward)
    return sample


def p_value(one: list[Any], other: list[Any]) -> float:
    """Return the p-value of the hypothesis that two samples have one distribution."""
    return float(ks_2samp(one, other).pvalue)  # pyright: ignore[reportAttributeAccessIssue]


def cells(name: str, samples: dict[str, Sample]) -> list[str]:
    """One line of the table."""
    own = samples["mj_step"]
    row = [name, f"{np.mean(own.lengths):.0f}", f"{np.mean(own.rewards):.4g}"]
    for stepper, sample in samples.items():
        if stepper != "mj_step":
            for of, format_ in (("lengths", ".0f"), ("rewards", ".4g")):
                mean, p = (
                    np.mean(getattr(sample, of)),
                    p_value(getattr(own, of), getattr(sample, of)),
                )
                row += [f"{mean:{format_}}", f"{p:.2g}" + (" \\*" if p < UNLIKELY else "")]
    return row


def headings() -> list[str]:
    """Heading of the table."""
    words = ["environment", "mj_step: length", "reward"]
    for stepper in STEPPERS:
        if stepper != "mj_step":
            words += [f"{stepper}: length", "p", "reward", "p"]
    return words


def main() -> None:
    """Run the episodes, print a line per environment, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", help="environments without version; all by default")
    parser.add_argument("--episodes", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, Sample]] = {}
    for name in given.names or GYMNASIUM:
        found[name] = {
            stepper: run(make(name, limits), given.episodes, SEEDS * k)
            for k, (stepper, limits) in enumerate(STEPPERS.items())
        }
        print("  ".join(cells(name, found[name])), flush=True)
    rows = [headings(), ["---"] * len(headings()), *(cells(*item) for item in found.items())]
    text = f"{given.episodes} episodes each; \\* p below {UNLIKELY}\n\n"
    text += "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
    given.out.mkdir(parents=True, exist_ok=True)
    (given.out / "episodes.md").write_text(text)
    values = {name: {k: s._asdict() for k, s in each.items()} for name, each in found.items()}
    (given.out / "episodes.json").write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
