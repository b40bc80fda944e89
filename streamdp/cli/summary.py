"""What ``consume`` says of a run that came to its end."""

from __future__ import annotations

from typing import Protocol

from streamdp.cli.errors import say, warn
from streamdp.cli.hints import hint
from streamdp.cli.interrupt import Interrupt
from streamdp.cli.reading import Reader
from streamdp.cli.status import adapted_line, counted, lateness_line, refined_line
from streamdp.cli.writing import Sinks
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.settings import Settings
from streamdp.state.snapshot import StateFolder


class Finished(Protocol):
    """What is read here of a run of ``consume``."""

    settings: Settings
    engine: Engine
    reader: Reader
    sinks: Sinks
    folder: StateFolder | None
    interrupt: Interrupt
    interrupted: int
    frozen: bool

    @property
    def answered(self) -> int:
        """Records that this run has answered."""


def tell_summary(run: Finished, seconds: float) -> None:
    """Say what a run of so many seconds has done."""
    counters, records = run.engine.counters(), run.answered
    rate = f", {records / seconds:,.0f} records/s" if seconds > 0 and records else ""
    live = counted(counters.get("clusters_live", 0), "live cluster")
    if run.frozen:
        say(f"{counted(records, 'record')} scored against {live}, nothing learned{rate}")
    elif records or not run.sinks.refused:
        announced = counted(counters.get("clusters_created", 0), "cluster")
        say(
            f"{counted(records, 'record')}; {announced} announced since the stream began, {live}; "
            f"log evidence {run.engine.log_evidence:,.1f} nats{rate}"
        )
    if not run.frozen:
        for line in filter(None, (refined_line(run.engine), adapted_line(run.engine))):
            say(line)
    if run.reader.joined:
        say(f"{counted(run.reader.joined, 'line')} without a time went on with the line before: not read")
    refused = run.sinks.refused
    if refused:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in refused.most_common())
        say(f"{counted(refused.total(), 'record')} refused ({reasons}): see {run.sinks.rejects_name}")
    late = lateness_line(run.engine.lateness, refused["late"], run.settings.max_lateness)
    if late:
        say(late)
    if counters.get("words_dropped"):
        warn(f"{counted(counters['words_dropped'], 'word')} found no room in the vocabulary: raise max_words")


def exit_code(run: Finished) -> int:
    """The exit code of a run that came to its end."""
    if run.interrupted and run.folder is None:
        return run.interrupt.code()
    refused = run.sinks.refused.total()
    if run.answered or not refused or run.interrupted:
        return 0
    rejects = run.sinks.first_refused
    help_ = hint(rejects, run.settings, run.reader.decoder.format, run.reader.decoder.header or ())
    say(f"nothing could be used: {rejects[0].detail}" + (f" ({help_})" if help_ else ""), "error")
    return Exit.BAD_DATA
