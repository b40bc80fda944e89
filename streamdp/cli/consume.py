"""``streamdp consume``: from a source through the engine to the sinks, and back after a crash."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from streamdp_connectors.protocol import Replayable, SinkClosed, share_of

from streamdp.cli.config import automatic
from streamdp.cli.display import Display
from streamdp.cli.errors import say, speak_warnings, warn
from streamdp.cli.interrupt import LIMIT, Interrupt
from streamdp.cli.lines import further_columns
from streamdp.cli.live import LivePage, PageAt
from streamdp.cli.reading import Origin, Reader, check_origin
from streamdp.cli.show import open_snapshot
from streamdp.cli.snapshots import Snapshots, continued
from streamdp.cli.standby import wait_for_turn
from streamdp.cli.status import Status, counted
from streamdp.cli.summary import exit_code, tell_summary
from streamdp.cli.watch import Served, Together, Watch
from streamdp.cli.writing import (
    Paths,
    Sinks,
    UndeliveredError,
    default_state,
    refuse_double_use,
    tell_of_change,
)
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.kernels.compilation import working_time
from streamdp.records import Answers
from streamdp.settings import Settings
from streamdp.settings.load import differences, model_settings
from streamdp.state.snapshot import Header, Hold, SnapshotError, StateFolder

BATCH = 1000
SILENCE = {"silent": True}
"""What is noted with the positions after which nothing came for long."""

WAIT = 0.2
"""Seconds after which a source without news is asked again."""


class Run:
    """One run of ``consume``; ``hold`` waits until its state may be gone on with, where that is shared."""

    def __init__(
        self,
        settings: Settings,
        origin: Origin,
        paths: Paths,
        *,
        final_only: bool,
        frozen: bool,
        start_from: str | None,
        watch: Watch,
        interrupt: Interrupt,
        hold: Callable[[str], Hold],
    ) -> None:
        self.watch, self.interrupt = watch, interrupt
        before = None if start_from is None else open_snapshot(start_from)
        if before is not None:
            settings = continued(settings, before[0], start_from or "")
        check_origin(origin)
        refuse_double_use(origin, paths)
        unnamed = paths.state is None
        if origin.topic is not None and paths.state is None:
            paths = paths._replace(state=default_state(origin.topic, origin.partition))
        self.settings = settings
        self.rotation = paths.rotation
        self.frozen = frozen
        self.modes = {"final_only": final_only, "events": paths.events is not None}
        folder = None
        if paths.state is not None:
            shared = origin.topic is not None and not frozen
            held = hold(paths.state) if shared else None
            folder = StateFolder(paths.state, settings.snapshot_keep, held)
        self.silences: list[object] = []
        resumed = self._resume(folder, paths, None if before is None else before[1])
        self.engine.stage = watch.stages.enter
        self.first = self.engine.seq
        self.interrupted = self.scored = 0
        self.reader = Reader(settings, origin, watch.stages)
        self.source = self.reader.source
        goes_on = resumed is not None and not self.reader.seek(resumed.positions)
        if resumed is None and unnamed and paths.state is not None:
            say(f"the state is in {paths.state}, unless --state names another folder")
        replayed = not goes_on or (resumed is not None and resumed.ended)
        keep = further_columns(settings)
        self.sinks = Sinks(origin, paths, resumed, keep=keep, replayed=replayed, waiting=self._wait)
        if resumed is not None:
            say(f"resuming from record {resumed.seq:,} of {paths.state}")
            tell_of_change(paths, resumed)
            if goes_on:
                say(f"{origin.label} cannot be read again: going on with what comes")
            marks = self.sinks.marks()
            if isinstance(self.source, Replayable):
                self.source.replay(marks)
            self.silences = [_place(mark) for mark in marks if SILENCE.items() <= mark.items()]
        self.status = Status()
        self.on_terminal = (
            paths.output == "-" and not paths.output_topic and sys.stdout is not None and sys.stdout.isatty()
        )
        self.heard_at = time.monotonic()
        self.folder = folder
        self.snapshots: Snapshots | None = None
        if folder is not None and not frozen:
            self.snapshots = Snapshots(folder, settings, self.modes, self._wait, watch, self.first)
            if resumed is None:
                self.snapshot()  # so that a crash at any moment finds one

    def _resume(self, folder: StateFolder | None, paths: Paths, before: bytes | None) -> Header | None:
        """Load the newest snapshot, where there is one; leave an engine in either case.

        ``before`` is the body of the snapshot to begin with where there is none.
        """
        found = None if folder is None else folder.newest(warn)
        modes: dict[str, Any] = {
            "final_only": self.modes["final_only"],
            "with_events": self.modes["events"],
        }
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
        if header.writer != "consume" and not self.frozen:
            raise SnapshotError(
                f"{paths.state}: holds the result of {header.writer}: begin with --start-from {paths.state}, "
                "and name another --state",
                Exit.CONFIG,
            )
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
        return header

    def snapshot(self, *, ended: bool = False, wait: bool = True) -> None:
        """Remember where everything is; with ``wait`` until that is on the disk."""
        assert self.snapshots is not None
        self.snapshots.take(self.engine, self.source, self.sinks, ended=ended, wait=wait)

    def step(self) -> None:
        """Read what is there, and answer it."""
        if self._was_silent():
            self._answer(self.engine.flush)
        records = self.reader.read(BATCH, WAIT)
        if records:
            self.heard_at = time.monotonic()
            self.watch.taken(records)
            decided = self.source.decided() if isinstance(self.source, Replayable) else {}
            self.sinks.mark(self.source.positions() | decided)
            self._answer(
                lambda: (
                    self.engine.score(records, self.scored) if self.frozen else self.engine.advance(records)
                )
            )
        elif self._silent():
            self.sinks.mark({**self.source.positions(), **SILENCE})
            self._answer(self.engine.flush)
            if self.snapshots is not None:  # files hold no marks
                self.snapshot()
        if self.status.due:
            self._tell_status()
        self._rotate()
        if self.snapshots is not None:
            self.snapshots.read(len(records))
            self.snapshots.look()
            if self.snapshots.due:
                self.snapshot(wait=False)

    def _rotate(self) -> None:
        """Rotate the files that are due; a snapshot knows of it first, so that a crash loses no count."""
        asked, self.interrupt.rotation_asked = self.interrupt.rotation_asked, False
        if not asked and self.rotation is None:
            return
        full = self.sinks.full(None if asked else self.rotation)
        if not full:
            return
        self.sinks.flush(sync=True)
        names = list(filter(None, [sink.begin_rotation() for sink in full]))
        if self.snapshots is not None:
            self.snapshot()
        self.sinks.rotate(full)
        say(f"rotated: {', '.join(map(os.path.basename, names))}" if names else "began new output files")

    def beat(self) -> None:
        """Tell that the run is alive, and how its source is."""
        self.watch.beat(self.engine, self.reader, self.answered)
        self._check()

    def _check(self) -> None:
        """Raise SnapshotError where another process goes on with the state by now."""
        if self.folder is not None:
            self.folder.check()

    def _wait(self) -> bool:
        """Whether the broker that is waited for answers. UndeliveredError where a signal is due."""
        self.beat()
        if self.interrupt.overdue and self.sinks.missing:
            saved = 0 if self.snapshots is None else self.snapshots.saved
            raise UndeliveredError(
                f"the broker has not taken {counted(self.sinks.missing, 'answer')}: "
                f"the state goes on from record {saved:,}, and writes them then",
                Exit.UNAVAILABLE,
            )
        return self.reader.watched is None or self.reader.watched.up()

    def _answer(self, advance: Callable[[], Answers]) -> None:
        began = time.perf_counter()
        self.watch.stages.enter("encode")
        answers = advance()
        if self.frozen:
            self.scored += len(answers.lines)
        advanced = time.perf_counter() - began
        self.watch.stages.enter("write")
        self._check()
        self.sinks.write(answers)
        self.sinks.flush(sync=False)
        self.watch.stages.enter("other")
        total = time.perf_counter() - began
        held_back = 0 if self.frozen else self.engine.held_back
        self.watch.batch(answers, self.answered, held_back, advanced, total)
        self.watch.told(answers, held_back)

    def _silent(self) -> bool:
        """Whether what is held back has waited for long enough."""
        limit = self.settings.idle_timeout
        held = self.reader.watched is not None and self.reader.watched.holds
        waiting = self.engine.out_of_turn and not self.frozen and not held
        return bool(waiting and limit and time.monotonic() - self.heard_at >= limit)

    def _was_silent(self) -> bool:
        """Whether the run that is replayed waited here until its patience ended."""
        if not self.silences or (here := _place(self.source.positions())) not in self.silences:
            return False
        self.silences = [place for place in self.silences if place != here]
        return True

    def line(self) -> str:
        """What a display shows; nothing where the answers themselves go to the terminal."""
        return "" if self.on_terminal else self.status()

    def _tell_status(self) -> None:
        self.status.update(
            self.answered,
            self.engine.counters().get("clusters_live", 0),
            self.sinks.refused.total(),
            self.engine.held_back,
            share_of(self.source),
        )

    @property
    def answered(self) -> int:
        """Records that this run has answered."""
        return self.scored if self.frozen else self.engine.seq - self.first

    def end(self, stopped: bool) -> None:
        """Close the stream (or, with a state folder, only leave it) and tell what happened."""
        if self.snapshots is not None:
            self.snapshot(ended=not stopped)
        if not self.frozen and not (stopped and self.folder is not None):
            last = self.engine.finish()
            self.sinks.write(last)
            self.sinks.flush(sync=True)
            self.watch.told(last, 0)


def _place(positions: Mapping[str, Any]) -> object:
    """How far a source has come."""
    return positions.get("topic"), positions.get("partitions")


def _modes(modes: dict[str, bool]) -> str:
    names = {"final_only": "--final-only", "events": "--events"}
    chosen = [names[name] for name, on in modes.items() if on]
    return "with " + " and ".join(chosen) if chosen else "without --final-only and --events"


def consume(
    settings: Settings,
    origin: Origin,
    paths: Paths,
    *,
    final_only: bool,
    frozen: bool,
    start_from: str | None,
    metrics: tuple[str, int] | None,
    page: PageAt | None = None,
) -> int:
    """Run until the source ends, the reader of the output goes away, or a signal comes.

    Returns the exit code. ``metrics`` is the host and port at which metrics and health are served, ``page``
    where a page is, if they are.
    """
    speak_warnings()
    watch = Watch() if metrics is None else Served(*metrics)
    try:
        if page is not None:
            watch = Together(watch, LivePage(page, origin.label, automatic(settings)))
        resumable = origin.topic is not None or paths.state is not None
        limit = None if origin.topic is None else LIMIT
        with contextlib.ExitStack() as ending:
            interrupt = ending.enter_context(Interrupt(limit=limit, resumable=resumable))

            def hold(state: str) -> Hold:
                found = wait_for_turn(state, origin.session_timeout, origin.waits, watch)
                return ending.enter_context(contextlib.closing(found))

            run = Run(
                settings,
                origin,
                paths,
                final_only=final_only,
                frozen=frozen,
                start_from=start_from,
                watch=watch,
                interrupt=interrupt,
                hold=hold,
            )
            return _loop(run, interrupt)
    finally:
        watch.close()


def _loop(run: Run, interrupt: Interrupt) -> int:
    started = working_time()
    try:
        with Display(run.line):  # not before all is open: a wrong file name is told at once
            run.watch.ready()
            interrupt.under_way = lambda: run.sinks.missing > 0
            interrupt.opened = True
            gc.freeze()  # what is there stays: the collector need not look at it again and again
            while not run.source.at_end and not interrupt.asked:
                run.beat()
                run.step()
            run.interrupted = interrupt.number
            run.end(stopped=interrupt.asked)
        seconds = working_time() - started
        if not interrupt.asked:
            run.watch.ended(run.engine, lambda: interrupt.asked)
        tell_summary(run, seconds)
        return exit_code(run)
    except SinkClosed:
        return 0
    except UndeliveredError as error:
        run.sinks.give_up()
        say(error.message, "error")
        return interrupt.code()
    finally:
        if run.snapshots is not None:
            run.snapshots.end()
        run.source.close()
        with contextlib.suppress(SinkClosed):
            run.sinks.close()
        if run.folder is not None:
            run.folder.close()
