"""Titles and keywords of the clusters of a beam."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdp.answers.describe import top_words
from streamdp.answers.samples import Samples
from streamdp.beam.data.pool import CLOSED
from streamdp.beam.data.state import REVIEW_EVERY
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.encode.vocabulary import is_erased
from streamdp.likelihoods import BagFamily, VectorFamily
from streamdp.likelihoods.categorical import FieldsLearned
from streamdp.records import RENAMED, TITLED, Event
from streamdp.state.retained import Labelled, Retained
from streamdp.story.stated import Stated
from streamdp.story.titles import Score, Titles
from streamdp.story.words import Bag, Base, Elsewhere, keywords, typicality


def bag_of(search: BeamSearch, slot: int) -> Bag:
    """The words of a cluster."""
    index = search.words.inverted
    begin, n = int(index.own["start"][slot]), int(index.types[slot])
    own, where = index.word[begin : begin + n], index.where[begin : begin + n]
    if search.state.pool.state[slot] == CLOSED:
        return Bag.of(own, where)
    return Bag.of(own, index.occurrences[index.lists["start"][own] + where])


def keywords_of(search: BeamSearch, words: Sequence[str | None] | None) -> dict[int, list[str]]:
    """The keywords of the live clusters of the best hypothesis, by label; none where there are no words."""
    if words is None or isinstance(search.words.learned, FieldsLearned):
        return {}  # of categories, the telling values say it
    slots = search.head_slots()
    labels = search.state.lineages.rows["label"][search.state.pool.slots["lineage"][slots]].tolist()
    bags = [bag_of(search, slot) for slot in slots.tolist()]
    elsewhere = Elsewhere.of(bags, len(search.words.learned.counts))
    return {
        label: [words[i] or "" for i in keywords(bag, elsewhere) if not is_erased(words[i])]
        for label, bag in zip(labels, bags, strict=True)
    }


def stated_of(search: BeamSearch) -> Stated | None:
    """The statistics of the live clusters; None where they do not determine their marginal likelihood."""
    family, slots = search.likelihood, search.head_slots()
    concentration = float(getattr(search.model.prior, "concentration", 1.0))
    rows = search.state.pool.slots[slots]
    labels = search.state.lineages.rows["label"][rows["lineage"]].tolist()
    sizes = rows["size"].tolist()
    if isinstance(family, VectorFamily):
        return Stated(labels, sizes, family, concentration, rows=search.state.clusters.block[slots])
    if not isinstance(family, BagFamily) or getattr(family, "document_beta", None) is not None:
        return None
    bags = [bag_of(search, slot) for slot in slots.tolist()]
    return Stated(labels, sizes, family, concentration, bags, base=family.measure(search.words.learned))


def entitle(
    titles: Titles,
    search: BeamSearch,
    words: Sequence[str | None] | None,
    retained: Retained,
    samples: Samples,
    dated: bool,
) -> list[Event]:
    """Choose titles for the clusters that records joined since the last review, where they need one.

    Returns an event for each cluster that has a title, or another one than before.
    """
    last = search.seq - 1
    slots = search.head_slots()
    rows = search.state.pool.slots[slots]
    labels = search.state.lineages.rows["label"][rows["lineage"]]
    living = set(labels.tolist())
    fresh = rows["last"] >= last - last % REVIEW_EVERY
    sizes = dict(zip(labels[fresh].tolist(), rows["size"][fresh].tolist(), strict=True))
    places = dict(zip(labels[fresh].tolist(), slots[fresh].tolist(), strict=True))
    due = [label for label in titles.due([*sizes], [*sizes.values()]) if samples.held(label)]
    if not due:
        return []
    score = _scores(search, places, retained.collect())
    found = []
    for label in due:
        named = titles.of(label) is not None
        title = titles.choose(label, sizes[label], samples.held(label), score, living)
        if title is not None:
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
                    words=None if words is None else top_words(search, places[label], words),
                    title=title.text,
                )
            )
    return found


def _scores(search: BeamSearch, slots: dict[int, int], held: Labelled | None) -> Score:
    """How typical retained records are of the clusters that are in these slots."""
    base = Base.of(search.words.learned.counts) if search.sparse else None

    def score(label: int, seqs: Sequence[int]) -> dict[int, float]:
        if held is None:
            return {}
        places = [seq - held.first for seq in seqs if 0 <= seq - held.first < len(held.labels)]
        at = [place for place in places if held.labels[place] == label]
        if not at:
            return {}
        if base is None:
            typical = _nearness(search, slots[label], held.batch, at)
        else:
            offsets, batch = held.batch.offsets, held.batch
            parts = [slice(offsets[i], offsets[i + 1]) for i in at]
            lengths = batch.lengths[at]
            words = np.concatenate([batch.words[part] for part in parts])
            counts = np.concatenate([batch.counts[part] for part in parts])
            typical = typicality(bag_of(search, slots[label]), words, counts, lengths, base)
        return {held.first + i: each for i, each in zip(at, typical.tolist(), strict=True)}

    return score


def _nearness(search: BeamSearch, slot: int, batch: Batch, at: Sequence[int]) -> np.ndarray:
    """How near vectors are to where their cluster lies, by dimension; larger is nearer."""
    family = search.likelihood
    assert batch.vectors is not None
    assert isinstance(family, VectorFamily)
    centre = family.centre(search.state.clusters.block[slot])
    away = np.linalg.norm(batch.vectors[np.asarray(at)] - centre, axis=1)
    return np.asarray(-away / max(len(centre), 1))
