"""Moments that somebody has given a name, as ``deploy``: lines of JSON in a file beside a state."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from streamdp.answers.listing import printable
from streamdp.errors import ConfigError, Exit, StreamdpError, foreseen
from streamdp.safe_files import open_regular
from streamdp.story.clock import Clock, duration

LONGEST = 100
"""Characters of a name."""

MOST = 10_000_000
"""Bytes of a file that are read."""


class MarkError(StreamdpError):
    """A mark that cannot be made or read."""


class Mark(msgspec.Struct, frozen=True):
    """A name, and the event time that it is for; of records without times, how many had come."""

    name: str
    time: float


def marks_of(state: str | Path) -> Path:
    """The file of the marks of a state."""
    path = Path(state).absolute()
    return path.with_name(path.name + ".marks.jsonl")


def add_mark(state: str | Path, mark: Mark) -> None:
    """Write a mark behind the others. Raises MarkError."""
    if not mark.name or len(mark.name) > LONGEST or not mark.name.isprintable():
        raise MarkError(f"a name has 1 to {LONGEST} printable characters", Exit.USAGE)
    if _reads_as_time(mark.name):
        raise MarkError(f"{mark.name!r} reads as a time: call the mark something else", Exit.USAGE)
    path = marks_of(state)
    with foreseen(MarkError, path, "written", Exit.CANNOT_CREATE):
        fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with open(fd, "ab", buffering=0) as file:
            file.write(msgspec.json.encode(mark) + b"\n")


def marks(state: str | Path | None) -> list[Mark]:
    """The marks of a state, in the order in which they were made; lines that are none are passed over."""
    if state is None:
        return []
    with foreseen(MarkError, marks_of(state), "read", Exit.NO_INPUT):
        try:
            with open(open_regular(marks_of(state)), "rb") as file:
                lines = file.read(MOST).splitlines()
        except FileNotFoundError:
            return []
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=Mark))
        except msgspec.DecodeError:
            continue
    return found


def _reads_as_time(text: str) -> bool:
    for read in (duration, datetime.fromisoformat):
        with contextlib.suppress(ValueError):
            read(text)
            return True
    return False


def moment_of(option: str, text: str | None, clock: Clock) -> float | None:
    """A time, or one so long before the newest record's. Raises ConfigError."""
    if text is None:
        return None
    try:
        return clock.time - duration(text)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{option}: {text!r} is neither ISO 8601 nor a length of time such as 90m, 6h or 2d", Exit.USAGE
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def since_of(
    state: str | Path | None, text: str, clock: Callable[[], Clock], option: str = "--since"
) -> float:
    """The time of the latest mark of this name, or a time. Raises ConfigError."""
    held = marks(state)
    named = [mark for mark in held if mark.name == text]
    if named:
        return named[-1].time
    try:
        return moment_of(option, text, clock()) or 0.0
    except ConfigError as error:
        names = ", ".join(dict.fromkeys(printable(mark.name) for mark in held)) or "none"
        raise ConfigError(f"{error}, nor a mark (there are: {names})", Exit.USAGE) from None
