"""Lines of a log side by side: those with an ordinary head; the others are decoded one by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import Parts, RefusedError
from streamdp.decode.log import LogLines, plain
from streamdp.decode.log_fields import requested
from streamdp.decode.log_times import moment_of
from streamdp.decode.log_traces import names_exception
from streamdp.decode.texts import columns_of, places_of
from streamdp.records import JOINED, Raw, Record, Reject
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch

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

    def read(self, found: Sequence[Raw], *, together: bool) -> Columns:
        """The records that lines hold, and what is refused; ``together`` lets them be side by side."""
        raws = RawBatch.of(found) if together and not isinstance(found, RawBatch) else found
        if together and self._log.together and isinstance(raws, RawBatch) and len(raws):
            places = _partitions(raws)
            place = places.pop()
            held = [] if places else self._log.held(place)
            both = RawBatch.of([*held, *raws]) if held else raws
            if not places and both is not None:
                return self._together(both, place, held)
        return Columns.of(record for raw in found for _, record in self._one(raw))

    def end(self, *, messages: bool = False) -> list[Record]:
        """Nothing follows for now: traces, and ``messages`` that might have begun one; or only these."""
        self._log.end(messages=messages)
        return [record for _, record in self._late()]

    def _late(self) -> list[tuple[Raw, Record]]:
        """Records of lines that were taken for such as continue others."""
        found = self._decoder.overdue()
        self.joined -= len(found)
        return found

    def _one(self, raw: Raw) -> list[tuple[Raw, Record | Reject]]:
        """What one line says, behind what was only now found out of lines before it."""
        decoded = self._decode(raw)
        joined = decoded.__class__ is Reject and decoded.reason == JOINED
        self.joined += joined
        return [*self._late(), *([] if joined else [(raw, decoded)])]

    def _together(self, raws: RawBatch, place: object, held: Sequence[Raw]) -> Columns:
        """What lines from one place say: of ordinary ones at once, of the others one by one.

        The first were read before, and are ``held``.
        """
        log, found = self._log, list[tuple[int, Parts | Reject]]()
        kept = dict[tuple[str | None, ...], dict[str, Any] | None]()
        reader, timed, zone = log.reading()
        match, odd, written = reader.pattern.match, reader.odd, reader.times
        parts = reader.parts if not _PARTS.isdisjoint(self._keep) else ()
        arrivals, ordinary = self._arrivals(raws), log.ordinary(place)
        last: tuple[float | None, dict[str, Any] | None] | None = None
        numbers, alone = {id(raw): i for i, raw in enumerate(held)}, list[Raw]()
        for i, line in enumerate(self._readable(raws)):
            if i < len(held):
                continue
            head = time = fields = None
            if ordinary and line[:1] != b"{":
                try:
                    text = line.decode()
                    if "\x1b" in text:
                        text = plain(text)
                    head = match(text)
                    if head is None or head.lastindex == odd or names_exception(text) or "\t{" in text:
                        head = None
                    elif timed:
                        time = moment_of(head.group(*written), arrivals[i], zone)
                except (UnicodeDecodeError, RefusedError):
                    head = None
            if head is None or (timed and time is None):
                if last is not None:
                    log.pass_over(place, *last)
                raw, last = raws[i], None
                numbers[id(raw)] = i
                alone.append(raw)  # its identity is its own as long as it lives
                found += [(numbers[id(raw)], _parts_of(record)) for raw, record in self._one(raw)]
                ordinary = log.ordinary(place)
                continue
            if parts:
                key = head.group(*parts)
                if key not in kept:
                    kept[key] = log.kept(*reader.level_and_component(key))
                fields = kept[key]
            message = text[head.end() :]
            if log.requests:
                message = requested(message) or message
            found.append((i, (message, time, None, fields)))
            last = time, fields
        if last is not None:
            log.pass_over(place, *last)
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


def _parts_of(record: Record | Reject) -> Parts | Reject:
    if isinstance(record, Reject):
        return record
    return record.value, record.time, record.id, record.keep


def _partitions(raws: RawBatch) -> set[int | None]:
    """Which partitions the lines are from; None is that of a file."""
    if "partition" not in raws.counted:
        return {raws.fixed.get("partition")}
    return set(places_of(raws)[:, raws.counted.index("partition")].tolist())
