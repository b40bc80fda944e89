"""What most readers want of an answer: read once of a batch, for the store, the service and the page."""

from __future__ import annotations

from typing import Any

import msgspec

from streamdp.records import Assignment, Lines

NOTHING = msgspec.Raw()
"""What is kept of a record of which nothing is."""


class Brief(msgspec.Struct, frozen=True, gc=False):
    """The most of an answer or a revision; ``position`` and ``keep`` stay as they are written.

    Examples
    --------
    >>> from streamdp.records.brief import briefs
    >>> lines = Lines()
    >>> lines.write(
    ...     b'{"seq":0,"position":{"line":7},"cluster":2,"probability":0.5,"novelty":3.0,"new":true}\\n', 1
    ... )
    >>> [(each.cluster, each.place) for each in briefs(lines)]
    [(2, {'line': 7})]
    """

    seq: int
    position: msgspec.Raw
    cluster: int
    probability: float
    novelty: float
    id: str | int | None = None
    time: float | None = None
    new: bool = False
    revision: int = 0
    template: str | None = None
    keep: msgspec.Raw = NOTHING

    @property
    def place(self) -> dict[str, Any]:
        """The position, as a record has it."""
        return _place(self.position)


_encode = msgspec.json.Encoder().encode
_brief = msgspec.json.Decoder(Brief).decode
_place = msgspec.json.Decoder(dict[str, Any]).decode


def briefs(lines: Lines) -> list[Brief]:
    """The answers and revisions among lines; who asks again gets the same objects."""
    if lines.read is None or lines.read[0] != len(lines):
        found: list[Brief] = []
        for part in lines.parts:
            if isinstance(part, bytes):
                found += [_brief(line) for line in part.splitlines() if line.startswith(b'{"seq":')]
            else:
                found += [_of_object(line) for line in part if isinstance(line, Assignment)]
        lines.read = len(lines), found
    return lines.read[1]


def _of_object(line: Assignment) -> Brief:
    return Brief(
        line.seq,
        msgspec.Raw(_encode(line.position)),
        line.cluster,
        line.probability,
        line.novelty,
        line.id,
        line.time,
        line.new,
        line.revision,
        line.template if isinstance(line.template, str) else None,
        NOTHING if line.keep is msgspec.UNSET else msgspec.Raw(_encode(line.keep)),
    )
