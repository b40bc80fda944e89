"""An engine for each key, on Spark's workers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from streamdp.engine import Engine
from streamdp.records import Answers, Record, Reject
from streamdp.spark.keeping import Arrived, Keeper, Plan, body_of
from streamdp.spark.schema import frame_of


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


def answer_whole(plan: Plan, key: tuple[Any, ...], frame: pd.DataFrame) -> pd.DataFrame:
    """The answers to all rows of one key of a finished table, to the end."""
    engine = Engine(plan.settings, with_events=True)
    answers = to_the_end(engine, Arrived.of(frame, plan).records)
    return frame_of(answers, dict(zip(plan.key, key, strict=True)))
