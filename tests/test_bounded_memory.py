"""What a stream holds is bounded in bytes of content, so that answers do not depend on the machine."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from streamdp.decode.fields import LONGEST_ID
from streamdp.decode.texts import TextReader
from streamdp.encode.batch import Batch
from streamdp.encode.encoders import decoder_of
from streamdp.encode.order import ReorderBuffer
from streamdp.encode.vocabulary import AROUND, LONGEST, Vocabulary, short
from streamdp.engine import Engine
from streamdp.kernels.packed import as_type, encoded
from streamdp.ledger.ledger import Ledger
from streamdp.lines.base import Bounds
from streamdp.records import Answers, Raw, Record, Reject
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch
from streamdp.run.stream import warn_of_memory
from streamdp.settings import Settings
from streamdp.settings.assemble import template_bounds
from streamdp.state.retained import Retained

MIB = 1 << 20


def raws_of(lines: Sequence[dict[str, Any]]) -> RawBatch:
    found = RawBatch({"file": "a"}, ("line",))
    for i, line in enumerate(lines):
        found.data.append(json.dumps(line).encode())
        found.places.append(i + 1)
        found.arrivals.append(0.0)
    return found


def both_ways(lines: Sequence[dict[str, Any]], settings: Settings) -> tuple[Engine, list[bytes]]:
    """Answers to lines that are read side by side, which are those to objects one by one; an engine."""
    decoder = decoder_of(settings, "jsonl")
    texts = TextReader(decoder).read(raws_of(lines))
    assert isinstance(texts, Columns)
    objects = [decoder.decode(raw) for raw in raws_of(lines)]
    one, other = Engine(settings), Engine(settings)
    found, expected = one.advance(texts), other.advance(objects)
    assert found.lines.encode() == expected.lines.encode()
    assert found.rejects == expected.rejects
    found, expected = one.finish(), other.finish()
    assert found.lines.encode() == expected.lines.encode()
    assert one.dumps() == other.dumps()
    return one, expected.lines.encode().splitlines()


LONG = [
    "a" * 300_000,
    "x1" * 200 + "y",
    "https://example.com/" + "path/" * 1000,
    "#" + "tag" * 200,
    "\u00e9" * 129,
    "\U0001f600" * 3 + "z" * 300,
    "3." + "14" * 300,
]


@pytest.mark.parametrize("word", LONG)
def test_a_long_word_is_cut_to_its_head_and_a_hash(word: str) -> None:
    """The same one is known again; one that differs in its last letter is another."""
    lines = [{"text": f"storm {word} coast"}, {"text": f"{word} rain"}, {"text": f"wind {word}a"}]
    engine, _ = both_ways(lines, Settings(likelihood="dirichlet-multinomial"))
    vocabulary: Vocabulary = engine.stream().encoded.encoder.vocabulary  # type: ignore[union-attr]
    words = [found for found in vocabulary.words if found is not None]
    assert all(len(found.encode()) <= LONGEST for found in words)
    assert vocabulary.cut >= 2
    assert engine.counters()["words_cut"] == vocabulary.cut
    cut = [found for found in words if "~" in found]
    assert len(cut) == len(set(cut)) >= 2
    assert len(engine.dumps()) < 50_000
    again = Engine.loads(engine.dumps(), Settings(likelihood="dirichlet-multinomial"))
    assert again.dumps() == engine.dumps()


def test_words_of_the_longest_length_stay() -> None:
    assert short("a" * LONGEST) == "a" * LONGEST
    found = short("\u00e9" * LONGEST)
    assert len(found.encode()) <= LONGEST
    assert found.startswith("\u00e9" * 100)


def test_scoring_counts_nothing() -> None:
    engine = Engine(Settings())
    engine.advance([f"storm {'a' * 1000}", "coast"])
    before = engine.dumps()
    engine.score([f"storm {'b' * 1000}", f"storm {'a' * 1000}"])
    assert engine.dumps() == before


@pytest.mark.parametrize("likelihood", ["categorical", "dirichlet-multinomial"])
def test_names_and_values_are_cut_too(likelihood: str) -> None:
    settings = Settings(likelihood=likelihood)
    engine = Engine(settings)
    long = "name\\=" * 10_000
    if likelihood == "categorical":
        records: list[Any] = [{long: "a" * 5000, "b": "c"}, {long: "a" * 5000, "b": "\\=" * 4000}] * 3
    else:
        records = [{long: 1.0, "b": 2.0}, {long: 2.0}] * 3
    answers = engine.advance(records)
    assert {line.seq for line in answers.assignments} == set(range(6))
    assert engine.counters()["words_cut"] >= 3
    assert len(engine.dumps()) < 20_000
    assert Engine.loads(engine.dumps(), settings).dumps() == engine.dumps()
    assert len(engine.clusters()) >= 1


def test_a_long_id_is_refused() -> None:
    lines = [
        {"text": "storm coast", "id": "a"},
        {"text": "storm rain", "id": "b" * (LONGEST_ID + 1)},
        {"text": "wind", "id": "c" * LONGEST_ID},
        {"text": "calm", "id": "\u00e9" * (LONGEST_ID // 2 + 1)},
        {"text": "sun over", "id": "d"},
    ]
    decoder = decoder_of(Settings(), "jsonl")
    found = [decoder.decode(raw) for raw in raws_of(lines)]
    reasons = [each.reason if isinstance(each, Reject) else "" for each in found]
    assert reasons == ["", "long_id", "", "long_id", ""]
    both_ways(lines, Settings())
    tables = decoder_of(Settings(), "csv")
    tables.header = ["id", "text"]
    row = RawBatch({"file": "a"}, ("line",))
    row.data, row.places, row.arrivals = [b"e" * 5000 + b",storm"], [1], [0.0]
    assert getattr(tables.decode(row[0]), "reason", "") == "long_id"


# ------------------------------------------------------------------ what is held back


def held(n: int, size: int) -> list[Record]:
    """Records whose times go forth and back, of so many bytes."""
    return [
        Record("storm coast", {"line": i}, float((i * 7919) % n), None, None, None, b"x" * size)
        for i in range(n)
    ]


def test_records_held_back_are_bounded_in_bytes() -> None:
    order = ReorderBuffer(1e9, 1e9, 1e12, most_bytes=MIB)
    ready: Any = []
    for record in held(5000, 2000):
        order.push(record, ready)
        assert order.bytes == sum(len(r.raw) + 256 for _, _, r in [*order.heap, *order.leaps]) <= MIB
    assert order.early > 1000
    times = [time for time, found in ready if isinstance(found, Record)]
    assert times == sorted(times)
    order.drain(ready)
    assert (len(ready), order.bytes) == (5000, 0)


def test_leaps_are_bounded_too() -> None:
    order = ReorderBuffer(0.0, 1e12, 10.0, most_bytes=MIB)
    ready: Any = []
    for i in range(100):
        order.push(Record("a b", {}, float(i), None, None, None, b"x"), ready)
        order.push(Record("a b", {}, 1e6 + 1e5 * i, None, None, None, b"x" * 100_000), ready)
        assert order.bytes <= MIB
    order.drain(ready)
    assert (len(ready), order.bytes) == (200, 0)


def answers_of(engine: Engine, records: Sequence[Record], batch: int) -> list[bytes]:
    parts: list[Answers] = []
    for at in range(0, len(records), batch):
        parts.append(engine.advance(records[at : at + batch]))
    return [line for part in parts for line in part.lines.encode().splitlines()]


def test_answers_do_not_depend_on_batches_or_restarts() -> None:
    settings = Settings(max_lateness=1e6, memory_limit=MIB, max_leap=1e9)
    records = held(1200, 1000)
    engine = Engine(settings)
    expected = answers_of(engine, records, 1000)
    assert engine.counters()["released_early"] > 300
    assert expected
    for batch in (1, 77):
        again = Engine(settings)
        found = answers_of(again, records[:616], batch)
        again = Engine.loads(again.dumps(), settings)
        assert found + answers_of(again, records[616:], batch) == expected
        assert again.dumps() == engine.dumps()


def test_the_vocabulary_is_bounded_in_bytes() -> None:
    settings = Settings(memory_limit=MIB, retain=100)
    engine = Engine(settings)
    for i in range(30):
        engine.advance([" ".join(f"{'w' * 200}{i}x{j}x{k}" for k in range(10)) for j in range(20)])
        vocabulary = engine.stream().encoded.encoder.vocabulary  # type: ignore[union-attr]
        assert vocabulary.size == sum(len(w) + AROUND for w in vocabulary.words if w) <= MIB // 8
    assert engine.counters()["words_dropped"] > 0
    assert Engine.loads(engine.dumps(), settings).dumps() == engine.dumps()


# ------------------------------------------------------------------ what is retained, and open


def texts_of(n: int, words: int, around: int) -> list[dict[str, Any]]:
    """Texts of three topics, with ids and a field of so many bytes at most."""
    rng, found = random.Random(7), []
    for i in range(n):
        topic = rng.randrange(3)
        text = " ".join(f"w{topic}x{rng.randrange(60)}" for _ in range(rng.randrange(3, words)))
        about = {"k": "v" * rng.randrange(around), "n": [i, "\u00e9"]} if around else {}
        found.append({"text": text, "time": float(i), "id": f"i{i}" + "x" * rng.randrange(300)} | about)
    return found


def told_of(
    lines: Sequence[dict[str, Any]], settings: Settings, batch: int, side: bool, again: int, **modes: bool
) -> tuple[list[bytes], list[str], bytes, dict[str, int]]:
    """Answers, events, state and counts of lines in batches; the state is loaded anew every ``again``."""
    decoder = decoder_of(settings, "jsonl")
    reader, engine, parts, events = TextReader(decoder), Engine(settings, with_events=True, **modes), [], []
    for number, at in enumerate(range(0, len(lines), batch)):
        if again and number and number % again == 0:
            engine = Engine.loads(engine.dumps(), settings, with_events=True, **modes)
        raws = raws_of(lines[at : at + batch])
        raws.places[:] = [at + place for place in raws.places]
        taken = engine.advance(reader.read(raws) if side else [decoder.decode(raw) for raw in raws])
        parts.append(taken.lines)
        events += [repr(event) for event in taken.events]
    state = engine.dumps()
    parts.append(engine.finish().lines)
    written = [line for part in parts for line in part.encode().splitlines()]
    return written, events, state, engine.counters()


PRESSED: dict[str, tuple[dict[str, Any], int, int, dict[str, bool]]] = {
    "kept fields": ({"keep": ("k", "n")}, 12, 2000, {}),
    "once": ({"keep": ("k", "n")}, 12, 2000, {"final_only": True}),
    "many words": ({"beam": 4}, 300, 0, {}),
    "refined": ({"refine_every": 512, "refine_moves": 64, "retain": 1500}, 200, 0, {}),
    "templates": ({"likelihood": "template"}, 9, 0, {}),
}


@pytest.mark.parametrize("case", PRESSED)
def test_retained_and_open_are_bounded_whatever_the_batches(case: str) -> None:
    """What gives way does so at the same records for any batches, restarts and ways to read."""
    more, words, around, modes = PRESSED[case]
    settings, lines = Settings(memory_limit=MIB, **more), texts_of(1500, words, around)
    expected = told_of(lines, settings, 1000, True, 0, **modes)
    assert expected[3]["final_early"] > 500
    assert expected[3]["retained_short"] == (case in ("many words", "refined"))
    final = -1
    for line in map(json.loads, expected[0]):
        if line.get("revision"):
            assert line["seq"] > final
        final = line.get("final_through", final)
    assert final == 1499 or modes
    seqs = [line["seq"] for line in map(json.loads, expected[0]) if not line.get("revision", 1)]
    assert seqs == list(range(1500)) or modes
    for batch, side, again in ((1, False, 0), (1, True, 200), (77, False, 4), (512, True, 1)):
        found = told_of(lines, settings, batch, side, again, **modes)
        assert found[0] == expected[0]
        assert found[1:3] == expected[1:3]


@pytest.mark.parametrize("asked", [0.5, 0.01])
def test_what_is_retained_is_what_fits_of_the_newest(asked: float) -> None:
    rng = np.random.default_rng(3)
    batches = []
    for _ in range(100):
        lengths = rng.integers(0, 30, rng.integers(1, 9))
        batches.append(Batch.of_words([(np.arange(n), np.ones(n)) for n in lengths]))
    sizes = np.concatenate([8 * np.diff(batch.offsets) + 32 for batch in batches])
    for limit, most in ((50, 1 << 40), (1000, 3000), (12, 3000), (1000, 1)):
        ledger = Ledger(limit)
        held, first = Retained(ledger, limit, most), 0
        for batch in batches:
            held.append(first, batch)
            ledger.put_labels(first, np.arange(first, first + batch.size))
            first += batch.size
            fits = [n for n in range(1, min(limit, first) + 1) if sizes[first - n : first].sum() <= most]
            expected = max(fits, default=1)
            if rng.random() < asked or batch is batches[-1]:
                found = held.collect()
                assert found is not None
                assert (found.first, found.batch.size) == (first - expected, expected)
                assert found.labels.tolist() == list(range(found.first, first))
                assert (8 * np.diff(found.batch.offsets) + 32).tolist() == sizes[found.first : first].tolist()
            assert held.held == expected


def test_a_warm_up_ends_where_it_is_too_much() -> None:
    settings = Settings(memory_limit=MIB, warmup=500)
    records = [
        Record([float(i % 3), float(i % 5), 1.0], {"line": i}, float(i), None, None, None, b"x" * 9_000)
        for i in range(60)
    ]
    engine = Engine(settings)
    answers = engine.advance(records)
    assert {line.seq for line in answers.assignments} == set(range(60))
    for batch in (1, 7):
        other = Engine(settings)
        for at in range(0, 60, batch):
            other = Engine.loads(other.dumps(), settings)
            other.advance(records[at : at + batch])
        assert other.dumps() == engine.dumps()


def test_samples_of_long_fields_are_short() -> None:
    settings = Settings(keep=("k",))
    lines = [{"text": "storm coast", "k": "v" * 100_000}] * 3 + [{"text": "rain", "k": {"a": ["b" * 9000]}}]
    engine, _ = both_ways(lines, settings)
    assert max(len(text) for cluster in engine.clusters() for text in cluster.samples) <= 400


def test_a_limit_that_refuses_records_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for settings, told in (
        (Settings(max_record_bytes=1 << 26), False),
        (Settings(max_record_bytes=(1 << 26) + 1), True),
        (Settings(memory_limit=MIB), False),
        (Settings(memory_limit=MIB, max_record_bytes=1_000_001), True),
    ):
        caplog.clear()
        warn_of_memory(settings, tmp_path / "none")
        assert (f"raise it to {8 * settings.max_record_bytes:,}\n" in caplog.text) is told


def test_a_record_takes_an_eighth_of_the_limit_at_most() -> None:
    settings = Settings(max_record_bytes=1 << 30, memory_limit=16 * MIB)
    start, end = b'{"text": "', b'"}'
    room = 2 * MIB - len(start) - len(end)
    for length, refused in ((room, False), (room + 1, True)):
        line = start + b"storm " * (length // 6) + b"x" * (length % 6) + end
        found = decoder_of(settings, "jsonl").decode(Raw(line, {"line": 1}, 0.0, None))
        assert isinstance(found, Reject) is refused
        if isinstance(found, Reject):
            assert found.reason == "too_large"
            assert f"the limit is {2 * MIB}" in found.detail


def test_a_smaller_container_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for content, told in ((f"{200 * MIB}\n", True), (f"{700 * MIB}\n", False), ("max\n", False)):
        caplog.clear()
        (tmp_path / "memory.max").write_text(content)
        warn_of_memory(Settings(), tmp_path / "memory.max")
        assert ("200 MiB, is below memory_limit, 512 MiB" in caplog.text) is told
    caplog.clear()
    warn_of_memory(Settings(), tmp_path / "none")
    assert not caplog.text


def strangers_of(rng: random.Random, n: int) -> list[str]:
    """Texts that share no word."""
    return [" ".join(f"{rng.choice('bdfgklmn')}{rng.choice('aeiou')}{i}{c}" for c in "xyz") for i in range(n)]


def test_clusters_that_no_prior_closes_retire_where_their_share_is_full() -> None:
    """A mebibyte has room for 128 clusters; what was asked for holds where it is less."""
    records = strangers_of(random.Random(0), 400)
    for given, most in (({}, 128), ({"max_clusters": 1000}, 128), ({"max_clusters": 20}, 20)):
        engine = Engine(Settings(prior="crp", memory_limit=MIB, beam=2, **given))
        engine.advance(records)
        live = engine.counters()["clusters_live"]
        assert most < live <= most + 2  # the newest came after the last look
        assert engine.counters()["clusters_retired"] > 0


def test_templates_and_lines_of_a_log_have_half_of_the_limit_each() -> None:
    """A mebibyte has room for 64 templates, and for 256 lines or values of holes."""
    rng = random.Random(0)
    engine = Engine(Settings(likelihood="template", memory_limit=MIB))
    for line in strangers_of(rng, 300):
        engine.advance([line])
        assert engine.counters()["clusters_live"] <= 64
    assert engine.counters()["lines_distinct"] <= 256
    assert template_bounds(Settings(memory_limit=MIB)) == Bounds(lines=256, templates=64)
    assert template_bounds(Settings(memory_limit=MIB, max_lines=9, max_clusters=7)) == Bounds(9, 7)


def test_a_word_counts_for_more_than_its_letters() -> None:
    vocabulary = Vocabulary(1 << 20, 10 * (256 + 4))
    assert [vocabulary.add(f"w{i:03}") >= 0 for i in range(12)] == [True] * 10 + [False] * 2
    again = as_type(msgspec.msgpack.decode(encoded(vocabulary)), Vocabulary)
    assert (again.size, again.add("more")) == (vocabulary.size, -1)
    again.evict(np.zeros(10, bool), 1)
    assert again.size == 0
