"""Partings against a twin in plain Python, the exact log joint, and streams in which two topics were one."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from feeds import record
from msgspec.structs import replace
from oracle import partings

from streamdp.beam.data.state import SPLIT
from streamdp.beam.looks.moves import apply
from streamdp.beam.looks.parting import LEAST, MOST, PART, STRANGERS, UNLIKE, Few, part
from streamdp.beam.looks.review import Due, slots_of
from streamdp.encode.batch import Labelled
from streamdp.engine import Engine
from streamdp.offline.chain import canonical
from streamdp.offline.handover import engine_of, stream_of
from streamdp.offline.problem import Collection
from streamdp.offline.task import task_over
from streamdp.settings import Settings

PRIORS: dict[str, dict[str, Any]] = {
    "crp": {"prior": "crp"},
    "pitman-yor": {"prior": "pitman-yor", "discount": 0.3},
    "exponential": {"decay_scale": 150.0, "concentration": 2.0, "close_below": 0.0},
    "window": {"decay": "window", "decay_scale": 900.0, "concentration": 2.0},
    "seconds": {"distance": "seconds", "decay_scale": 80.0, "concentration": 2.0, "close_below": 0.0},
}
EVERYTHING = Due(np.zeros(0, np.int64), 1000, last=True)


def words_of_topic(rng: random.Random, topic: int, near: int) -> str:
    """Five words of a topic, and two that all topics use; topics 0 and 1 share ``near`` of theirs."""
    own = [f"topic{topic}word{k}" for k in range(12)]
    if topic == 1:
        own[:near] = [f"topic0word{k}" for k in range(near)]
    return " ".join([*rng.sample(own, 5), *(f"common{rng.randrange(30)}" for _ in range(2))])


def two_as_one(n: int, seed: int, near: int = 0, **settings: Any) -> tuple[Engine, np.ndarray]:
    """An engine with topics 0 and 1 in one cluster, each other one in its own; the topic of each record."""
    rng = random.Random(seed)
    topics = np.array([rng.randrange(14) for _ in range(n)])
    records = [record(words_of_topic(rng, t, near), i + 1, float(i)) for i, t in enumerate(topics.tolist())]
    made = Settings(**settings)
    encoded = Collection(made, records).encoded
    return engine_of(made, encoded, canonical(np.maximum(topics, 1))), topics


def held_by(engine: Engine) -> Labelled:
    held = engine.retained()
    assert held is not None
    return held


def newest(engine: Engine, due: Due = EVERYTHING) -> tuple[np.ndarray, list[Any]]:
    """Labels after a try, and the events."""
    held, events = held_by(engine), []
    assert engine.search is not None
    labels = held.labels.copy()
    for moves in part(engine.search, held, held.labels.copy(), due):
        for out in apply(engine.search, held, moves, with_events=True):
            rows = out.revisions[: int(out.counters.revisions)]
            labels[rows["seq"] - held.first] = rows["label"]
            assert (rows["probability"] > 0.5).all()
            events += out.events[: int(out.counters.events)]["kind"].tolist()
    assert (held.labels == labels).all()
    return labels, events


@pytest.mark.parametrize("near", [0, 6, 10])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_record_goes_where_the_twin_puts_it(near: int, seed: int) -> None:
    engine, topics = two_as_one(500, seed, near)
    search, held = engine.search, held_by(engine)
    assert search is not None
    places = np.flatnonzero(topics < 2)
    batch = held.batch.take(places)
    measure = search.likelihood.measure(search.words.learned)
    bags = [
        dict(
            zip(
                *(
                    a[slice(*held.batch.offsets[i : i + 2])].tolist()
                    for a in (held.batch.words, held.batch.counts)
                ),
                strict=True,
            )
        )
        for i in range(held.batch.size)
    ]
    family = search.likelihood
    twin = partings.Words(dict(enumerate(measure.tolist())), family.base_concentration, family.word_discount)
    of_cluster = [bags[i] for i in places.tolist()]
    few = Few(search, batch, 4000)
    found = few.as_two(np.array([0, len(places)]))
    expected = twin.as_two(of_cluster)
    if expected is None:
        assert (found == -1).all()
        return
    assert found.tolist() == expected
    side = found
    labels = np.unique(held.labels[topics > 1])
    slots = slots_of(search, labels)
    strangers = [
        [bags[i] for i in np.flatnonzero(held.labels == label).tolist()] for label in labels.tolist()
    ]
    unlike = few.unlike(0, side, search.words.inverted, slots)
    assert unlike == pytest.approx(twin.unlike(of_cluster, expected, strangers), rel=1e-9)
    sides = [[b for b, s in zip(of_cluster, expected, strict=True) if s == k] for k in range(2)]
    gained = few.divide(side.copy(), 0) - few.divide(np.zeros(len(side), np.int64), 0)
    assert gained == pytest.approx(twin.joint(sides) - twin.joint([of_cluster]), abs=1e-6)


def test_the_twin_has_the_same_constants() -> None:
    assert (LEAST, PART, UNLIKE) == (partings.LEAST, partings.PART, partings.UNLIKE)


@pytest.mark.parametrize("prior", PRIORS)
def test_two_topics_in_one_cluster_are_parted_and_the_log_joint_is_that_of_the_model(prior: str) -> None:
    engine, topics = two_as_one(700, 4, **PRIORS[prior])
    before, joint = held_by(engine).labels, engine.log_joint
    task = task_over(stream_of(engine))
    labels, events = newest(engine)
    moved = np.flatnonzero(labels != before)
    assert len(set(topics[moved].tolist())) == 1
    assert topics[moved][0] == 1 - topics[np.flatnonzero(topics < 2)[0]]  # the first record's part stays
    assert (labels[topics == 0][:, None] != labels[topics == 1]).all()
    assert events == [SPLIT]
    exact = task.log_joint(labels) - task.log_joint(before)
    assert engine.log_joint - joint == pytest.approx(exact, abs=1e-5)


def test_one_topic_stays_whole_and_so_do_topics_that_are_alike() -> None:
    engine, _ = two_as_one(700, 5, near=10)
    before = held_by(engine).labels
    labels, events = newest(engine)
    assert events == []
    assert (labels == before).all()


def test_more_records_than_are_asked_go_where_they_fit() -> None:
    engine, topics = two_as_one(4000, 6, **PRIORS["crp"])
    assert (topics < 2).sum() > 2 * MOST
    labels, _ = newest(engine)
    assert (labels[topics == 0][:, None] != labels[topics == 1]).all()


@pytest.mark.parametrize("kept", ["fixed", "whole", "final"])
def test_what_was_corrected_or_is_final_is_not_parted(kept: str) -> None:
    engine, topics = two_as_one(700, 4)
    held = held_by(engine)
    places = np.flatnonzero(topics < 2)
    due = {
        "fixed": EVERYTHING._replace(fixed=places[5:6]),
        "whole": EVERYTHING._replace(whole=held.labels[places[:1]]),
        "final": EVERYTHING._replace(since=int(places[0]) + 1),
    }[kept]
    assert newest(engine, due)[1] == []


def test_nothing_is_parted_where_there_is_little_to_compare_it_with() -> None:
    rng = random.Random(7)
    topics = np.array([rng.randrange(STRANGERS) for _ in range(600)])
    records = [record(words_of_topic(rng, t, 0), i + 1, float(i)) for i, t in enumerate(topics.tolist())]
    encoded = Collection(Settings(), records).encoded
    engine = engine_of(Settings(), encoded, canonical(np.maximum(topics, 1)))
    assert newest(engine)[1] == []


def test_records_that_were_erased_are_not_parted() -> None:
    engine, _ = two_as_one(700, 4)
    held = held_by(engine)
    none = np.zeros(0, np.int32)
    batch = replace(held.batch, offsets=np.zeros(held.batch.size + 1, np.int64), words=none, counts=none)
    assert engine.search is not None
    told = part(engine.search, held._replace(batch=batch), held.labels, EVERYTHING)
    assert list(told) == []
