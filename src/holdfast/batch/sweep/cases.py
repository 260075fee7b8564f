"""Cases of a sweep: a grid, random samples, or the lines of a CSV file.

A case is a dictionary that maps the names of parameters to numbers, strings or booleans.

>>> grid({"mass": [0.1, 0.2], "law": ["coulomb", "noslip"]})[1]
{'mass': 0.1, 'law': 'noslip'}
>>> draws = sample(3, {"mass": {"log_uniform": [0.1, 1.0]}, "fingers": {"choice": [2, 3]}}, seed=1)
>>> len(draws), sorted(draws[0])
(3, ['fingers', 'mass'])
>>> sample(1000, {"mass": {"uniform": [0, 1]}})[:3] == sample(3, {"mass": {"uniform": [0, 1]}})
True
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from holdfast.errors import InputError

Scalar = bool | int | float | str | None
Case = dict[str, Scalar]
SEEDS = 2**32  # seeds are below: all generators take them


def grid(values: Mapping[str, Sequence[Any]]) -> list[Case]:
    """Return all combinations of the values of each parameter; the last one varies fastest."""
    for name, several in values.items():
        if isinstance(several, str) or not isinstance(several, Iterable) or not list(several):
            raise InputError(f"grid.{name}", f"is {several!r}; expected a list of values")
    return [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]


def sample(
    count: int,
    parameters: Mapping[str, Any],
    *,
    seed: int = 0,
    method: Literal["random", "latin", "sobol"] = "random",
) -> list[Case]:
    """Draw cases from distributions of the parameters.

    Args:
        count: number of cases. With "random" and "sobol", a larger sample begins with the cases
            of a smaller one.
        parameters: distribution of each parameter: ``{"uniform": [low, high]}``,
            ``{"log_uniform": [low, high]}``, ``{"normal": [mean, deviation]}``,
            ``{"integers": [low, high]}`` (both included), ``{"choice": [...]}``, or any object with
            a method `ppf`, such as the distributions of `scipy.stats`.
        seed: random seed.
        method: independent samples, a Latin hypercube or Sobol points (`scipy.stats.qmc`).
    """
    if count < 1 or not parameters:
        raise InputError("sample", f"has count {count} and {len(parameters)} parameters; expected "
                         "at least one of each")  # fmt: skip
    quantiles = [_quantile(name, given) for name, given in parameters.items()]
    points = _unit_points(count, len(quantiles), seed, method)
    return [
        {name: scalar(name, at(u)) for name, at, u in zip(parameters, quantiles, row, strict=True)}
        for row in points.tolist()
    ]


def _unit_points(count: int, dimension: int, seed: int, method: str) -> np.ndarray:
    if method == "random":
        return np.random.default_rng(seed).random((count, dimension))
    from scipy.stats import qmc

    if method == "latin":
        return qmc.LatinHypercube(dimension, rng=seed).random(count)
    if method == "sobol":
        power = math.ceil(math.log2(count))
        return qmc.Sobol(dimension, rng=seed).random_base2(power)[:count]
    raise InputError("sample.method", f"is {method!r}; expected 'random', 'latin' or 'sobol'")


def _uniform(low: float, high: float) -> Callable[[float], Any]:
    return lambda u: low + (high - low) * u


def _log_uniform(low: float, high: float) -> Callable[[float], Any]:
    if not 0.0 < low <= high:
        raise ValueError(f"[{low}, {high}] is not a range of positive numbers")
    return lambda u: math.exp(math.log(low) + (math.log(high) - math.log(low)) * u)


def _normal(mean: float, deviation: float) -> Callable[[float], Any]:
    from scipy.special import ndtri

    return lambda u: mean + deviation * float(ndtri(u if u > 0.0 else 0.5**54))


def _integers(low: int, high: int) -> Callable[[float], Any]:
    if not (isinstance(low, int) and isinstance(high, int) and low <= high):
        raise ValueError(f"[{low}, {high}] is not a range of integers")
    return lambda u: low + int(u * (high - low + 1))


def _choice(*values: Any) -> Callable[[float], Any]:
    if not values:
        raise ValueError("the list of choices is empty")
    return lambda u: values[int(u * len(values))]


DISTRIBUTIONS: dict[str, Callable[..., Callable[[float], Any]]] = {
    "uniform": _uniform, "log_uniform": _log_uniform, "normal": _normal, "integers": _integers,
    "choice": _choice,
}  # fmt: skip


def _quantile(name: str, given: Any) -> Callable[[float], Any]:
    """The quantile function of a distribution."""
    if hasattr(given, "ppf"):
        return given.ppf
    known = ", ".join(DISTRIBUTIONS)
    if not isinstance(given, Mapping) or len(given) != 1 or next(iter(given)) not in DISTRIBUTIONS:
        raise InputError(f"sample.{name}", f"is {given!r}; expected one of {known} with a list, "
                         "for example { uniform = [0, 1] }")  # fmt: skip
    ((kind, values),) = given.items()
    try:
        return DISTRIBUTIONS[kind](*values)
    except (TypeError, ValueError) as error:
        raise InputError(f"sample.{name}", f"{kind} of {values!r}: {error}") from error


def from_csv(path: Path | str) -> list[Case]:
    """Read one case per line; the first line holds the names of the parameters.

    Columns of integers, numbers and booleans are converted; all others are strings.
    """
    path = Path(path)
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            lines = [(reader.line_num, line) for reader in [csv.reader(file)] for line in reader]
    except OSError as error:
        raise InputError("cases", f"{path} cannot be read: {error.strerror}") from error
    lines = [(number, [cell.strip() for cell in line]) for number, line in lines if any(line)]
    if len(lines) < 2:
        raise InputError(
            "cases", f"{path} has no case; expected a line of names, then one line per case"
        )
    names = lines[0][1]
    if len(set(names)) < len(names) or not all(names):
        raise InputError("cases", f"{path}: column names must be unique and not empty")
    for number, line in lines[1:]:
        if len(line) != len(names) or not all(line):
            raise InputError("cases", f"{path}, line {number}: expected {len(names)} values, for "
                             + ", ".join(names))  # fmt: skip
    columns = [_typed(column) for column in zip(*(line for _, line in lines[1:]), strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _typed(column: Sequence[str]) -> list[Scalar]:
    truth = {"true": True, "false": False}
    for read in (int, float, lambda text: truth[text.lower()]):
        try:
            return [read(text) for text in column]
        except (ValueError, KeyError):
            continue
    return list(column)


def combine(*several: Iterable[Case]) -> list[Case]:
    """Combine each case of one list with each case of the next."""
    return [
        {name: value for part in parts for name, value in part.items()}
        for parts in itertools.product(*several)
    ]


def scalar(name: str, value: Any) -> Scalar:
    """Return a value as a table can hold it; NumPy scalars become Python scalars."""
    if isinstance(value, np.generic) or (isinstance(value, np.ndarray) and value.ndim == 0):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputError(name, f"is of type {type(value).__name__}; expected a number, a string, a "
                     "boolean or None")  # fmt: skip


def with_seeds(cases: Iterable[Mapping[str, Any]], seed: int) -> list[Case]:
    """Cases, each with its `seed`.

    A case that has none gets one made of its parameters and of `seed`: the same whatever other
    cases there are and in which order. Equal cases get different ones.

    Raises:
        InputError: a case that no table can hold, or two that are equal, seed included.
    """
    seen: Counter[str] = Counter()
    result, where = [], dict[str, int]()
    for i, given in enumerate(cases):
        case = {str(name): scalar(f"case {i}, {name}", value) for name, value in given.items()}
        if any(isinstance(value, float) and not math.isfinite(value) for value in case.values()):
            raise InputError(f"case {i}", f"has a value that is not finite: {case}")
        if "seed" not in case:
            text = canonical(case)
            case["seed"] = _seed_of(f"{seed}/{seen[text]}/{text}")
            seen[text] += 1
        first = where.setdefault(canonical(case), i)
        if first != i:
            raise InputError("cases", f"case {i} repeats case {first}, including its seed: {case}; "
                             "omit the seeds to give each case its own")  # fmt: skip
        result.append(case)
    return result


def canonical(case: Case) -> str:
    """A text that equal cases share, whatever the order of their parameters."""
    return json.dumps(case, sort_keys=True, allow_nan=False, separators=(",", ":"))


def key_of(case: Case) -> str:
    """A short name of a case, by which its result is found again."""
    return hashlib.sha256(canonical(case).encode()).hexdigest()[:20]


def _seed_of(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") % SEEDS
