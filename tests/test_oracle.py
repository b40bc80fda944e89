"""The oracle against closed forms, sums to one, and itself."""

import math
import random

import pytest
from oracle import enumeration as en
from oracle import families as fa
from oracle import priors as pr
from oracle.announce import Announcer, Revision
from oracle.beam import Beam, Child, select, selection_margin

TIMES = [0.0, 0.7, 0.7, 1.9, 4.0, 4.2]
WINDOW_2S = pr.DistanceDependent(0.8, pr.Window(2.0), "seconds")
PRIORS = [
    pr.CRP(1.3),
    pr.CRP(1.3, retire_after=1),
    pr.PitmanYor(0.7, 0.4),
    pr.PitmanYor(0.7, 0.4, retire_after=2),
    pr.PitmanYor(0.0, 0.4),
    pr.Uniform(0.9),
    WINDOW_2S,
    pr.DistanceDependent(0.8, pr.Window(2), "records"),
    pr.DistanceDependent(0.8, pr.Exponential(1.5), "seconds"),
    pr.DistanceDependent(0.8, pr.Logistic(1.5), "records", close_below=0.2),
]
DECAYS = [
    pr.DistanceDependent(0.8, decay, unit, close_below=0.0)
    for decay in (pr.Window(2.0), pr.Exponential(1.5), pr.Logistic(1.5))
    for unit in ("seconds", "records")
]
WORDS = [[(0, 1), (1, 2)], [(2, 1)], [(1, 1), (0, 3)], [(3, 2), (2, 1)], [(0, 1)], [(3, 1), (1, 1)]]
POINTS = [[0.1, 1.0], [0.3, 0.8], [-2.0, 0.0], [-1.7, 0.4], [0.0, 1.3], [5.0, -1.0]]


class Flat(fa.Family):
    """Every record is as likely everywhere: the prior alone."""

    def log_predictive(self, members, x, base):
        return 0.0


def cases():
    vocabulary = fa.FixedBase([0.4, 0.3, 0.2, 0.1])
    learned = fa.LearnedBase("tables", 0.2, 1.0)
    return [
        (pr.CRP(1.3), fa.DirichletMultinomial(0.3, 4), fa.NoBase(), WORDS),
        (pr.Uniform(0.9), fa.DirichletMultinomial(0.3, escape=1.5), fa.WordsSeen(), WORDS),
        (pr.PitmanYor(0.7, 0.4), fa.HierarchicalPitmanYor(2.0, 0.5), vocabulary, WORDS),
        (pr.PitmanYor(0.7, 0.4, retire_after=2), fa.HierarchicalPitmanYor(2.0, 0.5), learned, WORDS),
        (pr.CRP(2.0), fa.HierarchicalDirichlet(2.0, 1.5), fa.LearnedBase("tokens", 0.2, 1.0), WORDS),
        (WINDOW_2S, fa.Gaussian(0.5, 4.0, [0.2, 0.1], 0.9), fa.NoBase(), POINTS),
        (PRIORS[-1], fa.NormalInverseGamma(0.0, 0.3, 1.5, [0.4, 0.6]), fa.NoBase(), POINTS),
    ]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize("n", range(1, 6))
def test_prior_sums_to_one(prior, n):
    total = math.fsum(math.exp(en.log_prior(z, TIMES, prior)) for z in en.partitions(n))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_bell_numbers():
    assert [len(set(en.partitions(n))) for n in range(7)] == [1, 1, 2, 5, 15, 52, 203]


@pytest.mark.parametrize("z", en.partitions(5), ids=str)
def test_closed_forms(z):
    crp, py, uniform = pr.CRP(1.3), pr.PitmanYor(0.7, 0.4), pr.Uniform(0.9)
    assert en.log_prior(z, TIMES, crp) == pytest.approx(pr.crp_log_prior(z, 1.3), abs=1e-12)
    assert en.log_prior(z, TIMES, py) == pytest.approx(pr.pitman_yor_log_prior(z, 0.7, 0.4), abs=1e-12)
    assert en.log_prior(z, TIMES, uniform) == pytest.approx(pr.uniform_log_prior(z, 0.9), abs=1e-12)
    everything = pr.DistanceDependent(1.3, pr.Window(1e9), "seconds")
    assert en.log_prior(z, TIMES, everything) == pytest.approx(pr.crp_log_prior(z, 1.3), abs=1e-12)


@pytest.mark.parametrize("prior", DECAYS, ids=str)
def test_links_sum_to_the_row_of_the_table(prior):
    times = TIMES[:5]
    table = en.partition_probabilities_by_links(times, prior)
    for z in en.partitions(5):
        assert math.exp(en.log_prior(z, times, prior)) == pytest.approx(table[z], abs=1e-14)
        if table[z] > 0.0:
            for i in range(5):
                by_links = en.link_posterior_by_links(i, z, times, prior)
                assert en.link_posterior(i, z, times, prior) == pytest.approx(by_links, abs=1e-12)


