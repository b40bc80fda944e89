"""Lines of a log side by side: those with an ordinary head; the others are decoded one by one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import RefusedError
from streamdp.decode.log import LogLines
from streamdp.decode.log_times import moment_of
from streamdp.decode.log_traces import names_exception
from streamdp.decode.texts import places_of, with_others, with_stamps
from streamdp.records import JOINED, Raw, Record, Reject
from streamdp.records.columns import LARGEST, NO_FIELDS, Columns, Texts
from streamdp.records.raws import Raws

SHOWN = 3
"""Lines that continue others which are kept to be shown."""

_PATIENCE = 8
"""Batches of which nothing stays side by side, until it is not tried any more."""

_PARTS = frozenset({"level", "component"})


class LogReader:
    """Reads lines of a log: those side by side that are ordinary.

    Ordinary is a line with a time, where lines have one, and a message that does not begin as lines of a
    stack trace do. ``decode`` is what reads the others, as the decoder does.
    """

    def __init__(self, decoder: Decoder, log: LogLines, decode: Callable[[Raw], Record | Reject]) -> None:
        self._decoder, self._log, self._decode = decoder, log, decode
        self._keep = decoder.fields.keep
        self._patience = _PATIENCE
        self.joined = 0
        """Lines that continue the line before."""
        self.shown: list[Raw] = []
        """The first of these."""

    def read(self, found: Sequence[Raw], *, together: bool) -> Texts | list[Record | Reject]:
        """The records that lines hold, and what is refused; ``together`` lets them be side by side."""
        raws = Raws.of(found) if together and not isinstance(found, Raws) else found
        if together and self._patience and isinstance(raws, Raws) and len(raws):
            places = _partitions(raws)
            if len(places) == 1:
                made = self._together(raws, places.pop())
                self._patience = _PATIENCE if isinstance(made, Texts) or not made else self._patience - 1
                return made
        return [record for number, raw in enumerate(found) for _, record in self._one(number, raw)]

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

    def _together(self, raws: Raws, place: object) -> Texts | list[Record | Reject]:
        """What lines from one place say: those side by side that are ordinary, the others read one by one."""
        log, lines, others = self._log, _Lines(), list[tuple[int, Record | Reject]]()
        reader, timed, zone = log.reading()
        match, odd, written = reader.pattern.match, reader.odd, reader.times
        parts = reader.parts if timed and not _PARTS.isdisjoint(self._keep) else ()
        arrivals, first, until = self._arrivals(raws), 0, log.room(place)
        for i, line in enumerate(self._readable(raws)):
            head = time = None
            if i < until and line[:1] != b"{":
                try:
                    text = line.decode()
                    head = match(text)
                    if head is not None and head.lastindex != odd:
                        time = moment_of(head.group(*written), arrivals[i], zone) if timed else math.nan
                except (UnicodeDecodeError, RefusedError):
                    pass
            if time is None or head is None:
                self._pass_over(lines, i - first, place)
                others += self._one(i, raws[i])
                first, until = i + 1, i + 1 + log.room(place)
            else:
                lines.numbers.append(i)
                lines.messages.append(text[head.end() :])
                lines.times.append(time)
                if parts:
                    lines.parts.append(head.group(*parts))
        self._pass_over(lines, len(raws) - first, place)
        texts, exact = self._texts(raws, lines), lines.exact()
        made = texts if exact and not others else with_others(texts, others) if exact else None
        if made is not None:
            return made if len(made) else []
        mixed = [*zip(lines.numbers, texts, strict=True), *others]
        return [record for _, record in sorted(mixed, key=lambda each: each[0])]

    def _readable(self, raws: Raws) -> Sequence[bytes]:
        """The lines; one that was refused, or is too long, as one that is not ordinary."""
        most, refused = self._decoder.max_bytes, raws.refused
        if not refused and max(map(len, raws.data)) <= most:
            return raws.data
        return [b"{" if i in refused or len(line) > most else line for i, line in enumerate(raws.data)]

    def _arrivals(self, raws: Raws) -> Sequence[float]:
        """The times that say of which years lines are."""
        if not self._log.years.get(raws.fixed.get("file", "")):
            return raws.arrivals
        return [self._log.arrival(raws.position(i), at) for i, at in enumerate(raws.arrivals)]

    def _pass_over(self, lines: _Lines, count: int, place: object) -> None:
        """So many ordinary lines, the last ones, are kept as they are: note what later ones may need."""
        if count:
            last, time = lines.messages[-count:], lines.times[-1]
            named = next((i for i in reversed(range(count)) if names_exception(last[i])), -1)
            kept = self._kept(lines.parts[-1]) if lines.parts else None
            known = None if time != time else time, kept
            self._log.pass_over(place, count, known, (named, last[named] if named >= 0 else ""))

    def _kept(self, parts: tuple[str | None, ...]) -> dict[str, Any] | None:
        return self._log.kept(*self._log.reading()[0].level_and_component(parts))

    def _texts(self, raws: Raws, lines: _Lines) -> Texts:
        """The messages of ordinary lines, side by side."""
        which, joined = np.array(lines.numbers, np.int64), "".join(lines.messages)
        letters = joined.encode()
        plain = len(letters) == len(joined)
        lengths = map(len, lines.messages if plain else map(str.encode, lines.messages))
        heads = {parts: number for number, parts in enumerate(dict.fromkeys(lines.parts))}
        written, spans = self._written([self._kept(parts) for parts in heads] or [None])
        columns = Columns(
            written,
            np.frombuffer(letters, np.uint8),
            np.cumsum(np.fromiter(lengths, np.int64, len(which))),
            with_stamps(np.array(lines.times, float), raws, which),
            np.full((len(which), 2), -1),
            spans[[heads[parts] for parts in lines.parts] or [0] * len(which)],
            places_of(raws)[which],
            np.empty((len(which), 0)),
        )
        return Texts(columns, raws, which, self._keep)

    def _written(self, kept: Sequence[dict[str, Any] | None]) -> tuple[np.ndarray, np.ndarray]:
        """Kept fields in JSON, one value after the other, and where each stands: shape (n, fields, 2)."""
        spans, values = list[tuple[int, int]](), bytearray()
        for fields in kept:
            for name in self._keep:
                begin = len(values)
                if fields is not None and name in fields:
                    values += msgspec.json.encode(fields[name])
                spans.append(
                    (begin, len(values)) if begin < len(values) else (-1, -1) if fields else NO_FIELDS
                )
        shape = len(kept), len(self._keep), 2
        return np.frombuffer(bytes(values), np.uint8), np.array(spans, np.int64).reshape(shape)


class _Lines:
    """What ordinary lines of a batch say."""

    def __init__(self) -> None:
        self.numbers = list[int]()
        self.messages = list[str]()
        self.times = list[float]()
        self.parts = list[tuple[str | None, ...]]()
        """What may be their levels and components, where these are kept."""

    def exact(self) -> bool:
        """Whether six decimals hold all of their times."""
        times = np.array(self.times, float)
        times = times[times == times]
        return bool(((np.abs(times) < LARGEST) & (np.rint(times * 1e6) / 1e6 == times)).all())


def _partitions(raws: Raws) -> set[int | None]:
    """Which partitions the lines are from; None is that of a file."""
    if "partition" not in raws.counted:
        return {raws.fixed.get("partition")}
    return set(places_of(raws)[:, raws.counted.index("partition")].tolist())
