"""Masks: what a user's expressions match in a line is a hole of its own kind, before anything is folded.

What is matched is written as a byte that is in no text, one for each name, and filled up with another: so a
masked line is as long as the line, and what stands where is known of both. An expression has no more than
GAP bytes in vain: that is what a line costs at most, for each of its bytes and each mask.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.lines.automaton import FILLED, MASKED, automaton_of

GAP = 1024
"""Bytes read beyond the last match after which it is the longest."""

MOST_NAMES = FILLED - MASKED

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")


class Tables(NamedTuple):
    """The automata of all masks (see :class:`~streamdp.lines.automaton.Automaton`)."""

    kinds: np.ndarray  # uint8[masks] what a match is written as
    classes: np.ndarray  # int64[masks, 256]
    edges: np.ndarray  # int64[masks] the class of the edge
    starts: np.ndarray  # int64[masks, most classes + 1]
    begins: np.ndarray  # bool[masks, 256] whether a match may begin with a byte
    first: np.ndarray  # int64[masks] where in ``table`` its rows begin
    table: np.ndarray  # int64[...] row by row
    behind: np.ndarray  # int64[masks + 1] where in ``before`` the bytes before a match begin
    before: np.ndarray  # bool[..., 256] which they may be


class Masks:
    """Expressions by name, in their order: each is looked for in what those before it have left.

    Raises ValueError for one that cannot be used.

    Examples
    --------
    >>> masks = Masks(["REQ=req-[0-9a-f]+"])
    >>> masks.named, masks.text(b"took req-3f of 2")
    (('<REQ>',), b'took \\xf5\\xff\\xff\\xff\\xff\\xff of 2')
    """

    def __init__(self, written: Sequence[str] = ()) -> None:
        found = [_parted(each) for each in written]
        names = tuple(dict.fromkeys(name for name, _ in found))
        if len(names) > MOST_NAMES:
            raise ValueError(f"names: there are {len(names)} names, and {MOST_NAMES} at most")
        self.named = tuple(f"<{name}>" for name in names)
        """What each byte from MASKED on is shown as."""
        self._tables = _tables(found, names) if found else None

    def over(self, data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """The bytes of lines, each beginning at its place in ``offsets``, with what is masked."""
        if self._tables is None or not len(data):
            return data
        found, left = data.copy(), data.copy()
        mask_lines(self._tables, left, found, offsets)
        return found

    def text(self, line: bytes) -> bytes:
        """The same of one line."""
        if self._tables is None:
            return line
        return self.over(np.frombuffer(line, np.uint8), np.array([0, len(line)])).tobytes()


def _parted(written: str) -> tuple[str, str]:
    """Name and expression of a mask."""
    name, sign, expression = written.partition("=")
    if not sign or not _NAME.fullmatch(name):
        raise ValueError(f"{written[:40]!r}: write NAME=REGEX, with a name of letters, digits, dots, dashes")
    return name, expression


def _tables(found: Sequence[tuple[str, str]], names: Sequence[str]) -> Tables:
    made = []
    for name, expression in found:
        try:
            made.append(automaton_of(expression))
        except ValueError as error:
            raise ValueError(f"{name}: {expression[:60]!r} {error}") from None
    widest = max(len(each.starts) for each in made)
    sizes = np.array([each.table.size for each in made])
    return Tables(
        np.array([MASKED + names.index(name) for name, _ in found], np.uint8),
        np.stack([each.classes for each in made]),
        np.array([len(each.starts) - 1 for each in made]),
        np.stack([np.pad(each.starts, (0, widest - len(each.starts))) for each in made]),
        np.stack([(each.table[each.starts][:, each.classes] > 1).any(axis=0) for each in made]),
        np.cumsum(sizes) - sizes,
        np.concatenate([each.table.ravel() for each in made]),
        np.cumsum([0, *(len(each.before) for each in made)]),
        np.concatenate([each.before for each in made]),
    )


NO_MASKS = Masks()


@kernel
def _end_of(masks: Tables, which: int, data: np.ndarray, start: int, i: int, stop: int) -> int:
    """Where a match from a place of a line on ends; -1 where there is none."""
    edge, first, last = masks.edges[which], masks.first[which], masks.behind[which + 1]
    if i - start < last - masks.behind[which]:
        return -1
    for k in range(masks.behind[which], last):
        if not masks.before[k, data[i + k - last]]:
            return -1
    before = masks.classes[which, data[i - 1]] if i > start else edge
    state, end, at = masks.starts[which, before], -1, i
    while True:
        byte = masks.classes[which, data[at]] if at < stop else edge
        found = masks.table[first + state * (edge + 1) + byte]
        if found & 1:
            end = at
        state = (found >> 1) - 1
        if state < 0 or at - max(end, i) >= GAP:
            return end
        at += 1


@entry
def mask_lines(masks: Tables, left: np.ndarray, found: np.ndarray, offsets: np.ndarray) -> None:
    """Write what masks match as their bytes; ``left`` is what the masks before have left."""
    for n in range(offsets.shape[0] - 1):
        start, stop = offsets[n], offsets[n + 1]
        for which in range(masks.kinds.shape[0]):
            i, some = start, False
            while i < stop:
                end = _end_of(masks, which, left, start, i, stop) if masks.begins[which, left[i]] else -1
                if end <= i:
                    i += 1
                    continue
                found[i] = masks.kinds[which]
                for k in range(i + 1, end):
                    found[k] = FILLED
                i, some = end, True
            if some:
                for k in range(start, stop):
                    left[k] = found[k]
