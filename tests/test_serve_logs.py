"""A collector's door: what OpenTelemetry's own SDK sends, and what is answered as its protocol says."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import signal
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import assignments, succeed
from google.protobuf.json_format import ParseDict
from google.rpc.status_pb2 import Status
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from otlp import BEGIN, logs, record
from serving import Served
from starlette.requests import Request

from streamdp.decode.decoder import Decoder
from streamdp.decode.otlp import pieces
from streamdp.page.api import AskError
from streamdp.questions.answers import Answer
from streamdp.records import Raw, Record
from streamdp.serve.bodies import Uploads
from streamdp.serve.ingest import Named, reader_of
from streamdp.serve.logs import Logs, lines_of, one_by_one
from streamdp.serve.otlp import FORMS
from streamdp.settings import Settings

PROTOBUF = "application/x-protobuf"
KEEP = ("--keep", "level,service.name,n")


def as_protobuf(whole: dict[str, Any]) -> bytes:
    """The same in protobuf, by its own library."""
    made: bytes = ParseDict(whole, ExportLogsServiceRequest()).SerializeToString()
    return made


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"), "--format", "otlp", *KEEP)
    yield made
    assert made.stop() == 0
    assert b"Traceback" not in made.said


def rows(served: Served, **kept: Any) -> list[tuple[Any, ...]]:
    """Number, text, template and kept fields of the records in the store that have such."""
    with sqlite3.connect(served.folder / "news.db") as store:
        found = store.execute("SELECT seq, text, template, fields FROM records ORDER BY seq").fetchall()
    every = [(*row[:3], json.loads(row[3] or "{}")) for row in found]
    return [row for row in every if kept.items() <= row[3].items()]


def post(
    served: Served, body: bytes, kind: str = "application/json", path: str = "/v1/logs", **more: str
) -> tuple[int, str, bytes]:
    """Status, content type and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    connection.request("POST", path, body, {"content-type": kind, **headers})
    answer = connection.getresponse()
    found = answer.status, answer.headers["content-type"], answer.read()
    connection.close()
    return found


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
def test_what_the_sdk_sends_is_in_the_store_once_with_its_template(
    served: Served, compression: Compression
) -> None:
    exporter = OTLPLogExporter(
        f"http://127.0.0.1:{served.port}/v1/logs", compression=compression, timeout=120
    )
    provider = LoggerProvider(Resource.create({"service.name": f"sdk {compression.name}"}))
    provider.add_log_record_processor(BatchLogRecordProcessor(exporter, max_export_batch_size=64))
    logger = provider.get_logger("shop")
    for n in range(500):
        text = f"user {n} logged in" if n % 2 else f"connection from 10.0.0.{n % 250} refused"
        logger.emit(
            LogRecord(
                timestamp=BEGIN + n,
                severity_number=SeverityNumber.WARN,
                body=text,
                attributes={"n": n, "list": [1, 2]},
            )
        )
    assert provider.force_flush(120_000)
    provider.shutdown()
    found = rows(served, **{"service.name": f"sdk {compression.name}"})
    assert sorted(row[3]["n"] for row in found) == list(range(500))
    assert {row[3]["level"] for row in found} == {"WARN"}
    assert {row[2] for row in found} == {"user <num> logged in", "connection from <ip> refused"}


def test_json_is_answered_in_json(served: Served) -> None:
    body = json.dumps(logs([record("a 1", 1.0)], **{"service.name": "json"})).encode()
    assert post(served, body) == (200, "application/json", b"{}")
    assert post(served, gzip.compress(body), content_encoding="gzip")[0] == 200
    assert post(served, b'{"resourceLogs": []}') == (200, "application/json", b"{}")
    some = logs([record("a 2"), {"body": 5}, {}, {"body": 7}], **{"service.name": "json"})
    status, kind, said = post(served, json.dumps(some).encode(), "application/json; charset=utf-8")
    partial = json.loads(said)["partialSuccess"]
    assert (status, kind, partial["rejectedLogRecords"]) == (200, "application/json", "3")
    assert partial["errorMessage"].startswith("2 x wrong_type: a value is an object")
    assert partial["errorMessage"].endswith("; 1 x missing_field: the record has no body")
    assert [row[1] for row in rows(served, **{"service.name": "json"})] == ["a 1", "a 1", "a 2"]
    status, _, said = post(served, b'{"resourceSpans": []}')
    assert (status, json.loads(said)["partialSuccess"]["rejectedLogRecords"]) == (200, "0")


