"""How a run takes corrections by hand, from its state's folder."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from streamdp.engine import Engine
from streamdp.errors import Exit
from streamdp.records import Answers
from streamdp.run.messages import warn
from streamdp.state.corrections import Correction, CorrectionError, CorrectionsFile

SECONDS = 0.1
"""Between two looks at the file."""


class Corrector:
    """Gives an engine the corrections of its state's folder, each at the position that is noted.

    ``answer`` is called with what makes answers, which it writes; ``put`` with the rows of a table of all
    corrections. Raises CorrectionError where the file cannot be used.
    """

    def __init__(
        self,
        folder: Path,
        engine: Engine,
        answer: Callable[[Callable[[], Answers]], None],
        put: Callable[[str, dict[str, Any]], None],
    ) -> None:
        self._engine, self._answer, self._put = engine, answer, put
        self._waiting: dict[int, tuple[Correction, int]] = {}
        self._file = CorrectionsFile(folder, engine.corrections.taken)
        self._file.read()
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
