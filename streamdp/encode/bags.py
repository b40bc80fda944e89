"""Word counts of texts, from the ids of their words, without the words of grammar that are left out.

The language of a text is the one that most of its stop words are of. The stream's language, of most texts so
far, goes before another that has as many, and is that of texts without any. A language of Latin letters must
have had a share of the stream: words of English are stop words elsewhere ("die", "man").
"""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

import numpy as np

from streamdp.encode.stop_words import LANGUAGES, OWN_SCRIPT
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import ints, made, of

AUTO: Final = -1
"""In the place of the languages whose stop words are left out: the one that the stream seems to be in."""

LONG: Final = 50
"""Words of a text that keeps all of them: they are many enough for what it is about to outweigh the rest."""

_SEEN: Final = 10
"""Stop words that a stream must have had before its language is known."""

_SHARE: Final = 20
"""At least one word in so many is a stop word where texts are sentences, or headlines."""

_TOKENS: Final = len(LANGUAGES)

MOST: Final = 3
"""Words that a word counts as: its form, and the parts at the two ends of a compound."""


class Stops(NamedTuple):
    """Which words are stop words, what all words count as, and what the stream has had of languages."""

    marks: Annotated[np.ndarray, of(np.int32, "ids")]  # in which languages each is a stop word, a bit each
    seen: Annotated[np.ndarray, ints(_TOKENS + 1)]  # stop words so far in texts of each language; all words
    asked: np.ndarray  # int32[3] bits of languages to leave out, or AUTO; whether to count on; forms count
    hits: Annotated[np.ndarray, ints(_TOKENS)]  # stop words of the text at hand
    row: Annotated[np.ndarray, of(np.int32, _TOKENS)]  # of ``roots`` for texts of each; -1: still to be made
    roots: np.ndarray  # int32[rows, MOST, ids] words that each counts as, then -1
    wanted: Annotated[np.ndarray, ints(1)]  # bits of languages whose rows of ``roots`` are to be made


def new_stops(language: str, *, learns: bool, forms: bool = False) -> Stops:
    """No words yet; ``language`` is one of ``LANGUAGES``, "auto" or "none"."""
    bits = {"auto": AUTO, "none": 0}.get(language)
    if bits is None:
        bits = 1 << LANGUAGES.index(language)
    asked = np.array([bits, learns, forms], np.int32)
    return made(Stops, {"ids": 64}, asked=asked, roots=unrelated(1, 64))


def unrelated(rows: int, ids: int) -> np.ndarray:
    """What words count as where each is only itself, shape (rows, MOST, ids)."""
    found = np.full((rows, MOST, ids), -1, np.int32)
    found[:, 0] = np.arange(ids)
    return found


class Bags(NamedTuple):
    """Word counts of texts, those of count one first in each."""

    lengths: Annotated[np.ndarray, ints("texts")]  # distinct words of each text
    kept: Annotated[np.ndarray, ints(1)]  # texts that have any
    offsets: Annotated[np.ndarray, ints("bounds")]  # where the words of each of these begin, and the last end
    words: Annotated[np.ndarray, of(np.int32, "tokens")]
    counts: Annotated[np.ndarray, of(np.int32, "tokens")]
    place: Annotated[np.ndarray, of(np.int32, "ids")]  # where a word was last put
    spare: Annotated[np.ndarray, of(np.int32, 2, "tokens")]  # words and counts of one text, on their way


def new_bags(tokens: int, texts: int, ids: int) -> Bags:
    """Room for texts of so many tokens together, of words with ids below ``ids``."""
    return made(Bags, {"tokens": tokens, "texts": texts, "bounds": texts + 1, "ids": ids})


@kernel
def _count(bags: Bags, begin: int, n: int, word: int) -> int:
    """Count a word of the text whose bag begins there; where the bag ends now."""
    p = bags.place[word]
    if begin <= p < n and bags.words[p] == word:
        bags.counts[p] += 1
        return n
    bags.place[word] = n
    bags.words[n], bags.counts[n] = word, 1
    return n + 1


@kernel
def _single_first(bags: Bags, begin: int, n: int) -> None:
    """Put the words of count one before the others, each in the order that they have."""
    several, at = 0, begin
    for p in range(begin, n):
        word, count = bags.words[p], bags.counts[p]
        if count == 1:
            bags.words[at], bags.counts[at] = word, count
            at += 1
        else:
            bags.spare[0, several], bags.spare[1, several] = word, count
            several += 1
    for k in range(several):
        bags.words[at + k], bags.counts[at + k] = bags.spare[0, k], bags.spare[1, k]


