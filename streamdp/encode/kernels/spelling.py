"""Words by their bytes: a table of those that have ids.

Open addressing, at most half full. The hash is seeded anew in every process, so that nobody can choose words
that all fall on one place; which ids words have does not depend on it.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np

from streamdp.kernels.hashing import mix
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.probing import hash_of, put, take

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
    """Enter words, which stand one after the other in a text; the caller has made sure that there is room."""
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
