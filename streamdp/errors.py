"""Foreseen errors, and how a script tells them apart."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from enum import IntEnum


class Exit(IntEnum):
    """Exit codes, after sysexits.h."""

    USAGE = 64
    """The command line contradicts itself, or asks for what cannot be."""

    BAD_DATA = 65
    """What was read is damaged, or does not fit the rest."""

    NO_INPUT = 66
    """What was to be read is not there, or may not be read."""

    UNAVAILABLE = 69
    """A broker, a port or a package does not answer."""

    OUT_OF_MEMORY = 71
    """The memory does not suffice."""

    CANNOT_CREATE = 73
    """What was to be written cannot be created, is in the way, or is in use."""

    IO_ERROR = 74
    """Reading or writing failed underway."""

    CONFIG = 78
    """Settings are wrong, or differ from those that a state was made under."""


class StreamdpError(Exception):
    """What was foreseen: one line for people, an exit code for scripts.

    Examples
    --------
    >>> from streamdp import Engine
    >>> try:
    ...     Engine(baem=4)
    ... except StreamdpError as error:
    ...     print(int(error.exit_code), error)
    78 baem: no such setting, did you mean beam?
    """

    def __init__(self, message: str, exit_code: Exit) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code


class ConfigError(StreamdpError):
    """Settings or options that cannot be used; the message names the place."""

    def __init__(self, message: str, exit_code: Exit = Exit.CONFIG) -> None:
        super().__init__(message, exit_code)


def how_to_install(extra: str) -> str:
    """Say how the packages of an extra are installed: from a clone, for no index has this package."""
    return f"pip install '.[{extra}]' in a clone of streamdp"


@contextlib.contextmanager
def foreseen(kind: type[StreamdpError], path: object, what: str, code: Exit) -> Iterator[None]:
    """Raise an OSError as one of this kind: ``PATH: cannot be WHAT``, and why."""
    try:
        yield
    except OSError as error:
        raise kind(f"{path}: cannot be {what}: {error.strerror or error}", code) from error


@contextlib.contextmanager
def needing(kind: Callable[[str, Exit], StreamdpError], what: str, *packages: str) -> Iterator[None]:
    """Raise an ImportError as one of this kind: ``WHAT one more package``, and how it is installed."""
    try:
        yield
    except ImportError:
        more = "one more package" if len(packages) == 1 else "two more packages"
        raise kind(f"{what} {more}: pip install {' '.join(packages)}", Exit.UNAVAILABLE) from None
