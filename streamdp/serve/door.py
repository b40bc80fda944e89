"""The run behind a service: its source is the journal, and a door takes records once that was read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from streamdp_connectors.journal.source import JournalSource
from streamdp_connectors.journal.writer import Journal
from streamdp_connectors.protocol import FullError, Source

from streamdp.encode.encoders import decoder_of
from streamdp.engine import Engine
from streamdp.records import Answers
from streamdp.run.messages import say, warn
from streamdp.run.observers import LivePage, Running, RunObserver
from streamdp.run.reading import Reader, format_of
from streamdp.run.stream import Run
from streamdp.serve.ingest import IngestQueue, reader_of
from streamdp.serve.schemas import answers_of
from streamdp.serve.stored import ServiceContext, Stored
from streamdp.settings.io_options import Input
from streamdp.state.snapshot import Header, headers

LOOK = 0.5
"""Seconds between two tries to write to a full disk."""


class ServiceRun(Run):
    """A run whose source is a journal that it writes itself."""

    hindered: Callable[[str | None], None] = staticmethod(lambda why: None)
    """Hears why nothing can be stored, and None once it can."""

    def own_source(self, input: Input) -> Source:
        """The journal, which is read from its beginning."""
        assert input.file is not None
        self.journal = Journal(input.file)
        return JournalSource(input.file, self.journal)

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


class DoorWatch(RunObserver):
    """Opens the door once the journal has been read again, and hands answers back."""

    def __init__(self, within: float, keep: int, live: LivePage, service: Any) -> None:
        super().__init__()
        self._within, self._keep, self._live, self._service = within, keep, live, service
        self._run: ServiceRun | None = None
        self._door: Any = None
        self._caught_up = self._full = False

    def opened(self, run: Running) -> None:
        """Records may come as soon as what the journal holds is answered."""
        assert isinstance(run, ServiceRun)
        outputs = run.outputs
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
