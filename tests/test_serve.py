"""The service: records in, answers out, in order and once, whoever sends what."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from commands import call as call_command
from commands import fail, succeed, wait_for
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pages import blocks, same, sessions
from serving import Served, stored
from streamdp_connectors.journal.source import JournalSource
from streamdp_connectors.journal.writer import Journal
from streamdp_connectors.store.sink import StoreSink

from streamdp.decode.decoder import Decoder
from streamdp.page.errors import AskError
from streamdp.questions.answers import Answer
from streamdp.questions.sources import QuestionError, RemoteSource
from streamdp.records import Answers, Lines, Record, Reject
from streamdp.records.columns import Columns
from streamdp.serve import ingest as ingest_module
from streamdp.serve.bodies import MOST, records_of, unpacked
from streamdp.serve.ingest import IngestQueue, reader_of
from streamdp.serve.openapi import document

NDJSON = "application/x-ndjson"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"))
    made.send({"id": "first", "text": "storm over the coast"}, {"id": "second", "text": "coast storm"})
    yield made
    assert made.stop() == 0
    assert b"Traceback" not in made.said
    assert b"Error:" not in made.said, made.said


def records(served: Served) -> int:
    """How many records the store holds."""
    with sqlite3.connect(served.folder / "news.db") as store:
        return int(store.execute("SELECT count(*) FROM records").fetchone()[0])


def test_answers_come_in_the_order_and_the_form_of_the_records(served: Served) -> None:
    status, one = served.ask("POST", "/v1/records", b'{"id": "o1", "text": "storm at the coast"}')
    assert (status, one["status"], one["id"], one["label"], one["new"]) == (200, "answered", "o1", 0, False)
    status, several = served.send({"id": "o2", "text": "parliament votes"}, {"id": "o3", "text": "a storm"})
    assert (status, [each["id"] for each in several]) == (200, ["o2", "o3"])
    body = b'{"id": "o4", "text": "parliament"}\r\n\n{"id": "o5", "text": "votes"}'
    status, lines = served.ask("POST", "/v1/records", body, NDJSON)
    assert (status, [each["id"] for each in lines]) == (200, ["o4", "o5"])
    packed = gzip.compress(b'{"id": "o6", "text": "a vote"}\n', mtime=0) + gzip.compress(
        b'{"id":"o7","text":"votes"}\n'
    )
    status, found = served.ask(
        "POST", "/v1/records", packed, NDJSON, content_encoding="gzip", accept="application/json"
    )
    assert (status, [each["id"] for each in found]) == (200, ["o6", "o7"])
    pretty = json.dumps([{"id": "o8", "text": "over\nlines"}], indent=2).encode()
    assert served.ask("POST", "/v1/records", pretty)[1][0]["id"] == "o8"
    assert [each["line"] for each in lines] == sorted(each["line"] for each in lines)


def test_what_cannot_be_read_is_refused_in_its_place(served: Served) -> None:
    body = b'{"id": "r1", "text": "a storm"}\n{"id": "r2", "text":\n'
    body += b'{"id": "r3", "text": "the coast", "time": "soon"}\n7\n'
    status, found = served.ask("POST", "/v1/records", body + b'{"id": "r5", "text": "the vote"}', NDJSON)
    assert status == 200
    assert [each["status"] for each in found] == ["answered", "refused", "refused", "refused", "answered"]
    assert all(each["reason"] and each["detail"] for each in found if each["status"] == "refused")
    assert served.send({"nothing": 1})[0] == 422


@pytest.mark.parametrize(
    ("body", "kind", "encoding", "status"),
    [
        (b'{"text": ', "application/json", "", 400),
        (b'[{"text": "a"}', "application/json", "", 400),
        (b'{"text": "a"} {', "application/json", "", 400),
        (b"\xff\xfe", "application/json", "", 400),
        (b"", "application/json", "", 400),
        (b"\n\n", NDJSON, "", 400),
        (b"[" * 100_000, "application/json", "", 400),
        (b"text=a", "application/x-www-form-urlencoded", "", 415),
        (b"[]", "application/json", "", 400),
        (b"[" + b"1," * MOST + b"1]", "application/json", "", 413),
        (gzip.compress(b'{"text": "a"}\n', mtime=0)[:-3], NDJSON, "gzip", 400),
        (b"no gzip", NDJSON, "gzip", 400),
        (b"{}", NDJSON, "br", 415),
        (gzip.compress(bytes(65 << 20), mtime=0), NDJSON, "gzip", 413),
    ],
)
def test_a_body_that_is_none_is_refused_whole(
    served: Served, body: bytes, kind: str, encoding: str, status: int
) -> None:
    more = {"content_encoding": encoding} if encoding else {}
    before = records(served)
    found, said = served.ask("POST", "/v1/records", body, kind, **more)
    assert (found, list(said)) == (status, ["error"]), said
    assert records(served) == before


def test_a_body_that_is_too_long_is_not_read(served: Served) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        head = "POST /v1/records HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n"
        client.sendall(head.encode())
        assert client.recv(1000).startswith(b"HTTP/1.1 413")


def test_of_a_body_that_is_cut_off_nothing_is_taken(served: Served) -> None:
    record = b'{"id": "cut", "text": "a storm"}\n'
    with socket.create_connection(("127.0.0.1", served.port)) as client:
        head = f"POST /v1/records HTTP/1.1\r\nhost: localhost\r\ncontent-type: {NDJSON}\r\n"
        client.sendall(head.encode() + b"content-length: 5000\r\n\r\n" + record * 3)
        time.sleep(0.2)
    time.sleep(0.3)
    assert served.ask("GET", "/v1/answers?id=cut")[0] == 404
    assert served.ask("POST", "/v1/records", record, NDJSON)[0] == 200


def test_a_label_that_no_store_could_hold_is_none_of_a_story(served: Served) -> None:
    for path in ("/v1/stories/{}", "/v1/stories/{}/records", "/api/shown/{}"):
        status, said = served.ask("GET", path.format(10**19))
        assert (status, list(said)) == (404, ["error"]), path
    assert served.ask("GET", f"/v1/events/list?label={10**19}") == (200, {"events": [], "next": None})


@pytest.mark.parametrize("name", ["again", "a\x00b", "\x00", 17, "with \U0001f4f0 and 'quotes\""])
def test_the_same_id_gets_the_same_answer_and_is_no_second_record(served: Served, name: str | int) -> None:
    sent = {"id": name, "text": f"a storm at the coast {name}"}
    status, (first,) = served.send(sent)
    assert (status, first["id"]) == (200, str(name))
    before = records(served)
    assert served.send(sent) == (200, [first])
    assert served.send({**sent, "more": 1}, sent, sent) == (200, [first, first, first])
    assert served.ask("GET", f"/v1/answers?id={urllib.parse.quote(str(name))}") == (200, first)
    assert records(served) == before
    with sqlite3.connect(served.folder / "news.db") as store:
        assert store.execute("SELECT text FROM records WHERE id = ?", (str(name),)).fetchall() == [
            (sent["text"],)
        ]


def conflicts(served: Served) -> float:
    found = re.search(r"^streamdp_conflicts_total (\S+)$", served.ask("GET", "/metrics")[1], re.MULTILINE)
    assert found is not None
    return float(found[1])


def test_the_same_id_with_another_text_is_a_conflict(served: Served) -> None:
    _, (first,) = served.send({"id": "taken", "text": "a storm at the coast"})
    before, counted = records(served), conflicts(served)
    status, found = served.send(
        {"id": "taken", "text": "parliament votes"},
        {"id": "fresh", "text": "the bank raises rates"},
        {"id": "taken", "text": "a storm at the coast"},
        {"id": "fresh", "text": "the bank lowers rates"},
        {"id": "fresh", "text": "the bank raises rates"},
        {"id": "taken"},
    )
    assert status == 200
    assert [each["status"] for each in found] == [
        *("refused", "answered", "answered", "refused", "answered", "refused")
    ]
    for each, name in ((found[0], "taken"), (found[3], "fresh")):
        assert (each["code"], each["reason"], each["id"]) == (409, "conflict", name)
    assert found[2] == first
    assert found[1] == found[4]
    assert found[5]["reason"] == "missing_field"
    assert records(served) == before + 1
    assert conflicts(served) == counted + 2
    status, alone = served.ask("POST", "/v1/records", b'{"id": "taken", "text": "parliament votes"}')
    assert (status, alone["code"]) == (409, 409)
    assert served.send({"id": "taken", "text": "c"}, b"{}".decode())[0] == 422
    assert served.ask("GET", "/v1/answers?id=taken") == (200, first)


def test_a_conflict_is_known_after_a_restart(tmp_path: Path) -> None:
    """Of records that are answered by their texts in the store, of those that wait by the journal."""
    served = Served(tmp_path, "--max-lateness", "60", "--answer-within", "0.2", "--vector-field", "place")
    vectors = [{"id": f"v{n}", "place": [n % 2, 0.5], "time": 1e9 + n} for n in range(100)]
    before = served.send(*vectors)[1]
    assert {each["status"] for each in before} >= {"pending"}
    assert served.stop(signal.SIGKILL) == -signal.SIGKILL
    served = Served(tmp_path, "--max-lateness", "60", "--answer-within", "0.2", "--vector-field", "place")
    same = served.send(*vectors)[1]
    assert {each["status"] for each in same} <= {"answered", "pending"}
    other = served.send(*({**each, "place": [5, 5]} for each in vectors))[1]
    assert {each.get("code") for each in other} == {409}
    assert served.stop() == 0


def test_stories_and_their_records(served: Served) -> None:
    found = served.ask("GET", "/v1/stories?sort=new&limit=2&start=1&least=1")[1]
    assert len(found["stories"]) == 2 < found["total"]
    label = served.ask("GET", "/v1/answers?id=first")[1]["label"]
    assert served.ask("GET", f"/v1/stories/{label}")[1]["title"]
    found, after = [], -1
    while after is not None:
        page = served.ask("GET", f"/v1/stories/{label}/records?limit=2&after={after}")[1]
        found += page["records"]
        after = page["next"]
    assert [each["id"] for each in found][:2] == ["first", "second"]
    assert found == served.ask("GET", f"/v1/stories/{label}/records?limit=1000")[1]["records"]
    for path, status in {
        "/v1/stories?sort=big": 400,
        "/v1/stories?limit=0": 400,
        "/v1/stories/99999": 404,
        "/v1/stories/99999/records": 404,
        "/v1/answers": 400,
        "/v1/answers?id=nobody": 404,
        "/v1/none": 404,
    }.items():
        found_status, said = served.ask("GET", path)
        assert (found_status, list(said)) == (status, ["error"]), path
    assert served.ask("GET", "/v1/records")[0] == 405


def test_where_a_text_would_go_learns_nothing(served: Served) -> None:
    before = records(served)
    status, found = served.ask("POST", "/v1/where", b'{"text": "storm coast"}')
    assert (status, found["candidates"][0]["label"]) == (200, 0)
    conforms("/v1/where", "post", status, "application/json", found)
    assert records(served) == before


def listened(served: Served, after: int, until: int) -> list[tuple[int, str]]:
    """Numbers and kinds of events after one, up to another."""
    ask = urllib.request.Request(
        f"http://127.0.0.1:{served.port}/v1/events", headers={"last-event-id": str(after)}
    )
    found, kind = list[tuple[int, str]](), ""
    with urllib.request.urlopen(ask, timeout=120) as stream:
        while not found or found[-1][0] < until:
            line = stream.readline().decode()
            kind = line[7:].strip() if line.startswith("event: ") else kind
            if line.startswith("id: "):
                found.append((int(line[4:]), kind))
    return found


def test_events_go_on_after_the_last_that_was_heard(served: Served) -> None:
    served.send({"text": "quantum computers factor numbers"}, {"text": "the museum opens its doors"})
    whole = listened(served, 0, 3)
    assert [number for number, _ in whole] == list(range(1, len(whole) + 1))
    assert whole[0][1] == "born"
    assert listened(served, 1, 3)[:2] == whole[1:3]


def test_who_heard_an_event_that_is_not_there_is_told_where_events_go_on(served: Served) -> None:
    """The store was made anew, or no longer holds what came next."""

    with sqlite3.connect(served.folder / "news.db") as store:
        (newest,) = store.execute("SELECT max(number) FROM events").fetchone()
    assert listened(served, newest + 50, 1) == [(newest, "reset")]
    assert listened(served, newest - 1, 1) != [(newest, "reset")]


def test_page_metrics_and_health_are_served_too(served: Served) -> None:
    assert "<html" in served.ask("GET", "/")[1]
    assert "streamdp_records_total" in served.ask("GET", "/metrics")[1]
    assert served.ask("GET", "/livez") == (200, "ok\n")
    assert served.ask("GET", "/api/status")[0] == 200
    assert served.ask("GET", "/readyz", host="evil.example")[0] == 421
    assert served.ask("POST", "/v1/records", b"{}", origin="http://evil.example")[0] == 403


# ---------------------------------------------------------------- anything at all

SCHEMAS = document()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
RECORDS = VALUES | st.fixed_dictionaries(
    {}, optional={"text": VALUES, "id": VALUES, "time": VALUES, "vector": VALUES, "features": VALUES}
)
BODIES = (
    st.binary(max_size=200)
    | RECORDS.map(lambda value: json.dumps(value).encode())
    | st.lists(RECORDS, max_size=4).map(lambda values: json.dumps(values).encode())
    | st.lists(RECORDS, max_size=4).map(lambda values: "\n".join(map(json.dumps, values)).encode())
    | st.binary(max_size=100).map(gzip.compress)
)


def conforms(path: str, method: str, status: int, kind: str, value: Any) -> None:
    """An answer is as the document says."""
    described = SCHEMAS["paths"][path][method]["responses"][str(status)]["content"][kind]["schema"]
    jsonschema.validate(value, {**described, "components": SCHEMAS["components"]})


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    body=BODIES,
    kind=st.sampled_from(["application/json", NDJSON, "text/plain", "x/y", ""]),
    encoding=st.sampled_from(["", "", "", "gzip", "br"]),
)
def test_whatever_is_sent_the_answer_is_one_of_those_described(
    served: Served, body: bytes, kind: str, encoding: str
) -> None:
    more = {"content_encoding": encoding} if encoding else {}
    status, said = served.ask("POST", "/v1/records", body, kind, **more)
    if status in (200, 422) and kind != "application/json":
        assert all(msgspec.convert(each, Answer) for each in said)
    else:
        conforms("/v1/records", "post", status, "application/json", said)


NUMBERS = st.integers().map(str) | st.text(st.characters(codec="ascii", exclude_characters="&#"), max_size=8)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    path=st.sampled_from(
        ["/v1/stories", "/v1/stories/{label}", "/v1/stories/{label}/records", "/v1/answers"]
    ),
    label=st.integers(0, 5),
    query=st.dictionaries(
        st.sampled_from(["sort", "closed", "least", "start", "limit", "after", "id"]),
        NUMBERS | st.sampled_from(["size", "new", "true", "first", "1", "2"]),
        max_size=3,
    ),
)
def test_whatever_is_asked_the_answer_is_as_described(
    served: Served, path: str, label: int, query: dict[str, str]
) -> None:
    asked = path.replace("{label}", str(label)) + "?" + urllib.parse.urlencode(query)
    status, said = served.ask("GET", asked)
    conforms(path, "get", status, "application/json", said)


def test_the_document_is_served_and_names_every_path(served: Served) -> None:
    status, said = served.ask("GET", "/v1/openapi.json")
    assert (status, said) == (200, json.loads(json.dumps(SCHEMAS)))
    for references in re.findall(r'"#/components/schemas/(\w+)"', json.dumps(said)):
        assert references in said["components"]["schemas"]


# ---------------------------------------------------------------- the door alone


@pytest.mark.parametrize("kind", [NDJSON, "application/json"])
def test_what_other_readers_of_json_take_is_answered_once(served: Served, kind: str) -> None:
    number = 9700 if kind == NDJSON else 9800
    lines = [
        f'{{"id": {number}.0, "text": "a storm", "x": NaN, "time": "1767571201"}}',
        f'{{"id": {number + 1}, "text": "a storm \\ud83d", "time": ""}}',
        f'{{"id": "{number}-\\udc00", "text": "the coast", "x": [-Infinity, "a, \\ud800"]}}',
    ]
    body = "\n".join(lines) if kind == NDJSON else f"[{','.join(lines)}]"
    before = records(served)
    for _ in range(2):
        status, found = served.ask("POST", "/v1/records", body.encode(), kind)
        assert (status, [each["status"] for each in found]) == (200, ["answered"] * 3), found
        assert [str(each["id"]) for each in found] == [f"{number}", f"{number + 1}", f"{number}-\ufffd"]
        assert records(served) == before + 3
    for line in lines if kind != NDJSON else ():  # the same as one record
        assert served.ask("POST", "/v1/records", line.encode(), kind)[1]["status"] == "answered"
    assert records(served) == before + 3


def run(door: IngestQueue, *batches: list[bytes | Answer]) -> list[Any]:
    """What becomes of requests, all sent at once."""

    async def send() -> list[Any]:
        loop = asyncio.get_running_loop()
        calls.append(loop.call_soon_threadsafe)
        await asyncio.sleep(0.05)
        return await asyncio.gather(*(door.take(batch) for batch in batches), return_exceptions=True)

    calls.clear()
    return asyncio.run(send())


calls: list[Any] = []


def call(what: Any, *given: Any) -> None:
    """Have the loop call something; at once where there is none."""
    try:
        calls[-1](what, *given)
    except (IndexError, RuntimeError):
        what(*given)


@pytest.fixture
def door(tmp_path: Path) -> Iterator[IngestQueue]:
    calls.clear()
    made = IngestQueue(
        Journal(tmp_path / "journal"), reader_of(Decoder("jsonl")), lambda names: {}, call, 0.3
    )
    made.reserve = 0
    made.open([])
    yield made
    calls.clear()
    made.close()


def test_what_has_no_answer_in_time_is_pending_and_safe(door: IngestQueue, tmp_path: Path) -> None:
    sent = [b'{"id": "a", "text": "storm"}', b'{"id": 7, "text": "coast"}', b"no json"]
    (found,) = run(door, [*sent])
    assert [(each.status, each.line, each.id) for each in found] == [
        ("pending", 1, "a"),
        ("pending", 2, "7"),
        ("pending", 3, None),
    ]
    assert JournalSource(tmp_path / "journal").read(10, 0.0).data == sent
    assert door.pending("7") == found[1]
    (again,) = run(door, [b'{"id": "a", "text": "\\u0073torm", "sent": "again"}'])
    assert again == [found[0]]
    (other,) = run(door, [b'{"id": "a", "text": "a storm"}', sent[1], b'{"id": 8, "text": "coast"}'])
    assert [(each.status, each.code, each.id) for each in other] == [
        ("refused", 409, "a"),
        ("pending", None, "7"),
        ("pending", None, "8"),
    ]
    assert JournalSource(tmp_path / "journal").read(10, 0.0).data == [*sent, b'{"id": 8, "text": "coast"}']


def test_beyond_a_bounded_queue_clients_are_told_to_wait(
    door: IngestQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "QUEUE", 5)
    first, second, third = run(door, [b"1", b"2", b"3"], [b"4", b"5"], [b"6"])
    assert [each.status for each in (*first, *second)] == ["pending"] * 5
    assert isinstance(third, AskError)
    assert (third.status, third.wait) == (429, 1.0)
    door.answered([], 3)  # the stream has read three of them
    (fourth,) = run(door, [b"6"])
    assert [each.status for each in fourth] == ["pending"]


def test_a_full_disk_refuses_loses_nothing_and_is_not_ready(
    door: IngestQueue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "LOOK", 0.05)
    door.reserve = 1 << 62
    (refused,) = run(door, [b'{"id": "a", "text": "b"}'])
    assert (refused.status, refused.wait) == (507, 5.0)
    assert "no room" in str(door.hindrance)
    assert door.pending("a") is None
    door.reserve = 0
    wait_for(lambda: door.hindrance is None, seconds=120)
    (found,) = run(door, [b'{"id": "a", "text": "b"}'])
    assert [each.line for each in found] == [1]
    assert JournalSource(tmp_path / "journal").read(10, 0.0).data == [b'{"id": "a", "text": "b"}']


def test_a_line_that_went_on_with_another_is_told_so(door: IngestQueue) -> None:
    door._within = 120.0

    async def send() -> list[Answer]:
        calls.append(asyncio.get_running_loop().call_soon_threadsafe)
        asking = asyncio.create_task(door.take([b"one", b"  at two"]))
        await asyncio.to_thread(door._journal.wait, 1, 60.0)  # what a reader has is known to be accepted
        door.answered([(1, Answer(status="answered", line=1))], 2)
        door.looked(2, held_back=True)
        door.looked(2, held_back=False)
        return await asking

    calls.clear()
    assert [each.status for each in asyncio.run(send())] == ["answered", "refused"]


def test_lines_of_text_are_strings_in_json() -> None:
    shape, found = records_of(b'["a b", 7, "two\\nlines", " "]', "application/json", of_text=True)
    assert shape == "array"
    assert [each if isinstance(each, bytes) else each.reason for each in found] == [
        b"a b",
        "wrong_type",
        "several_lines",
        "empty",
    ]
    assert unpacked(b"as it is", "identity") == b"as it is"


def test_what_the_stream_refuses_waits_for_no_answer_in_the_store(tmp_path: Path) -> None:
    sink = StoreSink(str(tmp_path / "news.db"))
    places = [{"file": "journal", "line": line} for line in (1, 2)]
    sink.taken(Columns.of([Record("storm", places[0]), Record("coast", places[1])]))
    sink.write(Answers(Lines(), [Reject(places[0], "late", "it is late", b"")], []))
    assert sink.waiting == [places[1]]  # a journal keeps what waits
    sink.close()


# ---------------------------------------------------------------- who may ask

CONFIG = [
    (["--state", "st"], 64, "--store FILE"),
    (["--state", "st", "--store", "s.db", "--final-only"], 64, "leave --final-only out"),
    (["--state", "st", "--store", "s.db", "--host", "0.0.0.0"], 64, "--token PATH"),
    (["--state", "st", "--store", "s.db", "--tls-cert", "c"], 64, "both --tls-cert and --tls-key"),
    (["--state", "st", "--store", "s.db", "--keep-journal", "daily"], 64, "no size"),
    (["--state", "st", "--store", "s.db", "--format", "csv"], 78, "no header of columns"),
    (["--state", "st", "--store", "s.db", "--format", "ssv"], 78, "no header of columns"),
]


@pytest.mark.parametrize(("arguments", "code", "said"), CONFIG)
def test_what_has_no_meaning_is_refused(tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    found, message = fail(tmp_path, "serve", *arguments)
    assert found == code
    assert said in message


def test_a_second_service_on_one_state_is_refused(served: Served) -> None:
    done = call_command(served.folder, "serve", "--state", "st", "--store", "other.db", "--port", "0")
    assert done.returncode == 73
    assert b"in use by another streamdp process" in done.stderr
    assert b"the service is at" not in done.stderr


def test_where_it_is_is_said_once_it_is_there(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "storm hits coast"}\n')
    succeed(tmp_path, "consume", "in.jsonl", "--output", "a", "--state", "learned", "--store", "other.db")
    serve = ("serve", "--port", "0", "--state")
    told = "other.db exists, and st is new: name another --store, or the --state that goes on with it\n"
    assert fail(tmp_path, *serve, "st", "--store", "other.db") == (73, f"streamdp: {told}")
    code, message = fail(tmp_path, *serve, "learned", "--store", "other.db")
    assert code == 65
    assert "in.jsonl, and no journal: name another --state (--start-from begins with" in message


def test_on_other_addresses_a_token_is_asked_for(tmp_path: Path) -> None:
    made = Served(tmp_path, "--host", "0.0.0.0", TOKEN="secret-token-1")
    try:
        status, said = made.ask("GET", "/v1/stories")
        assert (status, "send Authorization: Bearer TOKEN" in said["error"]) == (401, True)
        status, said = made.ask("GET", "/v1/stories", authorization="Bearer secret-token-2")
        assert (status, "this token is not the one" in said["error"]) == (401, True)
        at = f"http://127.0.0.1:{made.port}"
        with pytest.raises(QuestionError, match="asks for a token: name the file that holds it"):
            RemoteSource(at)
        with pytest.raises(QuestionError, match="has another token: look at the file"):
            RemoteSource(at, "secret-token-2")
        assert made.ask("GET", "/v1/stories", authorization="Bearer secret-token-1")[0] == 200
        assert made.ask("GET", "/metrics")[0] == 401
        assert b"secret-token-1" not in made.said
    finally:
        assert made.stop() == 0


def test_clients_show_certificates_where_that_is_asked_for(tmp_path: Path) -> None:
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject]
    subprocess.run(
        [*make, "-keyout", "key.pem", "-out", "cert.pem"], cwd=tmp_path, check=True, capture_output=True
    )
    where = ("--tls-cert", "cert.pem", "--tls-key", "key.pem", "--tls-clients", "cert.pem")
    made = Served(tmp_path, *where, ready=False)
    try:
        context = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        address = f"https://127.0.0.1:{made.port}/livez"
        with pytest.raises(OSError, match=r"certificate|reset|closed"):
            urllib.request.urlopen(address, context=context, timeout=120).read()
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        assert urllib.request.urlopen(address, context=context, timeout=120).read() == b"ok\n"
    finally:
        assert made.stop() == 0


# ---------------------------------------------------------------- again


def test_the_page_of_the_service_prints_what_it_says(tmp_path: Path) -> None:
    mine = [block for block in blocks("docs/serve.md") if "the_page_of_the_service" in block.remark]
    (begun, *asked) = mine
    assert begun.text.splitlines()[-1] == "streamdp serve --state st --store news.db --port 8080"
    made = Served(tmp_path)
    for block in asked:
        for script, promised in sessions(block.text):
            here = script.replace("127.0.0.1:8080", f"127.0.0.1:{made.port}")
            printed = subprocess.run(["sh", "-c", here], cwd=tmp_path, capture_output=True, text=True).stdout
            assert same(printed, promised), f"{script}{printed}"
    assert made.stop() == 0


def test_httpx_sends_records_in_five_lines(tmp_path: Path) -> None:
    (block,) = [block for block in blocks("docs/serve.md") if "httpx" in block.remark]
    made = Served(tmp_path)
    program = block.text.replace("127.0.0.1:8080", f"127.0.0.1:{made.port}")
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    promised = re.findall(r"print\(.*\)  # (.*)", program)
    assert [printed.stdout.strip()] == promised
    assert made.stop() == 0


def test_a_stopped_service_goes_on_with_the_same_answers(tmp_path: Path) -> None:
    made = Served(tmp_path)
    first = made.send({"id": "a", "text": "storm coast"}, {"id": "b", "text": "parliament votes"})
    assert made.stop() == 0
    again = Served(tmp_path)
    assert again.send({"id": "a", "text": "storm coast"}, {"id": "b", "text": "parliament votes"}) == first
    assert again.send({"id": "c", "text": "coast storm"})[1][0]["seq"] == 2
    assert again.stop(signal.SIGKILL) == -signal.SIGKILL
    last = Served(tmp_path)
    assert last.send({"id": "a", "text": "storm coast"}, {"id": "b", "text": "parliament votes"}) == first
    assert last.stop() == 0


def test_lines_of_logs_are_answered_with_their_templates(tmp_path: Path) -> None:
    made = Served(tmp_path, "--format", "log")
    lines = "".join(f"2024-05-01 10:00:{i:02} INFO user {i} logged in from 10.0.0.{i}\n" for i in range(20))
    status, found = made.ask("POST", "/v1/records", lines.encode(), "text/plain")
    assert (status, {each["status"] for each in found}) == (200, {"answered"})
    assert "user" in found[-1]["template"]
    assert made.stop() == 0


def test_a_journal_is_read_again_as_a_file(tmp_path: Path) -> None:
    made = Served(tmp_path, "--output", "out.jsonl", "--keep-journal", "1G")
    for number in range(5):
        made.send(*({"text": f"storm {i % 3} over the coast {number}"} for i in range(40)))
    assert made.stop() == 0
    copy = tmp_path / "copy"
    copy.mkdir()
    shutil.copytree(tmp_path / "st" / "journal", copy / "st" / "journal")
    again = Served(copy, "--output", "out.jsonl")
    assert again.stop() == 0
    assert (copy / "out.jsonl").read_bytes() == (tmp_path / "out.jsonl").read_bytes()
    assert stored(copy / "news.db") == stored(tmp_path / "news.db")
