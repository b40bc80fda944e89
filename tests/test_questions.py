"""The same question has the same answer, whatever is asked and by whichever door."""

from __future__ import annotations

import json
import shutil
import urllib.parse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis
import msgspec
import pytest
from commands import fail, newest_lines, parsed, succeed, wait_for
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
    ListEvents,
    ListMarks,
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
from streamdp.story.story import Story, iso

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
    ListStories(least=1, sort="title", reverse=True),
    ListStories(search="2", sort="now"),
    ShowStory(label=0),
    ListRecords(label=0, limit=3),
    ListRecords(label=0, after=20),
    ListRecords(label=0, latest=True, limit=2),
    ListRecords(label=0, latest=True, after=40, limit=2),
    ShowAnswer(id="r4"),
    ListChanges(since="1h", all=True),
    ListThemes(themes=2),
    ListMarks(),
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


WORDS = """
storm coast flood taxes vote parliament goal match striker film prize actor rail strike union virus ward nurse
orbit rocket crew grain harvest drought bridge tunnel ferry museum painting thief whale reef diver bank loan
rates chess gambit queen comet crater dust opera tenor stage
""".split()  # noqa: SIM905 - forty-five of them
"""Three for each story."""


class Known(NamedTuple):
    """A state and a store of many stories, with all that each lists; and their records as these were sent."""

    sources: list[tuple[LocalSource, list[Story]]]
    records: dict[int, list[dict[str, Any]]]

    def find(self, story: Story, words: list[str]) -> bool:
        """Whether a record of a story, or what the list says of it, holds all words."""
        texts = [record["text"] for record in self.records[story.label]]
        texts.append(" ".join([story.title, *story.keywords, *story.samples]))
        return any(all(word.lower() in text.lower() for word in words) for text in texts)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """A record a minute of stories that begin one after the other."""
    folder, sent = tmp_path_factory.mktemp("known"), []
    for i in range(900):
        first = 3 * max(i // 60 - (0, 0, 1, 0, 2, 0, 0)[i % 7], 0)
        text = f"{' '.join(WORDS[first : first + 3])} at {('dawn', 'noon', 'dusk')[i % 3]}"
        sent.append({"id": f"r{i}", "text": text, "time": BEGAN + 60 * i})
    (folder / "in.jsonl").write_text("".join(json.dumps(record) + "\n" for record in sent))
    run = ("consume", "in.jsonl", "--state", "st", "--store", "news.db", "--output", "out", "--keep", "text")
    succeed(folder, *run, "--max-lateness", "0", "--decay", "window", "--decay-scale", "150")
    records = defaultdict(list)
    for line in newest_lines((folder / "out").read_bytes()):
        records[line["cluster"]].append({"seq": line["seq"], **sent[line["seq"]]})
    both = (LocalSource(str(folder / name)) for name in ("st", "news.db"))
    every = ListStories(which="all", least=1, limit=1000)
    return Known([(source, source.answer(every).stories) for source in both], records)


NOW, NEWEST = 6 * 3600, BEGAN + 60 * 899
"""The latest half of the records took seven hours and a half: now is six hours."""


def test_what_is_said_of_a_story_is_what_its_records_say(known: Known) -> None:
    for _, stories in known.sources:
        assert {story.label for story in stories} == set(known.records)
        assert {story.trend for story in stories} == {"new", "fading", "silent"}
        assert {story.ended for story in stories} == {False, True}
        for story in stories:
            own = known.records[story.label]
            times = [record["time"] for record in own]
            back = Counter((NEWEST - time) // NOW for time in times)
            peak = max(NEWEST - NOW * (max(back, key=lambda n: (back[n], n)) + 1), times[0])
            assert (story.records, story.now, story.before) == (len(own), back[0], back[1])
            assert (story.began_time, story.peak_time, story.last_time) == (times[0], peak, times[-1])
            assert (story.began, story.peak, story.last) == (iso(times[0]), iso(peak), iso(times[-1]))
            assert story.title in {record["text"] for record in own}
            assert {*WORDS} & {*story.title.split()} <= {*story.keywords}
            if not story.ended:
                assert (story.first_seq, story.last_seq) == (own[0]["seq"], own[-1]["seq"])


ORDERS: dict[str, Callable[[Story], Any]] = {
    "size": lambda s: (-s.records, s.label),
    "growing": lambda s: (s.before - s.now, -s.records, s.label),
    "new": lambda s: -s.first_seq,
    "last": lambda s: (-s.last_seq, s.label),
}
MOMENTS = st.none() | st.integers(0, 15).map(lambda hours: iso(BEGAN + 3600.0 * hours))


@hypothesis.settings(max_examples=200)
@hypothesis.given(
    question=st.builds(
        ListStories,
        which=st.sampled_from(["live", "ended", "all"]),
        sort=st.sampled_from(sorted(ORDERS)),
        least=st.sampled_from([1, 1, 2, 60, 61]),
        search=st.sampled_from(["", "", "", "noon", "STORM dusk", "coast vote"]),
        since=MOMENTS,
        until=MOMENTS,
        growing=st.sampled_from([False, False, True]),
        start=st.integers(0, 3),
        limit=st.integers(1, 5),
    )
)
def test_the_stories_are_those_that_were_asked_for(known: Known, question: ListStories) -> None:
    def asked_for(story: Story) -> bool:
        return (
            question.which in ("all", "ended" if story.ended else "live")
            and (question.since is None or str(story.last) >= question.since)
            and (question.until is None or str(story.began) <= question.until)
            and (not question.growing or story.now > story.before)
            and (not question.search or known.find(story, question.search.split()))
        )

    for source, stories in known.sources:
        some = [story for story in stories if asked_for(story)]
        wanted = sorted((s for s in some if s.records >= question.least), key=ORDERS[question.sort])
        shown = wanted[question.start : question.start + question.limit]
        found = source.answer(question)
        assert [story.label for story in found.stories] == [story.label for story in shown]
        assert (found.total, found.small, found.records) == (len(wanted), len(some) - len(wanted), 900)
        rest = wanted[question.start + question.limit :]
        assert found.next == (question.start + question.limit if rest else None)


def test_records_of_a_story_are_read_a_page_at_a_time(known: Known) -> None:
    for source, _ in known.sources:
        for label, own in known.records.items():
            read, after = [], -1
            while after is not None:
                page = source.answer(ListRecords(label=label, after=after, limit=25))
                assert len(page.records) == min(25, len(own) - len(read))
                read += [(each.seq, each.id, each.time, each.text) for each in page.records]
                after = page.next
            assert read == [(each["seq"], each["id"], each["time"], each["text"]) for each in own]


def test_themes_are_as_many_as_were_asked_for_and_sum_up_their_stories(known: Known) -> None:
    for source, stories in known.sources:
        live = {story.label: story for story in stories if not story.ended}
        health = source.answer(ShowHealth())
        assert (health.records, health.live) == (900, len(live))
        for wanted in (1, 2, 3):
            found = source.answer(ListThemes(themes=wanted))
            assert (len(found.themes), found.live) == (wanted, len(live))
            assert sorted(label for theme in found.themes for label in theme.stories) == sorted(live)
            for theme in found.themes:
                own = [live[label] for label in theme.stories]
                assert theme.records == sum(story.records for story in own)
                assert (theme.now, theme.before) == (sum(s.now for s in own), sum(s.before for s in own))
                assert theme.title == max(own, key=lambda story: story.records).title


def test_changes_count_what_came_before_and_after(known: Known) -> None:
    since = iso(NEWEST - 7200.0)
    for source, stories in known.sources:
        found = source.answer(ListChanges(since=since, all=True, limit=1000))
        assert {each.label for each in found.changes} == {story.label for story in stories if not story.ended}
        assert {each.kind for each in found.changes} >= {"new", "surged"}
        for change in found.changes:
            times = [record["time"] for record in known.records[change.label]]
            before = sum(found.begin_time <= time < found.until_time for time in times)
            after = sum(found.since_time <= time <= found.end_time for time in times)
            counts = (0, len(times)) if change.kind == "new" else (before, after)
            assert (change.before, change.after) == counts
        listed = source.answer(ListChanges(since=since, limit=1)).total
        assert listed == sum(each.listed for each in found.changes) < found.total == len(found.changes)


def test_a_text_would_go_where_its_story_is_or_be_new(known: Known) -> None:
    source, stories = known.sources[0]
    labels = {story.title: story.label for story in stories if not story.ended}
    for text, label in [*labels.items(), ("zebra quilt umbrella lantern", None)]:
        found = source.answer(WhereWouldItGo(text=text)).candidates
        shares = [each.probability for each in found]
        assert (found[0].label, shares) == (label, sorted(shares, reverse=True))
        assert {each.label for each in found} <= {*labels.values(), None}


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
    events = (ListEvents(limit=3), ListEvents(label=0), ListEvents(latest=True, after=9, limit=2))
    questions = (*QUESTIONS, *events, WhereWouldItGo(text="storm at the coast"), ListCorrections())
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
    title = served.ask("GET", f"/v1/stories/{muted}")[1]["title"]
    body = json.dumps({"what": "mute", "stories": [muted]}).encode()
    number = served.ask("POST", "/v1/corrections", body)[1]["number"]
    RemoteSource(address).answer(ListStories())

    def listed(source: LocalSource | RemoteSource) -> list[int]:
        return [story.label for story in source.answer(ListStories()).stories]

    wait_for(lambda: muted not in listed(RemoteSource(address)))
    for name in ("st", "news.db"):
        wait_for(lambda name=name: muted not in listed(LocalSource(str(served.folder / name))))
    for source in (RemoteSource(address), LocalSource(str(served.folder / "news.db"))):
        assert source.answer(ShowStory(label=muted)).title == title  # it lives
        assert source.answer(ListRecords(label=muted)).records
    served.ask("POST", "/v1/corrections", json.dumps({"what": "undo", "undone": number}).encode())
    wait_for(lambda: muted in listed(RemoteSource(address)))
    wait_for(lambda: muted in listed(LocalSource(str(served.folder / "news.db"))))


def test_records_and_events_are_read_on_from_both_ends(folder: Path) -> None:
    for name, seqs in (("st", range(240)), ("news.db", range(240))):
        source, found = LocalSource(str(folder / name)), list[int]()
        after: int | None = -1
        while after is not None:
            some = source.answer(ListRecords(label=0, latest=True, after=after, limit=7))
            found += [record.seq for record in some.records]
            after = some.next
        assert found == sorted(found, reverse=True)
        assert found == [seq for seq in reversed(seqs) if seq in set(found)]
        assert len(found) == source.answer(ShowStory(label=0)).records
    store = LocalSource(str(folder / "news.db"))
    every = store.answer(ListEvents(limit=1000)).events
    assert {each.event for each in every} >= {"born", "titled"}
    back, latest = list[int](), 0
    while True:
        some = store.answer(ListEvents(latest=True, after=latest, limit=2))
        back += [each.number for each in some.events]
        if some.next is None:
            break
        latest = some.next
    assert back[::-1] == [each.number for each in every]
    own = store.answer(ListEvents(label=1)).events
    assert own == [each for each in every if 1 in (each.label, each.other)]
    shown = store.answer(ShowStory(label=1))
    assert (own[0].event, own[0].title) == ("born", shown.title)
    assert own[0].when == shown.began


def test_a_name_by_hand_is_no_sample(served: Served) -> None:
    remote, store = RemoteSource(f"http://127.0.0.1:{served.port}"), str(served.folder / "news.db")
    label = remote.answer(ListStories()).stories[0].label
    records = {record.text for record in remote.answer(ListRecords(label=label, limit=1000)).records}
    given = CorrectionRequest(what="rename", stories=(label,), title="Given by hand")
    number = remote.answer(given).number

    def shown(source: LocalSource | RemoteSource) -> Story:
        found: Story = source.answer(ShowStory(label=label))
        return found

    for make in (lambda: remote, partial(LocalSource, store)):
        wait_for(lambda make=make: shown(make()).title == "Given by hand")
        samples = shown(make()).samples
        assert samples
        assert set(samples) <= records
    remote.answer(CorrectionRequest(what="undo", undone=number))
    wait_for(lambda: shown(LocalSource(store)).title in records)


def test_a_state_shows_a_muted_story_and_no_name_as_a_sample(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "st", tmp_path / "st")
    state = LocalSource(str(tmp_path / "st"))
    before = state.answer(ShowStory(label=0))
    state.answer(CorrectionRequest(what="rename", stories=(0,), title="Given by hand"))
    state.answer(CorrectionRequest(what="mute", stories=(0,)))
    now = LocalSource(str(tmp_path / "st"))
    assert 0 not in {story.label for story in now.answer(ListStories(which="all")).stories}
    found = now.answer(ShowStory(label=0))
    assert (found.title, found.samples) == ("Given by hand", before.samples)
    assert now.answer(ListRecords(label=0)).records


WRONG = (
    ("list_stories", {"nonsense": 1}, "nonsense: there is no such field (there are: which, sort, "),
    ("list_stories", {"sort": "big"}, "sort: one of growing, last, new, now, size, title"),
    ("list_stories", {"limit": 0}, "limit: a whole number from 1 to 1000"),
    ("list_stories", {"since": "soon"}, "since: 'soon' is neither ISO 8601 nor a length of time"),
    ("list_stories", {"growing": "perhaps"}, "growing: true or false"),
    ("list_stories", {"since": ""}, "since: a text of 1 to 200 characters: a time (ISO 8601)"),
    ("list_changes", {}, "since: a text of 1 to 200 characters: a time (ISO 8601)"),
    ("list_changes", {"since": "0"}, "since: '0' is neither ISO 8601 nor a length of time"),
    ("list_marks", {"least": 1}, "least: there is no such field (there are: none)"),
    ("list_events", {"after": -1}, "after: a whole number from 0 to 1000000000000"),
    ("show_story", {"label": -1}, "label: a whole number from 0"),
    ("show_story", {"label": "first"}, "label: a whole number from 0"),
    ("list_records", {"label": 1.5}, "label: a whole number from 0"),
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
