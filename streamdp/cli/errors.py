"""Messages on stderr, and the exit codes of errors. An unforeseen error is a defect and shows its place."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import traceback
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from typer import Abort

from streamdp.errors import Exit, StreamdpError
from streamdp.run.messages import LOG, Level, say

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C has ended."""

DEFECT = 1
"""The exit code of Python for an error that nobody has foreseen."""


LogFormat = Literal["plain", "dated", "json"]

_chosen: list[LogFormat] = ["plain"]
_subject = [""]


def choose_log_format(form: LogFormat) -> None:
    """Set how lines on stderr are written."""
    _chosen[0] = form
    if form == "json":
        threading.excepthook = lambda thrown: _say_defect(thrown.exc_value)


def speak_of(subject: str) -> None:
    """Begin every line on stderr with a subject: several runs write there."""
    _subject[0] = subject


def _line(message: str, level: Level, more: dict[str, Any]) -> str:
    form, message = _chosen[0], printable(_subject[0] + message)
    if form == "plain":
        return f"streamdp: {message}"
    time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if form == "dated":
        return f"{time} {level} streamdp: {message}"
    return json.dumps({"time": time, "level": level, "message": message} | more, ensure_ascii=False)


def printable(text: str) -> str:
    """A text as one line that a terminal only shows: parts of it may come from files of others."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class _Printed(logging.Handler):
    """Prints log records as lines on stderr."""

    def emit(self, record: logging.LogRecord) -> None:
        more, message = getattr(record, "more", None), record.getMessage()
        if more is None:  # of connectors, kernels and Python
            message = " ".join(message.split())
        level: Level = next(
            name for name in get_args(Level) if getattr(logging, name.upper()) >= record.levelno
        )
        if sys.stderr is not None:  # closed: print would turn to standard output
            print(_line(message, level, more or {}), file=sys.stderr, flush=True)


def print_messages() -> None:
    """Print on stderr what runs say, and warnings of connectors, kernels and Python, a line each."""
    logging.captureWarnings(True)
    LOG.setLevel(logging.INFO)
    for name in ("streamdp", "streamdp_connectors", "py.warnings"):
        log = logging.getLogger(name)
        log.propagate = False  # else a handler that a library gives the root prints them again
        if not any(isinstance(handler, _Printed) for handler in log.handlers):
            log.addHandler(_Printed())


def report(error: BaseException) -> int | None:
    """Print a foreseen error and return its exit code; None for a defect."""
    if isinstance(error, StreamdpError):
        say(error.message, "error")
        return error.exit_code
    if hasattr(error, "format_message"):  # one of click's, whose class typer does not export
        return _report_usage(error)
    if isinstance(error, Abort | KeyboardInterrupt):
        say("interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return 0  # whoever read the output has seen enough
    if isinstance(error, OSError):
        say(f"{error.filename or 'standard output'}: {error.strerror or error}", "error")
        return Exit.IO_ERROR
    if isinstance(error, MemoryError):
        bound = "bound the clusters (retire_after, max_clusters) or the vocabulary (max_words)"
        say(f"out of memory: {bound}", "error")
        return Exit.OUT_OF_MEMORY
    if _chosen[0] != "json":
        return None
    _say_defect(error)
    return DEFECT


def _say_defect(error: BaseException | None) -> None:
    found = traceback.extract_tb(None if error is None else error.__traceback__)
    where = [f"{at.filename}:{at.lineno} {at.name}" for at in found]
    say(f"a defect: {type(error).__name__}: {error}", "critical", where=where)


def _report_usage(error: Any) -> int:
    message = " ".join(error.format_message().replace("Value error, ", "").split()).rstrip(".")
    context = getattr(error, "ctx", None)
    named = re.match("No such command '(.+)'$", message)
    if named and os.path.exists(named[1]):
        message = f"{named[1]} is no command but a file: say streamdp consume {named[1]}"
    extra = re.match(r"Got unexpected extra argument.* \((.+)\)$", message)
    if extra and all(map(os.path.exists, extra[1].split())):
        how = "name their folder, or cat them into streamdp ... -"
        message = f"one FILE is read, not {extra[1]} too: {how}"
    say(message if context is None else f"{message} (see {context.command_path} --help)", "error")
    return Exit.USAGE
