"""Bodies that are much larger than they look, or never end: counted before they are made, and refused."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hostile import BODIES, JSON, NDJSON, PROTOBUF, inside, measure
from hypothesis import given, settings
from hypothesis import strategies as st
from serving import Served
from starlette.requests import Request
from test_serve_logs import as_protobuf

from streamdp.decode import outline
from streamdp.decode.fields import RefusedError
from streamdp.decode.otlp import PARTS, pieces
from streamdp.page.errors import AskError
from streamdp.serve.bodies import MEMBERS, MOST, Uploads, records_of, unpacked
from streamdp.serve.otlp import FORMS, VALUES

MIB = 1 << 20


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Served]]:
    made = {
        path: Served(tmp_path_factory.mktemp("served"), "--format", form)
        for path, form in {"/v1/records": "auto", "/v1/logs": "otlp"}.items()
    }
    yield made
    for served in made.values():
        assert served.stop() == 0
        assert b"Traceback" not in served.said


@pytest.mark.parametrize("name", BODIES)
def test_a_service_refuses_it_and_needs_little_memory(services: dict[str, Served], name: str) -> None:
    body = BODIES[name]
    seen = measure(services[body.path], body)
    assert seen.statuses[body.status] > 0
    assert set(seen.statuses) <= ({503, 0} if body.unfinished else {body.status})
    assert seen.mebibytes < 450
    record = b'{"text": "storm over the coast"}'
    assert services["/v1/records"].ask("POST", "/v1/records", record)[0] == 200


def peak(work: Callable[[], Any]) -> float:
    """MiB of Python's objects that work needs at most."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def refused(status: int, work: Callable[[], Any]) -> Callable[[], None]:
    def run() -> None:
        with pytest.raises(AskError) as error:
            work()
        assert error.value.status == status

    return run


def test_records_are_counted_before_they_are_made() -> None:
    numbers = b"[" + b"1," * 1_000_000 + b"1]"
    lines = b"12\n" * 1_000_000
    assert peak(refused(413, lambda: records_of(numbers, JSON, of_text=False))) < 25
    assert peak(refused(413, lambda: records_of(lines, NDJSON, of_text=False))) < 25


def test_attributes_are_counted_before_they_are_made() -> None:
    heads = {
        "a record's": (1, 2, 2, 6),
        "a resource's": (1, 1, 1),
        "a scope's": (1, 2, 1, 3),
        "values": (1, 2, 2, 5, 5, 1),
        "records": (1, 2, 2),
        "scopes": (1, 2),
    }
    for where, numbers in heads.items():
        parts = bytes([numbers[-1] << 3 | 2, 0]) * 400_000
        body = inside(*numbers[:-1], size=len(parts)) + parts

        def read(body: bytes = body) -> None:
            with pytest.raises(RefusedError) as error:
                FORMS[PROTOBUF].pieces(body, 1_000_000)
            assert error.value.reason == "too_large"

        assert peak(read) < 25, where


def test_a_body_of_many_records_with_many_attributes_is_bounded_as_a_whole() -> None:
    attributes = b"\x32\x00" * 9_000
    record = inside(1, 2, 2, size=len(attributes)) + attributes
    assert len(FORMS[PROTOBUF].pieces(record * 50, 1_000_000)) == 50
    with pytest.raises(RefusedError, match=f"more than {VALUES:,} attributes"):
        FORMS[PROTOBUF].pieces(record * 60, 1_000_000)


def test_parts_of_a_message_that_come_apart_are_one() -> None:
    """As protobuf has it: attributes of a resource in two pieces, and unknown fields of every kind."""
    one = as_protobuf({"resourceLogs": [{"resource": {"attributes": [{"key": "a"}]}}]})
    two = as_protobuf({"resourceLogs": [{"resource": {"attributes": [{"key": "b"}]}}]})
    records = as_protobuf({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"severityText": "x"}]}]}]})
    body = b"".join(each[2:] for each in (one, records, two))
    assert all(each[1] == len(each) - 2 for each in (one, two, records))
    unknown = b"\x78\x96\x01" + b"\x79" + bytes(8) + b"\x7d" + bytes(4) + b"\x7a\x02ab"
    (piece,) = FORMS[PROTOBUF].pieces(unknown + inside(1, size=len(body)) + body, 1000)
    assert [each["key"] for each in json.loads(piece.resource)["attributes"]] == ["a", "b"]
    for broken in (b"\x0a\x05a", b"\x0b", b"\x78\x96", b"\xff" * 1_000_000):
        with pytest.raises(AskError, match="no protobuf of logs"):
            FORMS[PROTOBUF].pieces(broken, 1000)


