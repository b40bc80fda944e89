"""The rows of answers that came as objects, and those of all lines of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from msgspec.json import Encoder

from streamdp.records import ID, SPANS, WHOLE, AnswerRows, Assignment, Final, Line, Lines
from streamdp.records.columns import spans_of

_NUMBERS = ("seq", "was", "label", "founded", "revision", "time", "probability", "novelty", "stability")
_ROW = np.dtype([(name, np.int64 if at < 5 else np.float64) for at, name in enumerate(_NUMBERS)])
_encode_lines = Encoder().encode_lines


def _of_objects(lines: Sequence[Line]) -> AnswerRows:
    rows, spans = np.zeros(len(lines), _ROW), np.full((len(lines), SPANS, 2), -1)
    rows["revision"] = rows["was"] = -1
    rows["seq"] = [line.final_through if isinstance(line, Final) else line.seq for line in lines]
    answers = [line for line in lines if isinstance(line, Assignment)]
    which = [i for i, line in enumerate(lines) if isinstance(line, Assignment)]
    stable = [a.stability if isinstance(a.stability, float) else None for a in answers]
    own = [(a.cluster, a.new, a.revision, a.time, a.probability, a.novelty) for a in answers]
    rows["stability"][which] = np.array(stable, float)
    for name, column in zip(_NUMBERS[2:], zip(*own, strict=True), strict=False):
        rows[name][which] = np.array(column, _ROW[name])
    names = ("id", "position", "keep", "template", "params")
    letters, *found = spans_of(*([getattr(a, name) for a in answers] for name in names))
    for part, each in enumerate(found, ID):
        spans[which, part] = each
    written = [_encode_lines([line]) for line in lines]
    ends = len(letters) + np.cumsum([len(line) for line in written], dtype=np.int64)
    spans[:, WHOLE, 0], spans[:, WHOLE, 1] = [len(letters), *ends[:-1]][: len(lines)], ends
    return AnswerRows(letters.tobytes() + b"".join(written), rows, spans)


def all_rows(lines: Lines) -> AnswerRows:
    """All lines side by side, finality too."""
    parts = [part if isinstance(part, AnswerRows) else _of_objects(part) for part in lines.parts]
    if len(parts) == 1:
        return parts[0]
    starts = [*accumulate((len(part.data) for part in parts), initial=0)]
    moved = [np.where(part.spans < 0, -1, part.spans + at) for part, at in zip(parts, starts, strict=False)]
    return AnswerRows(
        b"".join(part.data for part in parts),
        np.concatenate([np.zeros(0, _ROW), *(part.rows[[*_NUMBERS]].astype(_ROW) for part in parts)]),
        np.concatenate([np.zeros((0, SPANS, 2), np.int64), *moved]),
    )


def answer_rows(lines: Lines) -> AnswerRows:
    """The answers and revisions among lines; who asks again gets the same."""
    if lines.rows is None or lines.rows[0] != len(lines):
        found = all_rows(lines)
        lines.rows = len(lines), found[found.rows["revision"] >= 0]
    return lines.rows[1]
