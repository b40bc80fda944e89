"""Places of templates that were closed by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from streamdp.kernels.sound import require
from streamdp.lines.automaton import MASKED
from streamdp.lines.closing import Rule
from streamdp.lines.scan import MOST
from streamdp.lines.shown import founders, holes
from streamdp.lines.state import State
from streamdp.state.corrections import Correction
from streamdp.streams.corrections import refused


def rule_of(state: State, correction: Correction, known: Mapping[int, Rule]) -> Rule:
    """What a correction closes, of a template as it reads now. Raises CorrectionError.

    ``known`` are the rules in force, by the number of the correction.
    """
    (label,), nth = correction.stories, correction.hole or 0
    if not nth:
        raise refused(f"split a template by a value: split {label} hole 2 VALUE, or close {label} hole 2")
    tokens, places = founders(state, label), places_of(state, label)
    if nth > len(places):
        raise refused(f"template {label} has {len(places)} holes that can be closed, and no hole {nth}")
    own = [None if hole else token for token, hole in zip(tokens, holes(state, label), strict=True)]
    value = None if correction.value is None else correction.value.encode()
    made = Rule(tuple(own), places[nth - 1], value)
    for number, rule in known.items():
        if rule == made:
            raise refused(f"that is so already (correction {number})")
    return made


def read_rules(stored: Sequence[Any]) -> dict[int, Rule]:
    """Rules by number, from rows of number, shape, place and value. Raises UnsoundError."""
    found = {}
    for number, shape, place, value in stored:
        require(type(number) is int and type(place) is int, "a rule of another type")
        require(0 <= place < len(shape) <= MOST, "a rule on no place")
        known = all(token is None or (type(token) is bytes and token) for token in shape)
        require(known and (value is None or type(value) is bytes), "a rule of another type")
        found[number] = Rule(tuple(shape), place, value)
    return found


def places_of(state: State, label: int) -> list[int]:
    """The places of a template's holes, in their order: of tokens, or of what is folded in one."""
    found = zip(founders(state, label), holes(state, label), strict=True)
    return [
        place
        for place, (token, hole) in enumerate(found)
        if hole or (hole is False and any(byte == 48 or byte >= MASKED for byte in token))
    ]
