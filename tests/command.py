"""The command line, called as a user calls it."""

from __future__ import annotations

import subprocess
import sys


def holdfast(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "holdfast", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)
