"""Searches of a step, one part after the other, each from its first problem to its answer.

A search goes in rounds: pose a problem, solve it, weigh the answer (see `_search`). All rounds of
all parts are one call. What it works on is kept in one array, `memory`, so that the call can return
to let Ctrl-C through, or because that array is too small, and go on where it was.
"""

# pyright: reportArgumentType=false, reportReturnType=false
# (Numba checks the types of kernels; to pyright an array element is an array.)

from __future__ import annotations

import numpy as np

from holdfast._jit import entry, kernel
from holdfast.lcp._solve import PAUSED, SCALARS, SURVEY, proceed, survey
from holdfast.lcp._state import shape_of, work_size
from holdfast.linalg.views import part
from holdfast.mujoco._parts import AT, FLAGS_AT, STATUS, sizes_at
from holdfast.mujoco._scene import (
    RANK_TOL,
    Found,
    Numbers,
    Scene,
    Sizes,
    Work,
    carve,
    numbers_of,
    room,
)
from holdfast.mujoco._search import AGAIN, JAMS, pose, weigh, without_landing
from holdfast.mujoco._usual import FOUND

# What `search` returns beside what `weigh` does.
STOPPED, SMALL = 30, 31

# How far a search is, by place in the array of that: whether a solve goes on, its rows, those of
# its warm start; whether it is the second search of a part; entries that memory must have.
SOLVING, ROWS, WARM, SECOND, NEEDED, PROGRESS = range(6)


@kernel
def solve_posed(
    sc: Scene, nr: Numbers, wk: Work, out: Found, memory: np.ndarray, words: np.ndarray,
    progress: np.ndarray,
) -> int:  # fmt: skip
    """Solve the problem that was posed, or go on; fill memory with the answer, then with work."""
    k, warm, nf, m = progress[ROWS], progress[WARM], sc.loss.shape[0], sc.v.shape[0]
    rows, offsets, expected = wk.values[:k], part(words, 0, 0, 0), wk.warm[:warm]
    b, lo, hi = wk.bounds[0, :k], wk.bounds[1, :k], wk.bounds[2, :k]
    begin = 2 * k + m + min(m, k) + SCALARS
    y, work, integers = memory[:begin], memory[begin:], words[begin:]
    fresh, rank_tol = progress[SOLVING] == 0, out.numbers[RANK_TOL]
    status = SURVEY
    while status == SURVEY:
        status = proceed(
            rows, offsets, sc.A, out.v_free, b, lo, hi, expected, work, integers, y, fresh, nf,
            nr.symmetry, nr.feasibility, nr.rank, nr.zero_row, nr.certificate, nr.max_pivots,
            rank_tol, 0, 0, 0, memory[:0], 0.0,
        )  # fmt: skip
        fresh = False
        if status == SURVEY:
            status = survey(
                rows, offsets, sc.A, m, b, lo, hi, expected, work, integers, y, nf,
                nr.feasibility, nr.certificate, 0, 0,
            )  # fmt: skip
    return status


@kernel
def go_round(
    sc: Scene, nr: Numbers, wk: Work, out: Found, memory: np.ndarray, words: np.ndarray,
    progress: np.ndarray,
) -> int:  # fmt: skip
    """Pose, solve and weigh for as long as it takes; return what `weigh` does, or why to stop."""
    status, m, nf = AGAIN, sc.v.shape[0], sc.loss.shape[0]
    while status == AGAIN:
        if progress[SOLVING] == 0:
            progress[ROWS], progress[WARM] = pose(sc, nr, wk, out)
            k = progress[ROWS]
            progress[NEEDED] = work_size(shape_of(k, m, 0, m, 1, m, nf, progress[WARM]))
            progress[NEEDED] += 2 * k + m + min(m, k) + SCALARS
            if progress[NEEDED] > memory.shape[0]:
                return SMALL
        solved = solve_posed(sc, nr, wk, out, memory, words, progress)
        progress[SOLVING] = 1 if solved == PAUSED else 0
        if solved == PAUSED:
            return STOPPED
        status = weigh(sc, nr, memory, progress[ROWS], solved, wk, out)
    return status


@kernel
def put_aside(work: np.ndarray, flags: np.ndarray, memory_out: np.ndarray) -> None:
    """Keep what stands in work and flags."""
    for k in range(work.shape[0]):
        memory_out[k] = work[k]
    for k in range(flags.shape[0]):
        memory_out[work.shape[0] + k] = 1.0 if flags[k] else 0.0


@kernel
def put_back(memory: np.ndarray, work_out: np.ndarray, flags_out: np.ndarray) -> None:
    """Undo what happened since `put_aside`."""
    for k in range(work_out.shape[0]):
        work_out[k] = memory[k]
    for k in range(flags_out.shape[0]):
        flags_out[k] = memory[work_out.shape[0] + k] > 0.0


@kernel
def search_part(
    work: np.ndarray, words: np.ndarray, flags: np.ndarray, sz: Sizes, nr: Numbers,
    memory: np.ndarray, memory_words: np.ndarray, progress: np.ndarray,
) -> int:  # fmt: skip
    """Search for the motion of a part; return FOUND, or what is in doubt, or why to stop.

    Where contacts jam, another search has no friction where surfaces only land; what it finds is
    used if nothing jams.
    """
    sc, wk, out = carve(work, words, flags, sz)
    numbers, booleans = room(sz)
    aside = numbers + booleans
    progress[NEEDED] = aside
    if aside > memory.shape[0]:
        return SMALL
    if progress[SECOND] == 0:
        status = go_round(sc, nr, wk, out, memory[aside:], memory_words[aside:], progress)
        if status != JAMS:
            progress[NEEDED] += aside
            return status
        put_aside(work[:numbers], flags[:booleans], memory)
        if not without_landing(sc, nr, wk, out):
            return FOUND
        progress[SECOND] = 1
    status = go_round(sc, nr, wk, out, memory[aside:], memory_words[aside:], progress)
    progress[NEEDED] += aside
    if status not in (STOPPED, SMALL):
        progress[SECOND] = 0
        if status != FOUND:
            put_back(memory, work[:numbers], flags[:booleans])
        status = FOUND
    return status


@entry
def search(
    work: np.ndarray, words: np.ndarray, flags: np.ndarray, options: np.ndarray,
    memory: np.ndarray, memory_words: np.ndarray, table_inout: np.ndarray, progress: np.ndarray,
    parts: int,
) -> int:  # fmt: skip
    """Search for the motion of all parts that have none, or go on searching.

    Args:
        work, words, flags: see `carve`.
        options: the fields of `Numbers`.
        memory, memory_words: the same memory twice.
        table_inout: of the parts, see `holdfast.mujoco._parts`.
        progress: zeros at first.
        parts: how many there are.

    Returns:
        FOUND, or what is in doubt; STOPPED to be called again; SMALL to be called again with the
        same memory made longer.
    """
    nr = numbers_of(options)
    for k in range(parts):
        if table_inout[k, STATUS] != FOUND:
            at, flags_at = table_inout[k, AT], table_inout[k, FLAGS_AT]
            status = search_part(
                work[at:], words[at:], flags[flags_at:], sizes_at(table_inout, k), nr, memory,
                memory_words, progress,
            )  # fmt: skip
            if status != FOUND:
                return status
            table_inout[k, STATUS] = FOUND
    return FOUND
