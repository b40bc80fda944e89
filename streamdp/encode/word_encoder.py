"""Texts, or features that are counts, to word counts over a vocabulary."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from msgspec.structs import replace

from streamdp.encode.bags import MOST as MOST_FORMS
from streamdp.encode.bags import Bags, count, new_bags, unrelated
from streamdp.encode.batch import Batch
from streamdp.encode.forms import Forms, StoredForms
from streamdp.encode.order import refuse
from streamdp.encode.stop_words import LANGUAGES, mark
from streamdp.encode.text import Tokenizer, TooManyTokens
from streamdp.encode.vocabulary import BagEncoder, Vocabulary, is_nameless
from streamdp.encode.words import LONGEST_HELD, PIECES_HELD
from streamdp.kernels.jit import Bound
from streamdp.kernels.rows import longer
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
        self._formed = tokenizer.stem == "auto"
        self._marked = self._formed or stop_words != "none"
        self._strangers: dict[str, int] = {}
        self._bags, self._count = new_bags(0, 0, 0), Bound(count)

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
        refused: dict[int, Reject] = {}
        ids, ends = list[int](), list[int]()
        known: Callable[[str], Any] = self.vocabulary.pieces.get
        for i, text in enumerate(texts.said()):
            found = [*map(known, text.split())]
            if None in found or len(found) > self.tokenizer.max_tokens:
                try:
                    found = self._read(text)
                except TooManyTokens as error:
                    refused[i], found = refuse(texts[i], error.reason, str(error)), []
            ids += found
            ends.append(len(ids))
        numbers, bounds = np.array(ids, np.int32), np.array(ends, np.int64)
        if (kept := numbers >= 0).all():
            empty = self._count_words(numbers, bounds)
        else:
            empty = self._count_words(numbers[kept], np.append(0, np.cumsum(kept))[bounds])
        for i in empty:
            if i not in refused:
                refused[i] = refuse(texts[i], "empty", "no words are left of its text")
        return sorted(refused.items()) if refused else []

    def _read(self, text: str) -> list[int]:
        """The ids of a text's words, -1 for those that find no room; its pieces are known from now on."""
        tokens, known, pieces = self.tokenizer.tokens, self.vocabulary.ids, self.vocabulary.pieces
        found = [known[word] if word in known else self._new(word) for word in tokens(text)]
        if self.tokenizer.ngrams == 1:
            if len(pieces) >= PIECES_HELD:
                pieces.clear()
            for piece in set(text.split()).difference(pieces):
                words = tokens(piece)
                if len(piece) <= LONGEST_HELD and len(words) < 2 and all(word in known for word in words):
                    pieces[piece] = known[words[0]] if words else -1
        return found

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
            roots = unrelated(len(held.roots), 2 * ids + 62)
            roots[:, :, : len(held.marks)] = held.roots
            self.stops = held._replace(marks=longer(held.marks, 2 * ids + 62), roots=roots)

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

    def _count_words(self, ids: np.ndarray, ends: np.ndarray) -> list[int]:
        """Count words (see ``count``), and keep them; returns which texts have none."""
        seen = self.stops.seen.copy()
        while True:
            bags = self._room_for(len(ids), len(ends))
            self._count((bags, self.stops), ids, ends)
            if not self._begin_languages(seen):
                return self._keep(bags, len(ends))

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


def _kind(record: Record) -> type | None:
    value = record.value
    kind = type(value)
    return None if kind is dict and holds_categories(value) else kind
