"""What a run has to say to people: a line at a time, by Python's logging, as the logger ``streamdp.run``.

The command line prints these lines on stderr; a program decides for itself.
"""

from __future__ import annotations

import logging
from typing import IO, Any, Literal

Level = Literal["info", "warning", "error", "critical"]

LOG = logging.getLogger(__package__)


def say(message: str, level: Level = "info", **more: Any) -> None:
    """Log a line; ``more`` are further fields for those who write objects."""
    LOG.log(getattr(logging, level.upper()), "%s", message, extra={"more": more})


def warn(message: str) -> None:
    """Log a warning."""
    say(message, "warning")


def is_terminal(stream: IO[str] | None) -> bool:
    """Whether people read what is written there."""
    return stream is not None and stream.isatty()
