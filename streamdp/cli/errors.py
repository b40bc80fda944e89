"""Foreseen errors become one line; the others are defects, and show where they happened."""

from __future__ import annotations

import logging
import sys
from typing import Any

from typer import Abort

from streamdp.errors import Exit, StreamdpError

INTERRUPTED = 130
"""What a shell calls a command that Ctrl-C ended."""


def say(message: str) -> None:
    """One line on stderr."""
    if sys.stderr is not None:  # closed: print would turn to standard output
        print(f"streamdp: {message}", file=sys.stderr, flush=True)


class _Spoken(logging.Handler):
    """What connectors warn of, as lines of this program."""

    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def speak_warnings() -> None:
    """Have what connectors warn of said on stderr."""
    log = logging.getLogger("streamdp_connectors")
    if not any(isinstance(handler, _Spoken) for handler in log.handlers):
        log.addHandler(_Spoken(logging.WARNING))


def report(error: BaseException) -> int | None:
    """Print a foreseen error and return its exit code; None for a defect."""
    if isinstance(error, StreamdpError):
        say(error.message)
        return error.exit_code
    if hasattr(error, "format_message"):  # one of click's, whose class typer does not export
        return _report_usage(error)
    if isinstance(error, Abort | KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return 0  # whoever read the output has seen enough
    if isinstance(error, OSError):
        say(f"{error.filename or 'standard output'}: {error.strerror or error}")
        return Exit.IO_ERROR
    if isinstance(error, MemoryError):
        say("out of memory: bound the clusters (retire_after, max_clusters) or the vocabulary (max_words)")
        return Exit.OUT_OF_MEMORY
    return None


def _report_usage(error: Any) -> int:
    message = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    context = getattr(error, "ctx", None)
    say(message if context is None else f"{message} (see {context.command_path} --help)")
    return Exit.USAGE
