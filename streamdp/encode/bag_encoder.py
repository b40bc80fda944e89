"""What the encoders of records to bags of words share: a vocabulary, and the batch that they fill."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from streamdp.encode.batch import BagArrays, Batch, join_bags
from streamdp.encode.vocabulary import Vocabulary
from streamdp.likelihoods.base import Moments
from streamdp.records import Record, Reject


class BagEncoder(ABC):
    """Records to counts over a vocabulary.

    A ``frozen`` encoder learns no words: unknown ones share the first id that no word has, nor any posting.
    """

    sparse: ClassVar[bool] = True

    def __init__(self, vocabulary: Vocabulary, *, frozen: bool = False) -> None:
        self.vocabulary = vocabulary
        self.frozen = frozen
        self._held: list[BagArrays] = []

    def _append(self, offsets: np.ndarray, words: np.ndarray, counts: np.ndarray) -> None:
        self._held.append((offsets, words, counts))

    @property
    def waits(self) -> bool:
        """Whether records wait until :meth:`learn` is called."""
        return False

    def learn(self) -> Moments | None:
        """Take from the records that have come what must be known before any can be encoded: nothing."""
        return None

    def add(self, record: Record) -> Reject | None:
        """Append a record to the batch, or say why it cannot be clustered."""
        return self.add_all((record,))[0]

    @abstractmethod
    def add_all(self, records: Iterable[Record]) -> list[Reject | None]:
        """Append records to the batch, or say of each why it cannot be clustered."""

    def take(self, times: np.ndarray) -> Batch:
        """The batch, with the event time of each of its records; a new one is begun."""
        offsets, words, counts = join_bags(self._held)
        self._held = []
        return Batch(offsets, words, counts, times=times)

    @abstractmethod
    def for_scoring(self) -> BagEncoder:
        """An encoder that knows the same words and learns none."""

    def sizes(self, batch: Batch) -> np.ndarray:
        """By how many parts the novelty of each record is divided, shape (n,): its tokens."""
        return batch.sizes

    @property
    def words(self) -> Sequence[str | None] | None:
        """The word of each id."""
        return self.vocabulary.words

    @abstractmethod
    def dump(self) -> dict[str, Any]:
        """Everything that must be known to encode the next record, as plain values."""
