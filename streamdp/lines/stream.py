"""A stream of lines: bytes in, answers and merges out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from streamdp.kernels.jit import Bound
from streamdp.kernels.rows import made, new_counters, new_rows, row_type
from streamdp.lines.base import USUAL, Bounds, Terms
from streamdp.lines.closed_places import Rule, closing_of
from streamdp.lines.facts import follow
from streamdp.lines.forget import forget, retire
from streamdp.lines.history import History
from streamdp.lines.masks import NO_MASKS, Masks
from streamdp.lines.scan import MOST
from streamdp.lines.state import Lines, Scratch, State, new_state, with_room_for
from streamdp.lines.step import CHANGED, FULL, GROW, PAST, advance, score
from streamdp.lines.values import NO_LEVELS, Levels

STEP = 512
"""Tokens that room is made for beside those that need it."""

ANSWER = row_type("label cluster founded", "probability new_probability log_predictive")


NO_LABELS, NONE = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)


class Stretch(NamedTuple):
    """Answers to some lines: a row for each, and its number of tokens.

    Row by row, ``changes`` are labels that the last of the lines made one with an older one; ``changed`` says
    whether it changed a template at all. ``retired`` are labels that nothing joins any more.
    """

    answers: np.ndarray  # ANSWER[n]
    sizes: np.ndarray  # int64[n]
    changes: np.ndarray  # int64[m, 2]
    changed: bool
    retired: np.ndarray = NO_LABELS  # int64[r]


class LineStream:
    """Templates of a stream of lines.

    Parameters
    ----------
    terms
        The model's weights.
    state
        What is known before the first line; None: nothing.
    bounds
        What is remembered at most.
    masks
        What is written as a hole of its own before lines are folded.
    split
        Classes of tokens that tell templates apart wherever they stand (see ``closing.CLASSES``).

    Examples
    --------
    >>> stream = LineStream(Terms())
    >>> parts = stream.take(["session opened for user root", "session opened for user root"])
    >>> [label for part in parts for label in part.answers["label"].tolist()]
    [0, 0]
    """

    def __init__(
        self,
        terms: Terms,
        state: State | None = None,
        bounds: Bounds = USUAL,
        masks: Masks = NO_MASKS,
        split: Sequence[str] = (),
    ) -> None:
        self.terms, self.bounds, self.masks = terms._replace(masks=len(masks.named)), bounds, masks
        self.state = new_state() if state is None else state
        self.history = History()
        """What the lines were like hour by hour."""
        self.split = split
        """Classes of tokens that are closed."""
        self._scratch: Scratch | None = None
        self._closing = closing_of(split, ())
        self._advance, self._score = Bound(advance), Bound(score)

    @property
    def records(self) -> int:
        """Lines taken so far."""
        return int(self.state.counters.records)

    @property
    def log_evidence(self) -> float:
        """The sum of log p(line | lines before), in nats."""
        return float(self.state.counters.evidence)

    def close(self, rules: Sequence[Rule]) -> None:
        """From the next line on, let these rules close places of lines."""
        self._closing, self._scratch = closing_of(self.split, rules), None

    def counters(self) -> dict[str, int]:
        """Counts for metrics and summaries."""
        counters = self.state.counters
        return {
            "clusters_live": int(counters.alive),
            "clusters_created": int(counters.clusters),
            "clusters_merged": int(counters.merged),
            "lines_distinct": int(counters.lines),
            "lines_forgotten": int(counters.forgotten),
            "clusters_closed": int(counters.retired),
            "clusters_retired": int(counters.retired),
        }

    def take(self, lines: Sequence[str], times: np.ndarray | None = None) -> Iterator[Stretch]:
        """The same as :meth:`take_bytes` of texts."""
        return self.take_bytes(*bytes_of(lines), times)

    def take_bytes(
        self,
        data: np.ndarray,
        offsets: np.ndarray,
        times: np.ndarray | None = None,
        levels: Levels = NO_LEVELS,
        *,
        dated: bool = True,
    ) -> Iterator[Stretch]:
        """Learn lines, and answer each as it stood when it came; ``times`` in seconds, shape (n,).

        ``data`` are their bytes in UTF-8; each begins at its place in ``offsets``, shape (n + 1,), and ends
        where the next begins. ``dated`` says of the first line of all whether the times are its own. A part
        ends with each line that changes a template: until the next is asked for, the state is what that line
        left.
        """
        n, dated = len(offsets) - 1, dated and times is not None
        times = np.zeros(n) if times is None else np.array(times, float)
        scratch = self._make_room(0, offsets)
        rows, changes = new_rows(n, ANSWER), np.zeros((64, 2), np.int64)
        masked = self.masks.over(data, offsets)
        sizes, counters, done = np.zeros(n, np.int64), new_counters(Lines), 0
        given = Lines(data, masked, offsets, times, rows, sizes, *levels, changes, counters)
        if n:
            self.history.begin(dated=dated)
        while done < n:
            most = int(self.state.counters.clusters) + 1
            if len(given.changes) < most:
                given = given._replace(changes=np.zeros((2 * most, 2), np.int64))
            self._advance((self.state, scratch, self.terms, given, self.history.seen), self.bounds)
            if counters.status == PAST:
                self.history.make_room(self.state)
                continue
            if counters.status == GROW:
                scratch = self._make_room(int(counters.need), offsets)
                continue
            part = slice(done, int(counters.done))
            done = part.stop
            changes = given.changes[: int(counters.changes)].copy()
            counters.changes = 0
            if part.stop > part.start:
                yield Stretch(
                    given.answers[part], given.sizes[part], changes, bool(counters.status == CHANGED)
                )
            if counters.status == FULL:
                retired = self._forget()
                if len(retired):
                    yield Stretch(given.answers[:0], given.sizes[:0], NONE, changed=False, retired=retired)
        if n:
            self.history.note(given)

    def _forget(self) -> np.ndarray:
        """Forget where bounds are reached; the labels that are retired."""
        retired, (lines, templates) = NO_LABELS, self.bounds
        if self.state.counters.alive >= templates:
            self.state, retired = retire(self.state, templates)
        self.state = follow(forget(self.state, lines, self.terms.line_discount))
        return retired

    def score(self, lines: Sequence[str]) -> Stretch:
        """Answer lines without learning; the label is -1 where a new template is likelier than any."""
        data, offsets = bytes_of(lines)
        n = len(lines)
        scratch = self._make_room(int(np.diff(offsets).max(initial=0)), offsets)
        answers, sizes = new_rows(n, ANSWER), np.zeros(n, np.int64)
        masked = self.masks.over(data, offsets)
        self._score((self.state, scratch, self.terms), data, masked, offsets, answers, sizes)
        return Stretch(answers, sizes, NONE, changed=False)

    def _make_room(self, tokens: int, offsets: np.ndarray) -> Scratch:
        """Room for some more lines, of so many tokens or bytes in all, and to look at those given."""
        if tokens or self._scratch is None:
            self.state = with_room_for(self.state, tokens + STEP)
        state, longest = self.state, int(np.diff(offsets).max(initial=0))
        held, clusters, wide = self._scratch, len(state.clusters), 4 if self._closing.any else 2
        values = len(state.values) + clusters
        if (
            held is None
            or len(held.folded) <= wide * longest
            or len(held.near) < clusters
            or len(held.token) < values
        ):
            sizes = {"longest": max(4096, wide * longest) + 1, "clusters": clusters, "values": values}
            sizes |= {"marks": 2 * MOST if self._closing.any else 0}
            self._scratch = held = made(Scratch, sizes, closing=self._closing)
        return held


def bytes_of(lines: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """UTF-8 one behind the other, and where each begins; what is no text at all is written as ?."""
    parts = [line.encode("utf-8", "replace") for line in lines]
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([len(part) for part in parts], out=offsets[1:])
    return np.frombuffer(b"".join(parts), np.uint8), offsets
