"""What words count as: forms of one word as the first of them that came, compounds also as their parts.

The stemmer of a word in a script of its own is that of the script. For Latin letters it is that of the
language which the text is in; English is left as it is, since its few forms do less harm than a stemmer. In
languages that write compounds as one word, a known word at its beginning or its end counts too: a
*Bahnstreik* is also a *Streik*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from streamdp.encode.bags import MOST, Stops, unrelated
from streamdp.encode.stop_words import LANGUAGES
from streamdp.encode.text import stems_of
from streamdp.kernels.sound import require

_COMPOUNDING: Final = "german", "dutch", "swedish", "norwegian", "danish"
_STEMMED: Final = *_COMPOUNDING, "french", "spanish", "italian", "portuguese"

_SCRIPTS: Final = (
    (0x370, 0x3FF, "greek"),
    (0x400, 0x52F, "russian"),
    (0x531, 0x587, "armenian"),
    (0x620, 0x64A, "arabic"),
    (0x900, 0x97F, "hindi"),
    (0xB80, 0xBFF, "tamil"),
)
"""The first and the last letter of a script, and the stemmer of its words."""

_SHORTEST: Final = 4
"""Letters of a known word at an end of a compound."""

_REST: Final = 3
"""Letters of a compound beside it."""

NOTHING: Final = np.zeros((0, 2 + MOST), np.int32)


class StoredForms(msgspec.Struct, frozen=True):
    """What is not only itself: row, word, and the words that it counts as, then -1; shape (n, 2 + MOST)."""

    languages: list[str] = []
    related: np.ndarray = msgspec.field(default_factory=lambda: NOTHING)


class Forms:
    """Finds what words of a vocabulary count as, and writes it to the ``roots`` of ``Stops``.

    Their first row is for texts whose words are left as they are, but for those in scripts of their own; the
    next ones are for texts in ``languages``.
    """

    def __init__(self, stops: Stops) -> None:
        self.languages: list[str] = []
        stops.row[[LANGUAGES.index(name) for name in _STEMMED]] = -1
        self._owners: list[dict[str, int]] = [{}]
        """By row, the word that each stem counts as."""

    def note(self, stops: Stops, number: int, word: str, *, learns: bool = True) -> None:
        """Find what a word with an id counts as; where it ``learns``, later ones may count as it."""
        for row in range(len(self._owners)):
            self._note(stops, row, number, word, learns)

    def _note(self, stops: Stops, row: int, number: int, word: str, learns: bool) -> None:
        roots, owners, language = stops.roots[row, :, number], self._owners[row], self._language(row, word)
        roots[:] = -1
        if not language:
            roots[0] = number
            return
        stem = _stem(word, language)
        roots[0] = owners.get(stem, number)
        if learns:
            owners.setdefault(stem, number)
        if language in _COMPOUNDING:
            left_out = 1 << LANGUAGES.index(language)
            parts = [part for part in _parts(stem, owners) if not stops.marks[part] & left_out]
            roots[1 : 1 + len(parts)] = parts

    def _language(self, row: int, word: str) -> str:
        """The language whose stemmer a word has; "" where it is left as it is."""
        if word.isascii():
            return self.languages[row - 1] if row else ""
        letter = ord(word[0])
        script = next((name for first, last, name in _SCRIPTS if first <= letter <= last), "")
        return script or (self.languages[row - 1] if row and letter < 0x250 else "")

    def begin(self, stops: Stops, languages: Iterable[int], words: Sequence[str | None]) -> Stops:
        """Make the rows of languages."""
        for language in languages:
            self.languages.append(LANGUAGES[language])
            self._owners.append({})
            stops.row[language] = row = len(self.languages)
            more = unrelated(1, stops.roots.shape[2])
            stops = stops._replace(roots=np.concatenate([stops.roots, more]))
            for number, word in enumerate(words):
                if word is not None:
                    self._note(stops, row, number, word, True)
        return stops

    def tidy(self, stops: Stops, words: Sequence[str | None]) -> None:
        """Let go of ids that are of no word any more; ``words`` are those that have their names."""
        gone = np.array([word is None for word in words], bool)
        for row, owners in enumerate(self._owners):
            self._owners[row] = {stem: number for stem, number in owners.items() if not gone[number]}
            held = stops.roots[row, :, : len(words)]
            held[:, gone] = unrelated(1, len(words))[0][:, gone]
            lost = ((held >= 0) & gone[held]).any(axis=0) & ~gone
            for number in np.flatnonzero(lost).tolist():
                self._note(stops, row, number, words[number] or "", True)

    def dump(self, stops: Stops, words: Sequence[str | None]) -> StoredForms:
        """What ``resume`` takes; rows in the order of their languages' names."""
        found, ids = [NOTHING], np.array([i for i, word in enumerate(words) if word is not None], np.int64)
        languages = sorted(self.languages)
        for i, row in enumerate([0, *(1 + self.languages.index(name) for name in languages)]):
            own = stops.roots[row][:, ids].T
            related = (own[:, 0] != ids) | (own[:, 1] >= 0)
            part = np.column_stack([np.full(len(ids), i), ids, own])[related]
            found.append(part.astype(np.int32))
        return StoredForms(languages, np.concatenate(found))

    def resume(self, stops: Stops, stored: StoredForms | None, words: Sequence[str | None]) -> Stops:
        """Go on with words and what was stored of them; None: find that anew."""
        if stored is None:
            for number, word in enumerate(words):
                if word is not None:
                    self.note(stops, number, word)
            return stops
        require(set(stored.languages) <= {*_STEMMED}, "forms of a language that has none")
        require(sorted(set(stored.languages)) == stored.languages, "languages in another order")
        stops = self.begin(stops, map(LANGUAGES.index, stored.languages), [])
        related = stored.related
        require(related.dtype == np.int32 and related.shape[1:] == NOTHING.shape[1:], "forms of another type")
        rows, ids, roots = related[:, 0], related[:, 1], related[:, 2:]
        require(bool(((rows >= 0) & (rows <= len(stored.languages))).all()), "forms without a language")
        require(bool(((ids >= 0) & (ids < len(words)) & (roots[:, 0] >= 0)).all()), "forms of no word")
        require(bool(((roots >= -1) & (roots < len(words))).all()), "words that are none count")
        stops.roots[rows, :, ids] = roots
        for row, owners in enumerate(self._owners):
            for number, word in enumerate(words):
                if word is not None and stops.roots[row, 0, number] == number:
                    language = self._language(row, word)
                    if language:
                        owners.setdefault(_stem(word, language), number)
        return stops


def _stem(word: str, language: str) -> str:
    """The stem of a word, or of each of a run of them."""
    stems = stems_of(language)
    return stems[word] if " " not in word else " ".join(map(stems.__getitem__, word.split(" ")))


def _parts(stem: str, owners: dict[str, int]) -> list[int]:
    """The known words at the beginning and at the end of a compound, the longest each."""
    lengths = range(len(stem) - _REST, _SHORTEST - 1, -1)
    first = next((owners[stem[:n]] for n in lengths if stem[:n] in owners), -1)
    last = next((owners[stem[-n:]] for n in lengths if stem[-n:] in owners), -1)
    return [number for number in dict.fromkeys((first, last)) if number >= 0]
