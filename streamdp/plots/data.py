"""What pictures are drawn from: the newest answer to every record, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from streamdp.decode.answered import Answer, answers_in, by_record
from streamdp.engine import Engine
from streamdp.errors import StreamdpError
from streamdp.records import Assignment, Final

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
    """

    seq: Ints
    time: Floats
    cluster: Ints

    @classmethod
    def of(cls, lines: Iterable[Assignment | Final | Answer]) -> Answered:
        """Answers in any order; of those with one seq the highest revision is the newest."""
        found = by_record(line for line in lines if not isinstance(line, Final))
        rows = [found[seq][1] for seq in sorted(found)]
        times = [np.nan if row.time is None else row.time for row in rows]
        return cls(
            np.array(sorted(found), np.int64),
            np.array(times, float),
            np.array([row.cluster for row in rows], np.int64),
        )

    @classmethod
    def of_labels(cls, labels: ArrayLike, times: ArrayLike | None = None, first: int = 0) -> Answered:
        """Labels alone, of records from number ``first`` on, with their times where they have some."""
        cluster = np.asarray(labels, np.int64)
        known = np.full(len(cluster), np.nan) if times is None else np.asarray(times, float)
        return cls(np.arange(first, first + len(cluster)), known, cluster)

    @classmethod
    def of_engine(cls, engine: Engine, known: Iterable[Assignment] | None = None) -> Answered:
        """What a state remembers: labels of retained records, and before them the answers that are ``known``.

        None: those that are not final.
        """
        labels, times = engine.lately()
        first = engine.seq - len(labels)
        known = engine.open_answers() if known is None else known
        older = cls.of(answer for answer in known if answer.seq < first)
        held = cls.of_labels(labels, times, first)
        columns = ((getattr(older, name), getattr(held, name)) for name in cls.__dataclass_fields__)
        return cls(*map(np.concatenate, columns))

    def __len__(self) -> int:
        return len(self.seq)


def read_answers(path: str | Path) -> Answered:
    """Assignments that ``consume`` or ``fit`` wrote. Raises DrawError."""
    return Answered.of(answer for _, answer in answers_in(path, DrawError))