def test_logistic_does_not_overflow():
    f = pr.Logistic(3.0)
    assert (f(1e9), f(-1e9), f(3.0)) == (0.0, 1.0, 0.5)
    assert f(4.0) == pytest.approx(1.0 / (1.0 + math.e))


@pytest.mark.parametrize(
    "family",
    [
        fa.HierarchicalPitmanYor(2.0, 0.5),
        fa.HierarchicalDirichlet(2.0),
        fa.HierarchicalDirichlet(2.0, 1.5),
        fa.DirichletMultinomial(0.3, 4),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [0, 1, 4])
def test_predictive_sums_to_one(family, size):
    base = fa.FixedBase([0.4, 0.3, 0.2, 0.1])
    one_token = [[(w, 1)] for w in range(4)]
    total = math.fsum(math.exp(family.log_predictive(WORDS[:size], x, base.view(x))) for x in one_token)
    assert total == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("size", [0, 1, 4])
def test_predictive_of_a_growing_vocabulary_sums_to_one(size):
    family, base = fa.DirichletMultinomial(0.3, escape=1.5), fa.WordsSeen()
    for x in WORDS[:size]:
        base.absorb(x, [])
    seen = base.view([])
    one = {w: math.exp(family.log_predictive(WORDS[:size], [(w, 1)], seen)) for w in (*seen, 99)}
    unseen = one.pop(99) * (fa.UNIVERSE - len(seen))
    assert math.fsum([unseen, *one.values()]) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("kind", ["tables", "tokens", "mixed"])
def test_learned_base_sums_to_one(kind):
    base = fa.LearnedBase(kind, 0.2, 1.5)
    for i, x in enumerate(WORDS):
        seen = {w for y in WORDS[:i] for w, _ in y}
        unseen = (fa.UNIVERSE - len(seen)) * base.probability(99)
        assert math.fsum([unseen, *map(base.probability, seen)]) == pytest.approx(1.0, abs=1e-12)
        base.absorb(x, WORDS[max(i - 1, 0) : i], 0.3)
    assert dict(base.T) == {0: 3, 1: 3, 2: 2, 3: 2}
    assert dict(base.N) == {0: 5, 1: 4, 2: 2, 3: 3}
    assert (base.evidence != 0.0) == (kind == "mixed")


def test_token_order():
    assert fa.tokens([(7, 2), (3, 1), (5, 3), (1, 1)]) == [3, 1, 7, 7, 5, 5, 5]


def test_pitman_yor_without_discount_is_dirichlet():
    views = en.fixed_views(fa.FixedBase([0.4, 0.3, 0.2, 0.1]), WORDS)
    dirichlet = fa.HierarchicalDirichlet(2.0).log_marginal(WORDS, views)
    assert fa.HierarchicalPitmanYor(2.0, 0.0).log_marginal(WORDS, views) == pytest.approx(dirichlet)


def test_pitman_yor_by_hand():
    """Cluster {0: 2, 1: 1}, record 1, 1 and 2: n = 3, T = 2, then 3 after the new word 2 is scored first."""
    view = {1: 0.3, 2: 0.2}
    value = fa.HierarchicalPitmanYor(2.0, 0.5).log_predictive([[(0, 2), (1, 1)]], [(1, 2), (2, 1)], view)
    by_hand = (3.0 * 0.2 / 5.0) * ((0.5 + 3.5 * 0.3) / 6.0) * ((1.5 + 3.5 * 0.3) / 7.0)
    assert value == pytest.approx(math.log(by_hand))


def test_document_level_by_hand():
    """Empty cluster, record 0, 0: p(0) = p, then (1 + beta (1 + b1 p)/(1 + b1)) / (1 + beta)."""
    value = fa.HierarchicalDirichlet(2.0, 1.5).log_predictive([], [(0, 2)], {0: 0.4})
    assert value == pytest.approx(math.log(0.4 * (1.0 + 1.5 * (1.0 + 0.8) / 3.0) / 2.5))


def test_dirichlet_multinomial_closed_form():
    """lgamma(V b) - lgamma(V b + n) + sum_w [lgamma(b + n_w) - lgamma(b)] (MATH 3)."""
    counts = fa.word_counts(WORDS)
    closed = math.lgamma(4 * 0.3) - math.lgamma(4 * 0.3 + counts.total())
    closed += sum(math.lgamma(0.3 + n) - math.lgamma(0.3) for n in counts.values())
    assert fa.DirichletMultinomial(0.3, 4).log_marginal(WORDS) == pytest.approx(closed)


def test_gaussian_closed_form():
    """-nd/2 log(2 pi s2) + d/2 log(v/v0) - sum |x|^2/(2 s2) + v |S|^2/(2 s2^2) (MATH 3)."""
    s2, v0, n = 0.5, 4.0, len(POINTS)
    v = 1.0 / (1.0 / v0 + n / s2)
    squares = sum(a * a for x in POINTS for a in x)
    sums = sum(sum(x[i] for x in POINTS) ** 2 for i in range(2))
    closed = -n * math.log(2 * math.pi * s2) + math.log(v / v0) - squares / (2 * s2) + v * sums / (2 * s2**2)
    assert fa.Gaussian(s2, v0).log_marginal(POINTS) == pytest.approx(closed)
    shifted = [[a + 3.0, b - 1.0] for a, b in POINTS]
    assert fa.Gaussian(s2, v0, [3.0, -1.0]).log_marginal(shifted) == pytest.approx(closed)


def test_normal_inverse_gamma_closed_form():
    """lgamma(a_n)/lgamma(a), b^a / b_n^a_n, sqrt(kappa/kappa_n), (2 pi)^(-n/2), per dimension."""
    m0, kappa, a, b, n = 0.3, 0.6, 1.5, 0.4, len(POINTS)
    closed = 0.0
    for i in range(2):
        xs = [x[i] for x in POINTS]
        kappa_n, a_n, mean = kappa + n, a + n / 2, sum(xs) / n
        scatter = sum((x - mean) ** 2 for x in xs)
        b_n = b + scatter / 2 + kappa * n * (mean - m0) ** 2 / (2 * kappa_n)
        closed += math.lgamma(a_n) - math.lgamma(a) + a * math.log(b) - a_n * math.log(b_n)
        closed += 0.5 * math.log(kappa / kappa_n) - n / 2 * math.log(2 * math.pi)
    assert fa.NormalInverseGamma(m0, kappa, a, b).log_marginal(POINTS) == pytest.approx(closed)


def test_forgetting_everything_keeps_the_last_record():
    for family in (fa.Gaussian(0.5, 4.0, forget=0.0), fa.NormalInverseGamma(0.3, 0.6, 1.5, 0.4, forget=0.0)):
        last = family.log_predictive(POINTS[2:3], POINTS[3], None)
        assert family.log_predictive(POINTS[:3], POINTS[3], None) == pytest.approx(last)


@pytest.mark.parametrize("case", range(len(cases())))
def test_exhaustive_beam_is_enumeration(case):
    prior, family, base, records = cases()[case]
    beam = Beam(prior, family, base, width=10**6)
    evidence = 0.0
    for n, x in enumerate(records, start=1):
        result = beam.step(x, TIMES[n - 1])
        evidence += result.evidence
        joints = en.log_joints(records[:n], TIMES, prior, family, beam.views)
        found = {tuple(h.founders): h.lj for h in result.hypotheses}
        assert found == pytest.approx(joints, abs=1e-10)
        assert tuple(result.hypotheses[result.head].founders) == en.map_partition(joints)
        assert evidence == pytest.approx(en.log_sum_exp(list(joints.values())), abs=1e-10)
        share = sum(p for z, p in en.posterior(joints).items() if z[-1] == result.founder)
        assert result.probability == pytest.approx(share, abs=1e-10)


def test_greedy_takes_the_best_child():
    rng = random.Random(3)
    family = fa.Gaussian(0.5, 4.0)
    points = [[rng.gauss(rng.choice([-3.0, 3.0]), 0.7)] for _ in range(12)]
    beam, greedy = Beam(pr.CRP(1.0), family, fa.NoBase(), width=1), []
    for n, x in enumerate(points):
        options = [*dict.fromkeys(greedy), n]
        joint = {}
        for k in options:
            z = (*greedy, k)
            joint[k] = pr.crp_log_prior(z, 1.0) + en.log_likelihood(z, points, family, [None] * (n + 1))
        greedy.append(max(options, key=joint.__getitem__))
        result = beam.step(x, float(n))
        assert result.hypotheses[0].founders == greedy
        assert result.frontier == n
        assert result.link == max((j for j in range(n) if greedy[j] == greedy[n]), default=None)


def test_exact_ties_go_to_the_older_cluster_then_the_better_parent():
    beam = Beam(pr.Uniform(1.0), Flat(), fa.NoBase(), width=3)
    beam.step(None, 0.0)
    second = beam.step(None, 1.0)
    assert [h.founders for h in second.hypotheses] == [[0, 0], [0, 1]]
    assert (second.head, second.probability, second.margin) == (0, 0.5, math.inf)
    third = beam.step(None, 2.0)
    assert [h.founders for h in third.hypotheses] == [[0, 0, 0], [0, 0, 2], [0, 1, 0]]
    assert third.evidence == pytest.approx(0.0)
    assert third.probability == pytest.approx(0.5 * 0.5 + 0.5 / 3.0)


def test_rounding_and_slack():
    children = [
        Child(1, 0, -3e-10),
        Child(0, 2, -4e-10),
        Child(0, 0, 0.0),
        Child(0, 1, -2.0),
    ]
    assert select(children, 10, 1.0) == [children[2], children[1], children[0]]
    assert select(children, 10, 2.0) == [children[2], children[1], children[0], children[3]]
    assert select(children, 2, math.inf) == [children[2], children[1]]
    assert selection_margin(children, 10, 2.0) == pytest.approx(1e-10)
    apart = [Child(0, 0, 0.0), Child(0, 1, -1.0), Child(0, 2, -1.5), Child(0, 3, -1.5)]
    assert selection_margin(apart, 2, math.inf) == pytest.approx(0.5)
    assert selection_margin(apart, 3, math.inf) == pytest.approx(0.5)
    assert selection_margin(apart, 4, 1.2) == pytest.approx(0.2)
    assert select(apart, 3, 1.2, {apart[1]}) == [apart[0], apart[1]]
    assert select(apart, 3, math.inf, {apart[1]}) == [apart[0], apart[2], apart[3]]
    assert selection_margin(apart, 1, math.inf, {apart[1]}) == pytest.approx(1.5)


def test_equal_scores_on_a_rounding_boundary_are_unsafe():
    depth = 12345.5e-9
    boundary = [Child(0, 0, 0.0), Child(0, 1, -depth), Child(0, 2, -depth)]
    assert selection_margin(boundary, 3, math.inf) < 1e-11


def test_max_undecided_lets_the_head_decide():
    beam = Beam(pr.CRP(1.0), Flat(), fa.NoBase(), width=10**6, max_undecided=2)
    for n in range(6):
        result = beam.step(None, float(n))
        head = result.hypotheses[result.head].founders
        assert n - result.frontier <= 2
        decided = result.frontier + 1
        assert all(h.founders[:decided] == head[:decided] for h in result.hypotheses)
        assert (result.dropped > 0) == (n >= 3)
    assert beam.dropped > 0


def test_window_closes_what_all_hypotheses_agree_on():
    beam = Beam(pr.DistanceDependent(1.0, pr.Window(1.5), "seconds"), Flat(), fa.NoBase(), width=2)
    assert beam.step(None, 0.0).closed == []
    far = beam.step(None, 10.0)
    assert (far.closed, far.new, far.probability, far.evidence) == ([0], True, 1.0, 0.0)
    near = beam.step(None, 10.5)
    assert [h.founders for h in near.hypotheses] == [[0, 1, 1], [0, 1, 2]]
    assert beam.step(None, 20.0).closed == [0]


def test_max_clusters_closes_the_least_recently_used_of_the_head():
    beam = Beam(pr.CRP(1.0, max_clusters=1), fa.Gaussian(0.01, 100.0), fa.NoBase(), width=1)
    for x, closed in [(0.0, []), (50.0, []), (0.0, [0]), (0.0, [0, 1]), (0.0, [0, 1])]:
        result = beam.step([x], 0.0)
        assert result.closed == closed
    assert result.hypotheses[0].founders == [0, 1, 2, 2, 2]


def test_announcer_extends_switches_and_mints():
    a = Announcer()
    heads = [[0], [0, 1], [0, 1, 1], [0, 1, 1, 1]]
    assert [a.step(head, 0).label for head in heads] == [0, 1, 1, 1]
    switch = a.step([0, 0, 2, 2, 4], 1)
    assert switch.label == 2
    assert switch.revisions == [Revision(1, 0, False, 0, 1)]
    assert a.labels == [0, 0, 1, 1, 2]
    split = a.step([0, 0, 2, 3, 3, 3], 1)
    assert split.revisions == [Revision(3, 2, True, None, 1)]
    assert a.labels == [0, 0, 1, 2, 2, 2]
    assert a.step([0, 0, 2, 3, 3, 3, 6], 6).label == 3


def test_announcer_ties_and_fixed_labels():
    a = Announcer()
    for head in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 1], [0, 1, 2, 1, 2]):
        a.step(head, 0)
    merged = a.step([0, 1, 1, 1, 1, 5], 0)
    assert merged.label == 3
    assert merged.revisions == [Revision(2, 1, False, 1, 1), Revision(4, 1, False, 3, 1)]
    gone = a.step([0, 0, 0, 0, 0, 0, 0], 6)
    assert [r.label for r in gone.revisions] == [0] * 5
    assert a.revision_counts == [0, 1, 2, 1, 2, 1, 0]
    assert a.step([0, 0, 0, 0, 0, 0, 0, 7], 7).label == 4
