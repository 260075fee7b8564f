"""Many simulations at once: rollouts on all threads, sweeps over many cases."""

from holdfast.batch.rollout import rollout
from holdfast.batch.rollout_result import Rollout, RunFailure, RunStatus

__all__ = ["Rollout", "RunFailure", "RunStatus", "rollout"]
