"""Draws of every sampler against the enumerated posterior, by chi-square.

Five to seven records have 52, 203 or 877 clusterings. Chains are thinned so far that draws are as good as
independent: what autocorrelation is left would add about a twentieth to chi-square, by the eigenvalues of
the samplers' transition matrices on these problems.

Power: of six records, a concentration off by a factor of 1.25 is found in 19 of 20 runs or more, whatever
the family, of five records one off by 1.4; so are errors of a fifth in each probability (root mean
square). Grosser faults, planted in what the samplers read or write, are all found with p < 1e-6.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import permutations, product
from typing import Any

import numpy as np
import pytest
from algebra import empty
from covering import covering
from oracle.enumeration import link_configurations, partition_of_links, partitions
from posterior import (
    EXCHANGEABLE,
    FAMILIES,
    PRIORS,
    Problem,
    draw,
    p_value,
    posterior_of,
    power,
    problem_of,
)
from scipy.integrate import quad
from scipy.special import digamma

from streamdp import likelihoods as lk
from streamdp import priors as pr
from streamdp.likelihoods.vectors import add_entry, merge_entry
from streamdp.offline.chain import Chain, canonical
from streamdp.offline.kernels.allocation import sweep
from streamdp.offline.prepare import Data
from streamdp.offline.samplers import Gibbs, LinkGibbs, Move, SequentiallyAllocated, SplitMerge
from streamdp.offline.samplers.permutation import Permutation, integrated

DRAWS = 3_000
DRAWS_OF_FIVE = 2_000
LEAST = 1e-3
PLANTED = 1e-6

NAMES = list(EXCHANGEABLE)
SPLITTERS: dict[str, Callable[[], Move]] = {
    "simple": lambda: SplitMerge(1),
    "restricted_0": lambda: SplitMerge(2, scans=0),
    "restricted_2": lambda: SplitMerge(2, scans=2, proposals=5),
    "mixed": lambda: SplitMerge(3, scans=1, proposals=2),
    "allocated": lambda: SequentiallyAllocated(),
}
FORMS: dict[Any, int] = {"exact": 3, "metropolis": 4}
"""And how far to thin; the second may refuse a draw."""
LINKED = ("window", "exponential", "logistic", "seconds", "distances")


def started(problem: Problem, prior: Any, **options: Any) -> Chain:
    chain = problem.chain(prior, **options)
    if isinstance(prior, pr.FiniteMixture):
        chain.set_labels(np.arange(problem.n) % 2)
    return chain


def agreement(
    family: str, prior: str, moves: Sequence[Move], *, n: int = 6, draws: int = DRAWS, thin: int = 2
) -> float:
    """p-value of draws of a chain against the posterior of the same model."""
    chain = started(problem_of(family, n), PRIORS[prior])
    return p_value(draw(chain, moves, draws, thin), posterior_of(family, prior, n))


@pytest.mark.parametrize(("family", "prior"), covering(FAMILIES, [*EXCHANGEABLE, "uniform"]))
def test_gibbs(family: str, prior: str) -> None:
    shuffled = (FAMILIES.index(family) + list(PRIORS).index(prior)) % 2 == 1
    assert agreement(family, prior, [Gibbs(shuffled=shuffled)]) > LEAST


HELD: dict[str, tuple[Move, Sequence[int]]] = {
    "crp": (Gibbs(), [0, 1, 0, 2, 1, 3]),
    "finite": (Gibbs(), [0, 1, 0, 0, 1, 1]),
    "uniform": (Gibbs(shuffled=True), [0, 1, 0, 2, 1, 3]),
    "window": (LinkGibbs(), [0, 0, 0, 1, 1, 1]),
    "exponential": (LinkGibbs(), [0, 1, 0, 2, 1, 3]),
    "logistic": (LinkGibbs(), [0, 1, 0, 0, 1, 0]),
}


@pytest.mark.parametrize("prior", HELD)
def test_fixed_records_stay_together_or_apart(prior: str) -> None:
    """The draws are those of the partitions in which records 0, 2 and 4 are to each other as they are."""
    move, labels = HELD[prior]
    fixed = np.array([0, 2, 4])
    chain = started(problem_of("gaussian"), PRIORS[prior])
    chain.fixed = fixed
    chain.set_labels(labels)
    relation = canonical(chain.labels[fixed]).tolist()
    posterior = posterior_of("gaussian", prior)
    held = {z: p for z, p in posterior.items() if canonical(np.array(z)[fixed]).tolist() == relation}
    total = math.fsum(held.values())
    assert total < 0.9
    assert p_value(draw(chain, [move], DRAWS, 3), {z: p / total for z, p in held.items()}) > LEAST


def test_a_record_beyond_the_window_that_was_put_there_by_hand_counts_as_a_founder() -> None:
    """Records 0 and 5 are one by hand: record 5 has the weight of a founder, whatever joins them."""
    problem, prior, fixed = problem_of("gaussian"), PRIORS["window"], np.array([0, 5])
    assert isinstance(prior, pr.DistanceDependent)
    positions, nothing = np.arange(6.0), np.zeros(6)

    def log_prior(z: Sequence[int]) -> float:
        terms = prior.log_terms([*z], positions, nothing, nothing, 0)
        founds = prior.log_terms([0, 1, 2, 3, 4, 5], positions, nothing, nothing, 0)[5]
        return float(terms[:5].sum() + founds) if z[5] == z[0] else -math.inf

    chain = problem.chain(prior)
    chain.fixed = fixed
    chain.set_labels([0, 1, 1, 2, 2, 0])
    assert np.isfinite(chain.log_joint)
    drawn = draw(chain, [LinkGibbs()], DRAWS, 3)
    assert p_value(drawn, problem.posterior(prior, log_prior)) > LEAST


@pytest.mark.parametrize(("family", "splitter"), covering(FAMILIES, SPLITTERS))
def test_splits_and_mergers(family: str, splitter: str) -> None:
    prior = NAMES[(FAMILIES.index(family) + list(SPLITTERS).index(splitter)) % 3]
    move = SPLITTERS[splitter]()
    assert agreement(family, prior, [move]) > LEAST


@pytest.mark.parametrize(
    ("family", "kind"), covering(FAMILIES, product(FORMS, ("uniform", "markov", "markov-ratio")))
)
def test_permutations(family: str, kind: tuple[Any, Any]) -> None:
    form, order = kind
    case = FAMILIES.index(family) + list(FORMS).index(form)
    move, thin = Permutation(form, order=order), FORMS[form]
    assert agreement(family, NAMES[case % 3], [move], n=5, draws=DRAWS_OF_FIVE, thin=thin) > LEAST
    assert move.proposed == DRAWS_OF_FIVE * thin
    assert move.accepted == move.proposed or form == "metropolis"


def orders_of_one_cluster(chain: Chain, order: Any, rounds: int = 2_000) -> Counter[Any]:
    """The permutations of all records in one cluster, by how often a sampler draws them."""
    move = Permutation(order=order)
    counts: Counter[Any] = Counter()
    for _ in range(rounds):
        chain.set_labels(np.zeros(chain.size))
        move(chain)
        assert move.program is not None
        counts[tuple(move.program.order.tolist())] += 1
    return counts


def markov_orders(problem: Problem, weight: Callable[[int, int], float]) -> dict[Any, float]:
    """p(order) of all records: the first uniform, the next by the log weight of following the one before."""
    law = {}
    for order in permutations(range(problem.n)):
        p = 1.0 / problem.n
        for t in range(1, problem.n):
            rest = [math.exp(weight(order[t - 1], b)) for b in order[t:]]
            p *= rest[0] / math.fsum(rest)
        law[order] = p
    return law


@pytest.mark.parametrize("family", ["multinomial", "gaussian", "poisson"])
def test_markov_orders_are_the_papers_or_by_the_ratio(family: str) -> None:
    problem = problem_of(family, 4)

    def given(a: int, b: int) -> float:  # log p(b | a)
        return problem.log_h((min(a, b), max(a, b))) - problem.log_h((a,))

    laws = {
        "markov": markov_orders(problem, given),
        "markov-ratio": markov_orders(problem, lambda a, b: given(a, b) - problem.log_h((b,))),
    }
    for order, law in laws.items():
        drawn = orders_of_one_cluster(problem.chain(pr.CRP(1.0)), order)
        assert p_value(drawn, law) > LEAST
        assert all(p_value(drawn, other) < PLANTED for other in laws.values() if other is not law)


def test_a_short_text_of_other_words_follows_under_the_papers_weights() -> None:
    """After "a", p(b | a) prefers the short "b" to "a a a a a a", which the ratio prefers."""
    words = [(np.array([w]), np.array([c])) for w, c in ((0, 1), (0, 6), (1, 1))]
    chain = Chain(Data.of_words(words), lk.DirichletMultinomial(1.0, 10), pr.CRP(1.0))
    odds = {}
    for order in ("markov", "markov-ratio"):
        move = Permutation(order=order)  # type: ignore[arg-type]
        move(chain)
        assert move.program is not None
        odds[order] = math.exp(move.program.similarity[2, 0] - move.program.similarity[1, 0])
    long, alone = 2 * 3 * 4 * 5 * 6 * 7 / (11 * 12 * 13 * 14 * 15 * 16), 720 / (10 * 11 * 12 * 13 * 14 * 15)
    assert odds["markov"] == pytest.approx((1 / 11) / long)  # 104 to 1
    assert odds["markov-ratio"] == pytest.approx((1 / 11) / long * alone / (1 / 10))  # 1 to 4.8


@pytest.mark.parametrize("texts", [False, True])
def test_projections_are_on_a_random_direction_or_through_two_records(texts: bool) -> None:
    """A corner comes second by its share of the angles; between two of three, an obtuse one always."""
    corners = np.array([[0.8, 0.2, 0.0], [0.0, 0.6, 0.4], [0.4, 0.5, 0.1]])  # a text's shares of words
    words = [
        (np.flatnonzero(x), np.rint(10 * x[x > 0] * times))
        for x, times in zip(corners, (1, 5, 2), strict=True)
    ]
    data, likelihood = Data.of_vectors(corners), lk.Gaussian(3)
    if texts:
        data, likelihood = Data.of_words(words), lk.DirichletMultinomial(1.0, 3)  # type: ignore[assignment]
    a, b, c = (math.dist(corners[i], corners[j]) for i, j in ((1, 2), (0, 2), (0, 1)))
    sides = (a, b, c), (b, a, c), (c, a, b)
    angles = {i: math.acos((y * y + z * z - x * x) / (2 * y * z)) for i, (x, y, z) in enumerate(sides)}

    def second(order: str) -> Counter[Any]:
        counts: Counter[Any] = Counter()
        for places, times in orders_of_one_cluster(Chain(data, likelihood, pr.CRP(1.0)), order).items():
            counts[places[1]] += times
        return counts

    shares = {i: angle / math.pi for i, angle in angles.items()}
    assert 0.5 < shares[2] < 0.9
    assert p_value(second("projection"), shares) > LEAST
    assert second("projection-pair") == {2: 2_000}


PRUNED: list[tuple[str, str, dict[str, Any], int]] = [
    ("gamma", "crp", {"keep": 0.01}, 0),
    ("hierarchical_pitman_yor", "pitman_yor", {"keep": 0.01, "order": "markov"}, 0),
    ("wishart", "finite", {"keep": 0.01}, 0),
    ("gaussian", "crp", {"keep": 0.3}, 500),
    ("bernoulli", "crp", {"keep": 1e-9, "width": 4}, 500),
]


@pytest.mark.parametrize(("family", "prior", "options", "lost"), PRUNED)
def test_pruned_permutations(family: str, prior: str, options: dict[str, Any], lost: int) -> None:
    move = Permutation(**options)
    thin = 7 if lost else 5
    assert agreement(family, prior, [move], n=5, draws=DRAWS_OF_FIVE, thin=thin) > LEAST
    assert move.lost >= lost
    assert move.accepted + move.lost < move.proposed


@pytest.mark.parametrize(("expansion", "thin"), [(-1.5, 4), (-0.3, 6)])
def test_any_fixed_weight_of_a_run_serves(expansion: float, thin: int) -> None:
    move = Permutation()
    move.expansion = expansion
    assert agreement("bernoulli", "crp", [move], n=5, draws=DRAWS_OF_FIVE, thin=thin) > LEAST


@pytest.mark.parametrize("prior", EXCHANGEABLE)
def test_the_weight_of_a_run_is_the_mean_of_the_burn_in(prior: str) -> None:
    chain, move = started(problem_of("bernoulli", 5), PRIORS[prior]), Permutation(burn_in=30)
    clusters = []
    for _ in range(30):
        clusters.append(chain.clusters)
        move(chain)
    weight, mean = move.expansion, np.mean(clusters)
    assert weight is not None
    if prior == "crp":  # the slope of log A(K) = K log(concentration) - log K! there
        assert weight == pytest.approx(math.log(0.9) - digamma(mean + 1.0), abs=0.03)
    assert p_value(draw(chain, [move], DRAWS_OF_FIVE, 4), posterior_of("bernoulli", prior, 5)) > LEAST
    assert move.expansion == weight


def log_prior_by_integration(n: int, shape: float, rate: float) -> Callable[[Any], float]:
    """log p(z) of the Chinese restaurant process, its concentration integrated out numerically."""

    def density(a: float, k: int) -> float:
        log_gamma = shape * math.log(rate) - math.lgamma(shape) + (shape - 1.0) * math.log(a) - rate * a
        return math.exp(k * math.log(a) + math.lgamma(a) - math.lgamma(a + n) + log_gamma)

    by_count = [quad(density, 0.0, math.inf, args=(k,))[0] for k in range(1, n + 1)]

    def log_prior(z: Any) -> float:
        sizes = [z.count(k) for k in set(z)]
        return math.log(by_count[len(sizes) - 1]) + math.fsum(math.lgamma(size) for size in sizes)

    return log_prior


@pytest.mark.parametrize(("form", "shape", "rate"), [("exact", 1.0, 1.0), ("metropolis", 3.0, 0.5)])
def test_permutations_with_the_concentration_integrated_out(form: Any, shape: float, rate: float) -> None:
    problem = problem_of("bernoulli", 5)
    log_prior = log_prior_by_integration(5, shape, rate)
    assert math.fsum(math.exp(log_prior(z)) for z in partitions(5)) == pytest.approx(1.0, abs=1e-6)
    move = Permutation(form, by_count=integrated(5, shape, rate))
    drawn = draw(problem.chain(pr.CRP(1.0)), [move], DRAWS_OF_FIVE, 4)
    assert p_value(drawn, problem.posterior(None, log_prior)) > LEAST
    assert p_value(drawn, posterior_of("bernoulli", "crp", 5)) < PLANTED


def log_prior_by_links(n: int, concentration: float, pull: Callable[[int, int], float]) -> Any:
    """log p(z): the probabilities of all configurations of links, summed by the clustering they make."""
    table = dict.fromkeys(partitions(n), 0.0)
    norm = [concentration + math.fsum(pull(i, j) for j in range(i)) for i in range(n)]
    for links in link_configurations(n):
        weights = [concentration if c == i else pull(i, c) for i, c in enumerate(links)]
        table[partition_of_links(links)] += math.prod(w / z for w, z in zip(weights, norm, strict=True))
    return lambda z: math.log(table[z]) if table[z] > 0.0 else -math.inf


@cache
def distances_of(n: int) -> np.ndarray:
    """Neither symmetric nor metric."""
    return np.random.default_rng(7).uniform(0.0, 5.0, (n, n))


def by_distances(decay: str, n: int = 5) -> Any:
    """log p(z) under the distances above."""
    prior, d = PRIORS[decay], distances_of(n)
    f: dict[str, Callable[[float], float]] = {
        "window": lambda x: 1.0 if x < 3.0 else 0.0,
        "exponential": lambda x: math.exp(-x / 2.0),
        "logistic": lambda x: 1.0 / (1.0 + math.exp(x - 2.0)),
    }
    return log_prior_by_links(n, prior.concentration, lambda i, j: f[decay](float(d[i, j])))


@pytest.mark.parametrize(("family", "name"), covering(FAMILIES, LINKED))
def test_links(family: str, name: str) -> None:
    if name != "distances":
        assert agreement(family, name, [LinkGibbs()], n=5, draws=DRAWS_OF_FIVE) > LEAST
        return
    problem, decay = problem_of(family, 5), LINKED[FAMILIES.index(family) % 3]
    chain = problem.chain(PRIORS[decay], distances=distances_of(5))
    drawn = draw(chain, [LinkGibbs()], DRAWS_OF_FIVE)
    assert p_value(drawn, problem.posterior(None, by_distances(decay))) > LEAST


@pytest.mark.parametrize("decay", [pr.Window(1.0), pr.Exponential(0.8), pr.Logistic(0.5)])
def test_links_between_records_of_the_same_time(decay: Any) -> None:
    """Of two at the same time the later in order links to the earlier."""
    problem = Problem("gaussian", 5)
    times = np.array([0.0, 0.0, 0.7, 0.7, 1.7])
    problem.data = Data.of_vectors(np.array(problem.records), times)
    prior = pr.DistanceDependent(0.7, decay, unit="seconds")
    f = {
        pr.Window: lambda x: 1.0 if x < 1.0 else 0.0,
        pr.Exponential: lambda x: math.exp(-x / 0.8),
        pr.Logistic: lambda x: 1.0 / (1.0 + math.exp(x - 0.5)),
    }[type(decay)]
    log_prior = log_prior_by_links(5, 0.7, lambda i, j: f(times[i] - times[j]))
    drawn = draw(problem.chain(prior), [LinkGibbs()], DRAWS_OF_FIVE)
    assert p_value(drawn, problem.posterior(None, log_prior)) > LEAST


HYBRIDS: dict[str, Callable[[], list[Move]]] = {
    "crp": lambda: [Gibbs(), SplitMerge(2, scans=1, proposals=2), Permutation()],
    "pitman_yor": lambda: [SequentiallyAllocated(proposals=1), Gibbs(shuffled=True), Permutation("exact")],
    "finite": lambda: [Permutation(order="markov", keep=0.01), SplitMerge(1, proposals=1), Gibbs()],
}


@pytest.mark.parametrize(
    ("prior", "family"), list(zip(HYBRIDS, ("wishart", "poisson", "multinomial"), strict=True))
)
def test_several_moves_in_turn(prior: str, family: str) -> None:
    assert agreement(family, prior, HYBRIDS[prior](), thin=1) > LEAST


SEVEN: dict[str, tuple[str, str, Callable[[], Move], int, int]] = {
    "gibbs": ("gaussian", "crp", Gibbs, 6_000, 2),
    "uniform": ("poisson", "uniform", Gibbs, 6_000, 2),
    "restricted": ("gamma", "pitman_yor", lambda: SplitMerge(2, scans=1), 6_000, 2),
    "allocated": ("bernoulli", "finite", SequentiallyAllocated, 6_000, 2),
    "links": ("hierarchical_pitman_yor", "exponential", LinkGibbs, 6_000, 2),
    "permutation": ("multinomial", "pitman_yor", lambda: Permutation("exact"), 3_000, 3),
}


@pytest.mark.parametrize("name", SEVEN)
def test_all_877_clusterings_of_seven_records(name: str) -> None:
    family, prior, move, draws, thin = SEVEN[name]
    assert agreement(family, prior, [move()], n=7, draws=draws, thin=thin) > LEAST


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("prior", EXCHANGEABLE)
def test_one_record_and_two(prior: str, n: int) -> None:
    moves: list[Move] = [Gibbs(), *(make() for make in SPLITTERS.values())]
    moves += [Permutation("exact"), Permutation(order="markov"), Permutation(keep=0.01)]
    for move in moves:
        assert agreement("gaussian", prior, [move], n=n, draws=400) > LEAST


REFUSED: list[tuple[Callable[[], Move], str]] = [
    (Gibbs, "exponential"),
    *((LinkGibbs, prior) for prior in (*EXCHANGEABLE, "uniform")),
    *((s, prior) for s in (*SPLITTERS.values(), Permutation) for prior in ("uniform", "exponential")),
]


@pytest.mark.parametrize(("move", "prior"), REFUSED)
def test_other_priors_are_refused(move: Callable[[], Move], prior: str) -> None:
    chain = problem_of("gaussian").chain(PRIORS[prior])
    before = chain.labels
    with pytest.raises(ValueError, match=f"is for .*, not for {type(PRIORS[prior]).__name__}"):
        move()(chain)
    assert chain.labels.tolist() == before.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SplitMerge(4), "variant must be 1, 2 or 3, not 4"),
        (lambda: SplitMerge(2, scans=-1), "scans must be at least 0"),
        (lambda: SequentiallyAllocated(proposals=0), "proposals at least 1"),
        (lambda: Permutation("approximate"), "form must be one of"),  # type: ignore[arg-type]
        (lambda: Permutation(order="sorted"), "order one of"),  # type: ignore[arg-type]
        (lambda: Permutation(keep=1.0), "keep must be at least 0 and below 1"),
        (lambda: Permutation(width=1), "width at least 2"),
        (lambda: Permutation("exact", keep=0.1), "the exact form neither prunes nor climbs"),
        (lambda: Permutation("exact", order="projection"), "the exact form neither prunes nor climbs"),
    ],
)
def test_wrong_settings_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("move", "n", "serves"),
    [
        (Permutation("exact"), 2_001, "metropolis"),
        (Permutation(order="markov", keep=0.1), 5_001, "uniform"),
        (Permutation(order="markov-ratio", keep=0.1), 5_001, "uniform"),
    ],
)
def test_too_many_records_for_a_table_are_refused(move: Permutation, n: int, serves: str) -> None:
    chain = Chain(Data.of_vectors(np.zeros((n, 1))), lk.Gaussian(1), pr.CRP(1.0))
    with pytest.raises(ValueError, match=f"for up to .*, not {n}: take {serves}$"):
        move(chain)


@pytest.mark.parametrize("order", ["projection", "projection-pair"])
@pytest.mark.parametrize("family", ["multinomial", "gaussian"])
def test_projections_only_climb(family: str, order: Any) -> None:
    chain, move = Problem(family, 40).chain(pr.CRP(1.0)), Permutation(order=order)
    trace = [chain.log_joint]
    for _ in range(100):
        move(chain)
        trace.append(chain.log_joint)
    assert (np.diff(trace) >= -1e-9).all()
    assert 0 < move.accepted < 100
    assert trace[-1] > trace[0] + 1.0


# what follows shows that chi-square finds faults


@pytest.mark.parametrize(("n", "draws", "factor"), [(6, DRAWS, 1.25), (5, DRAWS_OF_FIVE, 1.4)])
@pytest.mark.parametrize("family", FAMILIES)
def test_power(family: str, n: int, draws: int, factor: float) -> None:
    truth = posterior_of(family, "crp", n)
    other = problem_of(family, n).posterior(pr.CRP(factor * PRIORS["crp"].concentration))
    assert power(truth, other, draws, LEAST) > 0.95
    assert power(truth, truth, draws, LEAST) == pytest.approx(LEAST)


def off(chain: Chain, **tables: Any) -> Chain:
    """Give the sampler other tables of the prior than the posterior has."""
    assert chain.weights is not None
    chain.weights = chain.weights._replace(**tables)
    return chain


@pytest.mark.parametrize(
    ("form", "prior"), [*(("exact", prior) for prior in EXCHANGEABLE), ("metropolis", "crp")]
)
def test_finds_clusters_taken_for_numbered_ones(form: Any, prior: str) -> None:
    chain = started(problem_of("gamma", 5), PRIORS[prior])
    assert chain.weights is not None
    by_count = np.concatenate([[0.0], np.cumsum(chain.weights.found[:5])])  # without - log K!
    drawn = draw(chain, [Permutation(form, by_count=by_count)], DRAWS_OF_FIVE, 4)
    assert p_value(drawn, posterior_of("gamma", prior, 5)) < PLANTED


def test_finds_a_weight_of_a_run_that_follows_the_clusters() -> None:
    class Following(Permutation):
        def __call__(self, chain: Chain) -> None:
            self.expansion, self.proposed, self._seen = None, 0, 0
            super().__call__(chain)

    p = agreement("bernoulli", "finite", [Following()], n=5, draws=DRAWS_OF_FIVE, thin=4)
    assert p < PLANTED


def test_finds_pruning_that_is_never_refused() -> None:
    class Careless(Permutation):
        def _forward(self, *arguments: Any) -> Any:
            program = super()._forward(*arguments)
            program.counters.current = 1
            return program

    careless = Careless(keep=1e-9, width=3)
    p = agreement("bernoulli", "crp", [careless], n=5, draws=DRAWS_OF_FIVE, thin=4)
    assert p < PLANTED


@pytest.mark.parametrize("order", ["projection", "projection-pair"])
def test_finds_draws_along_projections_that_are_all_taken(order: Any) -> None:
    """Of records at -1, 0 and 1 the outer two are together without the inner one too rarely."""

    class EveryDraw(Permutation):
        def _climb(self, chain: Chain) -> None:
            self._take(chain)

    problem = Problem.of(np.array([[-1.0], [0.0], [1.0]]), lk.Gaussian(1, variance=0.5, mean_variance=1.0))
    posterior = problem.posterior(pr.CRP(1.0))
    drawn = draw(problem.chain(pr.CRP(1.0)), [EveryDraw(order=order)], DRAWS, 3)
    assert posterior[0, 1, 0] == pytest.approx(0.080, abs=0.001)
    assert drawn[0, 1, 0] / DRAWS == pytest.approx(0.044, abs=0.015)
    assert p_value(drawn, posterior) < PLANTED


@pytest.mark.parametrize("prior", EXCHANGEABLE)
def test_finds_a_table_shifted_by_one(prior: str) -> None:
    chain = started(problem_of("wishart"), PRIORS[prior])
    assert chain.weights is not None
    join = np.append(chain.weights.join[1:], chain.weights.join[-1])
    assert p_value(draw(off(chain, join=join), [Gibbs()], DRAWS), posterior_of("wishart", prior)) < PLANTED


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_finds_a_concentration_twice_as_large(splitter: str) -> None:
    chain = started(problem_of("gaussian"), PRIORS["crp"])
    assert chain.weights is not None
    drawn = draw(off(chain, found=chain.weights.found + math.log(2.0)), [SPLITTERS[splitter]()], DRAWS)
    assert p_value(drawn, posterior_of("gaussian", "crp")) < PLANTED


@pytest.mark.parametrize("decay", ["window", "exponential", "logistic"])
def test_finds_a_concentration_half_as_large_again_behind_links(decay: str) -> None:
    problem = problem_of("gaussian", 5)
    more = pr.DistanceDependent(1.5 * PRIORS[decay].concentration, PRIORS[decay].decay)
    drawn = draw(problem.chain(more), [LinkGibbs()], DRAWS_OF_FIVE)
    assert p_value(drawn, posterior_of("gaussian", decay, 5)) < PLANTED


def test_finds_distances_read_the_other_way() -> None:
    problem = problem_of("gamma", 5)
    chain = problem.chain(PRIORS["exponential"], distances=distances_of(5).T)
    drawn = draw(chain, [LinkGibbs()], DRAWS_OF_FIVE)
    assert p_value(drawn, problem.posterior(None, by_distances("exponential"))) < PLANTED


def leaking(chain: Chain) -> int:
    """Two Gibbs sweeps whose removals leave the record's sums, not its count, behind until the next two."""
    chain.refresh()
    assert chain.weights is not None
    store, terms, nobody = chain.store, chain.likelihood.terms(), empty(chain.likelihood)
    for i in [*range(chain.size)] * 2:
        slot = chain.allocation.labels[i]
        sweep(chain.weights, chain.store, chain.allocation, chain.random, np.array([i]), 0)
        if chain.allocation.labels[i] != slot and store.size[slot]:
            row, count = store.block[slot], store.block[slot][0]
            add_entry(terms, row, store.vectors[i])
            row[0] = count
            merge_entry(terms, row, nobody.row)  # derives what follows from both
    return chain.size


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_finds_removals_that_leave_something_behind(family: str) -> None:
    assert agreement(family, "crp", [leaking], draws=3 * DRAWS, thin=1) < PLANTED


