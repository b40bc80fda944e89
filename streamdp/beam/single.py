"""One vector after another through a beam, without a batch for each; and who competes for a record."""

from __future__ import annotations

import numpy as np

from streamdp.beam.data.choice import is_touched
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import GROW, Output
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch


class Single:
    """A beam that absorbs, or scores, the vector in ``row`` at the time in ``time``.

    ``events`` and ``revisions`` say how many of them the last one has caused.

    Parameters
    ----------
    search
        A beam over vectors.
    dimension
        D; ``row`` is of shape (D,).
    with_events
        Whether cluster events are wanted.
    """

    def __init__(self, search: BeamSearch, dimension: int, *, with_events: bool) -> None:
        self._search = search
        self._with_events = with_events
        self._batch = Batch.of_vectors(np.zeros((1, dimension)), np.zeros(1))
        self._fit()
        self.row = self._records.vectors[0]
        self.time = self._records.times

    def _fit(self) -> None:
        search = self._search
        self._records = search.prepare(self._batch)
        self._state, self._model, self.out = search.state, search.model, search.out
        self.label, counters = self.out.answers["label"], self.out.counters
        self._done, self.events, self.revisions = (counters[n].item for n in ("done", "events", "revisions"))
        self._advance, self._answer = search.calls(self._records)

    def _begin(self, with_events: bool) -> None:
        """Fit to what others have made of the beam meanwhile; empty the buffers."""
        search = self._search
        if search.state is not self._state or search.out is not self.out or search.model is not self._model:
            self._fit()
        search.clear(with_events)

    def learn(self) -> Output:
        """Absorb the vector; its answer is the first of the output."""
        self._begin(self._with_events)
        while True:
            self._advance()
            if self._done():
                return self.out
            if self.out.counters.status == GROW:
                self._search.make_room()
            self._fit()

    def score(self) -> Output:
        """What would be answered, without learning."""
        self._begin(False)
        self._answer()
        return self.out


def shares_of_head(search: BeamSearch) -> dict[int, float]:
    """Posterior of each cluster, by label, for the record scored last, and of a new one by its label to be.

    Under the best hypothesis alone, so that they sum to one.
    """
    state, scores, slots = search.state, search.scores, search.head_slots()
    slots = slots[state.pool.state[slots] == ALIVE]
    value, words = scores.value[slots], scores.words
    if search.sparse:
        untouched = words.ratio[state.sizes.of[slots]]
        touched = is_touched(words.cells["mark"][slots], words.counters.tick)
        value = np.where(touched, value, untouched)
    mass = state.pool.weight[slots] * state.beam.counters.scale * value
    founded = search.choice.new_weight[state.beam.counters.head] * scores.counters.new_value
    labels = search.labels_of(slots)
    total = float(mass.sum() + founded)
    shares = dict(zip(labels.tolist(), (mass / total).tolist(), strict=True))
    return {**shares, search.next_label: float(founded) / total}
