"""Engines on Spark's workers: one for each key, or shards of one stream and a merger of their clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from streamdp.engine import Engine
from streamdp.records import Answers, Record, Reject
from streamdp.sharding import Merger, Shard, merge_settings, shard_settings
from streamdp.spark.keeping import Arrived, Keeper, Plan, body_of
from streamdp.spark.schema import PART, frame_of


class KeyedClusterer(Keeper):
    """Takes the rows of one key in each micro-batch, and answers them."""

    def begin(self, key: tuple[Any, ...]) -> Engine:
        """A stream of its own."""
        return Engine(self._plan.settings, with_events=True)

    def load(self, stored: bytes, key: tuple[Any, ...]) -> Engine:
        """The same, going on."""
        named = " ".join(f"{name} {value}" for name, value in zip(self._plan.key, key, strict=True))
        body = body_of(stored, self._plan.settings, f"the state of {named}")
        return Engine.loads(body, self._plan.settings, with_events=True)

    def answer(self, engine: Engine, key: tuple[Any, ...], arrived: Arrived) -> pd.DataFrame:
        """The answers, each with its key."""
        return frame_of(engine.advance(arrived.records), dict(zip(self._plan.key, key, strict=True)))


def to_the_end(engine: Engine, records: Sequence[Record | Reject]) -> Answers:
    """All that an engine says of the records of a finished table."""
    answers, end = engine.advance(records), engine.finish()
    answers.lines.extend(end.lines)
    answers.events.extend(end.events)
    answers.rejects.extend(end.rejects)
    return answers


def answer_table(plan: Plan, key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The answers to all rows of one key of a finished table, to the end."""
    engine = Engine(plan.settings, with_events=True)
    answers = to_the_end(engine, Arrived.of(frame, plan).records)
    return frame_of(answers, dict(zip(plan.key, key, strict=True)))


SHARD, ALL = "streamdp_shard", "streamdp_all"
"""Columns: the number of a row's shard; the one key of the merger."""

PARTS, PARTS_TYPE = "streamdp_parts", "parts binary"
"""State variable of the merger: which record of each part was the last."""


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


def parts_of_table(plan: Plan, key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of one shard of a finished table, with their parts."""
    return _with_parts(plan, int(key[0]), None, Arrived.of(frame.drop(columns=SHARD), plan))


class MergeClusterer(Keeper):
    """Takes the rows of all shards, and answers them as one stream."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Ask for the state variables."""
        super().init(handle)
        self._parts = handle.getValueState(PARTS, PARTS_TYPE)

    def begin(self, key: tuple[Any, ...]) -> Engine:
        """A merger with an empty state."""
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


def merge_table(plan: Plan, frame: pd.DataFrame) -> pd.DataFrame:
    """The answers to all rows of a finished table, to the end."""
    return frame_of(to_the_end(Merger(plan.settings, with_events=True), Arrived.of(frame, plan).records), {})
