"""Records of named categories: the family, its streams, and what is read and told of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest
from algebra import add, empty, log_predictive
from feeds import encoded
from hypothesis import given
from hypothesis import settings as few
from hypothesis import strategies as st
from oracle import families as fa

import streamdp
from streamdp import Engine, Settings, StreamDP, fit
from streamdp.beam.search import BeamSearch
from streamdp.decode.decoder import Decoder
from streamdp.encode.category_encoder import CategoryEncoder
from streamdp.encode.vocabulary import Vocabulary
from streamdp.errors import ConfigError
from streamdp.kernels.packed import pack, unpack
from streamdp.likelihoods import Categorical
from streamdp.likelihoods.categorical import FIELD, UNKNOWN, learned_from_records
from streamdp.offline.plan import Plan
from streamdp.records import FieldNames, Raw, Record, Reject
from streamdp.scoring.agreement import agreement
from streamdp.settings.blueprint import Blueprint
from streamdp.state.snapshot import SnapshotError

OS, COUNTRY = ("linux", "mac", "win"), ("de", "fr", "us")


def events(n: int, seed: int = 0, lacking: float = 0.2) -> list[dict[str, Any]]:
    """Records of three kinds by turns, some without a country."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        kind = [i % 3 if rng.random() < 0.95 else int(rng.integers(3)) for _ in range(2)]
        record = {"os": OS[kind[0]], "country": COUNTRY[kind[1]], "tier": "ab"[rng.integers(2)]}
        if rng.random() < lacking:
            del record["country"]
        found.append(record)
    return found


def batch_of(encoder: CategoryEncoder, records: list[Any]) -> Any:
    """The batch of records that none is refused of."""
    assert not any(encoded(encoder, [Record(value, {}) for value in records]))
    return encoder.take(np.zeros(len(records)))


def beam_over(records: list[Any]) -> tuple[BeamSearch, CategoryEncoder]:
    """A greedy beam that has taken records in."""
    plan = Blueprint(Settings(likelihood="categorical", beam=1, prior="crp"))
    beam, encoder = plan.search(None), CategoryEncoder(Vocabulary(1000))
    batch = batch_of(encoder, records)
    beam.ensure_words(encoder.vocabulary.unknown + 1)
    for _ in beam.run(batch):
        pass
    return beam, encoder


def values_of(assignments: Any, n: int) -> list[int]:
    """The newest label of each record."""
    newest = {line.seq: line.cluster for line in assignments}
    return [newest[i] for i in range(n)]


@few(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), max_size=12), st.integers(0, 3))
def test_what_a_field_may_hold_has_total_probability_one(past: Any, k: int) -> None:
    """Over the values seen and all unseen ones together, in any cluster, as the stream has it."""
    family, base = Categorical(0.3, 1.7), fa.FieldsSeen(1.7)
    members = [[(0, 1), (1, 1), (10 + v, 1)] for _, v in past]
    for x in members:
        base.absorb(x, [])
    own = [x for (j, _), x in zip(past, members, strict=True) if j == k]
    statistics = empty(family)
    for x in own:
        add(family, statistics, (np.array([w for w, _ in x]), np.ones(3, int)))
    each = []
    for v in {v for _, v in past} | {99}:
        x = [(0, 1), (1, 1), (10 + v, 1)]
        view = base.view(x)
        found = log_predictive(
            family, statistics, (np.array([0, 1, 10 + v]), np.ones(3, int)), {**view, 0: 0.0, 1: -view[1]}
        )
        assert found == pytest.approx(fa.Categorical(0.3).log_predictive(own, x, view), abs=1e-12)
        each.append(found)
    assert math.fsum(map(math.exp, each)) == pytest.approx(1.0, abs=1e-12)


def test_the_kernels_of_a_stream_sum_to_one() -> None:
    """Whatever is known already: scored are all values of a field, and one that was never seen."""
    engine = Engine(Settings(beam=4))
    engine.advance(events(60))
    for rest in ({}, {"country": "de"}, {"planet": "mars"}):
        lines = engine.score([{"os": value, **rest} for value in (*OS, "plan9")]).assignments
        beside = engine.score([rest]).assignments[0].log_predictive if rest else 0.0
        total = math.fsum(math.exp(line.log_predictive - beside) for line in lines)
        assert total == pytest.approx(1.0, abs=1e-6)


