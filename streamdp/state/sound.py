"""Whether what was loaded is a state of this engine: nobody else's bytes may make kernels run astray.

A checksum says that a snapshot is what was written, not who wrote it. So all that indices, lengths and
kinds lead to is checked once, when a state is loaded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from streamdp.beam.pool import ALIVE, VACANT
from streamdp.beam.search import BeamSearch
from streamdp.encode.bag_encoder import BagEncoder
from streamdp.encode.batch import Batch
from streamdp.encode.category_encoder import EVERY, CategoryEncoder
from streamdp.encode.encoders import Encoder, VectorEncoder
from streamdp.encode.intervals import sound_cuts
from streamdp.encode.order import ReorderBuffer
from streamdp.encode.vocabulary import Vocabulary
from streamdp.errors import Exit
from streamdp.kernels.sound import finite, require, within
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.categorical import TEXT
from streamdp.settings.load import ConfigError
from streamdp.state.arrays import unpack
from streamdp.state.codec import Parts
from streamdp.state.retained import Labelled
from streamdp.state.snapshot import SnapshotError

_FAULTS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    MemoryError,
    RecursionError,
    msgspec.MsgspecError,
    ConfigError,  # settings are checked before: it is moments that no family takes
)


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Turn what goes wrong while a state is loaded into a SnapshotError (65)."""
    try:
        yield
    except _FAULTS as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise SnapshotError(
            f"the state is damaged, or not of streamdp ({what}): go on from another snapshot, "
            "or name another --state",
            Exit.BAD_DATA,
        ) from None


def check_parts(parts: Parts, search: BeamSearch | None, open_for: int, undecided: list[int]) -> None:
    """Raise UnsoundError where parts are not sound, or do not go together.

    ``open_for`` and ``undecided`` are the announcer's: for how many records an assignment may still be
    revised, and which are remembered.
    """
    _check_order(parts.order)
    encoder, moments = parts.encoder, parts.moments
    require((encoder is None) <= (search is None and not parts.pending), "a beam without an encoder")
    if isinstance(encoder, BagEncoder):
        require((search is None) == encoder.waits and moments is None, "words without a beam")
        _check_vocabulary(encoder.vocabulary)
        if isinstance(encoder, CategoryEncoder):
            _check_fields(encoder)
    elif encoder is not None:
        require((search is None) == (moments is None), "a beam of vectors without their moments")
        _check_encoder(encoder.dimension, encoder.names, moments)
    require(not parts.strays or (encoder is not None and search is None), "strays without a warm-up")
    for time, _ in [*parts.pending, *parts.strays]:
        require(isinstance(time, float), "a time of another type")
    held = parts.retained.collect()
    if parts.templates is not None:
        require(encoder is None and search is None, "a beam beside templates")
        _check_lines(parts, held, open_for, undecided)
        return
    if search is None or encoder is None:
        require(held is None and not undecided, "records are retained without a beam")
        return
    require(encoder.sparse == search.likelihood.sparse, "clusters of another kind")
    if isinstance(encoder, BagEncoder):
        _check_held_words(search, encoder.vocabulary)
    if held is not None:
        _check_retained(held, search, encoder)
    seq, decided = search.seq, search.decided
    through = max(-1, min(decided, seq - 1 - open_for)) if open_for else decided
    _check_announced(parts, undecided, seq, through)


def _check_announced(parts: Parts, undecided: list[int], seq: int, through: int) -> None:
    """All is remembered that is open: after ``through``, and after what was called final, as by ``fit``."""
    first, final = undecided[0] if undecided else seq, parts.announced["final"]
    require(type(final) is int and -1 <= final < max(seq, 1), "what is final is out of range")
    last = max(through, final)
    require(undecided == list(range(first, seq)) and first <= last + 1, "what was announced has gaps")


def _check_lines(parts: Parts, held: Labelled | None, open_for: int, undecided: list[int]) -> None:
    """What is retained and announced of log lines goes with their templates, which were checked before."""
    assert parts.templates is not None
    counters: Any = unpack(parts.templates["stream"]["counters"])
    seq = int(counters.records)
    if held is not None:
        require(held.first + len(held.labels) == seq and held.first >= 0, "retained records are missing")
        require(held.batch.size == len(held.labels), "retained records are missing")
        require(held.labels.dtype == np.int64 and held.labels.ndim == 1, "labels of another type")
        within(held.labels, 0, int(counters.clusters), "the label of a record")
    _check_announced(parts, undecided, seq, max(-1, seq - 1 - open_for))


def _check_order(order: ReorderBuffer) -> None:
    for name in ("latest", "released", "first"):
        require(isinstance(getattr(order, name), float), f"{name} of another type")
    for name in ("arrivals", "timed"):
        value = getattr(order, name)
        require(type(value) is int and 0 <= value < 1 << 62, f"{name} out of range")
    require(isinstance(order.dated, bool), "dated of another type")
    require(all(isinstance(time, float) for time in order.streak), "a time of another type")
    for time, number, _ in [*order.heap, *order.leaps]:
        require(isinstance(time, float) and type(number) is int, "a waiting record of another type")
    numbers = [number for _, number, _ in [*order.heap, *order.leaps]]
    require(len(set(numbers)) == len(numbers), "two waiting records of one number")


def _check_vocabulary(vocabulary: Vocabulary) -> None:
    words, free = vocabulary.words, vocabulary.free
    require(isinstance(words, list) and isinstance(free, list), "words of another type")
    require(
        type(vocabulary.limit) is int and 0 < vocabulary.limit <= 1 << 20, "the words' limit is out of range"
    )
    require(all(word is None or isinstance(word, str) for word in words), "a word of another type")
    gone = [i for i, word in enumerate(words) if word is None]
    require(len(vocabulary.ids) == len(words) - len(gone) <= vocabulary.limit, "a word comes twice")
    require(sorted(free) == gone, "the free words are others")
    for count in (vocabulary.dropped, vocabulary.evicted):
        require(type(count) is int and 0 <= count < 1 << 62, "a count of words is out of range")


