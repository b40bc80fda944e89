"""``streamdp correct``: corrections by hand, typed or from a topic, and how a run takes them meanwhile."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import msgspec
from streamdp_connectors.kafka.source import KafkaSource

from streamdp.cli.errors import say, warn
from streamdp.cli.reading import Client
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit
from streamdp.records import Answers
from streamdp.reports.source import append_correction, open_state
from streamdp.settings.io_options import Input
from streamdp.settings.schema import Classes
from streamdp.state.corrections import (
    LONGEST,
    Correction,
    CorrectionError,
    CorrectionRequest,
    CorrectionsFile,
    What,
)

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


USAGE = """rename STORY TITLE, merge STORY STORY, split STORY ID... [--seq NUMBER]..., move ID... STORY [--seq
NUMBER]..., keep-apart STORY STORY..., pin STORY, mute STORY, split STORY hole N VALUE, close STORY hole N,
undo NUMBER, list"""


def correction_of(what: str, given: Sequence[str], who: str, seqs: Sequence[int] = ()) -> Correction:
    """The correction that somebody has typed, with records of these numbers, too. Raises CorrectionError."""
    parts: dict[str, Any] = {"who": who, "seqs": tuple(seqs)}
    stories, rest = list(given), list[str]()
    if what == "rename":
        stories, rest = stories[:1], stories[1:]
        parts["title"] = " ".join(rest)
    elif what == "close" or (what == "split" and len(given) == 4 and given[1] == "hole"):
        stories, rest = stories[:1], stories[1:]
        if rest[:1] != ["hole"] or len(rest) != (2 if what == "close" else 3):
            raise CorrectionError("close names a story and a hole: close 7 hole 2", Exit.USAGE)
        (parts["hole"],) = _numbers(rest[1:2])
        parts["value"] = rest[2] if what == "split" else None
    elif what == "split":
        stories, rest = stories[:1], stories[1:]
    elif what == "move":
        stories, rest = stories[-1:], stories[:-1]
    elif what == "undo":
        (parts["undone"], *more), stories = _numbers(given or [""]), []
        if more:
            raise CorrectionError("undo names the number of one correction", Exit.USAGE)
    elif what not in get_args(What):
        raise CorrectionError(f"{what!r} is no correction: {' '.join(USAGE.split())}", Exit.USAGE)
    if what in ("split", "move") and "hole" not in parts:
        parts["ids"] = tuple(rest)
    try:
        return CorrectionRequest(what=what, stories=tuple(_numbers(stories)), **parts).correction()  # type: ignore[arg-type]
    except ValueError as error:
        raise CorrectionError(str(error), Exit.USAGE) from None


def _numbers(given: Sequence[str]) -> list[int]:
    for text in given:
        if not text.isdecimal() or len(text) > 15:
            raise CorrectionError(f"{text!r} is no number of a story, or of a correction", Exit.USAGE)
    return [int(text) for text in given]


def correct(
    state: str, what: str, given: Sequence[str], seqs: Sequence[int], who: str | None, classes: Classes
) -> None:
    """Append a correction to those of a state, or list them. Raises StreamdpError where it makes no sense."""
    if not Path(state).is_dir():
        raise ConfigError(f"{state}: corrections are kept in the folder of a state", Exit.NO_INPUT)
    file = CorrectionsFile(state)
    file.read()
    if what == "list":
        for each in file.noted(0, len(file.corrections)).corrections:
            applied = "not applied yet" if each.at is None else f"at record {each.at:,}"
            print(f"{each.number}  {each}  ({each.who}, {each.when}, {applied})")
        return
    wanted = correction_of(what, given, (getpass.getuser() if who is None else who)[:LONGEST], seqs)
    made = append_correction(state, open_state(state, classes)[1], wanted)
    say(f"correction {made.number}: {made}; the running process takes it with its next records")


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


SECONDS = 0.1
"""Between two looks at the file."""