def test_protobuf_is_answered_in_protobuf(served: Served) -> None:
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    first, empty = scope.log_records.add(trace_id=b"\1" * 16, severity_number=17), scope.log_records.add()
    pairs = first.body.kvlist_value.values
    pairs.add(key="none").value.SetInParent()
    for name, of in {"string_value": "x", "bool_value": False, "int_value": -5, "bytes_value": b"hi"}.items():
        setattr(pairs.add(key=name).value, name, of)
    for number in (0.5, float("nan"), float("inf")):
        pairs.add(key="double").value.double_value = number
    pairs.add(key="array").value.array_value.values.add().int_value = 2**62
    empty.severity_text = "INFO"
    status, kind, said = post(served, request.SerializeToString(), PROTOBUF)
    assert (status, kind) == (200, PROTOBUF)
    partial = ExportLogsServiceResponse.FromString(said).partial_success
    assert (partial.rejected_log_records, partial.error_message) == (
        1,
        "1 x missing_field: the record has no body",
    )
    assert rows(served)[-1][1] == (
        '{"none":null,"string_value":"x","bool_value":false,"int_value":-5,"bytes_value":"aGk=",'
        f'"double":"Infinity","array":[{2**62}]}}'
    )
    assert post(served, b"", PROTOBUF) == (200, PROTOBUF, b"")


