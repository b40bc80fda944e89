"""Corrections of templates by hand: against plain Python, through restarts and forgetting, and crashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from commands import fail, go_on_killed, parsed, succeed

from streamdp import Correction, Engine, Record, Settings
from streamdp.records import Answers, Assignment
from streamdp.state.corrections import CorrectionError
from tests.oracle import closing as plain
from tests.oracle.template_stream import Stream
from tests.oracle.templates import Cluster, tokens_of
from tests.test_closing import requests

Given = list[tuple[int, Correction]]


def advance(engine: Engine, texts: list[str], first: int) -> list[Any]:
    """Lines that are told of some texts, the first of which has this number."""
    return engine.advance(
        [Record(text, {"line": first + i}, time=1000.0 + first + i) for i, text in enumerate(texts)]
    ).lines


def label_of(engine: Engine, begins: str) -> int:
    """The largest template that begins so."""
    return next(c.cluster for c in engine.clusters() if str(c.template).startswith(begins))


def correct(engine: Engine, given: Given, what: Any, *stories: int, **more: Any) -> Answers:
    """Correct an engine, and note it."""
    given.append((engine.seq, Correction(what=what, stories=stories, number=len(given) + 1, **more)))
    return engine.correct(given[-1][1])


def plain_rule(cluster: Cluster, hole: int, value: str | None) -> plain.Rule:
    """What closes a hole of a template, in plain Python."""
    shape = [slot.founder if slot.constant else None for slot in cluster.slots]
    places = [i for i, w in enumerate(shape) if w is None or ("0" in w and not plain.shut(w))]
    return plain.Rule(shape, places[hole - 1], value)


def plain_labels(texts: list[str], given: Given, **bounds: int) -> list[int]:
    """The labels of lines as they are first told, in plain Python."""
    oracle, rules, found = Stream(**bounds), dict[int, plain.Rule](), []
    made = {correction.number: correction for _, correction in given}
    for i, text in enumerate(texts):
        for _, each in [one for one in given if one[0] == i]:
            if each.what == "merge":
                oracle.one_label(*each.stories)
            elif each.what == "undo":
                lifted = made[int(each.undone or 0)]
                rules.pop(lifted.number, None)
                if lifted.what == "merge" and set(lifted.stories) <= oracle.clusters.keys():
                    del oracle.older[max(lifted.stories)]
            else:
                cluster = oracle.clusters[each.stories[0]]
                rules[each.number] = plain_rule(cluster, int(each.hole or 0), each.value)
        found.append(oracle.absorb(tokens_of(text, (), plain.Closing((), [*rules.values()]))))
    return found


@pytest.mark.parametrize("bounds", [{}, {"most": 60}, {"templates": 26}])
def test_corrected_templates_are_those_of_plain_python(bounds: dict[str, int]) -> None:
    names = {"most": "max_lines", "templates": "max_clusters"}
    chosen = Settings(likelihood="template", retain=50, **{names[k]: n for k, n in bounds.items()})
    engine, given, texts = Engine(chosen, with_events=True), Given(), requests(900, 8)
    told = advance(engine, texts[:300], 0)
    answered, sent = label_of(engine, "answered with code"), label_of(engine, "user")
    correct(engine, given, "close", answered, hole=1)
    correct(engine, given, "split", sent, hole=2, value="200")
    told += advance(engine, texts[300:450], 300)
    engine = Engine.loads(engine.dumps(), chosen, with_events=True)
    first = label_of(engine, "answered with code=404")
    second = label_of(engine, "answered with code=500")
    merged = correct(engine, given, "merge", second, first)
    told += [*merged.lines, *advance(engine, texts[450:600], 450)]
    assert second != first
    assert [(event.event, event.cluster, event.other) for event in merged.events] == [
        ("merged", max(first, second), min(first, second))
    ]
    correct(engine, given, "undo", undone=2)
    correct(engine, given, "undo", undone=3)
    again = Engine.loads(engine.dumps(), chosen, with_events=True)
    assert again.dumps() == engine.dumps()
    told += advance(again, texts[600:], 600)
    labels = {line.seq: line.cluster for line in reversed(told) if isinstance(line, Assignment)}
    assert [labels[i] for i in range(900)] == plain_labels(texts, given, **bounds)
    counted = again.counters()
    assert (counted["lines_forgotten"] > 0) == ("most" in bounds)
    assert (counted["clusters_retired"] > 0) == ("templates" in bounds)
    after = {labels[i] for i in range(300, 900) if texts[i].startswith("answered")}
    assert answered not in after
    assert len(after) > 3


def test_what_is_closed_is_shown_and_the_rest_counted() -> None:
    engine, given = Engine(Settings(likelihood="template", params=True)), Given()
    texts = [f"GET /cart/{i} {(200, 500)[i % 5 == 0]} {i % 90}ms" for i in range(60)]
    advance(engine, texts, 0)
    correct(engine, given, "close", 0, hole=2)
    told = advance(engine, texts, 60)
    shown = {(line.template, *line.params[1:]) for line in told if isinstance(line, Assignment)}
    assert {template for template, _ in shown} == {
        "GET /cart/<num> 200 <num>ms",
        "GET /cart/<num> 500 <num>ms",
    }
    past = engine.past()
    assert past is not None
    assert {len(past.holes[label]) for label in (1, 2)} == {2}
    assert sorted(c.size for c in engine.clusters()) == [12, 48, 60]
    assert sum(c.size for c in engine.clusters()) == 120


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            {"what": "close", "stories": (0,), "hole": 9},
            "template 0 has 3 holes that can be closed, and no hole 9",
        ),
        (
            {"what": "split", "stories": (0,), "seqs": (1,)},
            "split a template by a value: split 0 hole",
        ),
        ({"what": "keep-apart", "stories": (0, 1)}, "not for templates"),
        ({"what": "close", "stories": (7,), "hole": 1}, "there is no live story 7"),
    ],
)
def test_what_makes_no_sense_of_templates_is_refused(more: dict[str, Any], why: str) -> None:
    engine, given = Engine(Settings(likelihood="template")), Given()
    advance(engine, ["GET /a/1 200 7ms", "GET /a/2 200 8ms", "shop is closed"], 0)
    before = engine.dumps()
    with pytest.raises(CorrectionError, match=why):
        engine.correct(Correction(**more))
    assert engine.dumps() == before
    correct(engine, given, "close", 0, hole=2)
    with pytest.raises(CorrectionError, match="that is so already"):
        correct(engine, given, "close", 0, hole=2)


def test_holes_are_of_templates_only() -> None:
    engine = Engine(Settings(beam=2))
    engine.advance(["storm over the coast", "coast storm"])
    with pytest.raises(CorrectionError, match="a hole is of templates"):
        engine.correct(Correction(what="close", stories=(0,), hole=1))
    for wrong in ({"what": "close"}, {"what": "split", "hole": 1}, {"what": "pin", "hole": 1}):
        with pytest.raises(ValueError, match=r"belongs to|names"):
            Correction(**{"stories": (0,), **wrong})


RUN = ("consume", "app.log", "--format", "log", "--output", "out", "--events", "events", "--state", "state")
SETTINGS = {"snapshot_every": "500"}


@pytest.fixture(scope="module")
def half(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the state of 1,500 lines of a log, and all of them."""
    folder = tmp_path_factory.mktemp("half")
    lines = [
        f"2026-01-05T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02} {text}\n"
        for i, text in enumerate(requests(3000, 9))
    ]
    (folder / "app.log").write_text("".join(lines[:1500]))
    succeed(folder, *RUN, **SETTINGS)
    (folder / "app.log").write_text("".join(lines))
    return folder


