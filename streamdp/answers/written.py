"""Answers as lines of JSON, as kernels write them: no object for each.

What a line takes over from its record (id, position, time, kept fields) is written once, when the answer is
first given, and opened as long as the answer may change.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import Counters, of, one, row_type, rows
from streamdp.ledger.table import to_digits
from streamdp.records import ID, KEPT, PARAMS, POSITION, TEMPLATE, WHOLE
from streamdp.records.columns import LARGEST, NO_FIELDS, Arrays
from streamdp.settings.memory import AROUND

LINE = row_type(
    "seq label founded link revision template start named placed middle kept stop size",
    "time probability new_probability lasting_probability stability confidence confidence_labels"
    " log_predictive novelty",
)
"""An answer. What it has from its record stands in ``letters`` from start on: its id to named, position to
placed, time to middle, kept fields to kept, the values of a template's holes to stop; ``template`` is which
of :class:`Templates` it has, -1 for none. It counts for ``size`` bytes. The probability of a cluster that
lasts, stability and confidence may be NaN: not told. Finality is a line of revision -1, with the number of
the last record in place of its own.
"""

FINAL_EVERY = 100
"""Records between two finality lines."""


class Frame(NamedTuple):
    """What stands between the parts that lines have from their records, each end in bytes."""

    heads: np.ndarray  # uint8[...] what comes before each number of a position
    head_ends: np.ndarray  # int64[numbers]
    names: np.ndarray  # uint8[...] the names of kept fields in JSON, each with its colon
    name_ends: np.ndarray  # int64[fields]


class Open(NamedTuple):
    """Lines of answers that may change, and the letters that they have from their records.

    The lines are those of consecutive records, from ``begin`` to ``used``; those before are final. They count
    for ``bytes``, and ``early`` answers up to ``closed`` are final because that was too much.
    """

    counters: Annotated[Counters, one("begin used written final bytes early closed", final=-1, closed=-1)]
    lines: Annotated[np.ndarray, rows(LINE, "lines")]
    letters: Annotated[np.ndarray, of(np.uint8, "letters")]


class Templates(NamedTuple):
    """How templates of logs stand in lines, one after the other, each end in bytes."""

    letters: np.ndarray  # uint8[...]
    ends: np.ndarray  # int64[templates]


class Report(NamedTuple):
    """What is announced: lines, and how many answers are ``revised``."""

    counters: Annotated[Counters, one("lines revised")]
    lines: Annotated[np.ndarray, rows(LINE, "lines")]


def _bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


_SEQ, _ID, _POSITION, _TIME, _NULL = map(_bytes, ('{"seq":', ',"id":', ',"position":', ',"time":', "null"))
_KEEP, _CLUSTER, _PROBABILITY = map(_bytes, (',"keep":{', ',"cluster":', ',"probability":'))
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
        return _put_all(out, at, _NULL)
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
def _put_given(out: np.ndarray, at: int, frame: Frame, columns: Arrays, i: int, row: Any) -> int:
    """Write id, position and time of record i, and into the row where they are."""
    row.start = at
    at = _put_all(out, at, _ID)
    if columns.ids[i, 0] < 0:
        at = _put_all(out, at, _NULL)
    else:
        at = _put(out, at, columns.data, columns.ids[i, 0], columns.ids[i, 1])
    row.named = at
    at = _put_all(out, at, _POSITION)
    begin = 0
    for k in range(columns.places.shape[1]):
        at = _put(out, at, frame.heads, begin, frame.head_ends[k])
        at = _put_whole(out, at, columns.places[i, k])
        begin = frame.head_ends[k]
    out[at] = 0x7D
    row.placed, row.time = at + 1, to_digits(columns.times[i])
    row.middle = _put_number(out, _put_all(out, at + 1, _TIME), columns.times[i])
    return int(row.middle)


@entry
def take_over(frame: Frame, columns: Arrays, opened: Open, values: np.ndarray, ends: np.ndarray) -> None:
    """Write down what the lines that were added last have from their records.

    ``values`` are the values of holes, as lines have them, one line after the other, and ``ends`` where each
    ends.
    """
    n = columns.ends.shape[0]
    first, at, out = opened.counters.used - n, opened.counters.written, opened.letters
    for i in range(n):
        row = opened.lines[first + i]
        at = _put_given(out, at, frame, columns, i, row)
        row.size = AROUND + columns.ids[i, 1] - columns.ids[i, 0]
        begin, fields = 0, columns.kept.shape[1]
        if fields and columns.kept[i, 0, 0] == NO_FIELDS[0]:
            fields = 0
        for k in range(fields):
            if k == 0:
                at = _put_all(out, at, _KEEP)
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
        row.kept = at
        at = _put(out, at, values, ends[i - 1] if i else 0, ends[i])
        row.stop = at
        row.size += row.stop - row.middle
    opened.counters.written = at


@kernel
def _are_shares(line: Any) -> bool:
    """Whether probabilities are as small as they are; a state that was tampered with may have others.

    That of a cluster that lasts, stability and confidence may be NaN.
    """
    largest = max(abs(line.probability), abs(line.new_probability))
    if abs(line.lasting_probability) >= LARGEST or abs(line.stability) >= LARGEST:
        return False
    if abs(line.confidence) >= LARGEST or abs(line.confidence_labels) >= LARGEST:
        return False
    return bool(largest < LARGEST)


@entry
def write_lines(
    opened: Open,
    templates: Templates,
    lines: np.ndarray,
    out: np.ndarray,
    spans: np.ndarray,
    size: np.ndarray,
) -> None:
    """Write lines of JSON; ``size[0]`` is how many bytes they take, -1 where numbers are too large for it.

    ``spans`` are those of :class:`~streamdp.records.answer_rows.AnswerRows`, in ``out``.
    """
    at = 0
    for i in range(lines.shape[0]):
        line, span = lines[i], spans[i]
        span[:] = -1
        span[WHOLE, 0] = at
        if line.revision < 0:
            at = _put_all(out, at, _FINAL)
            at = _put_whole(out, at, line.seq)
        else:
            if not (abs(line.log_predictive) < LARGEST and abs(line.novelty) < LARGEST) or not _are_shares(
                line
            ):
                size[0] = -1
                return
            at = _put_all(out, at, _SEQ)
            at = _put_whole(out, at, line.seq)
            offset = at - line.start
            span[ID, 0], span[ID, 1] = at + _ID.shape[0], line.named + offset
            span[POSITION, 0], span[POSITION, 1] = span[ID, 1] + _POSITION.shape[0], line.placed + offset
            at = _put(out, at, opened.letters, line.start, line.middle)
            at = _put_all(out, at, _CLUSTER)
            at = _put_whole(out, at, line.label)
            at = _put_all(out, at, _PROBABILITY)
            at = _put_number(out, at, line.probability)
            at = _put_all(out, at, _NEW_PROBABILITY)
            at = _put_number(out, at, line.new_probability)
            if not math.isnan(line.lasting_probability):
                at = _put_all(out, at, _LASTING)
                at = _put_number(out, at, line.lasting_probability)
            if not math.isnan(line.stability):
                at = _put_all(out, at, _STABILITY)
                at = _put_number(out, at, line.stability)
            if not math.isnan(line.confidence):
                at = _put_all(out, at, _CONFIDENCE)
                at = _put_number(out, at, line.confidence)
                at = _put_all(out, at, _LABELS)
                at = _put_whole(out, at, int(line.confidence_labels))
            at = _put_all(out, at, _NEW)
            at = _put_all(out, at, _TRUE if line.founded else _FALSE)
            at = _put_all(out, at, _LINK)
            at = _put_all(out, at, _NULL) if line.link < 0 else _put_whole(out, at, line.link)
            at = _put_all(out, at, _LOG_PREDICTIVE)
            at = _put_number(out, at, line.log_predictive)
            at = _put_all(out, at, _NOVELTY)
            at = _put_number(out, at, line.novelty)
            at = _put_all(out, at, _REVISION)
            at = _put_whole(out, at, line.revision)
            if line.kept > line.middle:
                span[KEPT, 0] = at + _KEEP.shape[0] - 1
                at = span[KEPT, 1] = _put(out, at, opened.letters, line.middle, line.kept)
            if line.template >= 0:
                begin = templates.ends[line.template - 1] if line.template else 0
                span[TEMPLATE, 0] = at + _TEMPLATE.shape[0]
                at = _put(out, at, templates.letters, begin, templates.ends[line.template])
                span[TEMPLATE, 1] = at
            if line.stop > line.kept:
                span[PARAMS, 0] = at + _PARAMS.shape[0]
                at = span[PARAMS, 1] = _put(out, at, opened.letters, line.kept, line.stop)
        out[at], out[at + 1] = 0x7D, 0x0A
        at += 2
        span[WHOLE, 1] = at
    size[0] = at


@kernel
def _add_line(report: Report, line: Any) -> None:
    report.lines[report.counters.lines] = line
    report.counters.lines += 1


@kernel
def _revise(
    opened: Open, report: Report, revision: Any, confident: np.ndarray, linked: bool, final_only: bool
) -> None:
    begin, used = opened.counters.begin, opened.counters.used
    if begin == used or not 0 <= revision.seq - opened.lines[begin].seq < used - begin:
        return  # its answer is final, or was given elsewhere: nobody is told
    line = opened.lines[begin + revision.seq - opened.lines[begin].seq]
    report.counters.revised += 1
    line.label, line.founded = revision.label, revision.founded
    line.link = revision.link if linked else -1
    line.probability = to_digits(revision.probability)
    line.confidence, line.confidence_labels = confident[0], confident[1]
    line.revision += 1
    if not final_only:
        _add_line(report, line)


@entry
def announce(
    opened: Open,
    report: Report,
    revisions: np.ndarray,
    confident: np.ndarray,
    through: np.ndarray,
    open_for: int,
    most_bytes: int,
    linked: bool,
    final_only: bool,
) -> None:
    """Report the answers that were added last, each with the revisions that it brought, and what is final.

    ``confident`` is what is told of the revisions, shape (m, 2). ``through`` is the last record that is
    decided behind each. What is more than ``most_bytes`` is final, too. ``final_only`` reports each answer
    once, when it is final.
    """
    counters = opened.counters
    r, first = 0, counters.used - through.shape[0]
    for i in range(through.shape[0]):
        line = opened.lines[first + i]
        counters.bytes += line.size
        if not final_only:
            _add_line(report, line)
        while r < revisions.shape[0] and revisions[r].by == line.seq:
            _revise(opened, report, revisions[r], confident[r], linked, final_only)
            r += 1
        decided = min(through[i], line.seq - open_for)
        while counters.begin < counters.used:
            oldest = opened.lines[counters.begin]
            if oldest.seq > decided:
                if counters.bytes <= most_bytes:
                    break
                counters.closed = oldest.seq
                counters.early += 1
            counters.bytes -= oldest.size
            if final_only:
                _add_line(report, oldest)
            counters.begin += 1
        decided = max(decided, counters.closed)
        if (line.seq + 1) % FINAL_EVERY == 0 and decided > counters.final:
            counters.final = decided
            if not final_only:
                final = report.lines[report.counters.lines]
                final.seq, final.revision, final.start, final.stop, final.template = decided, -1, 0, 0, -1
                report.counters.lines += 1


@entry
def revise(
    opened: Open, report: Report, revisions: np.ndarray, confident: np.ndarray, linked: bool, final_only: bool
) -> None:
    """Report revisions of answers; ``confident`` is what is told of them, shape (m, 2)."""
    for r in range(revisions.shape[0]):
        _revise(opened, report, revisions[r], confident[r], linked, final_only)
