"""Words for people, where a writing without spaces is counted in pairs of characters."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from streamdp.encode.words import HAN, HIRAGANA, fold, fold_case

LONGEST = 8
"""Characters up to which pairs of them are put together."""


def grown(counts: Mapping[str, int], texts: Iterable[str]) -> list[tuple[str, list[str]]]:
    """Pairs of characters as the longest runs of them in some texts, and the words of which each is made.

    A run grows from a word by those that come half as often or more. No single character is one, nor what
    has most of its pairs in one before it.
    """
    found, said = list[tuple[str, list[str]]](), list[str]()
    for word, count in counts.items():
        if not _cut_up(word):
            found.append((word, [word]))
        elif not any(word in run for run, _ in found):
            known = {other for other, n in counts.items() if 2 * n >= count}
            said = said or [fold_case(fold(text)) for text in texts]
            run = max((_run(word, text, known) for text in said if word in text), key=len, default="")
            pairs = [*map("".join, itertools.pairwise(run))]
            told = sum(any(pair in before for before, _ in found) for pair in pairs)
            if len(run) > 1 and 2 * told <= len(pairs):
                found.append((run, [word, *known.intersection(pairs)]))
    return found


def joined(words: Sequence[tuple[str, int]], texts: Iterable[str]) -> list[tuple[str, int]]:
    """Words and how often each comes; a run of pairs as often as the rarest of them."""
    counts = dict(words)
    if not any(map(_cut_up, counts)):
        return [*words]
    return [(run, min(map(counts.__getitem__, of))) for run, of in grown(counts, texts)] or [*words]


_cut_up = re.compile(rf"[{HAN}]{{1,2}}|[{HIRAGANA}]{{1,2}}").fullmatch
_is_han = re.compile(rf"[{HAN}]").match


def _run(word: str, text: str, known: set[str]) -> str:
    """The part of a text around a word that is made of known pairs, and of known characters beside them."""
    first = text.index(word)
    last = first + len(word)
    while first > 0 and last - first < LONGEST and _joined(text, first, known):
        first -= 1
    while last < len(text) and last - first < LONGEST and _joined(text, last, known):
        last += 1
    return text[first:last]


def _joined(text: str, i: int, known: set[str]) -> bool:
    """Whether a character of a text and the one before it are of one run."""
    if text[i - 1 : i + 1] in known:
        return True
    left, right = {text[i - 1], text[max(i - 2, 0) : i]}, {text[i], text[i : i + 2]}
    scripts = bool(_is_han(text[i - 1])) != bool(_is_han(text[i]))
    return scripts and any(map(_cut_up, left & known)) and any(map(_cut_up, right & known))
