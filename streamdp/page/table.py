"""The live clusters without an object for each: what they are called, what they are about, who is near."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.answers.describe import Census, census_of_all
from streamdp.answers.listing import numbers
from streamdp.ledger.samples import text_of
from streamdp.records import ClusterSummary, Record
from streamdp.story.clock import NOTHING, Figures
from streamdp.story.gather import called
from streamdp.story.titles import short

NUMBERS = 8
"""Of a vector, so many are shown."""


def beginning_of(record: Record, texts: Sequence[str] = ()) -> str:
    """The beginning of what a record says (``samples.text_of``), else the first numbers of its vector."""
    found, value = text_of(record, texts), record.value
    if found or not isinstance(value, list):
        return found
    return numbers(value, NUMBERS) + (" …" if len(value) > NUMBERS else "")


MOST = 20_000
"""Live clusters that the table holds: those joined latest."""

DESCRIBED = 2 * MOST
"""Clusters of which anything is remembered between two looks."""

SENT = 200
"""Names that pages may still show, with a record that they were sent."""

PAST = 2000
"""Clusters that live no more of which names and words are remembered, or up to twice as many: the latest."""

AT_ONCE = 100
"""Clusters that are described between two ticks."""


class About(msgspec.Struct, frozen=True, gc=False):
    """What a cluster is about, as of when it had so many records."""

    size: int
    name: str
    words: list[tuple[str, int]]
    mean: list[float] | None


def about_of(cluster: ClusterSummary) -> About:
    """What a cluster is about, cut short."""
    words = [(short(word, 40), count) for word, count in cluster.words or ()]
    mean = None if cluster.mean is None else [round(value, 6) for value in cluster.mean[:16]]
    return About(cluster.size, called(cluster), words, mean)


class Table:
    """The live clusters, as of the last census, and what is known of each."""

    def __init__(self) -> None:
        self.census: Census = census_of_all([])
        self.about: OrderedDict[int, About] = OrderedDict()
        self._called: OrderedDict[int, str] = OrderedDict()
        self._titles: OrderedDict[int, str] = OrderedDict()
        self._sent: OrderedDict[int, str] = OrderedDict()  # names that pages have
        self.figures: Mapping[int, Figures] = {}
        """Records by label in the latest stretch of the stream's time, and in the one before."""
        self.pinned: Collection[int] = ()
        """Those that somebody has pinned."""
        self.levels: Mapping[int, str] = {}
        """Of templates, the level of most of their lines."""
        self.behind = 0
        """Clusters that are to be described yet."""

    def take(self, census: Census, muted: Collection[int] = ()) -> None:
        """The live clusters as they are now, but for those that are muted."""
        if muted:
            shown = ~np.isin(census.label, list(muted))
            census = Census(*(column[shown] for column in census))
        if len(census.label) > MOST:
            latest = np.argpartition(-census.last_seq, MOST)[:MOST]
            census = Census(*(column[latest] for column in census))
        self.census = census
        live = set(census.label.tolist())
        for held in self._called, self._titles, self.about:
            _forget(held, live)

    def stale(self, prominent: Iterable[int]) -> set[int]:
        """Clusters to be described: those that are drawn, those never described, those that have grown."""
        wanted = set(prominent)
        get = self.about.get
        sizes = [0 if (held := get(label)) is None else held.size for label in self.census.label.tolist()]
        known = np.array(sizes, np.int64)
        behind = np.flatnonzero(self.census.size > 1.2 * known)
        order = behind[np.argsort(-self.census.last_seq[behind], kind="stable")]
        self.behind = max(len(order) - AT_ONCE, 0)
        return wanted | set(self.census.label[order[:AT_ONCE]].tolist())

    def describe(self, clusters: Iterable[ClusterSummary]) -> None:
        """What these clusters are about."""
        for cluster in clusters:
            self.about[cluster.cluster] = about_of(cluster)
            self.about.move_to_end(cluster.cluster)
        while len(self.about) > DESCRIBED:
            self.about.popitem(last=False)

    def call(self, label: int, name: str) -> None:
        """What a cluster is called while nothing better is known: it may be gone before it is described."""
        _remember(self._called, label, name)

    def entitle(self, label: int, title: str) -> None:
        """The title of a cluster, by which it is called from now on."""
        _remember(self._titles, label, title)

    def name(self, label: int) -> str:
        """What a cluster is called: its title, or what it is about while it has none."""
        if (title := self._titles.get(label)) is not None:
            return title
        held = self.about.get(label)
        return self._called.get(label, f"cluster {label}") if held is None else held.name

    def renamed(self, labels: Iterable[int]) -> dict[int, str]:
        """Names of clusters that pages were sent under others, the latest; these are sent now."""
        found = {label: name for label, sent in self._sent.items() if (name := self.name(label)) != sent}
        for label in {*found, *labels}:
            _remember(self._sent, label, self.name(label), SENT)
        return found

    def growth(self, label: int) -> int:
        """How many more records a cluster has now than before."""
        figures = self.figures.get(label, NOTHING)
        return figures.now - figures.before

    def near(self, label: int, most: int = 5) -> list[tuple[int, float]]:
        """The live clusters that share most top words with one, or lie nearest, and how near: 0 to 1."""
        held = self.about.get(label)
        others = [other for other in self.census.label.tolist() if other != label and other in self.about]
        if held is None or not others:
            return []
        if held.words:
            own = {word for word, _ in held.words}
            scores = [_overlap(own, self.about[other]) for other in others]
        elif held.mean:
            own_mean = np.array(held.mean)
            means = [self.about[other].mean for other in others]
            away = [float(np.linalg.norm(own_mean - np.array(m))) if m else np.inf for m in means]
            scores = [1.0 / (1.0 + distance) for distance in away]
        else:
            return []
        best = sorted(zip(others, scores, strict=True), key=lambda pair: (-pair[1], pair[0]))[:most]
        return [(other, round(score, 3)) for other, score in best if score > 0.0]


def _forget(held: OrderedDict[int, Any], live: Collection[int]) -> None:
    if len(held) > len(live) + 2 * PAST:
        past = [label for label in held if label not in live]
        for label in past[: max(0, len(past) - PAST)]:
            del held[label]


def _remember(held: OrderedDict[int, str], label: int, text: str, most: int = DESCRIBED) -> None:
    held[label] = text
    held.move_to_end(label)
    if len(held) > most:
        held.popitem(last=False)


def _overlap(own: set[str], other: About) -> float:
    words = {word for word, _ in other.words}
    return len(own & words) / len(own | words) if words else 0.0
