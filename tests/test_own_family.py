"""A family, a prior and a decay from outside the package serve streams, chains and the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from algebra import add, empty, log_marginal, log_predictive, merge, remove
from commands import environment, fail, newest_lines, parsed, succeed
from families import assert_equal, statistics_of
from oracle.enumeration import log_sum_exp, partitions
from own_family import ExponentialGamma, waits
from posterior import Problem, draw, p_value
from scipy.stats import lomax
from toys.power_law import PowerLaw
from toys.square_root import SquareRoot

from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.likelihoods.base import Moments
from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.offline.samplers import Gibbs, LinkGibbs
from streamdp.priors import CRP, DistanceDependent
from streamdp.records import Record
from streamdp.settings import Settings
from streamdp.settings.assemble import build_likelihood, build_prior

ROOT = Path(__file__).resolve().parents[1]
FAMILY, PRIOR, DECAY = "own_family:ExponentialGamma", "toys.square_root:SquareRoot", "toys.power_law:PowerLaw"
ROWS = np.array([[0.3, 2.0], [0.5, 1.0], [4.0, 0.1], [0.2, 3.0], [6.0, 0.3], [1.0, 1.0]])
OWN = {
    "own prior": Settings(likelihood=FAMILY, prior=PRIOR, concentration=0.7, warmup=6, beam=256, slack=600.0),
    "own decay": Settings(
        likelihood=FAMILY,
        decay=DECAY,
        decay_scale=3.0,
        close_below=0.0,
        concentration=0.7,
        warmup=6,
        beam=256,
        slack=600.0,
    ),
}


def records(rows: Any) -> list[Record]:
    return [Record([float(v) for v in x], {"line": i + 1}) for i, x in enumerate(rows)]


def test_the_family_does_what_families_do() -> None:
    family = ExponentialGamma(2, 1.5, (0.5, 3.0))
    assert log_marginal(family, empty(family)) == pytest.approx(0.0, abs=1e-12)
    total, statistics = 0.0, empty(family)
    for n, x in enumerate(ROWS):
        sums = ROWS[:n].sum(axis=0)
        expected = lomax(1.5 + n, scale=np.array([0.5, 3.0]) + sums).logpdf(x).sum()
        assert log_predictive(family, statistics, x) == pytest.approx(expected, rel=1e-12)
        total += expected
        add(family, statistics, x)
        assert log_marginal(family, statistics) == pytest.approx(total, rel=1e-12)
    other = statistics_of(family, ROWS[:2])
    merge(family, other, statistics_of(family, ROWS[2:]))
    assert_equal(other, statistics)
    remove(family, other, ROWS[0])
    assert_equal(other, statistics_of(family, ROWS[1:]))
    with pytest.raises(ValueError, match="a record is 2 numbers above 0"):
        add(family, other, np.array([1.0, 0.0]))


@pytest.mark.parametrize("name", OWN)
def test_a_beam_that_drops_nothing_is_exact(name: str) -> None:
    settings = OWN[name]
    engine = Engine(settings)
    engine.advance(records(ROWS))
    prior = build_prior(settings, sparse=False)
    problem = Problem.of(ROWS, build_likelihood(settings, Moments.of(ROWS)))
    times = [0.0] * len(ROWS)
    joints = [prior.log_probability(z, times) + problem.log_likelihood(z) for z in partitions(len(ROWS))]
    assert engine.log_joint == pytest.approx(max(joints), rel=1e-9)
    assert engine.log_evidence == pytest.approx(log_sum_exp(joints), rel=1e-9)


@pytest.mark.parametrize("name", OWN)
def test_a_stored_engine_goes_on_as_if_nothing_had_happened(name: str) -> None:
    settings = OWN[name]
    whole, interrupted = Engine(settings), Engine(settings)
    for item in records(waits(60)):
        answers = whole.advance([item])
        assert interrupted.advance([item]) == answers
        interrupted = Engine.loads(interrupted.dumps(), settings)
    assert interrupted.dumps() == whole.dumps()
    assert interrupted.clusters() == whole.clusters()


def test_what_the_family_does_not_take_is_rejected() -> None:
    engine = Engine(OWN["own prior"])
    answers = engine.advance(records([*ROWS, [1.0, -1.0], [1.0, 2.0]]))
    assert [(reject.reason, reject.detail) for reject in answers.rejects] == [
        ("wrong_value", f"under the {FAMILY} likelihood a record is 2 numbers above 0")
    ]
    assert engine.seq == 7


CHAINS: dict[str, tuple[Any, Any]] = {
    "gibbs": (CRP(0.8), Gibbs()),
    "links": (DistanceDependent(0.8, PowerLaw(3.0), "seconds"), LinkGibbs()),
}


@pytest.mark.parametrize("name", CHAINS)
def test_samplers_draw_from_the_posterior(name: str) -> None:
    prior, move = CHAINS[name]
    problem = Problem.of(ROWS[:5], ExponentialGamma(2, 1.5, 0.5))
    counts = draw(problem.chain(prior), [move], 2000, 3)
    assert p_value(counts, problem.posterior(prior)) > 1e-3


def test_a_chain_of_ones_own_prior_knows_its_log_joint() -> None:
    problem = Problem.of(ROWS, ExponentialGamma(2, 1.5, 0.5))
    chain, prior = problem.chain(SquareRoot(0.7)), SquareRoot(0.7)
    for z in partitions(6)[::9]:
        chain.set_labels(np.array(z))
        assert chain.log_joint == pytest.approx(prior.log_probability(z) + problem.log_likelihood(z))
    with pytest.raises(ValueError, match="Gibbs is for exchangeable priors and the uniform process"):
        Gibbs()(chain)


def test_a_fit_with_ones_own_classes() -> None:
    rows = waits(60)
    own = Settings(likelihood=FAMILY, prior=PRIOR, warmup=0)
    with pytest.raises(ConfigError, match="SquareRoot"):
        fit(records(rows), own, Plan(rounds=2, seconds=None))
    assert len(set(fit(records(rows), own, Plan(method="beam")).labels)) == 3
    found = fit(records(rows), Settings(likelihood=FAMILY, prior="crp"), Plan(rounds=10, seconds=None))
    assert len(set(found.labels[::3].tolist())) == 1
    assert 3 <= len(set(found.labels.tolist())) <= 4


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let processes of their own find the classes as well."""
    places = [str(ROOT / "examples"), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(places))


