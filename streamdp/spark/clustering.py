"""Streaming data frames in, answers out: an engine for each key, or the shards of one stream and a merger."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pandas as pd
import pyspark.sql.functions as F  # noqa: N812 - the usual name
from pyspark.sql import DataFrame
from pyspark.sql.column import Column
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.records import Answers, Lines, Record, Reject, is_missing
from streamdp.settings import Settings
from streamdp.settings.load import checked
from streamdp.sharding import Merger, Shard, merge_settings, shard_settings
from streamdp.spark.keeping import Arrived, Keeper, Plan, body_of
from streamdp.spark.schema import ARRIVAL, COLUMNS, ORDER, PART, POSITION, RECORD, Intake, frame_of


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

    def handleInputRows(  # noqa: N802 - Spark's name
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        """Advance the engine of a key; rows that have none are no stream."""
        if any(map(is_missing, key)):
            yield _keyless(self._plan, tuple(key), pd.concat(rows, ignore_index=True))
        else:
            yield from super().handleInputRows(key, rows, timerValues)

    def answer(self, engine: Engine, key: tuple[Any, ...], arrived: Arrived) -> pd.DataFrame:
        """The answers, each with its key."""
        return frame_of(engine.advance(arrived.records), dict(zip(self._plan.key, key, strict=True)))


def _keyless(plan: Plan, key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The rejects of rows that have no key, or lack a part of it."""
    found = [
        Reject(record.position, "missing_field", "it has no key", record.raw)
        if isinstance(record, Record)
        else record
        for record in Arrived.of(frame, plan).records
    ]
    parts = (None if is_missing(part) else part for part in key)
    return frame_of(Answers(Lines(), found, []), dict(zip(plan.key, parts, strict=True)))


def to_the_end(engine: Engine, records: Sequence[Record | Reject]) -> Answers:
    """All that an engine says of the records of a finished table."""
    answers, end = engine.advance(records), engine.finish()
    answers.lines.extend(end.lines)
    answers.events.extend(end.events)
    answers.rejects.extend(end.rejects)
    return answers


