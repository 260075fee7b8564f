"""Sphinx settings. The pages work without a network: MathJax is copied from a wheel."""

import os
import re
import subprocess
import sys
from pathlib import Path

from sphinx.application import Sphinx

import holdfast

HERE = Path(__file__).parent

project = "holdfast"
author = "The holdfast developers"
copyright = author
release = getattr(holdfast, "__version__", "")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
]
exclude_patterns = ["_build"]
default_role = "code"  # `name` in a docstring is code, as in Markdown

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # a dataclass documents each field once

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_title = "holdfast"
html_copy_source = False
html_show_sphinx = False


def run(*command: str) -> bytes:
    """What a Python command prints."""
    environment = os.environ | {"PYTHONIOENCODING": "utf-8", "COLUMNS": "88", "NO_COLOR": "1"}
    done = subprocess.run([sys.executable, *command], capture_output=True, env=environment)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.decode()}")
    return done.stdout


def write(name: str, content: bytes) -> None:
    """Write a file that pages include, if it has changed."""
    output = HERE / "_build" / name
    output.parent.mkdir(exist_ok=True)
    if not output.exists() or output.read_bytes() != content:
        output.write_bytes(content)


def run_example(app: Sphinx) -> None:
    """Write what the example prints to a file, for the tutorial to quote: no number is typed."""
    write("box_on_a_slope.txt", run(str(HERE.parent / "examples" / "box_on_a_slope.py")))


def print_help(app: Sphinx) -> None:
    """Write the help of every command, for the page of commands."""
    found = re.search(r"\{([a-z,]+)\}", run("-m", "holdfast", "--help").decode())
    assert found is not None
    parts = []
    for name in found[1].split(","):
        title = f"holdfast {name}"
        text = run("-m", "holdfast", name, "--help").decode()
        body = "\n".join(f"   {line}".rstrip() for line in text.splitlines())
        parts.append(f"{title}\n{'-' * len(title)}\n\n.. code-block:: none\n\n{body}\n")
    write("commands.inc", "\n".join(parts).encode())


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", run_example)
    app.connect("builder-inited", print_help)
