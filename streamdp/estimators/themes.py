"""Themes as labels in place of clusters, for an estimator that is given their number."""

from __future__ import annotations

from streamdp.engine import Engine

FIRST, GROWN = 10, 1.1
"""Records after which themes are looked at first; and how many times as many as at the last look."""


class ThemeNumbers:
    """The number of the theme of each cluster, by label, as of the last look; ``wanted`` 0 keeps labels."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.looked, self.numbers = wanted, 0, dict[int, int]()

    def look(self, engine: Engine | None) -> None:
        """Look again, where the stream has grown by a tenth."""
        if not self.wanted or engine is None or engine.seq < max(FIRST, GROWN * self.looked):
            return
        self.looked = engine.seq
        found = engine.stories(records=False).themed(self.wanted, before=self.numbers)
        self.numbers = found.theme_numbers

    def of(self, label: int | None) -> int | None:
        """The theme of a cluster; one that came since the last look is a theme of its own."""
        return None if label is None else self.numbers.get(label, label)
