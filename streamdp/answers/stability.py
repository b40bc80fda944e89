"""The chance that an answer will not be revised: calibrated on the stream itself, without labels.

Records are put into cells, by their probability and by whether they are new. Of each cell it is counted how
many answers there were, and how many of them were revised. Old counts fade, since streams change.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.answers.written import to_digits
from streamdp.kernels.jit import Bound, entry, kernel
from streamdp.kernels.rows import Counters, ints, made, one, reals, row_type, rows
from streamdp.kernels.sound import RECORDS, counters_of, ints_of, narrow, plain_counters, reals_of, require
from streamdp.state.retained import pack, unpack_all

AFTER = 1500
"""A record is judged when so many more have come: most revisions are over by then."""

FADE = 1.0 - 1.0 / 2000.0
"""What is left of each count with the next record that is judged."""

LEAST = np.array([0.5, 0.7, 0.85, 0.95, 0.99, 0.999])
"""Probabilities at which the next cell begins."""

USUAL = np.array([[0.30, 0.22, 0.14, 0.11, 0.07, 0.05, 0.004], [0.49, 0.27, 0.18, 0.15, 0.14, 0.06, 0.04]])
"""The share of a cell that is usually revised: of records in older clusters, and of those that found one."""

OF_VECTORS = np.array(
    [[0.65, 0.26, 0.08, 0.05, 0.03, 0.006, 0.003], [0.89, 0.59, 0.49, 0.38, 0.25, 0.10, 0.02]]
)
"""The same of vectors that are looked at again; the first records are among those that found a cluster."""

EARLY = 1024
"""The first of them: looks make most of their changes there, and of whole clusters."""

WEIGHT = 10.0
"""How many records stand for what is usual, in each cell."""

CELLS = USUAL.size
JUDGED = row_type("cell revised")
TALLY = row_type("", "count revised")


class Recent(NamedTuple):
    """The last records, each at its number modulo their count, and what was counted of those before.

    ``seq`` is the number of the next record; ``usual`` the share of each cell that is usually revised, and
    ``early`` how many of the first records have cells of their own.
    """

    counters: Annotated[Counters, one("seq")]
    answers: Annotated[np.ndarray, rows(JUDGED, AFTER)]
    cells: Annotated[np.ndarray, rows(TALLY, CELLS)]
    usual: Annotated[np.ndarray, reals(CELLS)]
    early: Annotated[np.ndarray, ints(1)]


@kernel
def _cell(probability: float, apart: int) -> int:
    at: int = apart * USUAL.shape[1]
    for least in LEAST:
        at += 1 if probability >= least else 0
    return at


@kernel
def _judge(recent: Recent, answer: Any) -> None:
    """Count the oldest record: whether its answer was revised."""
    for cell in range(CELLS):
        recent.cells[cell].count *= FADE
        recent.cells[cell].revised *= FADE
    recent.cells[answer.cell].count += 1.0
    recent.cells[answer.cell].revised += answer.revised


@kernel
def _stability(recent: Recent, cell: int) -> float:
    tally = recent.cells[cell]
    return to_digits(1.0 - (tally.revised + WEIGHT * recent.usual[cell]) / (tally.count + WEIGHT))


@kernel
def tell_stability(recent: Recent, seq: int, founded: int, probability: float) -> float:
    """Judge the oldest record and take in number ``seq``; its ``stability``."""
    answer = recent.answers[seq % AFTER]
    if seq >= AFTER:
        _judge(recent, answer)
    apart = 1 if founded or seq < recent.early[0] else 0
    answer.cell, answer.revised = _cell(probability, apart), 0
    recent.counters.seq = seq + 1
    return _stability(recent, answer.cell)


@kernel
def revise_stability(recent: Recent, seq: int) -> None:
    """The answer to a record was revised."""
    if seq >= recent.counters.seq - AFTER:
        recent.answers[seq % AFTER].revised = 1


@entry
def _revise_all(recent: Recent, seqs: np.ndarray) -> None:
    for seq in seqs:
        revise_stability(recent, seq)


class Stability:
    """How many answers of each cell were revised within the ``AFTER`` records that came next.

    Each record is judged once; what is revised later counts as not revised.
    """

    def __init__(self) -> None:
        self.recent = made(Recent, {}, usual=USUAL.reshape(-1).copy())
        self._revise = Bound(_revise_all)

    def begin_vectors(self) -> None:
        """Records are vectors that are looked at again."""
        self.recent.usual[:], self.recent.early[:] = OF_VECTORS.reshape(-1), EARLY

    def revise(self, seqs: np.ndarray) -> None:
        """The answers to some records, by their numbers, were revised."""
        self._revise((self.recent,), np.ascontiguousarray(seqs))

    def dump(self) -> dict[str, Any]:
        """What is remembered, as plain values."""
        counters, answers, cells = self.recent[:3]
        found = {name: narrow(answers[name]) for name in ("cell", "revised")}
        tallies = {name: pack(cells[name]) for name in ("count", "revised")}
        return {name: pack(array) for name, array in found.items()} | {
            "tallies": tallies,
            "counters": plain_counters(counters),
        }

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError where what was stored does not go together."""
        facts = unpack_all(stored)
        counters = counters_of(Recent, facts["counters"])
        require(0 <= counters.seq <= RECORDS, "the number of the next record is out of range")
        self.recent = made(Recent, {}, counters=counters, usual=self.recent.usual, early=self.recent.early)
        answers, cells = self.recent.answers, self.recent.cells
        answers["cell"] = ints_of(facts, "cell", 0, CELLS, AFTER)
        answers["revised"] = ints_of(facts, "revised", 0, 2, AFTER)
        for name in ("count", "revised"):
            cells[name] = reals_of(facts["tallies"], name, (CELLS,))
        sound = (cells["revised"] >= 0).all() and (cells["revised"] <= cells["count"] + 1e-9).all()
        require(sound, "more answers were revised than counted")
