"""The ledger: the table of the latest records, their classes, and a few of every cluster to be shown."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.beam.data.state import REVISION
from streamdp.kernels.blocks import places_of
from streamdp.kernels.jit import Bound
from streamdp.kernels.packed import as_type, pack, unpack_all
from streamdp.kernels.rows import made, new_rows, power_of_two
from streamdp.kernels.sound import RECORDS, counters_of, ints_of, narrow, plain_counters, reals_of, require
from streamdp.ledger.confidence import Confidence
from streamdp.ledger.lines import Frames, HeldTemplates, as_member, joined, objects_of
from streamdp.ledger.samples import Samples, lasting_samples, text_of
from streamdp.ledger.step import FINAL_EVERY, NO_ANSWERS, NO_REVISIONS, Modes, put_all, write_again
from streamdp.ledger.table import (
    CELLS,
    EARLY,
    KINDS,
    LASTS_AFTER,
    NUMBERS,
    OF_VECTORS,
    ROW,
    STAYS_AFTER,
    SURE,
    USUAL,
    Table,
    lasting,
)
from streamdp.ledger.written import BESIDE, Report
from streamdp.records import AnswerRows, Assignment, Line
from streamdp.records.columns import NOTHING, Columns
from streamdp.settings.memory import AROUND

FEW = 16
"""Records of which all are tried as samples: choosing those that may stay takes longer."""


NO_SIZES, NO_TEMPLATES, NO_VALUES = np.zeros(0, np.int64), np.zeros(0, np.int64), joined(())

Refill = Callable[[str, list[str]], tuple[str, list[str]]]
"""The template and the values of holes of a line that had these before."""

_ENDS = ("named", "placed", "middle", "kept", "stop")
"""Where the id, position, time, kept fields and values of an open answer end in the letters."""

_PLACES = ("start", *_ENDS)


class Ledger:
    """What is known of the latest records: of the last ``retain``, and of those whose answers are open.

    :meth:`put`, :meth:`move` and :meth:`unite` are all that changes labels. Each returns what there is to
    announce: answers, their revisions, and what is final.

    Parameters
    ----------
    retain
        How many records are remembered, answers that are final among them.
    linked
        Whether answers have links.
    final_only
        Whether each is announced once, when it is final.
    most_bytes
        For how many bytes open answers may count: of more the oldest are final at once.
    truth_field
        The kept field that has the class of a record, None for none.
    texts
        Fields that are texts.
    """

    def __init__(
        self,
        retain: int,
        *,
        linked: bool = False,
        final_only: bool = False,
        most_bytes: int = 1 << 62,
        truth_field: str | None = None,
        texts: Sequence[str] = (),
    ) -> None:
        self.modes = Modes(0, most_bytes, linked, final_only)
        self.latest = max(retain, STAYS_AFTER)
        self.table = self._made(usual=USUAL.reshape(-1).copy(), early=np.zeros(1, np.int64))
        self.confidence = Confidence(truth_field)
        self.samples = Samples(functools.partial(text_of, texts=texts))
        self._frames, self._templates = Frames(), HeldTemplates()
        self._report = made(Report, {"lines": 64, "bytes": 4096})
        self._put, self._write = Bound(put_all), Bound(write_again)
        self._room = len(self.table.records)
        """The record before which there is room for certain."""

    def _made(self, **given: np.ndarray) -> Table:
        latest = np.array([self.latest])
        return made(Table, {"records": 64, "letters": 4096}, latest=latest, **given)

    @property
    def seq(self) -> int:
        """Number of the next record."""
        return int(self.table.counters.seq)

    @property
    def begin(self) -> int:
        """The first record whose answer is open."""
        return int(self.table.counters.begin)

    @property
    def final(self) -> int:
        """Answers up to this one are reported as final, or will be where each is announced once."""
        return int(self.table.counters.final)

    @property
    def closed(self) -> tuple[int, int]:
        """How many answers were final early, for having been too many bytes, and the last of them."""
        return int(self.table.counters.early), int(self.table.counters.closed)

    @property
    def promised(self) -> float:
        """How many revisions were to be expected, by the stability of all first answers so far."""
        return float(self.table.counters.promised)

    def keep_open(self, records: int) -> None:
        """Let answers be open for so many records, decided as they are."""
        self.modes = self.modes._replace(open_for=records)

    def begin_vectors(self) -> None:
        """Records are vectors that are looked at again."""
        self.table.usual[:], self.table.early[:] = OF_VECTORS.reshape(-1), EARLY

    # ---------------------------------------------------------------- what changes labels

    def put(
        self,
        answers: np.ndarray,
        sizes: np.ndarray,
        records: Columns,
        revisions: np.ndarray = NO_REVISIONS,
        templates: Sequence[bytes] = (),
        values: Sequence[bytes] = (),
    ) -> Report:
        """Write the next records down, by what a search says of them.

        Parameters
        ----------
        answers, records
            What the search says of each record, rows of ``ANSWER``, shape (n,); and the records.
        sizes
            The tokens of each, its fields, or numbers of its vector.
        revisions
            What they brought, by the record that did: rows of ``REVISION``, shape (m,).
        templates, values
            Of lines of logs: templates and values of holes, as lines have them.
        """
        first, n = self.seq, len(sizes)
        held, ends = joined(values) if values else NO_VALUES
        self._make_room(n, self._most_letters(records) + len(held))
        shown = np.array(self._templates.numbers(templates)) if templates else NO_TEMPLATES
        sure, again = self.confidence.take(first, answers, revisions, records)
        novelties, before = np.empty(n), np.empty(len(revisions), np.int64)
        self._run(
            records,
            (answers, sizes, sure, shown, held, ends, revisions, again, novelties, before),
        )
        self._sample(first, answers["label"], novelties, records, revisions, before)
        return self._report

    def _run(self, records: Columns, given: tuple[Any, ...]) -> None:
        """Have the kernel write records, and revisions, down."""
        lines = len(given[1]) + len(given[6]) + len(given[1]) // FINAL_EVERY + 1
        if self.modes.final_only:
            lines += len(given[1]) + self.seq - self.begin
        if lines > len(self._report.lines):
            self._report = made(Report, {"lines": 2 * lines, "bytes": len(self._report.out)})
        self._report.counters.clear()
        held = self.table, self._frames.of(records), self._templates.held, self._report, self.modes
        self._put(held, *records.given, *given)
        wanted = int(self._report.counters.bytes)
        if wanted > len(self._report.out):
            self._report = self._report._replace(out=np.empty(2 * wanted, np.uint8))
            self._write((self.table, self._templates.held, self._report))

    def _most_letters(self, records: Columns) -> int:
        """How many bytes lines have from records, at most."""
        given, n = records.given, len(records)
        whole = len(given.data)
        if whole > 4096:  # what is read of a part of a batch has the bytes of all
            whole = int(np.diff(given.written).sum() + np.diff(given.kept).sum())
        frame = self._frames.of(records)
        around = len(frame.heads) + len(frame.names) + 24 * given.places.shape[1] + given.kept.shape[1]
        return int(whole + n * (around + BESIDE))

    def _make_room(self, records: int, letters: int) -> None:
        """Room for so many records, and letters of theirs."""
        seq, table = self.seq, self.table
        if seq + records > self._room:
            first = max(min(self.begin, seq - self.latest), 0)
            if seq + records - first > len(table.records):
                larger = new_rows(2 * power_of_two(seq + records - first), ROW)
                kept = np.arange(first, seq)
                larger[kept & (len(larger) - 1)] = table.records[kept & (len(table.records) - 1)]
                self.table = table = table._replace(records=larger)
            self._room = first + len(table.records)
        if table.counters.written + letters > len(table.letters):
            self._gather(letters)

    def _gather(self, more: int = 0) -> None:
        """Put the letters of open answers together, in order, with room for more."""
        rows = self._places(self.begin, self.seq)
        held, table = self.table.records[rows], self.table
        lengths = held["stop"] - held["start"]
        ends = np.cumsum(lengths)
        letters = np.zeros(max(len(table.letters), 2 * (int(lengths.sum()) + more)), np.uint8)
        if len(rows):
            letters[: ends[-1]] = table.letters[places_of(held["start"], lengths)]
            for name in _PLACES:
                table.records[name][rows] = held[name] - held["start"] + ends - lengths
            table.records["template"][rows] = self._templates.keep(held["template"], spare=64)
        self.table = table._replace(letters=letters)
        table.counters.written = int(lengths.sum())

    def _sample(
        self,
        first: int,
        labels: np.ndarray,
        novelties: np.ndarray,
        records: Columns,
        revisions: np.ndarray,
        before: np.ndarray,
    ) -> None:
        """Take records as samples of their clusters, and move those that were revised meanwhile."""
        samples, which = self.samples, None
        many = len(labels) > FEW and not len(revisions) and (records.are_texts or records.keep)
        if many and samples.has_room(len(np.unique(labels))):
            which = lasting_samples(labels, novelties)
        joined_by, at = samples.of_columns(records, first, labels, novelties, which), 0
        if not len(revisions):
            samples.extend(joined_by)
            return
        for by, seq, was, label in _moves(revisions, before):
            samples.extend(joined_by[at : max(by + 1 - first, at)])
            at = max(by + 1 - first, at)
            samples.move(seq, was, label)
        samples.extend(joined_by[at:])

    def move(self, revisions: np.ndarray) -> Report:
        """Give records other labels: rows of ``REVISION``."""
        return self.put(NO_ANSWERS, NO_SIZES, NOTHING, revisions)

    def unite(self, before: int, after: int, template: str, refill: Refill) -> Report:
        """A label has become an older one, of this ``template``.

        ``refill`` has the template, and the values, of an answer with values of holes.
        """
        records = self.table.records
        records["founded"][records["label"] == before] = 0
        open_now = self._places(self.begin, self.seq)
        which = open_now[records["label"][open_now] == before]
        own = records["stop"][which] > records["kept"][which]
        records["template"][which[~own]] = self._templates.numbers([as_member("template", template)])
        for row in which[own].tolist():
            self._refill(row, refill)
        revisions = new_rows(len(which), REVISION)
        for name in ("seq", "probability"):
            revisions[name] = records[name][which]
        revisions["label"] = after
        records["label"][(records["label"] == before)] = after
        records["label"][which] = before
        self.confidence.unite(before, after)
        self.samples.unite(before, after)
        return self.move(revisions)

    # ---------------------------------------------------------------- answers from elsewhere

    def put_labels(self, first: int, labels: np.ndarray) -> None:
        """Write records down, from number ``first`` on, that were answered elsewhere."""
        stop, counters = first + len(labels), self.table.counters
        first = max(first, stop - self.latest)
        counters.begin = counters.seq = first
        self._make_room(stop - first, 0)
        rows = self._places(first, stop)
        self.table.records[rows] = new_rows(1, ROW, template=-1)
        self.table.records["label"][rows] = labels[len(labels) - len(rows) :]
        counters.begin = counters.seq = stop

    def relabel(self, seq: int, label: int) -> None:
        """A record that was answered elsewhere has another label."""
        if self.seq - self.latest <= seq < self.seq:
            self.table.records["label"][self._places(seq, seq + 1)] = label

    def rename(self, labels: np.ndarray) -> None:
        """All records have new labels; ``labels`` are those of all records so far."""
        rows = self._places(max(self.seq - self.latest, 0), self.seq)
        self.table.records["label"][rows] = labels[len(labels) - len(rows) :]

    # ---------------------------------------------------------------- what is known

    def labels(self, first: int, stop: int) -> np.ndarray:
        """The newest labels of the records from one number up to another, a copy."""
        found: np.ndarray = self.table.records["label"][self._places(first, stop)]
        return found

    def founders(self) -> dict[int, int]:
        """The records that have founded their clusters, by label, as far as they are remembered."""
        rows = self.table.records[self._places(max(min(self.begin, self.seq - self.latest), 0), self.seq)]
        founded = rows[rows["founded"] == 1]
        return dict(zip(founded["label"].tolist(), founded["seq"].tolist(), strict=True))

    def unsure(self, start: int, stop: int) -> np.ndarray:
        """The records from one number up to another that were not sure, or are revised since."""
        revised, cell = (self.table.records[name][self._places(start, stop)] for name in ("revised", "cell"))
        return start + np.flatnonzero((revised == 1) | (cell % KINDS < SURE))

    def lasting(self, shares: np.ndarray) -> np.ndarray:
        """The chance that records found clusters that last, by the masses of a new cluster."""
        found: np.ndarray = lasting(self.table, shares)
        return found

    def written(self, report: Report) -> AnswerRows | list[Line]:
        """What there is to announce, as objects where numbers are too large to be written."""
        count, length = int(report.counters.lines), int(report.counters.bytes)
        if length < 0:
            return [*objects_of(report.lines[:count], self.table.letters, self._templates)]
        rows = np.frombuffer(report.lines[:count].tobytes(), ROW)  # ten times as fast as a copy
        return AnswerRows(report.out[:length].tobytes(), rows, report.spans[:count].copy())

    def open_answers(self) -> list[Assignment]:
        """The newest answers that may still change, in order."""
        rows = self.table.records[self._places(self.begin, self.seq)]
        found = objects_of(rows, self.table.letters, self._templates)
        return [answer for answer in found if isinstance(answer, Assignment)]

    def finish(self, last: int) -> None:
        """Answers up to record ``last``, and all that are open, are final."""
        counters = self.table.counters
        counters.begin, counters.final, counters.bytes, counters.written = counters.seq, last, 0, 0

    def _places(self, first: int, stop: int) -> np.ndarray:
        return np.arange(first, stop) & (len(self.table.records) - 1)

    # ---------------------------------------------------------------- what lines have from records

    def _given(self, row: int) -> dict[str, Any]:
        """What an open answer has from its record and its template."""
        held = self.table.records[row]
        own = self.table.letters[held["start"] + 1 : held["stop"]].tobytes()
        found: dict[str, Any] = msgspec.json.decode(b"{" + own + self._templates.of(held["template"]) + b"}")
        return found

    def _give(self, row: int, given: _Given) -> None:
        """Let an open answer have this from its record and its template."""
        parts = [as_member(name, getattr(given, name)) for name in _Given.__struct_fields__[:5]]
        written = b"".join(parts)
        self._make_room(0, len(written))  # which may number templates anew
        (template,) = self._templates.numbers([as_member("template", given.template)])
        held, counters = self.table.records[row], self.table.counters
        at = held["start"] = int(counters.written)
        for name, end in zip(_ENDS, itertools.accumulate(map(len, parts)), strict=True):
            held[name] = at + end
        self.table.letters[at : at + len(written)] = np.frombuffer(written, np.uint8)
        held["template"], counters.written = template, at + len(written)

    def _refill(self, row: int, refill: Refill) -> None:
        """Give an open answer its template of today, and its values in that."""
        given = msgspec.convert(self._given(row), _Given)
        if isinstance(given.template, str) and isinstance(given.params, list):
            given.template, given.params = refill(given.template, given.params)
            held = self.table.records[row]
            before = held["stop"] - held["kept"]
            self._give(row, given)
            longer = held["stop"] - held["kept"] - before
            held["size"] += longer
            self.table.counters.bytes += longer

    # ---------------------------------------------------------------- state

    def dump(self) -> dict[str, Any]:
        """All of it, as plain values; what ``open`` answers have from their records is in clear."""
        table, seq = self.table, self.seq
        rows = self._places(max(min(self.begin, seq - self.latest), 0), seq)
        held, open_rows = table.records[rows], rows[len(rows) - (seq - self.begin) :]
        founders, open_now = held[max(len(held) - LASTS_AFTER, 0) :], table.records[open_rows]
        columns = {
            **{name: held[name] for name in ("label", "cell", "revised", "founded")},
            "millionths": np.rint(founders["new_probability"] * 1e6).astype(np.int64),
            **{name: open_now[name] for name in ("link", "revision")},
        }
        counted = plain_counters(table.counters)
        return {name: pack(narrow(column)) for name, column in columns.items()} | {
            "tallies": {name: pack(table.cells[name]) for name in ("count", "revised")},
            "counters": {name: counted[name] for name in counted if name not in _OF_OPEN},
            "numbers": {name: pack(open_now[name]) for name in NUMBERS},
            "open": [
                {"seq": seq, "cluster": label} | self._given(row)
                for seq, label, row in zip(
                    open_now["seq"].tolist(), open_now["label"].tolist(), open_rows.tolist(), strict=True
                )
            ],
            "samples": self.samples.dump(),
            "classes": self.confidence,
        }

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError where what was stored does not go together."""
        self.samples.load(stored["samples"])
        field, self.confidence = self.confidence.field, as_type(stored["classes"], Confidence)
        self.confidence.field = field
        facts = unpack_all({name: stored[name] for name in (*_COLUMNS, "tallies", "counters", "numbers")})
        counters = counters_of(Table, facts["counters"])
        seq, begin, final = int(counters.seq), int(counters.begin), int(counters.final)
        require(
            min(seq, begin, counters.lasted, counters.early, counters.expected, counters.promised) >= 0,
            "a count is negative",
        )
        require(seq <= RECORDS, "the number of the next record is out of range")
        require(begin <= seq and -1 <= counters.closed < max(begin, 1), "what is open is out of range")
        require(-1 <= final < max(seq, 1), "what is final is out of range")
        self.table = self._made(usual=self.table.usual, early=self.table.early)._replace(counters=counters)
        first = max(min(begin, seq - self.latest), 0)
        require(seq - first <= len(ints_of(facts, "label", -1, RECORDS)), "records are missing")
        counters.seq, counters.written, self._room = first, 0, 0
        self._make_room(seq - first, 0)
        counters.seq = seq
        table, rows = self.table, self._places(first, seq)
        table.records["seq"][rows], table.records["template"][rows] = np.arange(first, seq), -1
        bounds = {"label": (-1, RECORDS), "cell": (0, CELLS), "revised": (0, 2), "founded": (0, 2)}
        for name, between in bounds.items():
            table.records[name][rows] = ints_of(facts, name, *between, len(rows))
        latest = rows[max(len(rows) - LASTS_AFTER, 0) :]
        masses = ints_of(facts, "millionths", 0, 10**6 + 1, len(latest)) / 1e6
        table.records["new_probability"][latest] = masses
        self._load_open(facts, stored["open"], rows[len(rows) - (seq - begin) :])
        for name in ("count", "revised"):
            table.cells[name] = reals_of(facts["tallies"], name, (CELLS,))
        sound = (table.cells["revised"] >= 0).all()
        sound &= (table.cells["revised"] <= table.cells["count"] + 1e-9).all()
        require(bool(sound), "more answers were revised than counted")

    def _load_open(self, facts: dict[str, Any], given: Any, rows: np.ndarray) -> None:
        """The answers that are open, in these rows. Raises UnsoundError."""
        records = self.table.records
        for name, low in (("link", -1), ("revision", 0)):
            records[name][rows] = ints_of(facts, name, low, RECORDS, len(rows))
        for name in NUMBERS:
            found = facts["numbers"][name]
            require(found.dtype == np.float64 and found.shape == rows.shape, f"{name} of another type")
            records[name][rows] = found
        found = msgspec.convert(given, list[_Given])
        require([each.seq for each in found] == records["seq"][rows].tolist(), "open answers are missing")
        for row, each in zip(rows.tolist(), found, strict=True):
            self._give(row, each)
        records = self.table.records
        named = np.array([each.id is not None for each in found], bool)
        ids = np.where(named, records["named"][rows] - records["start"][rows] - len(b',"id":'), 0)
        records["size"][rows] = AROUND + ids + records["stop"][rows] - records["middle"][rows]
        records["time"][rows] = [math.nan if each.time is None else each.time for each in found]
        self.table.counters.bytes = records["size"][rows].sum()


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    """What an open answer has from its record and its template, in the order of lines."""

    id: str | int | None
    position: dict[str, Any]
    time: float | None
    keep: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    params: list[str] | msgspec.UnsetType = msgspec.UNSET
    template: str | msgspec.UnsetType = msgspec.UNSET
    seq: int = 0
    cluster: int = 0


_OF_OPEN = ("written", "bytes")
"""Counters that follow from the answers that are open."""

_COLUMNS = ("label", "cell", "revised", "founded", "millionths", "link", "revision")
"""Of the table, as they are stored."""


def _moves(revisions: np.ndarray, before: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
    """By which record each revision came, of which, the label before, and the one since."""
    columns = (revisions["by"], revisions["seq"], before, revisions["label"])
    return zip(*(column.tolist() for column in columns), strict=True)