@pytest.mark.parametrize(
    ("status", "body", "kind", "more"),
    [
        (400, b"{broken", "application/json", {}),
        (400, b"[]", "application/json", {}),
        (400, b'{"resourceLogs": 5}', "application/json", {}),
        (400, b'{"resourceLogs": "\xff"}', "application/json", {}),
        (400, b"\xff\xff", PROTOBUF, {}),
        (400, b"no gzip", PROTOBUF, {"content_encoding": "gzip"}),
        (415, b"{}", "text/plain", {}),
        (415, b"{}", "application/json", {"content_encoding": "br"}),
        (
            413,
            gzip.compress(b'{"resourceLogs": [' + b" " * (65 << 20)),
            PROTOBUF,
            {"content_encoding": "gzip"},
        ),
        (413, json.dumps(logs([record("a")] * 700, host="x" * 100_000)).encode(), "application/json", {}),
        (413, as_protobuf(logs([record("a")] * 700, host="x" * 100_000)), PROTOBUF, {}),
        (413, as_protobuf(logs([{}] * 10_001)), PROTOBUF, {}),
        (
            413,
            b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[' + b"{}," * 10_000 + b"{}]}]}]}",
            "application/json",
            {},
        ),
    ],
)
def test_what_cannot_be_taken_is_said_as_a_status(
    served: Served, status: int, body: bytes, kind: str, more: dict[str, str]
) -> None:
    before = len(rows(served))
    found, of, said = post(served, body, kind, **more)
    assert (found, of) == (status, PROTOBUF if kind == PROTOBUF else "application/json")
    message = Status.FromString(said).message if kind == PROTOBUF else json.loads(said)["message"]
    assert message
    assert "\n" not in message
    assert len(rows(served)) == before


@pytest.mark.parametrize("what", ["traces", "metrics"])
def test_what_is_sent_for_others_is_said_in_one_line(served: Served, what: str) -> None:
    status, kind, said = post(served, b"", PROTOBUF, f"/v1/{what}")
    assert (status, kind) == (404, PROTOBUF)
    assert Status.FromString(said).message == f"this service takes logs (/v1/logs): send {what} elsewhere"


def test_records_of_a_body_are_answered_one_by_one(served: Served) -> None:
    whole = logs([record("b 1"), {"body": 5}, record("b 2")])
    status, found = served.ask("POST", "/v1/records", json.dumps(whole).encode())
    assert (status, [each["status"] for each in found]) == (200, ["answered", "refused", "answered"])
    assert found[2]["template"] == "b <num>"
    lines = "\n".join(json.dumps(each) for each in (whole, 5, logs([record("b 3")]))).encode()
    status, found = served.ask("POST", "/v1/records", lines, "application/x-ndjson")
    assert [each["status"] for each in found] == ["answered", "refused", "answered", "refused", "answered"]
    assert found[3]["reason"] == "not_an_object"
    status, one = served.ask("POST", "/v1/records", json.dumps(logs([record("b 4")])).encode())
    assert (status, one["template"]) == (200, "b <num>")


def test_a_record_with_an_id_counts_once_and_a_kill_loses_none(tmp_path: Path) -> None:
    made = Served(tmp_path, "--format", "otlp", *KEEP)
    bodies = [
        json.dumps(logs([record(f"c {n}", found={"log.record.uid": f"u{n}", "n": n})])).encode()
        for n in range(60)
    ]
    for number, body in enumerate(bodies):
        assert post(made, body)[0] == 200
        if number in (20, 40):
            made.process.send_signal(signal.SIGKILL)
            made.process.wait(120)
            made = Served(tmp_path, "--format", "otlp", *KEEP)
            assert post(made, body)[0] == 200
    assert [row[3]["n"] for row in rows(made)] == list(range(60))
    assert made.stop() == 0


def test_the_journal_is_read_again_and_answers_carry_attributes(tmp_path: Path) -> None:
    how = ("--format", "otlp", *KEEP, "--output", "answers", "--attributes", "otel")
    made = Served(tmp_path, *how)
    request = ExportLogsServiceRequest()
    of_resource = request.resource_logs.add()
    of_resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = of_resource.scope_logs.add()
    for n in range(30):
        scope.log_records.add(time_unix_nano=BEGIN + n).body.string_value = f"e\n{n}"
    assert post(made, request.SerializeToString(), PROTOBUF)[0] == 200
    assert post(made, json.dumps(logs([record("e 1"), record("e 2")]), indent=1).encode())[0] == 200
    assert made.stop() == 0
    found = assignments((tmp_path / "answers").read_bytes())
    assert [line["position"] for line in found] == [
        {"file": "journal", "line": n + 1, "record": 1} for n in range(32)
    ]
    assert {line["keep"]["service.name"] for line in found} == {"shop"}
    assert found[31]["attributes"] == {"log.record.template": found[31]["template"]}
    again = ("st/journal", *how[:5], "again", *how[6:])
    succeed(tmp_path, "consume", *again)
    assert assignments((tmp_path / "again").read_bytes()) == found


WHOLE = json.dumps(
    logs([record("d 5", 1.5, {"log.record.uid": "u", "n": 5}, severityText="WARN"), {"body": 5}])
).encode()


@pytest.mark.parametrize("form", ["otlp", "log", "jsonl", "auto", "text"])
def test_each_stream_reads_them_as_its_own_lines(form: Any) -> None:
    wanted = Settings(format=form, text_field="said", keep=("n", "level"), time_unit="ms")
    line, refused = lines_of(pieces(WHOLE), wanted)
    assert isinstance(refused, Answer)
    assert (refused.status, refused.reason) == ("refused", "wrong_type")
    assert isinstance(line, bytes)
    own = "jsonl" if form == "auto" else form
    decoder = Decoder(own, text_field="said", keep=wanted.keep, time_unit="ms")
    (read,) = decoder.decode_all(Raw(line, {"line": 1}, 5.0))
    assert isinstance(read, Record)
    time = None if form == "text" else BEGIN / 1e9 + 1.5
    assert (read.value, read.time) == ("d 5", time)
    identity = "u" if own in ("otlp", "jsonl") else None
    assert read.id == identity
    kept = {"n": 5, "level": "WARN"} if identity else {"level": "WARN"} if form == "log" else None
    assert read.keep == kept
    if form == "otlp":
        assert reader_of(decoder)(line) == Named.of("u", "d 5")


def test_ids_of_what_has_none() -> None:
    read = reader_of(Decoder("otlp"))
    assert read(b"{}") is None
    assert read(b'{"log.record.uid": 5}') is None
    assert read(b'{"resourceLogs": [], "x": "log.record.uid"}') is None


def test_one_by_one_leaves_what_is_refused_to_the_stream() -> None:
    spoiled, refusal = b"{broken", Answer(status="refused", reason="empty")
    shape, found = one_by_one("lines", [spoiled, refusal], Settings(format="otlp"))
    assert (shape, found) == ("lines", [spoiled, refusal])
    with pytest.raises(AskError, match="10,000"):
        one_by_one("lines", [WHOLE] * 5001, Settings(format="otlp"))


class Fails:
    """A door that does not open, or answers so."""

    settings = Settings(format="otlp")

    def __init__(self, what: AskError | list[Answer]) -> None:
        self.door, self._what = self, what

    async def take(self, records: list[bytes], within: float) -> list[Answer]:
        if isinstance(self._what, AskError):
            raise self._what
        return self._what


@pytest.mark.parametrize(
    ("what", "status", "wait"),
    [
        (AskError(429, "wait", 1.0), 429, "1"),
        (AskError(503, "begins", 1.0), 503, "1"),
        (AskError(507, "no room", 5.0), 503, "5"),
        ([Answer(status="pending")], 503, "5"),
        ([Answer(status="pending", line=7)], 200, None),
        ([Answer(status="refused", line=7, reason="joined")], 200, None),
    ],
)
@pytest.mark.parametrize("kind", [*FORMS])
def test_what_is_to_be_sent_again_is_said_so(what: Any, status: int, wait: str | None, kind: str) -> None:
    made = ExportLogsServiceRequest()
    made.resource_logs.add().scope_logs.add().log_records.add().body.string_value = "a"
    body = made.SerializeToString() if kind == PROTOBUF else json.dumps(logs([record("a")])).encode()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    scope = {"type": "http", "method": "POST", "path": "/v1/logs", "query_string": b""}
    request = Request({**scope, "headers": [(b"content-type", kind.encode())]}, receive)
    service = Logs(lambda: Fails(what), Uploads())  # type: ignore[arg-type, return-value]
    answer = asyncio.run(service.take(request))
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, wait)
    assert answer.headers["content-type"] == kind
    assert status == 200 or bytes(answer.body)


