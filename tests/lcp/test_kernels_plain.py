"""The kernels are plain Python: what NUMBA_DISABLE_JIT=1 computes is what the compiler computes.

This file is also the script that the other process runs: see `main`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holdfast as hf
from holdfast.lcp import BlockRows, _solve, _state, solve, solve_factored

HERE = Path(__file__).parent


def cone(n: int, m: int, seed: int) -> dict[str, Any]:
    """Random rows that all lean one way."""
    rng = np.random.default_rng(seed)
    N = rng.normal(size=(n, m))
    N[:, 0] = np.abs(N[:, 0]) + 0.5
    A = rng.normal(size=(m, m))
    return {"N": N, "M": A @ A.T + np.eye(m), "v": rng.normal(size=m)}


def with_offset(p: dict[str, Any]) -> dict[str, Any]:
    return p | {"b": 0.5 - p["N"] @ np.ones(len(p["v"]))}


def with_bounds(p: dict[str, Any]) -> dict[str, Any]:
    n = len(p["N"])
    lo, hi = np.zeros(n), np.full(n, np.inf)
    lo[:2] = -np.inf
    lo[2 : n // 2], hi[2 : n // 2] = -0.1, 0.2
    return p | {"lo": lo, "hi": hi}


def bodies(n: int, count: int) -> dict[str, Any]:
    """Contacts between pairs of bodies, in blocks."""
    rng = np.random.default_rng(n)
    A = rng.normal(size=(count, 6, 6))
    rows = BlockRows(rng.integers(0, count, (n, 2)), rng.normal(size=(n, 2, 6)))
    M = A @ A.transpose(0, 2, 1) + np.eye(6)
    return {"N": rows, "M": M, "v": rng.normal(size=6 * count)}


def answers() -> dict[str, np.ndarray]:
    """A few problems through every kernel."""
    problems = {
        "dense": cone(12, 6, 0),
        "offset": with_offset(cone(12, 6, 1)),
        "bounds": with_bounds(cone(12, 6, 2)),
        "blocks": bodies(10, 3),
        "many rows": cone(1000, 12, 3),  # more than are looked at all at once
        "many rows and bounds": with_bounds(cone(500, 5, 4)),
        "many block rows": bodies(900, 9),
    }
    found = {name: solve_factored(**p).motion for name, p in problems.items()}
    first = solve_factored(**problems["many rows"])
    found["warm"] = solve_factored(**problems["many rows"], warm_start=first).motion
    A = np.random.default_rng(5).normal(size=(7, 4))
    for method in ("ppm", "lemke"):
        found[method] = solve(A @ A.T, A @ np.array([1.0, -2.0, 0.5, 3.0]), method).w
    J, S, T = np.random.default_rng(6).normal(size=(3, 3, 6))
    found["indices"] = np.concatenate(list(hf.find_indices(np.eye(6), J, S, T))).astype(float)
    return found


def main(path: str) -> None:
    """Write the answers to a file; called in a process without compilation."""
    from numba import config

    assert config.DISABLE_JIT
    np.savez(path, **answers(), dropped=drop_candidates())


def drop_candidates() -> np.ndarray:
    """A solve whose list of candidates overflows, and how often that happened.

    Constants of plain Python can be changed: with few new candidates in a round the list, which
    has room for those of some rounds, is soon full.
    """
    drops = [0]
    make_room = _solve.make_room

    def counting(*arguments: Any) -> None:
        (counters,) = (a for a in arguments if getattr(a, "shape", ()) == (_state.COUNTERS,))
        before = counters[_state.CANDIDATES]
        make_room(*arguments)
        drops[0] += counters[_state.CANDIDATES] < before

    _solve.make_room, _state.BUCKETS = counting, 3
    return np.append(solve_factored(**cone(1000, 12, 3)).motion, drops[0])


def run(code: str, **environment: str) -> subprocess.Popen[str]:
    setup = f"import sys; sys.path.insert(0, {str(HERE)!r}); import test_kernels_plain as t; "
    return subprocess.Popen(
        [sys.executable, "-c", setup + code],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.jit
def test_plain_python_agrees_with_compiled(tmp_path: Path) -> None:
    path = tmp_path / "plain.npz"
    process = run(f"t.main({str(path)!r})", NUMBA_DISABLE_JIT="1")
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    with np.load(path) as data:
        plain = dict(data)
    dropped = plain.pop("dropped")
    compiled = answers()
    assert plain.keys() == compiled.keys()
    for name, answer in compiled.items():
        # sums may be ordered differently; all numbers are of size 1
        np.testing.assert_allclose(plain[name], answer, rtol=0, atol=1e-12, err_msg=name)
    assert dropped[-1] > 0
    np.testing.assert_allclose(dropped[:-1], compiled["many rows"], rtol=0, atol=1e-12)


# --- Ctrl-C -------------------------------------------------------------------------------------


def long_solve(solver: str, size: int) -> None:
    """Say "ready" once everything is compiled, then solve for minutes."""
    # a process started in the background inherits that SIGINT is ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    rng = np.random.default_rng(0)
    for n in (4, size):
        A = rng.normal(size=(n, n))
        if n == size:
            print("ready", flush=True)
        if solver == "lemke":
            solve(A @ A.T + (A - A.T), -np.ones(n), "lemke")
        else:
            N = rng.normal(size=(4 * n, n))
            N[:, 0] = np.abs(N[:, 0]) + 0.1
            solve_factored(N, None, rng.normal(size=n))


@pytest.mark.slow
@pytest.mark.jit
@pytest.mark.parametrize(("solver", "size"), [("factored", 1500), ("lemke", 3000)])
def test_ctrl_c(solver: str, size: int) -> None:
    """A long solve ends soon after Ctrl-C, with KeyboardInterrupt."""
    process = run(f"t.long_solve({solver!r}, {size})")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(1.5)
        assert process.poll() is None, "solved before it could be interrupted"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=5.0)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
