"""A bound on memory: lines that came least lately, and the rarest values of holes, are forgotten.

Templates stay, with the mass of what they forget: a line or a value that comes again is a new one. The
model goes on to be a distribution, as that mass is the share of what is not remembered.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.lines.base import DIGIT, KIND_OF, LETTERS, NO_TOKEN, SLOT_SHIFT, of_class
from streamdp.lines.model import Bounds
from streamdp.lines.state import NUMBER, State, kept, roots
from streamdp.lines.tables import Table, filled, pairs_of

FEW = 3
"""Values that every hole keeps: with fewer, one of words would be taken for two templates."""


@kernel
def is_full(state: State, bounds: Bounds) -> bool:
    """Whether before another line some of what is known is to be forgotten."""
    counters, most = state.counters, bounds.lines
    full = counters.lines >= most or counters.values >= max(most, 2 * counters.kept)
    return bool(full or counters.alive >= bounds.templates)


def forget(state: State, most: int, line_discount: float) -> State:
    """The state with half of ``most`` lines, and as many values but for those that holes keep anyway."""
    if state.counters.lines >= most:
        state = _forget_lines(state, most // 2, line_discount)
    if state.counters.values >= max(most, 2 * state.counters.kept):
        state = forget_tokens(forget_values(state, most // 2))
        state.counters.kept = state.counters.values
    return state


def _forget_lines(state: State, keep: int, line_discount: float) -> State:
    """Keep the lines that came last; their templates keep the mass of the others."""
    counters, clusters = state.counters, state.clusters
    known = state.lines[: counters.lines]
    lasting = np.zeros(len(known), bool)
    lasting[np.argsort(known["last"])[len(known) - keep :]] = True
    gone = known[~lasting]
    root = roots(clusters["into"][: counters.clusters])
    np.add.at(clusters["forgotten"], root[gone["cluster"]], gone["count"] - line_discount)
    counters.forgotten += len(gone)
    return keep_lines(state, lasting)


def keep_lines(state: State, lasting: np.ndarray) -> State:
    """Only the lines that last."""
    state.counters.lines = np.count_nonzero(lasting)
    return state._replace(lines=kept(state.lines, lasting), by_line=renumbered(state.by_line, lasting))


def renumbered(table: Table, lasting: np.ndarray) -> Table:
    """A table, of the same size, of those of its values that last, with the numbers that these have now."""
    keys, values = pairs_of(table)
    held = lasting[values]
    return filled(table, keys[held], (np.cumsum(lasting) - 1)[values[held]])


def forget_values(state: State, keep: int) -> State:
    """Keep the founder's and the commonest values of holes, the newest where they are alike."""
    counters, slots = state.counters, state.slots[: state.counters.slots]
    values, living = state.values[: counters.values], living_slots(state)
    keys, held = pairs_of(state.by_value)
    of_classes = of_class(keys)
    own, at = keys[~of_classes], held[~of_classes]
    slot_of = np.zeros(len(values), np.int64)
    slot_of[at] = own >> SLOT_SHIFT
    lasting = _lasting(state, slot_of, living, keep)

    slots["first"][~living] = -1
    slots["distinct"][~living] = 1
    gone = living[slot_of] & ~lasting
    np.subtract.at(slots["distinct"], slot_of[gone], 1)
    np.add.at(slots["forgotten"], slot_of[gone], values["count"][gone])
    classes, alike = keys[of_classes], held[of_classes].copy()
    shown = state.tokens["shown"][values["token"][gone]]
    fewer, by = np.unique((slot_of[gone] << SLOT_SHIFT) | (NO_TOKEN - shown), return_counts=True)
    alike[np.searchsorted(classes, fewer)] -= by
    stay, last = living[classes >> SLOT_SHIFT] & (alike > 0), lasting[at]

    counters.values = np.count_nonzero(lasting)
    values = kept(state.values, lasting)
    chain(values, slot_of[lasting], slots)
    by_value = filled(
        state.by_value,
        np.concatenate((own[last], classes[stay])),
        np.concatenate(((np.cumsum(lasting) - 1)[at[last]], alike[stay])),
    )
    return state._replace(values=values, by_value=by_value)


