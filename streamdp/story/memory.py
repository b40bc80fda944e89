"""What a stream remembers for its stories: their titles, and which clusters split or merged."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from streamdp.kernels.sound import require
from streamdp.records import Event
from streamdp.story.gather import RELATED, Kin
from streamdp.story.statistics import MOST, Statistics
from streamdp.story.titles import Titles


class Memory:
    """Titles, and the latest splits and mergers of clusters of several records."""

    def __init__(self) -> None:
        self.titles = Titles()
        self.kin: deque[Kin] = deque(maxlen=RELATED)
        self.themes: dict[int, int] = {}
        """The number of the theme of each story, as of the last look at them."""

    def happened(self, events: Iterable[Event]) -> None:
        """Remember what clusters became."""
        self.kin.extend(
            Kin(event.event, event.cluster, event.other)
            for event in events
            if event.other is not None and event.size > 1 and event.event in ("split", "merged")
        )

    def merged_into(self, label: int) -> int | None:
        """What a story became part of, as far as that is remembered."""
        into = (kin.other for kin in reversed(self.kin) if kin[:2] == ("merged", label))
        return next(into, None)

    def look_at_themes(self, statistics: Statistics | None, wanted: int, *, anew: bool) -> None:
        """Bring so many themes up to date, or make them anew; numbers stay."""
        if statistics is not None:
            from streamdp.story.themes import themes_of  # which needs kernels

            self.themes = themes_of(statistics, wanted, self.themes, anew=anew)

    def dump(self) -> dict[str, Any]:
        """All of it, as plain values."""
        kin = [tuple(each) for each in self.kin]
        themes = {"themes": list(self.themes.items())} if self.themes else {}
        return {"titles": self.titles.dump(), "kin": kin, **themes}

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError."""
        self.titles.load(stored["titles"])
        kin = [Kin(*each) for each in stored["kin"]]
        require(len(kin) <= RELATED, "too many splits and mergers")
        for each in kin:
            require(list(map(type, each)) == [str, int, int], "a split, or a merger, of another type")
            require(each.event in ("split", "merged"), "what is neither a split nor a merger")
        self.kin.extend(kin)
        self.themes = dict(stored.get("themes", ()))
        held = (*self.themes, *self.themes.values())
        require(len(self.themes) <= MOST, "too many stories have themes")
        require(all(type(each) is int and each >= 0 for each in held), "a theme of another type")
