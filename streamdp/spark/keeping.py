"""An engine between micro-batches: packed in Spark's state store, and kept by the worker that had it last.

An engine is kept under the token of what it has seen. Where Spark runs a task again, or elsewhere, the token
in its state store is another, and the engine is made of the state there: what is kept is never more than a
faster way to the same. The states of a checkpoint can be read and exported as snapshots.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pandas as pd
import zstandard
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit, StreamdpError
from streamdp.records import Record, Reject
from streamdp.settings import Settings
from streamdp.settings.load import differences, model_settings
from streamdp.spark.schema import Intake, Row, rows_of
from streamdp.state.snapshot import Header, StateFolder, pack, unpack

Place = tuple[str, Sequence[object]]
"""A query, and a key in it."""

START = b""
"""The token of an engine that has seen nothing."""


def token_after(token: bytes, data: Iterable[bytes]) -> bytes:
    """That of an engine which has seen these records too."""
    chain = hashlib.blake2b(token, digest_size=16)
    for record in data:
        chain.update(len(record).to_bytes(8, "little"))
        chain.update(record)
    return chain.digest()


class Live:
    """The engines of one worker, those used last, as long as their states take at most so many bytes."""

    def __init__(self) -> None:
        self._held: OrderedDict[Place, tuple[bytes, Engine, int]] = OrderedDict()
        self._bytes = 0

    def take(self, place: Place, token: bytes) -> Engine | None:
        """The engine that has seen the records of the token; it is not kept any more."""
        found = self._held.pop(place, None)
        if found is None:
            return None
        self._bytes -= found[2]
        return found[1] if found[0] == token else None

    def keep(self, place: Place, token: bytes, engine: Engine, size: int, limit: int) -> None:
        """Keep an engine whose state takes ``size`` bytes; let go of others beyond the limit."""
        self.take(place, START)
        self._held[place] = token, engine, size
        self._bytes += size
        while self._bytes > limit:
            _, (_, _, gone) = self._held.popitem(last=False)
            self._bytes -= gone


LIVE = Live()
"""Those of this process. Of what cannot be imported Spark would pickle copies; this can."""


HEAD, BODY = "streamdp_head", "streamdp_snapshot"
"""State variables: the token of what was seen; the snapshot, packed."""

POSITION = "spark"
"""What a snapshot's header has as positions: the token; where to read on is in Spark's checkpoint."""

HEAD_TYPE, BODY_TYPE = "token binary", "snapshot binary"


class Plan(NamedTuple):
    """What every engine of a query needs: pickled once for each task."""

    query: str
    settings: Settings
    key: tuple[str, ...]
    memory: int
    time_to_live: float | None = None
    shards: int = 1


def packed(engine: Engine, token: bytes) -> bytes:
    """The snapshot file of an engine, compressed."""
    header = Header(
        settings=model_settings(engine.settings),
        seq=engine.seq,
        positions={POSITION: token.hex()},
        outputs={},
        modes={"events": engine.with_events},
        written=0.0,  # the wall clock is no part of what a task that is run again must bring about
    )
    return zstandard.compress(pack(header, engine.dumps()), 3)


def body_of(stored: bytes, settings: Settings, name: str) -> bytes:
    """An engine's part of a state. Raises ConfigError where other settings made it, SnapshotError."""
    header, body = unpack(zstandard.decompress(stored), name)
    changed = differences(header.settings, model_settings(settings))
    if changed:
        raise ConfigError(
            f"{name}: was made under other settings ({'; '.join(changed)}): go on with those, or begin with "
            "a new checkpoint",
            Exit.CONFIG,
        )
    return body


class Arrived(NamedTuple):
    """The rows of a key in a micro-batch: as Spark has them, as they came, in order, and what they hold."""

    frame: pd.DataFrame
    rows: list[Row]
    taken: list[Row]
    records: list[Record | Reject]

    @classmethod
    def of(cls, frame: pd.DataFrame, plan: Plan) -> Arrived:
        """Read and put in order what Spark brings."""
        rows = rows_of(frame)
        return cls(frame, rows, *Intake(plan.settings).take(rows))