def _lasting(state: State, slot_of: np.ndarray, living: np.ndarray, keep: int) -> np.ndarray:
    """Which values stay: the commonest; of each hole the founder's and those that say how it is shown."""
    values = state.values[: len(slot_of)]
    number, shown = np.arange(len(values)), state.tokens["shown"][values["token"]]
    lasting: np.ndarray = values["token"] == state.slots["founder"][slot_of]
    wordy = (shown & LETTERS != 0) & (shown & DIGIT == 0)
    telling = np.where(wordy, 2, KIND_OF[shown] != NUMBER)
    order = np.lexsort((-number, -values["count"], -telling, slot_of))
    begins = np.flatnonzero(np.diff(slot_of[order], prepend=-1))
    rank = number - np.repeat(begins, np.diff(begins, append=len(values)))
    lasting[order[rank < FEW]] = True
    order = np.lexsort((-number, -values["count"], ~living[slot_of]))
    lasting[order[:keep]] = True
    lasting &= living[slot_of]
    return lasting


def living_slots(state: State) -> np.ndarray:
    """Whether each slot is of a template that lives."""
    clusters = state.clusters[: state.counters.clusters]
    clusters = clusters[clusters["alive"] == 1]
    ends = np.zeros(int(state.counters.slots) + 1, np.int64)
    np.add.at(ends, clusters["slot"], 1)
    np.subtract.at(ends, clusters["slot"] + clusters["length"], 1)
    living: np.ndarray = np.cumsum(ends)[:-1] > 0
    return living


@entry
def chain(rows: np.ndarray, owners: np.ndarray, heads: np.ndarray) -> None:
    """Chain the rows of each owner, the newest first."""
    for owner in owners:
        heads[owner].first = -1
    for i in range(owners.shape[0]):
        rows[i].next = heads[owners[i]].first
        heads[owners[i]].first = i


def forget_tokens(state: State) -> State:
    """Let go of tokens that no founding line had and no hole has; their numbers are given again."""
    counters, tokens = state.counters, state.tokens[: state.counters.tokens]
    used = tokens["met"] > 0
    used[state.values["token"][: counters.values]] = True
    used[state.slots["founder"][: counters.slots]] = True
    gone = tokens[~used & (tokens["held"] > 0)]
    shown, kinds = state.shown, state.kinds
    np.subtract.at(shown["held"], gone["shown"], gone["held"])
    np.subtract.at(shown["held_types"], gone["shown"], 1)
    np.subtract.at(kinds[:, 0], KIND_OF[gone["shown"]], 1)
    emptied = np.unique(gone["shown"])
    emptied = emptied[shown["held_types"][emptied] == 0]
    np.subtract.at(kinds[:, 1], KIND_OF[emptied], 1)
    counters.held -= len(gone)
    counters.held_types -= len(emptied)

    lengths = np.where(used, tokens["length"], 0)
    starts = np.cumsum(lengths) - lengths
    taken = np.repeat(tokens["start"] - starts, lengths) + np.arange(lengths.sum())
    text = np.zeros_like(state.text)
    text[: len(taken)] = state.text[taken]
    free = np.flatnonzero(~used)
    tokens["start"] = starts
    tokens["start"][free] = np.append(free[1:] + 1, 0)[: len(free)]  # the next that is free, and 1; or 0
    tokens["length"] = lengths
    tokens["held"][free] = 0
    counters.free = free[0] + 1 if len(free) else 0
    counters.text = len(taken)
    keys, values = pairs_of(state.by_text)
    held = used[values]
    return state._replace(text=text, by_text=filled(state.by_text, keys[held], values[held]))
