"""Settings that all tests share.

Hypothesis is derandomised: the same code sees the same examples on every run and machine.
`HYPOTHESIS_PROFILE=thorough` (set by `make test-all`) tries many more of them.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "default",
    derandomize=True,
    deadline=None,  # the first call compiles a kernel
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("thorough", settings.get_profile("default"), max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def ending(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands that run in this process end as if each were the only one."""
    from holdfast.cli import _interrupt

    monkeypatch.setattr(_interrupt, "_ending", _interrupt._Ending())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests about compilation when there is none."""
    if os.environ.get("NUMBA_DISABLE_JIT", "0") == "0":
        return
    for item in items:
        if item.get_closest_marker("jit"):
            item.add_marker(pytest.mark.skip(reason="kernels are not compiled"))
