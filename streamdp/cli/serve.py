"""``streamdp serve``: records in and answers out over HTTP, by way of a journal in the state's folder."""

from __future__ import annotations

import contextlib
import os
import resource
import ssl
from collections.abc import Callable, Container, Iterator
from typing import Any

import msgspec
from streamdp_connectors.files.checkpoint import Rotation
from streamdp_connectors.journal.source import JournalSource
from streamdp_connectors.journal.writer import Journal
from streamdp_connectors.protocol import FullError

from streamdp.cli.alerts import Alarm
from streamdp.cli.config import automatic
from streamdp.cli.consume import Run, run_to_end
from streamdp.cli.errors import say, warn
from streamdp.cli.interrupt import LIMIT, Interrupt
from streamdp.cli.observers import LivePage, Measured, Observers, RunObserver, checked_token, token_in
from streamdp.cli.reading import COLUMNS, Reader, format_of
from streamdp.cli.warm import prepare
from streamdp.encode.encoders import decoder_of
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit
from streamdp.records import Answers
from streamdp.settings import Settings
from streamdp.settings.alerts import Alerting
from streamdp.settings.io_options import NOWHERE, Input, Outputs, Service, Serving
from streamdp.state.snapshot import Header, headers
from streamdp.web import is_loopback

TOKEN = "STREAMDP_TOKEN"  # noqa: S105 - its name
"""The environment variable of the token, where no file holds it."""


LOOK = 0.5
"""Seconds between two tries to write to a full disk."""


class Served(Run):
    """A run whose source is a journal that it writes itself."""

    journal: Journal
    hindered: Callable[[str | None], None] = staticmethod(lambda why: None)
    """Hears why nothing can be stored, and None once it can."""

    def open(self, input: Input, watch: RunObserver) -> Reader:
        """Open the journal, and read it from its beginning."""
        assert input.file is not None
        self.journal = Journal(input.file)
        source = JournalSource(input.file, self.journal)
        return Reader(self.settings, input, watch.stages, source)

    def flush(self) -> None:
        """Hand over what was written; on a full disk wait for room, unless the run is to end.

        What was accepted is in the journal, and what the store holds is whole.
        """
        full = False
        while True:
            try:
                super().flush()
                break
            except FullError as error:
                if self.interrupt.asked:
                    raise
                if not full:
                    warn(f"{error.message}: nothing is taken until there is room")
                full = True
                self.hindered("no room for the store")
                self.beat()
                self.interrupt.event.wait(LOOK)
        if full:
            say("there is room again")
            self.hindered(None)

    def end(self, stopped: bool) -> None:
        """Take no more records, then end like any run."""
        self.watch.ending()
        super().end(stopped)


