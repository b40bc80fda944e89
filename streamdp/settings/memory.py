"""How the memory limit is divided among what a stream holds, in bytes of content.

They are bytes of what came, and not those that this machine takes for it: answers are the same everywhere.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from streamdp.settings.schema import Settings

AROUND = 256
"""Bytes that a record held back, and an open answer, count for beside their content."""


USUAL_RECORD = 1_000_000
"""Bytes that a record may have under any memory limit."""


def longest_record(settings: Settings) -> int:
    """How many bytes a record may have: reading one takes some eight times as much.

    Examples
    --------
    >>> longest_record(Settings(max_record_bytes=200_000_000))
    67108864
    """
    return min(settings.max_record_bytes, max(USUAL_RECORD, settings.memory_limit // 8))


CLUSTER_BYTES, TEMPLATE_BYTES, LINE_BYTES = 2048, 8192, 2048
"""Bytes that a cluster counts for, a template of log lines, and a distinct line or value of a hole."""


class Shares(NamedTuple):
    """Bytes for records held back, words of the vocabulary, clusters, retained records, open answers."""

    held_back: int
    words: int
    clusters: int
    retained: int
    answers: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Those of the settings; together they are no more than ``memory_limit``.

        Examples
        --------
        >>> Shares.of(Settings(memory_limit=1 << 20))
        Shares(held_back=262144, words=131072, clusters=262144, retained=262144, answers=131072)
        """
        eighth, quarter = settings.memory_limit // 8, settings.memory_limit // 4
        return cls(quarter, eighth, quarter, quarter, eighth)
