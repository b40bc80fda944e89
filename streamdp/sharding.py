"""One stream over several engines: shards, which see a share of it, and a merger that joins their clusters.

A shard sees a share of the records, by chance. It makes clusters that are small and pure rather than large:
what it has divided is joined later, what it has joined stays so. Records follow their parts, which are the
clusters of shards, and second looks find which parts are one.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.beam.data.state import REVIEW_EVERY
from streamdp.beam.looks.review import slots_of
from streamdp.beam.search import BeamSearch
from streamdp.encode.encoders import Encoder
from streamdp.engine import Engine
from streamdp.records import POSITION, Answers, Record, Reject
from streamdp.records.answer_rows import answer_rows
from streamdp.records.columns import Columns
from streamdp.settings import ConfigError, Settings
from streamdp.settings.assemble import distance_prior, is_sparse
from streamdp.settings.schema import LEAST_MEMORY
from streamdp.state.sound import refusing
from streamdp.state.stamp import checked, stamped
from streamdp.streams.beam import BeamStream

NEVER = 1e300
"""Seconds that nothing is beyond."""

PURITY = 0.5
"""By how much a shard's concentration grows with the number of shards, in concentrations of the stream.

A shard weighs a new cluster against a share of the records, so that its clusters are purer than those of one
engine from three shards on.
"""


def shard_settings(settings: Settings, shards: int) -> Settings:
    """The settings of each shard: distances and weights of a stream of which it sees a share.

    Raises ConfigError for what cannot be in shards.
    """
    if settings.of_lines or is_sparse(settings) is False:
        raise ConfigError("shards are for texts and categories")
    if settings.numbers:
        raise ConfigError("numbers are divided by the records that one engine has seen: not in shards")
    if settings.of_vector_beside:
        named = "vector_field" if settings.embed is None else "embed"
        raise ConfigError(f"{named}: a merger knows clusters by their words, and no vectors: not in shards")
    prior = distance_prior(settings, sparse=True)
    if prior is None:
        raise ConfigError(f"shards are for the distance-dependent prior, not {settings.prior}")
    distance = prior.decay.scale
    return msgspec.structs.replace(
        settings,
        concentration=prior.concentration * max(1.0, PURITY * shards),
        decay_scale=distance / shards if settings.distance == "records" else distance,
        retain=max(settings.retain // shards, 1),
        memory_limit=max(settings.memory_limit // shards, LEAST_MEMORY),
        second_look=0,
        refine_every=0,
        # what is late or ahead is decided by the merger, of the complete stream
        max_lateness=0.0,
        max_ahead=NEVER,
        max_leap=NEVER,
        late="place",
    )


class Shard:
    """One of the engines of a stream; ``engine`` to go on with, else a new one."""

    def __init__(self, settings: Settings, shards: int, number: int, engine: Engine | None = None) -> None:
        self._shards, self._number = shards, number
        self.engine = engine or Engine(shard_settings(settings, shards))

    def advance(self, records: Sequence[Record | Reject]) -> list[Record | Reject]:
        """The same records, in their order, each with the cluster that the shard has found for it.

        A part is a number that no other cluster of any shard has. What the shard refuses goes on without
        one, to be refused with all the stream's rejects.
        """
        # answers are told apart by their positions, which records may share: give each its own
        own = [
            msgspec.structs.replace(record, position={"record": i}) if isinstance(record, Record) else record
            for i, record in enumerate(records)
        ]
        answers = self.engine.advance(own)
        if self.engine.kind == "vectors":
            raise ConfigError("shards are for texts and categories")
        first = answer_rows(answers.lines).first()
        parts = {
            msgspec.json.decode(place)["record"]: label * self._shards + self._number
            for place, label in zip(first.written(POSITION), first.rows["label"].tolist(), strict=True)
        }
        return [
            msgspec.structs.replace(record, part=parts.get(i)) if isinstance(record, Record) else record
            for i, record in enumerate(records)
        ]


def merge_settings(settings: Settings) -> Settings:
    """The settings of the merger: those of the stream, with nothing left to search.

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
        self._looks.most_records = sys.maxsize  # two parts of one topic may both be large
        self.retained.most_bytes = (
            1 << 62
        )  # where a part goes depends on the latest ``retain``, in any batches
        self.lasts: dict[int, int] = {}

    def _absorb(
        self,
        search: BeamSearch,
        encoder: Encoder,
        records: Columns,
        times: np.ndarray,
        answers: Answers,
    ) -> None:
        first = self.seq
        super()._absorb(search, encoder, records, times, answers)
        self.lasts.update(
            {record.part: first + i for i, record in enumerate(records) if record.part is not None}
        )
        if self.seq % REVIEW_EVERY == 0:
            oldest = self.seq - self.settings.retain
            self.lasts = {part: seq for part, seq in self.lasts.items() if seq >= oldest}

    def decided(self, search: BeamSearch, records: Columns) -> np.ndarray:
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

    def _stream_of(self, *given: Any, **modes: Any) -> _Joining:
        return _Joining(*given, **modes)

    def __reduce__(self) -> tuple[Any, ...]:
        """A merger that is pickled or copied goes on from the same state."""
        return _revived, (self.settings, self.with_events, self.dumps(), self.dump_parts())

    def dump_parts(self) -> bytes:
        """Which record of each part was the last: with :meth:`dumps`, all of the state."""
        lasts = sorted(self._stream.lasts.items())
        return msgspec.msgpack.encode(stamped({"lasts": lasts}))

    def load_parts(self, data: bytes) -> None:
        """The inverse of :meth:`dump_parts`. Raises SnapshotError."""
        with refusing():
            lasts = checked(msgspec.msgpack.decode(data))["lasts"]
            self._stream.lasts = dict(msgspec.convert(lasts, list[tuple[int, int]]))


def _revived(settings: Settings, with_events: bool, state: bytes, parts: bytes) -> Merger:
    merger = Merger.loads(state, settings, with_events=with_events)
    merger.load_parts(parts)
    return merger


def _founders(search: BeamSearch, labels: np.ndarray) -> np.ndarray:
    """The records that began the clusters of these labels; -1 for clusters that are not open any more."""
    slots = slots_of(search, labels)
    return np.where(slots >= 0, search.state.pool.founder[slots], -1)
