"""The same question has the same answer, whatever is asked and by whichever door."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import msgspec
import pytest
from commands import fail, parsed, succeed, wait_for
from hypothesis import strategies as st
from serving import Served
from test_programs import asked

from streamdp.questions.asking import QuestionError
from streamdp.questions.parse import parse
from streamdp.questions.questions import (
    KIND_OF,
    KINDS,
    Asked,
    ListChanges,
    ListCorrections,
    ListRecords,
    ListStories,
    ListThemes,
    ShowAnswer,
    ShowHealth,
    ShowStory,
    WhereWouldItGo,
)
from streamdp.questions.sources import LocalSource, RemoteSource
from streamdp.state.corrections import CorrectionRequest

BEGAN = 1_700_000_000
TALES = (
    ("storm over the coast", "coast storm tonight"),
    ("parliament votes on taxes", "taxes vote in parliament"),
    ("late goal wins the match", "the match has a late goal"),
)

QUESTIONS: tuple[Asked, ...] = (
    ListStories(),
    ListStories(which="all", least=1, sort="new"),
    ListStories(search="STORM coast", growing=False),
    ListStories(since="30m", limit=1),
    ListStories(until="2023-11-14T22:20:00Z", sort="last"),
    ShowStory(label=0),
    ListRecords(label=0, limit=3),
    ListRecords(label=0, after=20),
    ShowAnswer(id="r4"),
    ListChanges(since="1h", all=True),
    ListThemes(themes=2),
    ShowHealth(),
)
"""What a state and a store of the same run answer alike."""


def stream() -> list[dict[str, Any]]:
    """Three stories side by side; the third begins in the second half."""
    rows = []
    for i in range(240):
        tale = TALES[i % 2 if i < 120 else i % 3]
        text = f"{tale[i // 3 % 2]} again {i % 4}"
        rows.append({"id": f"r{i}", "text": text, "time": BEGAN + 60 * i})
    return rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state and a store of a run that has ended."""
    made = tmp_path_factory.mktemp("questions")
    (made / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in stream()))
    succeed(
        made,
        "consume",
        "in.jsonl",
        "--state",
        "st",
        "--store",
        "news.db",
        "--max-lateness",
        "0",
        "--keep",
        "text",
    )
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"), "--max-lateness", "0")
    made.send(*stream())
    yield made
    assert made.stop() == 0


def plain(answer: Any) -> dict[str, Any]:
    """As JSON, without what only one of the sources can know."""
    found: dict[str, Any] = json.loads(msgspec.json.encode(answer))
    for story in (found, *found.get("stories", ())):
        story.pop("confused_with", None)  # how records were labelled at first: a store alone has it
    return found


@pytest.mark.parametrize("question", QUESTIONS, ids=repr)
def test_a_state_and_a_store_answer_alike(folder: Path, question: Asked) -> None:
    state, store = (LocalSource(str(folder / name)) for name in ("st", "news.db"))
    assert plain(state.answer(question)) == plain(store.answer(question))


def by_http(served: Served, question: Asked) -> Any:
    kind = KIND_OF[type(question)]
    given = {k: v for k, v in msgspec.to_builtins(question).items() if v is not None}
    path = kind.path.format(**given)
    if kind.posted:
        return served.ask("POST", path, json.dumps(given).encode())[1]
    query = {
        k: json.dumps(v) if isinstance(v, bool) else v
        for k, v in given.items()
        if f"{{{k}}}" not in kind.path
    }
    return served.ask("GET", f"{path}?{urllib.parse.urlencode(query)}")[1]


def test_every_question_is_answered_alike_through_every_door(served: Served) -> None:
    """HTTP, a client in Python, and tools of the service and of the folder of its state."""
    address = f"http://127.0.0.1:{served.port}"
    client = RemoteSource(address)
    questions = (*QUESTIONS, WhereWouldItGo(text="storm at the coast"), ListCorrections())
    assert {type(each) for each in questions} | {CorrectionRequest} == {kind.takes for kind in KINDS}
    calls = [(KIND_OF[type(each)].name, given_of(each)) for each in questions]
    tools = asked(served.folder, [address, "--allow-corrections"], *calls).answers
    for question, by_tool in zip(questions, tools, strict=True):
        by_path = by_http(served, question)
        assert json.loads(msgspec.json.encode(client.answer(question))) == by_path
        assert by_tool == by_path, question


