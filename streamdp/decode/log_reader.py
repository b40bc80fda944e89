"""Lines of a log side by side: those with an ordinary head; the others are decoded one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import Parts, RefusedError
from streamdp.decode.log import LogLines, plain
from streamdp.decode.log_fields import requested
from streamdp.decode.log_times import moment_of
from streamdp.decode.log_traces import NEAR
from streamdp.decode.texts import columns_of, places_of
from streamdp.records import JOINED, Raw, Record, Reject
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch

SHOWN = 3
"""Lines that continue others which are kept to be shown."""

_PARTS = frozenset({"level", "component"})


class LogReader:
    """Reads lines of a log: those side by side that are ordinary.

    Ordinary is a line with a time, where lines have one, and a message that does not begin as lines of a
    stack trace do. ``decode`` is what reads the others, as the decoder does.
    """

    def __init__(self, decoder: Decoder, log: LogLines, decode: Callable[[Raw], Record | Reject]) -> None:
        self._decoder, self._log, self._decode = decoder, log, decode
        self._keep = decoder.fields.keep
        self.joined = 0
        """Lines that continue the line before."""
        self.shown: list[Raw] = []
        """The first of these."""

    def read(self, found: Sequence[Raw], *, together: bool) -> Columns:
        """The records that lines hold, and what is refused; ``together`` lets them be side by side."""
        raws = RawBatch.of(found) if together and not isinstance(found, RawBatch) else found
        if together and self._log.together and isinstance(raws, RawBatch) and len(raws):
            places = _partitions(raws)
            if len(places) == 1:
                return self._together(raws, places.pop())
        return Columns.of(record for number, raw in enumerate(found) for _, record in self._one(number, raw))

    def end(self, last: Raw) -> list[Record]:
        """Nothing follows the last line for now: the exceptions of traces that are over."""
        self._log.end()
        return self._decoder.overdue(last)

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

    def _together(self, raws: RawBatch, place: object) -> Columns:
        """What lines from one place say: of ordinary ones at once, of the others one by one."""
        log, found = self._log, list[tuple[int, Parts | Reject]]()
        kept = dict[tuple[str | None, ...], dict[str, Any] | None]()
        reader, timed, zone = log.reading()
        match, odd, written = reader.pattern.match, reader.odd, reader.times
        parts = reader.parts if not _PARTS.isdisjoint(self._keep) else ()
        arrivals, first, until = self._arrivals(raws), 0, log.room(place)
        for i, line in enumerate(self._readable(raws)):
            head = time = fields = None
            if i < until and line[:1] != b"{":
                try:
                    text = line.decode()
                    if "\x1b" in text:
                        text = plain(text)
                    head = match(text)
                    if head is None or head.lastindex == odd:
                        head = None
                    elif timed:
                        time = moment_of(head.group(*written), arrivals[i], zone)
                except (UnicodeDecodeError, RefusedError):
                    head = None
            if head is None or (timed and time is None):
                self._pass_over(found, i - first, place)
                found += map(_parts_of, self._one(i, raws[i]))
                first, until = i + 1, i + 1 + log.room(place)
                continue
            if parts:
                key = head.group(*parts)
                if key not in kept:
                    kept[key] = log.kept(*reader.level_and_component(key))
                fields = kept[key]
            message = text[head.end() :]
            if log.requests and '"' in message:
                message = requested(message) or message
            found.append((i, (message, time, None, fields)))
        self._pass_over(found, len(raws) - first, place)
        return columns_of(found, raws, self._keep)

    def _readable(self, raws: RawBatch) -> Sequence[bytes]:
        """The lines; one that was refused, or is too long, as one that is not ordinary."""
        most, refused = self._decoder.max_bytes, raws.refused
        if not refused and max(map(len, raws.data)) <= most:
            return raws.data
        return [b"{" if i in refused or len(line) > most else line for i, line in enumerate(raws.data)]

    def _arrivals(self, raws: RawBatch) -> Sequence[float]:
        """The times that say of which years lines are."""
        known, written = self._log.years.get(raws.fixed.get("file", "")), self._log.written
        if not known or (written is not None and written.has_year):
            return raws.arrivals
        if len(known) == 1:
            return [known[0][1]] * len(raws)
        return [self._log.arrival(raws.position(i), at) for i, at in enumerate(raws.arrivals)]

    def _pass_over(self, found: Sequence[tuple[int, Any]], count: int, place: object) -> None:
        """So many ordinary lines, the last ones, are kept as they are: note what later ones may need."""
        if count:
            last = [parts for _, parts in found[-min(count, NEAR + 1) :]]
            self._log.pass_over(place, count, [(message, time, kept) for message, time, _, kept in last])


def _parts_of(read: tuple[int, Record | Reject]) -> tuple[int, Parts | Reject]:
    number, record = read
    if isinstance(record, Reject):
        return number, record
    return number, (record.value, record.time, record.id, record.keep)


def _partitions(raws: RawBatch) -> set[int | None]:
    """Which partitions the lines are from; None is that of a file."""
    if "partition" not in raws.counted:
        return {raws.fixed.get("partition")}
    return set(places_of(raws)[:, raws.counted.index("partition")].tolist())
