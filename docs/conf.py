"""Sphinx settings. The pages work without a network: MathJax is copied from a wheel."""

import holdfast

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
