"""What a stream remembers of clusters for its stories: titles, and which have split, merged or ended."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from streamdp.kernels.sound import require
from streamdp.records import Event
from streamdp.story.gather import RELATED, Kin
from streamdp.story.statistics import MOST
from streamdp.story.titles import Titles

ENDED = 100
"""Closed clusters that are remembered."""


class Memory(msgspec.Struct):
    """Titles, the latest splits and mergers of clusters of several records, and the clusters closed last.

    It is stored as it is.
    """

    titles: Titles = msgspec.field(default_factory=Titles)
    kin: list[Kin] = []
    ended: list[Event] = []
    themes: dict[int, int] = {}
    """The number of the theme of each story, as of the last look at them."""

    def __post_init__(self) -> None:
        require(len(self.kin) <= RELATED, "too many splits and mergers")
        known = all(kin.event in ("split", "merged") for kin in self.kin)
        require(known, "what is neither a split nor a merger")
        require(len(self.ended) <= ENDED, "too many clusters have ended")
        require(len(self.themes) <= MOST, "too many stories have themes")
        require(min(map(min, self.themes.items()), default=0) >= 0, "a theme of no story")

    def happened(self, events: Iterable[Event]) -> None:
        """Remember what clusters became."""
        for event in events:
            if event.event in ("closed", "retired"):
                self.ended.append(event)
            elif event.other is not None and event.size > 1 and event.event in ("split", "merged"):
                self.kin.append(Kin(event.event, event.cluster, event.other))
        del self.ended[:-ENDED], self.kin[:-RELATED]

    def merged_into(self, label: int) -> int | None:
        """What a story became part of, as far as that is remembered."""
        into = (kin.other for kin in reversed(self.kin) if kin[:2] == ("merged", label))
        return next(into, None)
