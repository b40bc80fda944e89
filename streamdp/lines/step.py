"""The kernel that a stream of lines spends its time in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.lines.base import (
    Bounds,
    Terms,
    found_token,
    hold,
    is_value,
    token_of,
    valued,
    wordy,
)
from streamdp.lines.closed_places import close_places
from streamdp.lines.forget import is_full
from streamdp.lines.merge import best_merge, current, unite, values_of
from streamdp.lines.relate import enter, label_of, one_label, relate
from streamdp.lines.scan import fold_line, token_end
from streamdp.lines.search import choose, find_near, new_line
from streamdp.lines.slots import add_token, new_slot
from streamdp.lines.state import Lines, Scratch, State, has_room, look_up, put
from streamdp.lines.values import Seen, count_values, is_ready

COMPLETE, GROW, CHANGED, FULL, PAST = range(5)


@kernel
def _fold(
    scratch: Scratch, data: np.ndarray, masked: np.ndarray, start: int, stop: int
) -> tuple[int, int, int]:
    """Fold a line into ``scratch``, with the places that are closed as they are: see ``fold_line``."""
    size, key, n = fold_line(masked, start, stop, scratch.folded, scratch.glued, scratch.marks)
    if scratch.marks.shape[0]:
        marks, spans, room = scratch.marks, scratch.spans, scratch.room
        size, own = close_places(scratch.closing, data, stop, scratch.folded, size, marks, spans, room)
        key = own if own >= 0 else key
    return size, key, n


@kernel
def _read_tokens(state: State, scratch: Scratch, size: int, learn: bool, terms: Terms) -> tuple[int, int]:
    """The tokens of the folded line into ``scratch``; how many there are, and words."""
    n, words, at = 0, 0, 0
    while at < size:
        if scratch.folded[at] == 32:
            at += 1
            continue
        end = token_end(scratch.folded, at, size)
        token = token_of(state, scratch.folded, at, end, learn, terms)
        scratch.line[n] = token
        words += 1 if wordy(state, token) else 0
        n += 1
        at = end
    return n, words


@kernel
def _answer_known(state: State, line: int, row: Any, terms: Terms) -> int:
    """Answer a line that is in a template's cache; what else might have it is left out."""
    known = state.lines[line]
    cluster = current(state, known.cluster)
    known.cluster = cluster
    of = state.clusters[cluster]
    share = (of.size - terms.discount) / (state.counters.records + terms.concentration)
    row.label = label_of(state, cluster)
    row.cluster = cluster
    row.founded = 0
    row.probability = 1.0
    row.new_probability = 0.0
    row.log_predictive = math.log(
        share * (known.count - terms.line_discount) / (of.size + terms.line_strength)
    )
    return cluster


@kernel
def _answer(state: State, best: int, out: np.ndarray, row: Any, terms: Terms) -> None:
    """Answer a line that has been weighed."""
    row.probability = math.exp(out[1] - out[0])
    row.new_probability = math.exp(out[2] - out[0])
    row.log_predictive = out[0] - math.log(state.counters.records + terms.concentration)
    row.founded = 1 if best < 0 else 0


@kernel
def _found(state: State, scratch: Scratch, n: int, log_p0: float) -> int:
    """A new template of the line at hand."""
    counters, cluster = state.counters, state.counters.clusters
    row = state.clusters[cluster]
    row.slot = counters.slots
    row.length = n
    row.size = 0
    row.types = 0
    row.alive = 1
    row.into = cluster
    row.older = cluster
    row.first = counters.records
    row.founded = log_p0
    row.repeats = 0.0
    row.forgotten = 0.0
    row.first_time = math.inf
    row.last_time = -math.inf
    for i in range(n):
        new_slot(state, row.slot + i, scratch.line[i], scratch.glued[i], scratch.law[i])
        found_token(state, scratch.line[i])
        known = is_value(state, scratch.line[i]) or not wordy(state, scratch.line[i])
        if not known and valued(state, scratch.line, i, n):
            hold(state, scratch.line[i])
    counters.clusters += 1
    counters.slots += n
    counters.alive += 1
    state.alike[n] += 1
    enter(state, cluster)
    return int(cluster)


@kernel
def _join(state: State, scratch: Scratch, cluster: int, n: int, terms: Terms) -> bool:
    """Count a line that is new to a template in its slots; whether a constant became a hole."""
    row, broken = state.clusters[cluster], False
    for i in range(n):
        slot = state.slots[row.slot + i]
        broken = broken or (slot.distinct == 1 and slot.founder != scratch.line[i])
        add_token(state, row.slot + i, row.types, scratch.line[i], terms)
    return broken


@kernel
def _weigh(state: State, scratch: Scratch, n: int, words: int, terms: Terms) -> tuple[int, float]:
    """The template that the line at hand joins, or -1; log p0."""
    near = find_near(state, scratch, scratch.line, n, words)
    log_p0 = new_line(state, scratch, near, n, terms)
    return choose(state, scratch, near, log_p0, terms, scratch.weighed), log_p0


@kernel
def _learn(state: State, scratch: Scratch, key: int, n: int, words: int, row: Any, terms: Terms) -> int:
    """Let a line never seen join a template or found one; which it is."""
    best, log_p0 = _weigh(state, scratch, n, words, terms)
    _answer(state, best, scratch.weighed, row, terms)
    cluster = best
    if best < 0:
        cluster = _found(state, scratch, n, log_p0)
        due = True
    else:
        due = _join(state, scratch, cluster, n, terms)
    state.clusters[cluster].types += 1
    line = state.counters.lines
    state.counters.lines += 1
    put(state.by_line, key, line)
    state.lines[line].code = key
    state.lines[line].cluster = cluster
    state.lines[line].count = 0
    row.label = label_of(state, cluster)
    row.cluster = cluster
    if due:
        state.counters.due = cluster
    return cluster


