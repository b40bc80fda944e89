"""Check that what was loaded is a sound state: damaged or forged bytes must not crash a kernel.

A checksum says that a snapshot is what was written, not who wrote it. So all that indices, lengths and
kinds lead to is checked once, when a state is loaded.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import msgspec
import numpy as np

from streamdp.beam.data.pool import VACANT
from streamdp.beam.looks.moves import head_by_label
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch, Labelled
from streamdp.encode.embedding import EmbeddingError
from streamdp.encode.encoders import Encoder
from streamdp.encode.vector_encoder import HUGE, VectorEncoder
from streamdp.encode.vocabulary import BagEncoder
from streamdp.encode.word_encoder import MOST as MOST_OF_A_WORD
from streamdp.errors import ConfigError, Exit
from streamdp.kernels.sound import finite, require, within
from streamdp.state.snapshot import SnapshotError
from streamdp.state.stamp import FormatError


def check_labelled(held: Labelled | None, records: int, labels: int) -> None:
    """Raise UnsoundError unless these are the latest of so many records, each with one of so many labels."""
    if held is None:
        return
    require(type(held.first) is int and held.first >= 0, "the first record retained is out of range")
    require(held.labels.dtype == np.int64 and held.labels.ndim == 1, "labels of another type")
    whole = held.first + len(held.labels) == records and held.batch.size == len(held.labels) > 0
    require(whole, "retained records are missing")
    within(held.labels, 0, labels, "the label of a record")
    times = held.batch.times
    if times is not None:
        require(times.dtype == np.float64 and times.shape == held.labels.shape, "times of another type")
        finite(times, "a time")


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
    """Turn what goes wrong while a state is loaded into a SnapshotError (65; of another format 78)."""
    try:
        yield
    except FormatError as error:
        raise SnapshotError(f"the state {error.message}", error.exit_code) from None
    except EmbeddingError:
        raise  # of no other snapshot, either
    except _FAULTS as error:
        what = " ".join(str(error).split()) or type(error).__name__
        raise SnapshotError(f"the state is damaged, or not of streamdp ({what})", Exit.BAD_DATA) from None


def check_words(encoder: BagEncoder, search: BeamSearch) -> None:
    """Raise UnsoundError where clusters hold words that the vocabulary does not know."""
    words, held = encoder.vocabulary.words, np.flatnonzero(search.held_words())
    within(held, 0, len(words), "a word")
    require(all(words[i] is not None for i in held.tolist()), "a cluster holds a word that is free")


def check_retained(held: Labelled, search: BeamSearch, encoder: Encoder) -> None:
    """Raise UnsoundError unless retained records go with the clusters that hold them."""
    batch, labels, counters = held.batch, held.labels, search.state.beam.counters
    check_labelled(held, int(counters.seq), int(counters.next_label))
    require(batch.sparse == encoder.sparse, "records of another kind")
    _check_vectors(batch.vectors, len(labels), encoder)
    if not batch.sparse:
        require(batch.offsets.dtype == np.int64 and not batch.offsets.any(), "offsets do not fit")
        return
    _check_bags(batch, len(search.words.learned.counts))
    _check_belonging(held, search)


def _check_vectors(vectors: np.ndarray | None, size: int, encoder: Encoder) -> None:
    """Vectors are those of the encoder; a record that has other fields may lack its own, as a row of NaN."""
    beside = encoder.beside
    own = encoder if isinstance(encoder, VectorEncoder) else beside
    require((own is None) == (vectors is None), "vectors where there are none, or none where there are")
    if own is None or vectors is None:
        return
    require(vectors.dtype == (np.float64 if beside is None else np.float32), "vectors of another type")
    require(vectors.shape == (size, own.dimension), "vectors of another length, or number")
    if beside is not None:
        lacking = np.isnan(vectors[:, :1])
        require((np.isnan(vectors) == lacking).all(), "a part of a vector")
        vectors = vectors[~lacking[:, 0]]
    finite(vectors, "a vector")
    within(vectors, np.float64(-HUGE), np.nextafter(HUGE, np.inf), "a vector")


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
    within(batch.counts, 1, MOST_OF_A_WORD + 1, "the count of a word")
    pairs = batch.rows * np.int64(words) + batch.words
    require(len(np.unique(pairs)) == len(pairs), "a word comes twice in a record")


def _check_belonging(held: Labelled, search: BeamSearch) -> None:
    """The words of retained records are in the clusters that have their labels, as often as they say."""
    index, pool = search.words.inverted, search.state.pool
    names, slots = head_by_label(search)
    place = np.searchsorted(names, held.labels, side="right") - 1
    slot = np.full(len(held.labels), -1, np.int64)
    found = np.flatnonzero(place >= 0)
    found = found[names[place[found]] == held.labels[found]]
    slot[found] = slots[place[found]]
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
