"""One vector beside the other fields of a record: its likelihood, its streams, and what is refused of it."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import fail, succeed, survives_sigkill
from feeds import texts
from hypothesis import given
from hypothesis import strategies as st
from models import NORTH, beside, pair, shaped
from oracle import vector_families as va
from oracle.enumeration import partitions
from posterior import EXCHANGEABLE, ORDERED, Problem, draw, p_value
from streams import encode, random_stream
from test_mixed import TEXTS, newest, problem_of

from streamdp import Engine, Settings, StreamDP, fit
from streamdp.beam.data.pool import ALIVE
from streamdp.beam.data.sizes import leave_class
from streamdp.beam.data.state import Incoming
from streamdp.beam.step.clusters import bag_of_slot, hide_slot, score_record, value_of
from streamdp.encode.batch import Batch
from streamdp.encode.beside import STEP, Seen, VectorBeside
from streamdp.encode.encoders import decoder_of
from streamdp.errors import ConfigError, StreamdpError
from streamdp.kernels.jit import entry
from streamdp.likelihoods import Categorical, Product, VonMisesFisher
from streamdp.offline.astar import astar
from streamdp.offline.plan import Plan
from streamdp.offline.refine import refine, task_of
from streamdp.offline.samplers import Gibbs, LinkGibbs, SequentiallyAllocated, SplitMerge
from streamdp.records import Record, Reject, plain
from streamdp.scoring.agreement import agreement
from streamdp.sharding import shard_settings

WEIGHT = 0.6
SPHERE = VonMisesFisher(2, (2.0, 9.0), NORTH, 0.7, WEIGHT)
NAIVE = va.VonMisesFisher([2.0, 9.0], NORTH, 0.7)
SETTINGS = Settings(texts=("title",), vector_field="embedding")


class Vectored(Problem):
    """Mixed records, some of which have a vector; log H of the vectors is by quadrature."""

    def __init__(self, n: int, seed: int = 1) -> None:
        words, _ = problem_of(n, seed)
        self.__dict__.update(words.__dict__, _log_h={})
        self.plain = words
        found = [beside(r) for r in random_stream(np.random.default_rng(seed), n, False, 6)[0]]
        self.vectors = [None if i == 1 else x or [0.6, 0.8] for i, x in enumerate(found)]
        rows = np.array([[math.nan] * 2 if x is None else x for x in self.vectors])
        data = words.data
        self.data = Batch(data.offsets, data.words, data.counts, rows, data.times)
        self.likelihood = Product(Categorical(0.5, text=TEXTS), SPHERE)

    def log_h(self, members: tuple[int, ...]) -> float:
        """log H of a set of records."""
        if members not in self._log_h:
            held = [x for i in members if (x := self.vectors[i]) is not None]
            self._log_h[members] = self.plain.log_h(members) + WEIGHT * NAIVE.log_marginal(held)
        return self._log_h[members]


# ---------------------------------------------------------------- the likelihood


@pytest.mark.parametrize("sampler", [Gibbs(), SplitMerge(3, scans=1, proposals=2), SequentiallyAllocated()])
def test_a_set_is_drawn_from_its_posterior(sampler: Any) -> None:
    problem, prior = Vectored(5), EXCHANGEABLE["crp"]
    posterior, chain = problem.posterior(prior), problem.chain(prior)
    for z in list(partitions(5))[::5]:
        chain.set_labels(np.array(z))
        assert chain.log_likelihood == pytest.approx(problem.log_likelihood(z), abs=1e-6)
    draws = draw(chain, [sampler, Gibbs()], 3000)
    assert p_value(draws, posterior) > 1e-4
    assert len(draws) > 10


def test_links_are_drawn_from_their_posterior() -> None:
    problem, prior = Vectored(5), ORDERED["exponential"]
    draws = draw(problem.chain(prior), [LinkGibbs()], 3000)
    assert p_value(draws, problem.posterior(prior)) > 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_a_star_finds_the_best_clustering(seed: int) -> None:
    problem, prior = Vectored(6, seed), EXCHANGEABLE["crp"]
    best = max(prior.log_probability(z) + problem.log_likelihood(z) for z in partitions(6))
    found = astar(problem.data, problem.likelihood, prior, base=problem.base)
    assert found.proved
    assert found.log_joint == pytest.approx(best, abs=1e-6)


def test_both_or_neither_have_vectors() -> None:
    problem = Vectored(5)
    problem.data = problem.plain.data
    with pytest.raises(ValueError, match="or neither"):
        problem.chain(EXCHANGEABLE["crp"])


# ---------------------------------------------------------------- streams


def tickets(n: int, seed: int = 0, lacking: float = 0.1) -> list[dict[str, Any]]:
    """Records of three kinds by turns, which only a direction tells apart: all have the same few words."""
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = []
    for i in range(n):
        vector = np.eye(8)[i % 3] + rng.normal(0.0, 0.12, 8)
        record = {"title": " ".join(rng.choice(["storm", "vote", "goal", "rain"], 2)), "embedding": vector}
        if rng.random() < lacking and i > 0:
            del record["embedding"]
        found.append(record)
    return found


def test_a_vector_tells_apart_what_words_do_not() -> None:
    records = tickets(600, lacking=0.0)
    truth = [i % 3 for i in range(600)]
    more: dict[str, Any] = {"texts": ("title",), "concentration": 10.0, "base_escape": 1.0}
    with_it = newest(Engine(Settings(vector_field="embedding", vector_weight=1.0, **more)), records)
    without = newest(Engine(Settings(**more)), records)
    assert agreement(with_it, truth).nmi > 0.8 > 0.3 > agreement(without, truth).nmi


REFINED = {"refine_every": 256, "retain": 1024, "refine_moves": 500, "second_look": 100}


@pytest.mark.parametrize("more", [{}, REFINED])
@pytest.mark.parametrize("cuts", [(1, 2, 3, 150), (511, 512, 600)])
def test_batches_and_restarts_change_nothing(more: dict[str, Any], cuts: tuple[int, ...]) -> None:
    settings = Settings(texts=("title",), vector_field="embedding", beam=4, **more)
    records = [{"title": "no vector yet"}, *tickets(1300)]
    whole, parts = Engine(settings), Engine(settings)
    told = whole.advance(records).lines.encode()
    marks, found = [0, *cuts, len(records)], b""
    for a, b in itertools.pairwise(marks):
        found += parts.advance(records[a:b]).lines.encode()
        parts = Engine.loads(parts.dumps(), settings)
    assert found == told
    assert parts.dumps() == whole.dumps()
    if more:
        assert whole.counters()["second_looks"] > 0


@pytest.mark.parametrize("more", [{"second_look": 100}, REFINED])
def test_rows_are_the_sums_of_the_vectors_that_clusters_hold(more: dict[str, Any]) -> None:
    """After second looks, unions of whole clusters and refinements, as if each had just joined."""
    settings = Settings(texts=("title",), vector_field="embedding", beam=4, **{**more, "retain": 2048})
    engine = Engine(settings)
    rng = np.random.default_rng(4)
    records: list[dict[str, Any]] = [{"title": r.value} for r in texts(1536, 3, 100)]
    for record in records[5:]:
        if rng.random() < 0.9:
            record["embedding"] = rng.normal(size=3)
    labels = newest(engine, records)
    counted, search, held = engine.counters(), engine.search, engine.retained()
    assert counted["second_looks"] > 0
    assert counted["clusters_merged"] > 0
    assert search is not None
    assert held is not None
    assert held.batch.vectors is not None
    pool, rows, family = search.state.pool, held.batch.vectors, search.likelihood.vector
    slots = search.head_slots()
    slots = slots[pool.state[slots] == ALIVE]
    names = search.state.lineages.rows["label"][pool.slots["lineage"][slots]]
    for slot, name in zip(slots.tolist(), names.tolist(), strict=True):
        mine = rows[np.array(labels) == name]
        assert len(mine) == pool.slots["size"][slot]
        mine = mine[~np.isnan(mine[:, 0])].astype(float)
        row = search.state.clusters.rows.block[slot]
        np.testing.assert_allclose(row[family.parts["total"]], mine.sum(axis=0), atol=1e-9)
        assert row[family.parts["count"]] == len(mine)
        log_h = family.power * row[family.parts["log_h"]]
        assert log_h == pytest.approx(family.log_marginal(mine), abs=1e-6)


@entry
def score_whole(model: Any, state: Any, scores: Any, bag: Any, slot: int, out: np.ndarray) -> None:
    """Predictives of all records of a cluster, as one, in the others, in nats, and of a new one."""
    whole = bag_of_slot(state.clusters, bag, slot)
    leave_class(state.sizes, state.pool, slot)
    hide_slot(state.clusters.bag, slot)
    score_record(state.clusters, model, state, scores, whole)
    for other in range(out.shape[0] - 1):
        if state.pool.state[other] == ALIVE and other != slot:
            value = value_of(state.clusters.bag, state, scores, other)
            out[other] = math.log(value) + scores.counters.reference
    out[-1] = math.log(scores.counters.new_value) + scores.counters.reference


def weighed_whole(weight: float, records: list[Any], founders: np.ndarray) -> dict[int, float]:
    """What the cluster that record 0 began has in the others, by what began them, and alone (-1).

    ``weight`` is that of the vectors, once all are there.
    """
    search = pair("exponential", "beside", 1).search()
    batch = encode([shaped("beside", record) for record in records], np.arange(len(records)), False)
    for _ in search.run(batch, founders):
        pass
    search.prepare(batch)
    state, bag = search.state, np.zeros((2, 100), np.int32)
    slot = int(np.flatnonzero((state.pool.state == ALIVE) & (state.pool.founder == 0))[0])
    out = np.full(len(state.pool.slots) + 1, math.nan)
    incoming = Incoming(-1, 0.0, bag[0], bag[1], np.zeros(0), -1)
    vector = search.model.family.vector._replace(power=weight)
    model = search.model._replace(family=search.model.family._replace(vector=vector))
    score_whole(model, state, search.scores, incoming, slot, out)
    others = np.flatnonzero(~np.isnan(out[:-1]))
    return {**dict(zip(state.pool.founder[others].tolist(), out[others].tolist(), strict=True)), -1: out[-1]}


def test_a_whole_cluster_is_weighed_by_its_vectors_too() -> None:
    """As a look at a cluster weighs it: beside what words say, the ratio of H of the vectors of both."""
    records = random_stream(np.random.default_rng(8), 12, False, 6)[0]
    founders = np.array([0, 1, 2] * 4)
    ours, words = weighed_whole(WEIGHT, records, founders), weighed_whole(0.0, records, founders)
    vectors = [beside(record) for record in records]

    def log_h(*kinds: int) -> float:
        return NAIVE.log_marginal([x for i, x in enumerate(vectors) if i % 3 in kinds and x is not None])

    assert ours.keys() == words.keys() == {-1, 1, 2}
    for other in (1, 2):
        expected = WEIGHT * (log_h(0, other) - log_h(other))
        assert ours[other] - words[other] == pytest.approx(expected, abs=1e-6)
    assert ours[-1] - words[-1] == pytest.approx(WEIGHT * log_h(0), abs=1e-6)


def test_a_lacking_vector_says_nothing() -> None:
    """The evidence of records without one is that of the other fields, whatever vectors are around."""
    more: dict[str, Any] = {"texts": ("title",), "concentration": 1e-3}
    engine, plain_engine = Engine(Settings(vector_field="embedding", **more)), Engine(Settings(**more))
    first = {"title": "storm rain"}
    records = [{**first, "embedding": [-1.0 if i % 3 == 0 else 1.0, 0.0]} for i in range(60)] + [first] * 2
    plain_engine.advance([first] * 62)
    lines = engine.advance(records).assignments
    assert {line.cluster for line in lines} == {0}
    assert engine.clusters()[0].words == plain_engine.clusters()[0].words
    lone, theirs = engine.score([first]).assignments[0], plain_engine.score([first]).assignments[0]
    assert lone.log_predictive == pytest.approx(theirs.log_predictive, rel=1e-12)
    near, far = engine.score([{"embedding": [1.0, 0.1]}, {"embedding": [-1.0, 0.0]}]).assignments
    assert near.log_predictive > far.log_predictive
    assert near.new_probability < far.new_probability


def test_what_is_compared_is_the_joint_given_older_records() -> None:
    """Samplers that move the latest records alone see the vectors of the older ones in their clusters."""
    settings = Settings(texts=("title",), vector_field="embedding", vector_weight=1.0, beam=1)
    records, problems = tickets(100, 3), []
    for retain in (40, 5000):
        engine = Engine(msgspec.structs.replace(settings, retain=retain))
        engine.advance(records)
        problems.append(task_of(engine))
    some, whole = problems
    free = np.isin(whole.seqs, some.seqs)
    chain = some.problem.chain(0, some.start)
    other, moved = whole.before.copy(), some.start.copy()
    place = np.flatnonzero(free)[-1]
    target = int(some.names[0]) if other[place] != some.names[0] else int(some.names[-1])
    other[place] = target
    moved[-1] = some.names.tolist().index(target)
    before = chain.log_joint
    chain.set_labels(moved)
    expected = whole.problem.chain(0, other).log_joint - whole.problem.chain(0, whole.before).log_joint
    assert chain.log_joint - before == pytest.approx(expected, abs=1e-4)
    assert refine(engine, Plan(seconds=0.5)).log_joint >= -math.inf


def test_a_set_is_fitted() -> None:
    settings = Settings(texts=("title",), vector_field="embedding", vector_weight=1.0)
    found = fit(tickets(150, 2, lacking=0.0), settings)
    assert agreement(found.labels, [i % 3 for i in range(150)]).nmi > 0.6


def test_erased_records_leave_no_vector_behind() -> None:
    engine = Engine(SETTINGS)
    engine.advance([Record(plain(r, {}).value, {}, id=str(i)) for i, r in enumerate(tickets(40))])  # type: ignore[union-attr]
    held = engine.retained()
    assert held is not None
    assert not np.isnan(held.batch.vectors[33]).any()  # type: ignore[index]
    engine.forget([33], ())
    left = engine.retained()
    assert left is not None
    assert np.isnan(left.batch.vectors[33]).all()  # type: ignore[index]
    assert not np.isnan(left.batch.vectors[34]).any()  # type: ignore[index]


# ---------------------------------------------------------------- the centre


@given(
    st.lists(st.integers(0, 120), max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_the_centre_follows_the_stream_however_it_is_cut(cuts: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(120, 3)) + np.linspace(0.0, 4.0, 120)[:, np.newaxis] * [1.0, 0.0, 0.0]
    rows[rng.random(120) < 0.2] = np.nan
    whole, parts = VectorBeside("", 3), VectorBeside("", 3)
    whole.extend(rows)
    together, found = whole.take(learns=True), list[np.ndarray]()
    for a, b in itertools.pairwise([0, *sorted(cuts), 120]):
        parts.extend(rows[a:b])
        found.append(parts.take(learns=True))
        stored = parts.centre
        parts = VectorBeside("", 3)
        parts.resume(stored)
    np.testing.assert_array_equal(np.concatenate(found), together)
    units, mean = rows / np.sqrt(np.square(rows).sum(axis=1, keepdims=True)), np.zeros(3)
    come = list[int]()
    for i in range(120):
        if not np.isnan(rows[i, 0]):
            come.append(i)
            if len(come) % STEP == 0:
                mean = units[come].mean(axis=0)
        seen = (
            (units[i] - mean) / np.linalg.norm(units[i] - mean) if len(come) >= STEP else np.full(3, np.nan)
        )
        np.testing.assert_allclose(together[i], seen, rtol=1e-5, atol=1e-6)


def test_a_vector_by_itself_parts_a_stream_whose_vectors_lie_in_a_cone() -> None:
    rng = np.random.default_rng(3)
    topics = rng.normal(size=(5, 24)) + 8.0 * np.eye(24)[0]
    truth = rng.integers(5, size=800)
    rows = topics[truth] + 0.2 * rng.normal(size=(800, 24))
    settings = Settings(texts=("title",), vector_field="embedding", vector_weight=1.0)
    engine = Engine(settings)
    answers = engine.advance([{"title": "", "embedding": row} for row in rows.tolist()])
    last = {line.seq: line.cluster for line in answers.assignments}
    assert agreement([last[i] for i in range(100, 800)], truth[100:].tolist()).nmi > 0.9


# ---------------------------------------------------------------- from Python


def test_river_learns_from_mappings_that_hold_an_array() -> None:
    model = StreamDP(settings=SETTINGS, concentration=1.0)
    records = tickets(60, lacking=0.0)
    labels = [model.learn_predict_one(record) for record in records]
    assert None not in labels
    engine = Engine(msgspec.structs.replace(SETTINGS, concentration=1.0))
    assert labels == [a.cluster for a in engine.advance(records).assignments if a.revision == 0]
    assert model.predict_one({"title": "storm", "embedding": np.eye(8)[1]}) in labels
    with pytest.raises(ValueError, match=r"'embedding'.* has 2 numbers where this stream has 8"):
        model.learn_one({"title": "storm", "embedding": [1.0, 2.0]})
    with pytest.raises(ValueError, match="is no category"):
        StreamDP().learn_one({"title": "storm", "embedding": [1.0, 2.0]})


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("vector", "reason", "detail"),
    [
        ([1.0, 2.0], "wrong_length", "field 'embedding': its vector has 2 numbers where this stream has 8"),
        ([math.nan] + [1.0] * 7, "not_finite", "field 'embedding': a number in it is not finite"),
        ([0.0] * 8, "zero_vector", "field 'embedding': its vector is all zeros"),
        ([1e200] * 8, "too_large", "field 'embedding': a number in it is beyond"),
        ("far", "wrong_type", "field 'embedding' is no array of numbers: 'far'"),
        (3.0, "wrong_type", "field 'embedding' is no array of numbers: '3'"),
        ([1.0] * 200_000, "too_large", "field 'embedding' has 200,000 numbers; at most 131,072 are taken"),
        ([], "wrong_type", "field 'embedding' is no array of numbers: []"),
    ],
)
def test_vectors_that_are_refused(vector: Any, reason: str, detail: str) -> None:
    engine = Engine(SETTINGS)
    answers = engine.advance([*tickets(3), {"title": "storm", "embedding": vector}, *tickets(3)])
    (refused,) = answers.rejects
    assert isinstance(refused, Reject)
    assert refused.reason == reason
    assert refused.detail.startswith(detail)
    assert len([a for a in answers.assignments if a.revision == 0]) == 6


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"likelihood": "categorical"}, "vector_field: name the fields, texts or numbers"),
        ({"texts": ("embedding",)}, "'embedding' cannot be two of these"),
        ({"texts": ("title",), "format": "csv"}, "a cell of csv holds no vector"),
        ({"texts": ("title",), "normalise": True}, "normalise has no meaning"),
        ({"vector_weight": 0.5}, "vector_weight is for a vector beside other fields"),
        ({"texts": ("title",), "vector_weight": -1.0}, "vector_weight"),
    ],
)
def test_settings_without_a_meaning(given: dict[str, Any], message: str) -> None:
    settings = Settings(vector_field="embedding", **given)

    def begun() -> None:
        Engine(settings)
        decoder_of(settings, given.get("format", "jsonl"))

    with pytest.raises(ConfigError, match=message):
        begun()


def test_a_field_that_nobody_has_ends_the_run_with_one_line(tmp_path: Path) -> None:
    write(tmp_path, 30)
    code, line = fail(tmp_path, *RUN[:-1], "embeding")
    assert code == 65
    assert "none of the first 30 records has a field 'embeding': is it called so?" in line


def test_shards_have_no_vectors() -> None:
    with pytest.raises(ConfigError, match="vector"):
        shard_settings(SETTINGS, 2)


@pytest.mark.parametrize("numbers", [0, 3, 7, 9])
@pytest.mark.parametrize("part", ["total", "mean"])
def test_a_state_of_vectors_of_another_length_is_refused(part: str, numbers: int) -> None:
    engine = Engine(SETTINGS)
    engine.advance(tickets(20))
    stored = msgspec.msgpack.decode(engine.dumps())
    seen, place = stored["encoder"]["centre"], Seen._fields.index(part)
    assert len(seen[place][-1]) == 8 * 8
    seen[place] = [seen[place][0], [numbers], bytes(8 * numbers)]
    with pytest.raises(StreamdpError):
        Engine.loads(msgspec.msgpack.encode(stored), SETTINGS)


# ---------------------------------------------------------------- commands

RUN = (
    "consume", "--file", "in.jsonl", "--state", "state", "--output", "out", "--snapshot-every", "300",
    "--texts", "title", "--vector-field", "embedding",
)  # fmt: skip


def write(folder: Path, n: int) -> None:
    """Records as lines of JSON."""
    lines = [json.dumps({**r, "id": i}, default=np.ndarray.tolist) for i, r in enumerate(tickets(n, 5))]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")


def test_check_says_how_records_are_read(tmp_path: Path) -> None:
    write(tmp_path, 30)
    said = succeed(tmp_path, "check", "in.jsonl", *RUN[-4:]).decode()
    assert "words of 'title'; vector 'embedding'" in said
    found = succeed(tmp_path, "check", *RUN[-4:]).decode()
    assert "# vector beside them: VonMisesFisher, weight 0.15\n" in found


def test_sigkill_at_any_moment_changes_no_byte(tmp_path: Path) -> None:
    survives_sigkill(tmp_path, lambda folder: write(folder, 2_000), *RUN)