def test_a_field_that_is_missing_counts_for_nothing() -> None:
    records = [{"os": "linux", "country": "de"}] * 3 + [{"os": "linux"}] * 2
    beam, encoder = beam_over(records)
    ids = encoder.vocabulary.ids
    learned = beam.words.learned
    assert learned.counts[[0, ids["os"], ids["country"], ids["country=de"]]].tolist() == [5, 5, 3, 3]
    assert learned.values[[ids["os"], ids["country"]]].tolist() == [1, 1]
    statistics, family = empty(Categorical()), Categorical()
    base = family.measure(learned)
    for record in records:
        x = batch_of(encoder, [record])
        add(family, statistics, (x.words, x.counts))
    country = (np.array([0, ids["country"], ids["country=de"]]), np.ones(3, int))
    # 3 of the 3 records that have a country; beta (1 + 1) of prior mass, of which 3 / (3 + 1) is for it
    expected = math.log((3 + 0.4 * 0.75) / (3 + 0.4))
    assert log_predictive(family, statistics, country, base) == pytest.approx(expected)


def test_an_unknown_field_says_nothing() -> None:
    engine = Engine(Settings())
    engine.advance(events(90))
    one, two = engine.score([{"os": "mac"}, {"os": "mac", "shoe": "42", "hat": "red"}]).assignments
    assert two.cluster == one.cluster
    assert two.log_predictive == pytest.approx(one.log_predictive, abs=1e-6)
    assert two.probability == pytest.approx(one.probability, abs=1e-6)


def test_learned_as_by_a_stream() -> None:
    beam, encoder = beam_over(events(80))
    batch = batch_of(encoder, events(80))
    again, found = learned_from_records(batch.offsets, batch.words), beam.words.learned
    size = len(encoder.vocabulary.words)
    for name in ("counts", "field", "values"):
        assert np.array_equal(getattr(again, name), getattr(found, name)[:size]), name
    assert np.array_equal(again.counters, found.counters)


def test_values_that_are_forgotten_leave_their_fields() -> None:
    beam, encoder = beam_over([{"os": "linux"}, {"os": "mac"}, {"os": "mac", "tier": "a"}])
    ids, learned = encoder.vocabulary.ids, beam.words.learned
    gone = np.array([ids["os=linux"], ids["tier"], ids["tier=a"]])
    beam.forget_words(gone)
    assert learned.counts[ids["os"]] == 2
    assert learned.values[[ids["os"], ids["tier"]]].tolist() == [1, 0]
    assert (learned.counts[gone] == 0).all()
    assert (learned.field[gone] == UNKNOWN).all()
    assert learned.field[ids["os"]] == FIELD
    assert not any(learned.counters.tolist())  # they are of texts


def test_a_stream_that_forgets_values_goes_on() -> None:
    """More values than there is room for, in time: those of clusters that have closed give way."""
    settings = Settings(max_words=300, retain=200, decay="window", decay_scale=100.0, second_look=0)
    engine = Engine(settings)
    told = [{"kind": f"k{i // 400}", "user": f"u{i // 40}", "page": f"p{i % 3}"} for i in range(12_500)]
    engine.advance(told)
    assert engine.counters()["words_evicted"] > 100
    again = Engine.loads(engine.dumps(), settings)
    assert again.dumps() == engine.dumps()
    more = told[-50:]
    assert again.advance(more) == engine.advance(more)


@pytest.mark.parametrize(
    ("name", "places", "value"),
    [
        ("field", [1], 7),
        ("field", [2], 10**6),
        ("field", [2], UNKNOWN),
        ("field", [0], 1),
        ("learned", [2], 9),
    ],
)
def test_a_state_whose_fields_do_not_agree_is_refused(name: str, places: list[int], value: int) -> None:
    engine = Engine(Settings())
    engine.advance(events(60))
    body = msgspec.msgpack.decode(engine.dumps())
    clusters = body["state"]["clusters"]
    changed = unpack(clusters[name]).astype(np.int64)
    changed[places] = value
    clusters[name] = pack(changed)
    with pytest.raises(SnapshotError, match="damaged"):
        Engine.loads(msgspec.msgpack.encode(body))