def answer_table(plan: Plan, key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The answers to all rows of one key of a finished table, to the end."""
    if any(map(is_missing, key)):
        return _keyless(plan, key, frame)
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


VALUE = "value"
"""The column that holds records as they are written, in what is read from a topic or from files of text."""

Shape = Literal["fields", "written", "topic"]
"""How rows hold records: by their columns, as they are written, or so with their places in a topic."""


def cluster(
    df: DataFrame,
    settings: Settings | None = None,
    *,
    key: str | Sequence[str] = (),
    shards: int | None = None,
    order: str | Sequence[str] = (),
    time_to_live: float | None = None,
    memory: int = 1 << 28,
) -> DataFrame:
    """Cluster the rows of each key by an engine of its own, or all rows as one stream in shards.

    ``df`` has the columns of the file formats (``text``, ``vector`` or ``features``, ``time``, ``id``, or
    those that the settings name), or a column ``value`` of records as they are written: that is what Spark
    reads from a topic or from files of text. With ``topic``, ``partition``, ``offset`` and ``timestamp``
    beside it, records are taken as a consumer of the topic takes them. The answers have the columns of
    ``streamdp.spark.schema.COLUMNS`` after those of the key.

    A streaming data frame needs Spark's RocksDB state store (this sets it for the session, where nothing else
    was chosen); its answers come in append mode. One that is not streaming is answered to the end, all of it
    final.

    Parameters
    ----------
    settings
        As everywhere; None: the defaults. ``format`` is jsonl (auto), text or log, of the column ``value``.
    key
        The columns that distinguish streams: a tenant, a service, a language. Rows where one is null are
        rejects (``missing_field``).
    shards
        In the place of a key: one stream, of texts or categories, clustered by so many engines of which each
        sees a share of the records, and one that joins what they find.
    order
        The columns by which the rows of a key are ordered within a micro-batch, where rows of equal time must
        not be, or have none; never needed for a topic.
    time_to_live
        Seconds of wall clock after which a key that nothing came for is forgotten; a record that comes then
        begins anew, at cluster 0. Triggers of Spark that end by themselves do not end then.
    memory
        Bytes of packed states up to which each Python worker keeps engines between micro-batches. An engine
        in memory takes some ten times as much as its packed state.

    Raises
    ------
    ConfigError
        For settings that cannot be used, columns that are not there, and rows that could be in any order.
    """
    settings = checked(settings or Settings())
    Engine(settings)  # what is wrong with the settings is reported here, not by a worker
    keys = (key,) if isinstance(key, str) else tuple(key)
    orders = (order,) if isinstance(order, str) else tuple(order)
    if bool(keys) == (shards is not None):
        raise ConfigError("say either key, for a stream of each, or shards, for one stream of all rows")
    if shards is not None:
        _check_shards(shards, settings, time_to_live)
    _check_names(df, keys, orders)
    shape = _shape(df, settings)
    _check_order(df, settings, shape, orders)
    Intake(settings)
    plan = Plan(uuid.uuid4().hex, settings, keys, memory, time_to_live, shards or 1)
    columns = _columns(df, shape, orders)
    if df.isStreaming:
        _use_rocks(df)
    return _by_key(df, columns, plan) if keys else _in_shards(df, columns, plan)


def _by_key(df: DataFrame, columns: list[Column], plan: Plan) -> DataFrame:
    rows = df.select(*map(F.col, plan.key), *columns).groupBy(*plan.key)
    schema = _schema(dict(df.select(*plan.key).dtypes) | COLUMNS)
    if not df.isStreaming:
        return rows.applyInPandas(lambda key, frame: answer_table(plan, key, frame), schema)
    mode = "None" if plan.time_to_live is None else "ProcessingTime"
    return rows.transformWithStateInPandas(KeyedClusterer(plan), schema, "Append", mode)


def _in_shards(df: DataFrame, columns: list[Column], plan: Plan) -> DataFrame:
    given = df.select(*columns)
    rows = given.withColumn(SHARD, F.crc32(RECORD) % plan.shards).groupBy(SHARD)
    schema, answers = _schema(dict(given.dtypes) | {PART: "bigint"}), _schema(COLUMNS)
    if df.isStreaming:
        found = rows.transformWithStateInPandas(ShardClusterer(plan), schema, "Append", "None")
    else:
        found = rows.applyInPandas(lambda key, frame: parts_of_table(plan, key, frame), schema)
    joined = found.withColumn(ALL, F.lit("all")).groupBy(ALL)
    if not df.isStreaming:
        return joined.applyInPandas(lambda frame: merge_table(plan, frame), answers)
    return joined.transformWithStateInPandas(MergeClusterer(plan), answers, "Append", "None")


def _check_shards(shards: int, settings: Settings, time_to_live: float | None) -> None:
    if shards < 1:
        raise ConfigError(f"shards: at least 1, not {shards}")
    if time_to_live is not None:
        raise ConfigError("time_to_live is for keys: shards are of one stream, which does not end")
    merge_settings(settings)


def _schema(columns: Mapping[str, str]) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in columns.items())


def _check_names(df: DataFrame, keys: Sequence[str], orders: Sequence[str]) -> None:
    lacking = [name for name in (*keys, *orders) if name not in df.columns]
    if lacking:
        raise ConfigError(f"the data frame has no column {', '.join(map(repr, lacking))}")
    taken = [name for name in keys if name in COLUMNS]
    if taken:
        raise ConfigError(
            f"{', '.join(map(repr, taken))}: is a column of the answers; give the key another name"
        )


def _shape(df: DataFrame, settings: Settings) -> Shape:
    """How the rows hold records. Raises ConfigError where they hold none."""
    columns, named = set(df.columns), (settings.text_field, settings.vector_name, settings.features_field)
    if settings.of_categories and VALUE not in columns:
        return "fields"
    if not settings.of_categories and columns.intersection(named):
        return "fields"
    if VALUE not in columns:
        shown = ", ".join(map(repr, named))
        raise ConfigError(f"the data frame has none of the columns {shown}, {VALUE!r}")
    return "topic" if {ARRIVAL, *POSITION} <= columns else "written"


def _check_order(df: DataFrame, settings: Settings, shape: Shape, orders: Sequence[str]) -> None:
    timed = settings.time_field in df.columns if shape == "fields" else settings.format != "text"
    if not (timed or orders or shape == "topic"):
        raise ConfigError(
            f"rows come in no order of their own: there is no column {settings.time_field!r}, so name some "
            "with order="
        )


def _columns(df: DataFrame, shape: Shape, orders: Sequence[str]) -> list[Column]:
    """What workers get beside the key."""
    found = [F.col(name).alias(f"{ORDER}_{number}") for number, name in enumerate(orders)]
    if shape == "fields":
        exact = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
        of_all = F.to_json(F.struct(*(F.col(f"`{name}`") for name in df.columns)), exact)
        return [*found, of_all.cast("binary").alias(RECORD)]
    found.append(F.col(VALUE).cast("binary").alias(RECORD))
    if shape == "topic":
        found += [F.col(name) for name in POSITION]
        found.append(F.col(ARRIVAL).cast("double").alias(ARRIVAL))
    return found


_STORE = "spark.sql.streaming.stateStore.providerClass"
_ROCKS = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


def _use_rocks(df: DataFrame) -> None:
    """Choose the state store that keeps more than one value for a key."""
    conf = df.sparkSession.conf
    if "RocksDB" not in str(conf.get(_STORE, "")):
        conf.set(_STORE, _ROCKS)
        conf.set(_CHANGELOG, "true")
