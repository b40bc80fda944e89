"""``streamdp consume``: from a source through the engine to the sinks, and back after a crash."""

from __future__ import annotations

import contextlib
import time

import msgspec
from streamdp_connectors.protocol import SinkClosed

from streamdp.cli.errors import announce_compilation, say
from streamdp.cli.interrupt import Interrupt
from streamdp.cli.reading import Origin, Reader, check_origin
from streamdp.cli.show import open_snapshot
from streamdp.cli.watch import Served, Watch
from streamdp.cli.writing import Paths, Sinks, default_state, refuse_double_use
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.settings import Settings
from streamdp.settings.load import differences, model_settings
from streamdp.state.snapshot import Header, SnapshotError, StateFolder

BATCH = 1000
WAIT = 0.2
"""Seconds after which a source without news is asked again."""


class Run:
    """One run of ``consume``."""

    def __init__(
        self,
        settings: Settings,
        origin: Origin,
        paths: Paths,
        *,
        final_only: bool,
        frozen: bool,
        overwrite: bool,
        start_from: str | None,
        watch: Watch,
    ) -> None:
        self.watch = watch
        before = None if start_from is None else open_snapshot(start_from)
        if before is not None:
            settings = continued(settings, before[0], start_from or "")
        check_origin(origin)
        refuse_double_use(origin, paths)
        if origin.topic is not None and paths.state is None:
            paths = paths._replace(state=default_state(origin.topic))
        self.settings = settings
        self.frozen = frozen
        self.modes = {"final_only": final_only, "events": paths.events is not None}
        self.folder = None if paths.state is None else StateFolder(paths.state, settings.snapshot_keep)
        resumed = self._resume(paths, None if before is None else before[1])
        self.reader = Reader(settings, origin)
        self.source = self.reader.source
        if resumed is not None:
            self.reader.seek(resumed.positions)
        self.sinks = Sinks(origin, paths, resumed, overwrite)
        if resumed is not None:
            self.source.replay(self.sinks.marks())
        self.saved = self.engine.seq
        if self.folder is not None and resumed is None and not frozen:
            self.snapshot()  # so that a crash at any moment finds one

    def _resume(self, paths: Paths, before: bytes | None) -> Header | None:
        """Load the newest snapshot, where there is one; leave an engine in either case.

        ``before`` is the body of the snapshot to begin with where there is none.
        """
        found = None if self.folder is None else self.folder.newest(say)
        modes = {"final_only": self.modes["final_only"], "with_events": self.modes["events"]}
        if found is None:
            if self.frozen:
                raise SnapshotError(
                    "--frozen needs a --state that holds a snapshot: nothing was learned yet", Exit.NO_INPUT
                )
            if before is None:
                self.engine = Engine(self.settings, **modes)
            else:
                self.engine = Engine.loads(before, self.settings, **modes)
            return None
        header, body = found
        now = model_settings(self.settings)
        changed = [] if self.frozen else differences(header.settings, now)
        if changed:
            raise SnapshotError(
                f"{paths.state}: its snapshots were made under other settings ({'; '.join(changed)}); "
                "restore them, or name another --state",
                Exit.CONFIG,
            )
        if self.frozen:
            learned = msgspec.convert(header.settings, Settings)
            self.engine = Engine.loads(body, learned)
            return None
        if header.modes != self.modes:
            raise SnapshotError(
                f"{paths.state}: was written {_modes(header.modes)}, and this run is {_modes(self.modes)}; "
                "use the same options, or name another --state",
                Exit.CONFIG,
            )
        self.engine = Engine.loads(body, self.settings, **modes)
        say(f"resuming from record {header.seq:,} of {paths.state}")
        return header

    def snapshot(self) -> None:
        """Make everything written so far durable, and remember where that was."""
        assert self.folder is not None
        self.sinks.flush(sync=True)
        header = Header(
            settings=model_settings(self.settings),
            seq=self.engine.seq,
            positions=self.source.positions(),
            outputs=self.sinks.kept(),
            modes=self.modes,
            written=time.time(),
        )
        self.folder.write(header, self.engine.dumps())
        self.saved = self.engine.seq
        self.source.commit()
        self.watch.snapshot()

    def step(self) -> None:
        """Read what is there, and answer it."""
        records = self.reader.read(BATCH, WAIT)
        if not records:
            return
        self.sinks.mark(self.source.positions())
        began = time.perf_counter()
        answers = self.engine.score(records) if self.frozen else self.engine.advance(records)
        advanced = time.perf_counter() - began
        self.sinks.write(answers)
        self.sinks.flush(sync=False)
        self.watch.batch(answers.rejects, advanced, time.perf_counter() - began)
        if (
            self.folder is not None
            and not self.frozen
            and self.engine.seq - self.saved >= self.settings.snapshot_every
        ):
            self.snapshot()

    def end(self, stopped: bool) -> None:
        """Close the stream (or, with a state folder, only leave it) and tell what happened."""
        if self.folder is not None and not self.frozen:
            self.snapshot()
        if not self.frozen and not (stopped and self.folder is not None):
            self.sinks.write(self.engine.finish())
            self.sinks.flush(sync=True)