class DoorWatch(RunObserver):
    """Opens the door once the journal has been read again, and hands answers back."""

    def __init__(self, within: float, keep: int, live: LivePage, service: Any) -> None:
        super().__init__()
        self._within, self._keep, self._live, self._service = within, keep, live, service
        self._run: Served | None = None
        self._door: Any = None
        self._caught_up = self._full = False

    def attach(self, run: Served, outputs: Outputs) -> None:
        """The run is open: records may come as soon as what the journal holds is answered."""
        from streamdp.serve.ingest import IngestQueue, reader_of
        from streamdp.serve.stored import ServiceContext, Stored

        assert outputs.store is not None
        assert outputs.state is not None
        assert run.sinks.store is not None
        run.sinks.store.suit_service()
        of_text = format_of(run.settings, None) in ("text", "log")
        stored = Stored(outputs.store)
        decoder = decoder_of(run.settings, format_of(run.settings, None))
        self._read = (lambda record: None) if of_text else reader_of(decoder)
        call = self._live.page.hub.call
        self._door = IngestQueue(run.journal, self._read, stored.answers, call, self._within, run.refused.why)
        run.hindered = self._hinder
        self._end = run.journal.records
        self._from = _held(run.source.positions()["line"], run.sinks.store.waiting)
        self._stands = ServiceContext(self._door, stored, outputs.store, outputs.state, of_text, run.settings)
        self._run = run  # the last: what else is here is used once there is a run

    def ready(self) -> None:
        """Raise SinkError where records that were answered are no longer in the journal."""
        assert self._run is not None
        assert self._run.sinks.store is not None
        self._run.sinks.store.check_reach(self._run.journal.records, str(self._run.journal.folder))

    def conflicts(self) -> int:
        """Records that were refused because others of their ids had been taken."""
        return 0 if self._door is None else int(self._door.conflicts)

    def hindrance(self) -> str | None:
        """Why no records are taken; None where they are."""
        return "not ready" if self._door is None else self._door.hindrance

    def beat(self, engine: Engine, reader: Reader, answered: int) -> None:
        """Open the door, or say how far the stream has come."""
        if self._run is None or self._full:
            return  # the run is not open yet, or what was read is not answered
        line = reader.source.positions()["line"]
        if not self._caught_up and line >= self._end:
            self._caught_up = True
            self._service.stands = self._stands  # first: who asks may hear at once that the door is open
            self._door.open(list(self._waiting()))
        self._door.looked(line, held_back=bool(engine.held_back))

    def _hinder(self, why: str | None) -> None:
        """The store has no room, or has it again."""
        self._full = why is not None
        self._door.hinder(why)

    def _waiting(self) -> Iterator[tuple[int, Any]]:
        """Lines and names of records of the journal that the state did not hold answers to."""
        assert self._run is not None
        source = JournalSource(self._run.journal.folder)
        try:
            source.seek({"file": "journal", "line": max(self._from, source.line)})
            while source.line < self._end and (found := source.read(1000, 0.0)):
                for raw in found:
                    name = self._read(raw.data)
                    if name is not None and name.hash:
                        yield raw.position["line"], name
        finally:
            source.close()

    def answered(self, answers: Answers, held_back: int) -> None:
        """Hand answers back: they are in the store."""
        from streamdp.serve.schemas import answers_of

        assert self._run is not None
        self._door.answered(answers_of(answers), self._run.source.positions()["line"])
        if answers.events:
            self._live.page.hub.call(self._service.happened)

    def snapshot(self, seconds: float, size: int) -> None:
        """Remove what no snapshot needs any more of the journal."""
        if self._run is None or self._run.folder is None:
            return
        self._door.reserve = max(self._door.reserve, 2 * size)
        found = headers(self._run.folder.folder)
        if found:
            needed = min(_needed(header) for header in found)
            self._run.journal.prune(needed, self._keep)

    def ending(self) -> None:
        """Take no more records."""
        if self._door is not None:
            self._door.close()


def _held(line: int, waiting: list[dict[str, Any]]) -> int:
    """Up to which line all records were answered, of those read up to one and those that wait."""
    return int(min([line, *(place["line"] - 1 for place in waiting if "line" in place)]))


def _needed(header: Header) -> int:
    """Up to which line a snapshot needs none of the journal."""
    waiting = header.outputs.get("store", {}).get("waiting", [])
    return _held(header.positions["line"], [msgspec.json.decode(place) for place, _ in waiting])


def _size(text: str | None) -> int:
    """Bytes that ``--keep-journal`` means. Raises ConfigError."""
    try:
        found = 0 if text is None else Rotation.of(text).size
    except ValueError:
        found = None
    if found is None:
        raise ConfigError(f"--keep-journal: {text!r} is no size such as 500M or 2G", Exit.USAGE)
    return found


def _token(at: Service) -> str | None:
    """The token that clients send; None for none. Raises StreamdpError."""
    if at.token is None and TOKEN in os.environ:
        return checked_token(os.environ[TOKEN], TOKEN)
    if not is_loopback(at.host) and not (at.token or at.tls_clients):
        raise ConfigError(
            f"--host {at.host} can be reached from other machines: say --token PATH, set {TOKEN}, or let "
            "clients show certificates (--tls-clients)",
            Exit.USAGE,
        )
    return token_in(at.token)


