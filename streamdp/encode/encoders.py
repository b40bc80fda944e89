"""Records to batches, by the settings: word counts, or vectors of one fixed length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from streamdp.decode.decoder import Decoder, Format
from streamdp.encode.batch import Batch
from streamdp.encode.beside import Seen
from streamdp.encode.category_encoder import CategoryEncoder
from streamdp.encode.embedded import EmbeddedTexts
from streamdp.encode.embedding import EmbeddingError, StoredEmbedding, load_embedding
from streamdp.encode.forms import StoredForms
from streamdp.encode.order import ReorderBuffer, refuse
from streamdp.encode.stop_words import LANGUAGES
from streamdp.encode.text import Tokenizer
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.encode.vocabulary import BagEncoder, Vocabulary
from streamdp.encode.word_encoder import WordEncoder
from streamdp.errors import ConfigError, Exit
from streamdp.kernels.packed import as_type
from streamdp.kernels.sound import require
from streamdp.likelihoods.base import Moments
from streamdp.records import FieldNames, Record, Reject, holds_categories
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.memory import Shares, longest_record
from streamdp.settings.registry import CATEGORICAL
from streamdp.settings.schema import AUTO

Encoder = BagEncoder | VectorEncoder


class Encoded(NamedTuple):
    """Records as the beam reads them, and what encoded them.

    ``moments`` are those of vectors, from which what is automatic follows; None for words.
    """

    encoder: Encoder
    batch: Batch
    moments: Moments | None


def load_encoder(stored: dict[str, Any], settings: Settings) -> Encoder:
    """The inverse of the encoders' ``dump``. UnsoundError where it cannot be one."""
    if stored["kind"] == "vectors":
        normalise = stored["normalise"]
        return VectorEncoder(stored["dimension"], stored["names"], stored["likelihood"], normalise=normalise)
    tokenizer, vocabulary = tokenizer_of(settings), as_type(stored["vocabulary"], Vocabulary)
    encoder: BagEncoder
    if stored["kind"] == "categories":
        names = FieldNames(*map(tuple, stored["names"]))
        encoder = CategoryEncoder(vocabulary, names, tokenizer, stored["cuts"], settings.stop_words)
    elif (settings.embed is None) == ("model" in stored):
        before = "without it" if settings.embed else f"with {stored['model']['name']!r:.300}"
        raise EmbeddingError(f"the state was made {before}, and goes on so alone", Exit.CONFIG)
    elif settings.embed is not None:
        dimension = as_type(stored["centre"], Seen).mean.size
        embedding = StoredEmbedding(settings.embed, stored["model"]["digest"], dimension)
        encoder = EmbeddedTexts(embedding, tokenizer, vocabulary, settings.stop_words)
    else:
        require(stored["kind"] == "texts", "records of another kind")
        encoder = WordEncoder(tokenizer, vocabulary, settings.stop_words)
    languages = stored.get("languages", [])
    require(len(languages) <= len(LANGUAGES) + 1, "stop words of more languages than there are")
    require(all(type(n) is int and 0 <= n < 1 << 62 for n in languages), "a count of stop words")
    forms = stored.get("forms")
    encoder.resume(languages, None if forms is None else as_type(forms, StoredForms))
    if encoder.beside is not None:
        centre = stored.get("centre")
        encoder.beside.resume(None if centre is None else as_type(centre, Seen))
    return encoder


DECAY_SCALE = 400.0
"""Seconds of the automatic decay for texts, the shorter one."""

STRAYS = ("wrong_kind", "wrong_length")
"""Reasons for which a record among vectors of the warm-up is not refused yet: the first may be the stray."""


DECODED = (
    *("text_field", "features_field", "id_field", "pattern", "decimal_comma"),
    *("time_field", "time_unit", "time_zone", "time_format", "date_field", "timestamp_format"),
)
"""Settings that a decoder has under the same names."""

CUT = ("stem", "ngrams", "urls", "mentions", "hashtags")
"""Those of a tokenizer."""


