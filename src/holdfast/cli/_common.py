"""What commands share."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, InputError, SolveError
from holdfast.tools.contact_names import ContactName, contact_model
from holdfast.tools.progress import progress_bar

__all__ = ["ContactName", "contact_model", "exit_code", "progress_bar"]


def exit_code(run: Callable[[Any], int]) -> Callable[[Any], int]:
    """Let a command print an error of ours as one line, without a traceback, and return a code."""

    @wraps(run)
    def guarded(command: Any) -> int:
        try:
            return run(command)
        except HoldfastError as error:
            print(f"holdfast: {error}", file=sys.stderr)
            return 1 if isinstance(error, SolveError) else 2
        except OSError as error:
            print(f"holdfast: {error}", file=sys.stderr)
            return 2

    return guarded


def check_outputs(video: Path | None, picture: Path | None) -> None:
    """Refuse, before a run, what could not be drawn or written after it."""
    if video is None and picture is None:
        return
    from holdfast.tools import video as tools

    if video is not None:
        tools.check_path(video, tools.VIDEOS, "video")
    if picture is not None:
        tools.check_path(picture, tools.PICTURES, "picture")


def write_outputs(
    films: Sequence[Any], video: Path | None, picture: Path | None, *, camera: str = "",
    quiet: bool = False,
) -> None:  # fmt: skip
    """Write films side by side as a video, and their end as a picture."""
    from holdfast.tools import video as tools

    view = tools.View(camera=camera)
    films = [film for film in films if film.moments]
    if video is not None and films:
        with progress_bar(f"drawing {video.name}", quiet=quiet) as progress:
            tools.write_video(video, films, view=view, progress=progress)
    if picture is not None and films:
        tools.write_picture(picture, films, view=view)


def check_camera(model: Any, camera: str | None) -> str:
    """The name of a camera of the model; empty for none."""
    names = [model.camera(i).name for i in range(model.ncam)]
    if camera and camera not in names:
        known = ", ".join(map(repr, names)) or "none"
        raise InputError("camera", f"is {camera!r}; the model has {known}")
    return camera or ""


def creep_caption(model: Any) -> Callable[[Any], str]:
    """Text for films: how fast contacts slide in a state."""
    from holdfast.tools.observe import Observer

    observer = Observer(model)

    def caption(data: Any) -> str:
        speed = 1e3 * observer.measure(data).creep
        return f"contacts slide at {speed if speed > 1e-6 else 0.0:.3g} mm/s"

    return caption
