"""Concentration and scale that follow the stream: slopes against plain sums, the clock, and where they go."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from feeds import feed, record, reloaded, texts

from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import REVIEW_EVERY, ROWS, change_clock, clocks_at, concentrations_at, new_clock
from streamdp.beam.looks.adapt import LEAST, STEP
from streamdp.engine import Engine
from streamdp.errors import StreamdpError
from streamdp.offline.refine import task_of
from streamdp.priors import DistanceDependent, Exponential
from streamdp.priors.adaptation import slopes
from streamdp.records import Record
from streamdp.settings import Settings

HARD: dict[str, Any] = {"second_look": 300, "retain": LEAST, "concentration": 10.0, "adapt": True}
"""Under which records of ``texts(n, 3, 200)`` move."""


def seated(n: int, seed: int, concentration: float, scale: float) -> list[int]:
    """A clustering drawn from the sequential distance-dependent process, link by link."""
    rng = random.Random(seed)
    labels: list[int] = []
    total = 0.0
    for i in range(n):
        if i > 0:
            total = (total + 1.0) * math.exp(-1.0 / scale)
        if rng.random() * (concentration + total) < concentration:
            labels.append(max(labels, default=-1) + 1)
            continue
        distance = i + 1
        while distance > i:  # geometric, cut off where the stream begins
            distance = 1 + int(rng.expovariate(1.0 / scale))
        labels.append(labels[i - distance])
    return labels


# ---------------------------------------------------------------- slopes


@pytest.mark.parametrize("unit", ["records", "seconds"])
@pytest.mark.parametrize("start", [0, 60])
def test_slopes_are_those_of_the_probability(unit: Any, start: int) -> None:
    labels = seated(150, 1, 3.0, 20.0)
    times = np.cumsum(np.random.default_rng(2).exponential(1.0, 150)).tolist()
    positions = np.arange(150.0) if unit == "records" else np.array(times)
    founds = np.array([label not in labels[:i] for i, label in enumerate(labels)])

    def log_p(by_concentration: float, by_scale: float) -> float:
        prior = DistanceDependent(
            4.0 * math.exp(by_concentration), Exponential(30.0 * math.exp(by_scale)), unit
        )
        of_all = prior.log_probability(labels, times)
        return of_all - prior.log_probability(labels[:start], times[:start])

    found = slopes(np.array(labels), founds, positions, start, 4.0, 30.0)
    h = 1e-5
    assert found.counted == 150 - start
    assert found.concentration == pytest.approx((log_p(h, 0) - log_p(-h, 0)) / (2 * h), abs=1e-5)
    assert found.scale == pytest.approx((log_p(0, h) - log_p(0, -h)) / (2 * h), abs=1e-5)
    assert found.sharpness_concentration > 0.0
    assert found.sharpness_scale > 0.0


def test_clusters_that_are_older_than_all_that_is_known() -> None:
    labels, founds = np.array([7, 8, 7, 9, 8]), np.array([False, False, False, True, False])
    found = slopes(labels, founds, np.arange(5.0), 0, 1.0, 10.0)
    assert found.counted == 3  # the first of 7 and the first of 8 say nothing
    assert slopes(labels, founds, np.arange(5.0), 5, 1.0, 10.0).counted == 0


def test_the_truth_is_where_slopes_are_level() -> None:
    labels = np.array(seated(6000, 5, 5.0, 100.0))
    founds = np.append(True, np.diff(np.maximum.accumulate(labels)) > 0)
    found = slopes(labels, founds, np.arange(6000.0), 1000, 5.0, 100.0)
    assert abs(found.concentration) < 4.0 * math.sqrt(found.sharpness_concentration)
    assert abs(found.scale) < 4.0 * math.sqrt(found.sharpness_scale)


# ---------------------------------------------------------------- the clock


def test_the_clock_runs_at_the_pace_of_each_stretch() -> None:
    rng = np.random.default_rng(3)
    pace, ends, rates = new_clock(60.0), [0.0], [1.0]
    for k in range(1, 40):
        rates.append(float(rng.uniform(0.2, 5.0)))
        ends.append(512.0 * k - 1.0)
        pace = change_clock(pace, ends[-1], rates[-1], float(k), max(ends[-1] - 9000.0, 0.0))
    assert len(pace) == 2 * ROWS
    positions = np.arange(11500.0, 21000.0, 3.7)

    def shown(position: float) -> float:
        stretches = zip([*itertools.pairwise(ends), (ends[-1], math.inf)], rates, strict=True)
        return sum((min(b, position) - a) * rate for (a, b), rate in stretches if position > a)

    np.testing.assert_allclose(clocks_at(pace, positions), [shown(p) for p in positions.tolist()], rtol=1e-12)
    expected = [float(np.searchsorted(ends, p) - 1) for p in positions.tolist()]
    np.testing.assert_array_equal(concentrations_at(pace, positions), expected)


def test_without_change_the_clock_shows_positions() -> None:
    positions = np.array([-3.5, 0.0, 1.0, 1e9 / 3.0])
    assert clocks_at(new_clock(2.0), positions).tolist() == positions.tolist()


def told_and_engine(n: int, **more: Any) -> tuple[list[int], Engine]:
    engine = Engine(Settings(**{**HARD, **more}))
    told = feed(engine, texts(n, 3, 200))
    return told.newest(), engine


@pytest.mark.parametrize("more", [{}, {"distance": "seconds", "decay_scale": 150.0}])
def test_weights_are_those_of_all_members_on_the_clock(more: dict[str, Any]) -> None:
    labels, engine = told_and_engine(5000, retain=5000, **more)
    search, now = engine.search, engine.adapted
    assert search is not None
    assert now is not None
    assert now.decay_scale != now.given_scale
    state = search.state
    positions = np.arange(5000.0) // 2.0 if more else np.arange(5000.0)
    clock, given = clocks_at(state.clock, positions), Exponential(now.given_scale)
    assert state.beam.counters.now == pytest.approx(clock[-1], rel=1e-12)
    checked = 0
    for slot in np.flatnonzero((state.pool.state == ALIVE) & (state.pool.column < 0)).tolist():
        row = state.pool.slots[slot]
        own = np.flatnonzero(np.array(labels) == state.lineages.rows["label"][row["lineage"]])
        assert len(own) == row["size"]
        weight = float(given(clock[-1] - clock[own]).sum())
        assert state.pool.weight[slot] * state.beam.counters.scale == pytest.approx(weight, rel=1e-9)
        checked += 1
    assert checked > 10


def test_what_a_refinement_takes_older_records_for() -> None:
    labels, engine = told_and_engine(4200)
    now, task = engine.adapted, task_of(engine)
    assert now is not None
    assert engine.search is not None
    prior, anchors = task.problem.prior, task.problem.anchors
    assert isinstance(prior, DistanceDependent)
    assert anchors is not None
    assert (prior.concentration, prior.decay.scale) == (now.concentration, now.decay_scale)
    first = 4200 - LEAST
    clock = clocks_at(engine.search.state.clock, np.arange(4200.0))
    given = Exponential(now.given_scale)
    shares = np.add.reduceat(anchors.held.share, anchors.held.start[:-1])
    near = 0
    for label, share in zip(task.names.tolist(), shares.tolist(), strict=True):
        older = np.flatnonzero(np.array(labels[:first]) == label)
        weight = float(given(clock[first] - clock[older]).sum())
        if weight > 0.1:
            assert share == pytest.approx(weight, rel=1e-3)
            near += 1
    assert near > 5


# ---------------------------------------------------------------- the stream


@pytest.mark.parametrize("more", [{}, {"distance": "seconds", "decay_scale": 150.0}])
def test_batches_and_restarts_change_nothing(more: dict[str, Any]) -> None:
    settings = Settings(**HARD, **more)
    records = texts(5000, 3, 200)
    whole = Engine(settings, with_events=True)
    expected = feed(whole, records)
    cut, got = reloaded(settings, records, range(37, 5000, 37), with_events=True)
    assert cut.dumps() == whole.dumps()
    assert cut.adapted == whole.adapted
    assert whole.counters()["records_moved"] > 10
    expected.add(whole.finish())
    got.add(cut.finish())
    assert got.encoded() == expected.encoded()


def test_nothing_changes_before_enough_was_seen_nor_where_it_is_not_asked_for() -> None:
    records = texts(LEAST + 200, 3, 200)
    on, off = Engine(Settings(**HARD)), Engine(Settings(**{**HARD, "adapt": False}))
    assert on.adapted is None
    assert feed(on, records[: LEAST - 1]).encoded() == feed(off, records[: LEAST - 1]).encoded()
    assert on.adapted is not None
    assert on.adapted[:2] == on.adapted[2:] == (10.0, 400.0)
    assert on.dumps() == off.dumps()
    feed(on, records[LEAST - 1 :])
    feed(off, records[LEAST - 1 :])
    assert on.adapted[0] != 10.0
    for now, given in zip(on.adapted[:2], on.adapted[2:], strict=True):
        assert abs(math.log(now / given)) <= STEP + 1e-12
    assert off.adapted is None
    assert off.search is not None
    np.testing.assert_array_equal(off.search.state.clock, new_clock(10.0))


@pytest.mark.parametrize(("scale", "low", "high"), [(100.0, 100.0, 300.0), (800.0, 440.0, 800.0)])
def test_the_scale_goes_where_the_truth_is_and_stays(scale: float, low: float, high: float) -> None:
    labels = seated(16_000, 11, 0.15 * scale, scale)
    rng = random.Random(4)

    def told(i: int, label: int) -> Record:
        words = [f"own{label}x{rng.randrange(4)}" for _ in range(4)]
        return record(" ".join([*words, f"common{rng.randrange(50)}"]), i + 1)

    engine = Engine(Settings(adapt=True))
    records = [told(i, label) for i, label in enumerate(labels)]
    seen = []
    for start in range(0, len(records), REVIEW_EVERY):
        engine.advance(records[start : start + REVIEW_EVERY])
        assert engine.adapted is not None
        seen.append(engine.adapted.decay_scale)
    assert seen[0] == 400.0
    late = seen[len(seen) // 2 :]
    assert low < min(late) <= max(late) < high
    assert max(late) / min(late) < 1.4
    assert len({round(b / a, 9) for a, b in itertools.pairwise(seen)}) > 5


def test_vectors_are_refused() -> None:
    with pytest.raises(StreamdpError, match="adapt is for texts"):
        Engine(Settings(adapt=True, warmup=0)).advance([[1.0, 2.0]] * 5)
