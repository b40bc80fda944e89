"""Places of templates that are closed by hand."""

from __future__ import annotations

from collections.abc import Mapping

from streamdp.lines.automaton import MASKED
from streamdp.lines.closed_places import Rule
from streamdp.lines.shown import founders, holes
from streamdp.lines.state import State


def rule_of(state: State, label: int, nth: int, value: str | None, held: Mapping[int, Rule]) -> Rule:
    """What closes a hole of a template as it reads now, for one value or for all.

    ``held`` are the rules in force, by the numbers of their corrections. ValueError where it makes no sense.
    """
    tokens, places = founders(state, label), places_of(state, label)
    if nth > len(places):
        raise ValueError(f"template {label} has {len(places)} holes that can be closed, and no hole {nth}")
    own = [None if hole else token for token, hole in zip(tokens, holes(state, label), strict=True)]
    made = Rule(tuple(own), places[nth - 1], None if value is None else value.encode())
    for number, rule in held.items():
        if rule == made:
            raise ValueError(f"that is so already (correction {number})")
    return made


def places_of(state: State, label: int) -> list[int]:
    """The places of a template's holes, in their order: of tokens, or of what is folded in one."""
    found = zip(founders(state, label), holes(state, label), strict=True)
    return [
        place
        for place, (token, hole) in enumerate(found)
        if hole or (hole is False and any(byte == 48 or byte >= MASKED for byte in token))
    ]