def test_finds_the_uniform_process_taken_for_an_exchangeable_one() -> None:
    problem, theta = problem_of("gaussian"), PRIORS["uniform"].concentration
    truth = posterior_of("gaussian", "uniform")
    assert p_value(draw(problem.chain(pr.CRP(theta)), [Gibbs()], DRAWS), truth) < PLANTED
    # its own weights, but no regard to who comes first
    alike = off(problem.chain(pr.CRP(theta)), join=np.zeros(7))
    assert p_value(draw(alike, [Gibbs()], DRAWS), truth) < PLANTED


def test_finds_records_taken_in_reverse() -> None:
    problem = problem_of("gaussian")
    chain = Chain(
        problem.data.take(np.arange(5, -1, -1)), problem.likelihood, PRIORS["uniform"], np.arange(6)
    )
    turned = posterior_of("gaussian", "uniform").items()
    truth = {tuple(canonical(z[::-1]).tolist()): p for z, p in turned}
    assert p_value(draw(chain, [Gibbs()], DRAWS), truth) < PLANTED


def test_finds_a_likelihood_with_another_variance() -> None:
    problem = problem_of("gaussian")
    other = lk.Gaussian(2, variance=0.9, mean_variance=1.5, mean=0.2)
    chain = Chain(problem.data, other, PRIORS["crp"], np.arange(6))
    assert p_value(draw(chain, [Gibbs()], DRAWS), posterior_of("gaussian", "crp")) < PLANTED


