"""Looks back of a beam's stream: who proposes moves, how they are weighed, and what of looks is state."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from streamdp.answers.announcer import Announcer
from streamdp.beam.data.state import REVIEW_EVERY, Output
from streamdp.beam.looks.moves import Moves, apply
from streamdp.beam.looks.parting import part
from streamdp.beam.looks.review import MOST_RECORDS, Due, coming_of_age, decide, review
from streamdp.beam.looks.scales import are_shown, due_at, follow
from streamdp.beam.search import BeamSearch
from streamdp.kernels.packed import pack
from streamdp.likelihoods import VectorFamily
from streamdp.likelihoods.base import Moments
from streamdp.settings.blueprint import Blueprint
from streamdp.settings.schema import Settings
from streamdp.streams.corrections import Corrections

if TYPE_CHECKING:
    from streamdp.offline.passes import Passes
    from streamdp.offline.task import Stream as Refinable

    Proposer = Callable[[Refinable], Iterable[Moves]]

NO_RECORDS = np.zeros(0, np.int64)

PROPOSERS: list[Proposer] = []
"""Those of one's own. Each is asked at every review, after the looks at words and vectors."""


class Looks:
    """Second looks at words, what clusters of vectors show of the prior, refinements, and other proposers.

    Parameters
    ----------
    settings
        Those of the stream.
    announcer
        Its open answers, and the latest records.
    corrections
        Say what stays where it is.
    """

    def __init__(self, settings: Settings, announcer: Announcer, corrections: Corrections) -> None:
        self._settings, self._announcer, self.corrections = settings, announcer, corrections
        self.most_records = MOST_RECORDS
        self._age = 0
        self.began: VectorFamily | None = None
        """The family of vectors as the first records suggested it; None where its parameters stay."""
        self.passes: Passes | None = None
        if settings.refine_every:  # imported where it is asked for: it is a seventh of the package
            from streamdp.offline.passes import Passes

            self.passes = Passes(settings)

    def start(self, search: BeamSearch, blueprint: Blueprint, moments: Moments | None) -> None:
        """Say how long the answers of a search stay open."""
        self._age, self.began = blueprint.second_look(search.likelihood), blueprint.follows(moments)
        if self.began is not None:
            self._announcer.ledger.begin_vectors()
        looks = self._age or self.passes or self.began or PROPOSERS
        self._announcer.ledger.keep_open(self._settings.retain if looks else 0)

    def back(
        self, search: BeamSearch, refinable: Callable[[], Refinable | None], *, with_events: bool, last: bool
    ) -> Iterator[Output]:
        """Look again at what has come of age; begin and adopt refinements. Yields revisions and events."""
        if self.corrections.held:
            self.corrections.follow(search.seq, self._announcer.retained.newest()[0])
        if self._age and search.seq >= self._age + REVIEW_EVERY:
            yield from self._review(search, with_events=with_events, last=last)
        if last or due_at(search.seq):
            yield from self.follow(search, with_events=with_events, last=last)
        if self.passes is not None:  # under what the looks expect by now, of the clusters that they leave
            for held, moves in self.passes.turn(refinable, search.seq, last=last):
                yield from apply(search, held, moves, with_events=with_events)
        if PROPOSERS and (stream := refinable()) is not None:
            from streamdp.offline.weigh import weighed

            for moves in (moves for propose in PROPOSERS for moves in propose(stream)):
                if (better := weighed(stream, moves)) is not None:
                    yield from apply(search, stream.held, better, with_events=with_events)

    def _review(self, search: BeamSearch, *, with_events: bool, last: bool) -> Iterator[Output]:
        """Second looks at records and clusters of words, then partings."""
        held = self._announcer.retained.collect()
        if held is None:
            return
        of_age = coming_of_age(search.seq, self._age, last=last)
        unsure = [self._announcer.unsure(max(start, held.first), stop) for start, stop in of_age]
        seqs = np.concatenate(unsure[::-1])
        if (np.diff(seqs) <= 0).any():  # stretches that overlap, where they are many records
            seqs = np.unique(seqs)
        due = self._due(search, seqs, last=last)
        yield from decide(search, with_events=with_events)  # what is contested is not looked at
        yield from review(search, *held, due, with_events=with_events)
        now = held._replace(labels=self._announcer.retained.newest()[0])
        for moves in part(search, now, held.labels, due):
            yield from apply(search, now, moves, with_events=with_events)

    def follow(self, search: BeamSearch, *, with_events: bool, last: bool = False) -> Iterator[Output]:
        """Let what is expected of clusters of vectors follow those that were found."""
        if self.began is not None and (held := self._announcer.retained.collect()) is not None:
            if not last and not are_shown(held.labels, self.began):
                return
            due = self._due(search, NO_RECORDS, last=last)
            yield from decide(search, with_events=with_events)
            for moves in follow(search, held, due, self.began):
                yield from apply(search, held, moves, with_events=with_events)

    def _due(self, search: BeamSearch, seqs: np.ndarray, *, last: bool) -> Due:
        since, held = self._announcer.open_from(search.seq), self.corrections
        return Due(seqs, self._age, since, self.most_records, last, held.fixed(), held.whole())

    def learned(self, search: BeamSearch | None) -> dict[str, Any] | None:
        """The parameters of a search's likelihood that follow its clusters, packed; None where none do."""
        if self.began is None or search is None:
            return None
        return {name: pack(np.array(getattr(search.likelihood, name))) for name in self.began.learned}
