"""The viewer in a real browser: Debian's Chromium, driven by Playwright.

Pictures of what the tests saw are kept in report/screenshots.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import mujoco
import numpy as np
import pytest
from PIL import Image
from playwright import sync_api

from holdfast.mujoco import Stepper
from holdfast.tools import scenes
from holdfast.tools.recording import Recording, run
from holdfast.tools.trajectory import read_trajectory
from holdfast.tools.view.live import LiveViewer
from holdfast.tools.view.loop import Loop
from holdfast.tools.view.replay import ReplayViewer
from holdfast.tools.view.server import open_server

pytestmark = pytest.mark.jit  # real time needs compiled kernels

SHOTS = Path(__file__).parents[3] / "report" / "screenshots"
FLAGS = """--no-sandbox --disable-gpu --disable-background-networking --disable-component-update
--disable-sync --no-first-run --enable-unsafe-swiftshader""".split()  # noqa: SIM905
PATIENCE = 90.0  # [s] on a busy machine


def find_chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        why = "no chromium to test the viewer with: apt-get install chromium (or `make browser`)"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    program = find_chromium()
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        yield opened
        opened.close()


class Visit:
    """A viewer that runs, and a page that shows it."""

    def __init__(self, browser: Any, make: Callable[[Any], Loop]) -> None:
        self.server = open_server(port=_free_port())
        self.viewer: Any = make(self.server)
        self.viewer.frame = 0.1  # [s]; Chromium draws in software here
        self.thread = threading.Thread(target=self.viewer.run, daemon=True)
        self.thread.start()
        self.page = browser.new_page(viewport={"width": 1000, "height": 660})
        self.page.set_default_timeout(1e3 * PATIENCE)
        self.asked: list[str] = []
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("websocket", lambda socket: self.asked.append(socket.url))
        self.page.goto(f"http://localhost:{self.server.get_port()}")
        self.page.get_by_text("real time").or_(self.page.get_by_text("verify")).first.wait_for()

    def close(self) -> None:
        self.page.close()
        self.viewer.stop()
        self.thread.join(PATIENCE)
        self.server.stop()
        hosts = {urlparse(url).hostname for url in self.asked if not url.startswith(("data", "bl"))}
        assert hosts <= {"localhost", "127.0.0.1"}, "a request left the machine"
        assert not self.thread.is_alive()

    def choose(self, label: str, option: str) -> None:
        self.page.get_by_label(label, exact=True).first.click()
        self.page.get_by_role("option", name=option, exact=True).click()

    def drag(self, label: str, part: float) -> None:
        """Drag a slider to a part of its length."""
        row = self.page.get_by_text(label, exact=True).locator(
            "xpath=ancestor::*[.//*[@role='slider']][1]"
        )
        thumb, track = row.get_by_role("slider").first, row.locator(".mantine-Slider-track").first
        at, box = thumb.bounding_box(), track.bounding_box()
        self.page.mouse.move(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + part * box["width"], box["y"] + box["height"] / 2, steps=5)
        self.page.mouse.up()

    def tab(self, name: str) -> None:
        self.page.get_by_role("tab", name=name).click()

    def picture(self, name: str) -> None:
        SHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(SHOTS / f"{name}.png"))

    def height_of_line(self, title: str) -> float:
        """Mean height of the first line of a plot [pixels from the bottom]; nan if none is seen."""
        pixels = np.array(Image.open(io.BytesIO(self._plot(title))).convert("RGB"), dtype=int)
        rows, _ = np.nonzero(np.abs(pixels - [0x1F, 0x6F, 0xD0]).max(axis=2) < 40)
        return len(pixels) - float(np.mean(rows)) if len(rows) > 20 else float("nan")

    def _plot(self, title: str, tries: int = 20) -> bytes:
        """Picture of a plot; the page may replace the plot while it is taken."""
        canvas = self.page.locator(".uplot", has_text=title).first.locator("canvas")
        for left in reversed(range(tries)):
            try:
                return bytes(canvas.screenshot())
            except sync_api.Error as error:
                if not left or "not attached" not in str(error):
                    raise
        raise AssertionError("unreachable")

    def text(self) -> str:
        return str(self.page.inner_text("body"))


def _free_port() -> int:
    import socket

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def until(true: Callable[[], Any], what: str, seconds: float = PATIENCE) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.05)


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[[Callable[[Any], Loop]], Visit]]:
    open_visits: list[Visit] = []

    def begin(make: Callable[[Any], Loop]) -> Visit:
        open_visits.append(Visit(browser, make))
        return open_visits[-1]

    yield begin
    for each in open_visits:
        each.close()


def grasp() -> Any:
    return mujoco.MjModel.from_xml_string(scenes.row_of_boxes(2))


def test_laws_are_switched_while_it_runs(visit: Any) -> None:
    page = visit(lambda server: LiveViewer(server, grasp(), keyframe=0))
    viewer = page.viewer
    until(lambda: viewer.left.data.time > 1.0, "a second simulated")
    until(lambda: "creep below 1e-12 m/s" in page.text(), "no creep with Coulomb")
    bottom = page.height_of_line("Creep")  # zero
    assert bottom < 60
    page.picture("live_coulomb")
    page.choose("Law", "MuJoCo")
    until(lambda: viewer.left.law == "MuJoCo", "MuJoCo in force")
    until(lambda: viewer.plots["creep"].rows[-1][1] > 1e3, "creep above 1 mm/s")
    until(lambda: re.search(r"MuJoCo: creep 0\.00\d+ m/s", page.text()), "creep on the page")
    until(lambda: page.height_of_line("Creep") > bottom + 20, "a line above zero")
    page.picture("live_mujoco")
    before = viewer.left.data.time
    for law in ("MuJoCo + noslip", "No slip", "Viscous"):
        page.choose("Law", law)
        until(lambda law=law: viewer.left.law == law, law)
    page.drag("Viscous, N s/m", 0.5)
    until(lambda: 4.0 < viewer.mu_v < 6.0, "the slider of the viscous law")
    assert viewer.left.data.time > before and not viewer.left.problem


def test_playback_push_and_actuators(visit: Any) -> None:
    model = grasp()
    page = visit(lambda server: LiveViewer(server, model, keyframe=0))
    viewer, data = page.viewer, page.viewer.left.data
    page.page.get_by_role("button", name="Pause").click()
    until(lambda: viewer.paused, "paused")
    time.sleep(0.2)
    before = data.time
    page.page.get_by_role("button", name="Single step").click()
    until(lambda: data.time > before, "a single step")
    assert data.time == pytest.approx(before + model.opt.timestep)
    page.page.get_by_role("button", name="Reset").click()
    until(lambda: data.time == 0.0, "reset")
    page.page.get_by_role("button", name="Play").click()
    until(lambda: data.time > 0.5, "running")
    page.choose("Speed", "1/4")
    until(lambda: viewer.speed == 0.25, "slower")
    page.choose("Speed", "1")
    where = float(data.qpos[0])
    page.choose("Direction", "-x")
    page.choose("Direction", "+x")
    page.drag("Duration, s", 1.0)
    page.page.get_by_role("button", name="Push", exact=True).last.click()
    until(lambda: viewer.left.push is not None, "a push")
    page.picture("live_push")
    until(lambda: viewer.left.push is None, "the end of the push")
    until(lambda: data.qpos[0] > where + 1e-3, "the pad that was pushed moved")
    page.tab("Actuators")
    asked = float(data.ctrl[0])
    page.drag("actuator 0", 0.6)
    until(lambda: abs(data.ctrl[0] - asked) > 1.0, "a control changed")
    page.picture("live_actuators")


def test_side_by_side(visit: Any) -> None:
    page = visit(lambda server: LiveViewer(server, grasp(), keyframe=0))
    viewer = page.viewer
    page.page.get_by_label("Side by side").click(force=True)
    until(lambda: viewer.right is not None, "two simulations")
    until(lambda: len(viewer.drift_plot.rows) > 10 and viewer.drift_plot.rows[-1][1] > 5.0,
          "5 mm of drift")  # fmt: skip
    until(lambda: "drift between the two" in page.text(), "the drift on the page")
    assert viewer.left.data.time == viewer.right.data.time
    page.picture("side_by_side")
    page.page.get_by_label("Side by side").click(force=True)
    until(lambda: viewer.right is None, "one simulation")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run as `holdfast simulate --out` writes it, with events added by hand."""
    folder = tmp_path_factory.mktemp("runs")
    scene = folder / "grasp.xml"
    scene.write_text(scenes.row_of_boxes(2))
    model = mujoco.MjModel.from_xml_path(str(scene))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    recording = Recording({"scene": str(scene), "contact": "coulomb", "mu_v": 0.1})
    for _ in run(Stepper(model), data, recording, duration=0.5):
        pass
    path = folder / "run.npz"
    recording.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    arrays |= {
        "event_time": np.array([0.1, 0.3]), "event_kind": np.array(["impact", "made"]),
        "event_bodies": np.array([["left", "box0"], ["box0", "box1"]]),
    }  # fmt: skip
    np.savez(path, **arrays)
    return path


