"""What is stored, apart from values: names, types and shapes of the facts, by part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from streamdp.state.migrate import part_of

Schema = dict[str, dict[str, set[str]]]
"""By part and version (``texts 1``): by place, the types that are stored there."""

STAMP = ("release", "versions")


def types(value: Any, place: str = "") -> Iterator[tuple[str, str]]:
    """Places within a value, and what is stored there; whole numbers may have any width."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from types(each, f"{place}/{name}")
    elif isinstance(value, list) and len(value) == 3 and isinstance(value[2], bytes):
        kind, shape, _ = value
        narrow = isinstance(kind, str) and kind[1] == "i"
        named = (
            "whole numbers" if narrow else kind if isinstance(kind, str) else ", ".join(map(" ".join, kind))
        )
        yield place, f"array of {named} in {len(shape)} dimensions"
    elif isinstance(value, list):
        yield place, "list"
        for each in value:
            yield from types(each, f"{place}[]")
    else:
        yield place, type(value).__name__


def _pieces(stored: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """What was stored as part, place and value."""
    versions = stored["versions"]
    for key, value in stored.items():
        if key in STAMP or (key == "settings" and "header" in versions):
            continue  # settings are compared by their names
        if len(versions) == 1:
            yield next(iter(versions)), key, value
        elif (part := part_of(key, stored)) is not None:
            if key == "state" and value is not None:
                kind = part_of("encoder", stored)
                assert kind is not None
                yield kind, "state/clusters", value["clusters"]
                value = {name: each for name, each in value.items() if name != "clusters"}
            yield part, key, value


def add(schema: Schema, stored: Mapping[str, Any]) -> None:
    """Count what was stored, a state or what else has versions, into a schema."""
    for part, place, value in _pieces(stored):
        if part in stored["versions"]:  # else it is not there: None
            found = schema.setdefault(f"{part} {stored['versions'][part]}", defaultdict(set))
            for inner, kind in types(value, place):
                found[inner].add(kind)


def changes(before: Mapping[str, set[str]], after: Mapping[str, set[str]]) -> list[str]:
    """How two schemas of one part differ."""
    return [
        f"{place}: was {', '.join(sorted(before.get(place, {'not there'})))}, "
        f"is {', '.join(sorted(after.get(place, {'not there'})))}"
        for place in sorted({*before, *after})
        if before.get(place) != after.get(place)
    ]
