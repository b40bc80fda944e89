"""Records of named categories to bags of words: one that all have, and two for each field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from streamdp.encode.bag_encoder import BagEncoder
from streamdp.encode.batch import Batch
from streamdp.encode.order import refuse
from streamdp.encode.vocabulary import Vocabulary
from streamdp.records import Record, Reject, written

RECORD = ""
"""What stands for every record; a field is its name, and a value ``field=value``."""


class CategoryEncoder(BagEncoder):
    """Mappings from names of fields to their values. Fields and values may come at any time.

    ``fields`` are the names of those that count; all do where there are none.
    """

    def __init__(self, vocabulary: Vocabulary, fields: Sequence[str] = (), *, frozen: bool = False) -> None:
        super().__init__(vocabulary, frozen=frozen)
        self.fields = tuple(fields)
        if not vocabulary.words:
            vocabulary.add(RECORD)
        self._fields: dict[str, str] = {}

    def add_all(self, records: Iterable[Record]) -> list[Reject | None]:
        """Append records to the batch, or say of each why it cannot be clustered."""
        return [self._add(record) for record in records]

    def _add(self, record: Record) -> Reject | None:
        value = record.value
        if not isinstance(value, dict):
            what = "a text" if isinstance(value, str) else "a vector"
            return refuse(record, "wrong_kind", f"it holds {what} where this stream holds categories")
        ids = [0]
        for name, found in sorted(value.items()):
            if self.fields and name not in self.fields:
                continue
            try:
                category = written(found)
            except ValueError as error:
                return refuse(record, "wrong_type", f"field {name!r} {error}")
            field = self._fields.get(name)
            if field is None:
                field = self._fields[name] = name.replace("\\", "\\\\").replace("=", "\\=")
            ids += self._pair(field, f"{field}={category}")
        if len(ids) == 1:
            return refuse(record, "empty", "none of the fields has a value")
        self._append(np.array([len(ids)]), np.array(ids, np.int32), np.ones(len(ids), np.int32))
        return None

    def _pair(self, field: str, value: str) -> list[int]:
        """The words of a field and its value; none where there is no room for both."""
        known, vocabulary = self.vocabulary.ids, self.vocabulary
        if self.frozen:
            return [known.get(field, vocabulary.unknown), known.get(value, vocabulary.unknown)]
        if value in known:
            return [known[field], known[value]]
        if len(known) + 2 > vocabulary.limit:
            vocabulary.dropped += 1
            return []
        return [known[field] if field in known else vocabulary.add(field), vocabulary.add(value)]

    def sizes(self, batch: Batch) -> np.ndarray:
        """By how many parts the novelty of each record is divided, shape (n,): its fields."""
        return np.asarray((batch.lengths - 1) // 2)

    def for_scoring(self) -> CategoryEncoder:
        """An encoder that knows the same fields and values and learns none."""
        return CategoryEncoder(self.vocabulary, self.fields, frozen=True)

    def dump(self) -> dict[str, Any]:
        """Everything that must be known to encode the next record, as plain values."""
        return {"kind": "categories", "fields": self.fields, "vocabulary": self.vocabulary.dump()}
