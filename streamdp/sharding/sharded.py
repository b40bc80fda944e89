"""A stream in shards, all of them in this process: what a cluster of machines would answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamdp.records import Answers, Record, Reject, Value, all_plain
from streamdp.settings import Settings
from streamdp.sharding.merging import Merger
from streamdp.sharding.shard import Shard, shard_of


class Sharded:
    """Shards, and who joins what they find.

    Records go to shards by their bytes, or their texts where they have none. The answers are those of the
    :class:`Merger`, which has seen all of them.
    """

    def __init__(
        self, settings: Settings | None = None, shards: int = 2, *, with_events: bool = False
    ) -> None:
        settings = settings or Settings()
        self.shards = [Shard(settings, shards, number) for number in range(shards)]
        self.merger = Merger(settings, with_events=with_events)
        self._arrivals = 0

    def advance(self, records: Iterable[Record | Reject | Value]) -> Answers:
        """Take records in order of arrival; as ``Engine.advance``."""
        made = all_plain(records, self._arrivals)
        self._arrivals += len(made)
        return self.merger.advance(self.with_parts(made))

    def finish(self) -> Answers:
        """End the stream; as ``Engine.finish``."""
        return self.merger.finish()

    def with_parts(self, records: Sequence[Record | Reject]) -> list[Record | Reject]:
        """The same records, each with the cluster that its shard has found for it."""
        routes = [self._route(record) for record in records]
        found = {s: iter(shard.advance(_of(records, routes, s))) for s, shard in enumerate(self.shards)}
        pairs = zip(records, routes, strict=True)
        return [next(found[route]) if route >= 0 else record for record, route in pairs]

    def _route(self, record: Record | Reject) -> int:
        """The shard of a record; -1 for what goes to none."""
        if isinstance(record, Reject):
            return -1
        return shard_of(record.raw or repr(record.value).encode(), len(self.shards))


def _of(records: Sequence[Record | Reject], routes: Sequence[int], shard: int) -> list[Record | Reject]:
    return [record for record, route in zip(records, routes, strict=True) if route == shard]
