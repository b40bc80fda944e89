"""Texts with an embedding beside their words, wherever texts are read; and what is refused of it."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import assignments, fail, succeed, survives_sigkill, wait_for
from serving import Served
from tables_of_vectors import write_folder

from streamdp import Engine, Plan, Settings, StreamDP, fit
from streamdp.cli.tables import tables_of
from streamdp.decode.decoder import Decoder
from streamdp.decode.texts import TextReader
from streamdp.encode.embedding import load_embedding
from streamdp.errors import ConfigError
from streamdp.likelihoods import HierarchicalPitmanYor
from streamdp.likelihoods.base import Moments
from streamdp.likelihoods.bessel import log_vmf_normaliser
from streamdp.offline.chain import recount
from streamdp.priors import CRP
from streamdp.records import Raw
from streamdp.records.columns import Columns
from streamdp.records.raw_batch import RawBatch
from streamdp.reports.source import open_state
from streamdp.settings.assemble import build_likelihood, build_model, build_prior
from streamdp.sharding import shard_settings
from streamdp.state.corrections import Correction

KINDS = (
    (("refund", "money", "back"), ("want", "please", "card")),
    (("parcel", "lost", "late"), ("street", "door", "order")),
    (("login", "password"), ("screen", "error", "account")),
)
OWN = """
open("imported", "w").close()

def topics(texts):
    known = ("refund money back", "parcel lost late", "login password")
    found = [text.split() for text in texts]
    return [[*(float(sum(w in kind.split() for w in words)) for kind in known), 1.0] for words in found]
"""


def tickets(n: int, seed: int = 0) -> list[str]:
    """Texts of three kinds by turns: one or two words of a table, and two others; some without the first."""
    rng, found = np.random.default_rng(seed), []
    for i in range(n):
        known, others = KINDS[i % 3]
        words = [*rng.choice(known, rng.integers(1, 3), replace=False), *rng.choice(others, 2)]
        found.append(" ".join(words if i % 40 != 7 else ["nothing", str(rng.choice(others))]))
    return found


def write(path: Path, texts: Sequence[str]) -> None:
    """As lines of JSON, a minute apart."""
    lines = (json.dumps({"text": text, "time": 1e9 + 60.0 * i}) for i, text in enumerate(texts))
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


@pytest.fixture(scope="module")
def table_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_folder(tmp_path_factory.mktemp("tables") / "tiny")


@pytest.fixture
def settings(table_folder: Path) -> Settings:
    return Settings(embed=str(table_folder), beam=4)


# ---------------------------------------------------------------- finite sets


def test_a_set_is_seen_from_the_mean_of_all_of_it(settings: Settings) -> None:
    texts = tickets(30)
    found = fit(texts, settings, Plan(method="beam"))
    assert settings.embed is not None
    rows = load_embedding(settings.embed).rows(texts).astype(float)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows -= np.nanmean(rows, axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    np.testing.assert_allclose(found.collection.encoded.batch.vectors, rows, atol=1e-6)
    assert np.isnan(rows[7]).all()


def test_a_set_of_texts_is_tried_as_a_stream_and_as_a_set_as_without(settings: Settings) -> None:
    plan = Plan(rounds=12, hyper=True)
    found, plain = (fit(tickets(240), s, plan) for s in (settings, Settings(beam=4)))
    assert [note.partition("by the")[0] for note in found.solution.notes] == [
        note.partition("by the")[0] for note in plain.solution.notes
    ]
    assert len(found.clusters()) <= len(plain.clusters()) + 1 < 8
    engine = found.to_engine()
    assert {len(c.words or ()) > 0 for c in engine.clusters()} == {True}
    assert engine.settings.beta is None


def test_a_fit_can_be_refined_and_gone_on_with(tmp_path: Path, table_folder: Path) -> None:
    write(tmp_path / "in.jsonl", tickets(150))
    fitted = ("fit", "in.jsonl", "--embed", str(table_folder), "--state", "set", "--budget", "6")
    succeed(tmp_path, *fitted, "--output", "answers")
    succeed(tmp_path, "fit", "set", "--state", "refined", "--budget", "3")
    write(tmp_path / "in.jsonl", tickets(60, 3))
    more = ("--start-from", "refined", "--state", "state", "--overwrite")
    out = succeed(tmp_path, "consume", "--file", "in.jsonl", "--output", "-", *more)
    assert len({line["seq"] for line in assignments(out)}) == 60


# ---------------------------------------------------------------- states


def test_a_state_goes_on_with_a_model_where_it_began_with_one(tmp_path: Path, settings: Settings) -> None:
    plain, engine = Engine(Settings(beam=4)), Engine(settings)
    for each in (plain, engine):
        each.advance(tickets(60))
    with pytest.raises(ConfigError, match=r"embed: the state was made with .*tiny', and goes on so alone"):
        Engine.loads(engine.dumps(), Settings(beam=4))
    with pytest.raises(ConfigError, match="embed: the state was made without it, and goes on so alone"):
        Engine.loads(plain.dumps(), settings)
    assert settings.embed is not None
    moved = shutil.copytree(settings.embed, tmp_path / "moved")
    again = Engine.loads(engine.dumps(), msgspec.structs.replace(settings, embed=str(moved)))
    assert again.advance(tickets(60, 2)).lines.encode() == engine.advance(tickets(60, 2)).lines.encode()


@pytest.fixture(scope="module")
def of_function(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a state that names a function, which was not imported by this process."""
    folder = tmp_path_factory.mktemp("functions")
    write(folder / "in.jsonl", tickets(200))
    (folder / "evil.py").write_text(OWN, "utf-8")
    run = ("consume", "--file", "in.jsonl", "--state", "state", "--embed", "evil:topics")
    succeed(folder, *run, "--output", "-", process=True)
    (folder / "imported").unlink()
    return folder


