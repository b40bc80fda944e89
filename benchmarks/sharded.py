"""The shards of a stream and their merger in one process, as Spark has them in many."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from zlib import crc32

from streamdp.encode.rows import Rows
from streamdp.records import Answers, Record, Reject, Value, all_plain
from streamdp.records.frames import rows_of
from streamdp.settings import Settings
from streamdp.sharding import Merger, Shard
from streamdp.threads import OneThreadAtATime, share_lock


def shard_of(data: bytes, shards: int) -> int:
    """The shard of a record as it is written: by its CRC-32, as Spark's function of that name has it."""
    return crc32(data) % shards


class Sharded(OneThreadAtATime):
    """Shards, and a merger of what they find.

    Records go to shards by their bytes, or their texts where they have none. The answers are those of the
    :class:`Merger`, which has seen all of them.
    """

    def __init__(
        self, settings: Settings | None = None, shards: int = 2, *, with_events: bool = False
    ) -> None:
        settings = settings or Settings()
        self.shards = [Shard(settings, shards, number) for number in range(shards)]
        self.merger = Merger(settings, with_events=with_events)
        self._arrivals, self._rows = 0, Rows(settings)
        for engine in (self.merger, *(shard.engine for shard in self.shards)):
            share_lock(self, engine)

    def advance(self, records: Iterable[Record | Reject | Value]) -> Answers:
        """Take records in order of arrival; as ``Engine.advance``."""
        made = all_plain(rows_of(records), self._arrivals, self._rows.read)
        self._arrivals += len(made)
        return self.merger.advance(self.with_parts(made))

    def finish(self) -> Answers:
        """End the stream; as ``Engine.finish``."""
        return self.merger.finish()

    def with_parts(self, records: Sequence[Record | Reject]) -> list[Record | Reject]:
        """The same records, each with the cluster that its shard has found for it."""
        routes = [self._route(record) for record in records]
        pairs = list(zip(records, routes, strict=True))
        found = [
            iter(shard.advance([record for record, route in pairs if route == number]))
            for number, shard in enumerate(self.shards)
        ]
        return [next(found[route]) if route >= 0 else record for record, route in pairs]

    def _route(self, record: Record | Reject) -> int:
        """The shard of a record; -1 for what goes to none."""
        if isinstance(record, Reject):
            return -1
        return shard_of(record.raw or repr(record.value).encode(), len(self.shards))
