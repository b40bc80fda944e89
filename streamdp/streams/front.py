"""The front of a stream: records in order of arrival become records in order of time."""

from __future__ import annotations

from operator import is_, itemgetter

import numpy as np

from streamdp.encode.order import Ready, placed, refuse
from streamdp.records import Answers, Reject
from streamdp.records.columns import Columns
from streamdp.streams.stream import Stream

FEW = 8
"""Records side by side that are put in order sooner one by one."""

ONE_BY_ONE = 16
"""Records that are put in order one by one, before it is asked again how many pass; then twice as many."""


def receive(stream: Stream, given: Columns, answers: Answers) -> None:
    """Take records together as far as they pass as they come, one by one where they do not."""
    at, some, needs_time = 0, ONE_BY_ONE, stream.settings.distance == "seconds"
    if len(given) < FEW:
        _put_in_order(stream, given, answers, needs_time=needs_time)
        return
    while at < len(given):
        rest = given[at:]
        times = rest.columns.times
        if needs_time and np.isnan(times).any():
            times = times[: int(np.isnan(times).argmax())]
        times = stream.order.pass_through(times, rest.arrivals)
        if len(times):
            stream.advance(rest[: len(times)], times, answers)
            at += len(times)
        else:
            _put_in_order(stream, rest[:some], answers, needs_time=needs_time)
            at, some = at + some, 2 * some


def _put_in_order(stream: Stream, given: Columns, answers: Answers, *, needs_time: bool) -> None:
    """Put records in order, and let the stream take those whose turn has come."""
    ready: Ready = []
    came = given.all()
    for record in came:
        if isinstance(record, Reject):
            ready.append((0.0, record))
        elif needs_time and record.time is None:
            detail = "it has no time, and distance is measured in seconds"
            ready.append((0.0, refuse(record, "missing_time", detail)))
        else:
            stream.order.push(record, ready)
    if len(ready) == len(came) and all(map(is_, map(itemgetter(1), ready), came)):  # as nearly always
        times = [time for time, record in ready if not isinstance(record, Reject)]
        stream.advance(given, np.array(times, float), answers)
    else:
        stream.advance(*placed(ready), answers)
