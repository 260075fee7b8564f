"""Gymnasium's environments with exact contact, one and many at once."""

from __future__ import annotations

from typing import Any

import mujoco
import numpy as np
import pytest

import holdfast as hf

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("greenlet")
import holdfast.gym  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore::holdfast.StepWarning")
IDS = (
    "Ant-v5", "HalfCheetah-v5", "Hopper-v5", "Humanoid-v5", "HumanoidStandup-v5",
    "InvertedPendulum-v5", "InvertedDoublePendulum-v5", "Pusher-v5", "Reacher-v5", "Swimmer-v5",
    "Walker2d-v5",
)  # fmt: skip


def run(envs: list[Any], actions: np.ndarray) -> Any:
    """Observations and rewards of single environments, reset where they end, as vectors."""
    observations, rewards, ends, done = [], [], [], [False] * len(envs)
    for row in actions:
        seen = []
        for i, env in enumerate(envs):
            if done[i]:
                observation, reward, done[i] = env.reset()[0], 0.0, False
            else:
                observation, reward, terminated, truncated, _ = env.step(row[i])
                done[i] = terminated or truncated
            seen.append((observation, reward, done[i]))
        observations.append([each[0] for each in seen])
        rewards.append([each[1] for each in seen])
        ends.append([each[2] for each in seen])
    return np.array(observations, dtype=float), np.array(rewards, dtype=float), np.array(ends)


@pytest.mark.parametrize("name", IDS)
def test_environments(name: str) -> None:
    """Each steps as a stepper of its own does, frames and all."""
    env = holdfast.gym.use(gymnasium.make(name))
    inner = env.unwrapped
    env.reset(seed=3)
    env.action_space.seed(3)
    data = mujoco.MjData(inner.model)
    stepper = hf.Stepper(inner.model, limits="compliant", warn=False)
    data.qpos[:], data.qvel[:] = inner.data.qpos, inner.data.qvel
    for _ in range(10):
        action = env.action_space.sample()
        observation, *_ = env.step(action)
        data.ctrl[:] = action
        stepper.step(data, inner.frame_skip)
        assert np.array_equal(inner.data.qpos, data.qpos)
        assert np.isfinite(observation).all()
    assert env.observation_space.contains(observation.astype(env.observation_space.dtype))
    assert isinstance(inner.stepper, hf.Stepper)
    env.close()


def test_contact_forces_are_observed() -> None:
    """An ant at rest presses on the floor with its weight: `cfrc_ext` is filled."""
    env = holdfast.gym.use(gymnasium.make("Ant-v5", reset_noise_scale=0.0))
    env.reset(seed=0)
    inner = env.unwrapped
    for _ in range(60):
        env.step(np.zeros(env.action_space.shape))
    weight = inner.model.body_mass.sum() * 9.81
    assert inner.data.cfrc_ext[:, 5].sum() == pytest.approx(weight, rel=0.05)
    assert inner.stepper.contacts.normal_force.sum() == pytest.approx(weight, rel=0.05)
    env.close()


def test_law_and_options() -> None:
    env = holdfast.gym.use(gymnasium.make("Hopper-v5"), hf.NoSlip(), correct=False, warn=False)
    stepper = env.unwrapped.stepper
    assert stepper.contact == hf.NoSlip() and not stepper.warn
    with pytest.raises(hf.InputError, match="CartPoleEnv does not step a MuJoCo model"):
        holdfast.gym.use(gymnasium.make("CartPole-v1"))


def test_limits_are_those_of_mujoco_unless_chosen() -> None:
    """A motor drives a joint into its limit: it gives way as in MuJoCo, or it does not."""
    deepest = {}
    for limits in (None, "compliant", "rigid"):
        env = gymnasium.make("Swimmer-v5", reset_noise_scale=0.0)
        if limits is not None:
            env = holdfast.gym.use(env, limits=limits)
        env.reset(seed=0)
        inner, deepest[limits] = env.unwrapped, 0.0
        joint = inner.model.joint("motor1_rot")
        for _ in range(200):
            env.step(np.array([1.0, 0.0]))
            excess = float(inner.data.qpos[joint.qposadr[0]] - joint.range[1])
            deepest[limits] = max(deepest[limits], excess)
    assert deepest["rigid"] < 1e-6
    assert deepest[None] > 0.01  # four stages there, one step at velocity level here
    assert deepest["compliant"] == pytest.approx(deepest[None], rel=0.5)
    assert holdfast.gym.use(gymnasium.make("Hopper-v5")).unwrapped.stepper._get("rigid_limits") == 0
    vector = holdfast.gym.make_vec("Hopper-v5", 1, limits="rigid")
    assert vector.envs[0].unwrapped.stepper._get("rigid_limits") == 1
    vector.close()


