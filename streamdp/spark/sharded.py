"""One stream over several engines on Spark's workers: shards, and after them who joins their clusters."""

from __future__ import annotations

from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.sharding.merging import Merger, merge_settings
from streamdp.sharding.shard import Shard, shard_settings
from streamdp.spark.intake import PART
from streamdp.spark.keeping import Arrived, Keeper, Plan, body_of
from streamdp.spark.keyed import to_the_end
from streamdp.spark.schema import frame_of

SHARD, ALL = "streamdp_shard", "streamdp_all"
"""Columns: the number of a row's shard; the one key of who joins."""

PARTS, PARTS_TYPE = "streamdp_parts", "parts binary"
"""State variable of who joins: which record of each part was the last."""


class ShardClusterer(Keeper):
    """Gives each row of a shard the cluster that the shard finds for it."""

    def begin(self, key: tuple[Any, ...]) -> Engine:
        """A shard of the stream."""
        return Engine(shard_settings(self._plan.settings, self._plan.shards))

    def load(self, stored: bytes, key: tuple[Any, ...]) -> Engine:
        """The same, going on."""
        settings = shard_settings(self._plan.settings, self._plan.shards)
        return Engine.loads(body_of(stored, settings, f"the state of shard {key[0]}"), settings)

    def answer(self, engine: Engine, key: tuple[Any, ...], arrived: Arrived) -> pd.DataFrame:
        """The rows, with their parts."""
        return _with_parts(self._plan, int(key[0]), engine, arrived)


def _with_parts(plan: Plan, number: int, engine: Engine | None, arrived: Arrived) -> pd.DataFrame:
    found = Shard(plan.settings, plan.shards, number, engine).advance(arrived.records)
    parts = {
        id(row): record.part
        for row, record in zip(arrived.taken, found, strict=True)
        if isinstance(record, Record)
    }
    found_for = [parts.get(id(row)) for row in arrived.rows]
    return arrived.frame.assign(**{PART: pd.Series(found_for, dtype=object)})


def parts_whole(plan: Plan, key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of one shard of a finished table, with their parts."""
    return _with_parts(plan, int(key[0]), None, Arrived.of(frame.drop(columns=SHARD), plan))


class MergeClusterer(Keeper):
    """Takes the rows of all shards, and answers them as one stream."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Ask for the state variables."""
        super().init(handle)
        self._parts = handle.getValueState(PARTS, PARTS_TYPE)

    def begin(self, key: tuple[Any, ...]) -> Engine:
        """Who has seen nothing."""
        return Merger(self._plan.settings, with_events=True)

    def load(self, stored: bytes, key: tuple[Any, ...]) -> Engine:
        """The same, going on."""
        settings, parts = merge_settings(self._plan.settings), self._parts.get()
        assert parts is not None, "the state is written with its parts"
        merger = Merger.loads(body_of(stored, settings, "the state of the whole"), settings, with_events=True)
        merger.load_parts(bytes(parts[0]))
        return merger

    def answer(self, engine: Engine, key: tuple[Any, ...], arrived: Arrived) -> pd.DataFrame:
        """The answers, of all shards in one order."""
        return frame_of(engine.advance(arrived.records), {})

    def keep(self, engine: Engine) -> None:
        """The parts, which a snapshot has not."""
        assert isinstance(engine, Merger)
        self._parts.update((engine.dump_parts(),))


def merge_whole(plan: Plan, frame: pd.DataFrame) -> pd.DataFrame:
    """The answers to all rows of a finished table, to the end."""
    return frame_of(to_the_end(Merger(plan.settings, with_events=True), Arrived.of(frame, plan).records), {})
