"""Exact rigid contact: contacts stick, slide and separate without creep or penetration.

>>> import numpy as np, holdfast as hf
>>> problem = hf.ContactProblem(
...     M=np.eye(2),                        # a point of 1 kg in the plane
...     v=[1.0, -3.0],                      # on its way down and sideways
...     N=[[0.0, 1.0]], S=[[1.0, 0.0]],     # a floor: its normal and its tangent
... )
>>> solution = hf.NoSlip().solve(problem)
>>> solution.velocity.tolist(), solution.normal_impulse.tolist(), solution.is_exact()
([0.0, 0.0], [3.0], True)
"""

from typing import TYPE_CHECKING, Any

from holdfast import _command, _html, contact, errors, lcp  # noqa: F401
from holdfast.contact import (
    ContactProblem,
    ContactSolution,
    Law,
    coulomb,
    frictionless,
    stick,
    viscous,
)
from holdfast.errors import (
    EventError,
    FrictionWarning,
    HoldfastError,
    InconsistentConfigurationError,
    InfeasibleError,
    InputError,
    NotPositiveDefiniteError,
    NotSymmetricError,
    RayTerminationError,
    SolveError,
    StepWarning,
    SweepError,
    UncertifiedError,
    UnsupportedError,
)
from holdfast.lcp import find_indices
from holdfast.models import (
    AnitescuPotra,
    ContactModel,
    Coulomb,
    CoulombAcceleration,
    CoulombSolution,
    DrumwrightShell,
    Frictionless,
    Mixed,
    NoSlip,
    StewartTrinkle,
    Viscous,
)

if TYPE_CHECKING:
    from holdfast.batch import Rollout, RunFailure, RunStatus, rollout
    from holdfast.batch.sweep import SweepTable, cases, sweep
    from holdfast.events import EventDriven
    from holdfast.mujoco import (
        Contacts,
        Stepper,
        build_problem,
        forward,
        step,
    )

__version__ = "0.1.0"

__all__ = [
    "AnitescuPotra",
    "ContactModel",
    "ContactProblem",
    "ContactSolution",
    "Contacts",
    "Coulomb",
    "CoulombAcceleration",
    "CoulombSolution",
    "DrumwrightShell",
    "EventDriven",
    "EventError",
    "FrictionWarning",
    "Frictionless",
    "HoldfastError",
    "InconsistentConfigurationError",
    "InfeasibleError",
    "InputError",
    "Law",
    "Mixed",
    "NoSlip",
    "NotPositiveDefiniteError",
    "NotSymmetricError",
    "RayTerminationError",
    "Rollout",
    "RunFailure",
    "RunStatus",
    "SolveError",
    "StepWarning",
    "Stepper",
    "StewartTrinkle",
    "SweepError",
    "SweepTable",
    "UncertifiedError",
    "UnsupportedError",
    "Viscous",
    "build_problem",
    "cases",
    "contact",
    "coulomb",
    "errors",
    "find_indices",
    "forward",
    "frictionless",
    "lcp",
    "rollout",
    "step",
    "stick",
    "sweep",
    "viscous",
]

# what notebooks show
for _class, _shown in ((ContactProblem, _html.of_problem), (ContactSolution, _html.of_solution)):
    setattr(_class, "_repr_html_", _shown)  # noqa: B010

# imported when first used: MuJoCo is large
_OF_MUJOCO = ("Contacts", "Stepper", "build_problem", "forward", "step")
_OF_BATCH = ("Rollout", "RunFailure", "RunStatus", "rollout")
_OF_SWEEP = ("SweepTable", "cases", "sweep")


def __getattr__(name: str) -> Any:
    if name in _OF_MUJOCO:
        import holdfast.mujoco

        return getattr(holdfast.mujoco, name)
    if name in _OF_BATCH:
        import holdfast.batch

        return getattr(holdfast.batch, name)
    if name in _OF_SWEEP:
        import holdfast.batch.sweep

        return getattr(holdfast.batch.sweep, name)
    if name == "EventDriven":
        import holdfast.events

        return holdfast.events.EventDriven
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