def test_replay(visit: Any, saved: Path, tmp_path: Path) -> None:
    model = mujoco.MjModel.from_xml_path(str(saved.parent / "grasp.xml"))
    page = visit(lambda server: ReplayViewer(server, model, read_trajectory(saved)))
    viewer = page.viewer
    until(lambda: "verify: pass" in page.text(), "the verdict")
    until(lambda: viewer.k == len(viewer.run_shown.time) - 1, "played to its end")
    assert "2 events" in page.text()
    page.drag("Time, s", 0.5)
    until(lambda: 0.2 < viewer.run_shown.time[viewer.k] < 0.3, "the middle of the run")
    page.picture("replay")
    page.page.get_by_label("Event").first.click()
    page.page.get_by_role("option", name=re.compile("made")).click()
    until(lambda: viewer.run_shown.time[viewer.k] == pytest.approx(0.3), "an event")
    page.tab("Verdict")
    until(lambda: "complementarity" in page.text(), "the table of the verdict")
    page.picture("replay_verdict")
    page.tab("Replay")
    _upload_bad_files(page, saved, tmp_path)
    good = tmp_path / "again.npz"
    shutil.copy(saved, good)
    with page.page.expect_file_chooser() as chooser:
        page.page.get_by_role("button", name="Open another run").click()
    chooser.value.set_files(str(good))
    until(lambda: viewer.run_shown.name == "again.npz", "another run")


