"""The chance that a record founds a cluster that lasts: calibrated on the stream itself, without labels.

The mass of a new cluster ranks well the records that begin something new, but sums to several times as many
as there are. So it is multiplied by the number of clusters that lasted, over the sum of the masses of the
same records. Both begin with a few that stand for what is usual.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from streamdp.answers.written import to_digits
from streamdp.kernels.jit import Bound, entry, kernel
from streamdp.kernels.rows import Counters, made, one, row_type, rows
from streamdp.kernels.sound import RECORDS, counters_of, ints_of, narrow, plain_counters, require
from streamdp.records import SMALL
from streamdp.state.retained import pack, unpack_all

AFTER = 500
"""A record is judged when so many more have come."""

LASTED, EXPECTED = 3.6, 10.0
"""What the counts of clusters that lasted, and of masses, begin with."""

NEWEST = row_type("label founded", "new_probability")


class Recent(NamedTuple):
    """The newest answers to the last records, each at its number modulo their count, and what was judged.

    ``seq`` is the number of the next record; ``lasted`` clusters, ``expected`` of them: sums so far.
    """

    counters: Annotated[Counters, one("seq lasted", "expected")]
    answers: Annotated[np.ndarray, rows(NEWEST, AFTER)]


@kernel
def _judge(recent: Recent, answer: Any) -> None:
    """Count the oldest record: whether its cluster has lasted, and its mass of a new one."""
    recent.counters.expected += answer.new_probability
    if answer.founded == 0:
        return
    members = 0
    for i in range(AFTER):
        members += 1 if recent.answers[i].label == answer.label else 0
    recent.counters.lasted += 1 if members > SMALL else 0


@kernel
def _calibrated(recent: Recent, new_probability: float) -> float:
    factor = (recent.counters.lasted + LASTED) / (recent.counters.expected + EXPECTED)
    return to_digits(min(factor * new_probability, 1.0))


@kernel
def tell_lasting(recent: Recent, seq: int, label: int, founded: int, new_probability: float) -> float:
    """Judge the oldest record and take in number ``seq``; its ``lasting_probability``."""
    answer = recent.answers[seq % AFTER]
    _judge(recent, answer)
    answer.label, answer.founded = label, founded
    answer.new_probability = new_probability
    recent.counters.seq = seq + 1
    return _calibrated(recent, new_probability)


@kernel
def revise_lasting(recent: Recent, revision: Any) -> None:
    """A record has another label."""
    if revision.seq >= recent.counters.seq - AFTER:
        answer = recent.answers[revision.seq % AFTER]
        answer.label, answer.founded = revision.label, revision.founded


@entry
def _revise_all(recent: Recent, revisions: np.ndarray) -> None:
    for r in range(revisions.shape[0]):
        revise_lasting(recent, revisions[r])


@entry
def _score(recent: Recent, shares: np.ndarray, out: np.ndarray) -> None:
    for i in range(shares.shape[0]):
        out[i] = _calibrated(recent, shares[i])


class Lasting:
    """How many clusters have lasted, of those that were to be expected by ``new_probability``.

    A record has founded a cluster that lasts if, when ``AFTER`` more have come, its newest answer is ``new``
    and more than ``SMALL`` records have its label. Each record is judged once.
    """

    def __init__(self) -> None:
        self.recent = made(Recent, {})
        self._score, self._revise = Bound(_score), Bound(_revise_all)

    def score(self, shares: np.ndarray, out: np.ndarray) -> None:
        """Write ``lasting_probability`` of records that teach nothing, by their ``new_probability``."""
        self._score((self.recent,), shares, out)

    def revise(self, revisions: np.ndarray) -> None:
        """Some records have other labels."""
        self._revise((self.recent,), revisions)

    def unite(self, before: int, after: int) -> None:
        """A label has become an older one."""
        answers = self.recent.answers
        those = answers["label"] == before
        answers["label"][those], answers["founded"][those] = after, 0

    def dump(self) -> dict[str, Any]:
        """What is remembered, as plain values."""
        counters, answers = self.recent
        found = {name: narrow(answers[name]) for name in ("label", "founded")}
        found["millionths"] = narrow(np.rint(answers["new_probability"] * 1e6).astype(np.int64))
        return {name: pack(array) for name, array in found.items()} | {"counters": plain_counters(counters)}

    def load(self, stored: dict[str, Any]) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError where what was stored does not go together."""
        facts = unpack_all(stored)
        counters = counters_of(Recent, facts["counters"])
        require(min(counters.tolist()) >= 0, "a count of clusters that lasted is negative")
        self.recent = made(Recent, {}, counters=counters)
        answers = self.recent.answers
        answers["label"] = ints_of(facts, "label", -1, RECORDS, AFTER)
        answers["founded"] = ints_of(facts, "founded", 0, 2, AFTER)
        answers["new_probability"] = ints_of(facts, "millionths", 0, 10**6 + 1, AFTER) / 1e6
