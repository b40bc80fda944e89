"""Watches of a run: metrics, health and the live page."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from streamdp_connectors.protocol import Source, share_of

from streamdp.answers.describe import KINDS
from streamdp.decode import decoder
from streamdp.encode import order
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit, StreamdpError, needing
from streamdp.kernels.compilation import compiling, working_time
from streamdp.monitor.health import Health, HealthError, HealthServer
from streamdp.monitor.metrics import Metrics
from streamdp.monitor.stages import Arrivals, Stages
from streamdp.records import GAP, Answers
from streamdp.records.answer_rows import answer_rows
from streamdp.records.columns import Columns
from streamdp.reports.source import append_correction, open_state, opened
from streamdp.run.corrector import Corrector
from streamdp.run.interrupt import Interrupt
from streamdp.run.messages import say
from streamdp.run.pace import Pace
from streamdp.run.reading import Reader
from streamdp.run.writing import Sinks
from streamdp.safe_files import warn_of_readers
from streamdp.settings import Settings
from streamdp.settings.assemble import automatic
from streamdp.settings.io_options import Outputs, Serving
from streamdp.settings.schema import Classes
from streamdp.state.corrections import Correction
from streamdp.state.snapshot import StateFolder, written_at

if TYPE_CHECKING:
    from streamdp.page.server import Page

TOKEN = "STREAMDP_TOKEN"  # noqa: S105 - its name
"""The environment variable of the token, where no file holds it."""

SECONDS = 2.0
"""Seconds between two looks for a newer snapshot."""

UNHEARD = 3.0
"""Seconds between two updates of what pages show while none listens: each takes a few milliseconds."""

COUNTS_EVERY = 0.1
"""Seconds between two looks at what an engine counts."""

LAGS_EVERY = 1.0
"""Seconds between two looks at how far reading is behind."""


class Running(Protocol):
    """What is seen of a run."""

    settings: Settings
    outputs: Outputs
    engine: Engine
    source: Source
    reader: Reader
    sinks: Sinks
    folder: StateFolder | None
    corrector: Corrector | None
    interrupt: Interrupt
    interrupted: int
    frozen: bool
    again: bool
    """Whether records come again that a run before has answered."""

    @property
    def answered(self) -> int:
        """Records that this run has answered."""

    @property
    def unusable(self) -> str:
        """Why nothing could be used; empty where something was."""


class RunObserver:
    """What watches a run; this one only measures the time of its stages."""

    def __init__(self) -> None:
        self.stages = Stages(working_time)

    def opened(self, run: Running) -> None:
        """State, source and outputs are open. Raises StreamdpError where what was asked for needs others."""

    def ready(self) -> None:
        """The run begins to answer."""

    def stand_by(self, waits: bool) -> None:
        """Whether another process runs with the state, and this one waits for its turn."""

    def beat(self, engine: Engine, reader: Reader, answered: int) -> None:
        """Called in every round of the loop; ``answered`` counts the records of this run."""

    def taken(self, records: Columns) -> None:
        """A batch was read."""

    def batch(self, answers: Answers, answered: int, held_back: int, advance: float, total: float) -> None:
        """A batch was answered; ``advance`` and ``total`` are the seconds of the engine and of all."""

    def decided(self, answers: Answers) -> None:
        """There are answers, which the outputs have, and flush next."""

    def saving(self, engine: Engine) -> None:
        """A snapshot is taken next: what it covers is not seen again."""

    def answered(self, answers: Answers, held_back: int) -> None:
        """Answers were written; ``held_back`` records wait for theirs."""

    def ended(self, engine: Engine, asked: Callable[[], bool]) -> None:
        """The input has ended and all is written. Returns when serving may end."""

    def snapshot(self, seconds: float, size: int) -> None:
        """A snapshot of so many bytes was written."""

    def snapshot_failed(self) -> None:
        """A snapshot could not be written."""

    def ending(self) -> None:
        """The run ends, and answers nothing more."""

    def leaving(self) -> None:
        """The state is let go of next: another process may go on with it."""

    def close(self) -> None:
        """Stop serving."""


class Observers(RunObserver):
    """Several watches of one run, each of which sees everything; the first has its stages."""

    def __init__(self, *watches: RunObserver) -> None:
        self._all = watches
        self.stages = watches[0].stages


def _for_all(name: str) -> Callable[..., None]:
    @functools.wraps(getattr(RunObserver, name))
    def pass_on(self: Observers, *what: Any) -> None:
        for watch in self._all:
            getattr(watch, name)(*what)

    return pass_on


for _name in [name for name in vars(RunObserver) if not name.startswith("_")]:
    setattr(Observers, _name, _for_all(_name))


class Measured(RunObserver):
    """Everything is measured, and served over HTTP where a host and a port are given. Raises HealthError.

    ``busy`` says why no records are taken just now.
    """

    def __init__(
        self, busy: Callable[[], str | None] = lambda: None, at: tuple[str, int] | None = None
    ) -> None:
        super().__init__()
        with needing(HealthError, "metrics need", "prometheus-client"):
            self.metrics = Metrics()
        for reason in reasons():
            self.metrics.count("rejects", reason, by=0)
        for kind in KINDS:
            for of in ("story", "template"):
                self.metrics.count("events", kind, of, by=0)
        self.metrics.set("stage_seconds", lambda: {(name,): s for name, s in self.stages.seconds().items()})
        self._arrivals = Arrivals()
        self._answered = 0
        self._looked = -LAGS_EVERY
        self._pace, self._counting = Pace(), Pace(COUNTS_EVERY)
        # the clock stands still while kernels compile: a run that compiles has not stalled
        how: dict[str, Any] = {"clock": working_time, "busy": lambda: busy() or _busy()}
        with needing(HealthError, "metrics at an address need", "uvicorn"):
            self.server = HealthServer(self.metrics, *at, **how) if at else Health(self.metrics, **how)

    def opened(self, run: Running) -> None:
        """What leaves the store is counted."""
        if (store := run.sinks.store) is not None:
            self.metrics.set("store_removed", lambda: {(name,): n for name, n in {**store.removed}.items()})

    def ready(self) -> None:
        """Report ready."""
        self.metrics.ready = True

    def stand_by(self, waits: bool) -> None:
        """Report standing by: alive, and not ready."""
        self.metrics.standing_by = waits

    def beat(self, engine: Engine, reader: Reader, answered: int) -> None:
        """Report liveness, and the counters of engine and source."""
        self.server.beat()
        if not engine.with_events:
            engine.report_events()
        with self._pace as due:
            if due:
                self.metrics.set("doubts", len(engine.doubts()))
        with self._counting as due:
            if due:
                counts = {**engine.counters(), **engine.refined(), **engine.levels(), "records": answered}
                counts["corrections"] = engine.corrections.taken
                self.metrics.update(counts)
        self.metrics.source_up = None if reader.watched is None else reader.watched.up()
        self.metrics.set("gap_records", reader.passed)
        self.metrics.set("skipped", reader.blank)
        now = time.monotonic()
        if now - self._looked >= LAGS_EVERY:
            self._looked = now
            lags = {(lag.topic, str(lag.partition)): lag for lag in reader.lags(time.time())}
            self.metrics.set("lag_records", {at: lag.records for at, lag in lags.items()})
            known = {at: lag.seconds for at, lag in lags.items() if lag.seconds is not None}
            self.metrics.set("lag_seconds", known)

    def taken(self, records: Columns) -> None:
        """Note the arrival of a batch: that of its first record."""
        if len(records) and (arrival := records[0].arrival) is not None:
            self._arrivals.take(records.came, arrival)

    def batch(self, answers: Answers, answered: int, held_back: int, advance: float, total: float) -> None:
        """Report rejects by reason, durations, and ages of the records."""
        now, fresh = time.time(), answered - self._answered
        self._answered = answered
        for reject in answers.rejects:
            self.metrics.count("rejects", reject.reason)
        for arrival, records in self._arrivals.answer(held_back):
            self.metrics.observe("answer_seconds", now - arrival, records)
        first = answer_rows(answers.lines).first().times()[:1]
        if first and first[0] is not None and fresh > 0:
            self.metrics.observe("event_age_seconds", now - first[0], fresh)
        self.metrics.observe("advance_seconds", advance)
        self.metrics.observe("batch_seconds", total)
        for event in answers.events:
            of = "template" if isinstance(event.template, str) else "story"
            self.metrics.count("events", event.event, of)

    def snapshot(self, seconds: float, size: int) -> None:
        """Report a snapshot."""
        self.metrics.snapshot_written(seconds, size)

    def snapshot_failed(self) -> None:
        """Report a failed snapshot."""
        self.metrics.count("snapshot_failures")

    def close(self) -> None:
        """Report not ready, and stop serving."""
        self.metrics.ready = False
        self.server.close()


def _busy() -> str | None:
    """Why no records are read at the moment."""
    return None if compiling() is None else "compiling"


def reasons() -> Iterable[str]:
    """All reasons for which records are refused."""
    return dict.fromkeys((*decoder.REASONS, *order.REASONS, GAP))


def token_in(path: str | None) -> str | None:
    """Read the token of a file. Raises StreamdpError."""
    if path is None:
        return None
    with open(path, encoding="utf-8") as file:
        token = checked_token(file.read().strip(), path)
    warn_of_readers(path)
    return token


def token_of(path: str | None) -> str | None:
    """The token of a service: of a file, or of the environment. Raises StreamdpError."""
    return token_in(path) if path or TOKEN not in os.environ else checked_token(os.environ[TOKEN], TOKEN)


def checked_token(token: str, where: str) -> str:
    """A token that was found somewhere. Raises StreamdpError where it is none."""
    if (
        not 8 <= len(token) <= 200
        or not token.isascii()
        or not token.replace("-", "").replace("_", "").isalnum()
    ):
        raise StreamdpError(
            f"{where}: a token is 8 to 200 letters, digits, - and _, and nothing else", Exit.CONFIG
        )
    return token


def open_page(at: Serving, stream: str, chosen: Sequence[str], **how: Any) -> Page:
    """Serve a page. Raises StreamdpError."""
    token = how.pop("token", None) or token_in(at.page_token)
    with needing(StreamdpError, "the page needs", "starlette", "uvicorn"):
        from streamdp.page.server import Page
        from streamdp.page.view import View
    assert at.page is not None
    return Page(View(stream, chosen), at.page_host, at.page, token, **how)


def say_where(page: Page, at: Serving, called: str = "page") -> None:
    """Say at which address a page is, once nothing stands in its way."""
    known = "" if at.page_token is None else f", with ?token= and what {at.page_token} holds"
    say(f"the {called} is at {page.address}{known}")


def show_still(page: Page, engine: Engine, figures: dict[str, Any]) -> None:
    """Show an engine that learns nothing more, and nothing else."""
    page.view.restart()
    page.view.begin(engine)
    for _ in range(50):  # what a run describes over some time is described at once
        tick = page.view.look(engine, time.monotonic(), figures)
        if not page.view.table.behind:
            break
    page.hub.publish(tick)


def serve_still(
    page: Page,
    engine: Engine,
    figures: dict[str, Any],
    *,
    corrects: bool,
    seen: int | None = None,
    asked: Callable[[], bool] = lambda: False,
) -> None:
    """Answer pages of an engine that learns nothing more, and of each snapshot of its state after ``seen``.

    The state takes corrections, where it ``corrects``: the page shows it from then on. Returns once an end is
    ``asked`` for.
    """
    state, classes, looked = page.view.state, Classes.of(engine.settings), time.monotonic()

    def show_again() -> None:
        nonlocal engine
        assert state is not None
        header, engine, _ = opened(state, classes)
        figures.update({"written": header.written} if "written" in figures else {})
        show_still(page, engine, figures)

    def give(_: Engine, correction: Correction) -> Correction:
        assert state is not None
        made = append_correction(state, open_state(state, classes)[1], correction)
        show_again()
        return made

    page.view.give = give if corrects else None
    while not asked():
        page.questions.answer(engine)
        time.sleep(0.05)
        if time.monotonic() - looked < SECONDS:
            continue
        looked = time.monotonic()
        if seen is not None and state is not None and seen != (seen := written_at(state)):
            show_again()
        elif page.view.table.behind:  # what was not described yet is, by and by
            page.hub.publish(page.view.look(engine, looked, figures))


class LivePage(RunObserver):
    """A page that shows the run."""

    def __init__(self, at: Serving, stream: str, chosen: Sequence[str], **how: Any) -> None:
        super().__init__()
        self._linger, self._corrects = at.page_linger, at.page_corrections
        self._at, self._called = at, how.pop("called", "page")
        self.page = open_page(at, stream, chosen, **how)
        self._pace, self._unheard = Pace(), 0.0
        self._begun = False

    def opened(self, run: Running) -> None:
        """What the store knows may be asked, and stories corrected where that was asked for."""
        view, corrector = self.page.view, run.corrector
        give = None if corrector is None else corrector.give
        view.state = run.outputs.state
        if run.sinks.store is not None:
            view.source = str(run.sinks.store.path)
        if self._corrects and give is None:
            raise ConfigError("--page-corrections: corrections are kept in a --state", Exit.USAGE)

        def at_once(engine: Engine, given: Any) -> Any:
            self._pace.hurry()  # what comes of it is shown at once
            self._unheard = 0.0
            return give and give(engine, given)

        view.give = at_once if self._corrects else None
        say_where(self.page, self._at, self._called)

    def beat(self, engine: Engine, reader: Reader | None, answered: int) -> None:
        """Answer questions of pages, and update them once a second."""
        if not self._begun:
            self._begun = True
            engine.report_events()
            self.page.view.chosen = automatic(engine.settings)  # of a state, where there is one
            self.page.view.begin(engine)
        self.page.questions.answer(engine)
        with self._pace as due:
            if due and (self.page.hub.heard or time.monotonic() >= self._unheard):
                self._unheard = time.monotonic() + UNHEARD
                self.tick(engine, _behind(reader))

    def tick(self, engine: Engine, more: dict[str, Any]) -> None:
        """Update pages."""
        self.page.hub.publish(self.page.view.look(engine, time.monotonic(), {"state": "running", **more}))

    def taken(self, records: Columns) -> None:
        """Their texts."""
        self.page.view.taken(records)

    def answered(self, answers: Answers, held_back: int) -> None:
        """Assignments, revisions, events and rejects."""
        self.page.view.answered(answers, held_back)

    def ended(self, engine: Engine, asked: Callable[[], bool]) -> None:
        """Update pages; with ``page_linger`` keep serving until an end is asked for."""
        self.tick(engine, {"state": "ended"})
        if not self._linger:
            return
        say(f"the input has ended; the page stays at {self.page.address} until Ctrl-C")
        serve_still(
            self.page, engine, {"state": "ended"}, corrects=self.page.view.give is not None, asked=asked
        )

    def close(self) -> None:
        """Stop serving."""
        self.page.close()


def _behind(reader: Reader | None) -> dict[str, Any]:
    """How far reading is behind."""
    if reader is None:
        return {}
    lags = reader.lags(time.time())
    if lags:
        seconds = [lag.seconds for lag in lags if lag.seconds is not None]
        return {"lag": {"records": sum(lag.records for lag in lags), "seconds": max(seconds, default=None)}}
    share = share_of(reader.source)
    return {} if share is None else {"read": round(share, 4)}
