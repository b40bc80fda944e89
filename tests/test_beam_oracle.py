"""The kernels against the naive beam, after every record."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from models import DENSE, PRIORS, SPARSE, WORDS, pair
from oracle.announce import Announcer
from streams import encode, random_stream

from streamdp.beam.search import BeamSearch
from streamdp.beam.state import EVENTS, REVISIONS

outcome = Counter[str]()


def full_histories(beam: BeamSearch, decided: list[int]) -> list[list[int]]:
    width = len(beam.log_joints)
    result = []
    for rank in range(width):
        recent = beam.history(rank)
        result.append(decided + [recent[seq] for seq in sorted(recent)])
    return result


def compare(prior: str, family: str, width: int, seed: int, n: int, **settings: Any) -> str:
    """Run both; 'ambiguous' where floating-point noise may decide, else the streams were equal."""
    rng = np.random.default_rng(seed)
    dense = family in DENSE
    records, times = random_stream(rng, n, dense, WORDS)
    model, naive = pair(prior, family, width, **settings)
    beam = BeamSearch(model)
    beam.ensure_words(WORDS)
    announcer = Announcer()
    decided: list[int] = []
    labels: dict[int, int] = {}
    for i in range(n):
        expected = naive.step(records[i], times[i])
        if expected.margin < 1e-7:
            return "ambiguous"
        announced = announcer.step(expected.hypotheses[expected.head].founders, expected.frontier)
        _, _, out = next(beam.run(np.array([times[i]]), **encode([records[i]], dense)))
        known = expected.hypotheses[expected.head].founders
        decided = known[: expected.frontier + 1]
        assert int(out.decided[0]) == expected.frontier
        assert full_histories(beam, decided) == [h.founders for h in expected.hypotheses]
        assert beam.head == expected.head
        np.testing.assert_allclose(
            beam.log_joints, [h.lj for h in expected.hypotheses], rtol=1e-10, atol=1e-9
        )
        assert out.log_predictive[0] == pytest.approx(expected.evidence, rel=1e-10, abs=1e-9)
        assert out.probability[0] == pytest.approx(expected.probability, rel=1e-9, abs=1e-12)
        assert bool(out.founded[0]) == expected.new
        assert int(out.link[0]) == (-1 if expected.link is None else expected.link)
        assert int(out.label[0]) == announced.label
        r = int(out.meta[REVISIONS])
        got = [
            (
                int(out.revision_seq[k]),
                int(out.revision_label[k]),
                bool(out.revision_founded[k]),
                int(out.revision_link[k]),
            )
            for k in range(r)
        ]
        assert got == [(v.seq, v.label, v.new, -1 if v.link is None else v.link) for v in announced.revisions]
        for k in range(r):
            seq = int(out.revision_seq[k])
            top = max(h.lj for h in expected.hypotheses)
            weights = [math.exp(h.lj - top) for h in expected.hypotheses]
            same = [h.founders[seq] == known[seq] for h in expected.hypotheses]
            mass = sum(w for w, s in zip(weights, same, strict=True) if s) / sum(weights)
            assert out.revision_probability[k] == pytest.approx(mass, abs=1e-9)
        labels[i] = announced.label
        assert int(out.meta[EVENTS]) >= int(expected.new)
        check_pool(beam)
    return "equal"


def check_pool(beam: BeamSearch) -> None:
    """The shared pool says the same as the hypotheses: who holds what, and sums over size classes."""
    state = beam.state
    pool, sizes = state.pool, state.sizes
    alive = np.flatnonzero(pool.state == 1)
    assert pool.meta[2] == np.count_nonzero(pool.state)
    if sizes.of[alive].min(initial=0) >= 0 and state.dense.mean.shape[0] == 0:
        agreed = alive[pool.column[alive] < 0]
        for c in set(sizes.of[agreed].tolist()):
            members = agreed[sizes.of[agreed] == c]
            assert sizes.agreed[c] == len(members)
            assert sizes.weight[c] == pytest.approx(pool.weight[members].sum(), rel=1e-9)
            assert sizes.top[c] == pool.weight[members].max()
        assert pool.tokens[alive].tolist() == sizes.tokens[sizes.of[alive]].tolist()


@pytest.mark.parametrize("family", SPARSE + DENSE)
@pytest.mark.parametrize("prior", PRIORS)
def test_kernel_equals_naive_beam(prior: str, family: str) -> None:
    outcomes = Counter[str]()
    for width, (slack, temper, undecided) in itertools.product(
        (1, 2, 7, 64), ((math.inf, 1.0, 10_000), (3.0, 0.6, 4))
    ):
        for seed in range(2):
            outcomes[
                compare(
                    prior,
                    family,
                    width,
                    seed=97 * seed + width,
                    n=12,
                    slack=slack,
                    temper=temper,
                    max_undecided=undecided,
                )
            ] += 1
    assert outcomes["equal"] >= 10, outcomes
