"""Titles and keywords of the clusters of a beam."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdp.answers.describe import top_words
from streamdp.beam.data.pool import CLOSED
from streamdp.beam.data.state import REVIEW_EVERY
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch, Labelled
from streamdp.encode.category_encoder import CategoryEncoder
from streamdp.encode.encoders import Encoder
from streamdp.encode.phrases import joined
from streamdp.encode.vocabulary import BagEncoder, is_nameless
from streamdp.ledger.samples import Samples
from streamdp.likelihoods.categorical import TEXT, FieldsLearned, worded_by
from streamdp.likelihoods.vectors import leave_out
from streamdp.records import RENAMED, TITLED, Event
from streamdp.state.retained import Retained
from streamdp.story.memory import Memory
from streamdp.story.statistics import Statistics
from streamdp.story.titles import Titles
from streamdp.story.words import Bag, Base, Elsewhere, keywords, typicality

THEMES_EVERY = 2 * REVIEW_EVERY
"""Records between two looks at themes, where a stream keeps them up to date."""

ANEW = 6
"""At every so many looks themes are made anew, so that what was united early does not hold for ever."""


def bag_of(search: BeamSearch, *slots: int, said: np.ndarray | None = None) -> Bag:
    """The words of clusters, as one bag; ``said`` are those that count, by id, None: all."""
    index, which = search.words.inverted, np.array(slots)
    width = len(search.words.learned.counts)
    lengths = index.types[which]
    begins = index.own["start"][which] - np.cumsum(lengths) + lengths
    place = np.repeat(begins, lengths) + np.arange(lengths.sum())
    own, counts = index.word[place], index.where[place].astype(np.int64)
    open_ = np.repeat(search.state.pool.state[which] != CLOSED, lengths)
    counts[open_] = index.occurrences[index.lists["start"][own[open_]] + counts[open_]]
    kept = slice(None) if said is None else said[own]
    return Bag.of((own + np.repeat(np.arange(len(which)) * width, lengths))[kept], counts[kept])


def _spoken(search: BeamSearch) -> np.ndarray:
    """Which words are said in texts, by id: all, or those of the only field where that is a text.

    Of records of categories, none.
    """
    learned = search.words.learned
    if not isinstance(learned, FieldsLearned):
        return np.ones(len(learned.counts), bool)
    texts = worded_by(search.model.family.bag, learned.field)
    return np.asarray(texts & (learned.field[~texts] < 0).all())


def keywords_of(search: BeamSearch, encoder: Encoder) -> dict[int, list[str]]:
    """Words for the keywords of the live clusters of the best hypothesis, by label; none without words."""
    if not isinstance(encoder, BagEncoder) or not (spoken := _spoken(search)).any():
        return {}  # of categories, the telling values say it
    words = encoder.vocabulary.words
    spoken[: len(words)] &= ~encoder.grammar()[: len(spoken)]
    slots = search.head_slots()
    labels = search.labels_of(slots).tolist()
    bags = [bag_of(search, slot, said=spoken) for slot in slots.tolist()]
    elsewhere = Elsewhere.of(bags, len(search.words.learned.counts))
    field = f"{words[TEXT]}=" if isinstance(encoder, CategoryEncoder) else ""
    return {
        label: [
            (words[i] or "").removeprefix(field)
            for i in keywords(bag, elsewhere)
            if not is_nameless(words[i])
        ]
        for label, bag in zip(labels, bags, strict=True)
    }


def statistics_of(search: BeamSearch) -> Statistics | None:
    """The statistics of the live clusters; None where they do not determine their marginal likelihood."""
    family, slots = search.likelihood, search.head_slots()
    concentration = float(getattr(search.model.prior, "concentration", 1.0))
    own = search.state.pool.slots[slots]
    labels = search.labels_of(slots).tolist()
    sizes = own["size"].tolist()
    if family.ordered:
        return None
    rows = None if family.vector is None else search.state.clusters.rows.block[slots]
    if family.bag is None:
        return Statistics(labels, sizes, family, concentration, rows=rows)
    bags, base = [bag_of(search, slot) for slot in slots.tolist()], family.bag.measure(search.words.learned)
    return Statistics(labels, sizes, family, concentration, bags, rows, base)


def follow_themes(memory: Memory, search: BeamSearch, wanted: int, *, last: bool) -> None:
    """Bring so many themes up to date, where that is due; 0 are none."""
    early = search.seq < THEMES_EVERY
    if wanted and (last or early or search.seq % THEMES_EVERY == 0):
        anew = not last and not early and search.seq // THEMES_EVERY % ANEW == 0
        if (statistics := statistics_of(search)) is not None:
            from streamdp.story.themes import themes_of  # which needs kernels

            memory.themes = themes_of(statistics, wanted, memory.themes, anew=anew)


class _Labels:
    """The labels of clusters, of which there may be a million: it is seldom asked for one."""

    def __init__(self, search: BeamSearch, slots: np.ndarray) -> None:
        self._search, self._slots = search, slots

    def __contains__(self, label: object) -> bool:
        return bool((self._search.labels_of(self._slots) == label).any())


def entitle(
    titles: Titles,
    search: BeamSearch,
    words: Sequence[str | None] | None,
    retained: Retained,
    samples: Samples,
    dated: bool | None,
) -> list[Event]:
    """Choose titles for the clusters that records joined since the last review, where they need one.

    Returns an event for each cluster that has a title, or another one than before; none where ``dated``,
    which says whether records have times, is None.
    """
    last, every = search.seq - 1, search.head_slots()
    slots = every[search.state.pool.slots["last"][every] >= last - last % REVIEW_EVERY]
    labels = search.labels_of(slots).tolist()
    sizes = dict(zip(labels, search.state.pool.slots["size"][slots].tolist(), strict=True))
    places = dict(zip(labels, slots.tolist(), strict=True))
    due = [label for label in titles.due([*sizes], [*sizes.values()]) if samples.held(label)]
    if not due:
        return []
    living = _Labels(search, every)
    asked = {label: titles.asked(label, samples.held(label)) for label in due}
    typical = _typical(search, places, asked, retained.collect())
    found = []
    for label in due:
        named = titles.of(label) is not None
        title = titles.choose(label, sizes[label], samples.held(label), typical[label], living)
        if title is not None and dated is not None:
            row = search.state.pool.slots[places[label]]
            found.append(
                Event(
                    event=RENAMED if named else TITLED,
                    seq=last,
                    time=retained.time if dated else None,
                    cluster=label,
                    other=None,
                    size=sizes[label],
                    moved=None,
                    first_time=float(row["first_time"]) if dated else None,
                    last_time=float(row["last_time"]) if dated else None,
                    words=None
                    if words is None
                    else joined(top_words(search, places[label], words), samples.of(label)),
                    title=title.text,
                )
            )
    return found


def _typical(
    search: BeamSearch, slots: dict[int, int], asked: dict[int, list[int]], held: Labelled | None
) -> dict[int, dict[int, float]]:
    """How typical some retained records of each label are of its cluster, which is in this slot."""
    found: dict[int, dict[int, float]] = {label: {} for label in asked}
    if held is None:
        return found
    wanted = [(i, label, seq - held.first) for i, (label, seqs) in enumerate(asked.items()) for seq in seqs]
    own = [(i, label, at) for i, label, at in wanted if 0 <= at < len(held.labels)]
    own = [each for each in own if held.labels[each[2]] == each[1]]
    if not own:
        return found
    if search.sparse:
        records = held.batch.take(np.array([at for _, _, at in own]))
        which = np.array([i for i, _, _ in own])
        numbers = _typicality(search, [slots[label] for label in asked], records, which).tolist()
    else:
        numbers = [_nearness(search, slots[label], held.batch, at) for _, label, at in own]
    for (_, label, at), number in zip(own, numbers, strict=True):
        found[label][held.first + at] = number
    return found


def _typicality(search: BeamSearch, slots: list[int], records: Batch, which: np.ndarray) -> np.ndarray:
    """How typical records are of the clusters in slots, the i-th of that of number ``which[i]``.

    Nats by token of the words, and those that a vector beside them adds by token of a mean record there.
    """
    spoken = _spoken(search)
    said = spoken if spoken.any() else ~spoken
    bag, own, base = (
        bag_of(search, *slots, said=said),
        said[records.words],
        search.words.learned.counts * said,
    )
    words, counts, rows = records.words[own], records.counts[own], records.rows[own]
    lengths = np.bincount(rows, minlength=records.size)
    found = typicality(bag, words, counts, lengths, Base.of(base), which)
    found[lengths == 0] = -np.inf  # what says nothing is no title
    if records.vectors is not None:
        held, family = np.array(slots)[which], search.model.family
        rows, vectors = search.state.clusters.rows.block[held], records.vectors.astype(np.float64)
        gains = np.zeros(len(rows))
        leave_out(family.vector, rows, vectors, gains)
        sizes, tokens = search.state.pool.slots["size"][held], search.words.inverted.tokens[held]
        found += gains * sizes / np.maximum(tokens, 1)
    return found


def _nearness(search: BeamSearch, slot: int, batch: Batch, at: int) -> float:
    """How near a vector is to where its cluster lies, by dimension; larger is nearer."""
    family = search.likelihood
    assert batch.vectors is not None
    centre = family.vector.centre(search.state.clusters.rows.block[slot])
    away = np.linalg.norm(batch.vectors[at : at + 1] - centre, axis=1)
    return float(-away[0] / max(len(centre), 1))
