"""The table of the latest records, for Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamdp.kernels.jit import Bound, entry
from streamdp.kernels.packed import pack, unpack_all
from streamdp.kernels.rows import made
from streamdp.kernels.sound import RECORDS, counters_of, ints_of, narrow, plain_counters, reals_of, require
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


@entry
def _move_all(table: Table, revisions: np.ndarray) -> None:
    for r in range(revisions.shape[0]):
        move(table, revisions[r])


@entry
def _lasting_all(table: Table, shares: np.ndarray, out: np.ndarray) -> None:
    for i in range(shares.shape[0]):
        out[i] = lasting(table, shares[i])


class Ledger:
    """What is known of the latest records: of the last ``retain``, and of those that are not judged yet."""

    def __init__(self, retain: int) -> None:
        self.size = max(retain, STAYS_AFTER)
        self.table = made(Table, {"records": self.size}, usual=USUAL.reshape(-1).copy())
        self._move, self._lasting = Bound(_move_all), Bound(_lasting_all)

    @property
    def seq(self) -> int:
        """Number of the next record."""
        return int(self.table.counters.seq)

    def begin_vectors(self) -> None:
        """Records are vectors that are looked at again."""
        self.table.usual[:], self.table.early[:] = OF_VECTORS.reshape(-1), EARLY

    def put(self, first: int, labels: np.ndarray) -> None:
        """Write records down, from number ``first`` on, that were answered elsewhere."""
        stop = first + len(labels)
        rows = self._rows(max(first, stop - self.size), stop)
        self.table.records[rows] = np.zeros((), self.table.records.dtype)
        self.table.records["label"][rows] = labels[len(labels) - len(rows) :]
        self.table.counters.seq = stop

    def move(self, revisions: np.ndarray) -> None:
        """Some records have other labels: rows of ``REVISION``."""
        self._move((self.table,), revisions)

    def relabel(self, seq: int, label: int) -> None:
        """A record that was answered elsewhere has another label."""
        if self.seq - self.size <= seq < self.seq:
            self.table.records["label"][seq % self.size] = label

    def unite(self, before: int, after: int, told: Sequence[int]) -> None:
        """A label has become an older one; ``told`` are the records whose answers are revised for it."""
        records = self.table.records
        those = records["label"] == before
        records["label"][those], records["new"][those] = after, 0
        seqs = np.array(told, np.int64)
        records["revised"][seqs[seqs >= self.seq - self.size] % self.size] = 1

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

    def lasting(self, shares: np.ndarray, out: np.ndarray) -> None:
        """Write the chances that records found clusters that last, by their ``new_probability``."""
        self._lasting((self.table,), shares, out)

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
        }

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError where what was stored does not go together."""
        facts = unpack_all(stored)
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
