"""What clusters of vectors show of the prior, against an oracle that weighs the whole joint."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from oracle import families as naive
from oracle import priors as naive_priors
from oracle import scales as oracle
from oracle import vector_families as va
from oracle.enumeration import founders_of, log_joints
from oracle.scales import log_joint

import streamdp.priors as pr
from streamdp.beam.looks.moves import apply
from streamdp.beam.looks.pieces import pieces
from streamdp.beam.looks.review import Due, decide
from streamdp.beam.looks.scales import due_at, follow
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch, Labelled
from streamdp.engine import Engine
from streamdp.likelihoods import Gaussian, NormalInverseGamma, NormalInverseWishart, VectorFamily
from streamdp.likelihoods.base import RIDGE, pooled
from streamdp.records import Answers, Assignment
from streamdp.settings import Settings
from streamdp.settings.assemble import build_model


def decaying(decay: Any, by_definition: Any) -> tuple[Any, Any]:
    """Under which no cluster of these tests closes."""
    ours = pr.DistanceDependent(1.0, decay, close_below=0.0)
    return ours, naive_priors.DistanceDependent(1.0, by_definition, "records", close_below=0.0)


PRIORS: dict[str, tuple[Any, Any]] = {
    "crp": (pr.CRP(1.0), naive_priors.CRP(1.0)),
    "pitman_yor": (pr.PitmanYor(1.0, 0.25), naive_priors.PitmanYor(1.0, 0.25)),
    "exponential": decaying(pr.Exponential(15.0), naive_priors.Exponential(15.0)),
    "window": decaying(pr.Window(45.0), naive_priors.Window(45.0)),
    "logistic": decaying(pr.Logistic(20.0), naive_priors.Logistic(20.0)),
}
NONE = np.zeros(0, np.int64)
MEAN = (0.1, -0.2)


class Case(NamedTuple):
    """A family as the first records suggest it, what it expects of clusters, and the same by definition."""

    family: VectorFamily
    first: np.ndarray
    make: oracle.Maker
    strengths: tuple[float, ...] = oracle.STRENGTHS
    counts: float = 20.0
    form: str = "full"


FIRST = np.array([[0.06, 0.02], [0.02, 0.05]])
VARIANCES = np.array([0.06, 0.05])


def wishart(scale: np.ndarray, r: float, share: float = 1.0) -> Any:
    return va.NormalInverseWishart(MEAN, 0.3 * share, 3.0 + r, r * scale)


def gamma(scale: np.ndarray, r: float, share: float = 1.0) -> Any:
    return naive.NormalInverseGamma(
        MEAN, 0.3 * share, 1.0 + r / 2.0, tuple(r / 2.0 * np.diagonal(scale)), 1.0
    )


def known(scale: np.ndarray, r: float, share: float = 1.0) -> Any:
    return naive.Gaussian(float(np.trace(scale)) / 2.0, 2.0 / share, MEAN, 1.0)


CASES = {
    "wishart": Case(
        NormalInverseWishart(
            2, mean=MEAN, kappa=0.3, degrees=23.0, scale=tuple(map(tuple, (20.0 * FIRST).tolist()))
        ),
        FIRST,
        wishart,
    ),
    "gamma": Case(
        NormalInverseGamma(2, mean=MEAN, kappa=0.3, shape=2.0, scale=tuple(VARIANCES.tolist())),
        np.diag(VARIANCES),
        gamma,
        counts=2.0,
        form="diagonal",
    ),
    "gaussian": Case(
        Gaussian(2, mean=MEAN, variance=0.055, mean_variance=2.0),
        np.diag([0.055, 0.055]),
        known,
        (20.0,),
        form="known",
    ),
}


def groups(n: int, seed: int, dimension: int = 2) -> np.ndarray:
    """Vectors of three clusters, wider than is expected of them at first."""
    rng = np.random.default_rng(seed)
    centres = np.array([[-2.0, 0.0], [2.0, 1.0], [0.0, -2.5]])
    spread = np.array([0.5, 0.8]) * rng.normal(size=(n, 2))
    found = centres[rng.integers(0, 3, n)] + spread
    return np.hstack([found, rng.normal(size=(n, dimension - 2))]) if dimension > 2 else found


def shattered(vectors: np.ndarray) -> np.ndarray:
    """The first record of the part of each vector, of six parts: two of each cluster."""
    centres = np.array([[-2.0, 0.5], [-2.0, -0.5], [2.0, 1.5], [2.0, 0.5], [0.0, -2.0], [0.0, -3.0]])
    parts = np.square(vectors[:, None, :2] - centres).sum(axis=2).argmin(axis=1)
    first = {part: i for i, part in reversed([*enumerate(parts.tolist())])}
    return np.array([first[part] for part in parts.tolist()])


class Run(NamedTuple):
    """A beam that has seen records, the newest label of each, and their model by definition."""

    search: BeamSearch
    vectors: np.ndarray
    labels: np.ndarray
    prior: Any

    @property
    def times(self) -> list[float]:
        return np.arange(len(self.vectors), dtype=float).tolist()

    @property
    def joint(self) -> float:
        return float(self.search.log_joints[self.search.head])

    def look(self, began: VectorFamily, **due: Any) -> np.ndarray:
        """The labels after a look; revisions of no other records, and of each once."""
        labels, held = self.labels.copy(), Labelled(0, self.batch, self.labels.copy())
        seen: list[int] = []
        due = {"age": 0, "last": True, **due}
        for _ in decide(self.search, with_events=True):
            pass
        for moves in follow(self.search, held, Due(NONE, **due), began):
            for out in apply(self.search, held, moves, with_events=True):
                rows = out.revisions[: out.counters.revisions]
                labels[rows["seq"]] = rows["label"]
                seen.extend(rows["seq"].tolist())
        assert sorted(seen) == np.flatnonzero(labels != self.labels).tolist()
        return labels

    @property
    def batch(self) -> Batch:
        return Batch.of_vectors(self.vectors, np.array(self.times))


def run_of(
    prior: str,
    family: VectorFamily,
    vectors: np.ndarray,
    width: int = 4,
    founders: np.ndarray | None = None,
) -> Run:
    ours, naive_prior = PRIORS[prior]
    search = BeamSearch(build_model(Settings(beam=width, slack=600.0), ours, family), family)
    batch = Batch.of_vectors(vectors, np.arange(len(vectors), dtype=float))
    labels = np.zeros(len(vectors), np.int64)
    for start, stop, out in search.run(batch, shattered(vectors) if founders is None else founders):
        labels[start:stop] = out.answers["label"][start:stop]
        for row in out.revisions[: out.counters.revisions]:
            labels[row["seq"]] = row["label"]
    return Run(search, vectors, labels, naive_prior)


@pytest.mark.parametrize("prior", PRIORS)
def test_a_look_is_that_of_the_oracle(prior: str) -> None:
    run = run_of(prior, CASES["wishart"].family, groups(40, 3))
    _compare(run, CASES["wishart"])


@pytest.mark.parametrize("family", ["gamma", "gaussian"])
def test_a_look_of_another_family_is_that_of_the_oracle(family: str) -> None:
    run = run_of("crp", CASES[family].family, groups(40, 3))
    _compare(run, CASES[family])


def tailed(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Vectors of three clusters with tails, and the founders of their parts; far ones are alone at first."""
    rng = np.random.default_rng(seed)
    centres = np.array([[-2.0, 0.0], [2.0, 1.0], [0.0, -2.5]])
    truth, noise = rng.integers(0, 3, n), 0.15 * rng.standard_t(1.5, size=(n, 2))
    vectors = centres[truth] + noise
    far = np.abs(noise).max(axis=1) > 0.9
    parts = np.where(far, 3 + np.arange(n), truth)
    first = {part: i for i, part in reversed([*enumerate(parts.tolist())])}
    return vectors, np.array([first[part] for part in parts.tolist()])


