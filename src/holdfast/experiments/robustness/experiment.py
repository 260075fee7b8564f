"""How often solvers fail, or report success with a wrong answer, on recorded problems."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from holdfast import lcp
from holdfast.contact.problem import ContactProblem
from holdfast.errors import HoldfastError, InputError
from holdfast.experiments.parts import Report, Section, Table, Trial, Value
from holdfast.experiments.robustness import recorded
from holdfast.experiments.robustness.algorithm1 import Algorithm1Error, algorithm1
from holdfast.experiments.robustness.recorded import GROUPS, Recorded, lcp_residual
from holdfast.models import ContactModel, Frictionless, NoSlip, Viscous

ACCURATE = 1e-6  # residual beyond which an answer said to be solved is wrong
EXACT = 1e-9  # likewise for the models, whose residuals are all relative
STEP = 0.01  # [s] of the recorded contact problems


def _modified_ppm(p: Recorded) -> np.ndarray:
    if p.F is not None:
        return lcp.solve(p.F, p.e, "ppm").z
    return lcp.solve_factored(p.N, p.M, p.v, p.b).z


def _dense(method: str) -> Callable[[Recorded], np.ndarray]:
    return lambda p: lcp.solve(*p.lcp(), method).z


def _paper(charitable: bool) -> Callable[[Recorded], np.ndarray]:
    return lambda p: algorithm1(p.N, p.M, p.v, p.b, charitable=charitable)[1]


SOLVERS: dict[str, tuple[str, Callable[[Recorded], np.ndarray]]] = {
    "ppm": ("modified PPM (ours)", _modified_ppm),
    "lemke": ("Lemke (ours)", _dense("lemke")),
    "qp": ("active-set QP (daqp)", _dense("qp")),
    "algorithm1": ("Algorithm 1 with tolerances", _paper(True)),
    "algorithm1-printed": ("Algorithm 1 as printed", _paper(False)),
}

MODELS: dict[str, tuple[str, ContactModel]] = {
    "noslip-ppm": ("no-slip, modified PPM", NoSlip(grip="all", solver="ppm")),
    "noslip-pressed": ("no-slip where pressed, contact solve", NoSlip()),
    "noslip-lemke": ("no-slip, Lemke", NoSlip(grip="all", solver="lemke")),
    "noslip-qp": ("no-slip, active-set QP", NoSlip(grip="all", solver="qp")),
    "viscous-ppm": ("viscous, modified PPM", Viscous(0.1, solver="ppm")),
    "viscous-lemke": ("viscous, Lemke", Viscous(0.1, solver="lemke")),
    "frictionless-ppm": ("frictionless, modified PPM", Frictionless(solver="ppm")),
}


@dataclass(frozen=True)
class Robustness:
    """Every solver on every recorded problem.

    Attributes:
        data: folder with the recorded problems.
    """

    name: str = "robustness"
    data: Path = field(default_factory=recorded.default_folder)

    def trials(self, *, quick: bool) -> list[Trial]:
        """One per solver and one per model; `quick` makes no difference, it takes seconds."""
        solvers = [
            Trial(f"solver-{key}", self._judge(solve)) for key, (_, solve) in SOLVERS.items()
        ]
        models = [Trial(f"model-{key}", self._solve(model)) for key, (_, model) in MODELS.items()]
        return solvers + models

    def _judge(self, solve: Callable[[Recorded], np.ndarray]) -> Callable[[Report], dict[str, Any]]:
        def run(report: Report) -> dict[str, Any]:
            problems = self._all()
            return {} if problems is None else _each(
                report, ((p.group, p.name, _verdict(solve, p)) for p in problems), len(problems)
            )  # fmt: skip

        return run

    def _solve(self, model: ContactModel) -> Callable[[Report], dict[str, Any]]:
        def run(report: Report) -> dict[str, Any]:
            problems = list(recorded.contact_problems(self.data))
            return _each(
                report, (("contact", name, _model_verdict(model, fields))
                         for name, fields in problems), len(problems)
            )  # fmt: skip

        return run

    def _all(self) -> list[Recorded] | None:
        """The problems; None where there are none, as in an installation without the repository."""
        try:
            return recorded.load(self.data)
        except InputError:
            return None

    def sections(self, results: Mapping[str, dict[str, Any]]) -> list[Section]:
        """The tables, or a note on what is missing."""
        title = "Robustness on recorded problems"
        if not any(results.values()):
            return [Section(title, [
                f"No recorded problems were found in `{self.data}`. They are not part of the "
                "installed package: run the report from a checkout of the repository, where they "
                "are in `tests/data`."
            ], [], [])]  # fmt: skip
        return [Section(title, _TEXT, [_solver_table(results), _model_table(results)], [])]


def _each(
    report: Report, judged: Iterable[tuple[str, str, dict[str, Any]]], count: int
) -> dict[str, Any]:
    found = []
    for k, (group, name, verdict) in enumerate(judged, start=1):
        found.append({"group": group, "problem": name} | verdict)
        report(k / count)
    return {"verdicts": found} if found else {}


def _verdict(solve: Callable[[Recorded], np.ndarray], p: Recorded) -> dict[str, Any]:
    try:
        z = solve(p)
    except (HoldfastError, Algorithm1Error) as error:
        return {"verdict": "failed", "why": str(error)}
    residual = lcp_residual(*p.lcp(), z)
    if not residual <= ACCURATE:
        return {"verdict": "wrong", "why": f"residual {residual:.1e}"}
    return {"verdict": "accurate", "residual": residual}


def _model_verdict(model: ContactModel, fields: dict[str, Any]) -> dict[str, Any]:
    try:
        solution = model.solve(ContactProblem(**fields, h=STEP))
    except HoldfastError as error:
        return {"verdict": "failed", "why": str(error)}
    if solution.is_exact(EXACT):
        return {"verdict": "accurate"}
    others = (
        solution.penetration_speed(), solution.complementarity(), solution.bilateral_residual(),
        solution.momentum_residual(),
    )  # fmt: skip
    if solution.rank_ambiguous and max(others) <= EXACT:
        return {"verdict": "ambiguous", "why": f"slip {solution.slip():.1e}"}
    return {"verdict": "wrong", "why": f"not exact to {EXACT:.0e}"}


def _count(verdicts: list[dict[str, Any]], *which: str) -> int:
    return sum(each["verdict"] in which for each in verdicts)


def _row(label: str, verdicts: list[dict[str, Any]]) -> dict[str, Value]:
    bad = _count(verdicts, "failed", "wrong")
    return {
        "solver": label,
        "problems": len(verdicts),
        "failed": _count(verdicts, "failed"),
        "wrong without saying so": _count(verdicts, "wrong"),
        "share failed or wrong [%]": 100.0 * bad / len(verdicts),
    }


def _solver_table(results: Mapping[str, dict[str, Any]]) -> Table:
    rows = []
    for key, (label, _) in SOLVERS.items():
        verdicts = results[f"solver-{key}"]["verdicts"]
        row = _row(label, verdicts)
        for group in GROUPS:
            some = [each for each in verdicts if each["group"] == group]
            row[group] = f"{_count(some, 'accurate')}/{len(some)}"
        rows.append(row)
    note = (
        "Failed: the solver reported it. Wrong: it reported success with a residual above "
        f"{ACCURATE:.0e}, measured on F and e by the same rule for all. The last columns: "
        "accurate answers by group."
    )
    return Table("robustness_solvers", "Solvers on the recorded LCPs", rows, note)


def _model_table(results: Mapping[str, dict[str, Any]]) -> Table:
    rows = []
    for key, (label, _) in MODELS.items():
        verdicts = results[f"model-{key}"]["verdicts"]
        row = _row(label, verdicts)
        row["slips, and says why"] = _count(verdicts, "ambiguous")
        rows.append(row)
    note = (
        "The recorded contact problems with their tangents and joints, from problem to forces. "
        f"Wrong: some residual of the solution (slip, penetration, complementarity, joints, "
        f"momentum) is beyond {EXACT:.0e}. Slips, and says why: tangents so nearly dependent that "
        "Find-Indices takes some of them as redundant; the motion then depends on its tolerance, "
        "and the solution has the flag `rank_ambiguous`."
    )
    return Table("robustness_models", "Models on the recorded contact problems", rows, note)


_TEXT = [
    "Recorded sets: contact problems of real machines and of the public collections FCLib and "
    "ContactBench; problems on which the paper's Algorithm 1 cycles; 200 no-slip LCPs of a walking "
    "quadruped; textbook LCPs. They are in `tests/data` of the repository.",
    "The paper reports no failures of its pivoting method. A re-run of its public sources does: "
    "in the walking experiment it reaches its pivot limit in a quarter of the non-trivial solves "
    "and falls back to Lemke. The listing itself is run here in two readings: as printed, with "
    "comparisons to zero, and with tolerances. Both cycle or meet singular matrices; the "
    "documentation has the reasons and the fixes.",
]
