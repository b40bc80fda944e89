"""What is stored of templates: facts, checked as they are read, from which all else follows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from streamdp.kernels.jit import entry
from streamdp.kernels.rows import new_rows
from streamdp.kernels.sound import finite, require, within
from streamdp.lines.base import NO_TOKEN, SLOT_SHIFT, recount
from streamdp.lines.relate import enter
from streamdp.lines.scan import MOST
from streamdp.lines.state import (
    CLASSES,
    LIST,
    POST,
    SHOWN,
    USED,
    State,
    emptied,
    look_up,
    new_state,
    put,
    roots,
)

FACTS = ("counters", "text", "tokens", "clusters", "slots", "values", "lines")
FOLLOWING = ("alive", "lists", "posts", "met", "met_types", "class_types", "held", "held_types")
"""Counters that are no facts."""

LARGEST = 1 << 53


def facts_of(state: State) -> dict[str, np.ndarray]:
    """What is used of the facts, by name; the same however the lines came in batches."""
    found = {}
    for name in FACTS:
        array = getattr(state, name)
        found[name] = array[: getattr(state.counters, USED[name])] if name in USED else array.copy()
    for name in FOLLOWING:
        found["counters"][name] = 0
    return found


def state_of(facts: Mapping[str, Any]) -> State:
    """The inverse of :func:`facts_of`. Raises UnsoundError where they are no facts of templates."""
    fresh = new_state()
    _check_arrays(facts, facts_of(fresh))
    _check_tokens(facts)
    _check_clusters(facts)
    _check_values(facts)
    return follow(fresh._replace(**facts))


def follow(state: State) -> State:
    """The state with all that follows from its facts made anew."""
    counters, clusters = state.counters, state.clusters[: state.counters.clusters]
    for name in FOLLOWING:
        counters[name] = 0
    living = clusters["length"][clusters["alive"] == 1]
    posts = max(int(living.sum()) + 3 * len(living), len(state.posts))
    keys = {"text": counters.tokens, "value": 2 * counters.values, "line": counters.lines, "place": posts}
    tables: dict[str, Any] = {
        f"by_{name}": emptied(getattr(state, f"by_{name}"), int(most)) for name, most in keys.items()
    }
    state = state._replace(
        shown=new_rows(CLASSES, SHOWN),
        alike=np.bincount(living, minlength=MOST + 1),
        lists=new_rows(posts, LIST),
        posts=new_rows(posts, POST),
        **tables,
    )
    _follow(state)
    return state


@entry
def _follow(state: State) -> None:
    counters = state.counters
    for token in range(counters.tokens):
        put(state.by_text, state.tokens[token].code, token)
        recount(state, token)
    for line in range(counters.lines):
        put(state.by_line, state.lines[line].code, line)
    for cluster in range(counters.clusters):
        row = state.clusters[cluster]
        if row.alive == 0:
            continue
        counters.alive += 1
        enter(state, cluster)
        for slot in range(row.slot, row.slot + row.length):
            value = state.slots[slot].first if state.slots[slot].distinct > 1 else -1
            while value >= 0:
                token = state.values[value].token
                put(state.by_value, (slot << SLOT_SHIFT) | token, value)
                of_class = (slot << SLOT_SHIFT) | (NO_TOKEN - state.tokens[token].shown)
                put(state.by_value, of_class, max(look_up(state.by_value, of_class), 0) + 1)
                value = state.values[value].next


# ---------------------------------------------------------------- checks


def _check_arrays(facts: Mapping[str, Any], fresh: Mapping[str, np.ndarray]) -> None:
    require(facts.keys() == fresh.keys(), "arrays of templates are missing")
    for name, array in fresh.items():
        found = facts[name]
        same = isinstance(found, np.ndarray) and found.dtype == array.dtype
        require(same and found.shape[1:] == array.shape[1:], f"{name} of another type")
    counters = facts["counters"]
    require(counters.shape == (), "counters of another length")
    for name in counters.dtype.names:
        require(name in ("due", "evidence") or 0 <= getattr(counters, name) < LARGEST, "a count of templates")
    require(counters.due == -1, "a template is due")
    finite(counters["evidence"], "evidence")
    for name in FACTS[1:]:
        require(len(facts[name]) == getattr(counters, USED[name]), f"{name} of another length")


def _check_tokens(facts: Mapping[str, Any]) -> None:
    tokens, lines = facts["tokens"], facts["lines"]
    within(tokens["length"], 1, LARGEST, "the length of a token")
    within(tokens["start"], 0, LARGEST, "the text of a token")
    within(tokens["start"] + tokens["length"], 0, len(facts["text"]) + 1, "the text of a token")
    within(tokens["shown"], 1, CLASSES, "the class of a token")
    for field in ("met", "held"):
        within(tokens[field], 0, LARGEST, f"{field} of a token")
    require((tokens["spelling"] > 0.0).all() and (tokens["spelling"] <= 1.0).all(), "a spelling out of range")
    for codes, what in ((tokens["code"], "tokens"), (lines["code"], "lines")):
        require((codes >= 0).all() and len(np.unique(codes)) == len(codes), f"hashes of {what}")


def _check_clusters(facts: Mapping[str, Any]) -> None:
    clusters, slots, lines = facts["clusters"], facts["slots"], facts["lines"]
    own = np.arange(len(clusters))
    within(clusters["length"], 0, MOST + 1, "the length of a template")
    within(clusters["slot"], 0, len(slots) + 1, "the slots of a template")
    within(clusters["slot"] + clusters["length"], 0, len(slots) + 1, "the slots of a template")
    for field in ("into", "older"):
        require((clusters[field] >= 0).all() and (clusters[field] <= own).all(), f"{field} of a template")
    within(clusters["alive"], 0, 2, "whether a template lives")
    living = clusters["alive"] == 1
    require((clusters["into"] == own)[living].all(), "a template that lives is part of another")
    require(living[roots(clusters["older"])[living]].all(), "the label of a template that is gone")
    within(lines["cluster"], 0, len(clusters), "the template of a line")
    within(lines["count"], 1, LARGEST, "the count of a line")
    within(lines["last"], 0, LARGEST, "when a line came last")
    require(living[roots(clusters["into"])[lines["cluster"]]].all(), "a line of a template that is gone")
    alive = clusters[living]
    order = np.lexsort((alive["length"], alive["slot"]))  # a template without tokens before another
    starts, ends = alive["slot"][order], (alive["slot"] + alive["length"])[order]
    require((starts[1:] >= ends[:-1]).all(), "templates share slots")
    within(alive["size"], 1, LARGEST, "the size of a template")
    require((alive["types"] >= 1).all() and (alive["types"] <= alive["size"]).all(), "distinct lines")
    for field in ("founded", "repeats", "forgotten"):
        finite(clusters[field], field)
    require((clusters["forgotten"] >= 0.0).all(), "the mass of forgotten lines")


def _check_values(facts: Mapping[str, Any]) -> None:
    """Chains end, since what comes next in one is always older; and they are as long as their counts."""
    slots, values, tokens = facts["slots"], facts["values"], len(facts["tokens"])
    within(slots["forgotten"], 0, LARGEST, "forgotten values of a slot")
    within(slots["founder"], 0, tokens, "the founder of a slot")
    within(slots["distinct"], 1, LARGEST, "the values of a slot")
    for field in ("law", "hole"):
        finite(slots[field], field)
        require((slots[field] >= 0.0).all() and (slots[field] <= 1.0).all(), f"{field} of a slot")
    within(slots["first"], -1, len(values), "the first value of a slot")
    holes = slots["distinct"] > 1
    require((slots["first"] >= 0)[holes].all(), "a hole without values")
    require(slots["distinct"][holes].sum() <= len(values), "values of several slots")
    within(values["token"], 0, tokens, "a value")
    within(values["count"], 1, LARGEST, "the count of a value")
    require((values["next"] < np.arange(len(values))).all(), "a chain that comes back")
    within(values["next"], -1, len(values), "a chain")
    lengths = np.zeros(len(values), np.int64)  # of the chain that begins with each value
    for value, after in enumerate(values["next"].tolist()):
        lengths[value] = 1 + (lengths[after] if after >= 0 else 0)
    require(
        (lengths[slots["first"][holes]] == slots["distinct"][holes]).all(), "values of a slot are missing"
    )
