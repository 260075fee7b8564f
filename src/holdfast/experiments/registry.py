"""The experiments by name, imported when they are run."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from holdfast.errors import InputError
from holdfast.experiments.parts import Experiment

EXPERIMENTS = {
    "grasp": "holdfast.experiments.grasp.experiment:Grasp",
    "locomotion": "holdfast.experiments.locomotion.experiment:Locomotion",
    "scaling": "holdfast.experiments.scaling.experiment:Scaling",
    "robustness": "holdfast.experiments.robustness.experiment:Robustness",
}
"""Module and class of each, in the order of the report; a class takes the seed, or nothing."""


def names_of(what: str) -> list[str]:
    """The experiments meant by a name or by "all"."""
    if what == "all":
        return list(EXPERIMENTS)
    if what not in EXPERIMENTS:
        raise InputError("what", f"is {what!r}; expected one of {', '.join(EXPERIMENTS)}, all")
    return [what]


def load(name: str, *, seed: int) -> Experiment:
    """Make an experiment."""
    module, _, attribute = EXPERIMENTS[name].partition(":")
    make: Any = getattr(import_module(module), attribute)
    return make(seed=seed) if "seed" in getattr(make, "__dataclass_fields__", {}) else make()
