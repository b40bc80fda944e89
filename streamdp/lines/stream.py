"""A stream of lines: bytes in, answers and merges out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamdp.kernels.rows import new_rows, row_type
from streamdp.lines.model import Terms
from streamdp.lines.state import (
    ALIVE,
    CLUSTERS,
    LINES,
    MERGED,
    RECORDS,
    Scratch,
    State,
    dump,
    grown,
    load,
    new_scratch,
    new_state,
)
from streamdp.lines.step import CHANGES, COMPLETE, NEED, STATUS, advance, score

STEP = 512
"""Tokens that room is made for beside those that need it."""

ANSWER = row_type("label founded", "probability new_probability log_predictive")


class Told(NamedTuple):
    """What some lines came to.

    ``answers`` has a row for each, ``sizes`` its tokens. Row by row, ``changes`` are labels that became one
    with an older one, ``causes`` the line that was the cause.
    """

    answers: np.ndarray  # ANSWER[n]
    sizes: np.ndarray  # int64[n]
    changes: np.ndarray  # int64[m, 2]
    causes: np.ndarray  # int64[m]


class LineStream:
    """Templates of a stream of lines.

    Examples
    --------
    >>> stream = LineStream(Terms())
    >>> told = stream.take(["session opened for user root", "session opened for user root"])
    >>> told.answers["label"].tolist()
    [0, 0]
    """

    def __init__(self, terms: Terms, state: State | None = None) -> None:
        self.terms = terms
        self.state = new_state() if state is None else state
        self.log_evidence = 0.0
        self._scratch: Scratch | None = None

    @property
    def records(self) -> int:
        """Lines taken so far."""
        return int(self.state.counts[RECORDS])

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        counts = self.state.counts
        return {
            "clusters_live": int(counts[ALIVE]),
            "clusters_created": int(counts[CLUSTERS]),
            "clusters_merged": int(counts[MERGED]),
            "lines_distinct": int(counts[LINES]),
        }

    def take(self, lines: Sequence[str], times: np.ndarray | None = None) -> Told:
        """Learn lines, and answer each as it stood when it came; ``times`` in seconds, shape (n,)."""
        data, offsets = _bytes_of(lines)
        return self.take_bytes(data, offsets, np.zeros(len(lines)) if times is None else times)

    def take_bytes(self, data: np.ndarray, offsets: np.ndarray, times: np.ndarray) -> Told:
        """The same of UTF-8 one behind the other; line i is ``data[offsets[i]:offsets[i + 1]]``."""
        n = len(offsets) - 1
        scratch = self._make_room(0, offsets)
        answers, sizes = new_rows(n, ANSWER), np.zeros(n, np.int64)
        known = int(self.state.counts[CLUSTERS]) + n
        changes, causes = np.zeros((known, 2), np.int64), np.zeros(known, np.int64)
        meta = np.zeros(4, np.int64)
        while True:
            advance(
                self.state,
                scratch,
                self.terms,
                data,
                offsets,
                times,
                answers,
                sizes,
                changes,
                causes,
                meta,
            )
            if meta[STATUS] == COMPLETE:
                break
            scratch = self._make_room(int(meta[NEED]), offsets)
        told = int(meta[CHANGES])
        self.log_evidence += float(answers["log_predictive"].sum())
        return Told(answers, sizes, changes[:told], causes[:told])

    def score(self, lines: Sequence[str]) -> Told:
        """Answer lines without learning; the label is -1 where a new template is likelier than any."""
        data, offsets = _bytes_of(lines)
        n = len(lines)
        scratch = self._make_room(int(np.diff(offsets).max(initial=0)), offsets)
        answers, sizes = new_rows(n, ANSWER), np.zeros(n, np.int64)
        score(self.state, scratch, self.terms, data, offsets, answers, sizes)
        return Told(answers, sizes, np.zeros((0, 2), np.int64), np.zeros(0, np.int64))

    def _make_room(self, tokens: int, offsets: np.ndarray) -> Scratch:
        """Room for some more lines, of so many tokens or bytes in all, and to look at those given."""
        if tokens or self._scratch is None:
            self.state = grown(self.state, tokens + STEP)
        state, longest = self.state, int(np.diff(offsets).max(initial=0))
        held, clusters = self._scratch, len(state.clusters)
        values = len(state.values) + clusters
        if (
            held is None
            or len(held.folded) <= 2 * longest
            or len(held.near) < clusters
            or len(held.token) < values
        ):
            self._scratch = held = new_scratch(max(4096, 2 * longest), clusters, values)
        return held

    def dump(self) -> dict[str, np.ndarray]:
        """All state, as arrays by name."""
        return dump(self.state) | {"log_evidence": np.array([self.log_evidence])}

    @classmethod
    def load(cls, terms: Terms, stored: dict[str, np.ndarray]) -> LineStream:
        """The inverse of :meth:`dump`."""
        made = cls(terms, load(stored))
        made.log_evidence = float(stored["log_evidence"][0])
        return made


def _bytes_of(lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """UTF-8 one behind the other, and where each begins; what is no text at all is written as ?."""
    parts = [line.encode("utf-8", "replace") for line in lines]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets
