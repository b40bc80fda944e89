"""When output files are rotated, and what the full ones are called."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from typing import NamedTuple

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class Rotation(NamedTuple):
    """A file is rotated once it has ``size`` bytes, or (``daily``) when a day of UTC has passed."""

    size: int | None = None
    daily: bool = False

    @classmethod
    def of(cls, text: str) -> Rotation:
        """``daily``, or a number of bytes with k, M or G (powers of 1024). Raises ValueError."""
        if text == "daily":
            return cls(daily=True)
        found = re.fullmatch(r"([1-9]\d{0,14})([kKmMgG]?)", text)
        if found is None:
            raise ValueError(f"{text!r} is neither daily nor a size such as 500k, 100M or 2G")
        return cls(size=int(found[1]) * _UNITS.get(found[2].lower(), 1))

    def due(self, size: int, begun: float, now: float) -> bool:
        """Whether a file of so many bytes, begun at one time, is full at another; in seconds (Unix)."""
        if self.size is not None:
            return size >= self.size
        return self.daily and _day(begun) < _day(now)


def _day(seconds: float) -> int:
    return int(seconds // 86_400)


def rotated_name(path: str, now: float) -> str:
    """``NAME-20261122T114124.503817Z.ENDING``, in the order of time, and nothing that is there."""
    root, ending = os.path.splitext(path)
    return unused(f"{root}-{datetime.fromtimestamp(now, UTC):%Y%m%dT%H%M%S.%fZ}{ending}")


def unused(path: str) -> str:
    """The path, or the first of ``NAME-2.ENDING``, ``NAME-3.ENDING``, ... that nothing has."""
    root, ending = os.path.splitext(path)
    number, found = 1, path
    while os.path.lexists(found):
        number += 1
        found = f"{root}-{number}{ending}"
    return found