@pytest.mark.parametrize(
    ("prior", "family"), [("crp", "wishart"), ("exponential", "wishart"), ("crp", "gamma")]
)
def test_strays_are_taken_as_the_oracle_takes_them(prior: str, family: str) -> None:
    case = CASES[family]
    vectors, founders = tailed(44, 9)
    run = run_of(prior, case.family, vectors, founders=founders)
    known = vectors.tolist(), run.labels.tolist(), run.times, run.prior, case.first, case.make
    options: dict[str, Any] = {"counts": case.counts, "form": case.form}
    assert oracle.look(*known, **options).labels != oracle.look(*known, **options, strays=False).labels
    _compare(run, case)


def _compare(run: Run, case: Case) -> None:
    vectors = run.vectors.tolist()
    expected = oracle.look(
        vectors,
        run.labels.tolist(),
        run.times,
        run.prior,
        case.first,
        case.make,
        case.strengths,
        counts=case.counts,
        form=case.form,
        cut=pieces,
    )
    found = run.look(case.family)
    assert found.tolist() == expected.labels
    assert len(np.unique(found)) < len(np.unique(run.labels))
    naive_family = case.make(expected.scale, expected.strength)
    _same_parameters(run.search.likelihood, expected)
    after = log_joint(expected.labels, vectors, run.times, run.prior, naive_family)
    assert run.joint == pytest.approx(after, abs=1e-7)
    state = run.search.state
    sizes = {int(s["size"]) for s in state.pool.slots[run.search.head_slots()]}
    assert sizes == set(np.unique(found, return_counts=True)[1].tolist())


def _same_parameters(likelihood: Any, expected: oracle.Found) -> None:
    r, scale = expected.strength, expected.scale
    if isinstance(likelihood, NormalInverseWishart):
        assert likelihood.degrees == 3.0 + r
        np.testing.assert_allclose(likelihood.prior_scale, r * scale, rtol=1e-10)
    elif isinstance(likelihood, NormalInverseGamma):
        assert likelihood.shape == 1.0 + r / 2.0
        np.testing.assert_allclose(likelihood.scale, r / 2.0 * np.diagonal(scale), rtol=1e-10)
    else:
        assert likelihood.variance == pytest.approx(np.trace(scale) / 2.0, rel=1e-10)


