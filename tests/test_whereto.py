"""Where a record would go: against what the engine answers, and a plain sum; and what it costs the state."""

from __future__ import annotations

import numpy as np
import pytest
from feeds import encoded, headlines

from streamdp.engine import Engine
from streamdp.records import Reject
from streamdp.settings import Settings

MODELS = {
    "text": Settings(beam=8),
    "greedy": Settings(beam=1),
}


@pytest.fixture(scope="module", params=MODELS)
def engine(request: pytest.FixtureRequest) -> Engine:
    made = Engine(MODELS[request.param])
    made.advance(headlines(700, 2))
    return made


def test_probabilities_are_those_of_an_answer(engine: Engine) -> None:
    before = engine.dumps()
    for record in headlines(760, 2)[700:]:
        found, scored = engine.whereto(record, 1000), engine.score([record]).assignments[0]
        assert not isinstance(found, Reject)
        by_label = {each.cluster: each.probability for each in found}
        assert by_label[scored.cluster] == pytest.approx(scored.probability, abs=2e-6)
        assert by_label[-1] == pytest.approx(scored.new_probability, abs=2e-6)
        assert [each.probability for each in found] == sorted(by_label.values(), reverse=True)
        assert sum(by_label.values()) == pytest.approx(
            1.0, abs=0.02
        )  # contested ones of other hypotheses apart
    assert engine.dumps() == before


def test_what_a_word_adds_is_the_difference_without_it(engine: Engine) -> None:
    text = " ".join(dict.fromkeys(str(headlines(760, 2)[730].value).split()))
    found = engine.whereto(text, 3)
    assert not isinstance(found, Reject)
    best = next(each for each in found if each.cluster >= 0)
    assert engine.search is not None
    slots = engine.search.head_slots()
    labels = engine.search.state.lineages.rows["label"][engine.search.state.pool.slots["lineage"][slots]]
    column = int(np.flatnonzero(labels == best.cluster)[0])

    now = engine.stories(records=False).clock.time

    def gain(text: str) -> float:
        assert engine.search is not None
        encoder = engine.stream().encoded.encoder.for_scoring()  # type: ignore[union-attr]
        encoded(encoder, [headlines(1, 1)[0].__class__(text, {})])
        logs = engine.search.weigh(encoder.take(np.array([now])), slots)[1][0]
        return float(logs[column] - logs[-1])

    for word, nats in best.words:
        without = " ".join(each for each in text.split() if each.lower() != word)
        assert nats == pytest.approx(gain(text) - gain(without), abs=0.006)
    assert [nats for _, nats in best.words] == sorted((nats for _, nats in best.words), reverse=True)


def test_meaning_is_a_reason_and_words_are_weighed_beside_it() -> None:
    """Of a text with a vector: what the vector adds, and each word what it adds while the vector stays."""
    rng = np.random.default_rng(1)
    topics = (("refund", "money", "back"), ("storm", "coast", "flood"))

    def record(topic: int, words: int) -> dict[str, object]:
        vector = np.eye(16)[topic] + rng.normal(0.0, 0.15, 16)
        return {"text": " ".join(rng.choice(topics[topic], words)), "vector": vector.tolist()}

    engine = Engine(Settings(texts=("text",), vector_field="vector", vector_weight=0.3, prior="crp"))
    engine.advance([record(i % 2, 4) for i in range(200)])
    assert engine.search is not None
    slots = engine.search.head_slots()
    labels = engine.search.state.lineages.rows["label"][engine.search.state.pool.slots["lineage"][slots]]
    asked = {"text": "refund money unheard", "vector": record(0, 1)["vector"]}
    found = engine.whereto(asked)  # type: ignore[arg-type]
    assert not isinstance(found, Reject)
    best = next(each for each in found if each.cluster >= 0)
    column = int(np.flatnonzero(labels == best.cluster)[0])

    def log_ratio(value: dict[str, object]) -> float:
        assert engine.search is not None
        encoder = engine.stream().encoded.encoder.for_scoring()  # type: ignore[union-attr]
        encoded(encoder, [headlines(1, 1)[0].__class__(value, {})])  # type: ignore[arg-type]
        logs = engine.search.weigh(encoder.take(np.array([0.0])), slots)[1][0]
        return float(logs[column] - logs[-1])

    said = dict(best.words)
    assert set(said) == {"meaning", "text=refund", "text=money"}
    assert [*said.values()] == sorted(said.values(), reverse=True)
    without = {
        "meaning": {"text": asked["text"]},
        "text=refund": asked | {"text": "money unheard"},
        "text=money": asked | {"text": "refund unheard"},
    }
    for reason, value in without.items():
        assert said[reason] == pytest.approx(log_ratio(asked) - log_ratio(value), abs=0.006)
    assert said["meaning"] > 0.0
    alone = engine.whereto({"text": "unheard", "vector": asked["vector"]})  # type: ignore[arg-type]
    assert not isinstance(alone, Reject)
    assert [word for each in alone for word, _ in each.words] == ["meaning"]
    bare = engine.whereto({"text": "refund"})  # type: ignore[arg-type]
    assert not isinstance(bare, Reject)
    assert {word for each in bare for word, _ in each.words} == {"text=refund"}


def test_vectors_lines_and_what_cannot_be_weighed() -> None:
    rng = np.random.default_rng(0)
    vectors = Engine(Settings(warmup=20))
    assert isinstance(vectors.whereto([1.0, 2.0]), Reject)
    vectors.advance(rng.normal(size=(60, 2)) + 20.0 * (np.arange(60) % 2)[:, None])
    found = vectors.whereto([20.0, 20.0])
    assert not isinstance(found, Reject)
    scored = vectors.score([[20.0, 20.0]]).assignments[0]
    assert (found[0].cluster, found[0].words) == (scored.cluster, [])
    assert found[0].probability == pytest.approx(scored.probability, abs=2e-6)
    refused = vectors.whereto("a text")
    assert isinstance(refused, Reject)
    assert refused.reason == "wrong_kind"
    lines = Engine(Settings(format="log"))
    lines.advance([f"connection from 10.0.0.{i} closed" for i in range(20)])
    (template,) = lines.whereto("connection from 10.0.0.99 closed")  # type: ignore[misc]
    assert template.cluster == 0


def test_a_census_says_what_the_list_of_clusters_says(engine: Engine) -> None:
    census, clusters = engine.census(), engine.clusters()
    assert sorted(
        zip(census.label.tolist(), census.size.tolist(), census.last_seq.tolist(), strict=True)
    ) == (sorted((c.cluster, c.size, c.last_seq) for c in clusters))
    firsts = dict(zip(census.label.tolist(), census.first_time.tolist(), strict=True))
    assert firsts == {c.cluster: c.first_time for c in clusters}
    some = {c.cluster for c in clusters[::3]}
    assert engine.clusters(some) == [c for c in clusters if c.cluster in some]
    tokens = {c.cluster: engine.tokens_of(c.cluster) for c in clusters}
    assert all(tokens[c.cluster] >= sum(count for _, count in c.words or ()) for c in clusters)
    base = engine.base_of(word for word, _ in clusters[0].words or ())
    assert base
    assert all(0.0 < share < 1.0 for share in base.values())
    assert engine.base_of(["nowhere"]) == {}
