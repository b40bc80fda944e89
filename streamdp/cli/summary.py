"""What a run has done: a line while it runs, a summary and an exit code at its end."""

from __future__ import annotations

import time

from streamdp_connectors.protocol import share_of

from streamdp.answers.listing import counted, span
from streamdp.encode.order import Lateness
from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.records import SMALL
from streamdp.run.messages import say, warn
from streamdp.run.observers import Running
from streamdp.settings.assemble import are_directions
from streamdp.story.story import noun_of


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

    def update(self, run: Running) -> None:
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


def print_summary(run: Running, seconds: float) -> None:
    """Report what a run has done in so many seconds."""
    counters, records = run.engine.counters(), run.answered
    rate = f", {records / seconds:,.0f} records/s" if seconds > 0 and records else ""
    live = live_of(run.engine)
    if run.frozen:
        say(f"{counted(records, 'record')} scored against {live}, nothing learned{rate}")
    elif not (run.engine.seq or run.sinks.refused or run.interrupted):
        say(f"{getattr(run.source, 'path', 'the input')} has no records: nothing was clustered")
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
    if refused and not run.unusable:
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


def exit_code(run: Running) -> int:
    """The exit code of a run that came to its end."""
    if run.interrupted and run.folder is None:
        return run.interrupt.code()
    if not (why := run.unusable):
        return 0
    say(why, "error")
    return Exit.BAD_DATA
