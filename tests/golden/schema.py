"""What is stored, apart from values: names, types and shapes of the facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Schema = dict[str, str]
"""By place, the types that are stored there."""


def types(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Places within a value, and what is stored there; whole numbers may have any width."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from types(each, f"{place}/{name}" if isinstance(name, str) else f"{place}[]")
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


def add(schema: dict[str, set[str]], what: str, stored: Mapping[str, Any]) -> None:
    """Count what was stored into a schema; ``what`` says what it is: a state, a header, a model, shards.

    Settings are values. What clusters hold differs by the kind of the records.
    """
    kind = (stored.get("encoder") or {}).get("kind", "lines")
    for key, value in stored.items():
        if key == "settings":
            continue
        if key == "state" and isinstance(value, dict) and "clusters" in value:
            clusters, value = value["clusters"], {k: v for k, v in value.items() if k != "clusters"}
            for place, found in types(clusters, f"{what}/state/clusters of {kind}"):
                schema.setdefault(place, set()).add(found)
        for place, found in types(value, f"{what}/{key} of {kind}" if key == "encoder" else f"{what}/{key}"):
            schema.setdefault(place, set()).add(found)


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """How two schemas differ."""
    return [
        f"{place}: was {before.get(place, 'not there')}, is {after.get(place, 'not there')}"
        for place in sorted({*before, *after})
        if before.get(place) != after.get(place)
    ]