def given_of(question: Asked) -> dict[str, Any]:
    """The fields of a question that say something."""
    return {k: v for k, v in msgspec.to_builtins(question).items() if v is not None}


def test_a_muted_story_is_muted_everywhere(served: Served) -> None:
    address = f"http://127.0.0.1:{served.port}"
    labels = [story["label"] for story in served.ask("GET", "/v1/stories")[1]["stories"]]
    muted = labels[-1]
    body = json.dumps({"what": "mute", "stories": [muted]}).encode()
    number = served.ask("POST", "/v1/corrections", body)[1]["number"]
    RemoteSource(address).answer(ListStories())

    def listed(source: LocalSource | RemoteSource) -> list[int]:
        return [story.label for story in source.answer(ListStories()).stories]

    wait_for(lambda: muted not in listed(RemoteSource(address)))
    for name in ("st", "news.db"):
        wait_for(lambda name=name: muted not in listed(LocalSource(str(served.folder / name))))
    served.ask("POST", "/v1/corrections", json.dumps({"what": "undo", "undone": number}).encode())
    wait_for(lambda: muted in listed(RemoteSource(address)))
    wait_for(lambda: muted in listed(LocalSource(str(served.folder / "news.db"))))


WRONG = (
    ("list_stories", {"nonsense": 1}, "nonsense: there is no such field (there are: which, sort, "),
    ("list_stories", {"sort": "big"}, "sort: one of growing, last, new, size"),
    ("list_stories", {"limit": 0}, "limit: a whole number from 1 to 1000"),
    ("list_stories", {"since": "soon"}, "since: 'soon' is neither ISO 8601 nor a length of time"),
    ("list_stories", {"growing": "perhaps"}, "growing: true or false"),
    ("list_changes", {}, "since: a text of at most 200 characters: a time (ISO 8601)"),
    ("show_story", {"label": 99_999}, "there is no story 99999: it may have become part of another"),
    ("list_records", {"label": 99_999}, "there is no story 99999: it may have become part of another"),
    ("show_answer", {"id": "nobody"}, "no record of this id is known here"),
)


def test_what_cannot_be_answered_is_refused_in_the_same_words(served: Served, folder: Path) -> None:
    address = f"http://127.0.0.1:{served.port}"
    calls = [(name, given) for name, given, _ in WRONG]
    of_service = asked(served.folder, [address], *calls).answers
    of_store = asked(folder, ["news.db"], *calls).answers
    paths = {kind.name: kind.path for kind in KINDS}
    for (name, given, wanted), *tools in zip(WRONG, of_service, of_store, strict=True):
        query = urllib.parse.urlencode({k: v for k, v in given.items() if k != "label"})
        status, said = served.ask("GET", f"{paths[name].format(**given)}?{query}")
        assert status in (400, 404)
        assert said["error"].startswith(wanted)
        assert tools[0] == tools[1] == said["error"]


ANY = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)


@hypothesis.given(
    kind=st.sampled_from(KINDS),
    fields=st.dictionaries(st.sampled_from(["label", "limit", "since", "sort", "text", "id", "x"]), ANY),
)
def test_whatever_is_given_is_a_question_or_refused(kind: Any, fields: dict[str, Any]) -> None:
    question = refused = None
    try:
        question = parse(kind.takes, fields)
    except QuestionError as error:
        refused = error.message
    if question is None:
        assert refused is not None
        assert refused.partition(":")[0] in {*fields, *kind.takes.__struct_fields__}
    else:
        assert parse(kind.takes, msgspec.to_builtins(question)) == question


def test_the_command_lists_what_the_question_answers(folder: Path) -> None:
    shown = parsed(succeed(folder, "stories", "st", "--all", "--json"))
    answered = LocalSource(str(folder / "st")).answer(ListStories(which="all", sort="last"))
    assert [story["label"] for story in shown] == [story.label for story in answered.stories]
    assert fail(folder, "stories", "st", "--since", "soon")[0] == 64
