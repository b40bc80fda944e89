"""What pictures are drawn from: the newest answer to every record, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from streamdp.decode.answered import Answer, answers_in, by_record
from streamdp.decode.objects import written_lines
from streamdp.engine import Engine
from streamdp.errors import Exit, StreamdpError
from streamdp.records import Assignment, Event, Final

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


class DrawError(StreamdpError):
    """What cannot be drawn: not there (66), or of no use (65)."""


@dataclass(frozen=True, eq=False)
class Answered:
    """The newest answer to every record, in processing order; each array has shape (n,).

    Parameters
    ----------
    seq
        Number of the record.
    time
        Event time in seconds, nan where there is none.
    cluster
        Newest label; -1 for none.
    probability
        Of that label, when it was given; nan where it is not known, as in all that follows.
    first_probability
        Of the label that was announced first.
    new_probability, novelty
        Of the record, when it came.
    new
        Whether it founds its cluster, by its newest answer.
    revision
        How often its answer was changed.
    """

    seq: Ints
    time: Floats
    cluster: Ints
    probability: Floats
    first_probability: Floats
    new_probability: Floats
    novelty: Floats
    new: np.ndarray[Any, np.dtype[np.bool_]]
    revision: Ints

    @classmethod
    def of(cls, lines: Iterable[Assignment | Final | Answer]) -> Answered:
        """Answers in any order; of those with one seq the highest revision is the newest."""
        found = by_record(line for line in lines if not isinstance(line, Final))
        order = sorted(found)
        firsts, rows = zip(*(found[seq] for seq in order), strict=True) if order else ((), ())
        return cls(
            np.array(order, np.int64),
            _floats(row.time for row in rows),
            np.array([row.cluster for row in rows], np.int64),
            _floats(row.probability for row in rows),
            _floats(None if first.revision else first.probability for first in firsts),
            _floats(row.new_probability for row in rows),
            _floats(row.novelty for row in rows),
            np.array([row.new for row in rows], bool),
            np.array([row.revision for row in rows], np.int64),
        )

    @classmethod
    def of_labels(cls, labels: ArrayLike, times: ArrayLike | None = None, first: int = 0) -> Answered:
        """Labels alone, of records from number ``first`` on, with their times where they have some."""
        cluster = np.asarray(labels, np.int64)
        n = len(cluster)
        nothing = np.full(n, np.nan)
        return cls(
            np.arange(first, first + n),
            nothing if times is None else np.asarray(times, float),
            cluster,
            nothing,
            nothing,
            nothing,
            nothing,
            np.zeros(n, bool),
            np.zeros(n, np.int64),
        )

    @classmethod
    def of_engine(cls, engine: Engine) -> Answered:
        """What a state remembers: labels of retained records, answers of those that are not final."""
        complete = cls.of(engine.open_answers())
        held = engine.retained()
        if held is None or (len(complete.seq) and complete.seq[0] <= held.first):
            return complete
        times = held.batch.times if engine.dated else None
        found = cls.of_labels(held.labels, times, held.first)
        if not len(complete.seq):
            return found
        before = found.seq < complete.seq[0]
        columns = {
            name: np.concatenate([getattr(found, name)[before], getattr(complete, name)])
            for name in cls.__dataclass_fields__
        }
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.seq)


def _floats(values: Iterable[float | None]) -> Floats:
    return np.array([np.nan if value is None else value for value in values], float)


def read_answers(path: str | Path) -> Answered:
    """Assignments that ``consume`` or ``fit`` wrote. Raises DrawError."""
    return Answered.of(answer for _, answer in answers_in(path, DrawError))


def read_events(path: str | Path) -> list[Event]:
    """Events that ``consume --events`` wrote. Raises DrawError."""
    found = []
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for number, line in written_lines(path, decode, DrawError, torn_end=True):
        try:
            found.append(msgspec.convert(line, Event))
        except msgspec.ValidationError as error:
            why = f"{path}, line {number}: not a cluster event of streamdp"
            raise DrawError(why, Exit.BAD_DATA) from error
    return found
