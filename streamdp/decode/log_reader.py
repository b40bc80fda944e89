"""Lines of a log, read by a kernel; what it leaves, and what is of stack traces, is decoded one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streamdp.decode.decoder import Decoder
from streamdp.decode.expressions import machine_of
from streamdp.decode.log import LogLines
from streamdp.decode.log_scan import GROUPS, LOG_LINE, FoundLines, Heads, scan_log
from streamdp.decode.log_times import latest_year
from streamdp.decode.texts import places_of, with_others, with_stamps
from streamdp.kernels.jit import Bound
from streamdp.kernels.rows import new_rows
from streamdp.records import JOINED, Raw, Record, Reject
from streamdp.records.columns import Columns, Texts
from streamdp.records.raws import Raws

SHOWN = 3
"""Lines that continue others which are kept to be shown."""

_PATIENCE = 8
"""Batches of which nothing stays side by side, until a kernel is not asked any more."""


class LogReader:
    """Reads lines of a log: those side by side that are ordinary.

    ``decode`` is what reads the others, as the decoder does.
    """

    def __init__(self, decoder: Decoder, log: LogLines, decode: Callable[[Raw], Record | Reject]) -> None:
        self._decoder, self._log, self._decode = decoder, log, decode
        self._keep = decoder.fields.keep
        self._scan, self._patience = Bound(scan_log), _PATIENCE
        self._made_of: Any = None
        self._heads: Heads | None = None
        self.joined = 0
        """Lines that continue the line before."""
        self.shown: list[Raw] = []
        """The first of these."""

    def read(self, found: Sequence[Raw], *, together: bool) -> Texts | list[Record | Reject]:
        """The records that lines hold, and what is refused; ``together`` lets a kernel read them."""
        raws = Raws.of(found) if together and not isinstance(found, Raws) else found
        if together and self._patience and isinstance(raws, Raws) and len(raws):
            arrivals: Sequence[float] = raws.arrivals
            known, written = self._log.years.get(raws.fixed.get("file", "")), self._log.written
            if known and (written is None or not written.has_year):
                one = len(known) == 1
                arrivals = [
                    known[0][1] if one else self._log.arrival(raws.position(i), 0.0) for i in range(len(raws))
                ]
            years = {latest_year(at) for at in (min(arrivals), max(arrivals))}
            heads, places = self._ready(), _partitions(raws)
            if heads is not None and len(years) == 1 and len(places) == 1:
                made = self._together(raws, heads, (years.pop(), arrivals), places.pop())
                self._patience = _PATIENCE if isinstance(made, Texts) or not made else self._patience - 1
                return made
        return [record for number, raw in enumerate(found) for _, record in self._one(number, raw)]

    def end(self, last: Raw) -> list[Record]:
        """Nothing follows the last line for now: the exceptions of traces that are over."""
        self._log.end()
        return self._decoder.overdue(last)

    def _ready(self) -> Heads | None:
        """How a kernel reads what is before messages; None where it cannot."""
        expressions, numbers = self._log.expressions(), self._log.numbers
        if self._made_of != (expressions, numbers):
            self._made_of, self._heads = (expressions, numbers), None
            made = None if expressions is None else machine_of(expressions, GROUPS)
            if made is not None:
                kept = [{"level": 0, "component": 1}.get(name, -1) for name in self._keep]
                parts = np.zeros((2, 2), np.int64)
                self._heads = Heads(*made, np.array([numbers]), np.array(kept, np.int64), parts)
        return self._heads

    def _one(self, number: int, raw: Raw) -> list[tuple[int, Record | Reject]]:
        """What one line says, with its number, behind exceptions of traces that are over."""
        decoded = self._decode(raw)
        records: list[Record | Reject] = [*self._decoder.overdue(raw)]
        if decoded.__class__ is Record or decoded.reason != JOINED:  # type: ignore[union-attr]
            records.append(decoded)
        else:
            self.joined += 1
            if len(self.shown) < SHOWN:
                self.shown.append(raw)
        return [(number, record) for record in records]

    def _together(
        self, raws: Raws, heads: Heads, arrived: tuple[int, Sequence[float]], place: object
    ) -> Texts | list[Record | Reject]:
        rows, texts = self._scanned(raws, heads, *arrived)
        odd = [*np.flatnonzero(rows["ordinary"] == 0).tolist(), len(raws)]
        others: list[tuple[int, Record | Reject]] = []
        passed, at = np.zeros(len(raws), bool), 0
        for until in odd:
            while at < until and not self._log.idle(place):
                others += self._one(at, raws[at])
                at += 1
            if at < until:
                self._pass_over(texts, rows, at, until, place)
                passed[at:until] = True
            if until < len(raws):
                others += self._one(until, raws[until])
            at = until + 1
        if len(texts) > np.count_nonzero(passed):
            texts = texts.take(np.flatnonzero(passed[texts.numbers]))
        made = with_others(texts, others) if others else texts
        if made is not None:
            return made if len(made) else []
        mixed = [*zip(texts.numbers.tolist(), texts, strict=True), *others]
        return [record for _, record in sorted(mixed, key=lambda each: each[0])]

    def _pass_over(self, texts: Texts, rows: np.ndarray, at: int, until: int, place: object) -> None:
        """Ordinary lines of a stretch, to be kept as they are: note what later ones may need."""
        first = int(np.searchsorted(texts.numbers, at))
        last, named = first + until - at - 1, np.flatnonzero(rows["named"][at:until])
        time = float(rows["time"][until - 1])
        kept = texts.kept(last)
        told = (-1, "") if not len(named) else (int(named[-1]), texts.text(first + int(named[-1])))
        self._log.pass_over(place, until - at, (None if time != time else time, kept), told)

    def _scanned(
        self, raws: Raws, heads: Heads, year: int, arrived: Sequence[float]
    ) -> tuple[np.ndarray, Texts]:
        """What a kernel finds in the lines, and the messages of those that are ordinary."""
        given = raws.data
        if raws.refused:  # what could not be read is not ordinary
            given = [b"" if i in raws.refused else line for i, line in enumerate(given)]
        n, buffer = len(given), np.frombuffer(b"".join(given), np.uint8)
        ends = np.cumsum(np.fromiter(map(len, given), np.int64, n))
        fields = len(self._keep)
        found = FoundLines(
            new_rows(n, LOG_LINE),
            np.empty((n, fields, 2), np.int64),
            np.empty(len(buffer), np.uint8),
            np.empty(min(fields, 1) * (fields * len(buffer) + 2 * fields * n), np.uint8),
            np.zeros(1, np.int64),
        )
        arrivals = np.array(arrived)
        if len(buffer):  # else there is no line for which a kernel would have to be compiled
            self._scan((heads, found), buffer, ends, arrivals, self._decoder.max_bytes, year)
        which = np.flatnonzero(found.rows["ordinary"])
        read = found.rows[which]
        letters = found.letters[: int(read["end"][-1]) if len(read) else 0]
        columns = Columns(
            found.values[: found.used[0]],
            letters,
            read["end"].copy(),
            with_stamps(read["time"].copy(), raws, which),
            np.full((len(which), 2), -1),
            found.kept[which],
            places_of(raws)[which],
            np.empty((len(which), 0)),
        )
        return found.rows, Texts(columns, raws, which, self._keep)


def _partitions(raws: Raws) -> set[int | None]:
    """Which partitions the lines are from; None is that of a file."""
    if "partition" not in raws.counted:
        return {raws.fixed.get("partition")}
    return set(places_of(raws)[:, raws.counted.index("partition")].tolist())
