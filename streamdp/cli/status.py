"""What people see of a run: a moving line, bars, a summary, and a warning where memory may not suffice."""

from __future__ import annotations

import functools
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.spinner import Spinner
from rich.text import Text
from streamdp_connectors.protocol import Source, share_of

from streamdp.cli.errors import say, warn
from streamdp.cli.hints import nothing_usable
from streamdp.cli.interrupt import Interrupt
from streamdp.cli.reading import Reader
from streamdp.cli.writing import Sinks
from streamdp.encode.order import Lateness
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.kernels.compilation import announce, compiling, working_time
from streamdp.kernels.prebuilt import mismatch
from streamdp.offline.chain import Chain
from streamdp.offline.plan import SAMPLERS, Plan
from streamdp.offline.schedule import Trace, mixing
from streamdp.records import SMALL
from streamdp.settings import Settings
from streamdp.settings.assemble import are_directions
from streamdp.settings.memory import longest_record
from streamdp.state.snapshot import StateFolder
from streamdp.story.story import noun_of


class Run(Protocol):
    """What is shown of a run of ``consume``."""

    settings: Settings
    engine: Engine
    source: Source
    reader: Reader
    sinks: Sinks
    folder: StateFolder | None
    interrupt: Interrupt
    interrupted: int
    frozen: bool

    @property
    def answered(self) -> int:
        """Records that this run has answered."""


def counted(number: int, what: str) -> str:
    """``1 record``, ``2,000 records``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def span(seconds: float) -> str:
    """``1:05:00``, ``2:07`` or ``0:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def live_of(engine: Engine) -> str:
    """How many stories, templates or clusters live: ``2 live stories``."""
    live = engine.counters().get("clusters_live", 0)
    return f"{live:,} live {noun_of(engine.kind, live)}"


def larger_of(engine: Engine) -> str:
    """How many of them have more than three records; of templates nothing."""
    if engine.kind == "lines":
        return ""
    return f" ({int((engine.census().size > SMALL).sum()):,} of more than three records)"


class Status:
    """A line about a run, updated between batches, read by the thread that shows it."""

    EVERY = 0.2
    """Seconds between two updates."""

    def __init__(self) -> None:
        self._began = self._updated = time.monotonic()
        self.line = "waiting for records"

    def update(self, run: Run) -> None:
        """Update the line, if it is time."""
        now = time.monotonic()
        if now - self._updated < self.EVERY:
            return
        self._updated, elapsed = now, now - self._began
        records, live = run.answered, live_of(run.engine)
        rate = f"{records / max(elapsed, 1e-9):,.0f}/s"
        parts = [counted(records, "record"), rate, live]
        if refused := run.sinks.refused.total():
            parts.append(f"{refused:,} refused")
        if held := run.engine.held_back:
            parts.append(f"{held:,} held back")
        if (share := share_of(run.source)) is not None:
            parts.append(f"{100 * share:.0f} % read")
            if 0.0 < share < 1.0:
                parts.append(f"{span(elapsed / share - elapsed)} left")
        self.line = ", ".join(parts)


def ago(written: float) -> str:
    """How long ago a time was."""
    seconds = max(time.time() - written, 0.0)
    for size, unit in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute")):
        if seconds >= size:
            return counted(int(seconds / size), unit) + " ago"
    return counted(int(seconds), "second") + " ago"


def refined_line(engine: Engine) -> str:
    """The results of refinements; empty if there were none."""
    refined = engine.refined()
    if not refined.get("refinements"):
        return ""
    adopted, moved = int(refined["refinements_adopted"]), int(refined["records_refined"])
    return (
        f"{counted(int(refined['refinements']), 'refinement')}: {adopted:,} adopted, "
        f"{counted(moved, 'record')} moved, {refined['refinement_nats']:,.1f} nats won"
    )


def lateness_line(lateness: Lateness, refused: int, max_lateness: float) -> str:
    """How many records came out of order, and which --max-lateness would have put them in order."""
    within = [(step, count) for step, count in lateness.within() if step > max_lateness]
    if not lateness.total or not within:
        return ""
    text = f"{counted(lateness.total, 'record')} came out of order"
    placed = "was placed as it came" if lateness.total == 1 else "were placed as they came"
    text += f", {refused:,} of them too late" if refused else f", and {placed}"
    most = next((pair for pair in within if pair[1] >= 0.9 * lateness.total), within[-1])
    steps = dict.fromkeys([most, within[-1]])
    return f"{text}; " + ", ".join(
        f"--max-lateness {step:g} would have put {count:,} in order" for step, count in steps
    )


