"""Simulations and saved runs live in the browser, with viser and mjviser (the extra "view")."""

from holdfast.tools.view.server import open_server, serve

__all__ = ["open_server", "serve"]
