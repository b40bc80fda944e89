"""What happens as records are written down: answers are given, revised, and become final.

For each record: its answer is reported, then those that it has revised, then what is final behind it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from streamdp.beam.data.state import ANSWER, REVISION
from streamdp.kernels.jit import entry, kernel
from streamdp.kernels.rows import new_rows
from streamdp.ledger.table import Table, move, put, row_of, to_digits
from streamdp.ledger.written import Frame, Report, Templates, put_values, take_over, write_lines
from streamdp.records.columns import Given

FINAL_EVERY = 100
"""Records between two finality lines."""

NO_ANSWERS, NO_REVISIONS = new_rows(0, ANSWER), new_rows(0, REVISION)


class Modes(NamedTuple):
    """How answers are given: for how many records they stay open, in how many bytes, with links, and when."""

    open_for: int
    most_bytes: int
    linked: bool
    final_only: bool


@kernel
def _add_line(report: Report, row: Any) -> None:
    report.lines[report.counters.lines] = row
    report.counters.lines += 1


@kernel
def _sure(found: np.ndarray, i: int) -> tuple[float, float]:
    """Confidence and its number of labels; NaN where there is none."""
    if i >= found.shape[0]:
        return math.nan, math.nan
    return found[i, 0], found[i, 1]


@kernel
def _revise(table: Table, report: Report, revision: Any, sure: np.ndarray, r: int, modes: Modes) -> int:
    """Give a record another label, and report it if its answer is open; which label it had."""
    before = move(table, revision)
    if revision.seq < table.counters.begin:
        return before  # its answer is final, or was given elsewhere: nobody is told
    row = row_of(table, revision.seq)
    report.counters.revised += 1
    row.link = revision.link if modes.linked else -1
    row.was = -1 if modes.final_only else before
    row.probability = to_digits(revision.probability)
    row.confidence, row.confidence_labels = _sure(sure, r)
    row.revision += 1
    if not modes.final_only:
        _add_line(report, row)
    return before


@kernel
def _close(table: Table, report: Report, decided: int, modes: Modes) -> None:
    """Answers up to one are final, and the oldest of those that are too many bytes."""
    counters = table.counters
    while counters.begin < counters.seq:
        oldest = row_of(table, counters.begin)
        if oldest.seq > decided:
            if counters.bytes <= modes.most_bytes:
                break
            counters.closed = oldest.seq
            counters.early += 1
        counters.bytes -= oldest.size
        if modes.final_only:
            _add_line(report, oldest)
        counters.begin += 1
    decided = max(decided, counters.closed)
    if counters.seq % FINAL_EVERY == 0 and decided > counters.final:
        counters.final = decided
        if not modes.final_only:
            final = report.lines[report.counters.lines]
            final.seq, final.revision, final.start, final.stop, final.template = decided, -1, 0, 0, -1
            report.counters.lines += 1


@entry
def put_all(
    table: Table,
    frame: Frame,
    templates: Templates,
    report: Report,
    modes: Modes,
    data: np.ndarray,
    times: np.ndarray,
    kept: np.ndarray,
    places: np.ndarray,
    written: np.ndarray,
    answers: np.ndarray,
    sizes: np.ndarray,
    sure: np.ndarray,
    shown: np.ndarray,
    values: np.ndarray,
    ends: np.ndarray,
    revisions: np.ndarray,
    again: np.ndarray,
    novelties: np.ndarray,
    before: np.ndarray,
) -> None:
    """Write records down by what a search says of them, with the ``revisions`` that they brought.

    ``data`` to ``written`` are columns of theirs (``Given``). ``sure`` and ``again`` are the confidence in
    answers and in revisions, with its number of labels, shapes (n, 2) and (m, 2). Of lines of logs, ``shown``
    are their templates, and ``values`` those of holes, which end at ``ends``. Others have none of these.
    Filled in are the ``novelties`` of the records, shape (n,), and the labels ``before`` the revisions (m,).
    """
    columns = Given(data, times, kept, places, written)
    r = 0
    for i in range(sizes.shape[0]):
        seq = table.counters.seq
        put(table, seq, answers[i], sizes[i])
        take_over(table, frame, columns, i, seq)
        row = row_of(table, seq)
        novelties[i] = row.novelty
        row.confidence, row.confidence_labels = _sure(sure, i)
        if not modes.linked:
            row.link = -1
        if shown.shape[0]:
            row.template = shown[i]
        if ends.shape[0]:
            put_values(table, seq, values, ends[i - 1] if i else 0, ends[i])
        table.counters.bytes += row.size
        if not modes.final_only:
            _add_line(report, row)
        while r < revisions.shape[0] and revisions[r].by == seq:
            before[r] = _revise(table, report, revisions[r], again, r, modes)
            r += 1
        _close(table, report, min(answers[i].decided, seq - modes.open_for), modes)
        report.stops[i] = report.counters.lines
    for n in range(r, revisions.shape[0]):
        before[n] = _revise(table, report, revisions[n], again, n, modes)
    if sizes.shape[0]:
        report.stops[sizes.shape[0] - 1] = report.counters.lines
    write_lines(table, templates, report)


@entry
def write_again(table: Table, templates: Templates, report: Report) -> None:
    """Write what is announced, now that there is room for it."""
    write_lines(table, templates, report)