def test_a_permutation_sampler_goes_from_one_chain_to_another() -> None:
    first, second = Problem("gaussian", 5, 1), Problem("gaussian", 5, 2)
    prior = EXCHANGEABLE["crp"]
    second.likelihood = first.likelihood
    move = Permutation("exact")
    move(first.chain(prior))
    chain = second.chain(prior, seed=4)
    assert p_value(draw(chain, [move], 2000, 3), second.posterior(prior)) > 1e-3
    with pytest.raises(ValueError, match="by_count must have shape"):
        Permutation("exact", by_count=integrated(4, 1.0, 1.0))(chain)


def test_the_concentration_integrated_under_vague_priors() -> None:
    for shape in (0.1, 1.0):
        table = integrated(50, shape, shape)
        for k in (1, 2, 9):

            def density(y: float, k: int = k, shape: float = shape) -> float:
                a = math.exp(y)
                log = (k + shape) * y - shape * a + math.lgamma(a) - math.lgamma(a + 50.0)
                return math.exp(log + shape * math.log(shape) - math.lgamma(shape) + 40.0)

            exact = quad(density, -250.0, 8.0, points=[-40.0, -5.0, 0.0], limit=500)[0]
            assert table[k] == pytest.approx(math.log(exact) - 40.0 - math.lgamma(k + 1.0), abs=2e-3)
    with pytest.raises(ValueError, match=r"at least 0\.1"):
        integrated(50, 0.01, 1.0)
