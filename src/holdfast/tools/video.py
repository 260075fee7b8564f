"""Videos and pictures of runs, headless, with contact forces drawn.

A `Film` watches a run step by step; `write_video` and `write_picture` draw one film, or several
side by side:

    film = Film(model, "holdfast")
    for _ in range(1000):
        stepper.step(data)
        film.watch(data)
    write_video("run.mp4", [film])

Arrows show contact forces, coloured by the part of the friction cone in use: green for none,
yellow for half, red on the cone, violet beyond what the model declares.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from holdfast.errors import InputError
from holdfast.mujoco._mj import mujoco
from holdfast.tools.files import write_somewhere
from holdfast.tools.observe import Forces, cone_colors
from holdfast.tools.render import Arrows, Frame, NoPictureError, check_renderer, render_frames

FPS = 30
WIDTH, HEIGHT = 640, 480  # of one film [pixels]
VIDEOS, PICTURES = (".mp4", ".gif"), (".png",)
USUAL_ARROW = 0.3  # length of the usual force, in sizes of what moves
FOLLOWED = 2.5  # the camera follows what moves further than this many times its size
NO_FFMPEG = (
    "no ffmpeg to write .mp4 with; install it (Debian: apt-get install ffmpeg) or write a .gif"
)


@dataclass
class Moment:
    """One state of a film, with the forces of the step that starts there."""

    time: float
    qpos: np.ndarray
    mocap: np.ndarray
    forces: Forces
    caption: str = ""


@dataclass
class Film:
    """States of a run at the frame rate of a video.

    Attributes:
        model: `mujoco.MjModel` of the run.
        title: title drawn at the top of each frame.
        fps: frames per second of the video.
        speed: simulated seconds per second of video.
        caption: function that returns the text below the title, given `mujoco.MjData`; or None.
        moments: the frames.
    """

    model: Any
    title: str = ""
    fps: float = FPS
    speed: float = 1.0
    caption: Callable[[Any], str] | None = None
    moments: list[Moment] = field(default_factory=list)
    _before: np.ndarray | None = None

    def keep(self, data: Any) -> None:
        """Add the state in `data` as a frame, with the forces that `hf.forward` computed."""
        self.moments.append(self._moment(data, np.array(data.qpos)))

    def watch(self, data: Any) -> None:
        """Call this after each step: adds a frame if one is due.

        Contact forces in `mujoco.MjData` belong to the state before the step, which is what is
        drawn.
        """
        qpos, self._before = self._before, np.array(data.qpos)
        every = self.speed / self.fps
        if qpos is None:
            qpos = self._before
        elif self.moments and data.time < self.moments[0].time + every * len(self.moments) - 1e-9:
            return
        self.moments.append(self._moment(data, qpos))

    def _moment(self, data: Any, qpos: np.ndarray) -> Moment:
        return Moment(
            time=float(data.time), qpos=qpos, mocap=np.hstack([data.mocap_pos, data.mocap_quat]),
            forces=Forces.of(self.model, data),
            caption=self.caption(data) if self.caption else "",
        )  # fmt: skip


@dataclass(frozen=True)
class View:
    """Camera of a video or picture.

    Attributes:
        camera: name of a camera of the model; the other fields are then ignored.
        azimuth: azimuth [degrees]; None uses that of the model.
        elevation: elevation [degrees]; None uses that of the model.
        zoom: values above 1 are closer than the view that shows everything that moves.
        follow: whether the camera follows what moves; None follows only what goes far.
        bodies: names of the bodies to show; all moving bodies if empty.
        lookat: (3,) point to look at [m]; None is the centre of what moves.
        distance: distance from that point [m]; None is as far as needed.
    """

    camera: str = ""
    azimuth: float | None = None
    elevation: float | None = None
    zoom: float = 1.0
    follow: bool | None = None
    bodies: tuple[str, ...] = ()
    lookat: tuple[float, float, float] | None = None
    distance: float | None = None


def check_ending(path: Path, endings: Sequence[str], name: str) -> None:
    """Refuse a file whose name does not say a format that can be written."""
    if path.suffix.lower() not in endings:
        raise InputError(name, f"is {path.name}; expected a name ending in {' or '.join(endings)}")


def check_drawing(video: Path | None) -> None:
    """Raise `NoPictureError`, before a run, if this machine cannot draw or encode the video."""
    check_renderer()
    if video is not None and video.suffix.lower() == ".mp4":
        ffmpeg()


@dataclass
class Act:
    """Films side by side, as one part of a video.

    Attributes:
        films: one or more; those that are over show their end.
        view: where to look from.
    """

    films: Sequence[Film]
    view: View = field(default_factory=lambda: View())


def write_video(
    path: Path | str,
    films: Sequence[Film] | Sequence[Act],
    *,
    view: View | None = None,
    width: int = WIDTH,
    height: int = HEIGHT,
    colors: int = 128,
    force: bool = True,
    progress: Callable[[float], None] = lambda _: None,
) -> Path:
    """Write films side by side, or several acts one after the other, as .mp4 or .gif.

    The file is written completely or not at all. If `path` cannot be written, or is there without
    `force`, it is saved in the directory for temporary files.

    Args:
        path: file to write; its suffix selects the format.
        films: films to show side by side; or acts, all with the same number of films.
        view: camera; acts have their own.
        width: width of one film [pixels].
        height: height of one film [pixels].
        colors: number of colours of a .gif.
        force: overwrite a file that is there by then.
        progress: called with the fraction that is done.

    Returns:
        Path of the file.

    Raises:
        NoPictureError: this machine cannot draw, or has no ffmpeg for .mp4; says what to install.
    """
    path = Path(path)
    check_ending(path, VIDEOS, "video")
    acts = [each for each in films if isinstance(each, Act)]
    acts = acts or [Act([each for each in films if isinstance(each, Film)], view or View())]
    count = sum(max((len(film.moments) for film in act.films), default=0) for act in acts)
    if not count or len({len(act.films) for act in acts}) != 1:
        raise InputError("films", "hold no moments, or acts differ in their number of films")

    def pictures() -> Iterator[np.ndarray]:
        done = 0
        for act in acts:
            for drawn in _side_by_side(act.films, act.view, width, height):
                yield drawn
                done += 1
                progress(done / count)

    fps = acts[0].films[0].fps
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        drawn = Path(folder) / path.name
        if path.suffix.lower() == ".gif":
            _write_gif(drawn, pictures(), fps, colors)
        else:
            _write_mp4(drawn, pictures(), fps, len(acts[0].films) * width, height)
        with open(drawn, "rb") as source:
            return write_somewhere(path, lambda stream: _copy(source, stream), force=force)


def write_picture(
    path: Path | str,
    films: Sequence[Film],
    *,
    at: float | None = None,
    view: View | None = None,
    width: int = WIDTH,
    height: int = HEIGHT,
    force: bool = True,
) -> Path:
    """Write one picture of films side by side as .png; see `write_video`.

    Args:
        path: file to write.
        films: one or more films.
        at: simulated time [s]; the end by default.
        view: camera.
        width: width of one film [pixels].
        height: height of one film [pixels].
        force: overwrite a file that is there by then.

    Returns:
        Path of the file.
    """
    drawn = picture(films, at=at, view=view, width=width, height=height)
    return write_pixels(path, drawn, force=force)


def write_pixels(path: Path | str, pixels: np.ndarray, *, force: bool = True) -> Path:
    """Write pixels (height, width, 3) as .png, whole or not at all. Returns where it is."""
    from PIL import Image

    image = Image.fromarray(pixels)
    return write_somewhere(Path(path), lambda stream: image.save(stream, format="png"), force=force)


def _copy(source: BinaryIO, stream: BinaryIO) -> None:
    source.seek(0)
    shutil.copyfileobj(source, stream)


def picture(
    films: Sequence[Film],
    *,
    at: float | None = None,
    view: View | None = None,
    width: int = WIDTH,
    height: int = HEIGHT,
) -> np.ndarray:
    """One picture (height, n * width, 3) of n films side by side, as `write_picture` draws it."""
    moments = []
    for film in films:
        times = np.array([moment.time for moment in film.moments])
        if not len(times):
            raise InputError("films", "hold no moments; call watch after each step")
        moments.append(len(times) - 1 if at is None else int(np.abs(times - at).argmin()))
    (drawn,) = _side_by_side(films, view or View(), width, height, [moments])
    return drawn


def _side_by_side(
    films: Sequence[Film],
    view: View,
    width: int,
    height: int,
    choice: Sequence[Sequence[int]] | None = None,
) -> Iterator[np.ndarray]:
    """Pictures of all films at the same moments, with their titles.

    `choice` holds the numbers of the moments, of each film in each picture; all by default, and
    films that are over show their end.
    """
    if choice is None:
        count = max(len(film.moments) for film in films)
        choice = [[min(k, len(film.moments) - 1) for film in films] for k in range(count)]
    shots = [_Shot(film, view) for film in films]
    if not shots[0].follows:  # the same place in all of them
        for shot in shots[1:]:
            shot.center, shot.size, shot.follows = shots[0].center, shots[0].size, False
    usual = min((shot.usual_force for shot in shots if shot.usual_force), default=0.0)
    streams = [
        render_frames(film.model, [shot.frame(row[i], usual) for row in choice],
                      width=width, height=height)
        for i, (film, shot) in enumerate(zip(films, shots, strict=True))
    ]  # fmt: skip
    for row, drawn in zip(choice, zip(*streams, strict=True), strict=True):
        yield np.hstack([
            _titled(pixels, film.title, film.moments[k])
            for pixels, film, k in zip(drawn, films, row, strict=True)
        ])  # fmt: skip


class _Shot:
    """Camera and arrows of one film."""

    def __init__(self, film: Film, view: View) -> None:
        self.film, self.view = film, view
        model = film.model
        look = model.vis.global_
        self.azimuth = look.azimuth if view.azimuth is None else view.azimuth
        self.elevation = look.elevation if view.elevation is None else view.elevation
        self.fixed = model.camera(view.camera).id if view.camera else None
        boxes = self._boxes()
        centers = boxes.mean(axis=1)
        size = float(np.linalg.norm(boxes[:, 1] - boxes[:, 0], axis=1).max()) or 1.0
        path = float(np.linalg.norm(centers.max(axis=0) - centers.min(axis=0)))
        self.follows = path > FOLLOWED * size if view.follow is None else view.follow
        whole = np.array([boxes[:, 0].min(axis=0), boxes[:, 1].max(axis=0)])
        self.body_size = size
        self.size = size if self.follows else float(np.linalg.norm(whole[1] - whole[0]))
        self.center, self.centers = whole.mean(axis=0), _smoothed(centers)
        forces = [np.linalg.norm(m.forces.force, axis=1).max(initial=0.0) for m in film.moments]
        self.usual_force = float(np.median([f for f in forces if f > 0.0] or [0.0]))

    def _boxes(self) -> np.ndarray:
        """(k, 2, 3) boxes about what is looked at, at each moment."""
        model, data = self.film.model, mujoco.MjData(self.film.model)
        named = {model.body(name).id for name in self.view.bodies}
        bodies = model.geom_bodyid
        seen = np.isin(bodies, list(named)) if named else model.body_weldid[bodies] > 0
        seen &= np.isfinite(model.geom_rbound) & (model.geom_rbound > 0)
        if not seen.any():
            center, half = model.stat.center, np.full(3, 0.5 * model.stat.extent)
            return np.array([[center - half, center + half]] * len(self.film.moments))
        radius, boxes = model.geom_rbound[seen][:, None], []
        for moment in self.film.moments:
            data.qpos[:] = moment.qpos
            data.mocap_pos[:], data.mocap_quat[:] = moment.mocap[:, :3], moment.mocap[:, 3:]
            mujoco.mj_kinematics(model, data)
            at = data.geom_xpos[seen]
            boxes.append([(at - radius).min(axis=0), (at + radius).max(axis=0)])
        return np.array(boxes)

    def frame(self, k: int, usual_force: float) -> Frame:
        """What to draw at a moment; forces much larger than the usual one are drawn shortened."""
        moment = self.film.moments[k]
        forces = moment.forces
        lengths = np.linalg.norm(forces.force, axis=1, keepdims=True)
        part = np.minimum(lengths / (usual_force or 1.0), 2.0)
        vector = forces.force / np.maximum(lengths, 1e-12) * part * USUAL_ARROW * self.body_size
        return Frame(
            qpos=moment.qpos,
            mocap=moment.mocap if len(moment.mocap) else None,
            camera=self.fixed if self.fixed is not None else self._free(k),
            arrows=Arrows(forces.point, vector, cone_colors(forces.use), 0.015 * self.body_size),
        )

    def _free(self, k: int) -> dict[str, Any]:
        fov = np.radians(self.film.model.vis.global_.fovy)
        distance = 0.5 * self.size / np.sin(0.5 * fov) / self.view.zoom
        lookat = self.centers[k] if self.follows else self.center
        return {
            "lookat": lookat if self.view.lookat is None else self.view.lookat,
            "distance": float(distance) if self.view.distance is None else self.view.distance,
            "azimuth": float(self.azimuth),
            "elevation": float(self.elevation),
        }


def _smoothed(path: np.ndarray, width: int = 9) -> np.ndarray:
    """A moving average that steady motion passes as it is, for a camera that does not shake."""
    half = min(width // 2, len(path) - 1)
    if half < 1:
        return path
    padded = np.pad(path, ((half, half), (0, 0)), mode="reflect", reflect_type="odd")
    count = 2 * half + 1
    return np.stack([padded[k : k + count].mean(axis=0) for k in range(len(path))])


def _titled(pixels: np.ndarray, title: str, moment: Moment) -> np.ndarray:
    """A picture with its title, caption and time."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.fromarray(pixels)
    draw = ImageDraw.Draw(image)
    width, height = image.size
    large, small = (ImageFont.load_default(size=height / part) for part in (16, 22))
    inset = height // 40
    ink, halo = (25, 30, 40), {"stroke_width": 2, "stroke_fill": (255, 255, 255)}
    draw.text((inset, inset), title, ink, large, **halo)
    draw.text((inset, inset + height // 13), moment.caption, ink, small, **halo)
    draw.text((width - inset, inset), f"{moment.time:.2f} s", ink, small, anchor="ra", **halo)
    return np.asarray(image)


def _write_gif(path: Path, pictures: Iterable[np.ndarray], fps: float, colors: int) -> None:
    from PIL import Image

    # one palette for all, from frames spread over the film: it saves space and flicker
    images = [Image.fromarray(picture) for picture in pictures]
    chosen = images[:: max(1, len(images) // 8)]
    strip = Image.new("RGB", (images[0].width, images[0].height * len(chosen)))
    for k, image in enumerate(chosen):
        strip.paste(image, (0, k * image.height))
    arrows = np.rint(255 * cone_colors(np.array([0.0, 0.3, 0.5, 0.7, 0.9, 1.0, 2.0])))
    found = strip.quantize(min(colors, 256) - len(arrows), method=Image.Quantize.MEDIANCUT)
    palette = Image.new("P", (1, 1))
    palette.putpalette([*(found.getpalette() or []), *arrows.astype(int).ravel().tolist()])
    frames = [image.quantize(palette=palette, dither=Image.Dither.NONE) for image in images]
    frames[0].save(
        path, save_all=True, append_images=frames[1:], duration=round(1000 / fps), loop=0,
        optimize=True, disposal=1,
    )  # fmt: skip


def ffmpeg() -> str:
    """Path of the machine's ffmpeg program."""
    found = shutil.which("ffmpeg")
    if found is None:
        raise NoPictureError(NO_FFMPEG)
    return found


def _write_mp4(
    path: Path, pictures: Iterable[np.ndarray], fps: float, width: int, height: int
) -> None:
    command = [
        ffmpeg(), "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "rgb24",
        "-s", f"{width}x{height}", "-r", str(fps), "-i", "-",
        "-an", "-vcodec", "libx264", "-crf", "20", "-preset", "veryfast", "-threads", "1",
        "-vf", "pad=ceil(iw/2)*2:ceil(ih/2)*2", "-pix_fmt", "yuv420p", "-movflags", "+faststart",
        str(path),
    ]  # fmt: skip
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as encoder:
        assert encoder.stdin and encoder.stderr
        try:
            for each in pictures:
                encoder.stdin.write(each.tobytes())
        except BrokenPipeError:
            pass
        finally:
            encoder.stdin.close()
        said = encoder.stderr.read().decode(errors="replace").strip()
    if encoder.returncode:
        raise NoPictureError(f"ffmpeg could not write {path.name}: {said or 'no message'}")
