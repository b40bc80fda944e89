"""Texts to word counts, as far as that takes no grammar, and the table of words that have ids.

What is between spaces is a word, in lower case, where it is nothing but letters and digits of ASCII, with
brackets, quotation marks, stops and dashes around it; a single letter is none. So are numbers with points,
abbreviations, words before 's, and the words of a compound, as the grammar has them. All else is left to the
caller. The table has open addressing, and is at most half full. The hash is seeded anew in every process, so
that nobody can choose words that all fall on one place; which ids words have does not depend on it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from streamdp.kernels.hashing import hash_of, mix, put, take
from streamdp.kernels.jit import entry, kernel

_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)


class Spelling(NamedTuple):
    """How words with ids are spelt."""

    seed: np.ndarray  # uint64[1] what the hash of no letters is
    table: np.ndarray  # int32[power of two] id, -1 empty
    hashes: np.ndarray  # uint64[ids]
    start: np.ndarray  # int64[ids] where the letters of a word are; -1 where no word has the id
    length: np.ndarray  # int32[ids]
    letters: np.ndarray  # uint8[...]
    used: np.ndarray  # int64[2] letters in use, and of those, letters of words that are gone


def new_spelling(ids: int, letters: int) -> Spelling:
    """No words, and room for so many (a power of two)."""
    return Spelling(
        np.frombuffer(os.urandom(8), np.uint64).copy(),
        np.full(2 * ids, -1, np.int32),
        np.zeros(ids, np.uint64),
        np.full(ids, -1, np.int64),
        np.zeros(ids, np.int32),
        np.zeros(letters, np.uint8),
        np.zeros(2, np.int64),
    )


@kernel
def _code(state: np.uint64) -> np.int64:
    """A hash whose upper half is well mixed, in its lower bits."""
    mixed = state * _SPREAD
    return np.int64(mixed >> _HIGH)


@hash_of.of(Spelling)
def _hash_of(spelling: Spelling, word: int) -> np.int64:
    return _code(spelling.hashes[word])


@kernel
def find(spelling: Spelling, text: np.ndarray, start: int, stop: int, state: np.uint64) -> int:
    """The id of a word whose hash is known; -1 where it has none."""
    mask = spelling.table.shape[0] - 1
    i = _code(state) & mask
    while True:
        word = spelling.table[i]
        if word < 0:
            return -1
        if spelling.hashes[word] == state and spelling.length[word] == stop - start:
            begin, same = spelling.start[word], True
            for j in range(stop - start):
                if spelling.letters[begin + j] != text[start + j]:
                    same = False
                    break
            if same:
                found: int = word
                return found
        i = (i + 1) & mask


@entry
def enter(spelling: Spelling, text: np.ndarray, ends: np.ndarray, ids: np.ndarray) -> None:
    """Enter words, which follow each other in a text; the caller has made sure that there is room."""
    begin = 0
    for k in range(ids.shape[0]):
        end, word, state = ends[k], ids[k], spelling.seed[0]
        at = spelling.used[0]
        for j in range(begin, end):
            state = mix(state, text[j])
            spelling.letters[at + j - begin] = text[j]
        spelling.start[word], spelling.length[word] = at, end - begin
        spelling.hashes[word] = state
        spelling.used[0] += end - begin
        put(spelling, word)
        begin = end


@entry
def strike(spelling: Spelling, ids: np.ndarray) -> None:
    """Take words out."""
    for k in range(ids.shape[0]):
        word = ids[k]
        take(spelling, word)
        spelling.used[1] += spelling.length[word]
        spelling.start[word], spelling.length[word] = -1, 0


@entry
def copy_words(old: Spelling, new: Spelling) -> None:
    """Enter all words of one table into another, an empty one with room for them."""
    new.seed[0] = old.seed[0]
    at = 0
    for word in range(old.start.shape[0]):
        begin, length = old.start[word], old.length[word]
        if begin < 0:
            continue
        for j in range(length):
            new.letters[at + j] = old.letters[begin + j]
        new.start[word], new.length[word], new.hashes[word] = at, length, old.hashes[word]
        at += length
        put(new, word)
    new.used[0] = at


UNKNOWN, OTHER = -1, -2
"""Instead of ids: a word that has none, a piece that takes a grammar."""

_OTHER, _SPACE, _LETTER, _DIGIT, _AROUND = 0, 1, 2, 3, 4
_DOT, _DASH, _APOSTROPHE, _SLASH, _COMMA, _COLON = (ord(sign) for sign in ".-'/,:")
_E, _N, _S, _T, _W = (ord(letter) for letter in "enstw")


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
        elif sign in "\"'()[]<>.,;:!?-":
            kinds[code] = _AROUND
    return kinds


_KIND = _kinds()
_LOWER = np.array([ord(chr(code).lower()) if code < 128 else code for code in range(256)], np.uint8)


class Pieces(NamedTuple):
    """What is between the spaces of texts; a single letter is left out."""

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
def _joins(text: np.ndarray, lower: np.ndarray, i: int) -> bool:
    """Whether a sign within a piece holds a number, or an abbreviation, together."""
    sign, before, after = text[i], _KIND[text[i - 1]], _KIND[text[i + 1]]
    if before == _DIGIT and after == _DIGIT:
        return bool(sign in (_DOT, _COMMA, _COLON, _SLASH, _DASH))
    if sign != _DOT or before != _LETTER or after != _LETTER:
        return False
    if lower[i - 1] == _W or lower[i + 1] == _W:  # it may be a link
        return False
    return bool(text[i - 1] != lower[i - 1] or text[i + 1] == lower[i + 1])  # else a sentence ends there


@kernel
def _word(spelling: Spelling, pieces: Pieces, text: np.ndarray, start: int, stop: int) -> int:
    """The id of a piece that is a word by itself; UNKNOWN; OTHER where it takes a grammar."""
    state, numbers, dotted = spelling.seed[0], False, False
    for i in range(start, stop):
        kind = _KIND[text[i]]
        if kind != _LETTER and kind != _DIGIT:
            if i == start or i == stop - 1 or not _joins(text, pieces.lower, i):
                return OTHER
            if _KIND[text[i - 1]] == _DIGIT:
                numbers = True
            else:
                dotted = True
            if numbers and dotted:
                return OTHER
        state = mix(state, pieces.lower[i])
    return find(spelling, pieces.lower, start, stop, state)


@kernel
def _is_special(lower: np.ndarray, first: int, start: int, stop: int, end: int) -> bool:
    """Whether a piece, less the signs around it, may be .net, or a link."""
    if stop - start < 3:
        return False
    a, b, c = lower[start], lower[start + 1], lower[start + 2]
    if a == _W and b == _W and c == _W:
        return start + 3 < end and _KIND[lower[start + 3]] != _LETTER and _KIND[lower[start + 3]] != _DIGIT
    return start > first and lower[start - 1] == _DOT and a == _N and b == _E and c == _T


@kernel
def _end_of_part(text: np.ndarray, start: int, stop: int) -> int:
    """Where the next dash of a piece is, or its end."""
    i = start
    while i < stop and text[i] != _DASH:
        i += 1
    return i


@kernel
def _is_compound(text: np.ndarray, start: int, stop: int) -> bool:
    """Whether dashes stand between words of letters and digits: no single letter, and no dash in a number."""
    while start < stop:
        end = _end_of_part(text, start, stop)
        for i in range(start, end):
            if _KIND[text[i]] != _LETTER and _KIND[text[i]] != _DIGIT:
                return False
        if end - start < 2 and (end == start or _KIND[text[start]] == _LETTER):
            return False
        if end < stop - 1 and _KIND[text[end - 1]] == _DIGIT and _KIND[text[end + 1]] == _DIGIT:
            return False
        start = end + 1
    return True


@kernel
def _note(pieces: Pieces, n: int, word: int, start: int, stop: int) -> None:
    """Note what the n-th piece is: an id, or UNKNOWN or OTHER, which make it a strange one."""
    if word < 0:
        strange = pieces.found[0]
        pieces.strange[0, strange] = word
        pieces.strange[1, strange], pieces.strange[2, strange] = start, stop
        pieces.found[0] = strange + 1
        word = OTHER - strange
    pieces.ids[n] = word


@kernel
def look_up(spelling: Spelling, pieces: Pieces, text: np.ndarray, begin: int, ends: np.ndarray) -> None:
    """Cut texts, which follow each other from ``begin`` on and end at ``ends``, and look the pieces up."""
    n, i = 0, begin
    pieces.rows[0] = pieces.found[0] = 0
    for row in range(ends.shape[0]):
        end = ends[row]
        while i < end:
            if _KIND[text[i]] == _SPACE:
                i += 1
                continue
            first = i
            while i < end and _KIND[text[i]] != _SPACE:
                pieces.lower[i] = _LOWER[text[i]]
                i += 1
            start, stop = first, i
            while start < stop and _KIND[text[start]] == _AROUND:
                start += 1
            while start < stop and _KIND[text[stop - 1]] == _AROUND:
                stop -= 1
            if stop - start <= 1 and (stop == start or _KIND[text[start]] == _LETTER):
                continue
            if stop - start > 3 and text[stop - 2] == _APOSTROPHE and pieces.lower[stop - 1] == _S:
                stop -= 2
            special = _is_special(pieces.lower, first, start, stop, i)
            word = OTHER if special else _word(spelling, pieces, text, start, stop)
            if word != OTHER:
                _note(pieces, n, word, start, stop)
                n += 1
            elif not special and _is_compound(text, start, stop):
                while start < stop:
                    between = _end_of_part(text, start, stop)
                    _note(pieces, n, _word(spelling, pieces, text, start, between), start, between)
                    n += 1
                    start = between + 1
            else:
                _note(pieces, n, OTHER, first, i)
                n += 1
        pieces.rows[row + 1] = n
