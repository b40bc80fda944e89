"""The table of the latest records, and the chances that are calibrated on it without labels.

The mass of a new cluster ranks well the records that begin something new, but sums to several times as many
as there are. So it is multiplied by the number of clusters that lasted, over the sum of the masses of the
same records: :func:`lasting`. Answers are put into cells, by their probability and by whether they are new;
of each cell it is counted how many there were, and how many of them were revised: :func:`stability`. All
counts begin with a few that stand for what is usual; those of cells fade, since streams change. Each record
is judged once, when so many more have come; what is revised later counts as not revised.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.kernels.jit import kernel, shared
from streamdp.kernels.rows import Counters, ints, of, one, reals, row_type, rows
from streamdp.records import SMALL

LASTS_AFTER = 500
"""A record has founded a cluster that lasts if, when so many more have come, its newest answer is new and
more than ``SMALL`` records of these have its label."""

STAYS_AFTER = 1500
"""It is seen whether an answer was revised when so many more have come: most revisions are over by then."""

LASTED, EXPECTED = 3.6, 10.0
"""What the counts of clusters that lasted, and of masses, begin with."""

FADE = 1.0 - 1.0 / 2000.0
"""What is left of the counts of cells with the next record that is judged."""

LEAST = np.array([0.5, 0.7, 0.85, 0.95, 0.99, 0.999])
"""Probabilities at which the next cell begins."""

SURE = 5
"""The first cell, of those of one kind, of answers that need no second look: hardly any are revised."""

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

KINDS, CELLS = USUAL.shape[1], USUAL.size

NUMBERS = (
    *("probability", "new_probability", "log_predictive", "novelty"),
    *("lasting_probability", "stability", "confidence", "confidence_labels"),
)
"""What is announced of a record, with six decimals."""

ROW = row_type(
    "seq label was founded link revision template start named placed middle kept stop size cell revised",
    " ".join(("time", *NUMBERS)),
)
"""A record and its newest answer.

``was`` is the label that was announced before this one, -1 where none was; ``cell`` is that of its first
answer, ``revised`` whether the answer has changed since, ``revision`` how often it was announced anew. What
an answer has from its record stands in ``letters`` from start on: its id to named, position to placed, time
to middle, kept fields to kept, the values of a template's holes to stop; ``template`` is which of
:class:`Templates` it has, -1 for none. It counts for ``size`` bytes. The probability of a cluster that lasts,
stability and confidence may be NaN: not told.
"""

TALLY = row_type("", "count revised")

_UNIT = 1e6


@shared
def to_digits(number: Any) -> Any:
    """A number as it is announced, with six decimals; of an array, too."""
    return np.rint(number * _UNIT) / _UNIT


class Table(NamedTuple):
    """The latest records, each at its number modulo their count, and what was counted of those judged.

    Answers from record ``begin`` up to ``seq``, the next one, are open: they may still change, and have what
    lines take from their records in ``letters``, of which so many are ``written``. They count for ``bytes``;
    ``early`` answers up to ``closed`` are final because that was too much. ``final`` is the last answer that
    is reported as final. ``lasted`` clusters, ``expected`` of them, and
    revisions ``promised`` by the stability of first answers: sums so far.
    """

    counters: Annotated[
        Counters,
        one("seq lasted begin written final bytes early closed", "expected promised", final=-1, closed=-1),
    ]
    records: Annotated[np.ndarray, rows(ROW, "records")]
    """As many as a power of two."""
    letters: Annotated[np.ndarray, of(np.uint8, "letters")]
    cells: Annotated[np.ndarray, rows(TALLY, CELLS)]
    usual: Annotated[np.ndarray, reals(CELLS)]
    """The share of each cell that is usually revised."""
    early: Annotated[np.ndarray, ints(1)]
    """How many of the first records have cells of their own."""
    latest: Annotated[np.ndarray, ints(1)]
    """How many records are remembered, if more of them are not open."""


@kernel
def row_of(table: Table, seq: int) -> Any:
    """The row of a record."""
    return table.records[seq & (table.records.shape[0] - 1)]


@kernel
def _judge(table: Table, seq: int) -> None:
    """Count the records that come of age with number ``seq``."""
    counters, cells = table.counters, table.cells
    if seq >= LASTS_AFTER:
        row = row_of(table, seq - LASTS_AFTER)
        counters.expected += row.new_probability
        members = 0
        if row.founded:
            for n in range(seq - LASTS_AFTER, seq):
                members += 1 if row_of(table, n).label == row.label else 0
        counters.lasted += 1 if members > SMALL else 0
    if seq >= STAYS_AFTER:
        row = row_of(table, seq - STAYS_AFTER)
        for cell in range(CELLS):
            cells[cell].count *= FADE
            cells[cell].revised *= FADE
        cells[row.cell].count += 1.0
        cells[row.cell].revised += row.revised


@kernel
def put(table: Table, seq: int, answer: Any, size: int) -> None:
    """Write record ``seq``, the next one, down, of ``size`` parts; its numbers as they are announced."""
    _judge(table, seq)
    row = row_of(table, seq)
    row.seq, row.label, row.founded, row.link = seq, answer.label, answer.founded, answer.link
    row.revision, row.revised, row.template, row.was = 0, 0, -1, -1
    row.probability, row.new_probability = to_digits(answer.probability), to_digits(answer.new_probability)
    row.log_predictive, row.novelty = to_digits(answer.log_predictive), novelty(answer.log_predictive, size)
    row.cell = KINDS if answer.founded or seq < table.early[0] else 0
    for least in LEAST:
        row.cell += 1 if row.probability >= least else 0
    table.counters.seq = seq + 1
    row.lasting_probability, row.stability = lasting(table, row.new_probability), stability(table, row.cell)
    table.counters.promised += 1.0 - row.stability


@kernel
def move(table: Table, revision: Any) -> int:
    """Give a record another label; which it had, -1 where that is not known any more."""
    counters = table.counters
    if revision.seq < 0 or revision.seq < min(counters.seq - table.latest[0], counters.begin):
        return -1
    row = row_of(table, revision.seq)
    before: int = row.label
    row.label, row.founded, row.revised = revision.label, revision.founded, 1
    return before


@shared
def novelty(log_predictive: Any, size: Any) -> Any:
    """How little a record was expected, by each of its parts; never -0. Of arrays, too."""
    return to_digits(0.0 - log_predictive / np.maximum(size, 1))


@shared
def lasting(table: Table, new_probability: Any) -> Any:
    """The chance that a record founds a cluster that lasts; of an array of masses, too."""
    factor = (table.counters.lasted + LASTED) / (table.counters.expected + EXPECTED)
    return to_digits(np.minimum(factor * new_probability, 1.0))


@kernel
def stability(table: Table, cell: int) -> float:
    """The chance that an answer of a cell will not be revised."""
    tally = table.cells[cell]
    chance: float = to_digits(1.0 - (tally.revised + WEIGHT * table.usual[cell]) / (tally.count + WEIGHT))
    return chance
