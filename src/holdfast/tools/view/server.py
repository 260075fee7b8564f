"""Starting a viewer: a scene to simulate, or a saved run to replay."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import viser

from holdfast.tools import files
from holdfast.tools.trajectory import read_trajectory
from holdfast.tools.view.live import LiveViewer
from holdfast.tools.view.loop import Loop
from holdfast.tools.view.replay import ReplayViewer

LOOPBACK = "127.0.0.1"
PORT = 8080


def open_server(host: str = LOOPBACK, port: int = PORT) -> viser.ViserServer:
    """A server of viser's, which takes the next free port if this one is in use."""
    logging.getLogger("websockets").setLevel(logging.ERROR)
    with redirect_stdout(io.StringIO()):  # its banner; we print one line
        server = viser.ViserServer(host=host, port=port, label="holdfast", verbose=False)
    server.gui.configure_theme(dark_mode=False, show_logo=False, show_share_button=False)
    return server


def make_viewer(
    server: viser.ViserServer,
    path: Path,
    *,
    scene: Path | None = None,
    law: str,
    mu_v: float,
    keyframe: str | None = None,
    beside: str | None = None,
) -> Loop:
    """A viewer of a scene, or of a saved run if the path ends in .npz.

    Args:
        server: to show it on.
        path: MJCF, URDF or .npz file.
        scene: of a saved run; by default the one that it names.
        law: one of `holdfast.tools.view.laws.LAWS`.
        mu_v: viscous coefficient [N s/m].
        keyframe: name or number; the first one by default.
        beside: law of a second simulation; None for none.
    """
    if path.suffix == ".npz":
        run = read_trajectory(path)
        model = files.load_scene(scene or run.scene(path.parent))
        return ReplayViewer(server, model, run)
    model = files.load_scene(path)
    number = files.keyframe_number(model, keyframe)
    return LiveViewer(server, model, law=law, mu_v=mu_v, keyframe=number, beside=beside)


def serve(
    path: Path,
    *,
    host: str = LOOPBACK,
    port: int = PORT,
    started: Callable[[str], None] = print,
    **options: Any,
) -> None:
    """Show a scene or a saved run until Ctrl-C.

    Args:
        path: as of `make_viewer`.
        host: address to listen on.
        port: likewise.
        started: told the address when the page can be opened.
        options: of `make_viewer`.
    """
    server = open_server(host, port)
    try:
        viewer = make_viewer(server, path, **options)
        started(f"http://{'localhost' if host == LOOPBACK else host}:{server.get_port()}")
        viewer.run()
    except KeyboardInterrupt:
        pass
    finally:
        server.stop()
