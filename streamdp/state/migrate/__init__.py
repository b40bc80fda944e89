"""Versions of what is stored, and the steps from a version to the next.

Each part of a state has a version of its own, so that a change of one leaves states without it alone. A step
is a module of this folder, with a function from plain values (what msgpack decodes) to plain values. Steps
run in the order of ``STEPS``, before anything is checked or used. A release reads every state since
``READS_SINCE``.

To change what is stored: raise the part's number in ``PARTS``, add the module, and list its step at the end
of ``STEPS``. A step for a field that is new puts its default. Then run ``python -m tests.golden make``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from streamdp._version import __version__
from streamdp.errors import Exit, StreamdpError
from streamdp.kernels.sound import require
from streamdp.state.migrate import addresses, centred, directions

PARTS = {
    "header": 1,
    "waiting": 1,
    "announced": 1,
    "retained": 2,
    "beam": 1,
    "texts": 1,
    "categories": 2,
    "embedded": 1,
    "vectors": 2,
    "lines": 1,
    "stories": 1,
    "refinement": 1,
    "corrections": 2,
    "shards": 1,
    "model": 1,
}
"""The version in which this release writes each part.

``header``: what a snapshot says of itself; ``waiting``: records that are not in order yet, or wait for a
warm-up; ``beam``: hypotheses and clusters, but for what ``texts``, ``embedded`` (texts with a vector beside
their words), ``categories`` or ``vectors`` say of them and of their encoding; ``lines``: templates of a log;
``stories``: titles, splits and mergers; ``corrections``: those by hand that are in force; ``shards``: what a
merger knows of its parts; ``model``: a file that ``StreamDP.save`` writes.
"""


class Step(NamedTuple):
    """Makes version ``before + 1`` of a part; ``convert`` is given all that was stored with it."""

    part: str
    before: int
    convert: Callable[[dict[str, Any]], dict[str, Any]]


STEPS: tuple[Step, ...] = (
    Step("corrections", 1, addresses.convert),
    Step("categories", 1, centred.convert),
    Step("retained", 1, centred.retained),
    Step("vectors", 1, directions.convert),
)
"""All steps, oldest first."""

_OF_KEYS = {
    "order": "waiting",
    "pending": "waiting",
    "strays": "waiting",
    "announced": "announced",
    "retained": "retained",
    "state": "beam",
    "passes": "refinement",
    "stories": "stories",
    "corrections": "corrections",
    "templates": "lines",
}
_OF_KINDS = {name: name for name in ("embedded", "categories", "vectors")} | {"words": "texts"}


class Stamp(msgspec.Struct):
    """What all that is stored says of itself; the rest of it is skipped where it is decoded as this."""

    release: str
    versions: dict[str, int]


class NewerError(StreamdpError):
    """A later release wrote it, in versions that this one does not read."""


def part_of(key: str, body: Mapping[str, Any]) -> str | None:
    """The part that a key of an engine's state belongs to; None where that is not known yet."""
    if key in _OF_KEYS:
        return _OF_KEYS[key]
    return None if body["encoder"] is None else _OF_KINDS[body["encoder"]["kind"]]


def parts_of(body: Mapping[str, Any]) -> Iterator[str]:
    """The parts that an engine's state has."""
    return (part for key in body if body[key] is not None and (part := part_of(key, body)) is not None)


def stamped(stored: Mapping[str, Any], parts: Iterable[str]) -> dict[str, Any]:
    """The same with the release and the versions of these parts, ready to be written."""
    versions = {part: PARTS[part] for part in sorted(set(parts))}
    return {**stored, "release": __version__, "versions": versions}


def upgraded(stored: Any) -> dict[str, Any]:
    """What was stored, in the versions of this release; ``release`` still says who wrote it.

    Raises NewerError, and UnsoundError where it does not say which versions it has.
    """
    require(isinstance(stored, dict), "its versions are missing")
    release, versions = stored.get("release"), stored.get("versions")
    require(isinstance(release, str) and isinstance(versions, dict), "its versions are missing")
    require(all(type(part) is str and type(n) is int and n > 0 for part, n in versions.items()), "a version")
    newer = [part for part, version in versions.items() if version > PARTS.get(part, 0)]
    if newer:
        theirs = ", ".join(f"{part} {versions[part]}" for part in newer)
        ours = ", ".join(f"{part} {PARTS[part]}" if part in PARTS else f"no {part}" for part in newer)
        raise NewerError(
            f"was written by streamdp {release[:40]} ({theirs}); this is streamdp {__version__} ({ours}): "
            "upgrade it",
            Exit.CONFIG,
        )
    for step in STEPS:
        if versions.get(step.part) == step.before:
            versions = versions | {step.part: step.before + 1}
            stored = step.convert(stored) | {"versions": versions}
    return dict(stored)
