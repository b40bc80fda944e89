"""``streamdp consume``: from a source through the engine to the sinks, and back after a crash."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Container, Mapping
from typing import Any

from streamdp_connectors.protocol import Replayable, SinkClosed

from streamdp.cli.alerts import Alarm, watches
from streamdp.cli.board import Board
from streamdp.cli.correct import Corrector, heard_of
from streamdp.cli.errors import is_terminal, say, speak_of, warn
from streamdp.cli.interrupt import LIMIT, Interrupt
from streamdp.cli.lines import further_columns
from streamdp.cli.observers import RunObserver
from streamdp.cli.reading import Reader
from streamdp.cli.recognise import recognised, refuse_lacking
from streamdp.cli.snapshots import Snapshots, continued, report_change, wait_for_turn, with_modes
from streamdp.cli.status import Display, Status, counted, exit_code, print_summary, warn_of_memory
from streamdp.cli.writing import (
    Sinks,
    UndeliveredError,
    check_outputs,
    completed,
    refuse_double_use,
    rotation_of,
)
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.kernels.compilation import working_time
from streamdp.records import Answers
from streamdp.reports.source import open_snapshot, settings_of
from streamdp.settings import Settings
from streamdp.settings.alerts import Alerting
from streamdp.settings.io_options import NOWHERE, Input, Outputs, Serving
from streamdp.settings.schema import Classes
from streamdp.state.erasing import ErasedFile
from streamdp.state.snapshot import (
    Header,
    Hold,
    SnapshotError,
    StateFolder,
    keep_of_another_release,
    newest_taken,
)

BATCH, MOST, QUICK = 1_000, 4_000, 0.1
"""Records of a batch, at first and at most: twice as many as before where those took so few seconds."""

SILENCE = {"silent": True}
"""The mark of positions after which the source was silent for the idle timeout."""

WAIT = 0.2
"""Seconds that a read waits for records."""


class Run:
    """One run of ``consume``. ``written`` names the settings that the user has written.

    ``hold`` waits until a state that is shared may be gone on with; without it, one in use is refused.
    """

    def __init__(
        self,
        settings: Settings,
        written: Container[str],
        input: Input,
        outputs: Outputs,
        watch: RunObserver,
        interrupt: Interrupt,
        hold: Callable[[str], Hold] | None = None,
    ) -> None:
        self.watch, self.interrupt, self.most = watch, interrupt, BATCH
        before = None
        if outputs.start_from is not None:
            header, before = open_snapshot(outputs.start_from)
            settings = continued(settings, written, header, f"{outputs.start_from}: was", "leave them out")
        unnamed = outputs.state is None
        outputs = completed(input, outputs, written)
        self.board = Board() if outputs.output == NOWHERE else None
        self.rotation = rotation_of(outputs.rotate)
        refuse_double_use(input, outputs)
        self.settings = settings = recognised(settings, input.file)
        refuse_lacking(settings, input.file)
        self.frozen = outputs.frozen
        self.folder: StateFolder | None = None
        if outputs.state is not None:
            shared = input.topic is not None and not self.frozen
            held = hold(outputs.state) if shared and hold is not None else None
            self.folder = StateFolder(outputs.state, settings.snapshot_keep, held)
        self.refused, self.silences = ErasedFile(outputs.state), list[object]()
        resumed = self._resume(written, outputs, before)
        warn_of_memory(self.settings)
        self.engine.stage = watch.stages.enter
        self.first, self.interrupted, self.scored = self.engine.seq, 0, 0
        self.reader = self.open(input, watch)
        self.source = self.reader.source
        goes_on = resumed is not None and not self.reader.seek(resumed.positions)
        if resumed is None and unnamed and outputs.state is not None:
            say(f"the state is in {outputs.state}, unless --state names another folder")
        self.replayed = not goes_on or (resumed is not None and resumed.ended)
        self.again = resumed is not None and self.replayed
        how: dict[str, Any] = {"keep": further_columns(self.settings), "replayed": self.replayed}
        how["place"] = getattr(self.source, "place", ())
        self.sinks = Sinks(input, outputs, resumed, self.settings, waiting=self._wait, **how)
        if resumed is not None:
            say(f"resuming from record {resumed.seq:,} of {outputs.state}")
            report_change(outputs, resumed)
            if goes_on:
                say(f"{input.label} cannot be read again: going on with what comes")
            self._replay()
        self.status = Status()
        self.on_terminal = outputs.output == "-" and not outputs.has_output and is_terminal(sys.stdout)
        self.heard_at = time.monotonic()
        self.snapshots: Snapshots | None = None
        self.corrector: Corrector | None = None
        if self.folder is not None and not self.frozen:
            hands = self.engine, self._answer, self.sinks.put, heard_of(input)
            self.corrector = Corrector(self.folder.folder, *hands)
            kept = self.folder, self.settings, outputs.modes
            self.snapshots = Snapshots(*kept, self._wait, watch, self.first)
            if resumed is None:
                self.snapshot()  # so that a crash at any moment finds one
        give = None if self.corrector is None else self.corrector.give
        watch.opened(self.sinks.store, outputs.state, give)

    def open(self, input: Input, watch: RunObserver) -> Reader:
        """Open the source."""
        return Reader(self.settings, input, watch.stages)

    def _replay(self) -> None:
        """Begin where the outputs say that their records end."""
        marks = self.sinks.marks()
        if isinstance(self.source, Replayable):
            self.source.replay(marks)
        self.silences = [_place(mark) for mark in marks if SILENCE.items() <= mark.items()]

    def _resume(self, written: Container[str], outputs: Outputs, before: bytes | None) -> Header | None:
        """Load the newest snapshot, else ``before``, the body of one, if there is any; make the engine."""
        modes: dict[str, Any] = {"final_only": outputs.final_only, "with_events": outputs.with_events}

        def load(header: Header, body: bytes) -> Header:
            if self.frozen:
                self.engine = Engine.loads(body, settings_of(header, Classes.of(self.settings)))
                return header
            settings = self._settings_after(header, written, outputs)
            check_outputs(header)
            self.engine = Engine.loads(body, settings, **modes)
            self.settings = settings
            return header

        found = None if self.folder is None else newest_taken(self.folder.folder, warn, load)
        if found is not None and self.folder is not None and not self.frozen:
            if (kept := keep_of_another_release(self.folder.folder, found)) is not None:
                say(f"going on with a state of streamdp {found.release}; its last snapshot is kept: {kept}")
            return found
        if found is not None:
            return None
        if self.frozen:
            raise SnapshotError(
                "--frozen needs a --state that holds a snapshot: nothing was learned yet", Exit.NO_INPUT
            )
        if before is None:
            self.engine = Engine(self.settings, **modes)
        else:
            self.engine = Engine.loads(before, self.settings, **modes)
        return None

    def _settings_after(self, header: Header, written: Container[str], outputs: Outputs) -> Settings:
        """The settings with which a state goes on. Raises SnapshotError where this run cannot."""
        if header.writer != "consume":
            raise SnapshotError(
                f"{outputs.state}: holds the result of {header.writer}: begin with --start-from "
                f"{outputs.state}, and name another --state",
                Exit.CONFIG,
            )
        made = f"{outputs.state}: its snapshots were"
        settings = continued(self.settings, written, header, made, "restore them, or name another --state")
        if header.modes != outputs.modes:
            raise SnapshotError(
                f"{outputs.state}: was written {with_modes(header.modes)}, and this run is "
                f"{with_modes(outputs.modes)}; use the same options, or name another --state",
                Exit.CONFIG,
            )
        return settings

    def snapshot(self, *, ended: bool = False, wait: bool = True) -> None:
        """Take a snapshot; ``wait`` until it is on the disk."""
        assert self.snapshots is not None
        self.snapshots.take(self.engine, self.source, self.sinks, ended=ended, wait=wait)

    def step(self) -> None:
        """Read a batch and answer it."""
        if self.corrector is not None:
            self.corrector.look()
        if self._was_silent():
            self._answer(self.engine.flush)
        records = self.refused.without(self.reader.batch(self.most, WAIT))
        if records:
            self.heard_at = began = time.monotonic()
            self.watch.taken(records)
            self.sinks.taken(records)
            decided = self.source.decided() if isinstance(self.source, Replayable) else {}
            self.sinks.mark(self.source.positions() | decided)
            self._answer(
                lambda: (
                    self.engine.score(records, self.scored) if self.frozen else self.engine.advance(records)
                )
            )
            if records.came >= self.most:
                quick = time.monotonic() - began < QUICK
                self.most = min(2 * self.most, MOST) if quick else BATCH
        elif self._silent():
            self.sinks.mark({**self.source.positions(), **SILENCE})
            self._answer(self.engine.flush)
            if self.snapshots is not None:  # files hold no marks
                self.snapshot()
        self.status.update(self)
        if self.board is not None and self.engine.seq:
            self.board.update(self.engine)
        self._rotate()
        if self.snapshots is not None:
            self.snapshots.read(records.came)
            self.snapshots.look()
            if self.snapshots.due:
                self.snapshot(wait=False)

    def _rotate(self) -> None:
        """Rotate the files that are due, after a snapshot of their lengths, so that a crash loses nothing."""
        asked, self.interrupt.rotation_asked = self.interrupt.rotation_asked, False
        due = asked or self.rotation is not None
        full = self.sinks.full(None if asked else self.rotation) if due else []
        if not full:
            return
        self.sinks.flush(sync=True)
        names = list(filter(None, [sink.begin_rotation() for sink in full]))
        if self.snapshots is not None:
            self.snapshot()
        self.sinks.rotate(full)
        say(f"rotated: {', '.join(map(os.path.basename, names))}" if names else "began new output files")

    def beat(self) -> None:
        """Report that the run is alive, and check that the state is still its own."""
        self.watch.beat(self.engine, self.reader, self.answered)
        self._check()

    def _check(self) -> None:
        """Raise SnapshotError if another process has taken over the state."""
        if self.folder is not None:
            self.folder.check()

    def _wait(self) -> bool:
        """Whether the broker answers. Raises UndeliveredError if a signal has waited for too long."""
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
        self.watch.decided(answers)
        self.flush()
        self.watch.stages.enter("other")
        total = time.perf_counter() - began
        held_back = 0 if self.frozen else self.engine.held_back
        self.watch.batch(answers, self.answered, held_back, advanced, total)
        self.watch.answered(answers, held_back)

    def flush(self) -> None:
        """Hand over what was written."""
        self.sinks.flush(sync=False)

    def _silent(self) -> bool:
        """Whether the source was silent so long that records held back must be answered."""
        limit = self.settings.idle_timeout
        if self.reader.unfinished:
            self.heard_at = time.monotonic()
        held = self.reader.watched is not None and self.reader.watched.holds
        waiting = self.engine.out_of_turn and not self.frozen and not held
        return bool(waiting and limit and time.monotonic() - self.heard_at >= limit)

    def _was_silent(self) -> bool:
        """Whether the interrupted run found its source silent at this position."""
        if not self.silences or (here := _place(self.source.positions())) not in self.silences:
            return False
        self.silences = [place for place in self.silences if place != here]
        return True

    def line(self) -> str:
        """The line to display; empty if the answers go to the terminal."""
        return "" if self.on_terminal else self.status.line

    @property
    def answered(self) -> int:
        """Records that this run has answered."""
        return self.scored if self.frozen else self.engine.seq - self.first

    def end(self, stopped: bool) -> None:
        """Close the stream; with a state folder, a stopped stream stays open."""
        if self.corrector is not None:
            self.corrector.ended = True
        if self.snapshots is not None:
            self.snapshot(ended=not stopped)
        if not self.frozen and not (stopped and self.folder is not None):
            last = self.engine.finish()
            self.sinks.ending()
            self.sinks.write(last)
            self.watch.decided(last)
            self.sinks.note_keywords(lambda: self.engine.stories(records=False))
            self.sinks.flush(sync=True)
            self.watch.answered(last, 0)


def _place(positions: Mapping[str, Any]) -> object:
    """How far a source has come."""
    return positions.get("topic"), positions.get("partitions")


def consume(
    settings: Settings,
    written: Container[str],
    input: Input,
    outputs: Outputs,
    serving: Serving,
    alerting: Alerting,
) -> int:
    """Run until the source ends, the reader of the output goes away, or a signal comes.

    ``written`` names the settings that the user has written. Returns the exit code.
    """
    if input.partition is not None:
        speak_of(f"partition {input.partition}: ")
    watch, alarm = watches(serving, alerting, input.label, settings)
    try:
        resumable = input.topic is not None or outputs.state is not None
        limit = None if input.topic is None else LIMIT
        with contextlib.ExitStack() as ending:
            interrupt = ending.enter_context(Interrupt(limit=limit, resumable=resumable))
            interrupt.opened = False

            def hold(state: str) -> Hold:
                found = wait_for_turn(state, input.session_timeout, input.waits, watch)
                return ending.enter_context(contextlib.closing(found))

            run = Run(settings, written, input, outputs, watch, interrupt, hold)
            return run_to_end(run, interrupt, alarm)
    finally:
        watch.close()


def run_to_end(run: Run, interrupt: Interrupt, alarm: Alarm) -> int:
    """Run until the source ends, or a signal comes."""
    started = working_time()
    try:
        alarm.attach(run.engine, run.settings, run.folder, replayed=run.again, frozen=run.frozen)
        above = None if run.board is None else run.board.shown
        with Display(run.line, above):  # not before all is open: a wrong file name is reported at once
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
        if run.board is not None:
            run.board.print(run.engine)
        print_summary(run, seconds)
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
        run.watch.leaving()
        if run.folder is not None:
            run.folder.close()
