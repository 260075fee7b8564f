"""Sphinx settings. The pages work without a network: MathJax is copied from a wheel."""

import os
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
html_title = "holdfast"
html_copy_source = False
html_show_sphinx = False


def run_example(app: Sphinx) -> None:
    """Write what the example prints to a file, for the tutorial to quote: no number is typed."""
    script = HERE.parent / "examples" / "box_on_a_slope.py"
    environment = os.environ | {"PYTHONIOENCODING": "utf-8"}
    run = subprocess.run([sys.executable, script], capture_output=True, env=environment)
    if run.returncode != 0:
        raise RuntimeError(f"{script} failed:\n{run.stderr.decode()}")
    output = HERE / "_build" / "box_on_a_slope.txt"
    output.parent.mkdir(exist_ok=True)
    if not output.exists() or output.read_bytes() != run.stdout:
        output.write_bytes(run.stdout)


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("builder-inited", run_example)
