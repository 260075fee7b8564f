"""Videos and pictures: drawn where the machine can, refused with a reason where it cannot."""

from __future__ import annotations

import os
import runpy
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pytest
from PIL import Image

import holdfast as hf
from holdfast.cli.compare import Compare
from holdfast.cli.demo import Demo
from holdfast.cli.simulate import Simulate
from holdfast.tools import render, scenes
from holdfast.tools.render import NoPictureError, check_renderer
from holdfast.tools.video import Film, View, ffmpeg, picture, write_picture, write_video

pytestmark = pytest.mark.jit  # runs are long


@pytest.fixture(scope="module", autouse=True)
def renderer() -> None:
    try:
        check_renderer()
    except NoPictureError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


def slide(step: Any, title: str, seconds: float = 0.2) -> Film:
    model = mujoco.MjModel.from_xml_string(scenes.sliding_cube())
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    film = Film(model, title, fps=20.0)
    while data.time < seconds - 1e-9:
        step(model, data)
        film.watch(data)
    return film


def test_frames_are_kept_at_their_times() -> None:
    film = slide(hf.step, "")
    assert [m.time for m in film.moments] == pytest.approx([0.005, 0.055, 0.105, 0.155])
    # what is drawn is the state that the forces belong to: the one before the step
    under = film.moments[2].forces.point[:, 0].mean()
    assert under == pytest.approx(film.moments[2].qpos[0], abs=1e-9)


def test_side_by_side_as_gif_and_mp4(tmp_path: Path) -> None:
    films = [slide(mujoco.mj_step, "MuJoCo"), slide(hf.step, "holdfast")]
    told: list[float] = []
    write_video(tmp_path / "both.gif", films, width=96, height=72, progress=told.append)
    with Image.open(tmp_path / "both.gif") as gif:
        assert gif.size == (192, 72) and gif.n_frames == 4
    assert told == pytest.approx([0.25, 0.5, 0.75, 1.0])
    try:
        ffmpeg()
    except NoPictureError:
        pytest.skip("no ffmpeg")
    write_video(tmp_path / "both.mp4", films, width=96, height=72)
    assert (tmp_path / "both.mp4").read_bytes()[4:8] == b"ftyp"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both.gif", "both.mp4"]


def test_forces_are_drawn_and_the_camera_follows() -> None:
    film = slide(hf.step, "")
    drawn = picture([film], view=View(follow=True, elevation=-10.0), width=160, height=120)
    red = (drawn[..., 0] > 150) & (drawn[..., 1] < 90) & (drawn[..., 2] < 90)
    assert red.sum() > 10  # arrows of forces on the friction cone
    orange = (drawn[..., 0] > drawn[..., 2].astype(int) + 40) & ~red
    rows, columns = np.nonzero(orange)
    assert abs(columns.mean() - 80) < 12 and abs(rows.mean() - 60) < 25  # in the middle


@pytest.fixture
def scene(tmp_path: Path) -> Path:
    path = tmp_path / "cube.xml"
    path.write_text(scenes.sliding_cube())
    return path


@pytest.mark.parametrize(
    "option, value, reason",
    [
        ("video", Path("run.avi"), "expected a name ending in .mp4 or .gif"),
        ("picture", Path("run.jpg"), "expected a name ending in .png"),
        ("picture", Path("nowhere/run.png"), "does not exist"),
        ("camera", "top", "the model has none"),
    ],
)
def test_files_are_refused_before_the_run(
    scene: Path, capsys: pytest.CaptureFixture[str], option: str, value: Any, reason: str
) -> None:
    command = Simulate(scene=scene, duration=1e6, **{option: value})
    assert command.run() == 2
    assert reason in capsys.readouterr().err


def test_commands_write_videos_and_pictures(scene: Path, tmp_path: Path) -> None:
    gif, png = tmp_path / "both.gif", tmp_path / "both.png"
    compare = Compare(scene=scene, duration=0.05, video=gif, picture=png, format="json")
    assert compare.run() == 0
    with Image.open(gif) as video, Image.open(png) as image:
        assert video.size == image.size == (1280, 480)
    again = Simulate(scene=scene, duration=0.05, picture=png, format="json")
    assert again.run() == 2  # it exists
    assert replace(again, force=True).run() == 0
    with Image.open(png) as image:
        assert image.size == (640, 480)


def test_no_renderer_names_the_package(
    monkeypatch: pytest.MonkeyPatch, scene: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr(render, "WAYS", ("none such",))
    picture = scene.with_name("a.png")
    assert Simulate(scene=scene, duration=1e6, picture=picture).run() == 2
    said = capsys.readouterr().err
    assert "apt-get install libegl1" in said and "libosmesa6" in said and not picture.exists()
    # the demo's tables come all the same
    assert Demo(duration=0.2, picture=picture).run() == 0
    said = capsys.readouterr()
    assert "3.535238" in said.out and "apt-get install libegl1" in said.err


def test_pictures_of_the_gallery(tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(f'''
import mujoco, holdfast as hf
CAMERA = {{"azimuth": 110, "elevation": -15, "distance": 0.6, "lookat": (0, 0, 0.05)}}
def main():
    model = mujoco.MjModel.from_xml_string("""{scenes.sliding_cube(speed=0.0)}""")
    data = mujoco.MjData(model)
    hf.step(model, data, nstep=3)
    return model, data
''')
    script = Path(__file__).parents[2] / "docs" / "gallery.py"
    runpy.run_path(str(script))["make_picture"](example, tmp_path / "example.png")
    pixels = np.asarray(Image.open(tmp_path / "example.png").convert("RGB"), dtype=int)
    assert pixels.shape == (400, 640, 3)
    green = (pixels[..., 1] > pixels[..., 0] + 40) & (pixels[..., 1] > pixels[..., 2] + 40)
    assert green.sum() > 100  # arrows of forces without friction


def test_a_film_that_came_meanwhile_is_not_overwritten(tmp_path: Path) -> None:
    film = slide(hf.step, "")
    for path, write in ((tmp_path / "run.gif", write_video), (tmp_path / "run.png", write_picture)):
        path.write_bytes(b"another run")
        place = write(path, [film], width=64, height=48, force=False)
        assert path.read_bytes() == b"another run" and place != path and place.stat().st_size > 100
        place.unlink()
        place.parent.rmdir()
