"""The answers that lines of the stream give, by the line of the journal that each is for."""

from __future__ import annotations

import msgspec

from streamdp.questions.answers import Answer
from streamdp.records import POSITION, Answers
from streamdp.records.answer_rows import answer_rows


class _Place(msgspec.Struct, frozen=True, gc=False):
    line: int


_place = msgspec.json.Decoder(_Place).decode


def answers_of(answers: Answers) -> list[tuple[int, Answer]]:
    """The answers to records, revisions of earlier ones too, by their lines in the journal."""
    rows = answer_rows(answers.lines)
    names = ("seq", "label", "founded", "probability", "novelty", "revision")
    own = rows.written(POSITION), rows.ids(), rows.times(), rows.templates(), *rows.numbers(*names)
    found = [
        Answer(
            status="answered",
            line=_place(position).line,
            id=None if name is None else str(name),
            seq=seq,
            time=time,
            label=label,
            new=bool(new),
            probability=probability,
            novelty=novelty,
            revision=revision,
            template=template,
        )
        for position, name, time, template, seq, label, new, probability, novelty, revision in zip(
            *own, strict=True
        )
    ]
    found += [
        Answer(status="refused", line=each.position["line"], reason=each.reason, detail=each.detail)
        for each in answers.rejects
    ]
    return [(answer.line, answer) for answer in found if answer.line is not None]
