"""Bounds on memory: what came least lately, and what is rarest, is forgotten.

Of lines and values of holes templates keep the mass: one that comes again is a new one. The model goes on to
be a distribution, as that mass is the share of what is not remembered.

Templates of one label are retired for good, the least lately used first. Those of one line come before all
others, so that noise does not drive out what a log says again and again. Their lines, slots and values go,
and the base is learned anew from the founding lines of those that stay. Of each that is gone a row remains,
which says what its label became.
"""

from __future__ import annotations

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.lines.base import KIND_OF, Bounds, wordy
from streamdp.lines.state import NUMBER, State, kept, roots

FEW = 3
"""Values that every hole keeps: they say how it is shown, and that it is one."""


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
        state = _forget_tokens(_forget_values(state, most // 2))
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
    return _keep_lines(state, lasting)


def _keep_lines(state: State, lasting: np.ndarray) -> State:
    """Only the lines that last."""
    state.counters.lines = np.count_nonzero(lasting)
    return state._replace(lines=kept(state.lines, lasting))


def _forget_values(state: State, keep: int) -> State:
    """Keep the founder's and the commonest values of holes, the newest where they are alike."""
    counters, slots = state.counters, state.slots[: state.counters.slots]
    values, slot_of = state.values[: counters.values], np.full(int(counters.values), -1)
    _find_slots(state, slot_of)
    lasting = _lasting(state, slot_of, keep)
    gone = (slot_of >= 0) & ~lasting
    np.subtract.at(slots["distinct"], slot_of[gone], 1)
    np.add.at(slots["forgotten"], slot_of[gone], values["count"][gone])
    slots["first"] = -1
    slots["distinct"][~_living_slots(state)] = 1
    counters.values = np.count_nonzero(lasting)
    values = kept(state.values, lasting)
    _chain(values, slot_of[lasting], slots)
    return state._replace(values=values)


@entry
def _find_slots(state: State, slot_of: np.ndarray) -> None:
    """The slot that each value is of; those of templates that are gone stay."""
    for cluster in range(state.counters.clusters):
        row = state.clusters[cluster]
        if row.alive == 0:
            continue
        for slot in range(row.slot, row.slot + row.length):
            value = state.slots[slot].first if state.slots[slot].distinct > 1 else -1
            while value >= 0:
                slot_of[value] = slot
                value = state.values[value].next


def _lasting(state: State, slot_of: np.ndarray, keep: int) -> np.ndarray:
    """Which values stay: the commonest; of each hole the founder's and those that say how it is shown."""
    values, living = state.values[: len(slot_of)], slot_of >= 0
    number, shown = np.arange(len(values)), state.tokens["shown"][values["token"]]
    lasting: np.ndarray = values["token"] == state.slots["founder"][slot_of]
    words = np.zeros(len(values), bool)
    _find_words(state, values["token"], words)
    telling = np.where(words, 2, KIND_OF[shown] != NUMBER)
    order = np.lexsort((-number, -values["count"], -telling, slot_of))
    begins = np.flatnonzero(np.diff(slot_of[order], prepend=-2))
    rank = number - np.repeat(begins, np.diff(begins, append=len(values)))
    lasting[order[rank < FEW]] = True
    order = np.lexsort((-number, -values["count"], ~living))
    lasting[order[:keep]] = True
    lasting &= living
    return lasting


@entry
def _find_words(state: State, tokens: np.ndarray, words: np.ndarray) -> None:
    """Which tokens are words."""
    for i in range(tokens.shape[0]):
        words[i] = wordy(state, tokens[i])


def _living_slots(state: State) -> np.ndarray:
    """Whether each slot is of a template that lives."""
    clusters = state.clusters[: state.counters.clusters]
    clusters = clusters[clusters["alive"] == 1]
    ends = np.zeros(int(state.counters.slots) + 1, np.int64)
    np.add.at(ends, clusters["slot"], 1)
    np.subtract.at(ends, clusters["slot"] + clusters["length"], 1)
    living: np.ndarray = np.cumsum(ends)[:-1] > 0
    return living


@entry
def _chain(values: np.ndarray, owners: np.ndarray, slots: np.ndarray) -> None:
    """Chain the values of each slot, the newest first."""
    for i in range(owners.shape[0]):
        values[i].next = slots[owners[i]].first
        slots[owners[i]].first = i


def _forget_tokens(state: State) -> State:
    """Let go of tokens that no founding line had and no hole has; those that stay are numbered anew."""
    counters, tokens = state.counters, state.tokens[: state.counters.tokens]
    held, founders = state.values["token"][: counters.values], state.slots["founder"][: counters.slots]
    used = tokens["met"] > 0
    used[held] = used[founders] = True
    number, tokens = np.cumsum(used) - 1, kept(state.tokens, used)
    held[:], founders[:] = number[held], number[founders]
    counters.tokens = np.count_nonzero(used)
    own = tokens[: counters.tokens]
    starts = np.cumsum(own["length"]) - own["length"]
    taken = np.repeat(own["start"] - starts, own["length"]) + np.arange(own["length"].sum())
    text = np.zeros_like(state.text)
    text[: len(taken)] = state.text[taken]
    own["start"], counters.text = starts, len(taken)
    return state._replace(text=text, tokens=tokens)


def retire(state: State, most: int) -> tuple[State, np.ndarray]:
    """The state with three quarters of ``most`` templates, or fewer; and the labels that are gone."""
    counters = state.counters
    rows = state.clusters[: counters.clusters]
    label = roots(rows["older"])
    gone = _least_used(rows, label, int(counters.alive) - 3 * most // 4)
    rows["alive"][(rows["alive"] == 1) & np.isin(label, gone)] = 0
    counters.retired += len(gone)
    of_lines = roots(rows["into"])[state.lines["cluster"][: counters.lines]]
    state = _keep_lines(state, rows["alive"][of_lines] == 1)
    state = _without_slots(_forget_values(state, len(state.values)), rows)
    founders = state.slots["founder"][: counters.slots]
    state.tokens["met"] = np.bincount(founders, minlength=len(state.tokens))
    return _forget_tokens(state), gone


def _least_used(rows: np.ndarray, label: np.ndarray, many: int) -> np.ndarray:
    """Labels of so many templates at least, those of one line first, then those that came least lately."""
    living = rows["alive"] == 1
    last, lines = np.full(len(rows), -1), np.zeros(len(rows), np.int64)
    np.maximum.at(last, label[living], rows["last"][living])
    np.add.at(lines, label[living], rows["size"][living])
    members = np.bincount(label[living], minlength=len(rows))
    order = np.flatnonzero(members)
    order = order[np.lexsort((last[order], lines[order] > 1))]
    return np.sort(order[: int(np.searchsorted(np.cumsum(members[order]), many)) + 1])


def _without_slots(state: State, rows: np.ndarray) -> State:
    """Only the slots of templates that live, with numbers of their own."""
    lasting = _living_slots(state)
    number = np.append(np.cumsum(lasting) - lasting, np.count_nonzero(lasting))
    state.counters.slots = number[-1]
    living = rows["alive"] == 1
    rows["slot"] = np.where(living, number[rows["slot"]], 0)
    rows["length"] = np.where(living, rows["length"], 0)
    return state._replace(slots=kept(state.slots, lasting))
