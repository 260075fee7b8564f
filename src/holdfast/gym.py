"""Gymnasium's MuJoCo environments with exact contact, one or many at once.

`use` makes an environment step by a `Stepper`; everything else of it stays as it is. `make_vec`
makes a vectorised environment whose simulations run on all cores: what environments do in Python
(actions, observations, rewards) is done one after the other, and the steps of all of them, which
take most of the time, at once.

Needs Gymnasium: ``pip install "holdfast[gym]"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from holdfast.batch.threads import Work, thread_count
from holdfast.contact.laws import Law
from holdfast.errors import InputError
from holdfast.models import ContactModel
from holdfast.mujoco._mj import mujoco
from holdfast.mujoco.stepper import Stepper

try:
    import gymnasium
    from greenlet import getcurrent, greenlet
    from gymnasium.vector import AutoresetMode, SyncVectorEnv
except ImportError as error:
    raise ImportError(
        'holdfast.gym needs Gymnasium and greenlet: pip install "holdfast[gym]"'
    ) from error

__all__ = ["VectorEnv", "make_vec", "use"]

Limits = Literal["compliant", "rigid"]


def use(
    env: Any,
    contact: ContactModel | Law | None = None,
    *,
    limits: Limits = "compliant",
    **options: Any,
) -> Any:
    """Make a MuJoCo environment of Gymnasium step with exact contact, and return it.

    Wrappers stay as they are. The environment gets an attribute `stepper`, with the contacts and
    the solution of the last step: ``env.unwrapped.stepper``.

    Args:
        env: made by ``gymnasium.make("Ant-v5")`` or the like; any `MujocoEnv` in any wrappers, and
            environments of Gymnasium-Robotics.
        contact: law of contacts, as for `Stepper`; Coulomb friction of the model by default.
        limits: "compliant", as in MuJoCo: limits of joints are part of the robot that policies and
            rewards were made for; or "rigid", as a `Stepper` has them by default.
        options: further options of `Stepper`, as ``contacts="compliant"`` for policies that were
            tuned on soft contact.

    Raises:
        InputError: the environment has no MuJoCo model, or steps it in an unknown way.

    Example:
        >>> import gymnasium, holdfast.gym
        >>> env = holdfast.gym.use(gymnasium.make("Ant-v5"))
        >>> observation, info = env.reset(seed=0)
        >>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        >>> env.unwrapped.stepper.uncertified_steps
        0
    """
    _use(env, contact, {"limits": limits, **options}, _now)
    return env


def make_vec(
    id: Any,
    num_envs: int = 1,
    *,
    contact: ContactModel | Law | None = None,
    limits: Limits = "compliant",
    nthread: int | None = None,
    options: Mapping[str, Any] | None = None,
    vector_kwargs: Mapping[str, Any] | None = None,
    wrappers: Any = None,
    **kwargs: Any,
) -> VectorEnv:
    """Make a vectorised MuJoCo environment with exact contact, on all cores.

    What it returns for given seeds and actions does not depend on the number of threads, and is
    what ``num_envs`` environments with `use` return.

    Args:
        id: name of the environment, such as ``"Ant-v5"``, or its spec.
        num_envs: number of environments.
        contact: law of contacts, as for `Stepper`.
        limits: of joints and tendons, as for `use`.
        nthread: number of threads; all cores by default.
        options: further options of `Stepper`.
        vector_kwargs: arguments of `gymnasium.vector.SyncVectorEnv`, such as `autoreset_mode`.
        wrappers: functions that wrap each environment, as in `gymnasium.make_vec`.
        kwargs: arguments of the environments.

    Example:
        >>> import holdfast.gym
        >>> envs = holdfast.gym.make_vec("HalfCheetah-v5", num_envs=4)
        >>> observations, infos = envs.reset(seed=0)
        >>> observations, rewards, terminations, truncations, infos = envs.step(
        ...     envs.action_space.sample())
        >>> observations.shape
        (4, 17)
    """

    def make() -> Any:
        env = gymnasium.make(id, **kwargs)
        for wrapper in wrappers or ():
            env = wrapper(env)
        return env

    return VectorEnv([make] * num_envs, contact=contact, limits=limits, nthread=nthread,
                     options=options, **dict(vector_kwargs or {}))  # fmt: skip


class VectorEnv(SyncVectorEnv):
    """A vectorised environment whose simulations run in threads.

    Args:
        env_fns: functions that make the environments.
        contact: law of contacts, as for `Stepper`.
        limits: of joints and tendons, as for `use`.
        nthread: number of threads; all cores by default.
        options: further options of `Stepper`.
        kwargs: arguments of `gymnasium.vector.SyncVectorEnv`.
    """

    def __init__(
        self,
        env_fns: Any,
        *,
        contact: ContactModel | Law | None = None,
        limits: Limits = "compliant",
        nthread: int | None = None,
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(env_fns, **kwargs)
        self.nthread = thread_count(nthread, len(self.envs))
        for env in self.envs:
            _use(env, contact, {"limits": limits, **(options or {})}, self._later)
        self.envs = [_Begun(env) for env in self.envs]
        self._hub: Any = None

    def step(self, actions: Any) -> Any:
        """Step all environments, their simulations at once."""
        skipped = self._autoreset_envs if self._resets_next else [False] * len(self.envs)
        begun: list[Any] = [
            None if skip else _Step(env, action)
            for env, action, skip in zip(self.envs, self._each(actions), skipped, strict=True)
        ]
        self._run([step for step in begun if step is not None])
        return super().step(actions)

    @property
    def _resets_next(self) -> bool:
        return self.autoreset_mode == AutoresetMode.NEXT_STEP

    def _each(self, actions: Any) -> Any:
        from gymnasium.vector.utils import iterate

        return iterate(self.action_space, actions)

    def _run(self, steps: list[_Step]) -> None:
        """Go on with each step to its simulation, run all simulations, and so on to their ends."""
        self._hub = getcurrent()
        try:
            waiting = steps
            while waiting:
                waiting = [step for step in waiting if step.go_on()]
                tasks = [step.simulation for step in waiting]
                if tasks:
                    work = Work(tasks)
                    work.run(min(self.nthread, len(tasks)), lambda _, work=work: _simulate(work))
        finally:
            self._hub = None
        for step in steps:  # one that failed did not disturb the others
            if step.error is not None:
                raise step.error

    def _later(self, simulation: Callable[[], None]) -> None:
        """Leave a simulation to the loop of `_run`; it is done when this returns."""
        if self._hub is None or getcurrent() is self._hub:
            simulation()  # as in `reset`
        else:
            self._hub.switch(simulation)


class _Begun(gymnasium.Wrapper):
    """An environment whose next step may have been taken already."""

    result: Any = None

    def step(self, action: Any) -> Any:
        """What the step that was taken has returned; or take one."""
        result, self.result = self.result, None
        return self.env.step(action) if result is None else result


class _Step:
    """A step of an environment, which stops where it wants to simulate.

    Attributes:
        simulation: what it waits for.
        error: what it has raised.
    """

    def __init__(self, env: Any, action: Any) -> None:
        self.simulation: Callable[[], None] | None = None
        self.error: Exception | None = None
        self._env, self._greenlet = env, greenlet(lambda: env.env.step(action))

    def go_on(self) -> bool:
        """Go on to the next simulation; False if there is none, and the step has ended."""
        failed = getattr(self.simulation, "error", None)
        try:
            result = self._greenlet.throw(failed) if failed else self._greenlet.switch()
        except Exception as error:
            self.error = error
            return False
        if self._greenlet.dead:
            self._env.result = result
            return False
        self.simulation = _Simulation(result)
        return True


class _Simulation:
    """A simulation that is run in another thread; its error is for who wants it."""

    def __init__(self, run: Callable[[], None]) -> None:
        self._run = run
        self.error: Exception | None = None

    def __call__(self) -> None:
        try:
            self._run()
        except Exception as error:
            self.error = error


def _simulate(work: Work) -> None:
    """Run simulations until there are none."""
    task = work.next()
    while task is not None:
        task()
        task = work.next()


def _now(simulation: Callable[[], None]) -> None:
    simulation()


def _use(env: Any, contact: Any, options: Mapping[str, Any],
         simulate: Callable[[Callable[[], None]], None]) -> None:  # fmt: skip
    """Let an environment simulate with exact contact, now or when `simulate` does it."""
    inner: Any = getattr(env, "unwrapped", env)
    model, data = getattr(inner, "model", None), getattr(inner, "data", None)
    known = isinstance(model, mujoco.MjModel) and isinstance(data, mujoco.MjData)
    ways = ("_step_mujoco_simulation", "_mujoco_step")
    if not known or not any(hasattr(inner, way) for way in ways):
        raise InputError("env", f"{type(inner).__name__} does not step a MuJoCo model in a way "
                         "that is known; call holdfast.step in its own method")  # fmt: skip
    stepper = inner.stepper = Stepper(model, contact, **options)

    def step_simulation(ctrl: Any, n_frames: int) -> None:
        inner.data.ctrl[:] = ctrl

        def run() -> None:
            stepper.step(inner.data, n_frames)
            mujoco.mj_rnePostConstraint(inner.model, inner.data)  # as the original does

        simulate(run)

    def robot_step(_action: Any) -> None:
        simulate(lambda: stepper.step(inner.data, inner.n_substeps))

    if hasattr(inner, "_step_mujoco_simulation"):
        inner._step_mujoco_simulation = step_simulation
    else:
        inner._mujoco_step = robot_step
