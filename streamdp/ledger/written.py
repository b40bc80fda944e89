"""Answers as lines of JSON, as kernels write them: no object for each.

What a line takes over from its record (id, position, time, kept fields) is written once, when the answer is
first given, and opened as long as the answer may change.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel
from streamdp.kernels.rows import Counters, ints, of, one, rows
from streamdp.ledger.table import ROW, Table, row_of, to_digits
from streamdp.records import ID, KEPT, PARAMS, POSITION, SPANS, TEMPLATE, WHOLE
from streamdp.records.columns import LARGEST, NO_FIELDS, OWN_ID, OWN_KEPT, OWN_POSITION, OWN_TIME, Given
from streamdp.settings.memory import AROUND


class Frame(NamedTuple):
    """What stands between the parts that lines have from their records, each end in bytes."""

    heads: np.ndarray  # uint8[...] what comes before each number of a position
    head_ends: np.ndarray  # int64[numbers]
    names: np.ndarray  # uint8[...] the names of kept fields in JSON, each with its colon
    name_ends: np.ndarray  # int64[fields]


class Templates(NamedTuple):
    """How templates of logs stand in lines, one after the other, each end in bytes."""

    letters: np.ndarray  # uint8[...]
    ends: np.ndarray  # int64[templates]


class Report(NamedTuple):
    """What is announced: rows of records, and how many answers are ``revised``.

    A row of revision -1 says up to which record answers are final. The lines take so many ``bytes``: -1 where
    numbers are too large for a kernel to write, and those of ``out`` where it has room.
    """

    counters: Annotated[Counters, one("lines revised bytes")]
    lines: Annotated[np.ndarray, rows(ROW, "lines")]
    out: Annotated[np.ndarray, of(np.uint8, "bytes")]
    spans: Annotated[np.ndarray, ints("lines", SPANS, 2)]
    """Those of :class:`~streamdp.records.AnswerRows`, in ``out``."""
    stops: Annotated[np.ndarray, ints("lines")]
    """Where in ``lines`` those end that each record has brought."""


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


_SEQ, _ID, _POSITION, _TIME, NULL = map(_bytes, ('{"seq":', ',"id":', ',"position":', ',"time":', "null"))
_KEEP, _CLUSTER, _PROBABILITY = map(_bytes, (',"keep":', ',"cluster":', ',"probability":'))
_NEW_PROBABILITY, _LASTING = map(_bytes, (',"new_probability":', ',"lasting_probability":'))
_STABILITY, _CONFIDENCE = map(_bytes, (',"stability":', ',"confidence":'))
_LABELS = _bytes(',"confidence_labels":')
_NEW, _TRUE = map(_bytes, (',"new":', "true"))
_FALSE, _LINK, _LOG_PREDICTIVE = map(_bytes, ("false", ',"link":', ',"log_predictive":'))
_TEMPLATE, _PARAMS = map(_bytes, (',"template":', ',"params":'))
_NOVELTY, _REVISION, _FINAL = map(_bytes, (',"novelty":', ',"revision":', '{"final_through":'))
BESIDE = 512
"""Bytes of a line at most, but for what it has from its record."""


@kernel
def _put(out: np.ndarray, at: int, part: np.ndarray, start: int, stop: int) -> int:
    for i in range(start, stop):
        out[at + i - start] = part[i]
    return at + stop - start


@kernel
def _put_all(out: np.ndarray, at: int, part: np.ndarray) -> int:
    return _put(out, at, part, 0, part.shape[0])


@kernel
def _put_whole(out: np.ndarray, at: int, number: int) -> int:
    if number < 0:
        out[at] = 0x2D
        return _put_whole_above(out, at + 1, -number)
    return _put_whole_above(out, at, number)


@kernel
def _put_whole_above(out: np.ndarray, at: int, number: int) -> int:
    digits, rest = 1, number // 10
    while rest:
        digits += 1
        rest //= 10
    for k in range(digits - 1, -1, -1):
        out[at + k] = 0x30 + number % 10
        number //= 10
    return at + digits


@kernel
def _put_number(out: np.ndarray, at: int, number: float) -> int:
    """Write a number of at most six decimals as JSON has it; one that is none as null."""
    if not math.isfinite(number):
        return _put_all(out, at, NULL)
    millionths = int(np.rint(number * 1e6))
    if millionths < 0 or (millionths == 0 and math.copysign(1.0, number) < 0.0):
        out[at] = 0x2D
        at, millionths = at + 1, -millionths
    if 0 < millionths < 10:
        out[at], out[at + 1], out[at + 2], out[at + 3] = 0x30 + millionths, 0x65, 0x2D, 0x36
        return at + 4
    at = _put_whole_above(out, at, millionths // 1_000_000)
    rest = millionths % 1_000_000
    out[at] = 0x2E
    for k in range(6, 0, -1):
        out[at + k] = 0x30 + rest % 10
        rest //= 10
    end = at + 7
    while end > at + 2 and out[end - 1] == 0x30:
        end -= 1
    return end


@kernel
def _put_span(out: np.ndarray, at: int, columns: Given, i: int, part: int) -> int:
    """Write one of the parts of record i that are written as a whole."""
    return _put(out, at, columns.data, columns.written[i, part, 0], columns.written[i, part, 1])


@kernel
def _put_given(table: Table, frame: Frame, columns: Given, i: int, row: Any) -> None:
    """Write id, position and time of record i."""
    at, out = row.start, table.letters
    at = _put_all(out, at, _ID)
    if columns.written[i, OWN_ID, 0] < 0:
        row.named = _put_all(out, at, NULL)
    else:
        row.named = _put_span(out, at, columns, i, OWN_ID)
    at = _put_all(out, row.named, _POSITION)
    if columns.written.shape[1] > 1:
        row.placed, row.time = _put_span(out, at, columns, i, OWN_POSITION), columns.times[i]
        row.middle = _put_span(out, _put_all(out, row.placed, _TIME), columns, i, OWN_TIME)
        return
    begin = 0
    for k in range(columns.places.shape[1]):
        at = _put(out, at, frame.heads, begin, frame.head_ends[k])
        at = _put_whole(out, at, columns.places[i, k])
        begin = frame.head_ends[k]
    out[at] = 0x7D
    row.placed, row.time = at + 1, to_digits(columns.times[i])
    row.middle = _put_number(out, _put_all(out, row.placed, _TIME), columns.times[i])


@kernel
def take_over(table: Table, frame: Frame, columns: Given, i: int, seq: int) -> None:
    """Write down what the line of record ``seq`` has from the i-th of the records that have come."""
    row = row_of(table, seq)
    row.start = table.counters.written
    _put_given(table, frame, columns, i, row)
    row.kept = row.stop = _put_kept(table.letters, row.middle, frame, columns, i)
    row.size = AROUND + row.kept - row.middle
    start, stop = columns.written[i, OWN_ID, 0], columns.written[i, OWN_ID, 1]
    if start >= 0 and columns.data[start] != NULL[0]:
        row.size += stop - start
    table.counters.written = row.stop


@kernel
def _put_kept(out: np.ndarray, at: int, frame: Frame, columns: Given, i: int) -> int:
    """Write the kept fields of record i."""
    if columns.written.shape[1] > 1:
        if columns.data[columns.written[i, OWN_KEPT, 0]] == NULL[0]:
            return at
        return _put_span(out, _put_all(out, at, _KEEP), columns, i, OWN_KEPT)
    begin, fields = 0, columns.kept.shape[1]
    if fields and columns.kept[i, 0, 0] == NO_FIELDS[0]:
        fields = 0
    for k in range(fields):
        if k == 0:
            at = _put_all(out, at, _KEEP)
            out[at] = 0x7B
            at += 1
        if columns.kept[i, k, 0] >= 0:
            if out[at - 1] != 0x7B:
                out[at] = 0x2C
                at += 1
            at = _put(out, at, frame.names, begin, frame.name_ends[k])
            at = _put(out, at, columns.data, columns.kept[i, k, 0], columns.kept[i, k, 1])
        begin = frame.name_ends[k]
    if fields:
        out[at] = 0x7D
        at += 1
    return at


@kernel
def put_values(table: Table, seq: int, values: np.ndarray, begin: int, end: int) -> None:
    """Write down the values of the holes of the record that was written down last."""
    row = row_of(table, seq)
    row.stop = _put(table.letters, table.counters.written, values, begin, end)
    row.size += row.stop - row.kept
    table.counters.written = row.stop


@kernel
def _can_be_written(line: Any) -> bool:
    """Whether numbers are small enough to be written; NaN is, where something is not told.

    Probabilities are, unless somebody has tampered with a state.
    """
    largest = max(abs(line.probability), abs(line.new_probability))
    if not (largest < LARGEST and abs(line.log_predictive) < LARGEST and abs(line.novelty) < LARGEST):
        return False
    if abs(line.lasting_probability) >= LARGEST or abs(line.stability) >= LARGEST:
        return False
    return not (abs(line.confidence) >= LARGEST or abs(line.confidence_labels) >= LARGEST)


@kernel
def _put_member(out: np.ndarray, at: int, name: np.ndarray, number: float) -> int:
    return _put_number(out, _put_all(out, at, name), number)


@kernel
def _put_told(out: np.ndarray, at: int, name: np.ndarray, number: float) -> int:
    """Write a member, unless it is NaN."""
    return at if math.isnan(number) else _put_member(out, at, name, number)


@kernel
def _put_numbers(out: np.ndarray, at: int, line: Any) -> int:
    """Write what an answer says of a record."""
    at = _put_whole(out, _put_all(out, at, _CLUSTER), line.label)
    at = _put_member(out, at, _PROBABILITY, line.probability)
    at = _put_member(out, at, _NEW_PROBABILITY, line.new_probability)
    at = _put_told(out, at, _LASTING, line.lasting_probability)
    at = _put_told(out, at, _STABILITY, line.stability)
    if not math.isnan(line.confidence):
        at = _put_member(out, at, _CONFIDENCE, line.confidence)
        at = _put_whole(out, _put_all(out, at, _LABELS), int(line.confidence_labels))
    at = _put_all(out, _put_all(out, at, _NEW), _TRUE if line.founded else _FALSE)
    at = _put_all(out, at, _LINK)
    at = _put_all(out, at, NULL) if line.link < 0 else _put_whole(out, at, line.link)
    at = _put_member(out, at, _LOG_PREDICTIVE, line.log_predictive)
    at = _put_member(out, at, _NOVELTY, line.novelty)
    return _put_whole(out, _put_all(out, at, _REVISION), line.revision)


@kernel
def _put_answer(
    out: np.ndarray, at: int, letters: np.ndarray, templates: Templates, line: Any, span: np.ndarray
) -> int:
    """Write an answer up to its end, and note where its parts stand."""
    at = _put_whole(out, _put_all(out, at, _SEQ), line.seq)
    offset = at - line.start
    span[ID, 0], span[ID, 1] = at + _ID.shape[0], line.named + offset
    span[POSITION, 0], span[POSITION, 1] = span[ID, 1] + _POSITION.shape[0], line.placed + offset
    at = _put_numbers(out, _put(out, at, letters, line.start, line.middle), line)
    if line.kept > line.middle:
        span[KEPT, 0] = at + _KEEP.shape[0]
        at = span[KEPT, 1] = _put(out, at, letters, line.middle, line.kept)
    if line.template >= 0:
        begin = templates.ends[line.template - 1] if line.template else 0
        span[TEMPLATE, 0] = at + _TEMPLATE.shape[0]
        at = span[TEMPLATE, 1] = _put(out, at, templates.letters, begin, templates.ends[line.template])
    if line.stop > line.kept:
        span[PARAMS, 0] = at + _PARAMS.shape[0]
        at = span[PARAMS, 1] = _put(out, at, letters, line.kept, line.stop)
    return at


@kernel
def _most_bytes(templates: Templates, report: Report) -> int:
    """How many bytes lines take at most."""
    found = 0
    for i in range(report.counters.lines):
        line = report.lines[i]
        found += BESIDE + line.stop - line.start
        if line.template >= 0:
            found += templates.ends[line.template] - (
                templates.ends[line.template - 1] if line.template else 0
            )
    return found


@kernel
def write_lines(table: Table, templates: Templates, report: Report) -> None:
    """Write what is announced as lines of JSON, where there is room for it."""
    at, out = 0, report.out
    report.counters.bytes = _most_bytes(templates, report)
    if report.counters.bytes > out.shape[0]:
        return
    for i in range(report.counters.lines):
        line, span = report.lines[i], report.spans[i]
        span[:] = -1
        span[WHOLE, 0] = at
        if line.revision < 0:
            at = _put_whole(out, _put_all(out, at, _FINAL), line.seq)
        elif _can_be_written(line):
            at = _put_answer(out, at, table.letters, templates, line, span)
        else:
            report.counters.bytes = -1
            return
        out[at], out[at + 1] = 0x7D, 0x0A
        at += 2
        span[WHOLE, 1] = at
    report.counters.bytes = at
