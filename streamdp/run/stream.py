"""A run of a stream: read, answer, write, and take snapshots, until the source ends."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from streamdp_connectors.protocol import Replayable, SinkClosed, Source

from streamdp.answers.listing import counted
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit
from streamdp.records import Answers
from streamdp.reports.source import open_snapshot, settings_of
from streamdp.run.alarm import watches
from streamdp.run.corrector import Corrector, heard_of
from streamdp.run.hints import nothing_usable
from streamdp.run.interrupt import Interrupt
from streamdp.run.lines import further_columns
from streamdp.run.messages import say, warn
from streamdp.run.observers import RunObserver
from streamdp.run.reading import Reader
from streamdp.run.recognise import recognised, refuse_lacking
from streamdp.run.snapshots import Snapshots, continued, refuse_modes, report_change, wait_for_turn
from streamdp.run.writing import (
    Sinks,
    UndeliveredError,
    check_outputs,
    completed,
    refuse_double_use,
)
from streamdp.settings import Settings
from streamdp.settings.alerts import Alert, alerts_of
from streamdp.settings.io_options import NOWHERE, Input, Outputs, Serving
from streamdp.settings.load import checked
from streamdp.settings.memory import longest_record
from streamdp.settings.options import refuse_meaningless
from streamdp.settings.schema import Classes
from streamdp.state.claim import Claim
from streamdp.state.erasing import ErasedFile
from streamdp.state.snapshot import Header, SnapshotError, StateFolder, newest_taken

BATCH, MOST, QUICK = 1_000, 4_000, 0.1
"""Records of a batch, at first and at most: twice as many as before where those took so few seconds."""

SILENCE = {"silent": True}
"""The mark of positions after which the source was silent for the idle timeout."""

WAIT = 0.2
"""Seconds that a read waits for records."""


class Run:
    """A stream, from where its records come from through an engine to where its answers go.

    Iterating runs it, and gives what each batch has answered, once that is written. With a state, the same
    run goes on where one before it has stopped, however it stopped, and its outputs are as if that had not
    happened. A loop that is left takes a snapshot. All that went wrong is a ``StreamdpError``; what there is
    to say goes to the logger ``streamdp.run``.

    Parameters
    ----------
    source
        A path, the address of an installed source, an ``Input``, as ``Input(topic="news")``, or an object
        with the methods of ``streamdp_connectors.protocol.Source``.
    settings
        How records are read and clustered. What is not set is recognised by the first lines of a file.
    outputs
        Files, topics, a store, and the folder of the state; without it, answers are only given.
    serving
        At which ports there are a page, and metrics.
    alerts
        Who is told of what happens to stories; needs a state.
    written
        Names of the settings that were chosen: those of a state must be the same. By default all that
        differ from their defaults.
    watch
        What observes the run, in place of ``serving`` and ``alerts``.
    interrupt
        Asks for an end.

    Attributes
    ----------
    engine : Engine
        With all that the run has learned so far.

    Raises
    ------
    StreamdpError
        Where source, outputs or state cannot be used as they are asked to be.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "news.txt")
    >>> with open(path, "w") as file:
    ...     _ = file.write("storm hits coast\\ncoast storm worsens\\nbank opens branch\\n")
    >>> [line.cluster for answers in Run(path) for line in answers.assignments]
    [0, 0, 1]
    >>> state = Outputs(state=os.path.join(folder.name, "st"))
    >>> [story.records for story in Run(path, outputs=state).run().stories()]
    [2, 1]
    """

    engine: Engine
    reader: Reader
    sinks: Sinks
    folder: StateFolder | None = None
    corrector: Corrector | None = None
    snapshots: Snapshots | None = None
    _own: Source | None
    _turn: Claim | None = None
    _ended = _closed = False

    def __init__(
        self,
        source: str | os.PathLike[str] | Input | Source,
        settings: Settings | None = None,
        outputs: Outputs | None = None,
        serving: Serving | None = None,
        alerts: Sequence[Alert] = (),
        *,
        written: Container[str] | None = None,
        watch: RunObserver | None = None,
        interrupt: Interrupt | None = None,
    ) -> None:
        self.interrupt, self.interrupted = interrupt or Interrupt(), 0
        self.settings, self.outputs = settings or Settings(), outputs or Outputs()
        self._own, input = None, source
        if isinstance(input, str | os.PathLike):
            input = Input(file=os.fspath(input))
        elif not isinstance(input, Input):
            self._own, input = input, Input(file=f"python://{type(input).__name__}")
        if written is None:
            self.settings, self.outputs = checked(self.settings), checked(self.outputs)
            input, serving = checked(input), checked(serving or Serving())
            alerts = alerts_of([msgspec.structs.asdict(each) for each in alerts], "alerts")
            refuse_meaningless(input, self.outputs, serving)
            if alerts and not (input.kept or self.outputs.kept):
                raise ConfigError("alerts need a state: what was not delivered yet waits there", Exit.USAGE)
            written = _chosen(self.settings)
            if self.outputs.output == "-":
                self.outputs = msgspec.structs.replace(self.outputs, output=NOWHERE)
        if watch is None:
            watch = watches(serving or Serving(), alerts, input.label, self.settings)
        self.watch = watch
        try:
            self._open(input, written)
        except BaseException:
            self.close()
            raise

    def _open(self, input: Input, written: Container[str]) -> None:
        """Open the state, the source and the outputs, and go on where the state says."""
        before, outputs, watch = None, self.outputs, self.watch
        if outputs.start_from is not None:
            header, before = open_snapshot(outputs.start_from)
            made = f"{outputs.start_from}: was"
            self.settings = continued(self.settings, written, header, made, "leave them out")
        unnamed = outputs.state is None
        self.outputs = outputs = completed(input, outputs, written)
        refuse_double_use(input, outputs)
        self.settings = settings = recognised(self.settings, input.file)
        refuse_lacking(settings, input.file)
        self.frozen, self.most = outputs.frozen, BATCH
        if outputs.state is not None:
            if input.topic is not None and not self.frozen:
                self._turn = wait_for_turn(outputs.state, input.session_timeout, input.waits, watch)
            self.folder = StateFolder(outputs.state, settings.snapshot_keep, self._turn)
        self.refused, self.silences = ErasedFile(outputs.state), list[object]()
        resumed = self._resume(written, outputs, before)
        warn_of_memory(self.settings)
        self.engine.stage = watch.stages.enter
        self.first, self.scored = self.engine.seq, 0
        self._fresh: list[Answers] = []
        self.reader = Reader(self.settings, input, watch.stages, self.own_source(input))
        self.source = self.reader.source
        goes_on = resumed is not None and not self.reader.seek(resumed.positions)
        if resumed is None and unnamed and outputs.state is not None:
            say(f"the state is in {outputs.state}, unless --state names another folder")
        replayed = not goes_on or (resumed is not None and resumed.ended)
        self.again = resumed is not None and replayed
        how: dict[str, Any] = {"keep": further_columns(self.settings), "replayed": replayed}
        how["place"] = getattr(self.source, "place", ())
        self.sinks = Sinks(input, outputs, resumed, self.settings, waiting=self._wait, **how)
        if resumed is not None:
            say(f"resuming from record {resumed.seq:,} of {outputs.state}")
            report_change(outputs, resumed)
            if goes_on:
                say(f"{input.label} cannot be read again: going on with what comes")
            self._replay()
        self.heard_at = time.monotonic()
        if self.folder is not None and not self.frozen:
            hands = self.engine, self._answer, self.sinks.put, heard_of(input)
            self.corrector = Corrector(self.folder.folder, *hands)
            kept = self.folder, self.settings, outputs.modes
            self.snapshots = Snapshots(*kept, self._wait, watch, self.first)
            if resumed is None:
                self.snapshot()  # so that a crash at any moment finds one
        watch.opened(self)

    def own_source(self, input: Input) -> Source | None:
        """A source that is no connector's; None where the input names one."""
        return self._own

    def __iter__(self) -> Iterator[Answers]:
        """Run to the end of the source, or until ``stop`` is called, and give all answers."""
        with contextlib.closing(self):
            try:
                for answers in self.batches():
                    yield from answers
            except GeneratorExit:
                self.end(stopped=True)
                raise
            if not self.interrupt.asked:
                self.watch.ended(self.engine, lambda: self.interrupt.asked)
                if why := self.unusable:
                    raise ConfigError(why, Exit.BAD_DATA)

    def run(self) -> Engine:
        """Run to the end of the source, or until ``stop`` is called; return the engine."""
        for _ in self:
            pass
        return self.engine

    def stop(self) -> None:
        """Ask for an end after this batch; from any thread."""
        self.interrupt.ask()

    def batches(self) -> Iterator[list[Answers]]:
        """What each round of the loop has answered, often nothing; who iterates closes the run."""
        self.watch.ready()
        self.interrupt.under_way = lambda: self.sinks.missing > 0
        self.interrupt.opened = True
        while not self.source.at_end and not self.interrupt.asked:
            self.beat()
            self.step()
            yield self._given()
        self.interrupted = self.interrupt.number
        self.end(stopped=self.interrupt.asked)
        yield self._given()

    def _given(self) -> list[Answers]:
        given, self._fresh = self._fresh, []
        return given

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
            check_outputs(header)
            settings = self._settings_after(header, written, outputs)
            self.engine = Engine.loads(body, settings, **modes)
            self.settings = settings
            return header

        found = None if self.folder is None else newest_taken(self.folder.folder, warn, load)
        if found is not None and self.folder is not None and not self.frozen:
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
        refuse_modes(outputs, header)
        return settings

    def snapshot(self, *, ended: bool = False, wait: bool = True) -> None:
        """Take a snapshot; ``wait`` until it is on the disk."""
        assert self.snapshots is not None
        taken = self.engine, self.source, self.sinks
        self.snapshots.take(*taken, marks=self.reader.marks, ended=ended, wait=wait)

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
            if self.sinks.store is not None:
                self.sinks.store.taken(records)
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
        if self.interrupt.hung_up:
            self._begin_anew()
        if self.snapshots is not None:
            self.snapshots.read(records.came)
            self.snapshots.look()
            if self.snapshots.due:
                self.snapshot(wait=False)

    def _begin_anew(self) -> None:
        """Begin others in the place of files that were renamed, after a snapshot of that: nothing is lost."""
        self.interrupt.hung_up = False
        self.sinks.flush(sync=True)
        files = self.sinks.left()
        if files and self.snapshots is not None:
            self.snapshot()
        self.sinks.begin_anew(files)
        say("began new output files" if files else "SIGHUP: no output was renamed, and none is begun anew")

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
        self._fresh.append(answers)
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

    @property
    def answered(self) -> int:
        """Records that this run has answered."""
        return self.scored if self.frozen else self.engine.seq - self.first

    def end(self, stopped: bool) -> None:
        """Close the stream; with a state folder, a stopped stream stays open. Again does nothing."""
        if self._ended:
            return
        self._ended = True
        self.watch.ending()
        if self.corrector is not None:
            self.corrector.ended = True
        if self.snapshots is not None:
            self.snapshot(ended=not stopped)
        if not self.frozen and not (stopped and self.folder is not None):
            last, store = self.engine.finish(), self.sinks.store
            if store is not None:
                store.ending()
            self.sinks.write(last)
            self._fresh.append(last)
            self.watch.decided(last)
            if store is not None:
                stories = self.engine.stories(records=False)
                store.note_keywords({story.label: story.keywords for story in stories})
            self.sinks.flush(sync=True)
            self.watch.answered(last, 0)

    @property
    def unusable(self) -> str:
        """Why nothing could be used, and what would help; empty where something was, or nothing came."""
        if self.answered or not self.sinks.refused or self.interrupted:
            return ""
        decoder, refused = self.reader.decoder, self.sinks.refused.total()
        why = nothing_usable(self.sinks.first_refused, self.settings, decoder.format, decoder.header or ())
        return f"{why}; {counted(refused, 'record')} refused: see {self.sinks.rejects_name}"

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        with contextlib.ExitStack() as last_first:
            last_first.callback(self.watch.close)
            for held in (self._turn, self.folder):
                if held is not None:
                    last_first.callback(held.close)
            last_first.callback(self.watch.leaving)
            last_first.enter_context(contextlib.suppress(SinkClosed))
            for name in ("sinks", "source"):
                if (opened := getattr(self, name, None)) is not None:
                    last_first.callback(opened.close)
            if self.snapshots is not None:
                last_first.callback(self.snapshots.end)
            last_first.callback(self.watch.ending)


