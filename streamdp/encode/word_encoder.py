"""Texts, or features that are counts, to word counts over a vocabulary."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from msgspec.structs import replace

from streamdp.encode.bags import MOST as MOST_FORMS
from streamdp.encode.bags import Bags, count, new_bags, read, unrelated
from streamdp.encode.batch import Batch
from streamdp.encode.forms import Forms, StoredForms
from streamdp.encode.kernels import OTHER, UNKNOWN, new_pieces
from streamdp.encode.order import refuse
from streamdp.encode.stop_words import LANGUAGES, mark
from streamdp.encode.text import Tokenizer, TooManyTokens
from streamdp.encode.vocabulary import BagEncoder, Vocabulary, is_nameless, letters_of
from streamdp.kernels.jit import Bound
from streamdp.records import Record, Reject, holds_categories
from streamdp.records.columns import Columns

MOST = 1_000_000
"""How often a record may have a word."""


class WordEncoder(BagEncoder):
    """Texts (or features that are counts) to word counts over a vocabulary.

    Words of count one come first in each record. A ``frozen`` encoder learns no words: unknown ones share the
    first id that no word has (none has postings). ``stop_words`` is a language whose stop words are left out
    of short texts, "auto" for the one that the stream turns out to be in, or "none".
    """

    kind = "texts"

    def __init__(
        self, tokenizer: Tokenizer, vocabulary: Vocabulary, stop_words: str = "none", *, frozen: bool = False
    ) -> None:
        super().__init__(vocabulary, stop_words, forms=tokenizer.stem == "auto", frozen=frozen)
        self.tokenizer, self.forms = tokenizer, Forms(self.stops)
        self._by_piece, self._formed = tokenizer.by_piece, tokenizer.stem == "auto"
        self._marked = self._formed or stop_words != "none"
        self._sure = tokenizer.max_tokens // tokenizer.ngrams // _WIDEST
        """Characters of a text that has not too many tokens, whatever it says."""
        self._strangers: dict[str, int] = {}
        self._pieces, self._bags = new_pieces(0, 0), new_bags(0, 0, 0)
        self._read, self._count = Bound(read), Bound(count)

    def add(self, given: Columns) -> list[tuple[int, Reject]]:
        """Append records to the batch; which of them cannot be clustered, and why."""
        if self._formed and self.vocabulary.lost and not self.frozen:
            self.forms.tidy(self.stops, self._named)
            self.vocabulary.lost = False
        if given.are_texts:  # as nearly always
            return self._add_texts(given)
        refused: list[tuple[int, Reject]] = []
        at = 0
        for kind, alike in itertools.groupby(given, _kind):
            records = list(alike)
            if kind is str:
                found = self._add_texts(Columns.of(records))
            elif kind is dict:
                counted = enumerate(map(self._add_counts, records))
                found = [(i, reject) for i, reject in counted if reject is not None]
            else:
                what = "a vector" if kind is list else "categories"
                detail = f"it holds {what} where this stream holds texts"
                found = [(i, refuse(record, "wrong_kind", detail)) for i, record in enumerate(records)]
            refused += [(at + i, reject) for i, reject in found]
            at += len(records)
        return refused

    # ---------------------------------------------------------------- texts

    def _add_texts(self, texts: Columns) -> list[tuple[int, Reject]]:
        assert texts.values is not None
        refused: dict[int, Reject] = {}
        begin, (letters, ends, *_) = texts.begin, texts.values
        said: list[str] = []
        whole = int(ends[-1]) - begin if len(ends) else 0
        if whole > self._sure and np.diff(ends, prepend=begin).max() > self._sure:
            said = texts.said()
            self._refuse_long(texts, said, refused)
            parts = [*map(letters_of, said)]
            letters, begin = np.frombuffer(b"".join(parts), np.uint8), 0
            ends = np.cumsum([*map(len, parts)], dtype=np.int64)
        if self._by_piece:
            empty = self._add_pieces(letters, begin, ends)
        else:
            empty = self._add_tokens(said or texts.said())
        for i in empty:
            if i not in refused:
                refused[i] = _empty(texts[i])
        return sorted(refused.items()) if refused else []

    def _add_tokens(self, texts: Sequence[str]) -> list[int]:
        """Count the words of texts; which of them have none."""
        rows, ids = np.arange(len(texts) + 1), OTHER - np.arange(len(texts), dtype=np.int32)
        return self._count_words(rows, ids, len(texts), *self._numbered(map(self.tokenizer.tokens, texts)))

    def _refuse_long(self, records: Columns, texts: list[str], refused: dict[int, Reject]) -> None:
        """Refuse texts of too many tokens, and empty them."""
        most = self.tokenizer.max_tokens // self.tokenizer.ngrams
        for i, text in enumerate(texts):
            if len(text) > most or (len(text) > self._sure and not text.isascii()):
                try:
                    self.tokenizer.tokens(text)
                except TooManyTokens as error:
                    refused[i], texts[i] = refuse(records[i], error.reason, str(error)), ""

    def _add_pieces(self, letters: np.ndarray, begin: int, ends: np.ndarray) -> list[int]:
        """Count the words of texts that are those of their pieces; which of them have none."""
        pieces, texts = self._pieces, len(ends)
        if len(pieces.lower) < len(letters) or len(pieces.rows) <= texts:
            self._pieces = pieces = new_pieces(2 * len(letters), 2 * texts)
        bags = self._room_for(len(pieces.ids), texts)
        lasting, seen = (self.vocabulary.spelling, pieces, bags, self.stops), self.stops.seen.copy()
        self._read(lasting, letters, begin, ends, _NONE, _BOUNDS)
        strange = int(pieces.found[0])
        if not strange:
            if self._begin_languages(seen):
                return self._count_words(pieces.rows, pieces.ids, texts, _NONE, _BOUNDS)
            return self._keep(bags, texts)
        places = zip(*pieces.strange[:, :strange].tolist(), strict=True)
        cut, lower, whole = self.tokenizer.of_piece, pieces.lower.data, letters.data
        words = (
            (str(lower[start:stop], "ascii"),) if kind == UNKNOWN else cut(bytes(whole[start:stop]))
            for kind, start, stop in places
        )
        return self._count_words(pieces.rows, pieces.ids, texts, *self._numbered(words))

    def _numbered(self, tokens: Iterable[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
        """The ids of lists of words, -1 where one found no room, and where each list begins and ends."""
        ids, bounds, known = [], [0], self.vocabulary.ids
        for words in tokens:
            for word in words:
                number = known.get(word)
                ids.append(self._new(word) if number is None else number)
            bounds.append(len(ids))
        return np.array(ids, np.int32), np.array(bounds, np.int64)

    def _new(self, word: str) -> int:
        found = self.spelt(word)
        if found is not word and (number := self.vocabulary.ids.get(found)) is not None:
            return number
        if self.frozen:
            number = self.vocabulary.unknown + self._strangers.setdefault(found, len(self._strangers))
        else:
            number = self.vocabulary.add(found)
        if number >= 0:
            self._note(number, found)
        return number

    def _note(self, number: int, word: str) -> None:
        """Note in which languages a new word is a stop word, and what it counts as, where that matters."""
        if not self._marked:
            return
        if number >= len(self.stops.marks):
            self._make_room(number + 1)
        self.stops.marks[number] = mark(word, self.tokenizer.stem)
        if self._formed and (self.frozen or self.forms.languages or not word.isascii()):
            self.forms.note(self.stops, number, word, learns=not self.frozen)

    def _make_room(self, ids: int) -> None:
        """Have room for so many ids in what is known of words."""
        held = self.stops
        if ids > len(held.marks):
            marks, roots = np.zeros(2 * ids + 62, np.int32), unrelated(len(held.roots), 2 * ids + 62)
            marks[: len(held.marks)], roots[:, :, : len(held.marks)] = held.marks, held.roots
            self.stops = held._replace(marks=marks, roots=roots)

    def _begin_languages(self, seen: np.ndarray) -> bool:
        """Begin with languages that texts turned out to be in, if any, and with ``seen`` as it was."""
        wanted = int(self.stops.wanted[0])
        self.stops.wanted[0] = 0
        if self.frozen or not wanted:
            return False
        self.stops.seen[:] = seen
        languages = [i for i in range(len(LANGUAGES)) if wanted >> i & 1]
        self.stops = self.forms.begin(self.stops, languages, self._named)
        return True

    @property
    def _named(self) -> list[str | None]:
        """The words that have their names, by id; None for the others."""
        words, fixed = self.vocabulary.words, self.vocabulary.fixed
        return [None] * fixed + [None if is_nameless(word) else word for word in words[fixed:]]

    def _room_for(self, tokens: int, texts: int) -> Bags:
        """Bags for so many words of so many texts."""
        bags, most = self._bags, len(self.vocabulary.words) + len(self._strangers)
        tokens *= MOST_FORMS if self.forms.languages else 1
        if len(bags.words) < tokens or len(bags.lengths) < texts or len(bags.place) < most:
            self._bags = bags = new_bags(
                max(2 * tokens, len(bags.words)), 2 * texts, max(2 * most, len(bags.place))
            )
        return bags

    def _count_words(
        self, rows: np.ndarray, ids: np.ndarray, texts: int, more: np.ndarray, bounds: np.ndarray
    ) -> list[int]:
        """Count words (see ``count``), and keep them; returns which texts have none."""
        seen = self.stops.seen.copy()
        while True:
            bags = self._room_for(int(rows[texts]) + len(more), texts)
            self._count((bags, self.stops), rows, ids, texts, more, bounds)
            if not self._begin_languages(seen):
                return self._keep(bags, texts)

    def _keep(self, bags: Bags, texts: int) -> list[int]:
        """Keep the words that a kernel has counted; returns which texts have none."""
        kept = int(bags.kept[0])
        n = int(bags.offsets[kept])
        self._held.append((bags.offsets[: kept + 1].copy(), bags.words[:n].copy(), bags.counts[:n].copy()))
        return [] if kept == texts else np.flatnonzero(bags.lengths[:texts] == 0).tolist()

    # ---------------------------------------------------------------- counts

    def _add_counts(self, record: Record) -> Reject | None:
        features: dict[str, float] = record.value  # type: ignore[assignment]
        for name in sorted(features):
            value = features[name]
            if not 0 <= value <= MOST or value != int(value):
                return refuse(
                    record, "wrong_type", f"feature {name!r} is {value!r}, not a count from 0 to {MOST:,}"
                )
        counts: dict[int, int] = {}  # words are added only once nothing can be wrong any more
        for name in sorted(features):
            value = features[name]
            if value == 0:
                continue
            name = self.spelt(name)
            number = self.vocabulary.ids.get(name, -1)
            if number < 0:
                number = self.vocabulary.unknown if self.frozen else self.vocabulary.add(name)
                if not self.frozen and number >= 0:
                    self._note(number, name)
            if number >= 0:
                counts[number] = int(value)
        if not counts:
            return refuse(record, "empty", "all its counts are zero")
        ordered = sorted(counts, key=lambda number: counts[number] > 1)
        numbers = np.array([counts[number] for number in ordered], np.int32)
        self._held.append((np.array([0, len(ordered)]), np.array(ordered, np.int32), numbers))
        return None

    # ---------------------------------------------------------------- what comes of it

    def take(self, times: np.ndarray) -> Batch:
        """The batch, with the event time of each of its records; a new one is begun."""
        batch = super().take(times)
        if self._strangers:
            batch = replace(batch, words=np.minimum(batch.words, np.int32(self.vocabulary.unknown)))
            self._strangers.clear()
        return batch

    def words_in(self, text: str) -> list[str]:
        """The words of a text."""
        return self.tokenizer.tokens(text)

    def _unlearning(self) -> Self:
        return type(self)(self.tokenizer, self.vocabulary, self.stop_words, frozen=True)

    def begin_with(self, other: Self) -> None:
        """Begin a batch with what another encoder knows of languages."""
        super().begin_with(other)
        self.forms = other.forms
        self._strangers.clear()

    def resume(self, languages: Sequence[int], forms: StoredForms | None = None) -> None:
        """Go on with a vocabulary that has words, and with what ``dump`` says of languages and forms."""
        super().resume(languages)
        words = self._named
        self._make_room(len(words))
        for number, word in enumerate(words):
            if word is not None:
                self.stops.marks[number] = mark(word, self.tokenizer.stem)
        if self._formed:
            self.stops = self.forms.resume(self.stops, forms, words)
            self.vocabulary.lost = True  # maybe it was stored before it was tidied

    def dump(self) -> dict[str, Any]:
        """Everything that must be known to encode the next record, as plain values."""
        forms = self.forms.dump(self.stops, self._named) if self._formed else StoredForms()
        known = forms.languages or len(forms.related)
        return super().dump() | ({"forms": forms} if known else {})


_WIDEST = 18
"""Characters that one may become where characters that mean the same are made the same."""

_NONE, _BOUNDS = np.zeros(0, np.int32), np.zeros(1, np.int64)


def _empty(record: Record) -> Reject:
    return refuse(record, "empty", "no words are left of its text")


def _kind(record: Record) -> type | None:
    value = record.value
    kind = type(value)
    return None if kind is dict and holds_categories(value) else kind
