"""Streams under a mixture of a known number of components: never more clusters, and exact where it can be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from commands import fail, newest_lines, succeed
from feeds import record
from nine_streams import lines_of, write
from oracle.enumeration import log_sum_exp, partitions
from posterior import Problem

from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.likelihoods.base import Moments
from streamdp.records import Assignment
from streamdp.settings import Settings
from streamdp.settings.assemble import build_likelihood, build_prior

ROWS = np.array([[0.0, 9.0], [1.0, 8.0], [30.0, 0.0], [7.0, 7.0], [28.0, 2.0], [0.0, 40.0], [2.0, 2.0]])


def test_a_beam_that_drops_nothing_is_exact() -> None:
    settings = Settings(
        prior="finite-mixture",
        components=3,
        concentration=1.7,
        likelihood="gamma-poisson",
        warmup=6,
        beam=256,
        slack=600.0,
    )
    rows = ROWS[:6]
    problem = Problem.of(rows, build_likelihood(settings, Moments.of(rows)))
    prior = build_prior(settings, sparse=False)
    found = [z for z in partitions(len(rows)) if len(set(z)) <= 3]
    joints = [prior.log_probability(z) + problem.log_likelihood(z) for z in found]
    engine = Engine(settings)
    lines = engine.advance(record(x, i + 1) for i, x in enumerate(rows.tolist())).lines
    lines += engine.finish().lines
    assert engine.log_evidence == pytest.approx(log_sum_exp(joints), rel=1e-9)
    assert engine.log_joint == pytest.approx(max(joints), rel=1e-9)
    newest = {line.seq: line.cluster for line in lines if isinstance(line, Assignment)}
    labels = [newest[seq] for seq in range(len(rows))]
    assert prior.log_probability(labels) + problem.log_likelihood(labels) == pytest.approx(max(joints))


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("beam", [1, 16])
def test_never_more_clusters_than_components(components: int, beam: int) -> None:
    """Though every record is far from all others."""
    settings = Settings(prior="finite-mixture", components=components, likelihood="gamma-poisson", beam=beam)
    rng = np.random.default_rng(1)
    engine = Engine(settings)
    for i, scale in enumerate(10.0 ** rng.uniform(0.0, 5.0, 300)):
        engine.advance([record(rng.poisson(scale, 2).astype(float).tolist(), i + 1)])
        assert len(engine.clusters()) <= components
    assert engine.seq == 300
    assert engine.counters()["clusters_closed"] == 0
    assert len(engine.clusters()) == components
    stored = engine.dumps()
    again = Engine.loads(stored, settings)
    more = [record([1e6, 3.0], 301), record([0.0, 0.0], 302)]
    assert again.advance(more) == engine.advance(more)
    assert again.dumps() == engine.dumps()


def test_a_record_scored_where_no_cluster_can_be_founded() -> None:
    engine = Engine(Settings(prior="finite-mixture", components=1, likelihood="gamma-poisson", warmup=2))
    engine.advance(record(x, i + 1) for i, x in enumerate(ROWS.tolist()))
    (line,) = engine.score([record([1e6, 1e6], 9)]).lines
    assert isinstance(line, Assignment)
    assert line.cluster == engine.clusters()[0].cluster
    assert line.probability == pytest.approx(1.0)


def test_the_command_line(tmp_path: Path) -> None:
    write(tmp_path, lines_of("gamma-poisson"))
    run = ("consume", "--file", "in.jsonl", "--prior", "finite-mixture", "--likelihood", "gamma-poisson")
    code, message = fail(tmp_path, *run)
    assert code == 78
    assert "components must be given with finite-mixture" in message
    lines = newest_lines(succeed(tmp_path, *run, "--components", "3", "--warmup", "40"))
    assert len({line["cluster"] for line in lines}) == 3


def test_it_is_refused_where_it_says_nothing() -> None:
    with pytest.raises(ConfigError, match="components must be given"):
        Engine(Settings(prior="finite-mixture"))
    with pytest.raises(ConfigError, match="max_clusters has no meaning"):
        Engine(Settings(prior="finite-mixture", components=3, max_clusters=2))
