"""The command line: one file per command."""

from __future__ import annotations

import tyro

from holdfast.cli._interrupt import run
from holdfast.cli.bench import Bench
from holdfast.cli.compare import Compare
from holdfast.cli.demo import Demo
from holdfast.cli.reproduce import Reproduce
from holdfast.cli.simulate import Simulate
from holdfast.cli.sweep import Sweep
from holdfast.cli.verify import Verify
from holdfast.cli.view import View
from holdfast.cli.warmup import Warmup


def main() -> None:
    """Run the command named on the command line."""
    commands = {
        "demo": Demo, "simulate": Simulate, "compare": Compare, "verify": Verify,
        "view": View, "sweep": Sweep, "bench": Bench, "reproduce": Reproduce, "warmup": Warmup,
    }  # fmt: skip
    run(
        lambda: tyro.extras.subcommand_cli_from_dict(
            commands, prog="holdfast", description=_HELP
        ).run()
    )


_HELP = "Exact rigid contact for MuJoCo models: bodies at rest neither creep nor sink in."
