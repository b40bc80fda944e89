"""Words to ids: growing, bounded, and giving up words that nothing refers to any more."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import msgspec
import numpy as np

from streamdp.encode.bags import AUTO, leading, new_stops
from streamdp.encode.batch import BagArrays, Batch, join_bags
from streamdp.encode.beside import VectorBeside
from streamdp.encode.forms import StoredForms
from streamdp.encode.stop_words import LANGUAGES
from streamdp.kernels.rows import longer
from streamdp.kernels.sound import require
from streamdp.likelihoods.base import Moments
from streamdp.records import Kind, Reject
from streamdp.records.columns import Columns
from streamdp.settings import Settings

EVICT_EVERY = 4096
"""Records between two looks for words to evict: a rule of the record number, not of the batch."""

FULL = 0.75
"""Share of the bound at which words are evicted."""

LONGEST = 256
"""Bytes of a word; a longer one is cut to its beginning and a hash of all of it."""

_HASH = 16  # bytes

AROUND = 256
"""Bytes that a word counts for beside its letters."""

NAMELESS = "~nameless-"
"""How words begin whose names were struck; no word of a text begins so."""


class Vocabulary(msgspec.Struct, dict=True, eq=False):
    """Ids for at most ``limit`` words of at most ``room`` bytes together.

    Ids of evicted words are used again, but for those below ``fixed``, which are never evicted. ``dropped``
    counts words that found no room, ``cut`` those that were too long as they came. It is stored as it is.
    """

    limit: int
    room: int = 1 << 40
    fixed: int = 0
    words: list[str | None] = []
    free: list[int] = []
    last_seen: np.ndarray = msgspec.field(default_factory=lambda: np.zeros(0, np.int64))
    dropped: int = 0
    evicted: int = 0
    cut: int = 0

    def __post_init__(self) -> None:
        self.ids: dict[str, int] = {word: i for i, word in enumerate(self.words) if word is not None}
        letters = [len(letters_of(word)) for word in self.ids]
        self.size = sum(letters) + AROUND * len(letters)
        """Bytes that all words count for."""
        if len(self.last_seen) < len(self.words):
            self.last_seen = longer(self.last_seen, len(self.words))
        self.pieces: dict[str, int] = {}
        """The word of what stands between spaces, by id, where it is one; -1 where it is none."""
        self.lost = False
        """Whether words have lost their ids, or their names, since this was set to False."""
        require(0 < self.limit <= 1 << 20, "the words' limit is out of range")
        gone = [i for i, word in enumerate(self.words) if word is None]
        require(len(self.ids) == len(self.words) - len(gone) <= self.limit, "a word comes twice")
        require(sorted(self.free) == gone, "the free words are others")
        require(self.size <= self.room, "the words are too long")
        require(max(letters, default=0) <= LONGEST, "a word is too long")
        require(self.last_seen.dtype == np.int64 and self.last_seen.ndim == 1, "records of another type")
        for count in (self.fixed, self.dropped, self.evicted, self.cut):
            require(0 <= count < 1 << 62, "a count of words is out of range")

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def unknown(self) -> int:
        """The id that unknown words share where none is learned: the first that no word has."""
        return len(self.words)

    def add(self, word: str) -> int:
        """The id of a word that has none yet, or -1 where the vocabulary is full."""
        size = len(letters_of(word)) + AROUND
        if len(self.ids) >= self.limit or self.size + size > self.room:
            self.dropped += 1
            return -1
        self.size += size
        if self.free:
            number = self.free.pop()
            self.words[number] = word
        else:
            number = len(self.words)
            self.words.append(word)
            if number >= len(self.last_seen):
                self.last_seen = longer(self.last_seen, max(64, 2 * number))
        self.ids[word] = number
        return number

    def touch(self, batch: Batch, first: int) -> np.ndarray:
        """Note the words of records from number ``first`` on; returns their ``sizes``."""
        self.last_seen[batch.words] = first + batch.rows  # of a word that comes again, the last one
        return batch.sizes

    def wants_eviction(self) -> bool:
        """Whether the vocabulary is so full that room should be made."""
        return len(self.ids) > FULL * self.limit or self.size > FULL * self.room

    def evict(self, held: np.ndarray, before: int) -> np.ndarray:
        """Give up the words that no cluster holds and no record from ``before`` on contains.

        Parameters
        ----------
        held
            Whether a live cluster holds word i; shape (at least len(words),).
        before
            Record number; words last seen earlier may go.

        Returns
        -------
        The ids given up.
        """
        count = len(self.words)
        known = np.array([word is not None for word in self.words], bool)
        known[: self.fixed] = False
        gone = np.flatnonzero(known & ~held[:count] & (self.last_seen[:count] < before))
        for number in gone[::-1].tolist():
            word = self.words[number]
            assert word is not None
            del self.ids[word]
            self.size -= len(letters_of(word)) + AROUND
            self.words[number] = None
            self.free.append(number)
        self.evicted += len(gone)
        self._lose(len(gone))
        return gone

    def strike(self, numbers: Iterable[int]) -> list[str]:
        """Forget what these words are; they stay what was counted. Returns them."""
        gone = [number for number in numbers if number >= self.fixed and self.words[number] is not None]
        gone = [number for number in gone if not is_nameless(self.words[number])]
        found = []
        for number in gone:
            word, name = str(self.words[number]), f"{NAMELESS}{number}"
            del self.ids[word]
            self.size += len(name) - len(letters_of(word))
            self.words[number], self.ids[name] = name, number
            found.append(word)
        self._lose(len(found))
        return found

    def _lose(self, words: int) -> None:
        """So many words have lost their ids, or their names."""
        if words:
            self.lost = True
            self.pieces.clear()

    def counters(self) -> dict[str, int]:
        """Counts for metrics."""
        return {
            "words": len(self),
            "words_dropped": self.dropped,
            "words_evicted": self.evicted,
            "words_cut": self.cut,
        }


def letters_of(text: str) -> bytes:
    """A text as kernels read it."""
    return text.encode("utf-8", "surrogatepass")


def is_nameless(word: str | None) -> bool:
    """Whether it is not known any more what this word is."""
    return word is not None and word.startswith(NAMELESS)


def short(word: str, longest: int = LONGEST) -> str:
    """A word of at most so many bytes: of a longer one its beginning and a hash of all of it."""
    if 4 * len(word) <= longest or len(letters := letters_of(word)) <= longest:
        return word
    head = letters[: longest - 1 - 2 * _HASH].decode("utf-8", "ignore")
    return f"{head}~{hashlib.blake2b(letters, digest_size=_HASH).hexdigest()}"


class BagEncoder(ABC):
    """Records to counts over a vocabulary.

    A ``frozen`` encoder learns no words: unknown ones share the first id that no word has, nor any posting.
    """

    sparse: ClassVar[bool] = True
    kind: ClassVar[Kind]
    """What its records are."""

    def __init__(
        self, vocabulary: Vocabulary, stop_words: str, *, forms: bool = False, frozen: bool = False
    ) -> None:
        self.vocabulary = vocabulary
        self.frozen = frozen
        self.stop_words, self.stops = stop_words, new_stops(stop_words, learns=not frozen, forms=forms)
        self._held: list[BagArrays] = []
        self._scorer: Self | None = None
        self.beside: VectorBeside | None = None
        """The vectors of the records, where they have any."""

    @property
    def language(self) -> str | None:
        """The language whose stop words short texts leave out by now; None where none are."""
        bits = int(self.stops.asked[0])
        language = leading.py_func(self.stops) if bits == AUTO else bits.bit_length() - 1  # type: ignore[attr-defined]
        return LANGUAGES[language] if language >= 0 else None

    def grammar(self) -> np.ndarray:
        """Which words are stop words of a language that texts of the stream were in, shape (words,)."""
        seen, words = self.stops.seen[:-1], len(self.vocabulary.words)
        bits = int((1 << np.flatnonzero(20 * seen > seen.max())).sum()) if seen.any() else 0
        found = np.zeros(words, bool)
        marks = self.stops.marks[:words]
        found[: len(marks)] = marks & bits != 0
        return found

    @property
    def languages(self) -> list[int]:
        """How many words the stream has had so far, then how many stop words of each language."""
        *languages, words = self.stops.seen.tolist()
        return [words, *languages]

    def number_of(self, word: str) -> int:
        """The id of a word as it came, a new one where words are learned; -1 where there is no room."""
        word = self.spelt(word)
        number = self.vocabulary.ids.get(word)
        if number is None:
            number = self.vocabulary.unknown if self.frozen else self.vocabulary.add(word)
        return number

    def resume(self, languages: Sequence[int], forms: StoredForms | None = None) -> None:
        """Go on with what ``dump`` says of languages; those that it does not know yet have had no words."""
        if languages:
            self.stops.seen[-1] = languages[0]
            self.stops.seen[: len(languages) - 1] = languages[1:]

    @property
    def waits(self) -> bool:
        """Whether records wait until :meth:`learn` is called."""
        return False

    @property
    def knows_all(self) -> bool:
        """Whether no more records need to wait, however many were to be waited for."""
        return False

    def recognise(self, settings: Settings) -> bool:
        """Whether the records that have come say what these settings leave open: never."""
        return False

    def meant(self, settings: Settings) -> Settings:
        """The settings with the likelihood that is meant for such records, where only they say that."""
        return settings

    def check(self, moments: Moments | None) -> None:
        """Raise UnsoundError unless it is sound, and goes with the moments of vectors."""
        require(self.beside is not None or moments is None, "words with moments")

    @abstractmethod
    def words_in(self, text: str) -> list[str]:
        """The words of a record that reads so."""

    def learn(self) -> Moments | None:
        """Take from the records that have come what must be known before any can be encoded: nothing."""
        return None

    @abstractmethod
    def add(self, given: Columns) -> list[tuple[int, Reject]]:
        """Append records to the batch; which of them cannot be clustered, and why."""

    def take(self, times: np.ndarray) -> Batch:
        """The batch, with the event time of each of its records; a new one is begun."""
        held, self._held = self._held, []
        offsets, words, counts = held[0] if len(held) == 1 else join_bags(held)
        vectors = None if self.beside is None else self.beside.take(learns=not self.frozen)
        return Batch(offsets, words, counts, vectors, times)

    def spelt(self, word: str) -> str:
        """A word that has no id as it came, as the vocabulary has it: cut, and counted, if it is too long."""
        found = short(word)
        if found is not word and not self.frozen:
            self.vocabulary.cut += 1
        return found

    def for_scoring(self) -> Self:
        """An encoder that knows the same and learns nothing, with an empty batch; the same each time."""
        if self._scorer is None:
            self._scorer = self._unlearning()
            self._scorer.beside = None if self.beside is None else self.beside.for_scoring()
        self._scorer.begin_with(self)
        return self._scorer

    @abstractmethod
    def _unlearning(self) -> Self:
        """An encoder that knows the same words and learns none."""

    def begin_with(self, other: Self) -> None:
        """Begin a batch with what another encoder knows of languages."""
        self._held, known = [], other.stops
        if self.beside is not None:
            self.beside.clear()
        own = {name: getattr(known, name).copy() for name in ("marks", "seen", "row", "roots")}
        self.stops = self.stops._replace(**own)

    def sizes(self, batch: Batch) -> np.ndarray:
        """By how many parts the novelty of each record is divided, shape (n,): its tokens."""
        return self.parts(batch, batch.sizes)

    def absorbed(self, batch: Batch, first: int) -> np.ndarray:
        """A beam absorbs these records from number ``first`` on; returns their :meth:`sizes`."""
        return self.parts(batch, self.vocabulary.touch(batch, first))

    def parts(self, batch: Batch, tokens: np.ndarray) -> np.ndarray:
        """The :meth:`sizes` of records with so many tokens."""
        return tokens

    @property
    def words(self) -> Sequence[str | None] | None:
        """The word of each id."""
        return self.vocabulary.words

    def dump(self) -> dict[str, Any]:
        """Everything that must be known to encode the next record, as plain values."""
        vocabulary = self.vocabulary
        vocabulary.last_seen = vocabulary.last_seen[: len(vocabulary.words)]
        stored = {"kind": self.kind, "vocabulary": vocabulary, "languages": self.languages}
        return stored if self.beside is None else {**stored, "centre": self.beside.centre}