def continued(settings: Settings, header: Header, name: str) -> Settings:
    """The settings of a snapshot that a stream begins with, and for the rest those given.

    SnapshotError (78) where a setting was given that contradicts the snapshot's.
    """
    defaults = model_settings(Settings())
    given = {key: value for key, value in model_settings(settings).items() if value != defaults[key]}
    before = {key: value for key, value in header.settings.items() if key in defaults}
    changed = differences(before, before | given)
    if changed:
        raise SnapshotError(
            f"{name}: was made under other settings ({'; '.join(changed)}); leave them out", Exit.CONFIG
        )
    return msgspec.convert(msgspec.to_builtins(settings) | before, Settings)


def _modes(modes: dict[str, bool]) -> str:
    names = {"final_only": "--final-only", "events": "--events"}
    chosen = [names[name] for name, on in modes.items() if on]
    return "with " + " and ".join(chosen) if chosen else "without --final-only and --events"


def _summary(run: Run, seconds: float, records: int) -> None:
    counters = run.engine.counters()
    rate = f", {records / seconds:,.0f} records/s" if seconds > 0 and records else ""
    say(
        f"{records:,} records into {counters.get('clusters_created', 0):,} clusters, "
        f"{counters.get('clusters_live', 0):,} of them live; "
        f"log evidence {run.engine.log_evidence:,.1f} nats{rate}"
    )
    if run.sinks.refused:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in run.sinks.refused.most_common())
        say(f"{run.sinks.refused.total():,} records refused ({reasons}): see {run.sinks.rejects_name}")
    if counters.get("words_dropped"):
        say(f"{counters['words_dropped']:,} words found no room in the vocabulary: raise max_words")


def consume(
    settings: Settings,
    origin: Origin,
    paths: Paths,
    *,
    final_only: bool,
    frozen: bool,
    overwrite: bool,
    start_from: str | None,
    metrics: tuple[str, int] | None,
) -> None:
    """Run until the source ends, the reader of the output goes away, or a signal comes.

    ``metrics`` is the host and port at which metrics and health are served, if they are.
    """
    watch = Watch() if metrics is None else Served(*metrics)
    try:
        with Interrupt() as interrupt:
            run = Run(
                settings,
                origin,
                paths,
                final_only=final_only,
                frozen=frozen,
                overwrite=overwrite,
                start_from=start_from,
                watch=watch,
            )
            announce_compilation()  # not before all is open: a wrong file name is told at once
            _loop(run, interrupt)
    finally:
        watch.close()


def _loop(run: Run, interrupt: Interrupt) -> None:
    started, first = time.monotonic(), run.engine.seq
    try:
        run.watch.ready()
        while not run.source.at_end and not interrupt.asked:
            run.watch.beat(run.engine, run.source.lag())
            run.step()
        run.end(stopped=interrupt.asked)
        _summary(run, time.monotonic() - started, run.engine.seq - first)
    except SinkClosed:
        pass
    finally:
        run.source.close()
        with contextlib.suppress(SinkClosed):
            run.sinks.close()
        if run.folder is not None:
            run.folder.close()
