"""The orders that stories are listed in. It imports nothing: commands name their options with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

Sort = Literal["size", "growing", "new", "last"]

ORDERS: dict[Sort, Callable[[Any], Any]] = {
    "size": lambda s: (-s.records, s.label),
    "growing": lambda s: (-s.growth, -s.records, s.label),
    "new": lambda s: (-s.first_seq, -s.label),
    "last": lambda s: (-s.last_seq, s.label),
}
"""What comes first: the smallest of these of each story."""