@kernel
def _look_again(state: State, scratch: Scratch, row: Any, terms: Terms, lines: Lines) -> bool:
    """Merge the template that is due as long as that is better; whether there was room for it.

    The line that changed it is answered with the label of afterwards: a new one only if it stays.
    """
    while True:
        cluster = state.counters.due
        count = best_merge(state, scratch, cluster, terms)
        if count == 0:
            break
        need = values_of(state, scratch.best, count)
        if state.counters.values + need > state.values.shape[0] or not has_room(state.by_value, 2 * need):
            lines.counters.need = need
            return False
        target = unite(state, scratch, scratch.best, count, terms)
        for k in range(1, count):
            one_label(state, scratch.best[k], target, lines)
        state.counters.due = target
    relate(state, state.counters.due, lines)
    state.counters.due = -1
    row.label = label_of(state, row.cluster)
    if row.label != row.cluster:
        row.founded = 0
    return True


@kernel
def _has_room(state: State, n: int, size: int) -> bool:
    """Whether a line of so many tokens and bytes finds room, whatever becomes of it."""
    counters = state.counters
    return (
        counters.text + size <= state.text.shape[0]
        and counters.tokens + n <= state.tokens.shape[0]
        and counters.clusters < state.clusters.shape[0]
        and counters.slots + n <= state.slots.shape[0]
        and counters.values + 2 * n <= state.values.shape[0]
        and counters.lines < state.lines.shape[0]
        and counters.lists + n + 3 <= state.lists.shape[0]
        and counters.posts + n + 3 <= state.posts.shape[0]
        and has_room(state.by_text, n)
        and has_room(state.by_value, 4 * n)
        and has_room(state.by_line, 1)
        and has_room(state.by_place, n + 3)
    )


@kernel
def _stop(lines: Lines, done: int, status: int) -> None:
    """Say how far it went, and why it stops."""
    lines.counters.done = done
    lines.counters.status = status


@entry
def advance(
    state: State,
    scratch: Scratch,
    terms: Terms,
    lines: Lines,
    seen: Seen,
    bounds: Bounds,
) -> None:
    """Absorb lines from the next one on: to a line that changes a template, to a bound, or to the end.

    Each is counted in ``seen``, as it left the state, or first some of that must go or find room (PAST).
    ``bounds`` say what may be known before some of it is to be forgotten.
    """
    offsets, times, sizes = lines.offsets, lines.times, lines.sizes
    i = lines.counters.done
    while i < offsets.shape[0] - 1:
        if state.counters.due < 0:
            if not is_ready(state, seen, times[i] if seen.counters.dated else float(state.counters.records)):
                _stop(lines, i, PAST)
                return
            size, key, n = _fold(scratch, lines.data, lines.masked, offsets[i], offsets[i + 1])
            sizes[i] = n
            row = lines.answers[i]
            line = look_up(state.by_line, key)
            if line < 0 and is_full(state, bounds):
                _stop(lines, i, FULL)
                return
            if line < 0 and not _has_room(state, n, size):
                lines.counters.need = max(n, size)
                _stop(lines, i, GROW)
                return
            if line >= 0:
                cluster = _answer_known(state, line, row, terms)
            else:
                n, words = _read_tokens(state, scratch, size, True, terms)
                cluster = _learn(state, scratch, key, n, words, row, terms)
                line = state.counters.lines - 1
            of = state.clusters[cluster]
            if state.lines[line].count > 0:
                of.repeats += math.log(state.lines[line].count - terms.line_discount)
            state.lines[line].count += 1
            of.size += 1
            of.last = state.counters.records
            state.lines[line].last = of.last
            of.first_time = min(of.first_time, times[i])
            of.last_time = max(of.last_time, times[i])
            state.counters.evidence += row.log_predictive
            state.counters.records += 1
        if state.counters.due >= 0:
            if not _look_again(state, scratch, lines.answers[i], terms, lines):
                _stop(lines, i, GROW)
                return
            count_values(state, seen, scratch, lines, i)
            _stop(lines, i + 1, CHANGED)
            return
        count_values(state, seen, scratch, lines, i)
        i += 1
    _stop(lines, i, COMPLETE)


@entry
def score(
    state: State,
    scratch: Scratch,
    terms: Terms,
    data: np.ndarray,
    masked: np.ndarray,
    offsets: np.ndarray,
    answers: np.ndarray,
    sizes: np.ndarray,
) -> None:
    """Answer lines without learning anything; the label is -1 where a new template is likelier than any."""
    for i in range(offsets.shape[0] - 1):
        size, key, n = _fold(scratch, data, masked, offsets[i], offsets[i + 1])
        sizes[i] = n
        row = answers[i]
        line = look_up(state.by_line, key)
        if line >= 0:
            _answer_known(state, line, row, terms)
            continue
        tokens, text = state.counters.tokens, state.counters.text
        n, words = _read_tokens(state, scratch, size, False, terms)
        best, _ = _weigh(state, scratch, n, words, terms)
        _answer(state, best, scratch.weighed, row, terms)
        row.label = label_of(state, best) if best >= 0 else -1
        row.cluster = best
        state.counters.tokens = tokens
        state.counters.text = text
