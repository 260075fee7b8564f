"""Gymnasium's MuJoCo environments with exact contact: how many steps a second.

pip install "holdfast[gym]"
python examples/gymnasium_env.py

Nothing is trained here. The same random actions go to the original environments, to single ones
with exact contact, and to vectors of both; they take turns, and the fastest of each counts.
"""

import time
import warnings

import numpy as np

try:
    import gymnasium
    import holdfast.gym
except ImportError:
    gymnasium = None

NAMES = ("Ant-v5", "HalfCheetah-v5", "Humanoid-v5")


def steps_per_second(env, steps, count):
    """Steps of a single environment, or of all those of a vector, per second."""
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(steps)]
    env.reset(seed=0)
    begin = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if count == 1 and (terminated or truncated):
            env.reset()
    return count * steps / (time.perf_counter() - begin)


def main(steps=100, count=8, rounds=2):
    if gymnasium is None:
        print('this example needs Gymnasium: pip install "holdfast[gym]"')
        return
    warnings.simplefilter("ignore", holdfast.StepWarning)  # RK4 has no stages where bodies touch
    print(f"{'steps per second':>18}  {'original':>9}  {'exact':>9}  "
          f"{f'{count} originals':>13}  {f'{count} exact':>9}  threads")  # fmt: skip
    for name in NAMES:
        vector = holdfast.gym.make_vec(name, count)
        settings = [
            (gymnasium.make(name), steps, 1),
            (holdfast.gym.use(gymnasium.make(name)), steps, 1),
            (gymnasium.make_vec(name, count, vectorization_mode="sync"), steps // 4, count),
            (vector, steps // 4, count),
        ]
        rounds_of_all = [[steps_per_second(*each) for each in settings] for _ in range(rounds)]
        rates = np.max(rounds_of_all, axis=0)
        print(f"{name:>18}  {rates[0]:9.0f}  {rates[1]:9.0f}  {rates[2]:13.0f}  {rates[3]:9.0f}  "
              f"{vector.nthread:7d}")  # fmt: skip
        for env, *_ in settings:
            env.close()


if __name__ == "__main__":
    main()