def _tls(at: Service) -> dict[str, Any]:
    """What uvicorn takes of certificates. Raises ConfigError."""
    if at.tls_cert is None and at.tls_key is None and at.tls_clients is None:
        return {}
    if at.tls_cert is None or at.tls_key is None:
        raise ConfigError("TLS needs both --tls-cert and --tls-key", Exit.USAGE)
    found: dict[str, Any] = {"ssl_certfile": at.tls_cert, "ssl_keyfile": at.tls_key}
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(at.tls_cert, at.tls_key)
        if at.tls_clients is not None:
            context.load_verify_locations(at.tls_clients)
            found |= {"ssl_ca_certs": at.tls_clients, "ssl_cert_reqs": ssl.CERT_REQUIRED}
    except OSError as error:
        raise ConfigError(
            f"the certificates cannot be used: {error.strerror or error}", Exit.CONFIG
        ) from None
    return found


def _checked(outputs: Outputs, written: Container[str]) -> Outputs:
    """The outputs of a service. Raises ConfigError."""
    if outputs.state is None or outputs.store is None:
        raise ConfigError("say where records are kept: --state FOLDER and --store FILE", Exit.USAGE)
    if outputs.frozen or outputs.final_only:
        flag = "--frozen" if outputs.frozen else "--final-only"
        raise ConfigError(f"serve learns from records and answers them at once: leave {flag} out", Exit.USAGE)
    return outputs if "output" in written else msgspec.structs.replace(outputs, output=NOWHERE)


def _allow_files(wanted: int) -> None:
    """Allow this process so many open files, or as many as it may have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    allowed = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < wanted:
        warn(f"only {allowed:,} files may be open at once: many connections need {wanted:,} (ulimit -Hn)")


def serve(
    settings: Settings, written: Container[str], outputs: Outputs, at: Service, alerting: Alerting
) -> int:
    """Serve until a signal comes. Returns the exit code."""
    outputs = _checked(outputs, written)
    token, tls, keep = _token(at), _tls(at), _size(at.keep_journal)
    if format_of(settings, None) in COLUMNS:
        raise ConfigError("a service has no header of columns: send JSON or text", Exit.CONFIG)
    assert outputs.state is not None
    journal = os.path.join(outputs.state, "journal")
    try:
        from streamdp.serve.api import Service as Answering
        from streamdp.serve.bodies import FILES, SERVICE
    except ImportError:
        raise ConfigError(
            "serve needs two more packages: pip install starlette uvicorn", Exit.UNAVAILABLE
        ) from None
    _allow_files(FILES)
    doors: list[DoorWatch] = []
    measured = Measured(lambda: doors[0].hindrance() if doors else None)
    made: list[Any] = []

    def more(page: Any) -> Any:
        made.append(Answering(page, measured.server.answer, page.drop))
        return made[0].routes()

    serving = Serving(page=at.port, page_host=at.host, page_corrections=True)
    how: dict[str, Any] = {"limits": SERVICE, "tls": tls, "more": more, "token": token, "called": "service"}
    live = LivePage(serving, "records over HTTP", automatic(settings), **how)
    try:
        door = DoorWatch(at.answer_within, keep, live, made[0])
        measured.metrics.set("conflicts", lambda: {(): door.conflicts()})
        alarm = Alarm(alerting.all, measured.metrics, live.page.site)
        watch = Observers(measured, door, live, alarm)  # clients hear before pages do
        with contextlib.ExitStack() as ending:
            interrupt = ending.enter_context(Interrupt(limit=LIMIT, resumable=True))
            interrupt.opened = False
            ending.callback(door.ending)
            run = Served(settings, written, Input(file=journal), outputs, watch, interrupt)
            run.board = None
            door.attach(run, outputs)
            doors.append(door)
            prepare(run.settings)  # else requests would wait for kernels at the first looks back
            return run_to_end(run, interrupt, alarm)
    finally:
        measured.close()
        live.close()