def _place(positions: Mapping[str, Any]) -> object:
    """How far a source has come."""
    return positions.get("topic"), positions.get("partitions")


def _chosen(settings: Settings) -> set[str]:
    """Names of the settings that are not at their defaults."""
    default = Settings()
    return {name for name in settings.__struct_fields__ if getattr(settings, name) != getattr(default, name)}


GROUP = Path("/sys/fs/cgroup/memory.max")
"""The limit of this process's group, in bytes or ``max``; in a container that is the container's."""


def warn_of_memory(settings: Settings, group: Path = GROUP) -> None:
    """Warn if the memory limit refuses records that the settings allow, or if the process may not take it.

    Answers are the same in either case.
    """
    limit, longest = settings.memory_limit, longest_record(settings)
    if longest < settings.max_record_bytes:
        warn(
            f"records of more than {longest:,} bytes are refused: one has an eighth of memory_limit at most; "
            f"for max_record_bytes raise it to {8 * settings.max_record_bytes:,}"
        )
    try:
        allowed = int(group.read_text("utf-8"))
    except (OSError, ValueError):  # no such limit
        return
    if allowed < limit:
        warn(
            f"the memory limit of this container, {allowed >> 20} MiB, is below memory_limit, "
            f"{limit >> 20} MiB of content: the process may be ended for want of memory"
        )