def print_summary(run: Run, seconds: float) -> None:
    """Report what a run has done in so many seconds."""
    counters, records = run.engine.counters(), run.answered
    rate = f", {records / seconds:,.0f} records/s" if seconds > 0 and records else ""
    live = live_of(run.engine)
    if run.frozen:
        say(f"{counted(records, 'record')} scored against {live}, nothing learned{rate}")
    elif records or not run.sinks.refused:
        begun = counters.get("clusters_created", 0)
        say(
            f"{counted(records, 'record')}{rate}; {live}{larger_of(run.engine)}, "
            f"{begun:,} since the stream began"
        )
    if not run.frozen:
        if records and not run.engine.dated and run.reader.decoder.format not in ("text", "log"):
            say(f"times: none (there is no {run.settings.time_field!r}); records count as they come")
        if are_directions(run.settings, run.engine.search) and not run.settings.normalise:
            say("vectors: of length one, as embeddings; clustered by direction, as with --normalise")
        for doubt in run.engine.doubts():
            warn(doubt)
        if run.engine.kind == "vectors" and run.engine.refined().get("refinements"):
            warn("refinements of vectors may harm clusters that have strays: compare with --refine-every 0")
        if line := refined_line(run.engine):
            say(line)
    exceptions = run.reader.exceptions
    if run.reader.joined or exceptions:
        told = f": {counted(exceptions, 'exception')} found in them" if exceptions else ": not read"
        say(f"{counted(run.reader.joined + exceptions, 'line')} went on with the line before{told}")
    if run.reader.blank:
        skipped = "blank line" if run.reader.watched is None else "tombstone"
        say(f"{counted(run.reader.blank, skipped)} skipped")
    refused = run.sinks.refused
    if refused:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.most_common())
        say(f"{counted(refused.total(), 'record')} refused ({reasons}): see {run.sinks.rejects_name}")
    late = lateness_line(run.engine.lateness, refused["late"], run.settings.max_lateness)
    if late:
        say(late)
    if counters.get("released_early"):
        early = counted(counters["released_early"], "record")
        warn(f"{early} left before later ones could come: raise memory_limit, or lower max_lateness")
    if counters.get("final_early"):
        warn(f"{counted(counters['final_early'], 'answer')} became final early: raise memory_limit")
    if counters.get("retained_short"):
        held = counted(counters["retained"], "record")
        warn(f"looks back had the latest {held}, not {run.settings.retain:,}: raise memory_limit")
    if counters.get("words_dropped"):
        warn(
            f"{counted(counters['words_dropped'], 'word')} found no room in the vocabulary: "
            "raise max_words, or memory_limit"
        )


def exit_code(run: Run) -> int:
    """The exit code of a run that came to its end."""
    if run.interrupted and run.folder is None:
        return run.interrupt.code()
    refused = run.sinks.refused.total()
    if run.answered or not refused or run.interrupted:
        return 0
    decoder = run.reader.decoder
    found = nothing_usable(run.sinks.first_refused, run.settings, decoder.format, decoder.header or ())
    say(found, "error")
    return Exit.BAD_DATA


PER_SECOND = 5


def compilation_line() -> str | None:
    """The progress of a compilation; None if nothing is compiled."""
    now, why = compiling(), mismatch()
    if now is None:
        return None
    line = f"compiling for this prior and likelihood, about half a minute, only this once: {now}"
    return f"{line}\nthose of the wheel are {why}" if why else line


class Display:
    """While active, shows one line on a terminal; in a pipe it says that kernels are compiled, if they are.

    ``line`` says what is shown while nothing is compiled, ``above`` what stands above it; both are called
    from a thread of the display's own.
    """

    def __init__(
        self, line: Callable[[], str] = str, above: Callable[[], RenderableType] | None = None
    ) -> None:
        self._line, self._above = line, above
        self._spinner = Spinner("dots")
        self._live = Live(
            console=Console(stderr=True),
            get_renderable=self._render,
            refresh_per_second=PER_SECOND,
            transient=True,
            redirect_stdout=False,
        )

    def _render(self) -> RenderableType:
        line = compilation_line() or self._line()
        if not line:
            return Text()
        self._spinner.update(text=Text(line, no_wrap=True, overflow="ellipsis"))
        return self._spinner if self._above is None else Group(self._above(), self._spinner)

    def __enter__(self) -> Display:
        if sys.stderr is not None and sys.stderr.isatty():
            self._live.start()
        else:
            announce_compilation()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()


@functools.cache
def announce_compilation() -> None:
    """Have it said that kernels are being compiled, if it takes longer than a moment."""
    announce(say)


EVERY = 0.1
"""Seconds between two updates of the bar."""


class _Bars(Bar):
    """Bars, replaced by the line of a compilation while there is one."""

    def get_renderables(self) -> Iterable[RenderableType]:
        line = compilation_line()
        yield self.make_tasks_table(self.tasks) if line is None else Text(line)


class Progress:
    """Log joint, clusters, moves a second and time left, a bar for each chain."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._began = working_time()
        self._reported = [0.0] * plan.chains
        self._shown = sys.stderr.isatty() and plan.method in SAMPLERS
        self._bar = _Bars(
            TextColumn("chain {task.fields[number]}"),
            BarColumn(),
            TextColumn("log joint {task.fields[joint]}  K {task.fields[k]}  {task.fields[rate]} records/s"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not self._shown,
        )

    def __enter__(self) -> Progress:
        total = self._plan.seconds or self._plan.rounds
        method, began = self._plan.method, self._began
        self._quiet = None if self._shown else Display(lambda: f"{method}, {span(working_time() - began)}")
        if self._quiet is not None:
            self._quiet.__enter__()
        self._tasks = [
            self._bar.add_task("", total=total, number=c, joint="?", k="?", rate="?")
            for c in range(self._plan.chains)
        ]
        self._bar.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.__exit__(None, None, None)
        if self._quiet is not None:
            self._quiet.__exit__(None, None, None)

    def __call__(self, number: int, chain: Chain, trace: Trace) -> None:
        """After every round."""
        now = time.monotonic()
        if not self._shown or now - self._reported[number] < EVERY:
            return
        with self._lock:
            elapsed = working_time() - self._began
            done = elapsed if self._plan.seconds else len(trace.seconds)
            self._reported[number] = now
            self._bar.update(
                self._tasks[number],
                completed=done,
                joint=f"{chain.log_joint:,.1f}",
                k=chain.clusters,
                rate=f"{len(trace.seconds) * chain.size / max(trace.seconds[-1], 1e-9):,.0f}",
            )


def summarise_chains(traces: Sequence[Trace]) -> list[str]:
    """How well the second halves of the chains have mixed, a line for each quantity."""
    return [
        f"{d.name}: mean {d.mean:,.2f}, sd {d.sd:,.2f}, effective draws {d.ess:,.0f}, R-hat {d.r_hat:.3f}"
        for d in mixing(traces)
    ]


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
