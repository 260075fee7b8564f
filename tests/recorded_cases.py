"""Contact problems recorded by others, with their tolerances and the known answers.

Data and origins: `tests/data`, tolerances in `tests/data/contact_problems/README.md`.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from reference import energy_norm

DATA = Path(__file__).parent / "data"


def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as data:
        return dict(data)


def tolerances() -> dict[str, tuple[float, float | None]]:
    """Relative tolerances (frictionless, no-slip) by case; None where rank-ambiguous."""
    table = {}
    for line in (DATA / "contact_problems" / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 7 and re.fullmatch(r"\d+", cells[1]):
            no_slip = None if cells[5] == "rank-ambiguous" else float(cells[5])
            table[cells[0]] = float(cells[4]), no_slip
    return table


CASES = tolerances()


def recorded(case: str) -> dict[str, np.ndarray]:
    return load(DATA / "contact_problems" / f"{case}.npz")


def assert_reference(data: dict[str, np.ndarray], model: str, x: np.ndarray, rtol: float) -> None:
    """Compare v+ in the energy norm, or contact velocities where only those are known (M = I)."""
    scale = energy_norm(data["M"], data["v"])
    if f"vplus_{model}" in data:
        error = energy_norm(data["M"], x - data[f"vplus_{model}"])
    else:
        pairs = zip("NST", "nst", strict=True)
        errors = [data[rows] @ x - data[f"u{axis}_{model}"] for rows, axis in pairs]
        error = np.linalg.norm(np.concatenate(errors))
    assert error <= rtol * scale
