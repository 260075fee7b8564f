"""Pictures of the documentation: of every example of the gallery, and of the viewer if Chromium is
there.

    python docs/gallery.py              all of them, to docs/images
    python docs/gallery.py NAME ...     some, by the names of their files in examples/gallery

An example needs no line for its picture: its `main` returns a model and data, which are drawn with
the contact forces at that state. `CAMERA`, if the example has one, says from where.
"""

from __future__ import annotations

import argparse
import runpy
import shutil
import sys
import threading
import time
from pathlib import Path

import holdfast as hf
from holdfast.tools.video import Film, View, write_picture

ROOT = Path(__file__).parents[1]
EXAMPLES, IMAGES = ROOT / "examples" / "gallery", ROOT / "docs" / "images" / "gallery"
WIDTH, HEIGHT = 640, 400


def make_picture(example: Path, path: Path) -> None:
    """Run an example and draw the state that it ends in."""
    names = runpy.run_path(str(example), run_name="gallery")
    model, data = names["main"]()
    hf.forward(model, data)
    film = Film(model)
    film.keep(data)
    view = View(**names.get("CAMERA", {}))
    write_picture(path, [film], view=view, width=WIDTH, height=HEIGHT)


def make_viewer_picture(path: Path) -> None:
    """Screenshot of `holdfast view` with two laws side by side, in Debian's Chromium."""
    import mujoco
    from playwright.sync_api import sync_playwright

    from holdfast.tools import scenes
    from holdfast.tools.view.live import LiveViewer
    from holdfast.tools.view.server import open_server

    server = open_server()
    model = mujoco.MjModel.from_xml_string(scenes.row_of_boxes(2))
    viewer = LiveViewer(server, model, keyframe=0, beside="MuJoCo")
    thread = threading.Thread(target=viewer.run, daemon=True)
    thread.start()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), headless=True,
            args=["--no-sandbox", "--disable-gpu", "--enable-unsafe-swiftshader"],
        )  # fmt: skip
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.set_default_timeout(120e3)
        page.goto(f"http://localhost:{server.get_port()}")
        page.get_by_text("real time").first.wait_for()
        for notice in page.locator(".mantine-Notification-closeButton").all():
            notice.click()  # that it draws in software
        while viewer.left.data.time < 12.0:
            time.sleep(0.1)
        page.screenshot(path=str(path))
        browser.close()
    viewer.stop()
    thread.join()
    server.stop()


def main() -> int:
    """Make the pictures that are asked for; return the exit code."""
    parser = argparse.ArgumentParser(description="Make the pictures of the gallery.")
    parser.add_argument("names", nargs="*", help="of examples; all by default")
    parser.add_argument("--examples", type=Path, default=EXAMPLES, help="their folder")
    parser.add_argument("--images", type=Path, default=IMAGES, help="folder to write to")
    given = parser.parse_args()
    examples = [given.examples / f"{name}.py" for name in given.names]
    examples = examples or sorted(given.examples.glob("*.py"))
    given.images.mkdir(parents=True, exist_ok=True)
    try:
        for example in examples:
            path = given.images / f"{example.stem}.png"
            make_picture(example, path)
            print(path, file=sys.stderr)
        if not given.names and shutil.which("chromium"):
            make_viewer_picture(given.images.parent / "viewer.png")
            print(given.images.parent / "viewer.png", file=sys.stderr)
    except hf.HoldfastError as error:
        print(f"no pictures: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
