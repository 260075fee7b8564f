"""What commands share."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

from holdfast.errors import HoldfastError, InputError, SolveError
from holdfast.tools.contact_names import ContactName, contact_model
from holdfast.tools.progress import progress_bar

__all__ = [
    "ContactName",
    "check_camera",
    "check_outputs",
    "contact_model",
    "creep_caption",
    "exit_code",
    "plain",
    "progress_bar",
    "say",
    "text",
    "write_outputs",
]


def plain(said: object) -> str:
    """One line that a terminal shows as it is.

    Names of scenes and files are data: what would move a cursor or turn text around is spelled out.
    """
    line = re.sub(r"\s*[\n\r\t\v\f]\s*", " ", str(said).strip())
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)


def text(said: object, style: str = "") -> Any:
    """The same for tables and consoles of rich: no markup, no emoji."""
    from rich.text import Text

    return Text(plain(said), style)


def say(said: object) -> None:
    """Print one line to stderr."""
    print(f"holdfast: {plain(said)}", file=sys.stderr, flush=True)


def exit_code(run: Callable[[Any], int]) -> Callable[[Any], int]:
    """Let a command print an error of ours as one line, without a traceback, and return a code."""

    @wraps(run)
    def guarded(command: Any) -> int:
        try:
            return run(command)
        except HoldfastError as error:
            say(error)
            return 1 if isinstance(error, SolveError) else 2
        except BrokenPipeError:
            raise
        except OSError as error:
            say(error)
            return 2

    return guarded


def check_outputs(
    video: Path | None,
    picture: Path | None,
    *,
    force: bool,
    others: Sequence[Path | None] = (),
    inputs: Sequence[Path | None] = (),
) -> tuple[Path | None, Path | None]:
    """Refuse, before a run, what could not be drawn or written after it; `force` overwrites.

    Nor may one be written over the other, or over one of the other files of the run, be they
    written or read.

    Returns:
        The paths without links.
    """
    if video is None and picture is None:
        return None, None
    from holdfast.tools import files
    from holdfast.tools import video as tools

    places: list[Path | None] = [None, None]
    asked = ((video, tools.VIDEOS, "video"), (picture, tools.PICTURES, "picture"))
    for k, (path, endings, name) in enumerate(asked):
        if path is not None:
            tools.check_ending(path, endings, name)
            places[k] = place = files.check_output(path, force=force, name=name, inputs=inputs)
            tools.check_ending(place, endings, name)
            if any(other is not None and place == Path(other).resolve() for other in others):
                raise InputError(name, f"{path} is written already; name another file")
            others = (*others, place)
    tools.check_drawing(places[0])
    return places[0], places[1]


def write_outputs(
    films: Sequence[Any], video: Path | None, picture: Path | None, *, force: bool,
    camera: str = "", quiet: bool = False,
) -> None:  # fmt: skip
    """Write films side by side as a video, and their end as a picture."""
    from holdfast.tools import video as tools

    view = tools.View(camera=camera)
    films = [film for film in films if film.moments]
    if video is not None and films:
        with progress_bar(f"drawing {video.name}", quiet=quiet) as progress:
            place = tools.write_video(video, films, view=view, force=force, progress=progress)
        say_place(video, place)
    if picture is not None and films:
        say_place(picture, tools.write_picture(picture, films, view=view, force=force))


def say_place(wanted: Path, place: Path) -> None:
    """Say where a file is that could not be written where it should."""
    if place != wanted:
        say(f"{wanted} could not be written; the file is {place}")


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
