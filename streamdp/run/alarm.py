"""Alerts of a run: events go to the outbox of its state before the answers are written."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Mapping, Sequence

from streamdp_connectors.store.sink import StoreSink

from streamdp.alerts.outbox import Counts, Outbox
from streamdp.alerts.rules import AlertRules
from streamdp.alerts.send import FileReceiver, Sender, receiver_of
from streamdp.engine import Engine
from streamdp.monitor.metrics import Metrics
from streamdp.records import Answers
from streamdp.run.messages import warn
from streamdp.run.observers import LivePage, Measured, Observers, Running, RunObserver
from streamdp.settings import Settings
from streamdp.settings.alerts import Alert
from streamdp.settings.assemble import automatic
from streamdp.settings.io_options import Serving
from streamdp.state.snapshot import SnapshotError

LAST = 5.0
"""Seconds that an end waits for what is under way to receivers that answer."""


class Alarm(RunObserver):
    """Tells receivers what happens to stories. ConfigError where an address or a token cannot be had.

    ``link`` is the address of the page, for alerts that name none.
    """

    def __init__(
        self, alerts: Sequence[Alert], metrics: Metrics | None = None, link: str | None = None
    ) -> None:
        super().__init__()
        self._alerts, self._receivers = alerts, [receiver_of(alert, link) for alert in alerts]
        self._senders: list[Sender] = []
        self._outbox: Outbox | None = None
        self._chooser: AlertRules | None = None
        self._store: StoreSink | None = None
        self._engine: Engine | None = None
        if metrics is not None and alerts:
            for name in ("alerts_delivered", "alert_failures", "alerts_dropped", "alerts_waiting"):
                metrics.set(name, functools.partial(self._counted, name.partition("_")[2]))

    def opened(self, run: Running) -> None:
        """Open the outbox; where records come again that were answered, what waits in it stays."""
        self._store, engine, folder = run.sinks.store, run.engine, run.folder
        if not self._alerts:
            return
        if folder is None or run.frozen:
            warn("nobody is told of alerts: that needs --state FOLDER, and a stream that learns")
            return
        self._chooser = AlertRules(self._alerts, run.settings)

        def mine() -> bool:
            try:
                folder.check()
            except SnapshotError:
                return False
            return True

        self._outbox = Outbox(folder.folder, [alert.name for alert in self._alerts], mine)
        for receiver in self._receivers:
            if isinstance(receiver, FileReceiver):
                self._outbox.note_file(receiver.name, os.path.abspath(receiver.path))
        if not run.again:
            self._outbox.forget_from(engine.seq)
        engine.report_events()
        self._engine = engine
        self._chooser.begin(engine)
        self._senders = [Sender(receiver, self._outbox) for receiver in self._receivers]

    def decided(self, answers: Answers) -> None:
        """Note events and changes: whatever becomes of the answers, these are told."""
        if self._outbox is not None and self._chooser is not None and self._engine is not None:
            self._outbox.add(self._chooser.of_answers(answers, self._engine.muted, self._texts))

    def _texts(self, seqs: Sequence[int]) -> Mapping[int, str]:
        return {} if self._store is None else self._store.texts(seqs)

    def saving(self, engine: Engine) -> None:
        """Note what the snapshot covers, and wait until that outlives the machine."""
        if self._outbox is not None and self._chooser is not None:
            self._outbox.sync()

    def leaving(self) -> None:
        """Wait a little for what is under way, and say what stays in the outbox."""
        outbox, self._outbox = self._outbox, None
        if outbox is None:
            return
        end = time.monotonic() + LAST
        with outbox.changed:
            while self._under_way(outbox.counts()) and (left := end - time.monotonic()) > 0:
                outbox.changed.wait(min(left, 0.1))
        for sender in self._senders:
            sender.end()
        for sender in self._senders:
            if waits := outbox.counts()[sender.name].waiting:
                warn(f"alert {sender.name}: {waits:,} wait in {outbox.path}: the next run delivers them")

    def _under_way(self, counts: Mapping[str, Counts]) -> bool:
        return any(counts[each.name].waiting and not each.failing for each in self._senders)

    def _counted(self, what: str) -> dict[tuple[str, ...], int]:
        counts = {} if self._outbox is None else self._outbox.counts()
        return {(sender.name,): getattr(counts[sender.name], what) for sender in self._senders if counts}


def watches(serving: Serving, alerts: Sequence[Alert], label: str, settings: Settings) -> RunObserver:
    """All that observes a run that is not a service. Raises StreamdpError."""
    watch, link = RunObserver(), None
    if serving.metrics_port is not None:
        watch = Measured(at=(serving.metrics_host, serving.metrics_port))
    metrics = getattr(watch, "metrics", None)
    try:
        if serving.page is not None:
            live = LivePage(serving, label, automatic(settings))
            watch, link = Observers(watch, live), live.page.site
        alarm = Alarm(alerts, metrics, link)
    except BaseException:
        watch.close()
        raise
    return Observers(watch, alarm)
