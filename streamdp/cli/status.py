"""What a run does, in one line that moves, and what it has done, in a few that sum up."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from streamdp.cli.errors import say, warn
from streamdp.cli.hints import hint
from streamdp.encode.order import Lateness
from streamdp.engine import Engine
from streamdp.errors import Exit

if TYPE_CHECKING:
    from streamdp.cli.consume import Run


def counted(number: int, what: str) -> str:
    """``1 record``, ``2,000 records``."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def span(seconds: float) -> str:
    """``1:05:00``, ``2:07`` or ``0:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class Status:
    """Counts of a run, updated between batches, read by the thread that shows them."""

    EVERY = 0.2
    """Seconds between two updates."""

    def __init__(self) -> None:
        self._began = self._told = time.monotonic()
        self._text = "waiting for records"

    @property
    def due(self) -> bool:
        """Whether it is time to update."""
        return time.monotonic() - self._told >= self.EVERY

    def update(self, records: int, clusters: int, refused: int, held: int, share: float | None) -> None:
        """Tell of so many records answered, clusters live, and the share of the input that was read."""
        self._told = time.monotonic()
        elapsed = self._told - self._began
        parts = [
            counted(records, "record"),
            f"{records / max(elapsed, 1e-9):,.0f}/s",
            f"{clusters:,} live clusters",
        ]
        if refused:
            parts.append(f"{refused:,} refused")
        if held:
            parts.append(f"{held:,} held back")
        if share is not None:
            parts.append(f"{100 * share:.0f} % read")
            if 0.0 < share < 1.0:
                parts.append(f"{span(elapsed / share - elapsed)} left")
        self._text = ", ".join(parts)

    def __call__(self) -> str:
        """The line."""
        return self._text


def refined_line(engine: Engine) -> str:
    """What refinements have come to, where there were any."""
    refined = engine.refined()
    if not refined.get("refinements"):
        return ""
    adopted, moved = int(refined["refinements_adopted"]), int(refined["records_refined"])
    return (
        f"{counted(int(refined['refinements']), 'refinement')}: {adopted:,} adopted, "
        f"{counted(moved, 'record')} moved, {refined['refinement_nats']:,.1f} nats won"
    )


def adapted_line(engine: Engine) -> str:
    """What concentration and scale of the decay have come to, where they follow the stream."""
    now = engine.adapted
    if now is None:
        return ""
    unit = "s" if engine.settings.distance == "seconds" else " records"
    return (
        f"adapted: concentration {now.concentration:.3g} (given {now.given_concentration:g}), "
        f"decay over {now.decay_scale:.3g}{unit} (given {now.given_scale:g})"
    )


def lateness_line(lateness: Lateness, refused: int, max_lateness: float) -> str:
    """How many records came out of order, and which lateness would have put how many in order."""
    within = [(step, count) for step, count in lateness.within() if step > max_lateness]
    if not lateness.total or not within:
        return ""
    told = f"{counted(lateness.total, 'record')} came out of order"
    placed = "was placed as it came" if lateness.total == 1 else "were placed as they came"
    told += f", {refused:,} of them too late" if refused else f", and {placed}"
    most = next((pair for pair in within if pair[1] >= 0.9 * lateness.total), within[-1])
    steps = dict.fromkeys([most, within[-1]])
    return f"{told}; " + ", ".join(
        f"--max-lateness {step:g} would have put {count:,} in order" for step, count in steps
    )


def tell_summary(run: Run, seconds: float) -> None:
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


def exit_code(run: Run) -> int:
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
