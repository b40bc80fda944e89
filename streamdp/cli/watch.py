"""What an operator sees of a run: metrics and health, where they were asked for."""

from __future__ import annotations

from streamdp_connectors.protocol import Source

from streamdp.engine import Engine
from streamdp.kernels.compilation import compiling, working_time
from streamdp.monitor.health import HealthError, HealthServer
from streamdp.monitor.metrics import Metrics
from streamdp.records import Reject


class Watch:
    """Nothing is watched."""

    def ready(self) -> None:
        """The run has opened everything, and answers from now on."""

    def beat(self, engine: Engine, source: Source, passed: int) -> None:
        """The loop goes round; ``passed`` counts records that the source has passed over."""

    def batch(self, rejects: list[Reject], advance: float, total: float) -> None:
        """A batch was answered; seconds in the engine and in all."""

    def snapshot(self) -> None:
        """A snapshot was written."""

    def close(self) -> None:
        """Stop serving."""


class Served(Watch):
    """Everything is served over HTTP. Raises HealthError."""

    def __init__(self, host: str, port: int) -> None:
        try:
            self.metrics = Metrics()
        except ImportError:
            raise HealthError("metrics need one more package: pip install prometheus-client") from None
        # the clock stands still while kernels compile: a run that compiles has not stalled
        self.server = HealthServer(self.metrics, host, port, clock=working_time, busy=_busy)

    def ready(self) -> None:
        """Readiness is 200 from now on."""
        self.metrics.ready = True

    def beat(self, engine: Engine, source: Source, passed: int) -> None:
        """Liveness, and what engine and source count."""
        self.server.beat()
        now, counts = engine.adapted, {**engine.counters(), **engine.refined()}
        self.metrics.update(counts, source.lag(), None if now is None else now[:2])
        self.metrics.source_up = source.up()
        self.metrics.passed(passed)

    def batch(self, rejects: list[Reject], advance: float, total: float) -> None:
        """Rejects by reason, and how long it took."""
        for reject in rejects:
            self.metrics.rejected(reject.reason)
        self.metrics.observe_advance(advance)
        self.metrics.observe_batch(total)

    def snapshot(self) -> None:
        """The age of the snapshot is counted from now."""
        self.metrics.snapshot_written()

    def close(self) -> None:
        """Not ready any more, and gone."""
        self.metrics.ready = False
        self.server.close()


def _busy() -> str | None:
    """Why no records are taken just now."""
    return None if compiling() is None else "compiling"
