"""The ledger: the table of the latest records, their classes, and a few of every cluster to be shown."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from streamdp.kernels.jit import Bound, entry
from streamdp.kernels.packed import pack, unpack_all
from streamdp.kernels.rows import made
from streamdp.kernels.sound import RECORDS, counters_of, ints_of, narrow, plain_counters, reals_of, require
from streamdp.ledger.confidence import Confidence
from streamdp.ledger.numbers import NO_REVISIONS, NUMBERS, put_all, rounded
from streamdp.ledger.samples import Samples, lasting_samples, text_of
from streamdp.ledger.table import (
    CELLS,
    EARLY,
    KINDS,
    LASTS_AFTER,
    OF_VECTORS,
    STAYS_AFTER,
    SURE,
    USUAL,
    Table,
    lasting,
    move,
)
from streamdp.records.columns import Columns


@entry
def _move_all(table: Table, revisions: np.ndarray, before: np.ndarray) -> None:
    for r in range(revisions.shape[0]):
        before[r] = move(table, revisions[r])


@entry
def _lasting_all(table: Table, shares: np.ndarray, out: np.ndarray) -> None:
    for i in range(shares.shape[0]):
        out[i] = lasting(table, shares[i])


FEW = 16
"""Records of which all are tried as samples: choosing those that may stay takes longer."""


class Ledger:
    """What is known of the latest records: of the last ``retain``, and of those that are not judged yet.

    :meth:`put`, :meth:`move` and :meth:`unite` are all that changes labels. ``truth_field`` is the kept field
    that has the class of a record, None for none; ``texts`` are fields that are texts.
    """

    def __init__(self, retain: int, truth_field: str | None = None, texts: Sequence[str] = ()) -> None:
        self.size = max(retain, STAYS_AFTER)
        self.table = made(Table, {"records": self.size}, usual=USUAL.reshape(-1).copy())
        self.confidence = Confidence(truth_field)
        self.samples = Samples(functools.partial(text_of, texts=texts))
        self._put, self._move, self._lasting = Bound(put_all), Bound(_move_all), Bound(_lasting_all)

    @property
    def seq(self) -> int:
        """Number of the next record."""
        return int(self.table.counters.seq)

    def begin_vectors(self) -> None:
        """Records are vectors that are looked at again."""
        self.table.usual[:], self.table.early[:] = OF_VECTORS.reshape(-1), EARLY

    def put(
        self,
        first: int,
        rows: np.ndarray,
        sizes: np.ndarray,
        records: Columns,
        revisions: np.ndarray = NO_REVISIONS,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Write records down, from number ``first`` on, by what a search says of them: their numbers.

        Parameters
        ----------
        first, records
            The records, n of them, and the number of the first.
        rows
            What the search says of each, shape (n,).
        sizes
            The tokens of each, its fields, or numbers of its vector.
        revisions
            What they brought, by the record that did: rows of ``REVISION``, shape (m,).

        Returns
        -------
        The numbers of the records, shape (8, n): see ``NUMBERS``; and the confidence in the revisions and its
        number of labels, shape (m, 2).
        """
        numbers, before = np.empty((len(NUMBERS), len(rows))), np.empty(len(revisions), np.int64)
        self._put((self.table,), rows, sizes, revisions, first, numbers, before)
        confident = self.confidence.take(first, rows, revisions, records, numbers[6:])
        self._sample(first, rows["label"], numbers[3], records, revisions, before)
        return numbers, confident

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
        joined, at = samples.of_columns(records, first, labels, novelties, which), 0
        if not len(revisions):
            samples.extend(joined)
            return
        for by, seq, was, label in _moves(revisions, before):
            samples.extend(joined[at : by + 1 - first])
            at = max(by + 1 - first, at)
            samples.move(seq, was, label)
        samples.extend(joined[at:])

    def score(self, rows: np.ndarray, sizes: np.ndarray) -> np.ndarray:
        """The numbers of records that teach nothing: their answers are never revised."""
        numbers = rounded(rows, sizes)
        self._lasting((self.table,), numbers[1], numbers[4])
        return numbers

    def put_labels(self, first: int, labels: np.ndarray) -> None:
        """Write records down, from number ``first`` on, that were answered elsewhere."""
        stop = first + len(labels)
        rows = self._rows(max(first, stop - self.size), stop)
        self.table.records[rows] = np.zeros((), self.table.records.dtype)
        self.table.records["label"][rows] = labels[len(labels) - len(rows) :]
        self.table.counters.seq = stop

    def move(self, revisions: np.ndarray) -> np.ndarray:
        """Give records other labels; the confidence in these and its number of labels, shape (m, 2)."""
        before = np.empty(len(revisions), np.int64)
        self._move((self.table,), revisions, before)
        for _, seq, was, label in _moves(revisions, before):
            self.samples.move(seq, was, label)
        return self.confidence.revise(revisions)

    def relabel(self, seq: int, label: int) -> None:
        """A record that was answered elsewhere has another label."""
        if self.seq - self.size <= seq < self.seq:
            self.table.records["label"][seq % self.size] = label

    def unite(self, before: int, after: int) -> None:
        """A label has become an older one."""
        records = self.table.records
        those = records["label"] == before
        records["label"][those], records["new"][those] = after, 0
        self.confidence.unite(before, after)
        self.samples.unite(before, after)

    def count_revised(self, seqs: Sequence[int]) -> None:
        """The answers to these records were revised."""
        given = np.array(seqs, np.int64)
        self.table.records["revised"][given[given >= self.seq - self.size] % self.size] = 1

    def rename(self, labels: np.ndarray) -> None:
        """All records have new labels; ``labels`` are those of all records so far."""
        rows = self._rows(max(self.seq - self.size, 0), self.seq)
        self.table.records["label"][rows] = labels[len(labels) - len(rows) :]

    def labels(self, first: int, stop: int) -> np.ndarray:
        """The newest labels of the records from one number up to another, a copy."""
        found: np.ndarray = self.table.records["label"][self._rows(first, stop)]
        return found

    def unsure(self, start: int, stop: int) -> np.ndarray:
        """The records from one number up to another that were not sure, or are revised since."""
        rows = self.table.records[self._rows(start, stop)]
        return start + np.flatnonzero((rows["revised"] == 1) | (rows["cell"] % KINDS < SURE))

    def _rows(self, first: int, stop: int) -> np.ndarray:
        return np.arange(first, stop) % self.size

    def dump(self) -> dict[str, Any]:
        """All of it, as plain values."""
        table, seq = self.table, self.seq
        held = table.records[self._rows(max(seq - self.size, 0), seq)]
        founders = held[max(len(held) - LASTS_AFTER, 0) :]
        columns = {
            **{name: held[name] for name in ("label", "cell", "revised")},
            "new": founders["new"],
            "millionths": np.rint(founders["new_probability"] * 1e6).astype(np.int64),
        }
        return {name: pack(narrow(column)) for name, column in columns.items()} | {
            "tallies": {name: pack(table.cells[name]) for name in ("count", "revised")},
            "counters": plain_counters(table.counters),
            "samples": self.samples.dump(),
            "classes": self.confidence.dump() if self.confidence.labels else None,
        }

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError where what was stored does not go together."""
        self.samples.load(stored["samples"])
        if stored["classes"] is not None:
            self.confidence.load(stored["classes"])
        facts = unpack_all({name: stored[name] for name in (*_COLUMNS, "tallies", "counters")})
        counters = counters_of(Table, facts["counters"])
        require(min(counters.tolist()) >= 0, "a count of clusters that lasted is negative")
        seq = int(counters.seq)
        require(seq <= RECORDS, "the number of the next record is out of range")
        given = {"usual": self.table.usual, "early": self.table.early}
        self.table = made(Table, {"records": self.size}, counters=counters, **given)
        table, count = self.table, min(seq, self.size)
        rows = self._rows(seq - count, seq)
        for name, low, high in (("label", -1, RECORDS), ("cell", 0, CELLS), ("revised", 0, 2)):
            table.records[name][rows] = ints_of(facts, name, low, high, count)
        latest = rows[max(count - LASTS_AFTER, 0) :]
        table.records["new"][latest] = ints_of(facts, "new", 0, 2, len(latest))
        masses = ints_of(facts, "millionths", 0, 10**6 + 1, len(latest)) / 1e6
        table.records["new_probability"][latest] = masses
        for name in ("count", "revised"):
            table.cells[name] = reals_of(facts["tallies"], name, (CELLS,))
        sound = (table.cells["revised"] >= 0).all()
        sound &= (table.cells["revised"] <= table.cells["count"] + 1e-9).all()
        require(bool(sound), "more answers were revised than counted")


_COLUMNS = ("label", "cell", "revised", "new", "millionths")
"""Of the table, as they are stored."""


def _moves(revisions: np.ndarray, before: np.ndarray) -> Iterator[tuple[int, int, int, int]]:
    """By which record each revision came, of which, the label before, and the one since."""
    columns = (revisions["by"], revisions["seq"], before, revisions["label"])
    return zip(*(column.tolist() for column in columns), strict=True)
