"""Answers as rows of ``records``, in as few steps as may be: every record passes here."""

from __future__ import annotations

import msgspec

from streamdp.records import Assignment, Lines
from streamdp_connectors.store.tables import Row

NOTHING = msgspec.Raw()


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What is read of a written answer."""

    seq: int
    position: msgspec.Raw
    cluster: int
    probability: float
    novelty: float
    id: str | int | None = None
    time: float | None = None
    revision: int = 0
    template: str | None = None
    keep: msgspec.Raw = NOTHING


_encode = msgspec.json.Encoder().encode
_answer = msgspec.json.Decoder(Answer).decode


def answers_of(lines: Lines) -> list[Answer]:
    """The answers among lines, written or not."""
    found: list[Answer] = []
    for part in lines.parts:
        if isinstance(part, bytes):
            found += [_answer(line) for line in part.splitlines() if line.startswith(b'{"seq":')]
        else:
            found += [_of_object(line) for line in part if isinstance(line, Assignment)]
    return found


def _of_object(line: Assignment) -> Answer:
    keep = NOTHING if line.keep is msgspec.UNSET else msgspec.Raw(_encode(line.keep))
    return Answer(
        line.seq,
        msgspec.Raw(_encode(line.position)),
        line.cluster,
        line.probability,
        line.novelty,
        line.id,
        line.time,
        line.revision,
        line.template if isinstance(line.template, str) else None,
        keep,
    )


def row_of(line: Answer, text: str) -> Row:
    """The row of an answer to a record that says so."""
    name, label, kept = line.id, line.cluster, line.keep
    cells = (
        line.seq,
        name if name is None or name.__class__ is str else str(name),
        str(line.position, "utf-8"),
        line.time,
        text,
        None if kept is NOTHING else str(kept, "utf-8"),
        label,
        label,
        line.probability,
        line.novelty,
        line.revision,
        line.template,
    )
    return tuple.__new__(Row, cells)  # a third of the time of Row(...)