def copied(half: Path, folder: Path) -> Path:
    import shutil

    shutil.copytree(half, folder, dirs_exist_ok=True)
    return folder


def test_sigkill_at_any_moment_changes_no_byte(half: Path, tmp_path: Path) -> None:
    """Killed before and after the position was noted: the outputs are those of a quiet run."""
    folder = copied(half, tmp_path / "quiet")
    shown = parsed(succeed(folder, "stories", "state", "--json", "--least", "1"))

    def label(begins: str) -> str:
        return str(next(each["label"] for each in shown if each["title"].startswith(begins)))

    succeed(folder, "correct", "state", "close", label("answered with code"), "hole", "1")
    succeed(folder, "correct", "state", "split", label("user"), "hole", "2", "200")
    succeed(folder, "correct", "state", "merge", label("DELETE"), label("GETS"))
    marked = copied(folder, tmp_path / "killed")
    succeed(folder, *RUN, **SETTINGS)
    go_on_killed(marked, *RUN, **SETTINGS)
    for name in ("out", "events", "state/corrections"):
        assert (marked / name).read_bytes() == (folder / name).read_bytes(), name
    listed = succeed(folder, "correct", "state", "list").decode().splitlines()
    assert [line.split("  ")[1].split()[0] for line in listed] == ["close", "split", "merge"]
    assert " hole 2 200  (" in listed[1]
    templates = {line["template"] for line in parsed((folder / "out").read_bytes()) if "template" in line}
    assert {template.split()[2][:8] for template in templates if template.startswith("answered")} >= {
        *("code=<nu", "code=404", "code=500", "code=99"),
    }


def test_a_hole_that_is_none_is_refused_in_one_line(half: Path, tmp_path: Path) -> None:
    folder = copied(half, tmp_path)
    for words, why in (
        (("close", "0"), "close names a story and a hole: close 7 hole 2"),
        (("close", "0", "hole", "x"), "'x' is no number"),
        (("split", "0", "hole", "99", "x"), "and no hole 99"),
    ):
        code, told = fail(folder, "correct", "state", *words)
        assert code == 64
        assert why in told
