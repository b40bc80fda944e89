"""What an operator sees of a run: metrics and health, where they were asked for."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable
from typing import Any

from streamdp.cli.reading import Reader
from streamdp.decode import decoder
from streamdp.encode import order
from streamdp.engine import Engine
from streamdp.kernels.compilation import compiling, working_time
from streamdp.monitor.ages import Arrivals
from streamdp.monitor.health import HealthError, HealthServer
from streamdp.monitor.metrics import Metrics
from streamdp.monitor.stages import Stages
from streamdp.records import GAP, Answers, Assignment, Record, Reject

LAGS_EVERY = 1.0
"""Seconds between two looks at how far reading is behind."""


class Watch:
    """Nothing is watched, but for where the time goes: that costs nothing."""

    def __init__(self) -> None:
        self.stages = Stages(working_time)

    def ready(self) -> None:
        """The run has opened everything, and answers from now on."""

    def stand_by(self, waits: bool) -> None:
        """Whether another process runs with the state, and this one waits for its turn."""

    def beat(self, engine: Engine, reader: Reader, answered: int) -> None:
        """The loop goes round; ``answered`` counts the records of this run."""

    def taken(self, records: list[Record | Reject]) -> None:
        """A batch was read."""

    def batch(self, answers: Answers, answered: int, held_back: int, advance: float, total: float) -> None:
        """A batch was answered, so many records in all and not yet; seconds in the engine and in all."""

    def told(self, answers: Answers, held_back: int) -> None:
        """These answers were written; so many records wait for theirs."""

    def ended(self, engine: Engine, asked: Callable[[], bool]) -> None:
        """The input has ended, and all is written; returns when nobody is to look on, or an end is asked."""

    def snapshot(self, seconds: float, size: int) -> None:
        """A snapshot of so many bytes was written."""

    def snapshot_failed(self) -> None:
        """A snapshot could not be written."""

    def close(self) -> None:
        """Stop serving."""


class Together(Watch):
    """Several watches of one run, each of which is told of everything; the first has its stages."""

    def __init__(self, *watches: Watch) -> None:
        self._all = watches
        self.stages = watches[0].stages


def _told_together(name: str) -> Callable[..., None]:
    @functools.wraps(getattr(Watch, name))
    def tell(self: Together, *what: Any) -> None:
        for watch in self._all:
            getattr(watch, name)(*what)

    return tell


for _name in [name for name in vars(Watch) if not name.startswith("_")]:
    setattr(Together, _name, _told_together(_name))


class Served(Watch):
    """Everything is served over HTTP. Raises HealthError."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__()
        try:
            self.metrics = Metrics(reasons=reasons(), stages=self.stages)
        except ImportError:
            raise HealthError("metrics need one more package: pip install prometheus-client") from None
        self._arrivals = Arrivals()
        self._answered = 0
        self._looked = -LAGS_EVERY
        # the clock stands still while kernels compile: a run that compiles has not stalled
        self.server = HealthServer(self.metrics, host, port, clock=working_time, busy=_busy)

    def ready(self) -> None:
        """Readiness is 200 from now on."""
        self.metrics.ready = True

    def stand_by(self, waits: bool) -> None:
        """Not ready while it waits, but alive."""
        self.metrics.standing_by = waits

    def beat(self, engine: Engine, reader: Reader, answered: int) -> None:
        """Liveness, and what engine and source count."""
        self.server.beat()
        adapted = engine.adapted
        counts = {**engine.counters(), **engine.refined(), **engine.levels(), "records": answered}
        self.metrics.update(counts, None if adapted is None else adapted[:2])
        self.metrics.source_up = reader.source.up()
        self.metrics.passed(reader.passed)
        now = time.monotonic()
        if now - self._looked >= LAGS_EVERY:
            self._looked = now
            self.metrics.lags = reader.lags(time.time())

    def taken(self, records: list[Record | Reject]) -> None:
        """Their arrival: that of the first, for they were read together."""
        first = next((record for record in records if isinstance(record, Record)), None)
        if first is not None and first.arrival is not None:
            self._arrivals.take(len(records), first.arrival)

    def batch(self, answers: Answers, answered: int, held_back: int, advance: float, total: float) -> None:
        """Rejects by reason, how long it took, and how old the records are by now."""
        now, fresh = time.time(), answered - self._answered
        self._answered = answered
        for reject in answers.rejects:
            self.metrics.rejected(reject.reason)
        for arrival, records in self._arrivals.answer(held_back):
            self.metrics.arrival_ages.observe(now - arrival, records)
        first = next((line for line in answers.lines if _is_first_answer(line)), None)
        if isinstance(first, Assignment) and first.time is not None and fresh > 0:
            self.metrics.event_ages.observe(now - first.time, fresh)
        self.metrics.observe_advance(advance)
        self.metrics.observe_batch(total)

    def snapshot(self, seconds: float, size: int) -> None:
        """The age of the snapshot is counted from now."""
        self.metrics.snapshot_written(seconds, size)

    def snapshot_failed(self) -> None:
        """One more that could not be written."""
        self.metrics.snapshot_failed()

    def close(self) -> None:
        """Not ready any more, and gone."""
        self.metrics.ready = False
        self.server.close()


def _is_first_answer(line: object) -> bool:
    return isinstance(line, Assignment) and line.revision == 0


def _busy() -> str | None:
    """Why no records are taken just now."""
    return None if compiling() is None else "compiling"


def reasons() -> Iterable[str]:
    """All reasons for which records are refused."""
    return dict.fromkeys((*decoder.REASONS, *order.REASONS, GAP))