class Keeper(StatefulProcessor):
    """Takes the rows of one key in each micro-batch to its engine."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @abstractmethod
    def begin(self, key: tuple[Any, ...]) -> Engine:
        """An engine that has seen nothing."""

    @abstractmethod
    def load(self, stored: bytes, key: tuple[Any, ...]) -> Engine:
        """The engine of a state."""

    @abstractmethod
    def answer(self, engine: Engine, key: tuple[Any, ...], arrived: Arrived) -> pd.DataFrame:
        """Advance the engine."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Ask for the state variables."""
        lives = None if self._plan.time_to_live is None else int(1000 * self._plan.time_to_live)
        self._head = handle.getValueState(HEAD, HEAD_TYPE, lives)
        self._body = handle.getValueState(BODY, BODY_TYPE, lives)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,
    ) -> Iterator[pd.DataFrame]:
        """Advance the engine of a key; leave its new state in the store."""
        plan, place = self._plan, (f"{self._plan.query} {type(self).__name__}", tuple(key))
        head = self._head.get()
        token = START if head is None else bytes(head[0])
        engine = LIVE.take(place, token) if head is not None else None
        if engine is None and head is not None:
            stored = self._body.get()
            assert stored is not None, "head and body are written together"
            engine = self.load(bytes(stored[0]), tuple(key))
        engine = engine or self.begin(tuple(key))
        arrived = Arrived.of(pd.concat(rows, ignore_index=True), plan)
        answers = self.answer(engine, tuple(key), arrived)
        token = token_after(token, (row.data for row in arrived.taken))
        snapshot = packed(engine, token)
        self._head.update((token,))
        self._body.update((snapshot,))
        self.keep(engine)
        LIVE.keep(place, token, engine, len(snapshot), plan.memory)
        yield answers

    def keep(self, engine: Engine) -> None:
        """Leave in the store what a snapshot has not."""

    def close(self) -> None:
        """Nothing is held open."""


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def states(spark: SparkSession, checkpoint: str | os.PathLike[str], operator: int = 0) -> DataFrame:
    """The states of a query: the columns of its key and ``snapshot``, packed with Zstandard.

    ``operator`` is the number of the stateful operator in the query, where it is not the only one.
    """
    read = spark.read.format("statestore").option("operatorId", operator).option("stateVarName", BODY)
    found = read.load(str(checkpoint))
    mortal = "ttlExpirationMs" in found.select("value.*").columns  # a value, and when it ends
    return found.select("key.*", "value.value.snapshot" if mortal else "value.snapshot")


def export_states(
    spark: SparkSession, checkpoint: str | os.PathLike[str], folder: str | os.PathLike[str], operator: int = 0
) -> list[Path]:
    """Write the state of each key as the newest snapshot of a state folder, named after the key.

    ``streamdp stories FOLDER/KEY`` reads them, as does ``fit``. Raises StreamdpError (73) for
    keys that can be no names of folders, and for folders that hold the snapshots of something else;
    SnapshotError where a folder cannot be written.
    """
    written = []
    for row in states(spark, checkpoint, operator).toLocalIterator():
        *key, stored = row
        name = "-".join(map(str, key))
        if not _PLAIN.fullmatch(name):
            raise StreamdpError(f"key {name!r} can be no folder's name", Exit.CANNOT_CREATE)
        header, body = unpack(zstandard.decompress(bytes(stored)), name)
        target = StateFolder(Path(folder) / name)
        try:
            held = target.newest(lambda _: None)
            if held is not None and POSITION not in held[0].positions:
                what = "holds the snapshots of another stream, which would be lost: name another folder"
                raise StreamdpError(f"{target.folder}: {what}", Exit.CANNOT_CREATE)
            written.append(target.write(msgspec.structs.replace(header, written=time.time()), body))
        finally:
            target.close()
    return written
