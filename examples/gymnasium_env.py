"""A Gymnasium environment with exact contact: one method, one line.

pip install "holdfast[gym]"
python examples/gymnasium_env.py
"""

try:
    from gymnasium.envs.mujoco.ant_v5 import AntEnv
except ImportError:
    AntEnv = None

import holdfast as hf


def main() -> None:
    if AntEnv is None:
        print('this example needs Gymnasium: pip install "holdfast[gym]"')
        return

    class ExactAnt(AntEnv):
        def _step_mujoco_simulation(self, ctrl, n_frames):
            self.data.ctrl[:] = ctrl
            hf.step(self.model, self.data, nstep=n_frames)  # was: mujoco.mj_step(...)

    env = ExactAnt()
    env.reset(seed=0)
    env.action_space.seed(0)
    total = 0.0
    for _ in range(20):
        _, reward, terminated, *_ = env.step(env.action_space.sample())
        total += float(reward)
        assert not terminated
    print(f"20 steps, reward {total:.2f}, torso at {env.data.qpos[:3].round(3)}")
    env.close()


if __name__ == "__main__":
    main()
