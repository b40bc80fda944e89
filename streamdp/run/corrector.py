"""How a run takes corrections by hand: from its state's folder, and from a topic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from streamdp_connectors.kafka.source import KafkaSource

from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.records import Answers
from streamdp.run.messages import warn
from streamdp.run.reading import Client
from streamdp.settings.io_options import Input
from streamdp.state.corrections import Correction, CorrectionError, CorrectionsFile

SECONDS = 0.1
"""Between two looks at the file."""

PATIENCE = 10.0
"""Seconds to wait for what is known to be there; for more nobody waits."""


class Heard:
    """The topic of corrections.

    What it holds when the run begins is there at once; a run that goes on for ever then follows it.
    """

    def __init__(self, topic: str, input: Input) -> None:
        self.label = f"topic {topic}"
        client = Client.of(input)
        self._how: dict[str, Any] = {
            "topic": topic,
            "bootstrap": client.bootstrap,
            "client_options": client.options,
            "on_gap": input.on_gap,
            "give_up_after": input.give_up_after,
        }
        self._follows, self._live = not input.until_end, False
        self._source = KafkaSource(**self._how, until_end=True)

    def begin(self, positions: Mapping[str, Any] | None) -> None:
        """Go on behind the last that was appended to the file."""
        if positions is not None:
            self._source.seek({**positions})

    def come(self) -> Iterator[tuple[bytes, dict[str, Any]]]:
        """What has come, and how far the topic has been read with it."""
        source, known = self._source, not self._live
        while not source.at_end and (found := source.read(1, PATIENCE if known else 0.0)):
            yield found[0].data, source.positions()
        if known and self._follows:
            positions, self._live = source.positions(), True
            source.close()
            self._source = KafkaSource(**self._how)
            self._source.seek(positions)


def heard_of(input: Input) -> Heard | None:
    """The topic of corrections of a run, if it has one."""
    return None if input.corrections_topic is None else Heard(input.corrections_topic, input)


class Corrector:
    """Gives an engine the corrections of its state's folder, each at the position that is noted.

    ``answer`` is called with what makes answers, which it writes; ``put`` with the rows of a table of all
    corrections. ``heard`` has those that come by a topic; they are appended to the file like
    others. Raises CorrectionError where the file cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        answer: Callable[[Callable[[], Answers]], None],
        put: Callable[[str, dict[str, Any]], None],
        heard: Heard | None = None,
    ) -> None:
        self._engine, self._answer, self._put = engine, answer, put
        self._waiting: dict[int, tuple[Correction, int]] = {}
        self._file = CorrectionsFile(folder, engine.corrections.taken)
        self._file.read()
        self._heard = heard
        if heard is not None:
            heard.begin(self._file.heard)
            self._hear(heard)
        self._coming = self._file.since(engine.corrections.taken)
        self._last = self._file.last
        self._looked = 0.0
        self.ended = False
        """Whether the input has ended, so that nothing is applied any more."""

    def look(self) -> None:
        """Apply what is new, between two batches; what was applied before a crash waits for its position."""
        held = self._engine.corrections
        while held.refused:
            number, why = held.refused.pop(0)
            self._refuse(*self._waiting.pop(number), why)
        if time.monotonic() - self._looked >= SECONDS:
            self._looked = time.monotonic()
            if self._heard is not None:
                self._hear(self._heard)
            self._read()
        while self._coming:
            at = self._file.marks.get(self._coming[0].number)
            if at is None and held.waiting:
                return
            if at is None:
                at = self._engine.seq
                self._file.mark(self._coming[0].number, at)
            self._take(self._coming.pop(0), at)

    def give(self, engine: Engine, correction: Correction) -> Correction:
        """Take a correction of somebody who waits for it. Raises CorrectionError, and then takes nothing.

        Those of others come first; it is noted like theirs.
        """
        if self.ended:
            raise CorrectionError("the input has ended: streamdp correct takes it", Exit.USAGE)
        self._read()
        self.look()
        engine.correct(correction, check=True)
        made = self._file.append(correction)
        self._read()
        self.look()
        return made

    def _hear(self, heard: Heard) -> None:
        """Append what has come by the topic; what is no correction is passed over."""
        for value, positions in heard.come():
            try:
                correction = msgspec.json.decode(value, type=Correction)
            except (msgspec.MsgspecError, ValueError) as error:
                warn(f"{heard.label}: no correction: {' '.join(str(error).split())}")
                continue
            self._file.append(correction, positions)

    def _read(self) -> None:
        """Read what others have appended."""
        try:
            self._file.look()
            self._coming += self._file.since(self._last)  # to note a position reads what is new, too
            self._last = self._file.last
        except CorrectionError as error:
            warn(f"{error.message}; no correction is taken until that is repaired")

    def _take(self, correction: Correction, at: int) -> None:
        self._waiting[correction.number] = correction, at

        def made() -> Answers:
            answers = self._engine.correct(correction, at)
            self._note(correction, at, None)  # with the answers, in one transaction
            return answers

        try:
            self._answer(made)
        except CorrectionError as error:
            self._refuse(correction, at, error.message)

    def _note(self, made: Correction, at: int, refused: str | None) -> None:
        row = {name: getattr(made, name) for name in ("number", "what", "title", "undone", "who")}
        named = {"stories": made.stories, "records": [*made.ids, *made.seqs]}
        row |= {name: msgspec.json.encode(part).decode() for name, part in named.items()}
        self._put("corrections", {**row, "made": made.when, "seq": at, "refused": refused})

    def _refuse(self, correction: Correction, at: int, why: str) -> None:
        warn(f"correction {correction.number}: {why}")
        self._note(correction, at, why)