def _upload_bad_files(page: Visit, saved: Path, tmp_path: Path) -> None:
    """Each is refused with a reason, and what is shown stays."""
    with np.load(saved) as file:
        arrays = dict(file)
    secret = tmp_path / "secret.xml"
    secret.write_text("<mujoco/>")
    bad: dict[str, dict[str, Any]] = {
        "narrow.npz": arrays | {"qpos": arrays["qpos"][:, :3]},
        "nan.npz": arrays | {"qpos": np.full_like(arrays["qpos"], np.nan)},
        "pickled.npz": arrays | {"qpos": np.array([{}], dtype=object)},
        "no_json.npz": arrays | {"metadata": np.array("{")},
    }
    files = [tmp_path / name for name in bad]
    for path, content in zip(files, bad.values(), strict=True):
        np.savez(path, **content)
    noise = tmp_path / "noise.npz"
    noise.write_bytes(bytes(range(256)) * 10)
    for path in [noise, *files]:
        shown = page.viewer.run_shown
        with page.page.expect_file_chooser() as chooser:
            page.page.get_by_role("button", name="Open another run").click()
        chooser.value.set_files(str(path))
        reason = page.page.get_by_text(re.compile("trajectory|qpos|metadata")).first
        reason.wait_for()
        assert page.viewer.run_shown is shown
        page.picture(f"refused_{path.stem}")
        # all at once: notifications also close by themselves, and then their numbers change
        close = page.page.locator(".mantine-Notification-closeButton")
        close.evaluate_all("buttons => buttons.forEach(button => button.click())")
    # the scene that an uploaded file names is not opened
    named = arrays | {"metadata": np.array(json.dumps({"scene": str(secret), "contact": "x"}))}
    other = tmp_path / "names_another_scene.npz"
    np.savez(other, **named)
    with page.page.expect_file_chooser() as chooser:
        page.page.get_by_role("button", name="Open another run").click()
    chooser.value.set_files(str(other))
    until(lambda: page.viewer.run_shown.name == other.name, "the run of another scene's name")
    assert page.viewer.model.nbody == 5


def test_command_listens_on_this_machine_only(tmp_path: Path) -> None:
    scene, port = tmp_path / "grasp.xml", _free_port()
    scene.write_text(scenes.row_of_boxes(1))
    command = [sys.executable, "-m", "holdfast", "view", str(scene), "--port", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = process.stderr.readline()
            while "compiling" in said:
                said = process.stderr.readline()
            address = f"http://localhost:{port}"
            assert said == f"holdfast: open {address} in a browser; press Ctrl-C to stop\n"
            listening = [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()
                         if line.split()[3] == "0A"]  # fmt: skip
            assert f"0100007F:{port:04X}" in listening
            assert f"00000000:{port:04X}" not in listening
        finally:
            process.send_signal(2)
            assert process.wait(30) == 0
