"""Records of categories, texts and numbers: what they are made into, their likelihood, and their streams."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import assignments, fail, succeed
from feeds import encoded
from hypothesis import given
from hypothesis import settings as few
from hypothesis import strategies as st
from models import mixed
from oracle import families as fa
from oracle.enumeration import partitions
from posterior import EXCHANGEABLE, ORDERED, Problem, draw, p_value
from streams import random_stream

from streamdp import Engine, Settings, StreamDP, fit
from streamdp.decode.decoder import Decoder
from streamdp.encode.category_encoder import LEVELS, CategoryEncoder, Intervals
from streamdp.encode.vocabulary import Vocabulary
from streamdp.errors import ConfigError
from streamdp.likelihoods import Categorical, HierarchicalPitmanYor
from streamdp.likelihoods.categorical import TEXT, UNKNOWN, learned_from_records
from streamdp.likelihoods.words import WORD_SPACE
from streamdp.offline.astar import Options, Search, astar
from streamdp.offline.plan import Plan
from streamdp.offline.prepare import Data
from streamdp.offline.refine import refine
from streamdp.offline.samplers import Gibbs, LinkGibbs
from streamdp.records import FieldNames, Raw, Record, Reject, plain
from streamdp.scoring.agreement import agreement
from streamdp.settings.assemble import distance_prior
from streamdp.sharding import shard_settings

NAMES = FieldNames(("product",), ("title", "body"), ("amount",))
SETTINGS = Settings(fields=("product",), texts=("title", "body"), numbers=("amount",))
KINDS = (
    ("card", "refund of a payment that was charged twice", 40.0),
    ("account", "password lost and the login locked", 3.0),
    ("parcel", "delivery late and the tracking lost", 90.0),
)


def tickets(n: int, seed: int = 0, lacking: float = 0.2) -> list[dict[str, Any]]:
    """Records of three kinds by turns, of which each part alone says little, and some lack one."""
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        product, words, amount = KINDS[i % 3]
        other = KINDS[int(rng.integers(3))]
        record = {
            "product": product if rng.random() < 0.8 else other[0],
            "title": " ".join(rng.choice([*words.split(), "please", "help", "now"], 5)),
            "amount": round(float(amount * rng.lognormal(0.0, 0.6)), 2),
            "body": "again please" if rng.random() < 0.3 else None,
        }
        for name in ("product", "amount"):
            if rng.random() < lacking:
                del record[name]
        found.append(record)
    return found


def newest(engine: Engine, records: Sequence[Any], size: int = 100) -> list[int]:
    """The newest label of each record, after the end."""
    labels: dict[int, int] = {}
    for start in range(0, len(records), size):
        labels |= {a.seq: a.cluster for a in engine.advance(records[start : start + size]).assignments}
    labels |= {a.seq: a.cluster for a in engine.finish().assignments}
    return [labels[i] for i in range(len(records))]


# ---------------------------------------------------------------- numbers


def bounds(word: str) -> tuple[float, float]:
    """The ends of an interval, from how it is written."""
    low, _, high = word.removesuffix("?").partition("=")[2].partition("..")
    return float(low or -math.inf), float(high or math.inf)


@few(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(-1e9, 1e9) | st.integers(0, 5).map(float), max_size=60),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
)
def test_a_number_is_in_its_intervals_and_these_in_each_other(
    values: list[float], asked: list[float]
) -> None:
    found = Intervals.of("n", values)
    assert Intervals("n", found.cuts).answers(asked[0]) == found.answers(asked[0])
    for number in [*values, *asked]:
        answers, (low, high) = found.answers(number), (-math.inf, math.inf)
        assert len(answers) <= LEVELS
        for question, answer in answers:
            assert question == "n" or bounds(question) == (low, high)
            inner = bounds(answer)
            assert (low == inner[0]) != (high == inner[1])
            assert low <= inner[0] <= number < inner[1] <= high
            low, high = inner
    if len(set(values)) > 1:
        halves = [found.answers(value)[0][1] for value in (min(values), max(values))]
        assert len(set(halves)) == 2
        assert {found.answers(value)[0][1] for value in values} == set(halves)


def test_numbers_are_divided_where_they_are_dense_by_round_numbers() -> None:
    values = np.random.default_rng(1).lognormal(3.0, 1.0, 1600)
    found = Intervals.of("amount", values)
    told = [found.answers(value)[-1][1] for value in values]
    _, sizes = np.unique(told, return_counts=True)
    assert len(sizes) == 2**LEVELS
    assert sizes.min() > 90
    assert sizes.max() < 110
    assert all(len(word) < len("amount=123.45..123.45") for word in told)
    assert Intervals.of("n", [2.0] * 9).answers(2.0) == []
    assert Intervals.of("n", []).answers(7.0) == []
    assert Intervals.of("n", [0.0] * 9 + [1.0] * 2).answers(0.0) == [("n", "n=..0.5")]


# ---------------------------------------------------------------- records


def encoder_of(vocabulary: int = 1000, names: FieldNames = NAMES) -> CategoryEncoder:
    return CategoryEncoder(Vocabulary(vocabulary), names)


def made(value: Any) -> Record:
    """A record as the engine hands it on."""
    found = plain(value, {})
    assert isinstance(found, Record)
    return found


def words_of(encoder: CategoryEncoder, records: Sequence[Any]) -> list[list[tuple[str, int]]]:
    """The bags of records, none of which is refused."""
    assert not any(encoded(encoder, [made(value) for value in records]))
    encoder.learn()
    batch, words = encoder.take(np.zeros(len(records))), encoder.vocabulary.words
    rows = [slice(*batch.offsets[i : i + 2]) for i in range(batch.size)]
    return [
        [(words[w] or "", n) for w, n in zip(batch.words[r].tolist(), batch.counts[r].tolist(), strict=True)]
        for r in rows
    ]


def test_what_a_record_is_made_into() -> None:
    encoder = encoder_of()
    some = {"product": "card", "title": "lost and lost", "body": "again", "amount": 3, "other": "x"}
    found = words_of(encoder, [some, {"amount": "40"}, {"body": "lost"}])
    assert found == [
        [
            ("", 1),
            ("product", 1),
            ("product=card", 1),
            ("amount", 1),
            ("amount=..20", 1),
            ("title", 4),
            ("title=again", 1),
            ("title=and", 1),
            ("title=lost", 2),
        ],
        [("", 1), ("amount", 1), ("amount=20..", 1)],
        [("", 1), ("title", 1), ("title=lost", 1)],
    ]
    assert encoded(encoder, [made(some), made({"body": "again"})]) == [None, None]
    assert encoder.sizes(encoder.take(np.zeros(2))).tolist() == [6, 1]
    scoring = encoder.for_scoring()
    assert encoded(scoring, [made({"title": "lost things here"})]) == [None]
    batch, unknown = scoring.take(np.zeros(1)), encoder.vocabulary.unknown
    assert sorted(batch.words[2:].tolist())[1:] == [unknown, unknown]


@pytest.mark.parametrize(
    ("value", "reason", "detail"),
    [
        ({"amount": "much"}, "wrong_type", "field 'amount' is no number: 'much'"),
        ({"amount": True, "product": "card"}, "wrong_type", "field 'amount' is no number"),
        ({"amount": "1_000"}, "wrong_type", "field 'amount' is no number: '1_000'"),
        ({"amount": math.inf}, "not_finite", "field 'amount' is not a finite number"),
        ({"amount": "nan"}, "not_finite", "field 'amount' is not a finite number"),
        ({"product": 0.5}, "wrong_type", "field 'product' is no category"),
        ({"other": "x"}, "empty", "none of the fields has a value"),
        ({"title": "!?"}, "empty", "none of the fields has a value"),
        ({"title": "word " * 100_001}, "too_many_tokens", "tokens"),
        ("a text", "wrong_kind", "it holds a text"),
        ([1.0], "wrong_kind", "it holds a vector"),
    ],
)
def test_records_that_are_refused(value: Any, reason: str, detail: str) -> None:
    for waits in (True, False):
        encoder = encoder_of()
        if not waits:
            words_of(encoder, tickets(20))
        found = encoded(encoder, [made(value)])[0]
        assert found is not None
        assert found.reason == reason
        assert detail in found.detail


def read(line: bytes, **options: Any) -> Record | Reject:
    return Decoder(categories=NAMES, **options).decode(Raw(line, {"line": 1}, 0.0))


def test_objects_and_rows_are_read() -> None:
    found = read(b'{"product": 7, "title": "a text", "amount": 2.5, "other": [1], "id": "x", "time": 5}')
    assert isinstance(found, Record)
    assert (found.value, found.time) == ({"product": "7", "title": "a text", "amount": 2.5}, 5.0)
    refused = read(b'{"product": 2.5}')
    assert isinstance(refused, Reject)
    assert refused.reason == "wrong_type"
    header = ["product", "title", "body", "amount"]
    row = read(b"card,lost,,2.5", format="csv", header=header)
    assert isinstance(row, Record)
    assert row.value == {"product": "card", "title": "lost", "amount": "2.5"}


# ---------------------------------------------------------------- the likelihood


def test_the_words_of_a_text_have_total_probability_one() -> None:
    """Whatever else a record has: scored are all words that are known, and one of those that are not."""
    engine = Engine(Settings(fields=("product",), texts=("title",), beam=4))
    engine.advance([{"product": t.get("product"), "title": t["title"]} for t in tickets(60)])
    words = {word for _, text, _ in KINDS for word in text.split() if len(word) > 1}
    words |= {"please", "help", "now", "unheard"}
    assert engine.search is not None
    alike = {"unheard": WORD_SPACE - int(engine.search.words.learned.counters.seen)}
    for rest in ({}, {"product": "card"}):
        beside = engine.score([rest]).assignments[0].log_predictive if rest else 0.0
        lines = engine.score([{**rest, "title": word} for word in words]).assignments
        found = zip(words, lines, strict=True)
        total = math.fsum(alike.get(word, 1) * math.exp(line.log_predictive - beside) for word, line in found)
        assert total == pytest.approx(1.0, abs=1e-6)


TEXTS = HierarchicalPitmanYor(base_concentration=1.5, word_discount=0.4, discount=0.2, escape=1.5)


def log_h_of_texts(texts: Sequence[Any], base: dict[int, float]) -> float:
    """The closed form that a set has: one table for each word of a cluster."""
    held: Counter[int] = Counter()
    for text in texts:
        held.update(dict(text))
    b1, d = TEXTS.base_concentration, TEXTS.word_discount
    total = math.fsum(math.log(b1 + d * t) for t in range(len(held)))
    for w, n in held.items():
        total += math.log(base[w]) + math.fsum(math.log(r - d) for r in range(1, n))
    return total - math.fsum(math.log(b1 + n) for n in range(held.total()))


def problem_of(n: int, seed: int = 1) -> tuple[Problem, list[Any]]:
    """A set of mixed records, as samplers take it and as the oracle does."""
    records = [mixed(r) for r in random_stream(np.random.default_rng(seed), n, False, 6)[0]]
    problem = Problem.__new__(Problem)
    problem.n, problem._log_h = n, {}
    problem.records = [(np.array([w for w, _ in r]), np.array([c for _, c in r])) for r in records]
    problem.data = Data.of_words(problem.records, np.arange(float(n)))
    problem.likelihood = Categorical(0.5, text=TEXTS)
    problem.base = problem.likelihood.base_of_records(problem.data.offsets, problem.data.words)
    return problem, records


def test_of_a_set_every_record_counts_as_by_definition() -> None:
    problem, records = problem_of(9, seed=2)
    base = {w: abs(float(p)) for w, p in enumerate(problem.base)}
    naive, named = fa.Categorical(0.5), 0.0
    parts = [fa.apart(x) for x in records]
    for i, (x, _) in enumerate(parts):
        named += naive.log_predictive([y for y, _ in parts[:i]], x, base)
        found = named + log_h_of_texts([text for _, text in parts[: i + 1]], base)
        assert problem.log_h(tuple(range(i + 1))) == pytest.approx(found, abs=1e-9)
    met = Counter(w for _, text in parts for w, _ in text)  # as if each record had a cluster of its own
    norm = met.total() + TEXTS.escape
    assert {w: base[w] for w in met} == pytest.approx(
        {w: (n - TEXTS.discount) / norm for w, n in met.items()}
    )
    assert base[TEXT] == 1.0
    assert math.isfinite(found)


@pytest.mark.parametrize("prior", ["crp", "exponential"])
def test_a_set_is_drawn_from_its_posterior(prior: str) -> None:
    model = {**EXCHANGEABLE, **ORDERED}[prior]
    problem, _ = problem_of(5)
    posterior = problem.posterior(model)
    chain = problem.chain(model)
    for z in list(partitions(5))[::7]:
        chain.set_labels(np.array(z))
        assert chain.log_likelihood == pytest.approx(problem.log_likelihood(z), abs=1e-9)
    draws = draw(chain, [Gibbs() if prior == "crp" else LinkGibbs()], 4000)
    assert p_value(draws, posterior) > 1e-4
    assert len(draws) > 10


@pytest.mark.parametrize("seed", range(4))
def test_a_star_finds_the_best_clustering(seed: int) -> None:
    problem, _ = problem_of(6, seed)
    prior = EXCHANGEABLE["crp"]
    best = max(prior.log_probability(z) + problem.log_likelihood(z) for z in partitions(6))
    found = astar(problem.data, problem.likelihood, prior, base=problem.base)
    assert found.proved
    assert found.log_joint == pytest.approx(best, abs=1e-9)


def test_texts_are_looked_ahead_at_after_many_copies() -> None:
    # a record, its text, a field with two values, and three words, of which the last text repeats one
    problem, _ = problem_of(8)
    counts = np.array(
        [[2, 1, 0], [1, 0, 2], [0, 2, 1], [2, 0, 1], [1, 1, 1], [0, 1, 2], [1, 2, 0], [40, 0, 0]]
    )
    problem.records = [
        (np.array([0, 2, 3 + i % 2, 1, *np.flatnonzero(c) + 5]), np.array([1, 1, 1, c.sum(), *c[c > 0]]))
        for i, c in enumerate(counts)
    ]
    problem.data = Data.of_words(problem.records)
    problem.base = np.array([0.0, -1.0, -2.0, 1.0, 1.0, -0.3, -0.3, -0.3])
    first = []
    for score in ("replica", "trivial"):
        chosen = Options(score=score, queue=1, base=problem.base)
        states = Search(problem.data, problem.likelihood, EXCHANGEABLE["crp"], chosen)
        states.next_best()
        first.append(states.tree.f[1])
    expected = 0.0
    for i in range(1, 8):
        best = -math.inf
        for members in ((0,), ()):
            log_h = [problem.log_h((*members, *[i] * copies)) for copies in range(8)]
            gains = np.diff(log_h)
            falls = np.flatnonzero(np.diff(gains) <= 0.0)
            best = max(best, float(gains[falls[0] if len(falls) else -1]))
        expected += best
    assert first[0] - first[1] == pytest.approx(expected, abs=1e-8)


def test_what_is_learned_of_a_set_agrees_with_its_parts() -> None:
    problem, records = problem_of(30, seed=5)
    learned = learned_from_records(problem.data.offsets, problem.data.words, texts=True)
    texts = [x for x in records if any(w == TEXT for w, _ in x)]
    assert learned.counts[TEXT] == sum(len(fa.apart(x)[1]) for x in texts) > 0
    assert learned.values[TEXT] == len({w for x in texts for w, _ in fa.apart(x)[1]})
    assert (learned.field[9:][learned.counts[9:] > 0] == TEXT).all()


# ---------------------------------------------------------------- streams


@pytest.mark.parametrize("lacking", [0.0, 0.3])
def test_three_kinds_are_found_that_no_part_alone_shows(lacking: float) -> None:
    records, truth = tickets(900, lacking=lacking), [i % 3 for i in range(900)]

    def nmi(**named: tuple[str, ...]) -> float:
        labels = newest(Engine(Settings(**named, concentration=1.0)), records)
        return agreement(truth, labels).nmi

    together = nmi(fields=("product",), texts=("title", "body"), numbers=("amount",))
    assert together > 0.85
    assert together > nmi(fields=("product",), texts=("title", "body")) > nmi(texts=("title", "body")) - 0.05


def test_a_text_alone_in_its_record_is_scored_as_a_text() -> None:
    titles = [
        ticket["title"] + f" case{i // 40} case{i // 40}" * (i % 2) for i, ticket in enumerate(tickets(300))
    ]
    alone, field = (
        Engine(Settings(beam=4, prior="crp", concentration=2.0, base_escape=1000.0, **named)).advance(records)
        for named, records in (
            ({}, titles),
            ({"texts": ("title",)}, [{"title": title} for title in titles]),
        )
    )
    assert [a.cluster for a in field.assignments] == [a.cluster for a in alone.assignments]
    assert [a.log_predictive for a in field.assignments] == pytest.approx(
        [a.log_predictive for a in alone.assignments], rel=1e-7
    )
    assert len({a.cluster for a in alone.assignments}) > 1


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"texts": ("a",)}, (60.0, 400.0)),
        ({"texts": ("a",), "fields": ("b",)}, (10.0, 400.0)),
        ({"texts": ("a",), "numbers": ("b",), "concentration": 3.0}, (3.0, 400.0)),
        ({"fields": ("a",)}, (1.0, 2000.0)),
    ],
)
def test_the_prior_of_records_with_texts(given: dict[str, Any], expected: tuple[float, float]) -> None:
    prior = distance_prior(Settings(**given), sparse=False)
    assert prior is not None
    assert (prior.concentration, prior.decay.scale) == expected


@pytest.mark.parametrize("at", [0, 57, 200, 311])
def test_a_state_goes_on_as_if_it_had_not_been_left(at: int) -> None:
    """In the warm-up, at its end, and after it; whatever the batches."""
    records = tickets(600)
    whole, first = Engine(SETTINGS, with_events=True), Engine(SETTINGS, with_events=True)
    answers = whole.advance(records)
    half = first.advance(records[:at])
    assert first.held_back == (at if at < 200 else 0)
    second = Engine.loads(first.dumps(), SETTINGS, with_events=True)
    rest = [second.advance([record]) for record in records[at:]]
    assert second.dumps() == whole.dumps()
    assert [*half.lines, *(line for each in rest for line in each.lines)] == answers.lines
    assert [*half.events, *(event for each in rest for event in each.events)] == answers.events


def test_a_short_stream_is_answered_at_its_end() -> None:
    engine = Engine(SETTINGS)
    assert engine.advance([*tickets(30), "a text", [1.0]]).assignments == []
    assert {a.seq for a in engine.finish().assignments} == set(range(30))
    early = Engine(Settings(fields=("product",), numbers=("amount",), warmup=10))
    assert {a.seq for a in early.advance(tickets(30, lacking=0.0)).assignments} == set(range(30))


def test_words_that_are_forgotten_leave_the_text() -> None:
    """More words than there is room for, in time."""
    settings = Settings(
        fields=("kind",), texts=("title",), max_words=250, retain=200, decay="window", decay_scale=100.0
    )
    engine = Engine(settings)
    told: list[Any] = [{"kind": f"k{i // 400}", "title": f"user{i // 40} page{i % 3}"} for i in range(12_500)]
    engine.advance(told)
    assert engine.counters()["words_evicted"] > 100
    again = Engine.loads(engine.dumps(), settings)
    assert again.dumps() == engine.dumps()
    assert again.advance(told[-50:]) == engine.advance(told[-50:])


def test_a_text_whose_words_are_all_forgotten_is_unknown() -> None:
    engine = Engine(Settings(fields=("kind",), texts=("title",)))
    engine.advance([{"kind": "a", "title": "one two"}, {"kind": "b", "title": "two"}])
    assert engine.search is not None
    learned = engine.search.words.learned
    assert learned.counts[TEXT] == 3  # one of them in two clusters
    engine.search.forget_words(np.flatnonzero(learned.field == TEXT))
    assert (learned.field[TEXT], learned.counts[TEXT], learned.values[TEXT]) == (UNKNOWN, 0, 0)
    assert [learned.counters[name] for name in ("total", "seen", "repeats")] == [0, 0, 0]
    assert not learned.repeats.any()


def test_a_cluster_is_told_by_values_words_and_intervals() -> None:
    engine = Engine(SETTINGS)
    engine.advance(tickets(900))
    told = {word for c in engine.clusters()[:3] for word, _ in c.words or ()}
    assert {"product=card", "product=account", "product=parcel"} <= told
    assert {"title=refund", "title=password", "title=tracking"} <= told
    assert any(word.startswith("amount=") for word in told)
    assert not told & {"", "product", "title", "amount"}


def test_a_set_is_fitted_refined_and_goes_on() -> None:
    records = tickets(150)
    found = fit(records, SETTINGS, Plan(rounds=20))
    assert agreement([i % 3 for i in range(150)], found.labels).nmi > 0.6
    words = {word for c in found.clusters()[:3] for word, _ in c.words or ()}
    assert any(word.startswith("title=") for word in words)
    engine = found.to_engine()
    assert len(engine.advance(records[:3]).assignments) == 3
    refinement = refine(engine)
    assert refinement.log_joint >= refinement.started


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"texts": ("a",), "likelihood": "gaussian"}, "texts are for the categorical likelihood"),
        ({"numbers": ("a",), "likelihood": "template"}, "numbers are for the categorical likelihood"),
        ({"fields": ("a", "b"), "numbers": ("b",)}, "'b' cannot be two of these"),
        ({"texts": ("a",), "format": "text"}, "text has none"),
        ({"fields": ("a",), "warmup": 3}, "warmup has no meaning"),
    ],
)
def test_settings_that_do_not_fit(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Engine(Settings(**given))


def test_where_numbers_cannot_wait() -> None:
    with pytest.raises(ConfigError, match="not in shards"):
        shard_settings(SETTINGS, 2)
    with pytest.raises(ConfigError, match="held back at the start"):
        StreamDP(settings=SETTINGS).learn_one({"product": "card"})


def test_on_the_command_line(tmp_path: Path) -> None:
    records = [json.dumps({"n": i, **ticket}) for i, ticket in enumerate(tickets(400))]
    (tmp_path / "tickets.jsonl").write_text("\n".join(records))
    named = ("--fields", "product", "--texts", "title,body", "--numbers", "amount")
    checked = succeed(tmp_path, "check", "tickets.jsonl", *named).decode()
    assert "clustered by: categories 'product'; words of 'title', 'body'; numbers of 'amount'" in checked
    lines = assignments(succeed(tmp_path, "consume", "tickets.jsonl", *named, "--state", "st"))
    assert {line["seq"] for line in lines} == set(range(400))
    again = succeed(tmp_path, "consume", "tickets.jsonl", *named, "--state", "st", "--frozen")
    assert len(assignments(again)) == 400
    for command in ("consume", "check", "fit"):
        code, message = fail(tmp_path, command, "tickets.jsonl", "--fields", "n", "--numbers", "n")
        assert (code, "'n' cannot be two of these" in message) == (78, True)