@pytest.mark.usefixtures("importable")
def test_consume_and_resume(tmp_path: Path) -> None:
    lines = [json.dumps({"vector": x}) + "\n" for x in waits(400)]
    run = ("consume", "--likelihood", FAMILY, "--prior", PRIOR, "--file", "in.jsonl", "--output", "out")
    for folder, parts in (("whole", [400]), ("resumed", [250, 400])):
        (tmp_path / folder).mkdir()
        for part in parts:
            (tmp_path / folder / "in.jsonl").write_text("".join(lines[:part]))
            more = ("--state", "state", "--warmup", "50", "--snapshot-every", "60")
            succeed(tmp_path / folder, *run, *more, process=folder == "resumed")
    output = (tmp_path / "whole" / "out").read_bytes()
    assert (tmp_path / "resumed" / "out").read_bytes() == output
    assert len({line["cluster"] for line in newest_lines(output)[-30:]}) == 3
    clusters = parsed(succeed(tmp_path / "whole", "stories", "state", "--json", "--least", "1", *run[1:5]))
    assert sorted(round(float(cluster["title"].split()[0]) / 100.0) for cluster in clusters[:3]) == [0, 1, 6]


@pytest.mark.usefixtures("importable")
def test_the_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "own_family.py"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    sizes = [int(line.split()[0]) for line in done.stdout.splitlines()]
    assert sizes == pytest.approx([300, 300, 300], abs=15)


def test_what_cannot_be_imported_is_told(tmp_path: Path) -> None:
    code, message = fail(tmp_path, "consume", "--file", "-", "--likelihood", "no_such_module:Family")
    assert code == 78
    assert "no_such_module:Family cannot be imported" in message


ASK = "print(ExponentialGamma(2).log_marginal([np.ones(2)]))"


def test_where_a_family_is_from_does_not_matter(tmp_path: Path) -> None:
    """The same source under two names, and typed at a prompt, with one cache."""
    source = (ROOT / "examples" / "own_family.py").read_text().partition("\nif __name__")[0]
    (tmp_path / "one.py").write_text(source)
    (tmp_path / "two.py").write_text(source)
    programs = [f"from {name} import *; {ASK}" for name in ("one", "two")] + [f"{source}\n{ASK}"]
    found = set()
    for program in [*programs, *programs]:
        done = subprocess.run(
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env=environment() | {"STREAMDP_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found.add(done.stdout)
    assert len(found) == 1