@kernel
def leading(stops: Stops) -> int:
    """The language of the stream; -1 before it is known."""
    lead = 0  # np.argmax would have a start import numba's linear algebra, and SciPy
    for language in range(1, _TOKENS):
        lead = language if stops.seen[language] > stops.seen[lead] else lead
    known = stops.seen[lead] >= _SEEN and _SHARE * stops.seen[lead] >= stops.seen[_TOKENS]
    return lead if known else -1


@kernel
def _is_present(stops: Stops, language: int, lead: int) -> bool:
    """Whether a text may be in a language that is not the stream's."""
    seen, most = stops.seen[language], stops.seen[max(lead, 0)]
    return bool(language >= OWN_SCRIPT or (lead >= 0 and seen >= _SEEN and _SHARE * seen >= most))


@kernel
def _language(stops: Stops, words: np.ndarray, n: int) -> int:
    """The language of a text of these n words, which is counted; -1 where it is not known."""
    if stops.asked[0] == 0 and not stops.asked[2]:
        return -1
    stops.hits[:] = 0
    for i in range(n):
        marked = stops.marks[words[i]]
        if marked:
            for language in range(_TOKENS):
                stops.hits[language] += (marked >> language) & 1
    most = 0
    for language in range(_TOKENS):
        most = max(most, stops.hits[language])
    if stops.asked[1]:
        for language in range(_TOKENS):
            if stops.hits[language] == most:
                stops.seen[language] += most
        stops.seen[_TOKENS] += n
    for language in range(_TOKENS):
        if stops.asked[0] == 1 << language:
            return language
    lead = leading(stops)
    if most == 0 or (lead >= 0 and stops.hits[lead] == most):
        return lead
    own = -1
    for language in range(_TOKENS):
        if stops.hits[language] == most and _is_present(stops, language, lead):
            own = language if own < 0 or stops.seen[language] > stops.seen[own] else own
    return lead if own < 0 else own


@kernel
def _left_out(stops: Stops, language: int, n: int) -> int:
    """Bits of the languages whose stop words a text of n words in a language leaves out."""
    asked: int = stops.asked[0]
    if n > LONG or (asked == AUTO and language < 0):
        return 0
    return 1 << language if asked == AUTO else asked


@entry
def leave_out(stops: Stops, words: np.ndarray, found: np.ndarray) -> None:
    """Write which languages' stop words a text of these words leaves out, and count them."""
    n = words.shape[0]
    found[0] = _left_out(stops, _language(stops, words, n), n)


@kernel
def _count_root(bags: Bags, stops: Stops, begin: int, n: int, word: int, row: int) -> tuple[int, int]:
    """Count what a word of a text counts as; where the bag ends now, and how many words that was."""
    if not stops.asked[2]:
        return _count(bags, begin, n, word), 1
    for k in range(MOST):
        root = stops.roots[row, k, word]
        if root < 0:
            return n, k
        n = _count(bags, begin, n, root)
    return n, MOST


@entry
def count(bags: Bags, stops: Stops, ids: np.ndarray, ends: np.ndarray) -> None:
    """Count the words of texts, but for stop words; one that has no others keeps them.

    Text i has the words ``ids[ends[i - 1]:ends[i]]``.
    """
    n, kept, first = 0, 0, 0
    for row in range(ends.shape[0]):
        begin, tokens, words = n, 0, ids[first : ends[row]]
        found, first = words.shape[0], ends[row]
        language = _language(stops, words, found)
        out, forms = _left_out(stops, language, found), 0
        if stops.asked[2] and language >= 0:
            forms = stops.row[language]
            if forms < 0:
                stops.wanted[0] |= 1 << language
                forms = 0
        for again in range(2):
            if n == begin:  # the second time there is nothing but stop words
                for i in range(found):
                    if again or out == 0 or not stops.marks[words[i]] & out:
                        end = _count_root(bags, stops, begin, n, words[i], forms)
                        n, tokens = end[0], tokens + end[1]
        if tokens > n - begin:
            _single_first(bags, begin, n)
        bags.lengths[row] = n - begin
        if n > begin:
            kept += 1
            bags.offsets[kept] = n
    bags.kept[0] = kept
