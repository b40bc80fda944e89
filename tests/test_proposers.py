"""A proposer of one's own: what it takes, and what becomes of what it proposes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from feeds import feed, texts
from test_passes import check

from streamdp.beam.looks.moves import Moves, head_by_label
from streamdp.beam.looks.review import MOST_RECORDS
from streamdp.engine import Engine
from streamdp.offline.task import Stream, task_over
from streamdp.settings import Settings
from streamdp.streams import looks


def top_words(stream: Stream) -> dict[int, int]:
    """The word that a retained cluster has most often, by label."""
    found = {}
    for label in head_by_label(stream.search)[0].tolist():
        places = np.flatnonzero(stream.held.labels == label)
        if 0 < len(places) <= MOST_RECORDS:
            found[label] = int(np.argmax(np.bincount(stream.held.batch.take(places).words)))
    return found


def of_equal_topics(stream: Stream) -> Iterator[Moves]:
    """Unite clusters that have the same word most often."""
    found, gone = top_words(stream), set[int]()
    for old, new in combinations(sorted(found), 2):
        if found[old] == found[new] and gone.isdisjoint((old, new)):
            gone.add(new)
            places = np.flatnonzero(stream.held.labels == new)
            yield Moves.to(stream.search, stream.held, stream.held.first + places, old)


@pytest.mark.parametrize(
    "settings",
    [{}, {"beam": 1}, {"decay_scale": 3000.0}, {"prior": "crp", "concentration": 500.0}],
)
def test_what_it_proposes_is_made_where_it_raises_the_log_joint(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, object]
) -> None:
    records, proposed, gained = texts(1536, 3, 200), 0, 0.0

    def watched(stream: Stream) -> Iterator[Moves]:
        nonlocal proposed, gained
        for moves in of_equal_topics(stream):
            task, before, joint = task_over(stream), stream.held.labels.copy(), engine.log_joint
            yield moves
            won = task.log_joint(stream.held.labels) - task.log_joint(before)
            assert engine.log_joint - joint == pytest.approx(won, abs=1e-6)
            assert (stream.held.labels == before).all() or won > 0.0
            proposed, gained = proposed + 1, gained + won

    monkeypatch.setattr(looks, "PROPOSERS", [watched])
    engine = Engine(Settings(second_look=0, **settings), with_events=True)  # type: ignore[arg-type]
    told = feed(engine, records)
    assert proposed > 1
    assert gained > 0.0
    check(engine, told.newest(), records)
    assert "merged" in {event.event for event in told.events}
