"""The orders that stories are listed in. It imports nothing: commands name their options with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

Sort = Literal["size", "now", "growing", "new", "last", "title"]

ORDERS: dict[Sort, Callable[[Any], Any]] = {
    "size": lambda s: (-s.records, s.label),
    "now": lambda s: (-s.now, -s.records, s.label),
    "growing": lambda s: (-s.growth, -s.records, s.label),
    "new": lambda s: (-s.first_seq, -s.label),
    "last": lambda s: (-s.last_seq, s.label),
    "title": lambda s: (s.title.casefold(), s.label),
}
"""What comes first: the smallest of these of each story."""