def kind_of(record: Record) -> str | int:
    """What records must have in common to be of one stream: texts, features, or vectors of one length."""
    value = record.value
    if holds_categories(value):
        return CATEGORICAL
    return len(value) if isinstance(value, list) else type(value).__name__


def decoder_of(settings: Settings, input_format: Format) -> Decoder:
    """What reads records of a format, as the settings name their fields. Raises ConfigError."""
    settings.check()
    try:
        return Decoder(
            input_format,
            vector_field=settings.vector_name,
            keep=settings.kept,
            max_bytes=longest_record(settings),
            categories=settings.field_names if settings.of_categories else None,
            **{name: getattr(settings, name) for name in DECODED},
        )
    except ValueError as error:
        raise ConfigError(str(error)) from error


def tokenizer_of(settings: Settings) -> Tokenizer:
    """How the settings want texts to be cut. ValueError for a language without a stemmer."""
    return Tokenizer(**{name: getattr(settings, name) for name in CUT})


def order_of(settings: Settings) -> ReorderBuffer:
    """How the settings want records to be put in order.

    Where distances are seconds, a record that is late by more than the decay's scale would be among clusters
    that it never saw, so it is refused.
    """
    place = 0.0
    if settings.late == "place":
        place = math.inf if settings.distance == "records" else settings.decay_scale or DECAY_SCALE
    limits = settings.max_lateness, settings.max_ahead, settings.max_leap, place
    needs_time = settings.distance == "seconds"
    return ReorderBuffer(*limits, Shares.of(settings).held_back, needs_time=needs_time)


def choose_encoder(record: Record, settings: Settings, sparse: bool | None) -> Encoder | Reject:
    """An encoder for records of this one's kind, or why there is none.

    ``sparse`` says whether the likelihood is for word counts; None: whether it is follows from the record.
    """
    text, categories = isinstance(record.value, str), holds_categories(record.value)
    open_to_all = settings.likelihood == AUTO and settings.embed is None and sparse is not False
    if settings.of_categories or (categories and open_to_all):
        tokenizer = tokenizer_of(settings)
        vocabulary = Vocabulary(settings.max_words, Shares.of(settings).words)
        return CategoryEncoder(vocabulary, settings.field_names, tokenizer, stop_words=settings.stop_words)
    if sparse is None:
        sparse = text
    if sparse:
        most = settings.max_words
        if settings.vocabulary_size is not None:
            most = min(most, settings.vocabulary_size)
        vocabulary = Vocabulary(most, Shares.of(settings).words)
        if settings.embed is not None:
            embedding = load_embedding(settings.embed)
            return EmbeddedTexts(embedding, tokenizer_of(settings), vocabulary, settings.stop_words)
        return WordEncoder(tokenizer_of(settings), vocabulary, settings.stop_words)
    if text or categories:
        what = "a text" if text else "categories"
        return refuse(record, "wrong_kind", f"it holds {what}, and the settings are for vectors")
    value: Any = record.value
    names = sorted(value) if isinstance(value, dict) else None
    return VectorEncoder(len(value), names, settings.likelihood, normalise=settings.normalise)


def encode_all(
    records: Sequence[Record], settings: Settings, sparse: bool | None
) -> tuple[Encoder | None, list[Reject | None]]:
    """An encoder for the first of some records that can be encoded, with all that can in its batch.

    Also of each record why it cannot be clustered.
    """
    encoder: Encoder | None = None
    outcomes: list[Reject | None] = []
    while encoder is None and len(outcomes) < len(records):
        record = records[len(outcomes)]
        chosen = choose_encoder(record, settings, sparse)
        if isinstance(chosen, Reject):
            outcomes.append(chosen)
        else:
            encoder = chosen
    if encoder is not None:
        rest = records[len(outcomes) :]
        refused = dict(encoder.add(Columns.of(rest)))
        outcomes += map(refused.get, range(len(rest)))
    return encoder, outcomes
