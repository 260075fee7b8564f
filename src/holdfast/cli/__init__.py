"""The command line: one file per command."""

from __future__ import annotations

import tyro

from holdfast.cli.demo import Demo


def main() -> None:
    """Run the command named on the command line."""
    command = tyro.extras.subcommand_cli_from_dict(
        {"demo": Demo}, prog="holdfast", description=_HELP
    )
    raise SystemExit(command.run())


_HELP = "Rigid contact that does not slip, does not creep and does not sink in."
