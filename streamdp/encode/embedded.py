"""Texts to word counts, and the embedding of each beside them."""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Self

import msgspec
import numpy as np

from streamdp.encode.batch import Batch
from streamdp.encode.beside import VectorBeside
from streamdp.encode.embedding import Embedding
from streamdp.encode.order import refuse
from streamdp.encode.text import Tokenizer
from streamdp.encode.vocabulary import Vocabulary
from streamdp.encode.word_encoder import WordEncoder
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.categorical import RECORD, TEXT
from streamdp.records import Record, Reject
from streamdp.records.columns import Columns

FIXED = "", "="
"""The words of every record and of its text, which no word of a text is."""


class EmbeddedTexts(WordEncoder):
    """As :class:`~streamdp.encode.word_encoder.WordEncoder`, with a vector of each text.

    The words of a record are those of :class:`~streamdp.likelihoods.categorical.Categorical`: that of every
    record, that of its text, then the words of the text. Counts of features have no vector.
    """

    def __init__(
        self,
        embedding: Embedding,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        stop_words: str = "none",
        *,
        frozen: bool = False,
    ) -> None:
        super().__init__(tokenizer, vocabulary, stop_words, frozen=frozen)
        self.embedding = embedding
        self.beside: VectorBeside = VectorBeside("", embedding.dimension)
        if not vocabulary.words:
            for word in FIXED:
                vocabulary.add(word)
        vocabulary.fixed = len(FIXED)

    def add(self, given: Columns) -> list[tuple[int, Reject]]:
        """Append records to the batch; which of them cannot be clustered, and why."""
        n = len(given)
        if given.are_texts:
            texts, said = np.arange(n), given.said()
        else:
            texts = np.flatnonzero([isinstance(record.value, str) for record in given])
            said = [str(given.value(i)) for i in texts.tolist()]
        rows = np.full((n, self.embedding.dimension), np.nan, np.float32)
        if said:
            rows[texts] = self.embedding.rows(said)
        wrong = texts[~np.isfinite(rows[texts]).all(axis=1)] if self.embedding.from_function else texts[:0]
        left = np.delete(np.arange(n), wrong)
        refused = [(i, self._refused(given[i])) for i in wrong.tolist()]
        found = super().add(given.take(left) if len(wrong) else given)
        refused += [(int(left[i]), reject) for i, reject in found]
        self.beside.extend(np.delete(rows, [i for i, _ in refused], axis=0) if refused else rows)
        return sorted(refused, key=itemgetter(0))

    def _refused(self, record: Record) -> Reject:
        return refuse(record, "not_finite", f"a number that {self.embedding.name} made of it is not finite")

    def learn(self) -> Moments:
        """How long the vectors are."""
        return self.beside.moments

    def take(self, times: np.ndarray) -> Batch:
        """The batch, with the event time of each of its records; a new one is begun."""
        batch = super().take(times)
        n, begins = batch.size, batch.offsets[:-1]
        offsets = batch.offsets + 2 * np.arange(n + 1)
        totals = np.add.reduceat(batch.counts, begins) if n else batch.counts
        pairs = np.repeat(begins, 2)
        words = np.insert(batch.words, pairs, np.tile(np.array([RECORD, TEXT], np.int32), n))
        first = np.stack([np.ones(n, np.int32), totals.astype(np.int32)], axis=1).ravel()
        counts = np.insert(batch.counts, pairs, first)
        return msgspec.structs.replace(batch, offsets=offsets, words=words, counts=counts)

    def parts(self, batch: Batch, tokens: np.ndarray) -> np.ndarray:
        """The words of each record: where a vector says nothing, novelty is that of the words alone."""
        return np.asarray((tokens - 1) // 2)

    def _unlearning(self) -> Self:
        return type(self)(self.embedding, self.tokenizer, self.vocabulary, self.stop_words, frozen=True)

    def dump(self) -> dict[str, Any]:
        """Everything that must be known to encode the next record, as plain values."""
        model = {"name": self.embedding.name, "digest": self.embedding.digest}
        return super().dump() | {"model": model}