@pytest.mark.parametrize("lacking", [0.0, 0.3])
def test_the_kinds_are_found_and_a_state_goes_on(lacking: float) -> None:
    settings, records = Settings(), events(600, lacking=lacking)
    whole, first = Engine(settings, with_events=True), Engine(settings, with_events=True)
    answers = whole.advance(records)
    half = first.advance(records[:311])
    second = Engine.loads(first.dumps(), settings, with_events=True)
    rest = second.advance(records[311:])
    assert second.dumps() == whole.dumps()
    assert [*half.lines, *rest.lines] == answers.lines
    assert [*half.events, *rest.events] == answers.events
    labels = values_of([*answers.assignments, *whole.finish().assignments], 600)
    assert agreement([i % 3 for i in range(600)], labels).nmi > 0.6


def test_a_cluster_is_told_by_what_sets_it_apart() -> None:
    engine = Engine(Settings(), with_events=True)
    answers = engine.advance(events(600))
    for cluster in engine.clusters()[:3]:
        assert cluster.words is not None
        assert cluster.mean is None
        kind = OS.index(cluster.words[0][0].removeprefix("os="))
        assert cluster.words[1][0] == f"country={COUNTRY[kind]}"
        assert not {"os", "country", "tier", ""} & {word for word, _ in cluster.words}
        assert all(f"os={OS[kind]}" in said for said in cluster.samples[:1])
    born = answers.events[0]
    assert born.event == "born"
    assert born.words is not None
    assert {word for word, _ in born.words} <= {f"{k}={v}" for k, v in events(1)[0].items()}


def test_a_set_is_fitted_and_a_stream_begins_there() -> None:
    records = events(150)
    found = fit(records, Settings(), Plan(rounds=20))
    assert agreement([i % 3 for i in range(150)], found.labels).nmi > 0.6
    told = found.clusters()[0].words
    assert told is not None
    assert told[0][0].startswith(("os=", "country="))
    engine = found.to_engine()
    assert engine.advance(records[:3]).assignments[0].cluster == found.labels[0]


def test_names_and_values_with_signs_are_kept_apart() -> None:
    encoder = CategoryEncoder(Vocabulary(100))
    batch = batch_of(encoder, [{"a=b": "c"}, {"a": "b=c"}, {"a\\": "=c"}, {"a": ""}])
    assert len(set(batch.words.tolist())) == len(encoder.vocabulary) == 8
    assert encoder.sizes(batch).tolist() == [1, 1, 1, 1]


def test_a_full_vocabulary_leaves_new_values_out() -> None:
    encoder = CategoryEncoder(Vocabulary(4))
    found = encoded(encoder, [Record({"a": "x"}, {}), Record({"a": "y"}, {}), Record({"a": "z"}, {})])
    assert [None if each is None else each.reason for each in found] == [None, "empty", "empty"]
    assert encoder.vocabulary.dropped == 2


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"os": "linux", "n": 3, "ok": True, "none": None}, {"os": "linux", "n": "3", "ok": "true"}),
        ({"os": "linux", "n": 3.0}, {"os": "linux", "n": "3"}),
    ],
)
def test_what_is_a_category(value: Mapping[str, Any], expected: dict[str, str]) -> None:
    engine = Engine(Settings())
    engine.advance([value])
    assert engine.clusters()[0].words == [(f"{k}={v}", 1) for k, v in sorted(expected.items())]


def test_what_is_no_category() -> None:
    with pytest.raises(TypeError, match="the value of a record is"):
        Engine(Settings()).advance([{"os": "linux", "load": {"five": 0.5}}])
    engine = Engine(Settings())
    (refused,) = engine.advance([{"os": "linux", "load": [0.5]}]).rejects
    assert (refused.reason, "field 'load' is no category" in refused.detail) == ("wrong_type", True)
    (refused,) = engine.advance([{"os": "linux"}, {"os": "linux", "load": 0.5}]).rejects
    assert (refused.reason, "field 'load' is no category" in refused.detail) == ("wrong_type", True)
    reasons = [each.reason for each in engine.advance(["a text", [1.0, 2.0], {"load": 0.5}]).rejects]
    assert reasons == ["wrong_kind", "wrong_kind", "wrong_type"]
    words = Engine(Settings())
    words.advance(["a text"])
    assert [each.reason for each in words.advance([{"os": "linux"}]).rejects] == ["wrong_kind"]