def test_all_joints_are_those_of_the_parameters_that_were_learned() -> None:
    """Records that come after a look, under every hypothesis that there can be, beside enumeration."""
    vectors = groups(7, 5)
    run = run_of("exponential", CASES["wishart"].family, vectors[:5], width=64)
    labels = run.look(CASES["wishart"].family)
    search = run.search
    for _ in search.run(Batch.of_vectors(vectors[5:], np.arange(5.0, 7.0))):
        pass
    likelihood: Any = search.likelihood
    family = va.NormalInverseWishart(MEAN, 0.3, likelihood.degrees, likelihood.prior_scale)
    times = np.arange(7.0).tolist()
    joints = log_joints(vectors.tolist(), times, run.prior, family, [None] * 7)
    before = founders_of(labels.tolist())
    expected = sorted((joint for z, joint in joints.items() if z[:5] == before), reverse=True)
    found = sorted(search.log_joints.tolist(), reverse=True)
    assert len(found) == len(expected)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_the_pooled_covariance_is_drawn_to_its_diagonal_where_little_is_known() -> None:
    first = np.array([[1.0, 0.5], [0.5, 1.0]])
    scatters = np.array([[[6.0, 3.0], [3.0, 9.0]], [[50.0, 0.0], [0.0, 50.0]]])
    least = np.array([0.0, 0.25])
    assert pooled(np.array([4.0, 3.0]), scatters, first, least) is None

    def wider(scale: np.ndarray) -> np.ndarray:
        return scale + np.diag(RIDGE * np.diagonal(scale) + least)

    enough = pooled(np.array([4.0, 5.0]), scatters, first, least)  # 4 degrees of freedom are 2D
    np.testing.assert_allclose(enough, wider((scatters[1] + first) / 5.0))
    more = pooled(np.array([9.0, 2.0]), scatters, first, least)
    np.testing.assert_allclose(more, wider((scatters[0] + first) / 9.0))
    least, wide = np.zeros(4), np.eye(4) + 0.5
    drawn = pooled(np.array([5.0]), np.zeros((1, 4, 4)), wide, least)  # 4 of 8: half of the way
    np.testing.assert_allclose(drawn, wider((np.eye(4) + 0.25) / 5.0 + np.eye(4) * 0.05))


# ---------------------------------------------------------------- in a stream


def told(answers: Iterable[Answers]) -> list[Any]:
    return [line for each in answers for line in each.lines]


def stream(n: int, seed: int = 0) -> list[list[float]]:
    """Three clusters in four dimensions, wide in two of them."""
    found: list[list[float]] = groups(n, seed, dimension=4).tolist()
    return found


SMALL: dict[str, Any] = {"second_look": 300, "retain": 900}


def test_answers_and_state_do_not_depend_on_batches_or_a_restart() -> None:
    rows, settings = stream(2600), Settings(**SMALL)
    whole = Engine(settings, with_events=True)
    expected = [whole.advance(rows), whole.finish()]
    parts, at = Engine(settings, with_events=True), 0
    found = []
    for size in (150, 49, 1, 1, 311, 1, 700, 835, 552):
        found.append(parts.advance(rows[at : at + size]))
        at += size
        state = parts.dumps()
        parts = Engine.loads(state, settings, with_events=True)
        assert parts.dumps() == state
    assert at == len(rows)
    found.append(parts.finish())
    assert told(found) == told(expected)
    assert [e for each in found for e in each.events] == [e for each in expected for e in each.events]
    assert parts.dumps() == whole.dumps()
    assert any(line.revision for line in told(expected) if isinstance(line, Assignment))


def test_records_that_are_final_keep_their_labels() -> None:
    rows, engine = stream(2600), Engine(Settings(**SMALL))
    final, revised = -1, 0
    for start in range(0, len(rows), 100):
        for line in engine.advance(rows[start : start + 100]).lines:
            if not isinstance(line, Assignment):
                final = line.final_through
            elif line.revision:
                assert line.seq > final
                revised += 1
    assert final == len(rows) - SMALL["retain"] - 1 - len(rows) % 100
    assert revised


def test_what_is_given_is_not_learned() -> None:
    rows = stream(600)
    for options in ({"scale": 3.0}, {"second_look": 0}, {"retain": 0}, {"prior": "uniform"}):
        engine = Engine(Settings(**options))
        engine.advance(rows)
        before: Any = engine.search.likelihood if engine.search else None
        engine.finish()
        assert engine.search is not None
        assert engine.search.likelihood is before
        assert not any(line.revision for line in engine.finish().assignments)
    engine = Engine(Settings())
    engine.advance(rows)
    assert engine.search is not None
    family: Any = engine.search.likelihood
    engine.finish()
    assert engine.search.likelihood != family
    assert replace(engine.search.likelihood, scale=family.scale, degrees=family.degrees) == family


def test_looks_become_rarer() -> None:
    due = [seq for seq in range(512, 10_000, 512) if due_at(seq)]
    assert due == [512, 1024, 2048, 4096, 6144, 8192]
