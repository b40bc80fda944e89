"""Stories of a file of answers: every record is known, with as much text as the answers keep."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from streamdp.decode.answered import Answer, answers_in, by_record
from streamdp.encode.text import Tokenizer
from streamdp.encode.vocabulary import Vocabulary
from streamdp.encode.word_encoder import WordEncoder
from streamdp.errors import StreamdpError
from streamdp.ledger.samples import Sample, Samples, shown, text_of_kept
from streamdp.likelihoods import HierarchicalPitmanYor
from streamdp.records import ClusterSummary, Record
from streamdp.records.columns import Columns
from streamdp.story.clock import Clock
from streamdp.story.doubts import LATEST, doubts
from streamdp.story.gather import Known, figures_of, stories_of, with_records
from streamdp.story.statistics import Statistics
from streamdp.story.story import Stories, Story, StoryRecord
from streamdp.story.titles import short
from streamdp.story.words import Bag, Base, Elsewhere, keywords, typicality

CONCENTRATION = 60.0
"""Weight of a new cluster where it is not known under what settings texts were clustered: the default."""


SENTENCE = 3.0
"""Words, in the mean, from which a kept field is taken for the text: names and categories have fewer."""


class StoriesError(StreamdpError):
    """Stories cannot be read: the file is not there (66), or of no use (65)."""


class AnsweredStories:
    """Stories of a file that ``consume`` or ``fit`` wrote. Raises StoriesError."""

    lacking = ""

    def __init__(self, path: str | Path) -> None:
        found = by_record(answer for _, answer in answers_in(path, StoriesError))
        self._newest = {seq: newest for seq, (_, newest) in found.items()}
        self._first = {seq: first.cluster for seq, (first, _) in found.items()}
        kept = {
            seq: {name: value for name, value in first.keep.items() if value not in ("", None)}
            for seq, (first, _) in found.items()
        }
        self._kept, field = kept, _text_field(kept.values()) or ""
        self._texts = {seq: str(fields.get(field, "")) for seq, fields in kept.items()}
        self.lacking = (
            ""
            if any(self._texts.values()) or self._templates
            else ("the answers keep no text: the text's field in --keep, or a --store, gives stories titles")
        )

    @property
    def _templates(self) -> bool:
        return any(answer.template for answer in self._newest.values())

    def stories(self, *, closed: bool = False, stretch: float | None = None, muted: bool = False) -> Stories:
        """All stories, largest first; none that is ``closed`` or ``muted``: answers do not say so."""
        if closed or not self._newest:
            return Stories(records=len(self._newest), remembered="none")
        rows = [self._newest[seq] for seq in sorted(self._newest)]
        labels = np.array([row.cluster for row in rows])
        times = np.array([np.nan if row.time is None else row.time for row in rows])
        dated = not np.isnan(times).any()
        clock = Clock.of(times if dated else None, len(rows), stretch)
        members: defaultdict[int, list[Answer]] = defaultdict(list)
        for row in rows:
            members[row.cluster].append(row)
        titles, words = self._words(members)
        known = Known(
            titles,
            words,
            figures_of(clock, labels, times if dated else None, 0),
            confused={label: self._confused(own) for label, own in members.items()},
        )
        clusters = sorted(map(self._summary, members.values()), key=lambda c: (-c.size, c.cluster))
        return Stories(
            stories_of(clusters, known, clock, closed=False),
            clock,
            len(rows),
            kind="lines" if self._templates else None,
            warnings=[] if self._templates else list(doubts(labels[-LATEST:], self._revised, None)),
            statistics=None if self._templates else partial(self._statistics, clusters),
        )

    def _statistics(self, clusters: Sequence[ClusterSummary]) -> Statistics | None:
        texts = ((seq, answer.cluster, self._texts[seq]) for seq, answer in sorted(self._newest.items()))
        return statistics_of({cluster.cluster: cluster.size for cluster in clusters}, texts)

    @property
    def _revised(self) -> float:
        """Revised answers by record."""
        return sum(a.revision > 0 for a in self._newest.values()) / max(len(self._newest), 1)

    def records(self, labels: Collection[int], *, latest: bool = False) -> Iterator[tuple[int, StoryRecord]]:
        """All records of some stories, by story and number."""
        ordered = sorted(self._newest.values(), key=lambda answer: (answer.cluster, answer.seq))
        for answer in reversed(ordered) if latest else ordered:
            if answer.cluster in labels:
                yield answer.cluster, self._record(answer)

    def named(self, name: str) -> tuple[int, StoryRecord] | None:
        """The story and the latest record of an id."""
        return latest_of(name, self.records({answer.cluster for answer in self._newest.values()}))

    def search(self, words: Sequence[str]) -> set[int]:
        """The stories of which some record holds all words."""
        return {a.cluster for a in self._newest.values() if holds(text_of_kept(self._kept[a.seq]), words)}

    def _record(self, answer: Answer) -> StoryRecord:
        named = answer.id if isinstance(answer.id, str | int | None) else str(answer.id)
        return StoryRecord(
            seq=answer.seq,
            id=named,
            time=answer.time,
            text=self._texts[answer.seq],
            probability=answer.probability,
            revision=answer.revision,
            keep=self._kept[answer.seq],
        )

    def in_full(self, story: Story) -> Story:
        """A story with the surest and the least sure of its records."""
        return with_records(story, (record for _, record in self.records([story.label])))

    def _confused(self, own: Iterable[Answer]) -> list[tuple[int, int]]:
        found = Counter(self._first[answer.seq] for answer in own)
        return [(label, n) for label, n in found.most_common() if label != next(iter(own)).cluster]

    def _summary(self, own: list[Answer]) -> ClusterSummary:
        times = [answer.time for answer in own if answer.time is not None]
        return ClusterSummary(
            cluster=own[0].cluster,
            size=len(own),
            first_time=min(times, default=None),
            last_time=max(times, default=None),
            first_seq=own[0].seq,
            last_seq=own[-1].seq,
            weight=0.0,
            samples=[shown(self._texts[each.seq]) for each in (own[0], own[-1]) if self._texts[each.seq]],
        )

    def _words(self, members: dict[int, list[Answer]]) -> tuple[dict[int, str], dict[int, list[str]]]:
        """Titles and keywords of stories, of what their records say."""
        rows = [self._newest[seq] for seq in sorted(self._newest)]
        said = Spoken.of((answer.seq, answer.cluster, self._texts[answer.seq]) for answer in rows)
        samples = Samples()
        for answer in rows:
            typical = -(answer.novelty or 0.0)
            samples.extend([(answer.cluster, (answer.seq, typical, self._texts[answer.seq]))])
        base = Base.of(said.elsewhere.stories)
        titles = {
            label: _title(samples.held(label), said.bags[label], said.records, base)
            for label in members
            if samples.held(label)
        }
        titles |= {label: own[-1].template for label, own in members.items() if own[-1].template}
        return titles, said.keywords()


class Spoken(NamedTuple):
    """The words of texts: all words, in the order in which they came; those of records, and of stories."""

    names: list[str]
    records: dict[int, Counter[int]]
    bags: dict[int, Bag]
    grammar: np.ndarray  # which words are stop words, where their language was not known yet

    @classmethod
    def of(cls, texts: Iterable[tuple[int, int, str]]) -> Spoken:
        """Of the number, the label and the text of records, in order."""
        encoder = WordEncoder(Tokenizer(stem="auto"), Vocabulary(1 << 20), "auto")
        given = [(seq, label, Record(value=text, position={})) for seq, label, text in texts]
        refused = {i for i, _ in encoder.add(Columns.of([record for _, _, record in given]))}
        batch = encoder.take(np.zeros(len(given) - len(refused)))
        ends = iter(batch.offsets[1:].tolist())
        records, counts = dict[int, Counter[int]](), defaultdict[int, Counter[int]](Counter)
        begin = 0
        for i, (seq, label, _) in enumerate(given):
            end = begin if i in refused else next(ends)
            own = zip(batch.words[begin:end].tolist(), batch.counts[begin:end].tolist(), strict=True)
            records[seq], begin = Counter(dict(own)), end
            counts[label].update(records[seq])
        bags = {
            label: Bag.of(np.array([*own], np.int64), np.array([*own.values()], np.int64))
            for label, own in counts.items()
        }
        names = [word or "" for word in encoder.vocabulary.words]
        return cls(names, records, bags, encoder.grammar())

    @property
    def elsewhere(self) -> Elsewhere:
        """The words of all stories together."""
        return Elsewhere.of([*self.bags.values()], len(self.names))

    def keywords(self) -> dict[int, list[str]]:
        """The keywords of each story, by label."""
        elsewhere = self.elsewhere
        return {
            label: [self.names[i] for i in keywords(bag, elsewhere) if not self.grammar[i]]
            for label, bag in self.bags.items()
        }


def _text_field(kept: Iterable[Mapping[str, Any]]) -> str | None:
    """The kept field that holds the text: of those named text or with sentences, the one of most words."""
    words = defaultdict[str, list[int]](list)
    for fields in kept:
        for name, value in fields.items():
            words[name].append(len(value.split()) if isinstance(value, str) else 0)
    mean = {name: sum(each) / len(each) for name, each in words.items()}
    spoken = {name: mean[name] for name in mean if name == "text" or mean[name] >= SENTENCE}
    return max(spoken, key=lambda name: spoken[name], default=None)


def statistics_of(sizes: Mapping[int, int], texts: Iterable[tuple[int, int, str]]) -> Statistics | None:
    """What themes of texts are made of; None where no text is known.

    Parameters
    ----------
    sizes
        Records of each story, by label.
    texts
        Number, label and text of records, as far as these are known.
    """
    bags = {label: bag for label, bag in Spoken.of(texts).bags.items() if len(bag.words)}
    if not bags:
        return None
    numbers = [sizes[label] for label in bags]
    return Statistics([*bags], numbers, HierarchicalPitmanYor(), CONCENTRATION, [*bags.values()])


def latest_of(name: str, records: Iterable[tuple[int, StoryRecord]]) -> tuple[int, StoryRecord] | None:
    """The latest of some records that has an id, with its story."""
    named = (each for each in records if each[1].id is not None and str(each[1].id) == name)
    return max(named, key=lambda each: each[1].seq, default=None)


def holds(text: str, words: Iterable[str]) -> bool:
    """Whether a text holds all words, in upper or lower case."""
    found = text.casefold()
    return all(word.casefold() in found for word in words)


def _title(samples: Iterable[Sample], bag: Bag, counted: dict[int, Counter[int]], base: Base) -> str:
    """The most typical of a story's samples."""
    given = list(samples)
    own = [counted[seq] for seq, _, _ in given]
    words = np.array([word for each in own for word in each], np.int64)
    counts = np.array([n for each in own for n in each.values()], np.int64)
    typical = typicality(bag, words, counts, np.array([len(each) for each in own]), base)
    return short(str(given[int(np.argmax(typical))][2]))