def read(line: bytes, **options: Any) -> Record | Reject:
    """What a decoder of categories makes of a line."""
    return Decoder(**options).decode(Raw(line, {"line": 1}, 0.0))


@pytest.mark.parametrize(
    ("line", "named", "expected"),
    [
        (b'{"os": "linux", "n": 3, "id": "x", "time": 5, "cluster": 7}', (), {"os": "linux", "n": "3"}),
        (b'{"os": "linux", "n": 3}', ("n",), {"n": "3"}),
        (b'{"os": null, "n": false, "e": ""}', (), {"n": "false"}),
        (b'{"os": "linux", "tags": ["x"]}', ("os",), {"os": "linux"}),
    ],
)
def test_objects_are_read(line: bytes, named: tuple[str, ...], expected: dict[str, str]) -> None:
    found = read(line, categories=FieldNames(named))
    assert isinstance(found, Record)
    assert found.value == expected


@pytest.mark.parametrize(
    ("line", "named", "reason", "detail"),
    [
        (b'{"os": "linux", "tags": ["x"]}', (), "wrong_type", "field 'tags' is no category"),
        (b'{"os": "linux", "load": 0.5}', (), "wrong_type", "--fields names those to use"),
        (b'{"load": 0.5}', ("os", "n"), "missing_field", "there is no value in 'os' or 'n'"),
        (b'{"os": null}', (), "missing_field", "there is no field with a value"),
        (b"[1]", (), "not_an_object", "not an object"),
        (b"{", (), "not_json", ""),
    ],
)
def test_objects_are_refused(line: bytes, named: tuple[str, ...], reason: str, detail: str) -> None:
    found = read(line, categories=FieldNames(named))
    assert isinstance(found, Reject)
    assert found.reason == reason
    assert detail in found.detail


def test_columns_are_read() -> None:
    header = ["os", "country", "text", "cluster"]
    found = read(b"linux, ,hello,3", format="csv", header=header, categories=FieldNames())
    assert isinstance(found, Record)
    assert found.value == {"os": "linux", "text": "hello"}
    found = read(b"linux,de,hello,3", format="csv", header=header, categories=FieldNames(("country",)))
    assert isinstance(found, Record)
    assert found.value == {"country": "de"}
    found = read(b",,,3", format="csv", header=header, categories=FieldNames())
    assert isinstance(found, Reject)
    assert found.reason == "missing_field"
    with pytest.raises(ValueError, match="no column 'planet'"):
        Decoder(format="csv", header=header, categories=FieldNames(("planet",)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fields": ("os",), "likelihood": "gaussian"}, "fields are for the categorical likelihood"),
        ({"fields": ("os",), "format": "text"}, "text has none"),
        ({"likelihood": "categorical", "base_concentration": 2.0}, "base_concentration has no meaning"),
        ({"likelihood": "categorical", "normalise": True}, "normalise has no meaning"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Engine(Settings(**given))


def test_named_fields_alone_count() -> None:
    engine = Engine(Settings(fields=("os",)))
    engine.advance(events(30))
    assert {word.partition("=")[0] for c in engine.clusters() for word, _ in c.words or ()} == {"os"}


def test_in_one_call_and_as_river_has_it() -> None:
    records = events(300)
    labels = values_of(streamdp.cluster(records, beam=4), 300)
    assert agreement([i % 3 for i in range(300)], labels).nmi > 0.6
    model = StreamDP(beam=4)
    for record in records:
        model.learn_one(record)
    assert model.predict_one({"os": "linux", "country": "de"}) == model.predict_one({"os": "linux"})
    assert model.score_one({"os": "plan9"}) > model.score_one({"os": "linux"})
    assert model.predict_one({"planet": "mars"}) is not None
    assert math.fsum(model.predict_proba_one({"os": "linux"}).values()) == pytest.approx(1.0)
    again = StreamDP.__new__(StreamDP)
    again.__setstate__(model.__getstate__())
    for one in (model, again):
        one.learn_one({"os": "win", "n": 3, "ok": False, "none": None})
    assert again.clusters == model.clusters
    with pytest.raises(ValueError, match="feature 'load' is no category"):
        model.learn_one({"os": "win", "load": 0.5})