def test_without_its_package_protobuf_is_told_of_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.proto.collector.logs.v1", None)
    with pytest.raises(AskError, match=r"pip install '\.\[otlp\]' in a clone of streamdp") as caught:
        FORMS[PROTOBUF].pieces(b"", 1000)
    assert caught.value.status == 415
    long = "x" * 300
    assert Status.FromString(FORMS[PROTOBUF].failure(long)).message == long


SOME = st.sampled_from(
    ["resourceLogs", "scopeLogs", "logRecords", "body", "attributes", "timeUnixNano", "key"]
)
ANY = st.recursive(
    st.none() | st.integers() | st.text(max_size=4) | st.just({"stringValue": "a b"}),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SOME, inner, max_size=3),
    max_leaves=8,
)
LOOSE = st.dictionaries(SOME, ANY, max_size=3).map(lambda found: json.dumps(found).encode())
NEAR = st.lists(ANY, max_size=3).map(lambda found: json.dumps(logs(found)).encode())


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=60) | LOOSE | NEAR, st.sampled_from([*FORMS]), st.booleans())
def test_whatever_is_sent_no_answer_is_an_error_of_the_service(
    served: Served, body: bytes, kind: str, packed: bool
) -> None:
    more = {"content_encoding": "gzip"} if packed else {}
    status, of, said = post(served, gzip.compress(body) if packed else body, kind, **more)
    assert status in (200, 400)
    assert of == kind
    if kind == PROTOBUF:
        (ExportLogsServiceResponse if status == 200 else Status).FromString(said)
    else:
        assert isinstance(json.loads(said), dict)