def test_contacts_are_rigid_unless_chosen() -> None:
    env = holdfast.gym.use(gymnasium.make("Hopper-v5"))
    assert env.unwrapped.stepper._get("rigid_contacts") == 1
    env = holdfast.gym.use(gymnasium.make("Hopper-v5"), contacts="compliant")
    env.reset(seed=0)
    env.step(env.action_space.sample())
    assert env.unwrapped.stepper._get("rigid_contacts") == 0
    vector = holdfast.gym.make_vec("Hopper-v5", 1, options={"contacts": "compliant"})
    assert vector.envs[0].unwrapped.stepper._get("rigid_contacts") == 0
    vector.close()
    for name in ("contacts", "limits"):
        options: dict[str, Any] = {name: "soft"}
        with pytest.raises(hf.InputError, match=f"{name}: is 'soft'"):
            holdfast.gym.use(gymnasium.make("Hopper-v5"), **options)
        with pytest.raises(hf.InputError, match=f"{name}: is 'soft'"):
            holdfast.gym.make_vec("Hopper-v5", 1, options=options)


@pytest.mark.parametrize("name", ["Hopper-v5", "Ant-v5"])
def test_vectors_return_what_single_environments_return(name: str) -> None:
    """For any number of threads; environments end and begin again on the way."""
    count, steps = 3, 60
    envs = [holdfast.gym.use(gymnasium.make(name)) for _ in range(count)]
    envs[0].action_space.seed(1)
    actions = np.array([[envs[0].action_space.sample() for _ in envs] for _ in range(steps)])
    first = [env.reset(seed=5 + i)[0] for i, env in enumerate(envs)]
    observations, rewards, ends = run(envs, actions)
    if name == "Hopper-v5":
        assert ends.any()
    for nthread in (1, 2, 3):
        vector = holdfast.gym.make_vec(name, count, nthread=nthread)
        assert np.array_equal(vector.reset(seed=5)[0], first)
        for k in range(steps):
            seen, reward, terminated, truncated, _ = vector.step(actions[k])
            assert np.array_equal(seen, observations[k])
            assert np.array_equal(reward, rewards[k])
            assert np.array_equal(terminated | truncated, ends[k])
        vector.close()


def test_same_step_resets_and_wrappers() -> None:
    vector = holdfast.gym.make_vec(
        "Hopper-v5", 2, contact=hf.coulomb(2.0), options={"warn": False},
        vector_kwargs={"autoreset_mode": gymnasium.vector.AutoresetMode.SAME_STEP},
        wrappers=[lambda env: gymnasium.wrappers.TimeLimit(env, 5)],
        exclude_current_positions_from_observation=False,
    )  # fmt: skip
    vector.reset(seed=0)
    assert vector.single_observation_space.shape == (12,)
    for k in range(1, 11):
        *_, truncated, infos = vector.step(np.zeros((2, 3)))
        assert truncated.all() == (k % 5 == 0)
        assert ("final_obs" in infos) == (k % 5 == 0)
    assert vector.envs[0].unwrapped.stepper.contact == hf.coulomb(2.0)
    vector.close()


def test_an_error_in_one_environment_is_raised_and_others_are_stepped() -> None:
    vector = holdfast.gym.make_vec("HalfCheetah-v5", 3, nthread=2)
    vector.reset(seed=0)
    actions = np.zeros((3, 6))
    actions[1] = np.nan
    with pytest.raises(hf.InputError, match=r"data.ctrl"):
        vector.step(actions)
    times = [env.unwrapped.data.time for env in vector.envs]
    assert times[0] == times[2] > 0.0 and times[1] == 0.0
    vector.close()
