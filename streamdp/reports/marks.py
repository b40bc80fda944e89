"""Moments that somebody has given a name, as ``deploy``: lines of JSON in a file beside a state."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from streamdp.errors import Exit, StreamdpError
from streamdp.safe_files import open_regular

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
    path = marks_of(state)
    try:
        fd = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        with open(fd, "ab", buffering=0) as file:
            file.write(msgspec.json.encode(mark) + b"\n")
    except OSError as error:
        raise MarkError(
            f"{path}: cannot be written: {error.strerror or error}", Exit.CANNOT_CREATE
        ) from error


def marks(state: str | Path) -> list[Mark]:
    """The marks of a state, in the order in which they were made; lines that are none are passed over."""
    try:
        with open(open_regular(marks_of(state)), "rb") as file:
            lines = file.read(MOST).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise MarkError(
            f"{marks_of(state)}: cannot be read: {error.strerror or error}", Exit.NO_INPUT
        ) from error
    found = []
    for line in lines:
        try:
            found.append(msgspec.json.decode(line, type=Mark))
        except msgspec.DecodeError:
            continue
    return found
