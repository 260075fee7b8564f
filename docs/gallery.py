"""Pictures of the documentation: of every example of the gallery, and of the viewer.

    python docs/gallery.py              all of them, to docs/images
    python docs/gallery.py NAME ...     some, by the names of their files in examples/gallery

An example needs no line for its picture: its `main` returns a model and data, which are drawn with
the contact forces at that state. `CAMERA`, if the example has one, says from where.
"""

from __future__ import annotations

import argparse
import runpy
import sys
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
    except hf.HoldfastError as error:
        print(f"{example.name}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
