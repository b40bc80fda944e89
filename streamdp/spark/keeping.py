"""An engine between micro-batches: packed in Spark's state store, and kept by the worker that had it last."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
import zstandard
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streamdp.decode.decoder import Format
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.records import Record, Reject
from streamdp.settings import Settings
from streamdp.settings.load import ConfigError, differences, model_settings
from streamdp.spark.intake import Intake, Row, rows_of
from streamdp.spark.live import LIVE, START, token_after
from streamdp.state.snapshot import Header, pack, unpack

HEAD, BODY = "streamdp_head", "streamdp_snapshot"
"""State variables: the token of what was seen; the snapshot, packed."""

POSITION = "spark"
"""What a snapshot's header has as positions: the token; where to read on stands in Spark's checkpoint."""

HEAD_TYPE, BODY_TYPE = "token binary", "snapshot binary"


class Plan(NamedTuple):
    """What every engine of a query needs: pickled once for each task."""

    query: str
    settings: Settings
    input_format: Format
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


def unpacked(stored: bytes) -> bytes:
    """The snapshot file."""
    return zstandard.decompress(stored)


def body_of(stored: bytes, settings: Settings, name: str) -> bytes:
    """An engine's part of a state. Raises ConfigError where other settings made it, SnapshotError."""
    header, body = unpack(unpacked(stored), name)
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
        return cls(frame, rows, *Intake(plan.settings, plan.input_format).take(rows))


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
