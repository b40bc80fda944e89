"""Answers that may still change, held as the lines that they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, repeat

import msgspec
import numpy as np

from streamdp.answers.assignments import chance_of, counted
from streamdp.answers.written import (
    BESIDE,
    FINAL_EVERY,
    LINE,
    Frame,
    Open,
    Report,
    Templates,
    announce,
    revise,
    take_over,
    write_lines,
)
from streamdp.kernels.jit import Bound
from streamdp.kernels.rows import longer, made
from streamdp.ledger.numbers import NUMBERS
from streamdp.records import SPANS, AnswerRows, Assignment, Final, Lines, Record
from streamdp.records.columns import ENCODER, Columns
from streamdp.settings.memory import AROUND

_encode = ENCODER.encode

Told = Callable[[int, float], tuple[float, float]]
"""Confidence in a cluster at a probability, and its number of labels."""

Refill = Callable[[str, list[str]], tuple[str, list[str]]]
"""The template and the values of holes of a line that had these before."""


class OpenLines:
    """Answers to consecutive records that may still change, as lines.

    ``linked`` says whether they have links, ``final_only`` that each is reported once, when it is final, and
    ``most_bytes`` for how many they may count.
    """

    def __init__(self, *, linked: bool, final_only: bool, most_bytes: int) -> None:
        self._open = made(Open, {"lines": 64, "letters": 4096})
        self._templates = HeldTemplates()
        self._most_bytes = most_bytes
        self._report = made(Report, {"lines": 64})
        self._linked, self._final_only = linked, final_only
        self._take_over, self._write = Bound(take_over), Bound(write_lines)
        self._announce, self._revise = Bound(announce), Bound(revise)
        self._framed: tuple[Sequence[bytes], Sequence[str]] = [], ()
        self._frame = _frame_of(*self._framed)

    def __len__(self) -> int:
        return int(self._open.counters.used - self._open.counters.begin)

    @property
    def final(self) -> int:
        """Answers up to this one are reported as final."""
        return int(self._open.counters.final)

    @property
    def closed(self) -> tuple[int, int]:
        """How many answers were final early, for having been too many bytes, and the last of them."""
        return int(self._open.counters.early), int(self._open.counters.closed)

    def go_on(self, answers: Sequence[Assignment], final: int, closed: tuple[int, int]) -> None:
        """Begin with answers that were announced before, when so much was final."""
        self.add_objects(answers)
        counters = self._open.counters
        counters.final, (counters.early, counters.closed) = final, closed
        counters.bytes = self._open.lines["size"][: counters.used].sum()

    def add(
        self,
        first: int,
        answers: np.ndarray,
        numbers: np.ndarray,
        records: Columns,
        templates: Sequence[bytes] = (),
        values: Sequence[bytes] = (),
    ) -> None:
        """Add the answers to records, numbered from ``first``.

        ``answers`` are the beam's; ``numbers`` what is announced of them, shape (8, n). Of lines of logs,
        ``templates`` and the ``values`` of their holes are as lines have them.
        """
        n = len(records)
        if records.objects is not None:
            links = answers["link"].tolist() if self._linked else repeat(-1)
            own = range(first, first + n), answers["label"].tolist(), answers["founded"].tolist(), links
            written = map(_written, records.objects, values or repeat(b""))
            figures = numbers[_IN_LINES].T.tolist()
            lines = self._add_written(zip(*own, repeat(0), strict=False), written, figures)
        else:
            held, value_ends = _joined(values) if values else (_NOTHING, np.zeros(n, np.int64))
            lines = self._take_over_columns(records, held, value_ends)
            lines["seq"] = np.arange(first, first + n)
            lines["label"], lines["founded"] = answers["label"], answers["founded"]
            lines["link"] = answers["link"] if self._linked else -1
            lines["revision"], lines["template"] = 0, -1
            for name, number in zip(NUMBERS, numbers, strict=True):
                lines[name] = number
        if templates:  # after there is room: making it forgets those that no open line has
            lines["template"] = self._templates.numbers(templates)

    def _take_over_columns(self, records: Columns, values: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """New lines, with what they have from records that came as columns, and from their ``values``."""
        framed = records.source.heads(), records.keep
        if framed != self._framed:  # seldom: kernels need not be told of another frame for each batch
            self._framed, self._frame = framed, _frame_of(*framed)
        n, columns = len(records), records.columns
        spans = int((columns.ids[:, 1] - columns.ids[:, 0]).sum() + np.diff(columns.kept).sum())
        beside = len(self._frame.heads) + len(self._frame.names) + 24 * columns.places.shape[1]
        lines = self._added(n, spans + n * (beside + columns.kept.shape[1] + BESIDE) + len(values))
        self._take_over((self._frame, columns, self._open), values, ends)
        return lines

    def _add_written(
        self,
        told: Iterable[tuple[int, ...]],
        written: Iterable[tuple[float, Sequence[bytes]]],
        numbers: Sequence[Sequence[float]],
    ) -> np.ndarray:
        """Add lines without a template one by one; the new lines.

        ``told`` are number, label, whether it is new, link and revision of each; ``written`` the time and the
        parts that :func:`_written` gives, ``numbers`` those of a line, in its order.
        """
        given = [*written]
        letters = b"".join(part for _, parts in given for part in parts)
        lines, counters = self._added(len(given), len(letters)), self._open.counters
        at = int(counters.written)
        self._open.letters[at : at + len(letters)] = np.frombuffer(letters, np.uint8)
        rows = list[tuple[float, ...]]()
        for own, (time, parts), figures in zip(told, given, numbers, strict=False):
            ends = [*accumulate(map(len, parts), initial=at)]
            size = AROUND + ends[-1] - ends[3] + (0 if parts[0] == _NO_ID else len(parts[0]) - _BEFORE_ID)
            rows.append((*own, -1, *ends, size, time, *figures))
            at = ends[-1]
        lines[:] = rows
        counters.written = at
        return lines

    def add_objects(self, answers: Sequence[Assignment]) -> None:
        """Add answers that are objects, one after the other."""
        told = [(a.seq, a.cluster, a.new, -1 if a.link is None else a.link, a.revision) for a in answers]
        params = [b"" if a.params is msgspec.UNSET else as_values(a.params) for a in answers]
        values = ([getattr(a, name) for name in _NUMBERS] for a in answers)
        numbers = [[math.nan if x is msgspec.UNSET else x for x in each] for each in values]
        lines = self._add_written(told, map(_written, answers, params), numbers)
        templates = (answer.template for answer in answers)
        lines["template"] = self._templates.numbers(
            [b"" if template is msgspec.UNSET else as_template(template) for template in templates]
        )

    def _added(self, lines: int, letters: int) -> np.ndarray:
        """New lines; there is room for so many letters."""
        held = self._open
        begin, used, written = map(int, (held.counters.begin, held.counters.used, held.counters.written))
        if used + lines > len(held.lines) or written + letters > len(held.letters):
            kept = held.lines[begin:used]
            start = int(kept["start"].min()) if len(kept) else written
            room = max(len(held.lines), 2 * (len(kept) + lines))
            size = max(len(held.letters), 2 * (written - start + letters))
            self._open = made(Open, {"lines": room, "letters": size})
            self._open.lines[: len(kept)] = kept
            self._open.lines["template"][: len(kept)] = self._templates.keep(kept["template"])
            for name in PLACES:
                self._open.lines[name][: len(kept)] -= start
            self._open.letters[: written - start] = held.letters[start:written]
            counters, used = self._open.counters, len(kept)
            counters[...] = held.counters
            counters.begin, counters.written = 0, written - start
        self._open.counters.used = used + lines
        return self._open.lines[used : used + lines]

    def _room_for(self, lines: int) -> Report:
        """An empty report with room for so much."""
        if lines > len(self._report.lines):
            self._report = made(Report, {"lines": 2 * lines})
        self._report.counters.clear()
        return self._report

    def announce(
        self, revisions: np.ndarray, confident: np.ndarray, through: np.ndarray, open_for: int
    ) -> Report:
        """Report the answers that were added last: see :func:`announce`."""
        n = len(through) + len(revisions) + len(through) // FINAL_EVERY + 1
        report = self._room_for(n + self._final_only * len(self))
        decided, modes = np.ascontiguousarray(through), (self._linked, self._final_only)
        self._announce(
            (self._open, report), revisions, confident, decided, open_for, self._most_bytes, *modes
        )
        return report

    def revise(self, revisions: np.ndarray, confident: np.ndarray) -> Report:
        """Report revisions of answers, and what is told of these."""
        report = self._room_for(len(revisions))
        self._revise((self._open, report), revisions, confident, self._linked, self._final_only)
        return report

    def relabel(
        self, before: int, after: int, template: str, told: Told | None, refill: Refill
    ) -> tuple[Report, list[int]]:
        """Report that all answers of a label have another one, with its template; and whose they are.

        ``told`` is what is told of them then; ``refill`` has the template of those with values of holes.
        """
        counters = self._open.counters
        lines = self._open.lines[counters.begin : counters.used]
        which = np.flatnonzero(lines["label"] == before)
        lines["label"][which], lines["founded"][which] = after, 0
        lines["revision"][which] += 1
        with_values = which[lines["stop"][which] > lines["kept"][which]]
        lines["template"][np.setdiff1d(which, with_values)] = self._templates.numbers([as_template(template)])
        for i in with_values.tolist():
            lines = self._refill(i, refill)
        if told is not None:
            for i in which.tolist():
                lines["confidence"][i], lines["confidence_labels"][i] = told(after, lines["probability"][i])
        report = self._room_for(len(which))
        if not self._final_only:
            report.lines[: len(which)] = lines[which]
            report.counters.lines = len(which)
        return report, lines["seq"][which].tolist()

    def _refill(self, i: int, refill: Refill) -> np.ndarray:
        """Give an open line its template of today, and its values in that; the open lines."""
        begin, held = int(self._open.counters.begin), self._open
        row = held.lines[begin + i]
        start, kept, stop = (int(row[name]) for name in ("start", "kept", "stop"))
        own = self._templates.of(int(row["template"])) + held.letters[kept:stop].tobytes()
        if row["template"] >= 0:
            was = msgspec.json.decode(b"{" + own[1:] + b"}")
            template, values = refill(was["template"], was["params"])
            written = held.letters[start:kept].tobytes() + as_values(values)
            row["template"] = self._templates.numbers([as_template(template)])[0]
            if len(written) != stop - start or written != held.letters[start:stop].tobytes():
                self._added(0, len(written))
                held, begin = self._open, int(self._open.counters.begin)
                row, at = held.lines[begin + i], int(held.counters.written)
                held.letters[at : at + len(written)] = np.frombuffer(written, np.uint8)
                for name in PLACES:
                    row[name] += at - start
                row["stop"] = held.counters.written = at + len(written)
        return held.lines[begin : held.counters.used]

    def write(self, report: Report, lines: Lines) -> None:
        """Append the report to ``lines``, written where numbers are not too large for that."""
        rows = report.lines[: report.counters.lines]
        size = int((rows["stop"] - rows["start"]).sum()) + BESIDE * len(rows)
        size += self._templates.size_of(rows["template"])
        out, length = np.empty(size, np.uint8), np.zeros(1, np.int64)
        spans = np.empty((len(rows), SPANS, 2), np.int64)
        self._write((self._open, self._templates.held), rows, out, spans, length)
        if length[0] < 0:
            lines.extend(self._objects(rows))
        elif len(rows):
            lines.write(AnswerRows(out[: length[0]].tobytes(), rows.copy(), spans))

    def objects(self) -> list[Assignment]:
        """All answers that may change, as objects."""
        counters = self._open.counters
        found = self._objects(self._open.lines[counters.begin : counters.used])
        return [answer for answer in found if isinstance(answer, Assignment)]

    def _objects(self, lines: np.ndarray) -> Iterator[Assignment | Final]:
        letters = self._open.letters.data
        for row in zip(*(lines[name].tolist() for name in _READ), strict=True):
            seq, label, founded, link, revision, template, start, stop, *numbers = row
            if revision < 0:
                yield Final(seq)
                continue
            probability, new_probability, log_predictive, novelty, *chances, sure_by = numbers
            lasting, stability, confidence = map(chance_of, chances)
            given = bytes(letters[start + 1 : stop]) + self._templates.of(template)
            yield Assignment(
                seq=seq,
                cluster=label,
                new=bool(founded),
                link=None if link < 0 else link,
                revision=revision,
                probability=probability,
                new_probability=new_probability,
                lasting_probability=lasting,
                stability=stability,
                confidence=confidence,
                confidence_labels=counted(chance_of(sure_by)),
                log_predictive=log_predictive,
                novelty=novelty,
                **msgspec.json.decode(b"{" + given + b"}"),
            )


_READ = (
    *("seq", "label", "founded", "link", "revision", "template", "start", "stop"),
    *("probability", "new_probability", "log_predictive", "novelty"),
    *("lasting_probability", "stability", "confidence", "confidence_labels"),
)
"""What is read of lines, a column at a time: row by row takes four times as long."""

_NUMBERS = tuple(name for name in LINE.names or () if name in NUMBERS)
"""Those of a line, in its order."""

PLACES = ("start", "named", "placed", "middle", "kept", "stop")
"""What of a line is a place in ``letters``."""

_IN_LINES = [NUMBERS.index(name) for name in _NUMBERS]

_NO_ID, _BEFORE_ID = b',"id":null', len(b',"id":')

_NOTHING = np.frombuffer(b"", np.uint8)  # of the type that values have, for which one kernel serves


class HeldTemplates:
    """Templates as lines have them, each once: a member of an object with its comma."""

    def __init__(self) -> None:
        self.held = Templates(np.zeros(4096, np.uint8), np.zeros(64, np.int64))
        self._known: dict[bytes, int] = {}

    def _make_room(self, templates: int, letters: int) -> None:
        """Room for so many templates, of so many bytes."""
        held = self.held
        if letters > len(held.letters):
            self.held = self.held._replace(letters=longer(held.letters, 2 * letters))
        if templates > len(held.ends):
            self.held = self.held._replace(ends=longer(held.ends, 2 * templates))

    def numbers(self, templates: Sequence[bytes]) -> list[int]:
        """Which each of them is, -1 where it is empty; new ones are held from now on."""
        known = self._known
        for template in templates:
            if template and template not in known:
                number = len(known)
                begin = int(self.held.ends[number - 1]) if number else 0
                end = begin + len(template)
                self._make_room(number + 1, end)
                self.held.letters[begin:end] = np.frombuffer(template, np.uint8)
                self.held.ends[number] = end
                known[template] = number
        return [known.get(template, -1) for template in templates]

    def of(self, number: int) -> bytes:
        """One of them; empty for -1."""
        if number < 0:
            return b""
        begin = int(self.held.ends[number - 1]) if number else 0
        return self.held.letters[begin : self.held.ends[number]].tobytes()

    def size_of(self, numbers: np.ndarray) -> int:
        """How many bytes these have together."""
        held, ends = numbers[numbers >= 0], self.held.ends
        return int(ends[held].sum() - ends[held[held > 0] - 1].sum()) if len(held) else 0

    def keep(self, numbers: np.ndarray) -> np.ndarray:
        """Forget the others where those are many; the numbers of these from now on."""
        used = np.unique(numbers[numbers >= 0])
        if len(self._known) <= 2 * len(used) + 64:
            return numbers
        kept = [self.of(number) for number in used.tolist()]
        self._known.clear()
        self.numbers(kept)
        return np.where(numbers < 0, -1, np.searchsorted(used, numbers))


def as_template(template: str) -> bytes:
    """A template as lines have it."""
    return b',"template":' + msgspec.json.encode(template)


def as_values(values: Sequence[str]) -> bytes:
    """The values of a template's holes as lines have them."""
    return b',"params":' + msgspec.json.encode(values)


def _written(record: Record | Assignment, values: bytes) -> tuple[float, Sequence[bytes]]:
    """The time of a record, and what its line has: id, position, time, kept fields, ``values`` of holes."""
    own = {"id": record.id, "position": record.position, "time": record.time}
    parts = [b',"%b":' % name.encode() + _encode(value) for name, value in own.items()]
    kept = record.keep is not None and record.keep is not msgspec.UNSET
    parts.append(b',"keep":' + _encode(record.keep) if kept else b"")
    return math.nan if record.time is None else record.time, [*parts, values]


def _frame_of(heads: Sequence[bytes], keep: Sequence[str]) -> Frame:
    return Frame(*_joined(heads), *_joined([msgspec.json.encode(name) + b":" for name in keep]))


def _joined(parts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), ends
