"""Which encoder a stream needs: its settings say, or its first record."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from streamdp.encode.category_encoder import CategoryEncoder
from streamdp.encode.encoders import Encoder, VectorEncoder
from streamdp.encode.order import ReorderBuffer, refuse
from streamdp.encode.text import Tokenizer
from streamdp.encode.vocabulary import Vocabulary
from streamdp.encode.word_encoder import WordEncoder
from streamdp.records import Record, Reject, holds_categories
from streamdp.registry import CATEGORICAL
from streamdp.settings import Settings
from streamdp.settings.schema import AUTO

DECAY_SCALE = 400.0
"""Seconds of the automatic decay for texts, the shorter one."""

STRAYS = ("wrong_kind", "wrong_length")
"""Reasons for which a record among vectors of the warm-up is not refused yet: the first may be the stray."""


def kind_of(record: Record) -> str | int:
    """What records must have in common to be of one stream: texts, features, or vectors of one length."""
    value = record.value
    if holds_categories(value):
        return CATEGORICAL
    return len(value) if isinstance(value, list) else type(value).__name__


def tokenizer_of(settings: Settings) -> Tokenizer:
    """How the settings want texts to be cut. ValueError for a language without a stemmer."""
    return Tokenizer(
        stem=settings.stem,
        ngrams=settings.ngrams,
        urls=settings.urls,
        mentions=settings.mentions,
        hashtags=settings.hashtags,
    )


def order_of(settings: Settings) -> ReorderBuffer:
    """How the settings want records to be put in order.

    Where distances are seconds, a record that is late by more than the decay's scale would be among clusters
    that it never saw, so it is refused.
    """
    place = 0.0
    if settings.late == "place":
        place = math.inf if settings.distance == "records" else settings.decay_scale or DECAY_SCALE
    return ReorderBuffer(settings.max_lateness, settings.max_ahead, settings.max_leap, place)


def choose_encoder(record: Record, settings: Settings, sparse: bool | None) -> Encoder | Reject:
    """An encoder for records of this one's kind, or why there is none.

    ``sparse`` says whether the likelihood is for word counts; None: whether it is follows from the record.
    """
    text, categories = isinstance(record.value, str), holds_categories(record.value)
    if settings.of_categories or (categories and settings.likelihood == AUTO and sparse is not False):
        tokenizer = tokenizer_of(settings)
        return CategoryEncoder(Vocabulary(settings.max_words), settings.field_names, tokenizer)
    if sparse is None:
        sparse = text
    if sparse:
        return WordEncoder(tokenizer_of(settings), Vocabulary(_most_words(settings)))
    if text or categories:
        what = "a text" if text else "categories"
        return refuse(record, "wrong_kind", f"it holds {what}, and the settings are for vectors")
    return VectorEncoder.like(record, settings.likelihood, normalise=settings.normalise)


def encode_all(
    records: Sequence[Record], encoder: Encoder | None, settings: Settings, sparse: bool | None
) -> tuple[Encoder | None, list[Reject | None]]:
    """Append records to an encoder's batch, where there is none yet to one for the first that can be encoded.

    Returns the encoder, and of each record why it cannot be clustered.
    """
    outcomes: list[Reject | None] = []
    while encoder is None and len(outcomes) < len(records):
        record = records[len(outcomes)]
        chosen = choose_encoder(record, settings, sparse)
        if isinstance(chosen, Reject):
            outcomes.append(chosen)
            continue
        outcomes.append(chosen.add(record))
        encoder = chosen
    if encoder is not None:
        outcomes += encoder.add_all(records[len(outcomes) :])
    return encoder, outcomes


def meant_for(settings: Settings, encoder: Encoder | None) -> Settings:
    """The settings with the likelihood that is meant for such records, where only they say that."""
    if isinstance(encoder, CategoryEncoder) and settings.likelihood == AUTO:
        return msgspec.structs.replace(settings, likelihood=CATEGORICAL)
    return settings


def _most_words(settings: Settings) -> int:
    if settings.vocabulary_size is None:
        return settings.max_words
    return min(settings.max_words, settings.vocabulary_size)
