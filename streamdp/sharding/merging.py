"""Joining what shards have found: records follow their parts, and second looks find which parts are one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.beam.data.model import REVIEW_EVERY
from streamdp.beam.looks.review import slots_of
from streamdp.beam.search import BeamSearch
from streamdp.encode.order import ReorderBuffer
from streamdp.engine import Engine
from streamdp.records import Answers, Record
from streamdp.settings import Settings
from streamdp.settings.blueprint import Blueprint
from streamdp.settings.load import ConfigError
from streamdp.sharding.shard import shard_settings
from streamdp.streams.beam import BeamStream
from streamdp.streams.stream import Stream


def merge_settings(settings: Settings) -> Settings:
    """The settings of who joins the clusters: those of the stream, with nothing left to search.

    Raises ConfigError for what cannot be in shards.
    """
    shard_settings(settings, 1)
    if not settings.second_look or settings.retain < settings.second_look + REVIEW_EVERY:
        raise ConfigError(
            "shards need second looks, which join their clusters: leave second_look and retain as they are"
        )
    return msgspec.structs.replace(settings, beam=1)


class _Joining(BeamStream):
    """A stream of records whose parts are known: ``lasts`` is the number of the last record of each."""

    def __init__(self, *given: Any, **modes: Any) -> None:
        super().__init__(*given, **modes)
        self.lasts: dict[int, int] = {}

    def _run(self, answers: Answers) -> None:
        first, coming = self.seq, [record for _, record in self.intake.pending]
        super()._run(answers)
        seqs = {record.part: first + i for i, record in enumerate(coming) if record.part is not None}
        self.lasts.update(seqs)
        if self.seq % REVIEW_EVERY == 0:
            oldest = self.seq - self.settings.retain
            self.lasts = {part: seq for part, seq in self.lasts.items() if seq >= oldest}

    def decided(self, search: BeamSearch, records: Sequence[Record]) -> np.ndarray:
        """Where the last record of each part is: its place in the batch, or its cluster's founder."""
        first, retain = search.seq, self.settings.retain
        decided, places = np.full(len(records), -1), dict[int, int]()
        known: list[int] = []
        lasts: list[int] = []
        for i, part in enumerate(record.part for record in records):
            if part is None:
                continue
            last = self.lasts.get(part, -1)
            if part in places:
                decided[i] = -2 - places[part]
            elif last >= max(first + i - retain, 0):
                known.append(i)
                lasts.append(last)
            places[part] = i
        if known:
            labels, _ = self.retained.newest()
            founders = _founders(search, labels[np.array(lasts) - (first - len(labels))])
            decided[known] = np.where(founders < 0, -1, -2 - len(records) - founders)
        return decided


class Merger(Engine):
    """An engine of records whose parts are known.

    The first record of a part goes where it fits best, as any record of a stream does, or founds a cluster;
    those that follow go where the last of them is now. Records and clusters that belong elsewhere are moved
    by second looks: nothing else joins parts, and the kernels are those of a single stream.
    """

    _stream: _Joining

    def __init__(self, settings: Settings | None = None, **options: Any) -> None:
        super().__init__(merge_settings(settings or Settings()), **options)

    def _stream_of(self, blueprint: Blueprint, order: ReorderBuffer, *, final_only: bool) -> Stream:
        return _Joining(blueprint, order, final_only=final_only)

    def __reduce__(self) -> tuple[Any, ...]:
        """A merger that is pickled or copied goes on from the same state."""
        return _revived, (self.settings, self.with_events, self.dumps(), self.dump_parts())

    def dump_parts(self) -> bytes:
        """Which record of each part was the last: with :meth:`dumps`, all of the state."""
        return msgspec.msgpack.encode(sorted(self._stream.lasts.items()))

    def load_parts(self, data: bytes) -> None:
        """The inverse of :meth:`dump_parts`."""
        self._stream.lasts = dict(msgspec.msgpack.decode(data, type=list[tuple[int, int]]))


def _revived(settings: Settings, with_events: bool, state: bytes, parts: bytes) -> Merger:
    merger = Merger.loads(state, settings, with_events=with_events)
    merger.load_parts(parts)
    return merger


def _founders(search: BeamSearch, labels: np.ndarray) -> np.ndarray:
    """The records that began the clusters of these labels; -1 for clusters that are not open any more."""
    slots = slots_of(search, labels)
    return np.where(slots >= 0, search.state.pool.founder[slots], -1)
