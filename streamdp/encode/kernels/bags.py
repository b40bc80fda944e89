"""Texts to word counts, as far as that takes no grammar.

What stands between spaces is a word, in lower case, where it is nothing but letters and digits of ASCII, with
brackets, quotation marks and stops around it; a single letter is none. All else is left to the caller.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamdp.encode.kernels.spelling import Spelling, find
from streamdp.kernels.hashing import mix
from streamdp.kernels.jit import entry, kernel

UNKNOWN, OTHER = -1, -2
"""Instead of ids: a word that has none, a piece that takes a grammar."""

_OTHER, _SPACE, _LETTER, _DIGIT, _AROUND = 0, 1, 2, 3, 4


def _kinds() -> np.ndarray:
    """What kind of character each byte is, as ``str.split`` and the grammar of words have it."""
    kinds = np.full(256, _OTHER, np.uint8)
    for code in range(128):
        sign = chr(code)
        if sign.isspace():
            kinds[code] = _SPACE
        elif sign.isalpha():
            kinds[code] = _LETTER
        elif sign.isdigit():
            kinds[code] = _DIGIT
        elif sign in "\"'()[].,;:!?":
            kinds[code] = _AROUND
    return kinds


_KIND = _kinds()
_LOWER = np.array([ord(chr(code).lower()) if code < 128 else code for code in range(256)], np.uint8)


class Pieces(NamedTuple):
    """What stands between the spaces of texts; a single letter is left out."""

    lower: np.ndarray  # uint8[...] the texts in lower case, as far as ASCII goes
    rows: np.ndarray  # int64[n + 1] where the pieces of each text begin
    ids: np.ndarray  # int32[...] of each piece; OTHER - k where it is a strange one, the k-th
    strange: np.ndarray  # int64[3, ...] kind of each strange piece, and where in the texts it begins and ends
    found: np.ndarray  # int64[1] strange pieces


def new_pieces(letters: int, texts: int) -> Pieces:
    """Room for texts with so many bytes together."""
    most = letters // 2 + texts + 1
    return Pieces(
        np.zeros(letters, np.uint8),
        np.zeros(texts + 1, np.int64),
        np.zeros(most, np.int32),
        np.zeros((3, most), np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def _word(spelling: Spelling, pieces: Pieces, start: int, stop: int) -> int:
    """The id of a piece that is a word by itself; UNKNOWN; OTHER where it takes a grammar."""
    state = spelling.seed[0]
    for i in range(start, stop):
        kind = _KIND[pieces.lower[i]]
        if kind != _LETTER and kind != _DIGIT:
            return OTHER
        state = mix(state, pieces.lower[i])
    return find(spelling, pieces.lower, start, stop, state)


@entry
def look_up(spelling: Spelling, pieces: Pieces, text: np.ndarray, ends: np.ndarray) -> None:
    """Cut texts, which stand one after the other and end at ``ends``, and look the pieces up."""
    n, i, strange = 0, 0, 0
    pieces.rows[0] = 0
    for row in range(ends.shape[0]):
        end = ends[row]
        while i < end:
            if _KIND[text[i]] == _SPACE:
                i += 1
                continue
            begin = i
            while i < end and _KIND[text[i]] != _SPACE:
                pieces.lower[i] = _LOWER[text[i]]
                i += 1
            start, stop = begin, i
            while start < stop and _KIND[text[start]] == _AROUND:
                start += 1
            while start < stop and _KIND[text[stop - 1]] == _AROUND:
                stop -= 1
            if stop - start <= 1 and (stop == start or _KIND[text[start]] == _LETTER):
                continue
            word = _word(spelling, pieces, start, stop)
            if word < 0:
                if word == OTHER:
                    start, stop = begin, i
                pieces.strange[0, strange] = word
                pieces.strange[1, strange], pieces.strange[2, strange] = start, stop
                word = OTHER - strange
                strange += 1
            pieces.ids[n] = word
            n += 1
        pieces.rows[row + 1] = n
    pieces.found[0] = strange


class Bags(NamedTuple):
    """Word counts of texts, those of count one first in each."""

    lengths: np.ndarray  # int64[n] distinct words of each text
    kept: np.ndarray  # int64[1] texts that have any
    offsets: np.ndarray  # int64[n + 1] where the words of each of these begin, and those of the last end
    words: np.ndarray  # int32[...]
    counts: np.ndarray  # int32[...]
    place: np.ndarray  # int32[ids] where a word was last put
    spare: np.ndarray  # int32[2, ...] words and counts of one text, on their way


def new_bags(tokens: int, texts: int, ids: int) -> Bags:
    """Room for texts of so many tokens together, of words with ids below ``ids``."""
    return Bags(
        np.zeros(texts, np.int64),
        np.zeros(1, np.int64),
        np.zeros(texts + 1, np.int64),
        np.zeros(tokens, np.int32),
        np.zeros(tokens, np.int32),
        np.zeros(ids, np.int32),
        np.zeros((2, tokens), np.int32),
    )


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


@entry
def count(
    bags: Bags, rows: np.ndarray, ids: np.ndarray, texts: int, more: np.ndarray, bounds: np.ndarray
) -> None:
    """Count the words of texts.

    A piece of text r is one of ``ids[rows[r]:rows[r + 1]]``: the id of a word; or, as OTHER - k, all the ids
    ``more[bounds[k]:bounds[k + 1]]``, of which -1 is left out.
    """
    n, kept = 0, 0
    for row in range(texts):
        begin, tokens = n, 0
        for i in range(rows[row], rows[row + 1]):
            word = ids[i]
            if word >= 0:
                n = _count(bags, begin, n, word)
                tokens += 1
            else:
                k = OTHER - word
                for j in range(bounds[k], bounds[k + 1]):
                    if more[j] >= 0:
                        n = _count(bags, begin, n, more[j])
                        tokens += 1
        if tokens > n - begin:
            _single_first(bags, begin, n)
        bags.lengths[row] = n - begin
        if n > begin:
            kept += 1
            bags.offsets[kept] = n
    bags.kept[0] = kept