def _check_fields(encoder: CategoryEncoder) -> None:
    known = encoder.vocabulary.words
    require(known[:1] == [EVERY], "records without a word of their own")
    require(not encoder.names.texts or known[TEXT] is not None, "texts without a word of their own")
    require(all(type(name) is str for kind in encoder.names for name in kind), "a field is no name")
    if not encoder.waits:
        cuts = encoder.cuts
        require(cuts is not None and cuts.keys() == set(encoder.names.numbers), "intervals of other fields")
        for found in (cuts or {}).values():
            require(sound_cuts(found), "intervals that do not follow each other")


def _check_encoder(dimension: Any, names: Any, moments: Moments | None) -> None:
    require(type(dimension) is int and dimension > 0, "the dimension is out of range")
    if names is not None:
        require(
            isinstance(names, list) and all(isinstance(name, str) for name in names), "names of another type"
        )
        require(len(set(names)) == len(names) == dimension, "the names are not one a dimension")
    if moments is not None:
        shapes = ((dimension,), (dimension,), (dimension, dimension), ())
        for moment, shape in zip(moments, shapes, strict=True):
            require(moment.dtype == np.float64 and moment.shape == shape, "moments of another shape")
            finite(moment, "a moment")
        require((moments.variance > 0.0).all(), "a variance is not positive")


def _check_held_words(search: BeamSearch, vocabulary: Vocabulary) -> None:
    held = np.flatnonzero(search.held_words())
    within(held, 0, len(vocabulary.words), "a word")
    require(
        all(vocabulary.words[i] is not None for i in held.tolist()), "a cluster holds a word that is free"
    )


def _check_retained(held: Labelled, search: BeamSearch, encoder: Encoder) -> None:
    batch, labels, counters = held.batch, held.labels, search.state.beam.counters
    require(type(held.first) is int and held.first >= 0, "the first record retained is out of range")
    require(labels.dtype == np.int64 and labels.ndim == 1, "labels of another type")
    require(
        held.first + len(labels) == counters.seq and batch.size == len(labels), "retained records are missing"
    )
    within(labels, 0, int(counters.next_label), "the label of a record")
    if batch.times is not None:
        require(
            batch.times.dtype == np.float64 and batch.times.shape == labels.shape, "times of another type"
        )
        finite(batch.times, "a time")
    require(batch.sparse == encoder.sparse, "records of another kind")
    if batch.vectors is not None:
        require(batch.vectors.dtype == np.float64 and batch.vectors.ndim == 2, "vectors of another type")
        require(
            isinstance(encoder, VectorEncoder) and batch.vectors.shape[1:] == (encoder.dimension,),
            "vectors of another length",
        )
        finite(batch.vectors, "a vector")
        return
    _check_bags(batch, len(search.words.learned.counts))
    _check_belonging(held, search)


def _check_bags(batch: Batch, words: int) -> None:
    for name, array, kind in (
        ("offsets", batch.offsets, np.int64),
        ("words", batch.words, np.int32),
        ("counts", batch.counts, np.int32),
    ):
        require(array.dtype == kind and array.ndim == 1, f"{name} of another type")
    require(len(batch.words) == len(batch.counts), "words and counts of several lengths")
    require(batch.offsets[0] == 0 and batch.offsets[-1] == len(batch.words), "offsets do not fit")
    require((np.diff(batch.offsets) > 0).all(), "a record has no words")
    within(batch.words, 0, words, "a word of a record")
    within(batch.counts, 1, 1 << 31, "the count of a word")
    pairs = batch.rows * np.int64(words) + batch.words
    require(len(np.unique(pairs)) == len(pairs), "a word comes twice in a record")


def _check_belonging(held: Labelled, search: BeamSearch) -> None:
    """The words of retained records are in the clusters that have their labels, as often as they say."""
    index, pool, slots = search.words.inverted, search.state.pool, search.head_slots()
    slots = slots[pool.state[slots] == ALIVE]
    names = search.state.lineages.rows["label"][pool.slots["lineage"][slots]]
    slot_of = np.full(int(search.state.beam.counters.next_label), -1, np.int64)
    slot_of[names[names >= 0]] = slots[names >= 0]
    slot = slot_of[held.labels]
    counted = np.bincount(slot[slot >= 0], minlength=len(pool.slots))
    smaller = (counted > pool.slots["size"])[pool.state != VACANT]
    require(not smaller.any(), "a cluster is smaller than what it retains")
    rows, words = held.batch.rows, np.int64(len(index.lists))
    known = slot[rows] >= 0
    pairs = slot[rows][known] * words + held.batch.words[known]
    wanted, place = np.unique(pairs, return_inverse=True)
    sums = np.bincount(place, held.batch.counts[known], len(wanted))
    lists = index.lists
    lengths = lists["length"]
    before = np.cumsum(lengths) - lengths
    at = np.repeat(lists["start"] - before, lengths) + np.arange(lengths.sum())
    have = index.slot[at] * words + np.repeat(np.arange(words), lengths)
    order = np.argsort(have)
    found = np.searchsorted(have[order], wanted)
    require((found < len(have)).all(), "a cluster lacks a word of its records")
    at = at[order][found]
    require((have[order][found] == wanted).all(), "a cluster lacks a word of its records")
    require((index.occurrences[at] >= sums).all(), "a cluster lacks a word of its records")