def test_values_of_json_are_counted_outside_of_strings() -> None:
    many = b'{"resourceLogs":[' + b"{}," * (PARTS // 2) + b"{}]}"
    with pytest.raises(RefusedError, match=f"more than {PARTS:,} values"):
        pieces(many)
    assert not outline.has_parts(json.dumps("{," * PARTS).encode(), PARTS)


@given(
    st.lists(
        st.recursive(st.text() | st.none(), lambda some: st.lists(some) | st.dictionaries(st.text(), some))
    )
)
@settings(max_examples=200, deadline=None)
def test_elements_are_those_of_the_array(found: list[Any]) -> None:
    for stretch in (1, 2, 3, 1000):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(outline, "STRETCH", stretch)
            for ascii_only in (True, False):
                data = json.dumps(found, ensure_ascii=ascii_only, indent=stretch).encode("utf-8", "replace")
                wanted = [bytes(raw) for raw in msgspec.json.decode(data, type=list[msgspec.Raw])]
                made = outline.elements(data, len(wanted) or 1)
                assert made is not None
                assert [each.strip() for each in made] == wanted
                assert len(wanted) < 2 or outline.elements(data, len(wanted) - 1) is None


def test_members_of_gzip_are_read_in_one_pass_and_bounded() -> None:
    lines = [b'{"text": "%d"}\n' % i for i in range(MEMBERS)]
    body = b"".join(gzip.compress(line, 1, mtime=0) for line in lines)
    assert unpacked(body, "gzip") == b"".join(lines)
    refused(413, lambda: unpacked(body + gzip.compress(b""), "gzip"))()
    assert unpacked(gzip.compress(bytes(3 * MIB)), "gzip") == bytes(3 * MIB)
    refused(400, lambda: unpacked(body[:-1], "gzip"))()
    refused(400, lambda: unpacked(gzip.compress(b"a") + b"more", "gzip"))()


def request(receive: Any, *headers: tuple[bytes, bytes]) -> Request:
    scope = {"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers}
    return Request(scope, receive)


def test_of_bodies_under_way_the_largest_is_refused() -> None:
    """Those that never end wait for nothing: a whole one is read meanwhile, however many there are."""
    uploads, ended = Uploads(4 * MIB), asyncio.Event()
    most = 0

    def endless(parts: int) -> Request:
        left = iter(range(parts))

        async def receive() -> dict[str, Any]:
            nonlocal most
            most = max(most, sum(uploads._sizes.values()))
            await asyncio.sleep(0)
            if next(left, None) is None:
                await ended.wait()
            return {"type": "http.request", "body": bytes(MIB // 2), "more_body": True}

        return request(receive)

    async def whole() -> dict[str, Any]:
        return {"type": "http.request", "body": bytes(MIB)}

    async def send() -> list[Any]:
        coming = [asyncio.create_task(uploads.whole(endless(20 - i), 100 * MIB)) for i in range(20)]
        for _ in range(200):
            await asyncio.sleep(0)
        assert await uploads.read(request(whole), len) == MIB
        for task in coming:
            if not task.done():
                task.cancel()
        return await asyncio.gather(*coming, return_exceptions=True)

    found = asyncio.run(send())
    assert most <= 4 * MIB
    assert {type(each) for each in found} == {AskError, asyncio.CancelledError}
    assert {each.status for each in found if isinstance(each, AskError)} == {503}
    assert not uploads._sizes
    assert not uploads._coming


def test_what_is_packed_or_not_small_is_read_beside_the_loop() -> None:
    async def of_threads(size: int, *headers: tuple[bytes, bytes]) -> bool:
        async def receive() -> dict[str, Any]:
            body = bytes(size)
            return {"type": "http.request", "body": gzip.compress(body) if headers else body}

        thread = await Uploads().read(request(receive, *headers), lambda body: threading.get_ident())
        return thread == threading.get_ident()

    assert asyncio.run(of_threads(100))
    assert not asyncio.run(of_threads(100_000))
    assert not asyncio.run(of_threads(100, (b"content-encoding", b"gzip")))


def test_records_that_are_longer_than_any_are_refused_unread() -> None:
    long = b"[" * 50_000  # which is no JSON
    body = b'[{"text": "a"},' + b"[1,2]," * MOST + long + b"]"
    refused(413, lambda: records_of(body, JSON, of_text=False, most=1000))()
    for kind, body in ((JSON, long[1:]), (NDJSON, b'{"text": "a"}\n' + long)):
        if kind == NDJSON:
            _, found = records_of(body, kind, of_text=False, most=1000)
            assert [getattr(each, "reason", None) for each in found] == [None, "too_large"]
