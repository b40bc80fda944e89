"""The front of a stream: records in order of arrival become records in order of time."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from streamdp.encode.order import Ready, refuse
from streamdp.records import Answers, Record, Reject
from streamdp.records.columns import Texts
from streamdp.streams.stream import Stream

ONE_BY_ONE = 16
"""Texts that are put in order one by one, before it is asked again how many pass; then twice as many."""


def receive(stream: Stream, records: Iterable[Record | Reject], answers: Answers) -> None:
    """Put records in order, and let the stream take those whose turn has come."""
    ready: Ready = []
    needs_time = stream.settings.distance == "seconds"
    for record in records:
        if isinstance(record, Reject):
            ready.append((0.0, record))
        elif needs_time and record.time is None:
            detail = "it has no time, and distance is measured in seconds"
            ready.append((0.0, refuse(record, "missing_time", detail)))
        else:
            stream.order.push(record, ready)
    stream.advance(ready, answers)


def receive_texts(stream: Stream, texts: Texts, answers: Answers) -> None:
    """Take texts side by side as far as they pass as they come, one by one where they do not."""
    at, some = 0, ONE_BY_ONE
    while at < len(texts):
        rest = texts[at:]
        times = rest.columns.times
        if stream.settings.distance == "seconds" and np.isnan(times).any():
            times = times[: int(np.isnan(times).argmax())]
        placed = stream.order.pass_through(times, rest.arrivals)
        if len(placed):
            stream.advance_texts(rest[: len(placed)], placed, answers)
            at += len(placed)
        else:
            receive(stream, rest[:some].all(), answers)
            at, some = at + some, 2 * some
