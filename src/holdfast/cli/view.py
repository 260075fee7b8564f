"""``holdfast view``: a scene live in the browser, or a saved run played back."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import tyro

from holdfast.cli._common import exit_code
from holdfast.errors import InputError

LawName = Literal["mujoco", "mujoco-noslip", "coulomb", "noslip", "viscous"]
_EXTRA = 'the viewer needs viser and mjviser: pip install "holdfast[view]"'


@dataclass(frozen=True)
class View:
    """Open a scene in the browser: switch laws while it runs, push bodies, compare two laws.

    A saved run (.npz, written by `holdfast simulate --out`) is played back instead, with its events
    and the verdict of `holdfast verify`. The page is served to this machine only, unless --host
    says otherwise; nothing is downloaded.
    """

    path: Annotated[Path, tyro.conf.Positional]
    """MJCF or URDF file, or a saved run (.npz)."""
    law: LawName = "coulomb"
    """Initial contact law; "mujoco" is `mj_step` as the scene configures it."""
    beside: LawName | None = None
    """Contact law of a second simulation, shown side by side with the first."""
    mu_v: float = 1.0
    """Initial coefficient of the viscous law [N s/m]."""
    keyframe: str | None = None
    """Name or number of the initial keyframe; the first one by default."""
    scene: Path | None = None
    """Scene of a saved run; by default the one that it names."""
    host: str = "127.0.0.1"
    """Address to listen on; with 0.0.0.0, anyone who can reach it can operate the page."""
    port: int = 8080
    """Port to listen on; the next free one if it is in use."""

    @exit_code
    def run(self) -> int:
        """Serve until Ctrl-C; return the exit code."""
        try:
            from holdfast.tools.view import serve
            from holdfast.tools.view.laws import LAWS
        except ImportError as error:
            raise InputError("view", _EXTRA) from error
        names = dict(zip(LawName.__args__, LAWS, strict=True))  # type: ignore[attr-defined]
        serve(
            self.path, host=self.host, port=self.port, started=_say, scene=self.scene,
            law=names[self.law], beside=names[self.beside] if self.beside else None,
            mu_v=self.mu_v, keyframe=self.keyframe,
        )  # fmt: skip
        return 0


def _say(address: str) -> None:
    print(
        f"holdfast: open {address} in a browser; press Ctrl-C to stop", file=sys.stderr, flush=True
    )
