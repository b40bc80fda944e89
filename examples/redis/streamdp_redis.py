"""Redis Streams: ``streamdp consume redis://host/news --output redis://host/answers --state st``.

An address is ``redis://[user:password@]host[:port]/stream[?db=0]``, or ``rediss://`` for TLS. An entry holds
one record in its field ``record``; an entry without this field is a record of all its fields. Lines are
written as entries with the same field. The ids of these are the numbers of the lines: 1-0, 2-0, and so on.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import redis
from streamdp_connectors.protocol import ConnectorError, SinkError, SinkRequest, SourceError, SourceRequest

from streamdp.errors import Exit
from streamdp.records import Raw

FIELD = b"record"
BEGINNING = "0-0"
"""A position before the first entry."""
AT_ONCE = 1000
"""Lines that one transaction writes."""
OLDEST_TIME = 10**11
"""Milliseconds: a smaller number in an id counts entries."""


class Place(NamedTuple):
    """A stream of a server, by its address."""

    client: redis.Redis
    key: str
    shown: str
    error: type[ConnectorError]

    @classmethod
    def of(cls, address: str, error: type[ConnectorError], **options: Any) -> Place:
        """Read an address. ValueError is shown to the user behind the address, without its password."""
        parts = urlsplit(address)
        key, query = unquote(parts.path[1:]), dict(parse_qsl(parts.query))
        db = query.pop("db", "0")
        if not key or query or not db.isdecimal():
            raise ValueError("an address of a Redis stream is redis://host:6379/NAME or .../NAME?db=1")
        client = redis.Redis(
            host=parts.hostname or "localhost",
            port=parts.port or 6379,
            db=int(db),
            username=parts.username and unquote(parts.username),
            password=parts.password and unquote(parts.password),
            ssl=parts.scheme == "rediss",
            socket_timeout=30,
            **options,
        )
        return cls(client, key, f"stream {key} at {parts.hostname}:{parts.port or 6379}", error)

    @contextlib.contextmanager
    def asked(self) -> Iterator[None]:
        """Raise what Redis says as one line, with an exit code that tells a script whether to try again."""
        try:
            yield
        except redis.RedisError as error:
            lost = isinstance(error, redis.ConnectionError | redis.TimeoutError)
            raise self.wrong(str(error), Exit.UNAVAILABLE if lost else Exit.IO_ERROR) from None

    def wrong(self, what: str, code: Exit) -> ConnectorError:
        """The error that ends the run."""
        return self.error(f"{self.shown}: {what}", code)


class RedisSource:
    """Entries of a stream, in its order."""

    place = ("stream", "entry")

    def __init__(self, request: SourceRequest) -> None:
        self._place = Place.of(request.address, SourceError)
        self._follow, self._last, self._end = request.follow, BEGINNING, False
        self._after(1)  # so that a server that is not there is known at once
        with self._place.asked():
            if not (self._follow or self._place.client.exists(self._place.key)):
                raise self._place.wrong("there is no such stream: --follow waits for one", Exit.NO_INPUT)

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""
        return self._end

    def read(self, max_records: int, timeout: float) -> list[Raw]:
        """Return what is there; if that is nothing, wait for more where the stream is followed."""
        found = self._after(max_records)
        if self._follow and not found:
            wait = max(1, int(1000 * timeout))  # for Redis, 0 is for ever
            with self._place.asked():
                self._place.client.xread({self._place.key: self._last}, count=1, block=wait)
            found = self._after(max_records)
        self._end = not self._follow and len(found) < max_records
        self._last = found[-1][0] if found else self._last
        now = time.time()
        return [self._raw(entry, fields, now) for entry, fields in found]

    def _after(self, count: int) -> list[tuple[str, dict[bytes, bytes]]]:
        """Entries behind the last one, which must still be there: else others may have gone with it."""
        new = self._last == BEGINNING
        with self._place.asked():
            found: Any = self._place.client.xrange(self._place.key, min=self._last, count=count + 1)
        entries = [(entry.decode(), fields) for entry, fields in found]
        if not new and (not entries or entries[0][0] != self._last):
            what = f"entry {self._last} is gone, and entries after it may be, too"
            how = "keep more of the stream, and begin anew with another --state"
            raise self._place.wrong(f"{what}: {how}", Exit.BAD_DATA)
        return entries[:count] if new else entries[1:]

    def _raw(self, entry: str, fields: dict[bytes, bytes], now: float) -> Raw:
        data = fields.get(FIELD)
        if data is None:
            pairs = {name.decode(errors="replace"): v.decode(errors="replace") for name, v in fields.items()}
            data = json.dumps(pairs).encode()
        milliseconds = int(entry.partition("-")[0])
        sent = milliseconds / 1000 if milliseconds > OLDEST_TIME else None
        return Raw(data, {"stream": self._place.key, "entry": entry}, now, sent)

    def positions(self) -> dict[str, Any]:
        """What ``seek`` needs to go on after the last entry that was read."""
        return {"stream": self._place.key, "entry": self._last}

    def seek(self, positions: dict[str, Any]) -> bool:
        """Go on after an entry."""
        if positions.get("stream") != self._place.key:
            what = f"the state continues stream {positions.get('stream')}"
            raise self._place.wrong(f"{what}: name that one, or another --state", Exit.BAD_DATA)
        self._last = positions["entry"]
        self._after(1)
        return True

    def close(self) -> None:
        """Give the connection back."""
        self._place.client.close()


class RedisSink:
    """Lines as entries, each once: what a killed run wrote after its snapshot is recognised by its number."""

    def __init__(self, request: SinkRequest) -> None:
        # A command that is sent again may find its own entries: the next run compares them, as after a kill.
        retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        self._place = Place.of(request.address, SinkError, retry=retry)
        self._lines: list[bytes] = []
        self._number = request.left["number"] if request.left else 0  # of the last line that was written
        with self._place.asked():
            if request.left is None and request.overwrite:
                self._place.client.delete(self._place.key)
            self._top = self._last_there()
        if request.left is None and self._top:
            raise self._place.wrong("it exists: --overwrite replaces it", Exit.CANNOT_CREATE)
        if self._top < self._number:
            what = f"it ends with line {self._top:,}, and the state has written {self._number:,}"
            raise self._place.wrong(f"{what}: it was made anew, or its server lost them", Exit.BAD_DATA)
        if not request.replayed:  # what was written after the snapshot does not come again
            self._number = self._top

    def _last_there(self) -> int:
        """The number of the last line that was ever written to the stream."""
        if not self._place.client.exists(self._place.key):
            return 0
        about: Any = self._place.client.xinfo_stream(self._place.key)
        return int(about["last-generated-id"].partition(b"-")[0])

    def write(self, lines: bytes) -> None:
        """Take whole lines."""
        self._lines += lines.splitlines()

    def flush(self, sync: bool) -> None:
        """Hand all lines to the server, which decides when they are on its disk (``appendfsync``)."""
        with self._place.asked():
            while self._lines:
                lines = self._lines[:AT_ONCE]
                same = self._recognised(lines) if self._number < self._top else 0
                if same < len(lines):
                    self._take_back(self._number + same)
                    with self._place.client.pipeline(transaction=True) as all_or_none:
                        for number, line in enumerate(lines[same:], self._number + same + 1):
                            all_or_none.xadd(self._place.key, {FIELD: line}, id=f"{number}-0")
                        all_or_none.execute()
                self._number += len(lines)
                self._top = max(self._top, self._number)
                del self._lines[:AT_ONCE]

    def _recognised(self, lines: list[bytes]) -> int:
        """How many of the next lines are there already. One that somebody has trimmed counts as there."""
        first, last = self._number + 1, min(self._number + len(lines), self._top)
        found: Any = self._place.client.xrange(self._place.key, f"{first}-0", f"{last}-0")
        there = {entry: fields.get(FIELD) for entry, fields in found}
        for i, line in enumerate(lines[: last - first + 1]):
            if there.get(b"%d-0" % (first + i), line) != line:
                return i
        return last - first + 1

    def _take_back(self, number: int) -> None:
        """Remove the lines behind one: the input had ended, and has grown; its last answers are others."""
        if self._top <= number:
            return
        entries: Any = self._place.client.xrange(self._place.key, f"{number + 1}-0")
        if entries:
            self._place.client.xdel(self._place.key, *(entry for entry, _ in entries))
        self._place.client.execute_command("XSETID", self._place.key, f"{number}-0")  # type: ignore[no-untyped-call]
        self._top = number

    def lasting(self) -> Callable[[], None]:
        """Return a function that waits until all so far is safe: it is, as far as the server goes."""
        return lambda: None

    def state(self) -> dict[str, int]:
        """What the next run is to know."""
        return {"number": self._number}

    def close(self) -> None:
        """Flush, and give the connection back."""
        self.flush(True)
        self._place.client.close()
