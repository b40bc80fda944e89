"""Lines of JSON that a program has written, read again."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from streamdp.errors import Exit, StreamdpError

_T = TypeVar("_T")


def written_lines(
    path: str | Path,
    decode: Callable[[bytes], _T],
    error: Callable[[str, Exit], StreamdpError],
    *,
    torn_end: bool = False,
) -> Iterator[tuple[int, _T]]:
    """The lines that are not blank, decoded, with their numbers from 1; gzipped if the name ends in .gz.

    With ``torn_end``, a last line without its newline that is no JSON is left out. Raises ``error``.
    """
    opened = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.isspace():
                    continue
                try:
                    decoded = decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError) as cause:
                    torn = torn_end and not line.endswith(b"\n")
                    if torn and not isinstance(cause, msgspec.ValidationError):
                        return
                    raise error(f"{path}, line {number}: {cause}", Exit.BAD_DATA) from cause
                yield number, decoded
    except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
        raise error(f"{path}: not a whole gzip file: {cause}", Exit.BAD_DATA) from cause
    except OSError as cause:
        raise error(f"{path}: cannot be read: {cause.strerror or cause}", Exit.NO_INPUT) from cause
