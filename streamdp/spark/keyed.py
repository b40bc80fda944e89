"""What runs on Spark's workers: an engine for each key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd
import zstandard
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from streamdp.decode.decoder import Format
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.settings import Settings
from streamdp.settings.load import ConfigError, differences, model_settings
from streamdp.spark.intake import Intake, rows_of
from streamdp.spark.live import LIVE, START, token_after
from streamdp.spark.schema import frame_of
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


def packed(engine: Engine, settings: Settings, token: bytes) -> bytes:
    """The snapshot file of an engine, compressed."""
    header = Header(
        settings=model_settings(settings),
        seq=engine.seq,
        positions={POSITION: token.hex()},
        outputs={},
        modes={"events": True},
        written=0.0,  # the wall clock is no part of what a task that is run again must bring about
    )
    return zstandard.compress(pack(header, engine.dumps()), 3)


def unpacked(stored: bytes) -> bytes:
    """The snapshot file."""
    return zstandard.decompress(stored)


def engine_of(stored: bytes, settings: Settings, name: str) -> Engine:
    """The engine of a state. Raises ConfigError where it was made under other settings, SnapshotError."""
    header, body = unpack(unpacked(stored), name)
    changed = differences(header.settings, model_settings(settings))
    if changed:
        raise ConfigError(
            f"{name}: was made under other settings ({'; '.join(changed)}): go on with those, or begin with "
            "a new checkpoint",
            Exit.CONFIG,
        )
    return Engine.loads(body, settings, with_events=True)


class KeyedClusterer(StatefulProcessor):
    """Takes the rows of one key in each micro-batch, and answers them."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

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
        plan, settings, place = self._plan, self._plan.settings, (self._plan.query, tuple(key))
        head = self._head.get()
        token = START if head is None else bytes(head[0])
        engine = LIVE.take(place, token) if head is not None else None
        if engine is None and head is not None:
            name = " ".join(f"{name} {value}" for name, value in zip(plan.key, key, strict=True))
            stored = self._body.get()
            assert stored is not None, "head and body are written together"
            engine = engine_of(bytes(stored[0]), settings, f"the state of {name}")
        engine = engine or Engine(settings, with_events=True)
        taken, records = Intake(settings, plan.input_format).take(
            row for frame in rows for row in rows_of(frame)
        )
        answers = engine.advance(records)
        token = token_after(token, (row.data for row in taken))
        snapshot = packed(engine, settings, token)
        self._head.update((token,))
        self._body.update((snapshot,))
        LIVE.keep(place, token, engine, len(snapshot), plan.memory)
        yield frame_of(answers, dict(zip(plan.key, key, strict=True)))

    def close(self) -> None:
        """Nothing is held open."""


def answer_whole(plan: Plan, key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The answers to all rows of one key of a finished table, to the end."""
    engine = Engine(plan.settings, with_events=True)
    _, records = Intake(plan.settings, plan.input_format).take(rows_of(frame))
    answers, end = engine.advance(records), engine.finish()
    answers.lines.extend(end.lines)
    answers.events.extend(end.events)
    answers.rejects.extend(end.rejects)
    return frame_of(answers, dict(zip(plan.key, key, strict=True)))
