"""What becomes of answers that were announced: records that one change has moved from a story to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.alerts.outbox import MovedRecord, Notification
from streamdp.engine import Engine
from streamdp.records import KEPT, AnswerRows, Answers, Event
from streamdp.records.answer_rows import answer_rows
from streamdp.story.titles import short

RECORDS = 20
"""Records of a change that are told one by one."""

TITLES = 10_000
"""Stories whose title, or founder, is remembered."""

VALUES, LONGEST = 10, 40
"""Records are counted by a kept field of so few values at most, of so few characters each."""

Texts = Callable[[Sequence[int]], Mapping[int, str]]
"""What records of these numbers say, as far as that is known."""


Change = tuple[int, int, int]
"""The record that has caused a change, the label before, and the one since."""


class Changes:
    """Groups the revisions of a stream by what has caused them; the same however answers come in batches."""

    def __init__(self) -> None:
        self._titles: dict[int, str] = {}
        self._founders: dict[int, int] = {}
        self._promised, self._seq, self._time, self._retain = 0.0, -1, float("nan"), 0

    def begin(self, engine: Engine) -> None:
        """Go on from where an engine is."""
        self._titles, self._founders, self._promised = engine.titles(), engine.founders(), engine.promised
        times, self._seq, self._retain = engine.lately()[1], engine.seq - 1, engine.settings.retain
        self._time = float("nan") if times is None or not len(times) else float(times[-1])

    def of(self, answers: Answers, muted: Collection[int], texts: Texts) -> Iterator[Notification]:
        """A message for each change, in order; ``alert`` and ``at`` are not filled in."""
        rows = answer_rows(answers.lines)
        numbers = rows.rows
        first = numbers["revision"] == 0
        seqs = np.concatenate([[self._seq], numbers["seq"][first]])
        times = np.concatenate([[self._time], numbers["time"][first]])
        unstable = np.nan_to_num(1.0 - numbers["stability"][first])
        promised = np.cumsum(np.concatenate([[self._promised], unstable]))
        caused_by = np.cumsum(first)
        found = dict[Change, list[int]]()
        moved = np.flatnonzero(~first & (numbers["was"] >= 0) & (numbers["was"] != numbers["label"]))
        columns = seqs[caused_by[moved]], numbers["was"][moved], numbers["label"][moved], moved
        for by, was, label, i in zip(*(column.tolist() for column in columns), strict=True):
            if was not in muted:
                found.setdefault((by, was, label), []).append(i)
        called = self._called(found, answers.events, rows, seqs[caused_by])
        wanted = [seq for names in called for seq in names if isinstance(seq, int) and seq >= 0]
        wanted += [seq for each in found.values() for seq in numbers["seq"][each[:RECORDS]].tolist()]
        told = texts(wanted)
        splits = {(each.seq, each.other, each.cluster) for each in answers.events if each.event == "split"}
        for (change, places), names in zip(found.items(), called, strict=True):
            at = caused_by[places[0]]
            yield _message(
                change,
                rows[np.array(places)],
                told,
                [name if isinstance(name, str) else short(told.get(name, "")) for name in names],
                change in splits,
                time=None if times[at] != times[at] else float(times[at]),
                expected=round(100 * float(promised[at]) / (change[0] + 1), 2),
            )
        self._promised, self._seq, self._time = float(promised[-1]), int(seqs[-1]), float(times[-1])

    def _called(
        self, changes: Iterable[Change], events: Sequence[Event], rows: AnswerRows, caused_by: np.ndarray
    ) -> list[list[str | int]]:
        """The titles of both stories at each change, or the records that founded them; -1 for neither."""
        known: list[tuple[int, int, str | int]] = []
        for event in events:
            title = event.title if isinstance(event.title, str) else event.template
            if isinstance(title, str):
                known.append((event.seq, event.cluster, short(title)))
        founded = rows.rows["founded"] == 1
        founders = caused_by[founded], rows.rows["label"][founded], rows.rows["seq"][founded]
        known += zip(*(column.tolist() for column in founders), strict=True)
        known.sort(key=lambda each: each[0])
        at, found = 0, list[list[str | int]]()
        for by, *labels in [*changes, (1 << 62, 0, 0)]:
            while at < len(known) and known[at][0] <= by:
                _, label, name = known[at]
                held: dict[int, Any] = self._titles if isinstance(name, str) else self._founders
                held.pop(label, None)
                held[label] = name
                if len(held) > TITLES:
                    del held[next(iter(held))]
                at += 1
            oldest = by - self._retain
            founders_of = [seq if (seq := self._founders.get(label, -1)) > oldest else -1 for label in labels]
            found.append(
                [self._titles.get(label) or seq for label, seq in zip(labels, founders_of, strict=True)]
            )
        return found[:-1]


def _message(
    change: Change,
    rows: AnswerRows,
    texts: Mapping[int, str],
    titles: Sequence[str],
    split: bool,
    **more: Any,
) -> Notification:
    """What is told of a change. A story that was split off just now is called by the first of its records."""
    by, was, label = change
    kept = [msgspec.json.decode(each) if each else {} for each in rows.written(KEPT)]
    columns = *rows.numbers("seq", "probability", "revision"), rows.ids(), rows.times(), kept
    records = [
        MovedRecord(
            seq=seq,
            id=name,
            time=time,
            text=short(texts.get(seq, ""), 300),
            keep={field: _told(value) for field, value in fields.items()},
            probability=probability,
            revision=revision,
        )
        for seq, probability, revision, name, time, fields in list(zip(*columns, strict=True))[:RECORDS]
    ]
    return Notification(
        alert="",
        key=f"revised:{records[0].seq}.{records[0].revision}@{by}",
        event="revised",
        at=0.0,
        story=was,
        title=titles[0],
        other=label,
        other_title=titles[1] or (short(records[0].text) if split else ""),
        split=split,
        size=len(rows),
        seq=by,
        probability=round(float(rows.rows["probability"].mean()), 4),
        sources=_sources(kept),
        records=records,
        **more,
    )


def _told(value: Any) -> Any:
    """A kept value in bounded length."""
    if isinstance(value, bool | int | float):
        return value
    return short(value if isinstance(value, str) else msgspec.json.encode(value).decode(), 300)


def _sources(kept: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How many records have each value of a kept field, the most frequent first; of fields of few values."""
    found = {}
    for field in dict.fromkeys(name for fields in kept for name in fields):
        counts = Counter(str(_told(fields[field])) for fields in kept if fields.get(field) is not None)
        if 0 < len(counts) <= VALUES and max(map(len, counts)) <= LONGEST:
            found[field] = dict(counts.most_common())
    return found
