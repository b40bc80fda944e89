"""Let go of what lines say, in what is known of templates: values and constants that no other line has.

Their letters are written over; the hashes by which they are known again stay, and so do counts.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from streamdp.lines.history import History
from streamdp.lines.shown import Marker, Part, pieces_of, template_of
from streamdp.lines.state import State
from streamdp.lines.values import LETTERS
from streamdp.lines.words import ALNUM, KINDS

WORD = 4
"""Letters of a token by which a template is known to be of such a line."""

_MASK = np.array([ord("x") if byte > 127 or KINDS[byte] & ALNUM else byte for byte in range(256)], np.uint8)
"""What is written over each byte: delimiters stay."""


def forget(
    state: State,
    history: History,
    pieces: dict[int, list[str]],
    texts: Collection[str],
    most: int,
) -> tuple[list[str], list[str]]:
    """Let go of lines that read so, ``most`` of them; ``pieces`` are those of templates.

    Returns templates as they were shown, and words, that none but these lines have.
    """
    marker, alone, spans, gone = Marker(), set[str](), set[bytes](), list[str]()
    for text in texts:
        line = text.encode("utf-8", "replace")
        parts, shown = marker.parts(line), pieces_of(text, marker)
        own = _strike_tokens(state, [_folded(line, part) for part in parts], most)
        alone.update(piece.strip() for piece, struck in zip(shown, own, strict=True) if struck)
        if any(own):  # as its template was shown when the line was new
            gone.append("".join(shown))
        ends = [(part.begin, part.end) for part in parts] + [fold for part in parts for fold in part.folds]
        spans.update(line[begin:end][:LETTERS] for begin, end in ends)
    _strike_values(history, spans)
    for cluster, held in pieces.items():
        left = [_masked(piece) if piece.strip() in alone else piece for piece in held]
        before = template_of(state, cluster, held)
        if template_of(state, cluster, left) != before:
            gone.append(before)
        pieces[cluster] = left
    return gone, [token for token in sorted(alone) if len(token) >= WORD and token.isalpha()]


def _folded(line: bytes, part: Part) -> bytes:
    """A token as the state has it: what is folded is one 0."""
    found, at = b"", part.begin
    for begin, end in part.folds:
        found += line[at:begin] + b"0"
        at = end
    return found + line[at : part.end]


def _strike_tokens(state: State, own: list[bytes], most: int) -> list[bool]:
    """Write over those tokens of a line that no more than so many lines have; which those are."""
    tokens, number = state.tokens, dict[bytes, int]()
    for i in range(int(state.counters.tokens)):
        start, length = int(tokens[i]["start"]), int(tokens[i]["length"])
        number[bytes(state.text[start : start + length])] = i
    clusters = state.clusters[: int(state.counters.clusters)]
    shared = set[int]()
    for row in clusters[(clusters["alive"] == 1) & (clusters["size"] > most)]:
        slots = state.slots[int(row["slot"]) : int(row["slot"] + row["length"])]
        shared.update(slots["founder"][slots["distinct"] == 1].tolist())
    values, found = state.values[: int(state.counters.values)], []
    for letters in own:
        token = number.get(letters)
        alone = token not in shared and values["count"][values["token"] == token].sum() <= most
        if token is not None and alone:
            span = slice(int(tokens[token]["start"]), int(tokens[token]["start"] + tokens[token]["length"]))
            state.text[span] = _MASK[state.text[span]]
        found.append(token is not None and bool(alone))
    return found


def _strike_values(history: History, spans: set[bytes]) -> None:
    """Write over values of holes that only one line is known to have had."""
    seen = history.seen
    for hole in range(int(seen.counters.holes)):
        for k in range(int(seen.holes[hole]["used"])):
            letters = seen.letters[hole, k, : seen.lengths[hole, k]]
            if bytes(letters) in spans and seen.counts[hole, k] - seen.excess[hole, k] <= 1:
                letters[:] = _MASK[letters]


def _masked(piece: str) -> str:
    return "".join("x" if c.isalnum() else c for c in piece)
