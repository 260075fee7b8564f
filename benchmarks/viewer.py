"""Whether the viewer keeps real time, with its plots, while a browser shows it.

    python benchmarks/viewer.py [--seconds 20]

Needs the extras "view" and "dev" and Debian's Chromium, which draws in software here: it takes a
whole core for itself. With a graphics card there is more time for the simulation.
"""

from __future__ import annotations

import argparse
import os
import shutil
import threading
import time

import mujoco
from playwright.sync_api import sync_playwright

from holdfast.tools import scenes
from holdfast.tools.view.live import LiveViewer
from holdfast.tools.view.server import open_server

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
         "--disable-component-update", "--no-first-run", "--enable-unsafe-swiftshader"]  # fmt: skip
SCENES = {
    "grasp (36 contacts)": (scenes.row_of_boxes(2), None),
    "grasp beside MuJoCo": (scenes.row_of_boxes(2), "MuJoCo"),
    "quadruped": (scenes.quadruped(slope=10.0), None),
    "quadruped beside MuJoCo": (scenes.quadruped(slope=10.0), "MuJoCo"),
}


def measure(xml: str, beside: str | None, seconds: float) -> tuple[float, float]:
    """Simulated seconds per second, and pictures per second sent, once the page is open."""
    model = mujoco.MjModel.from_xml_string(xml)
    server = open_server(port=8190)
    viewer = LiveViewer(server, model, keyframe=0, beside=beside)
    thread = threading.Thread(target=viewer.run, daemon=True)
    thread.start()
    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(f"http://localhost:{server.get_port()}")
        page.get_by_text("real time").first.wait_for(timeout=60_000)
        time.sleep(3.0)
        start, begin, rates = viewer.left.data.time, time.perf_counter(), []
        while time.perf_counter() - begin < seconds:
            time.sleep(1.0)
            rates.append(viewer.fps)
        rate = (viewer.left.data.time - start) / (time.perf_counter() - begin)
        browser.close()
    viewer.stop()
    thread.join()
    server.stop()
    return rate, sum(rates) / len(rates)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=20.0)
    seconds = parser.parse_args().seconds
    print(f"load of this machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for name, (xml, beside) in SCENES.items():
        rate, fps = measure(xml, beside, seconds)
        print(f"{name:26} {rate:.3f} x real time, {fps:.0f} frames/s")


if __name__ == "__main__":
    main()
