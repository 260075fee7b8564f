"""How kernels are compiled: one place for Numba's switches.

Kernels take plain arrays and work arrays, return a status, and never raise, print or allocate.
That allows two switches that matter in microsecond solves: division follows IEEE (no check for
zero at every division), and no reference counting (views into the caller's arrays are only read
while the caller holds them). Each kernel is plain Python: NUMBA_DISABLE_JIT=1 runs it as such.
"""

from __future__ import annotations

from numba import njit

_SWITCHES = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "_nrt": False,
    "no_cfunc_wrapper": True,
}

# Called from Python.
entry = njit(**_SWITCHES)

# Called from other kernels only, which halves the time to compile them. Rounding is exactly as
# written: for comparisons and compensated arithmetic.
kernel = njit(**_SWITCHES, no_cpython_wrapper=True)

# The same, where sums may be reassociated so that loops vectorise. The order is fixed when the
# kernel is compiled, so results are still the same bits at every run.
fast_kernel = njit(**_SWITCHES, no_cpython_wrapper=True, fastmath={"reassoc", "contract"})
