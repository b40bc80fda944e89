"""Whether what was loaded are an order of records and an encoder: see ``streamdp.state.sound``."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamdp.encode.category_encoder import EVERY, CategoryEncoder, sound_cuts
from streamdp.encode.encoders import Encoder
from streamdp.encode.order import ReorderBuffer
from streamdp.encode.vocabulary import BagEncoder, Vocabulary
from streamdp.kernels.sound import finite, require
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.categorical import TEXT


def check_order(order: ReorderBuffer) -> None:
    """Raise UnsoundError unless what waits for its turn is sound."""
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


def _check_dimension(dimension: Any, names: Any, moments: Moments | None) -> None:
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


def check_encoder(encoder: Encoder | None, moments: Moments | None) -> None:
    """Raise UnsoundError unless an encoder is sound, and goes with the moments of vectors."""
    if isinstance(encoder, BagEncoder):
        require(moments is None, "words with moments")
        _check_vocabulary(encoder.vocabulary)
        if isinstance(encoder, CategoryEncoder):
            _check_fields(encoder)
    elif encoder is not None:
        _check_dimension(encoder.dimension, encoder.names, moments)