READING: tuple[tuple[str, ...], ...] = (
    ("stories", "state"),
    ("stories", "state", "--themes", "2"),
    ("state", "verify", "state"),
    ("state", "info", "state"),
    ("state", "export", "state", "--into", "tables"),
    ("fit", "state", "--state", "refined", "--budget", "2"),
    ("stories", "state", "--report", "report.html"),
    ("diff", "state", "--mark", "now"),
    ("diff", "state", "--since", "1h"),
    ("correct", "state", "rename", "0", "Refunds"),
    ("plot", "state", "--output", "plot"),
    ("erase", "state", "--seq", "3"),
)


@pytest.mark.parametrize("command", READING, ids=" ".join)
def test_a_function_that_a_state_names_is_not_imported_to_read_it(
    of_function: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    shutil.copytree(of_function, tmp_path, dirs_exist_ok=True)
    succeed(tmp_path, *command)
    assert not (tmp_path / "imported").exists()


def test_a_state_without_its_function_answers_no_texts(of_function: Path) -> None:
    _, engine = open_state(of_function / "state")
    assert engine.stories()[0].records > 20
    with pytest.raises(ConfigError, match="names evil:topics, which is imported only if you name it too"):
        engine.whereto("refund my money")
    assert not (of_function / "imported").exists()


# ---------------------------------------------------------------- what is shown


def test_the_words_of_every_text_are_shown_nowhere(settings: Settings) -> None:
    settings = msgspec.structs.replace(settings, stop_words="none")
    texts, without = tickets(200), msgspec.structs.replace(settings, embed=None)
    plain, engine = Engine(without), Engine(settings)
    for each in (plain, engine):
        each.advance(texts)
    shown = [fit(texts[:90], settings, Plan(method="beam")).clusters(), engine.clusters()]
    named = [word for clusters in shown for cluster in clusters for word, _ in cluster.words or ()]
    named += [word for story in engine.stories() for word in story.keywords]
    named += [row[1] for row in tables_of(engine, {})["record_words"]]
    assert set(named) <= {word for text in texts for word in text.split()}
    words = sorted({str(word) for word in named})
    assert engine.base_of(words) == pytest.approx(plain.base_of(words), rel=0.5)
    for cluster in engine.clusters():
        assert cluster.size < engine.tokens_of(cluster.cluster) <= 4 * cluster.size
    assert sum(engine.tokens_of(c.cluster) for c in engine.clusters()) == sum(len(t.split()) for t in texts)


FLAKY = """
def lengths(texts):
    if any("down" in text for text in texts):
        raise ConnectionError("no answer")
    return [[1.0, len(text), text.count("a"), text.count("e")] for text in texts]
"""


def test_a_service_whose_function_fails_takes_no_text_and_loses_none(tmp_path: Path) -> None:
    (tmp_path / "flaky.py").write_text(FLAKY, "utf-8")
    served = Served(tmp_path, "--embed", "flaky:lengths", process=True)
    assert served.send(*({"text": text} for text in tickets(60)))[0] == 200
    where = {"text": "refund my money"}
    status, found = served.ask("POST", "/v1/where", json.dumps(where).encode())
    assert (status, found["error"]) == (200, None)
    status, found = served.ask("POST", "/v1/where", b'{"text": "down"}')
    assert (status, found) == (503, {"error": "no text can be embedded now: the log says why"})
    assert served.ask("POST", "/v1/where", json.dumps(where).encode())[0] == 200
    wait_for(lambda: b"embed: flaky:lengths failed: ConnectionError: no answer" in served.said)
    status, taken = served.send({"text": "down"}, {"text": "refund my money"})
    assert (status, {line["status"] for line in taken}) == (200, {"pending"})
    assert served.process.wait(120) == 69
    (tmp_path / "flaky.py").write_text(FLAKY.replace("down", "never"), "utf-8")
    again = Served(tmp_path, "--embed", "flaky:lengths", process=True)
    (last,) = again.send({"text": "money back"})[1]
    again.stop()
    assert last["seq"] == 62


# ---------------------------------------------------------------- streams

REFINED = {"refine_every": 256, "retain": 1024, "refine_moves": 500, "second_look": 100}
CUT = {"stop_words": "english", "stem": "english", "ngrams": 2, "themes": 2}
FORGETTING = {
    "max_words": 700,
    "retain": 640,
    "second_look": 100,
    "decay_scale": 40.0,
}


def moving(n: int) -> list[str]:
    """Texts of one kind after another, each with a word of its time; one in twenty has no other."""
    texts = tickets(3 * n)
    found = enumerate(texts[3 * i + i // 600 % 3] for i in range(n))
    return [f"{'' if i % 20 == 3 else text} word{i // 7}" for i, text in found]


@pytest.mark.parametrize(
    "more", [{}, REFINED, CUT, FORGETTING], ids=["plain", "refined", "cut", "forgetting"]
)
@pytest.mark.parametrize("cuts", [(1, 2, 3, 150), (24, 25, 26, 511, 512, 1024)], ids=str)
def test_batches_and_restarts_change_nothing(
    settings: Settings, more: dict[str, Any], cuts: tuple[int, ...]
) -> None:
    settings = msgspec.structs.replace(settings, **more)
    records = [
        {"text": text, "time": 60.0 * i}
        for i, text in enumerate(moving(4600 if more is FORGETTING else 2300))
    ]
    records[40]["text"] = "..."
    whole, parts = (Engine(settings, with_events=True) for _ in range(2))
    told = whole.advance([dict(record) for record in records])
    lines, events = b"", []
    for begin, end in itertools.pairwise([0, *cuts, len(records)]):
        answers = parts.advance(records[begin:end])
        lines, events = lines + answers.lines.encode(), [*events, *answers.events]
        parts = Engine.loads(parts.dumps(), settings, with_events=True)
    assert lines == told.lines.encode()
    assert events == told.events
    assert parts.dumps() == whole.dumps()
    if more:
        assert whole.counters()["second_looks"] > 0
    if more is FORGETTING:
        assert whole.counters()["words_evicted"] > 0
        encoder = parts.stream().encoded.encoder  # type: ignore[union-attr]
        assert encoder is not None
        assert encoder.words is not None
        assert list(encoder.words[:2]) == ["", "="]


def test_texts_side_by_side_are_answered_as_records(settings: Settings) -> None:
    lines = [json.dumps({"text": t, "time": 9.0 * i, "id": i}) for i, t in enumerate(tickets(700))]
    lines[3], lines[99], lines[200] = '{"text": "..."}', '{"text": "Grüße, lost parcel 😀"}', '{"text": 3}'
    raws = RawBatch.of([Raw(line.encode(), {"line": i}, 0.0) for i, line in enumerate(lines)])
    texts = TextReader(Decoder("jsonl")).read(raws)
    assert isinstance(texts, Columns)
    first, second = Engine(settings), Engine(settings)
    beside, one_by_one = first.advance(texts), second.advance(texts.all())
    assert beside.lines.encode() == one_by_one.lines.encode()
    assert sorted(map(repr, beside.rejects)) == sorted(map(repr, one_by_one.rejects))
    assert first.dumps() == second.dumps()


def test_a_batch_of_which_no_text_has_a_vector_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where words are counted text by text, the run ended with an error."""
    module = ModuleType("odd_vectors")
    vars(module)["of"] = lambda texts: np.array([[1.0, math.nan if "bad" in x else 2.0] for x in texts])
    monkeypatch.setitem(sys.modules, module.__name__, module)
    engine = Engine(Settings(embed="odd_vectors:of", ngrams=2))
    engine.advance(tickets(20))
    raws = RawBatch.of([Raw(b'{"text": "a bad one"}', {"line": i}, 0.0) for i in range(20)])
    answers = engine.advance(TextReader(Decoder("jsonl")).read(raws))
    assert [reject.reason for reject in answers.rejects] == ["not_finite"] * 20


def test_a_text_without_a_known_token_is_answered_by_its_words_alone(settings: Settings) -> None:
    texts = ["storm over the coast", "vote in the city", "coast storm rain", "city council vote"] * 60
    settings = msgspec.structs.replace(settings, base_concentration=12.0, word_discount=0.4)
    plain = msgspec.structs.replace(settings, embed=None)
    found, expected = Engine(settings), Engine(plain)
    ours, theirs = (each.advance(texts).assignments for each in (found, expected))
    assert [a.cluster for a in ours] == [a.cluster for a in theirs]
    for field in ("probability", "new_probability", "log_predictive"):
        ours_, theirs_ = ([getattr(a, field) for a in each] for each in (ours, theirs))
        np.testing.assert_allclose(ours_, theirs_, atol=2e-6)
    assert found.log_evidence == pytest.approx(expected.log_evidence)


@pytest.mark.parametrize(
    "more",
    [{"base_concentration": 4.0}, {"word_discount": 0.1}, {"base_discount": 0.2}, {"base_escape": 50.0}],
)
def test_what_is_said_of_words_is_meant_of_them(settings: Settings, more: dict[str, Any]) -> None:
    texts = tickets(80)
    first = Engine(settings).advance(texts).assignments
    second = Engine(msgspec.structs.replace(settings, **more)).advance(texts).assignments
    assert [a.log_predictive for a in first] != [a.log_predictive for a in second]


# ---------------------------------------------------------------- where texts come from


def test_texts_are_answered_alike_wherever_they_come_from(tmp_path: Path, table_folder: Path) -> None:
    texts = tickets(300)
    write(tmp_path / "in.jsonl", texts)
    lines = (tmp_path / "in.jsonl").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "folder").mkdir()
    for i in range(3):
        (tmp_path / "folder" / f"{i}.jsonl").write_text("".join(lines[100 * i : 100 * i + 100]), "utf-8")
    rows = "".join(f'{1e9 + 60.0 * i},"{text}"\n' for i, text in enumerate(texts))
    (tmp_path / "in.csv").write_text("time,text\n" + rows, "utf-8")
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts), "utf-8")

    def answers(*source: str, stdin: bytes = b"", times: bool = True) -> list[dict[str, Any]]:
        run = ("consume", *source, "--embed", str(table_folder), "--output", "-")
        found = assignments(succeed(tmp_path, *run, stdin=stdin))
        return [
            {k: v for k, v in line.items() if k != "position" and (times or k != "time")} for line in found
        ]

    expected = answers("in.jsonl")
    assert len({line["seq"] for line in expected}) == 300
    assert {line["cluster"] for line in expected} >= {0, 1, 2}
    assert answers("in.csv") == expected
    assert answers("folder") == expected
    assert answers("-", stdin="".join(lines).encode()) == expected
    assert answers("in.jsonl", "--max-lateness", "1") == expected  # records, one by one
    undated = [{k: v for k, v in line.items() if k != "time"} for line in expected]
    assert answers("in.txt", times=False) == undated
    plain = succeed(tmp_path, "consume", "in.jsonl", "--output", "-")
    assert [line["log_predictive"] for line in assignments(plain)] != [e["log_predictive"] for e in expected]


def test_sigkill_at_any_moment_changes_no_byte(tmp_path: Path, table_folder: Path) -> None:
    run = ("consume", "--file", "in.jsonl", "--state", "state", "--output", "out", "--snapshot-every", "300")
    run = (*run, "--embed", str(table_folder))
    survives_sigkill(tmp_path, lambda folder: write(folder / "in.jsonl", tickets(2_000)), *run)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--normalise",), "embed is for plain texts: leave it out, or"),
        (("--vector-field", "v"), "embed is for plain texts: leave it out, or"),
        (("--texts", "text"), "embed is for plain texts: leave it out, or"),
        (("--fields", "a"), "embed is for plain texts: leave it out, or"),
        (("--likelihood", "template"), "embed has no meaning with the template likelihood"),
        (("--format", "log"), "embed has no meaning with the template likelihood"),
        (
            ("--likelihood", "hierarchical-dirichlet"),
            "embed goes with the hierarchical-pitman-yor likelihood",
        ),
        (("--likelihood", "gaussian"), "the gaussian likelihood is for vectors"),
        (("--embed", "nowhere"), "embed: there is no folder nowhere"),
        (("--embed", "nowhere:at_all"), "embed: nowhere:at_all cannot be imported"),
        (("--beta", "1"), "beta has no meaning with the hierarchical-pitman-yor likelihood"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_does_not_go_with_an_embedding_is_one_line(
    tmp_path: Path, table_folder: Path, flags: tuple[str, ...], said: str
) -> None:
    write(tmp_path / "in.jsonl", tickets(10))
    run = ("consume", "in.jsonl", "--output", "out", "--state", "state")
    code, line = fail(tmp_path, *run, "--embed", str(table_folder), *flags)
    assert (code, said in line) == (78, True), line
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="embed: a merger knows clusters by their words"):
        shard_settings(Settings(embed=str(table_folder)), 2)


def test_a_family_of_ones_own_has_no_embedding(settings: Settings) -> None:
    with pytest.raises(ConfigError, match="embed goes with the hierarchical-pitman-yor likelihood alone"):
        Engine(settings, likelihood=HierarchicalPitmanYor())
    assert Engine(settings, likelihood="hierarchical-pitman-yor", prior=CRP()).advance(tickets(9)).lines


# ---------------------------------------------------------------- erasing, corrections


def test_an_erased_record_has_no_words_and_no_vector_left(tmp_path: Path, table_folder: Path) -> None:
    texts = tickets(120)
    texts[70] = "refund late password zebra"
    write(tmp_path / "in.jsonl", texts)
    run = ("consume", "in.jsonl", "--state", "state", "--output", "out", "--snapshot-keep", "1")
    succeed(tmp_path, *run, "--embed", str(table_folder), "--store", "store.db")

    def left() -> tuple[Engine, bytes, Any]:
        _, engine = open_state(tmp_path / "state")
        held = engine.retained()
        assert held is not None
        assert held.batch.vectors is not None
        return engine, b"".join(path.read_bytes() for path in (tmp_path / "state").iterdir()), held.batch

    _, files, before = left()
    vector = before.vectors[70]
    assert not np.isnan(vector).any()
    assert b"zebra" in files
    assert vector.tobytes() in files
    shutil.move(tmp_path / "in.jsonl", tmp_path / "gone.jsonl")
    succeed(tmp_path, "erase", "state", "out", "store.db", "--seq", "70")
    engine, files, after = left()
    assert np.isnan(after.vectors[70]).all()
    assert vector.tobytes() not in files
    assert b"zebra" not in files
    assert after.words[after.offsets[70] : after.offsets[71]].tolist() == [0]
    others = np.arange(120) != 70
    np.testing.assert_array_equal(after.vectors[others], before.vectors[others])
    assert after.counts[after.offsets[71] :].tolist() == before.counts[before.offsets[71] :].tolist()
    assert engine.finish().lines is not None
    write(tmp_path / "in.jsonl", [*["gone"] * 120, *tickets(60, 2)])
    succeed(tmp_path, "state", "verify", "state")
    succeed(tmp_path, "fit", "state", "--budget", "2")


def test_corrections_by_hand_hold(settings: Settings) -> None:
    settings = msgspec.structs.replace(settings, second_look=100, retain=1024)
    engine = Engine(settings, with_events=True)
    engine.advance(tickets(150))
    first, second, *_ = (story.label for story in engine.stories())
    engine.correct(Correction(what="rename", stories=(first,), title="Money back"))
    engine.correct(Correction(what="merge", stories=(first, second)))
    found = Engine.loads(engine.dumps(), settings, with_events=True)
    engine.advance(tickets(700, 3))
    found.advance(tickets(700, 3))
    assert found.dumps() == engine.dumps()
    held = engine.retained()
    assert held is not None
    joined = set(held.labels[:150].tolist())
    assert (first in joined) + (second in joined) == 1
    assert "Money back" in {story.title for story in engine.stories()}


# ---------------------------------------------------------------- against what is known to be right


@pytest.mark.parametrize("more", [{}, REFINED, {"prior": "crp", "beam": 1}], ids=["plain", "refined", "crp"])
def test_answers_are_those_of_a_text_field_and_a_vector_field(
    settings: Settings, more: dict[str, Any]
) -> None:
    """Whose search agrees with a naive one, and whose likelihood with quadrature."""
    settings = msgspec.structs.replace(settings, vector_weight=0.4, **more)
    fields = msgspec.structs.replace(settings, embed=None, texts=("text",), vector_field="vector")
    texts, found, expected = tickets(1000), Engine(settings), Engine(fields)
    assert settings.embed is not None
    rows = load_embedding(settings.embed).rows(texts).astype(float).tolist()
    records = [
        {"text": t, "vector": v} if v[0] == v[0] else {"text": t} for t, v in zip(texts, rows, strict=True)
    ]
    ours, theirs = found.advance(texts).assignments, expected.advance(records).assignments
    assert [(a.seq, a.cluster, a.revision) for a in ours] == [(a.seq, a.cluster, a.revision) for a in theirs]
    held = found.retained()
    assert held is not None
    assert held.batch.vectors is not None
    uniform = 0.4 * log_vmf_normaliser(4, 0.0) * ~np.isnan(held.batch.vectors[:, 0])
    for name in ("probability", "new_probability", "log_predictive"):
        pair = [np.array([getattr(a, name) for a in each]) for each in (ours, theirs)]
        if name == "log_predictive":  # of embeddings, relative to what any direction has
            pair[0] += uniform[[a.seq for a in ours]]
        np.testing.assert_allclose(*pair, atol=2e-4)
    assert found.log_joint + uniform.sum() == pytest.approx(expected.log_joint)
    assert {c.size for c in found.clusters()} == {c.size for c in expected.clusters()}


def test_a_set_has_the_base_measure_of_its_words(settings: Settings) -> None:
    plan, texts = Plan(method="beam"), tickets(90)
    found = fit(texts, settings, plan)
    plain = fit(texts, Settings(beam=4, prior=found.problem.settings.prior), plan)
    chain = plain.problem.chain(0, found.labels)
    recount([chain])
    assert found.solution.chain.base is not None
    assert chain.base is not None
    np.testing.assert_allclose(-found.solution.chain.base[2:], chain.base)


# ---------------------------------------------------------------- check, config


def test_check_recommends_an_embedding_of_texts_and_of_nothing_else(
    tmp_path: Path, table_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in.jsonl", tickets(30))
    better = "--embed wordllama counts their meaning beside their words (about 35 us of CPU a text"
    monkeypatch.setattr("streamdp.cli.config.find_spec", lambda name: None)
    said = succeed(tmp_path, "check", "in.jsonl").decode()
    assert f"pip install wordllama, and {better}" in said
    monkeypatch.setattr("streamdp.cli.config.find_spec", lambda name: name)
    said = succeed(tmp_path, "check", "in.jsonl").decode()
    assert f"\nbetter: {better}" in said
    said = succeed(tmp_path, "check", "in.jsonl", "--embed", str(table_folder)).decode()
    assert f"; beside them their meaning, by {table_folder}" in said
    (tmp_path / "vectors.jsonl").write_text('{"vector": [1, 2]}\n' * 3, "utf-8")
    (tmp_path / "app.log").write_text("2026-01-05 10:00:00 INFO started\n" * 9, "utf-8")
    others = (
        ("vectors.jsonl",),
        ("app.log",),
        ("in.jsonl", "--texts", "text"),
        ("in.jsonl", "--fields", "text"),
    )
    assert "better:" not in said
    for arguments in others:
        assert b"better:" not in succeed(tmp_path, "check", *arguments)
    assert b"# vector beside them: VonMisesFisher" in succeed(tmp_path, "check", "--embed", str(table_folder))


# ---------------------------------------------------------------- records of other kinds, estimators


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ([1.0, 2.0], "wrong_kind"),
        ({"a": "b"}, "wrong_kind"),
        ("...", "empty"),
        ({"refund": -1.0}, "wrong_type"),
        ({"refund": 0.0}, "empty"),
        ("refund " * 200_000, "too_many_tokens"),
    ],
    ids=["vector", "categories", "empty", "below 0", "no counts", "long"],
)
@pytest.mark.parametrize("at", [0, 30])
def test_a_record_of_another_kind_is_refused_alone(
    settings: Settings, odd: Any, reason: str, at: int
) -> None:
    texts = tickets(60)
    whole, engine = Engine(settings), Engine(settings)
    answers = engine.advance([*texts[:at], odd, *texts[at:]])
    assert [reject.reason for reject in answers.rejects] == [reason]
    expected = whole.advance(texts).assignments
    ours = [(a.seq, a.cluster, a.log_predictive) for a in answers.assignments]
    assert ours == [(a.seq, a.cluster, a.log_predictive) for a in expected]


def test_an_estimator_of_river_learns_texts_and_goes_on(settings: Settings, tmp_path: Path) -> None:
    texts, engine = tickets(200), Engine(settings)
    model = StreamDP(settings=settings)
    model.learn_many(texts)
    engine.advance(texts)
    model.save(tmp_path / "model")
    more = tickets(40, 5)
    expected = [answer.cluster for answer in engine.score(more).assignments]
    assert sum(label >= 0 for label in expected) > 30
    for copied in (model, StreamDP.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert copied.n_clusters == len(engine.clusters())
        for text, label in zip(more, expected, strict=True):
            assert copied.predict_one(text) == label or label < 0
        assert copied.score_one(more[0]) > 0.0
    model.learn_one("refund \ud800 money")  # half of a character
    with pytest.raises(ValueError, match="it holds a vector where this stream holds texts"):
        model.learn_one([1.0, 2.0])


def test_the_memory_limit_counts_the_vectors_of_clusters() -> None:
    settings = Settings(memory_limit=1 << 22, embed="mine:lengths", prior="crp")
    prior, room = build_prior(settings, sparse=True), []
    for dimension in (2, 256):
        family = build_likelihood(settings, Moments.of(np.zeros((1, dimension))))
        room.append(build_model(settings, prior, family).max_clusters)
    assert room[1] * (2048 + 8 * 256) <= 1 << 20 < room[0] * 2200


def test_the_vectors_of_texts_are_no_part_of_how_novel_they_are(settings: Settings) -> None:
    """It stays in nats a word, and a text with a vector is as novel as one without."""
    engine = Engine(msgspec.structs.replace(settings, stop_words="none"))
    texts = tickets(90)
    found = engine.advance(texts).assignments
    for answer in found:
        if answer.revision == 0:
            words = len(texts[answer.seq].split())
            assert answer.novelty * words == pytest.approx(-answer.log_predictive, abs=1e-4)
    latest = {answer.seq: answer.novelty for answer in found}
    of_words = Engine(Settings(stop_words="none", beam=4)).advance(texts).assignments
    plain = {answer.seq: answer.novelty for answer in of_words}
    gap = [latest[seq] - plain[seq] for seq in range(30, 90)]
    assert abs(np.mean(gap)) < 0.5
