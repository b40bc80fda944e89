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
from streamdp.lines.base import (
    KIND_OF,
    NO_TOKEN,
    SLOT_SHIFT,
    Bounds,
    context_of,
    found_length,
    found_token,
    of_class,
    wordy,
)
from streamdp.lines.state import NUMBER, State, Table, filled, kept, new_table, pairs_of, roots

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
    words = np.zeros(len(values), bool)
    _find_words(state, values["token"], words)
    telling = np.where(words, 2, KIND_OF[shown] != NUMBER)
    order = np.lexsort((-number, -values["count"], -telling, slot_of))
    begins = np.flatnonzero(np.diff(slot_of[order], prepend=-1))
    rank = number - np.repeat(begins, np.diff(begins, append=len(values)))
    lasting[order[rank < FEW]] = True
    order = np.lexsort((-number, -values["count"], ~living[slot_of]))
    lasting[order[:keep]] = True
    lasting &= living[slot_of]
    return lasting


@entry
def _find_words(state: State, tokens: np.ndarray, words: np.ndarray) -> None:
    """Which tokens are words."""
    for i in range(tokens.shape[0]):
        words[i] = wordy(state, tokens[i])


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


def retire(state: State, most: int) -> tuple[State, np.ndarray]:
    """The state with three quarters of ``most`` templates, or fewer; and the labels that are gone."""
    counters = state.counters
    rows = state.clusters[: counters.clusters]
    label = roots(rows["older"])
    gone = _least_used(rows, label, int(counters.alive) - 3 * most // 4)
    ends = (rows["alive"] == 1) & np.isin(label, gone)
    rows["alive"][ends] = 0
    np.subtract.at(state.lengths["alive"], rows["length"][ends], 1)
    counters.alive -= np.count_nonzero(ends)
    counters.retired += len(gone)
    of_lines = roots(rows["into"])[state.lines["cluster"][: counters.lines]]
    state = keep_lines(state, rows["alive"][of_lines] == 1)
    state = _without_slots(forget_values(state, len(state.values)), rows)
    return forget_tokens(_founded_again(_without_posts(state))), gone


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
    """Only the slots of templates that live, with numbers of their own; all values are of these."""
    lasting = living_slots(state)
    number = np.append(np.cumsum(lasting) - lasting, np.count_nonzero(lasting))
    state.counters.slots = number[-1]
    living = rows["alive"] == 1
    rows["slot"] = np.where(living, number[rows["slot"]], 0)
    rows["length"] = np.where(living, rows["length"], 0)
    keys, values = pairs_of(state.by_value)
    low = (1 << SLOT_SHIFT) - 1
    keys = (number[keys >> SLOT_SHIFT] << SLOT_SHIFT) | (keys & low)
    return state._replace(
        slots=kept(state.slots, lasting),
        laws=kept(state.laws, lasting),
        weights=kept(state.weights, lasting),
        by_value=filled(state.by_value, keys, values),
    )


def _without_posts(state: State) -> State:
    """Only the entries of lists that are of templates that live, and the lists that have any."""
    counters = state.counters
    owner = np.full(int(counters.posts), -1)
    _own(state, owner)
    lasting = owner >= 0
    held = np.bincount(owner[lasting], minlength=int(counters.lists))
    used = held > 0
    posts, lists = kept(state.posts, lasting), kept(state.lists, used)
    counters.posts, counters.lists = np.count_nonzero(lasting), np.count_nonzero(used)
    lists["count"][: counters.lists] = held[used]
    chain(posts, (np.cumsum(used) - 1)[owner[lasting]], lists)
    return state._replace(posts=posts, lists=lists, by_place=renumbered(state.by_place, used))


@entry
def _own(state: State, owner: np.ndarray) -> None:
    """The list that each entry of a template that lives is in."""
    for place in range(state.counters.lists):
        at = state.lists[place].first
        while at >= 0:
            if state.clusters[state.posts[at].cluster].alive:
                owner[at] = place
            at = state.posts[at].next


def _founded_again(state: State) -> State:
    """The base as the founding lines of templates that live teach it."""
    for name in ("met", "followers", "follower_types"):
        state.tokens[name] = 0
    for name in ("met_types", "again", "again_types", "followers", "follower_types"):
        state.shown[name] = 0
    state.lengths["founded"] = 0
    for name in ("met", "met_types", "class_types", "lengths", "length_types"):
        setattr(state.counters, name, 0)
    state = state._replace(by_pair=new_table(len(state.by_pair.keys) // 2))
    _found_again(state)
    return state


@entry
def _found_again(state: State) -> None:
    """Count the founding lines of templates that live, the oldest first."""
    for cluster in range(state.counters.clusters):
        row = state.clusters[cluster]
        if row.alive == 0:
            continue
        before = -1
        for slot in range(row.slot, row.slot + row.length):
            token = state.slots[slot].founder
            found_token(state, token, before)
            before = context_of(state, token)
        found_length(state, row.length)
