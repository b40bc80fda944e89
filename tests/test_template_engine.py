"""Lines of a log in an engine: templates and values, revisions, events, snapshots, refusals."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import msgspec
import pytest
from feeds import reloaded

from streamdp import Engine, Record, Settings
from streamdp.errors import ConfigError
from streamdp.kernels.packed import pack, unpack
from streamdp.lines.base import USUAL, Terms
from streamdp.lines.state import roots
from streamdp.lines.stream import LineStream
from streamdp.records import Answers, Assignment, Reject
from streamdp.settings.assemble import template_bounds
from streamdp.state.snapshot import SnapshotError
from tests.logs import TEMPLATES, lines
from tests.test_lines import unequal

SHOWN = {
    "Accepted password for <word> from <ip> port <num> ssh<num>",
    "Failed password for <word> from <ip> port <num> ssh<num>",
    "session <uuid> opened for user <word>",
    "session <uuid> closed for user <word> after <duration>",
    "GET /cart/<num> <num> <num>ms",
    "POST /order/<uuid> <num> <num>ms",
    "checkpoint complete: wrote <num> buffers in <duration>",
    "connection from <ip> refused",
    "job <uuid> was given to worker-<num>",
    "replica <hex> is behind by <size>",
    "out of memory: cannot allocate",
}
"""How the templates read, but for the list of blocks."""


def settings(**more: Any) -> Settings:
    return Settings(likelihood="template", **more)


def records(texts: list[str]) -> list[Record]:
    return [Record(text, {"line": i}, time=1000.0 + i) for i, text in enumerate(texts)]


def run(engine: Engine, texts: list[str], step: int = 1000) -> Answers:
    found = Answers([], [], [])
    given = records(texts)
    for start in range(0, len(given), step):
        part = engine.advance(given[start : start + step])
        found.lines.extend(part.lines)
        found.events.extend(part.events)
        found.rejects.extend(part.rejects)
    return found


def newest(answers: Answers) -> dict[int, Assignment]:
    return {line.seq: line for line in answers.assignments}


def test_templates_and_the_values_in_their_holes() -> None:
    texts, kinds = lines(3000)
    engine = Engine(settings(params=True))
    found = newest(run(engine, texts))
    for kind in range(len(TEMPLATES)):
        assert len({found[i].cluster for i in range(3000) if kinds[i] == kind}) == 1
    assert {c.template for c in engine.clusters() if "blocks" not in str(c.template)} == SHOWN
    assert sum(c.size for c in engine.clusters()) == 3000
    assert engine.counters()["clusters_live"] == len(TEMPLATES) == len(engine.clusters())
    for i, text in enumerate(texts):
        answer, rest = found[i], text
        assert isinstance(answer.params, list)
        for value in answer.params:  # each stands in the line, in order
            assert value in rest
            rest = rest[rest.index(value) + len(value) :]
    ssh = next(i for i in range(2000, 3000) if kinds[i] == 0)
    words = texts[ssh].split()
    assert found[ssh].params == [words[3], words[5], words[7], "2"]


def test_lines_without_tokens_have_a_template_without_any() -> None:
    engine = Engine(settings())
    answers = engine.advance(["", "x y z 1", "  "])
    assert [(a.cluster, a.template) for a in answers.assignments] == [(0, ""), (1, "x y z <num>"), (0, "")]
    assert Engine.loads(engine.dumps(), settings()).seq == 3


def test_a_merge_is_told_in_revisions_and_events() -> None:
    texts = [
        f"session opened for user {name} by (uid=0)" for name in ("ann", "bob", "cyd", "dan", "eve", "fay")
    ]
    engine = Engine(settings(), with_events=True)
    answers = run(engine, texts)
    events = Counter(event.event for event in answers.events)
    assert events["merged"] == events["born"] - 1 > 0
    assert {answer.cluster for answer in newest(answers).values()} == {0}
    revised = [answer for answer in answers.assignments if answer.revision]
    assert revised
    assert {answer.template for answer in revised} == {"session opened for user <word> by (uid=<num>)"}
    merged = [event for event in answers.events if event.event == "merged"]
    assert all(event.other == 0 and event.time is not None for event in merged)
    last = engine.clusters()[0]
    assert (last.size, last.first_time, last.last_time) == (6, 1000.0, 1005.0)
    assert last.samples[0] == texts[0]


@pytest.mark.parametrize("final_only", [False, True])
def test_answers_and_state_do_not_depend_on_batches_or_on_a_stop(final_only: bool) -> None:
    texts = lines(1500)[0]
    chosen, options = settings(retain=300, params=True), {"final_only": final_only, "with_events": True}
    whole = Engine(chosen, **options)
    expected = run(whole, texts)
    engine, found = reloaded(chosen, records(texts), range(37, 1500, 37), **options)
    assert found.lines == expected.lines
    assert found.events == expected.events
    assert engine.dumps() == whole.dumps()
    assert engine.finish().lines == whole.finish().lines


@pytest.mark.parametrize(
    ("array", "field", "value"),
    [
        ("clusters", "slot", 1 << 40),
        ("clusters", "into", -1),
        ("clusters", "length", 7000),
        ("slots", "founder", 1 << 40),
        ("slots", "first", 1 << 40),
        ("values", "next", 1 << 40),
        ("values", "token", -3),
        ("lines", "cluster", -1),
        ("lines", "code", -1),
        ("tokens", "shown", 900),
        ("tokens", "code", -1),
        ("slots", "law", math.nan),
        ("counters", "records", -5),
    ],
)
def test_a_state_of_somebody_else_is_refused(array: str, field: str | None, value: float) -> None:
    engine = Engine(settings())
    run(engine, lines(400)[0])
    body = msgspec.msgpack.decode(engine.dumps())
    stored = body["templates"]["stream"]
    damaged = unpack(stored[array])
    (damaged if field is None else damaged[field]).reshape(-1)[0] = value
    stored[array] = pack(damaged)
    with pytest.raises(SnapshotError, match="the state is damaged"):
        Engine.loads(msgspec.msgpack.encode(body), settings())
    stored.pop(array)
    with pytest.raises(SnapshotError, match="the state is damaged"):
        Engine.loads(msgspec.msgpack.encode(body), settings())


def test_every_assignment_is_final_after_the_records_that_are_retained() -> None:
    texts = lines(1000)[0]
    engine = Engine(settings(retain=200))
    answers = run(engine, texts)
    through = -1
    for line in answers.lines:
        if isinstance(line, Assignment):
            assert line.seq > through
        else:
            through = line.final_through
    assert through == 799
    assert engine.finish().final_through == 999


@pytest.mark.parametrize("seed", range(4))
def test_templates_that_shared_a_label_become_one(seed: int) -> None:
    """A state of then can be read again, though no label changed."""
    engine, texts = Engine(Settings(likelihood="template")), unequal(seed)
    for i in range(0, len(texts), 50):
        engine.advance(texts[i : i + 50])
        assert Engine.loads(engine.dumps(), engine.settings).dumps() == engine.dumps()


def test_scoring_teaches_nothing() -> None:
    texts = lines(500)[0]
    engine = Engine(settings())
    run(engine, texts)
    found = engine.score([texts[7], "nobody has ever said this", [1.0, 2.0]], first=5)
    known, new = found.assignments
    assert (known.seq, known.cluster >= 0, new.cluster) == (5, True, -1)
    assert new.novelty > 3 * known.novelty
    assert [reject.reason for reject in found.rejects] == ["wrong_kind"]
    assert engine.seq == 500


def test_what_is_no_text_is_refused() -> None:
    answers = Engine(settings()).advance([[1.0, 2.0], "a text", {"a": 1.0}])
    assert [answer.cluster for answer in answers.assignments] == [0]
    assert [(reject.reason, isinstance(reject, Reject)) for reject in answers.rejects] == [
        ("wrong_kind", True)
    ] * 2


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({"beam": 4}, "beam"),
        ({"decay": "window"}, "decay"),
        ({"prior": "uniform"}, "prior"),
        ({"refine_every": 1000}, "refine_every"),
        ({"stem": "english"}, "stem"),
        ({"prior": "crp", "discount": 0.5}, "discount"),
        ({"base_concentration": 3.0}, "base_concentration"),
    ],
)
def test_a_setting_without_meaning_is_refused(given: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}"):
        Engine(settings(**given))


@pytest.mark.parametrize(
    "given", [{"rho_word": 0.5}, {"params": True}, {"pattern": "(?P<message>.*)"}, {"max_lines": 9}]
)
def test_settings_of_logs_are_refused_elsewhere(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(given))):
        Engine(Settings(**given))


def test_how_readily_a_word_is_a_hole_is_a_setting() -> None:
    texts = [f"state is {name} now" for name in ("red", "blue", "green", "black", "white", "pink")]
    counts = [len(_engine(texts, rho).clusters()) for rho in (1e-60, 1e-3)]
    assert counts[0] > counts[1]


def _engine(texts: list[str], rho_word: float) -> Engine:
    engine = Engine(settings(rho_word=rho_word))
    run(engine, texts)
    return engine


@pytest.mark.parametrize("final_only", [False, True])
def test_templates_beyond_a_bound_are_retired_and_lines_forgotten(final_only: bool) -> None:
    texts = [f"unit u{i}x of {'abcdefgh'[i // 8 % 8]}{'abcdefgh'[i % 8]}way is up" for i in range(60)]
    texts += lines(400)[0]
    texts += [f"nobody {chr(97 + i % 26)} knows what {chr(97 + i // 26)} was" for i in range(90)]
    texts += texts[:100] + lines(900, 3)[0]
    chosen = settings(max_lines=60, max_clusters=16, retain=100, params=True)
    options = {"final_only": final_only, "with_events": True}
    whole = Engine(chosen, **options)
    expected = run(whole, texts)
    counters = whole.counters()
    assert counters["lines_forgotten"] > 0
    assert len(whole.clusters()) == counters["clusters_live"] <= 16
    gone = [event for event in expected.events if event.event == "retired"]
    assert len(gone) == counters["clusters_retired"] == counters["clusters_closed"] > 5
    assert len({event.cluster for event in gone}) == len(gone)
    born = {event.cluster: event.seq for event in expected.events if event.event == "born"}
    for event in gone:
        assert event.template
        mine = [line for line in newest(expected).values() if line.cluster == event.cluster]
        assert born[event.cluster] < event.seq
        assert all(line.seq < event.seq for line in mine)
        if not final_only:
            assert event.size == len(mine)
            assert [event.first_time, event.last_time] == [
                1000.0 + min(line.seq for line in mine), 1000.0 + max(line.seq for line in mine)
            ]  # fmt: skip
    engine, found = Engine(chosen, **options), Answers([], [], [])
    given = records(texts)
    for start in range(0, len(given), 61):
        part = engine.advance(given[start : start + 61])
        found.lines.extend(part.lines)
        found.events.extend(part.events)
        engine = Engine.loads(engine.dumps(), chosen, **options)
    assert found.lines == expected.lines
    assert found.events == expected.events
    assert engine.dumps() == whole.dumps()


def test_bounds_are_settings() -> None:
    assert template_bounds(settings(memory_limit=1 << 40)) == USUAL
    assert template_bounds(settings(max_clusters=1, max_lines=2)) == (2, 2)


def test_the_crp_is_a_prior_of_templates() -> None:
    texts, kinds = lines(2000)
    engine = Engine(settings(prior="crp", concentration=2.0))
    found = newest(run(engine, texts))
    assert len({found[i].cluster for i in range(2000) if kinds[i] == 6}) == 1


def test_lines_of_spaces_are_no_samples_after_a_stop_either() -> None:
    settings = Settings(likelihood="template")
    through = Engine(settings)
    through.advance(["", " ", "disk full", "\u3000"])
    stopped = Engine.loads(through.dumps(), settings)
    for engine in (through, stopped):
        engine.advance(["", "disk 7 full", "  "])
    assert through.dumps() == stopped.dumps()


NAMES = ("ann", "bob", "cyd", "dora", "eve", "fay", "gil", "hana", "ivo", "jan", "kim", "lou")
EVENTS = ("open.started", "open.complete", "close.started", "close.complete")
FONTS = ("Arial", "Noto Sans", "Times New Roman", "Courier")


@pytest.mark.parametrize(
    ("count", "texts"),
    [
        (1, [f"user {name} logged in" for name in NAMES[:6]]),
        (1, [f"hello {name}" for name in NAMES]),
        (1, [f"{name} joined the channel" for name in NAMES]),
        (2, [f'msg="{verb} target"' for verb in ("Adding", "Removing")] * 50),
        (2, [f'{verb} for "job-{i}"' for i in range(50) for verb in ("StartContainer", "StopPodSandbox")]),
        (4, [f"{name} on port={i}" for i in range(40) for name in EVENTS]),
        (1, [f'loading font name="{font}" size={i}' for i in range(9) for font in FONTS]),
        (1, [f"loading font name={font} size={i}" for i in range(9) for font in FONTS]),
        (2, [f"web is up, msg={what} size={i}" for i in range(9) for what in ("done", "not done")]),
        (1, [f"hosts {list(NAMES[i : i + 1 + i % 3])} of zone are up" for i in range(9)]),
        (1, [f'got {{"id": {i}{tail}}} from queue' for i in range(9) for tail in ("", ', "of": ["a", "b"]')]),
        (1, [f"GET /a/b{tail} took 5 ms" for tail in ("?x=1&y=2", "?z=c", "?q=a,b&page=3")]),
    ],
)
def test_what_is_a_value_and_what_is_none(count: int, texts: list[str]) -> None:
    stream = LineStream(Terms())
    told = [label for part in stream.take(texts) for label in part.answers["label"].tolist()]
    older = roots(stream.state.clusters["older"][: stream.counters()["clusters_created"]])
    assert len(set(older[told])) == count
