"""``holdfast warmup``: all kernels compiled, once."""

from __future__ import annotations

import time
from dataclasses import dataclass

from holdfast.cli._common import exit_code, progress_bar


@dataclass(frozen=True)
class Warmup:
    """Compile all kernels, so that nothing has to be compiled later.

    Run it after installation, or while building a container image: the compiled kernels are found
    even if the installation is read-only afterwards. Set NUMBA_CACHE_DIR to store them elsewhere.
    """

    quiet: bool = False
    """Print nothing."""

    @exit_code
    def run(self) -> int:
        """Compile, print; return the exit code."""
        from holdfast import _cache
        from holdfast.mujoco import step
        from holdfast.tools.warmup import warm_up

        start = time.perf_counter()
        with progress_bar("compiling", quiet=self.quiet) as progress:
            count = warm_up(progress)
        if not self.quiet:
            kept = _cache.cache_of(step).cache_path
            where = f"in {kept} and beside it" if kept else "nowhere: no directory is writable"
            took = f"{count} kernels compiled in {time.perf_counter() - start:.0f} s"
            print(
                f"{took if count else 'all kernels were compiled already'}; they are stored {where}"
            )
        return 0
