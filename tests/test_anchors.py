"""Samplers beside frozen records, against the enumerated posterior given where those are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from covering import covering
from oracle.enumeration import partitions
from posterior import (
    EXCHANGEABLE,
    FAMILIES,
    PRIORS,
    draw_beside,
    p_value,
    posterior_of,
    problem_of,
)

from streamdp import priors as pr
from streamdp.offline.anchors import Anchors
from streamdp.offline.chain import Chain, canonical
from streamdp.offline.hyper import Hyper
from streamdp.offline.samplers import Gibbs, LinkGibbs, Move, SequentiallyAllocated, SplitMerge
from streamdp.offline.samplers.permutation import Permutation
from streamdp.offline.starts import sequential, sureness

FROZEN = (0, 1, 0)
DRAWS = 2_000
LEAST, PLANTED = 1e-3, 1e-6
LINKED = {
    "multinomial": "window",
    "hierarchical_dirichlet": "exponential",
    "hierarchical_pitman_yor": "logistic",
    "categorical": "exponential",
    "gaussian": "window",
    "gamma": "exponential",
    "wishart": "logistic",
    "bernoulli": "seconds",
    "poisson": "logistic",
    "sphere": "window",
}
"""Decays that other tests compile for these families, too."""

SPLITTERS: dict[str, Callable[[], list[Move]]] = {
    "simple": lambda: [SplitMerge(1), Gibbs()],
    "restricted": lambda: [SplitMerge(2, scans=2, proposals=5)],
    "mixed": lambda: [SplitMerge(3, scans=1, proposals=2)],
    "allocated": lambda: [SequentiallyAllocated()],
}


def agreement(family: str, prior: str, moves: list[Move], frozen: tuple[int, ...] = FROZEN) -> float:
    """p-value of draws beside frozen records against their conditional posterior."""
    problem = problem_of(family)
    chain = problem.beside(frozen, PRIORS[prior])
    drawn = draw_beside(chain, frozen, moves, DRAWS)
    return p_value(drawn, problem.given(frozen, posterior_of(family, prior)))


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("family", ["hierarchical_pitman_yor", "gamma"])
def test_the_log_joint_is_the_conditional(family: str, prior: str) -> None:
    problem, p = problem_of(family), PRIORS[prior]
    times = problem.data.times.tolist()
    z = list(FROZEN)
    before = p.log_probability(z, times[:3]) + problem.log_likelihood(z)
    chain = problem.beside(FROZEN, p)
    for free in itertools.product(range(4), repeat=3):
        labels = canonical([*z, *free])
        whole = p.log_probability(labels.tolist(), times)
        chain_labels = labels[3:]
        if isinstance(p, pr.FiniteMixture) and labels.max() >= p.components:
            continue
        chain.set_labels(chain_labels)
        assert chain.labels.tolist() == chain_labels.tolist()
        expected = whole + problem.log_likelihood(labels.tolist()) - before
        if whole == -math.inf:
            assert chain.log_joint == -math.inf
        else:
            assert chain.log_joint == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("family", "prior"), covering(FAMILIES, [*EXCHANGEABLE, "uniform"]))
def test_gibbs(family: str, prior: str) -> None:
    assert agreement(family, prior, [Gibbs()]) > LEAST


@pytest.mark.parametrize("family", FAMILIES)
def test_links(family: str) -> None:
    assert agreement(family, LINKED[family], [LinkGibbs()]) > LEAST


@pytest.mark.parametrize("frozen", [(0,), (0, 0, 0, 1)])
@pytest.mark.parametrize(("prior", "family"), [("exponential", "gamma"), ("uniform", "gaussian")])
def test_fewer_and_more_frozen_records(prior: str, family: str, frozen: tuple[int, ...]) -> None:
    move: Move = LinkGibbs() if prior == "exponential" else Gibbs(shuffled=True)
    assert agreement(family, prior, [move], frozen) > LEAST


@pytest.mark.parametrize("prior", ["uniform", "pitman_yor"])
def test_closed_clusters_count_among_those_that_were_founded(prior: str) -> None:
    """What moves keep of the log joint is what it is; what they draw from is the posterior beside these."""
    problem, model = problem_of("gaussian"), PRIORS[prior]
    beside = problem.beside(FROZEN, model)
    assert beside.anchors is not None
    anchors = replace(beside.anchors, closed=5)
    chain = Chain(beside.data, problem.likelihood, model, beside.labels, seed=3, anchors=anchors)
    gibbs, joints = Gibbs(), {}
    for z in partitions(problem.n):
        if tuple(canonical(z[: len(FROZEN)]).tolist()) == tuple(canonical(FROZEN).tolist()):
            chain.set_labels(np.array(canonical(z)[len(FROZEN) :]))
            joints[tuple(canonical(z).tolist())] = chain.log_joint
    top = max(joints.values())
    total = math.fsum(math.exp(v - top) for v in joints.values())
    posterior = {z: math.exp(v - top) / total for z, v in joints.items()}
    for _ in range(50):
        gibbs(chain)
    assert abs(chain.refresh()) < 1e-9
    assert p_value(draw_beside(chain, FROZEN, [gibbs], DRAWS), posterior) > LEAST


def test_what_frozen_records_weigh_under_an_exponential_decay_is_one_number() -> None:
    problem = problem_of("gamma")
    chain = problem.beside(FROZEN, PRIORS["exponential"], lumped=True)
    full = problem.beside(FROZEN, PRIORS["exponential"])
    assert chain.log_joint == pytest.approx(full.log_joint, abs=1e-12)
    drawn = draw_beside(chain, FROZEN, [LinkGibbs()], DRAWS)
    assert p_value(drawn, problem.given(FROZEN, posterior_of("gamma", "exponential"))) > LEAST


@pytest.mark.parametrize("splitter", SPLITTERS)
@pytest.mark.parametrize("family", ["gaussian", "hierarchical_pitman_yor"])
def test_splits_and_mergers(family: str, splitter: str) -> None:
    prior = list(EXCHANGEABLE)[(FAMILIES.index(family) + list(SPLITTERS).index(splitter)) % 3]
    moves = SPLITTERS[splitter]()
    if splitter != "mixed":
        moves.append(Gibbs())  # a cluster of frozen records alone is split from, never merged with
    assert agreement(family, prior, moves) > LEAST


# what follows shows that chi-square finds faults


def more_weight(anchors: Anchors) -> Anchors:
    held = anchors.held
    return replace(anchors, held=held._replace(share=3.0 * held.share))


def no_statistics(anchors: Anchors) -> Anchors:
    row = problem_of("gaussian").likelihood.empty_row()
    return replace(anchors, rows=np.tile(row, (2, 1)))


FAULTS: dict[str, tuple[str, str, Callable[[Anchors], Anchors]]] = {
    "no statistics": ("gaussian", "crp", no_statistics),
    "no statistics, uniform": ("gaussian", "uniform", no_statistics),
    "more records": ("gaussian", "crp", lambda a: replace(a, sizes=a.sizes + 2)),
    "more weight": (
        "gamma",
        "exponential",
        more_weight,
    ),
    "statistics swapped": ("gamma", "exponential", lambda a: replace(a, rows=a.rows[::-1].copy())),  # type: ignore[index]
}


@pytest.mark.parametrize("fault", FAULTS)
def test_finds_frozen_records_misread(fault: str) -> None:
    family, prior, plant = FAULTS[fault]
    problem = problem_of(family)
    right = problem.beside(FROZEN, PRIORS[prior])
    assert right.anchors is not None
    wrong = Chain(right.data, right.likelihood, right.prior, right.labels, anchors=plant(right.anchors))
    move: Move = LinkGibbs() if prior == "exponential" else Gibbs()
    truth = problem.given(FROZEN, posterior_of(family, prior))
    assert p_value(draw_beside(wrong, FROZEN, [move], 2 * DRAWS), truth) < PLANTED


def test_frozen_clusters_stay() -> None:
    chain = problem_of("gaussian").beside(FROZEN, PRIORS["crp"])
    before = chain.clusters
    for _ in range(50):
        for move in (Gibbs(), SplitMerge(2), SequentiallyAllocated()):
            move(chain)
        assert chain.clusters >= 2
        assert abs(chain.refresh()) < 1e-9
    assert before == 5


def test_what_needs_all_records_is_refused() -> None:
    chain = problem_of("gaussian").beside(FROZEN, PRIORS["crp"])
    for what in (Permutation(), sequential, sureness, Hyper(["concentration"])):
        with pytest.raises(ValueError, match="needs all records"):
            what(chain)
