"""What users may rely on: changing this list is a decision, not an accident."""

from __future__ import annotations

import subprocess
import sys

import holdfast
import holdfast.lcp

HOLDFAST = [
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

LCP = [
    "MLCP",
    "BlockRows",
    "DenseLCP",
    "FactoredLCP",
    "Indices",
    "LCPResult",
    "Options",
    "ReducedMLCP",
    "Residuals",
    "Status",
    "find_indices",
    "reduce_mlcp",
    "solve",
    "solve_factored",
]

OPTIONS = [
    "feasibility",
    "rank",
    "zero_row",
    "certificate",
    "max_pivots",
    "symmetry",
    "semidefinite",
    "regularization",
]

RESULT = [
    "certified",
    "left_out",
    "allowance",
    "equality_pivots",
    "fallback",
    "loaded",
    "motion",
    "pivots",
    "rank",
    "regularization",
    "residuals",
    "rounds",
    "status",
    "w",
    "z",
]


def test_names() -> None:
    assert holdfast.__all__ == HOLDFAST
    assert holdfast.lcp.__all__ == LCP
    for module, names in ((holdfast, HOLDFAST), (holdfast.lcp, LCP)):
        for name in names:
            assert getattr(module, name).__doc__, f"{name} is not documented"


def test_fields() -> None:
    assert list(holdfast.lcp.Options.__dataclass_fields__) == OPTIONS
    public = {name for name in dir(holdfast.lcp.LCPResult) if not name.startswith("_")}
    assert public == set(RESULT)
    assert holdfast.lcp.Residuals._fields == ("primal", "dual", "complementarity", "stationarity")


def test_version() -> None:
    assert holdfast.__version__.count(".") == 2


def test_import_brings_in_only_what_it_needs() -> None:
    """Heavy or optional packages are imported by those who use them, when they do.

    Numba imports a corner of SciPy by itself; that is not counted.
    """
    code = (
        "import sys, numba; before = set(sys.modules); import holdfast;"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    loaded = set(done.stdout.split())
    assert "holdfast" in loaded
    assert loaded.isdisjoint({"scipy", "matplotlib", "mujoco", "daqp", "hypothesis", "pytest"})


def test_laws_are_functions_not_the_modules_of_the_same_name() -> None:
    assert holdfast.viscous(0.5).mu_v == 0.5
    assert (holdfast.stick().kind, holdfast.frictionless().kind) == ("stick", "frictionless")
