"""The words of a story: its keywords, and how typical of it a record is.

A story's words are told as under interpolated Kneser-Ney, the default family of texts: a discount is taken
from each count, and given to the words that all stories share.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from streamdp.encode.phrases import grown
from streamdp.encode.stop_words import DENYING

DISCOUNT, PULL = 0.5, 30.0
"""Taken from each count of a word; tokens that the shared words weigh. Those of the default family."""

UNSEEN = 0.1
"""What a word counts among the shared words that was never counted there."""

OFTENER = 4.0
"""A keyword is so many times more frequent in the story than elsewhere."""

COMMON = 0.1
"""A word that more than this share of the other stories have is no keyword."""

FEW = 10
"""With fewer other stories it is not asked how many of them have a word."""

KEYWORDS = 6

MOST = 4 * KEYWORDS
"""Words from which keywords are made: several are one where characters are counted in pairs."""


class Bag(NamedTuple):
    """The words of one story, each once: ``words`` by ascending id, and ``counts``, both of shape (T,).

    Those of several stories are one bag where story i has word w as ``i * V + w``, V words in all.
    """

    words: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, words: np.ndarray, counts: np.ndarray) -> Bag:
        """The same in whatever order they come."""
        order = np.argsort(words)
        return cls(words[order], counts[order].astype(np.int64))

    def counts_of(self, words: np.ndarray) -> np.ndarray:
        """How often each of some words comes in the story."""
        if not len(self.words):
            return np.zeros(len(words), np.int64)
        at = np.minimum(np.searchsorted(self.words, words), len(self.words) - 1)
        return np.where(self.words[at] == words, self.counts[at], 0)


class Base(NamedTuple):
    """The words that all stories share: how often each comes there, by id, and the sum with the unseen."""

    counts: np.ndarray
    total: float

    @classmethod
    def of(cls, counts: np.ndarray) -> Base:
        """The same of counts alone."""
        return cls(counts, float(counts.sum() + UNSEEN * max(int(np.count_nonzero(counts)), 1)))


def typicality(
    bag: Bag,
    words: np.ndarray,
    counts: np.ndarray,
    lengths: np.ndarray,
    base: Base,
    stories: np.ndarray | None = None,
) -> np.ndarray:
    """Mean log predictive of a token of each of n records, in nats, under its story without that record.

    Parameters
    ----------
    bag
        The words of the stories, those of the records among them.
    words, counts
        The words of one record after the other, those of each once, and how often it has them.
    lengths
        How many different words each record has, shape (n,).
    base
        What all stories share.
    stories
        Which story of the bag each record is of, shape (n,); None: all of the only one.
    """
    n, width = len(lengths), len(base.counts)
    which = np.zeros(n, np.int64) if stories is None else stories
    owner, story = np.repeat(np.arange(n), lengths), bag.words // width
    length = np.bincount(owner, counts, n)
    left = bag.counts_of(words + width * which[owner]) - counts
    most = int(which.max(initial=0)) + 1
    total = np.maximum(np.bincount(story, bag.counts, most)[which] - length, 0.0)
    kinds = np.bincount(story, minlength=most)[which] - np.bincount(owner, left <= 0, n)
    common = (base.counts[words] + UNSEEN) / base.total
    share = np.maximum(left - DISCOUNT, 0.0) + (PULL + DISCOUNT * kinds)[owner] * common
    logs = np.log(share / (total + PULL)[owner])
    return np.asarray(np.bincount(owner, logs * counts, n) / np.maximum(length, 1.0))


class Elsewhere(NamedTuple):
    """All stories together: tokens and stories that have each word, by id; how many of both there are."""

    counts: np.ndarray
    stories: np.ndarray
    tokens: int
    all: int

    @classmethod
    def of(cls, bags: list[Bag], words: int) -> Elsewhere:
        """The sum of some stories, of words with ids below ``words``."""
        if not bags:
            return cls(np.zeros(words), np.zeros(words), 0, 0)
        ids = np.concatenate([bag.words for bag in bags])
        count = np.bincount(ids, np.concatenate([bag.counts for bag in bags]), words)
        return cls(count, np.bincount(ids, minlength=words), int(count.sum()), len(bags))


def keywords(bag: Bag, elsewhere: Elsewhere, most: int = MOST) -> list[int]:
    """Ids of the words that are far more frequent in a story than in the others, the most telling first.

    The story is one of those ``elsewhere`` counts. Words that many other stories have, such as the function
    words of a language, are left out, and those that a story of several records has only once.
    """
    if not len(bag.words):
        return []
    tokens = int(bag.counts.sum())
    others = elsewhere.counts[bag.words] - bag.counts
    here = bag.counts / tokens
    there = (others + UNSEEN) / (elsewhere.tokens - tokens + 1.0)
    own = here > OFTENER * there
    if elsewhere.all > FEW:
        own &= elsewhere.stories[bag.words] - 1 <= COMMON * (elsewhere.all - 1)
    if bag.counts.max() > 1:
        own &= bag.counts > 1
    telling = bag.counts * np.log(here / there)
    order = np.lexsort((bag.words, -telling))
    found: list[int] = bag.words[order[own[order]]][:most].tolist()
    return found


def phrases(words: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Keywords for people: pairs of characters as runs of them, and no word that denies."""
    found = [run for run, _ in grown(dict.fromkeys(words, 1), texts) if run not in DENYING]
    return found[:KEYWORDS] or [word for word in words if word not in DENYING][:KEYWORDS]
