"""All commands, each of which imports what it needs when it is called."""

from __future__ import annotations

from streamdp.cli import streams, tools
from streamdp.cli.base import app

__all__ = ["app", "streams", "tools"]
