"""The kernels against the naive beam, after every record."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import DENSE, SPARSE, WORDS, pair, pairs, shaped
from oracle.announce import Announcer, Change
from streams import encode, history, ordered, random_stream

from streamdp.answers.describe import KINDS
from streamdp.beam.clusters.categories import CategoryClusters
from streamdp.beam.clusters.dense import LOG_STEP, STEP, _bring_back
from streamdp.beam.clusters.index import Index, WordClusters
from streamdp.beam.clusters.sparse import CLOSED_FORM
from streamdp.beam.data.choice import WordScores
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.state import Output
from streamdp.beam.search import BeamSearch
from streamdp.kernels.jit import entry
from streamdp.likelihoods.categorical import RECORD, worded_by
from streamdp.likelihoods.words import log_gamma, log_gamma_beside


@entry
def rising_of(start: float, steps: int) -> float:
    """The kernel, as Python may call it."""
    return log_gamma_beside(start, steps) - log_gamma(start)


@entry
def brought_back(scores: WordScores, high: int) -> None:
    """The kernel, as Python may call it."""
    _bring_back(scores, high)


def full_histories(beam: BeamSearch, decided: list[int]) -> list[list[int]]:
    width = len(beam.log_joints)
    result = []
    for rank in range(width):
        recent = history(beam, rank)
        result.append(decided + [recent[seq] for seq in sorted(recent)])
    return result


Told = tuple[str, int, int, float, float, list[tuple[int, int]]]


def told_of(change: Change, times: list[float]) -> Told:
    """An event as it should be: kind, label, size, times and moves."""
    first, last = times[change.members[0]], times[change.members[-1]]
    return change.kind, change.label, len(change.members), first, last, change.moved


def told(out: Output) -> list[Told]:
    """The events as they are."""
    rows, moves = [], iter(out.moves.tolist())
    for row in out.events[: int(out.counters.events)]:
        moved = [next(moves) for _ in range(int(row["moves"]))]
        values = int(row["label"]), int(row["size"]), float(row["first"]), float(row["last"])
        rows.append((KINDS[int(row["kind"])], *values, moved))
    return rows


def compare_events(out: Output, changes: list[Change], closed: list[Change], times: list[float]) -> None:
    """Changes of the best hypothesis come in order; closings in any, before and after them."""
    events = told(out)
    assert [e for e in events if e[0] not in ("closed", "retired")] == [told_of(c, times) for c in changes]
    ends = [("closed", *e[1:]) for e in events if e[0] in ("closed", "retired")]
    assert sorted(ends) == sorted(told_of(c, times) for c in closed)


def compare(
    prior: str, family: str, width: int, records: list[Any], times: list[float], **search: Any
) -> bool:
    """Run both side by side; False where floating-point noise may decide between them."""
    n, dense = len(records), family in DENSE
    problem = pair(prior, family, width, **search)
    naive, beam = problem.naive, problem.search()
    announcer = Announcer()
    decided: list[int] = []
    closed: set[int] = set()
    for i in range(n):
        expected = naive.step(records[i], times[i])
        if expected.margin < 1e-7:
            return False
        announced = announcer.step(expected.hypotheses[expected.head].founders, expected.frontier)
        _, _, out = next(beam.run(encode([records[i]], [times[i]], dense), with_events=True))
        known = expected.hypotheses[expected.head].founders
        decided = known[: expected.frontier + 1]
        assert int(out.answers["decided"][0]) == expected.frontier
        assert full_histories(beam, decided) == [h.founders for h in expected.hypotheses]
        assert beam.head == expected.head
        assert int(beam.state.beam.counters.greedy) == expected.lane
        assert beam.state.beam.counters.lead == pytest.approx(expected.lead, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(
            beam.log_joints, [h.lj for h in expected.hypotheses], rtol=1e-10, atol=1e-9
        )
        assert out.answers["log_predictive"][0] == pytest.approx(expected.evidence, rel=1e-10, abs=1e-9)
        assert out.answers["probability"][0] == pytest.approx(expected.probability, rel=1e-9, abs=1e-12)
        new = float(out.answers["new_probability"][0])
        assert new == pytest.approx(expected.new_probability, rel=1e-9, abs=1e-12)
        assert bool(out.answers["founded"][0]) == expected.new
        assert int(out.answers["link"][0]) == (-1 if expected.link is None else expected.link)
        assert int(out.answers["label"][0]) == announced.label
        r = int(out.counters.revisions)
        got = [
            (
                int(out.revisions["seq"][k]),
                int(out.revisions["label"][k]),
                bool(out.revisions["founded"][k]),
                int(out.revisions["link"][k]),
            )
            for k in range(r)
        ]
        assert got == [(v.seq, v.label, v.new, -1 if v.link is None else v.link) for v in announced.revisions]
        for k in range(r):
            seq = int(out.revisions["seq"][k])
            voters = [expected.hypotheses[h] for h in expected.voters]
            top = max(h.lj for h in voters)
            weights = [math.exp(h.lj - top) for h in voters]
            same = [h.founders[seq] == known[seq] for h in voters]
            mass = sum(w for w, s in zip(weights, same, strict=True) if s) / sum(weights)
            assert out.revisions["probability"][k] == pytest.approx(mass, abs=1e-9)
        ended = sorted(set(expected.closed) - closed)
        closed.update(ended)
        members = {k: [j for j in range(i + 1) if known[j] == k] for k in ended}
        ends = [Change("closed", announcer.labels[k], members[k], []) for k in ended]
        compare_events(out, announced.changes, ends, times)
        check_pool(beam)
    return True


def check_pool(beam: BeamSearch) -> None:
    """The shared pool says the same as the hypotheses: who holds what, and sums over size classes."""
    pool, clusters, sizes = beam.state.pool, beam.state.clusters, beam.state.sizes
    alive = np.flatnonzero(pool.state == ALIVE)
    assert pool.counters.used == np.count_nonzero(pool.state)
    if isinstance(clusters.bag, WordClusters):
        index = clusters.bag.inverted
        assert (sizes.of[alive] >= 0).all()
        agreed = alive[pool.column[alive] < 0]
        for c in set(sizes.of[agreed].tolist()):
            members = agreed[sizes.of[agreed] == c]
            assert sizes.agreed[c] == len(members)
            assert sizes.weight[c] == pytest.approx(pool.weight[members].sum(), rel=1e-9)
            assert sizes.top[c] == pool.weight[members].max()
        of = sizes.of[alive]
        assert index.tokens[alive].tolist() == sizes.tokens[of].tolist()
        assert index.records[alive].tolist() == sizes.records[of].tolist()
        named = isinstance(clusters.bag, CategoryClusters)
        distinct = index.distinct if named else index.types
        assert distinct[alive].tolist() == sizes.types[of].tolist()
        worded = np.ones(len(index.lists), bool)
        if named:
            worded = worded_by(beam.model.family.bag, clusters.bag.learned.field)
        check_postings(index, alive, worded)


def check_postings(index: Index, alive: np.ndarray, worded: np.ndarray) -> None:
    """Every word of a cluster has a posting, and there are no others; each points back at the other.

    ``worded``: which words count as tokens, the others being those of fields.
    """
    for slot in alive:
        entries = index.own["start"][slot] + np.arange(index.types[slot])
        postings = index.lists["start"][index.word[entries]] + index.where[entries]
        assert (index.slot[postings] == slot).all()
        assert index.back[postings].tolist() == list(range(index.types[slot]))
        counted = worded[index.word[entries]]
        assert index.occurrences[postings[counted]].sum() == index.tokens[slot]
        if not worded.all():
            records = postings[index.word[entries] == RECORD]
            assert index.occurrences[records].sum() == index.records[slot]
            assert np.count_nonzero(counted) == index.distinct[slot]
    assert index.lists["length"].sum() == index.types[alive].sum() == index.counters.posted


def records_of(dense: bool) -> st.SearchStrategy[list[Any]]:
    """Short streams of few words, or of points on a coarse grid (so that ties happen)."""
    if dense:
        value = st.integers(-8, 8).map(lambda v: v / 4)
        return st.lists(st.tuples(value, value).map(list), min_size=1, max_size=12)
    count = st.one_of(st.just(1), st.integers(1, 3), st.integers(1, 12))
    pairs = st.lists(
        st.tuples(st.integers(0, WORDS - 1), count), min_size=1, max_size=WORDS, unique_by=lambda p: p[0]
    )
    return st.lists(pairs.map(ordered), min_size=1, max_size=12)


STEPS = st.lists(st.sampled_from([0.0, 0.25, 1.0, 2.5, 30.0]), min_size=12, max_size=12)
SEARCH = st.fixed_dictionaries(
    {
        "slack": st.sampled_from([math.inf, 3.0]),
        "max_undecided": st.sampled_from([10_000, 4]),
        "trial": st.sampled_from([10.0, 0.3, 0.02]),
    }
)


@pytest.mark.parametrize(("prior", "family"), pairs())
def test_kernel_equals_naive_beam(prior: str, family: str) -> None:
    """Any short stream, any width and search settings; what noise could decide is counted, not hidden."""
    counted = Counter[bool]()
    records_like = records_of(family in DENSE).map(lambda found: [shaped(family, r) for r in found])

    @settings(max_examples=12, derandomize=True, deadline=None, database=None)
    @given(records_like, STEPS, st.sampled_from([1, 2, 7, 64]), SEARCH)
    def check(records: list[Any], steps: list[float], width: int, search: dict[str, Any]) -> None:
        times = list(itertools.accumulate(steps))[: len(records)]
        counted[compare(prior, family, width, records, times, **search)] += 1

    check()
    assert counted[True] >= 2 * counted[False], counted


@pytest.mark.parametrize(("prior", "family"), pairs())
def test_kernel_equals_naive_beam_on_clustered_streams(prior: str, family: str) -> None:
    """Longer streams that do have clusters, so that the beam has something to change its mind about."""
    counted = Counter[bool]()
    for seed, (width, search) in enumerate(
        itertools.product((1, 2, 7, 64), ({}, {"slack": 3.0, "max_undecided": 4}, {"trial": 0.05}))
    ):
        records, times = random_stream(np.random.default_rng(seed), 14, family in DENSE, WORDS)
        records = [shaped(family, record) for record in records]
        counted[compare(prior, family, width, records, times, **search)] += 1
    assert counted[True] >= 6, counted


@pytest.mark.parametrize("family", [family for family in SPARSE if family != "categorical"])
def test_long_records_are_scored_in_closed_form(family: str) -> None:
    """Records of so many tokens, beside short ones, that products of all their factors are not taken."""
    counted = Counter[bool]()
    for seed in range(8):
        rng = np.random.default_rng(seed)
        records: list[Any] = []
        for length in rng.integers(
            [CLOSED_FORM - 2, 1, CLOSED_FORM, 200] * 3, [CLOSED_FORM, 5, 120, 300] * 3
        ):
            counts = np.ones(WORDS, int)
            counts[: WORDS // 2] += rng.multinomial(length, rng.dirichlet(np.full(WORDS // 2, 0.5)))
            records.append(ordered([(int(w), int(counts[w])) for w in rng.permutation(WORDS)]))
        counted[compare("exponential", family, 7, records, list(range(len(records))))] += 1
    assert counted[True] >= 6, counted


def test_long_records_are_scored_against_all_clusters() -> None:
    """Words that nearly all clusters share; one cluster holds none of them, and is touched all the same.

    The products of the factors of so many tokens are beyond the range of a double.
    """
    rng, others = np.random.default_rng(3), WORDS + 8
    problem = pair("crp", "pitman_yor", 7)
    beam, naive = problem.search(), problem.naive
    for i in range(12):
        counts = rng.multinomial(400, rng.dirichlet(np.full(others, 2.0)))
        record = ordered([(w, int(c)) for w, c in enumerate(counts) if c]) if i != 1 else [(others, 3)]
        expected = naive.step(record, float(i))
        open_before = int(beam.state.pool.counters.open)
        next(beam.run(encode([record], [float(i)], False)))
        np.testing.assert_allclose(
            beam.log_joints, [h.lj for h in expected.hypotheses], rtol=1e-10, atol=1e-9
        )
        assert i < 4 or beam.scores.words.counters.touched == open_before


def test_products_are_brought_back_exactly() -> None:
    beam = pair("crp", "pitman_yor", 7).search()
    next(beam.run(encode([[(0, 1)]], [0.0], False)))
    words = beam.scores.words
    products = np.array([1.0, 7e150, 3e-250, 5e129, 2e-129, 1e250])
    words.gains[:6], words.steps[:6] = products, 0.0
    brought_back(words, 6)
    assert (words.gains[:6] <= STEP).all()
    assert (words.gains[:6] >= 1.0 / STEP).all()
    logs = np.log(words.gains[:6]) + LOG_STEP * words.steps[:6]
    np.testing.assert_allclose(logs, np.log(products), rtol=1e-14)
    assert words.steps[:6].tolist() == [0.0, 1.0, -1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("start", [0.3, 2.0, 15.9, 16.0, 30.0, 50.0, 1e4])
def test_rising_factorials(start: float) -> None:
    for steps in (0, 1, 2, 50, 700):
        found = rising_of(start, steps)
        expected = math.fsum(math.log(start + k) for k in range(steps))
        assert found == pytest.approx(expected, rel=1e-13, abs=1e-11 if start < 1e3 else 1e-10)


@pytest.mark.parametrize("family", ["pitman_yor", "wishart"])
@pytest.mark.parametrize("prior", ["exponential", "pitman_yor"])
def test_decisions_on_different_clusters_are_combined_last(prior: str, family: str) -> None:
    """Streams so long that the beam would be full of combinations; the rule does decide who survives."""
    decided = 0
    for seed, width in itertools.product(range(3), (6, 12)):
        records, times = random_stream(np.random.default_rng(100 + seed), 40, family in DENSE, WORDS)
        records = [shaped(family, record) for record in records]
        assert compare(prior, family, width, records, times)
        naive = pair(prior, family, width).naive
        for record, t in zip(records, times, strict=True):
            decided += len(naive.step(record, t).held_back)
    assert decided > 0
