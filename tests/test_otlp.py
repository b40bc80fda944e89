"""Log records of OpenTelemetry: what is read of an object, and what is refused in its place."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from otlp import BEGIN, attributes, logs, record, value

from streamdp.decode.decoder import REASONS, Decoder
from streamdp.decode.otlp import MOST, pieces, plain
from streamdp.records import Raw, Record, Reject

AT = {"file": "in.json", "line": 7}
KEEP = ("level", "component", "traceId", "spanId", "http.route", "service.name", "n", "absent")


def read(data: Any, keep: tuple[str, ...] = (), **more: Any) -> list[Record | Reject]:
    """What a decoder makes of an object."""
    found = data if isinstance(data, bytes) else json.dumps(data).encode()
    return Decoder("otlp", keep=keep, **more).decode_all(Raw(found, AT, 5.0))


def good(data: Any, keep: tuple[str, ...] = ()) -> list[Record]:
    """The same where nothing is refused."""
    found = read(data, keep)
    assert all(isinstance(each, Record) for each in found), found
    return [each for each in found if isinstance(each, Record)]


def why(data: Any, **more: Any) -> list[str | None]:
    """Why each record is refused; None for one that is not."""
    return [each.reason if isinstance(each, Reject) else None for each in read(data, **more)]


def test_a_record_says_what_when_and_where() -> None:
    found = {"http.route": "/cart", "n": 3, "level": "an attribute"}
    more = {"traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174"}
    (one,) = good(logs([record("user 5 logged in", 1.5, found, severityText="Info", **more)]), KEEP)
    assert (one.value, one.time, one.id) == ("user 5 logged in", 1767571201.5, None)
    assert one.position == {**AT, "record": 1}
    assert one.keep == {
        "level": "Info",
        "component": "shop.cart",
        **more,
        "http.route": "/cart",
        "service.name": "shop",
        "n": 3,
    }
    assert json.loads(one.raw) == record("user 5 logged in", 1.5, found, severityText="Info", **more)


def test_all_records_of_all_scopes_and_resources_come_in_order() -> None:
    both = logs([record("a"), record("b")])
    both["resourceLogs"] += logs([record("c")], **{"service.name": "till"})["resourceLogs"]
    both["resourceLogs"][0]["scopeLogs"] += [
        {"logRecords": [record("d")]},
        {"scope": None, "logRecords": None},
        {},
    ]
    both["resourceLogs"] += [{}, {"scopeLogs": None}]
    found = good(both, ("service.name", "component"))
    assert [each.value for each in found] == ["a", "b", "d", "c"]
    assert [each.position["record"] for each in found] == [1, 2, 3, 4]
    assert [each.keep for each in found] == [
        {"service.name": "shop", "component": "shop.cart"},
        {"service.name": "shop", "component": "shop.cart"},
        {"service.name": "shop", "component": "shop"},
        {"service.name": "till", "component": "shop.cart"},
    ]


@pytest.mark.parametrize(
    ("number", "level"), [(1, "TRACE"), (8, "DEBUG"), (9, "INFO"), (16, "WARN"), (17, "ERROR"), (24, "FATAL")]
)
def test_a_number_of_severity_is_a_level_where_no_text_says_it(number: int, level: str) -> None:
    (one,) = good(logs([record("a", severityNumber=number)]), ("level",))
    assert one.keep == {"level": level}


@pytest.mark.parametrize("number", [0, 25, -1, None, True, "SEVERITY_NUMBER_INFO", 1.5])
def test_what_is_no_severity_is_none(number: Any) -> None:
    (one,) = good(logs([record("a", severityNumber=number)]), ("level",))
    assert one.keep == {}


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ({"timeUnixNano": str(BEGIN)}, BEGIN / 1e9),
        ({"timeUnixNano": BEGIN}, BEGIN / 1e9),
        ({"timeUnixNano": float(BEGIN)}, BEGIN / 1e9),
        ({"timeUnixNano": BEGIN, "observedTimeUnixNano": str(BEGIN + 10**9)}, BEGIN / 1e9),
        ({"timeUnixNano": "0", "observedTimeUnixNano": str(BEGIN)}, BEGIN / 1e9),
        ({"timeUnixNano": 0, "observedTimeUnixNano": BEGIN}, BEGIN / 1e9),
        ({"timeUnixNano": None}, None),
        ({"timeUnixNano": "0"}, None),
        ({}, None),
    ],
)
def test_times(times: dict[str, Any], seconds: float | None) -> None:
    (one,) = good(logs([record("a", **times)]))
    assert one.time == seconds


@pytest.mark.parametrize("time", ["soon", "", "-5", -5, "1e9", 2**64, "9" * 5000, "\u0661"])
def test_what_is_no_time_is_refused(time: Any) -> None:
    assert why(logs([record("a", timeUnixNano=time), record("b")])) == ["bad_time", None]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (5, "5"),
        (True, "true"),
        (0.5, "0.5"),
        ({"a": 1, "b": [True, None, "x"]}, '{"a":1,"b":[true,null,"x"]}'),
        (["a", 2], '["a",2]'),
        ([], "[]"),
    ],
)
def test_a_body_that_is_no_string_is_its_json(body: Any, text: str) -> None:
    (one,) = good(logs([record(body)]))
    assert one.value == text


def test_bytes_and_what_json_lacks() -> None:
    bodies = [{"bytesValue": "aGVsbG8="}, {"doubleValue": "NaN"}, {"intValue": 7}]
    found = good(
        logs([{"body": {"kvlistValue": {"values": [{"key": "v", "value": each}]}}} for each in bodies])
    )
    assert [each.value for each in found] == ['{"v":"aGVsbG8="}', '{"v":"NaN"}', '{"v":7}']


def test_an_event_without_a_body_is_its_name() -> None:
    (one,) = good(logs([{"eventName": "cart.emptied"}]))
    assert one.value == "cart.emptied"


def test_the_uid_of_a_record_is_its_id() -> None:
    found = [record("a", found={"log.record.uid": uid}) for uid in ("01ARZ3", 5, "", "u" * 5000)]
    ones = read(logs(found))
    assert [each.id for each in ones if isinstance(each, Record)] == ["01ARZ3", "5", None]
    assert isinstance(ones[3], Reject)
    assert ones[3].reason == "long_id"


def test_what_a_program_wrote_before_its_message_is_read_as_of_a_log() -> None:
    body = "2026-01-05T00:00:02 WARN [main] shop.Till: drawer 3 is open"
    (late, own) = good(logs([record(body), record(body, 1.0, severityText="ERROR")]), ("level", "component"))
    assert (late.value, late.time) == ("drawer 3 is open", 1767571202.0)
    assert (own.value, own.time) == ("drawer 3 is open", 1767571201.0)
    assert own.keep == {"level": "ERROR", "component": "shop.cart"}
    assert late.keep == {"level": "WARN", "component": "shop.cart"}


def test_an_exception_is_part_of_the_message() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/app/till.py", line 3, in open\n    key()\nKeyError: 3'
    )
    body, field = good(
        logs([record("no key\n" + trace), record("no key", found={"exception.stacktrace": trace})])
    )
    assert body.value == field.value == "no key KeyError@app/till.py#open: 3"


SPOILED = [
    ("wrong_type", {"body": "plain"}),
    ("wrong_type", {"body": {"stringValue": 5}}),
    ("wrong_type", {"body": {"intValue": "x"}}),
    ("wrong_type", {"body": {"intValue": True}}),
    ("wrong_type", {"body": {"arrayValue": []}}),
    ("wrong_type", {"body": {"kvlistValue": {"values": [5]}}}),
    ("wrong_type", {"body": {"stringValue": "a"}, "attributes": {"k": 1}}),
    ("wrong_type", {"body": {"stringValue": "a"}, "severityText": 5}),
    ("wrong_type", {"body": {"stringValue": "a"}, "timeUnixNano": True}),
    ("wrong_type", 5),
    ("wrong_type", None),
    ("missing_field", {}),
    ("missing_field", {"body": {}}),
    ("missing_field", {"body": None}),
    ("empty", {"body": {"stringValue": "  "}}),
    ("empty", {"body": {"stringValue": ""}}),
]


@pytest.mark.parametrize(("reason", "spoiled"), SPOILED)
def test_what_is_wrong_is_refused_in_its_place(reason: str, spoiled: Any) -> None:
    found = read(logs([record("a"), spoiled, record("b")]))
    assert [each.position["record"] for each in found] == [1, 2, 3]
    assert [isinstance(each, Record) for each in found] == [True, False, True]
    assert isinstance(found[1], Reject)
    assert found[1].reason == reason
    assert json.loads(found[1].data) == spoiled


def test_resources_and_scopes_that_are_none_are_refused_in_their_places() -> None:
    whole = logs([record("a")])
    whole["resourceLogs"].insert(0, 5)
    whole["resourceLogs"].append({"scopeLogs": [{"logRecords": {}}, {"logRecords": [record("b")]}]})
    assert why(whole) == ["wrong_type", None, "wrong_type", None]
    spoiled = logs([record("a")])
    spoiled["resourceLogs"][0]["resource"] = {"attributes": 5}
    assert why(spoiled) == ["wrong_type"]


@pytest.mark.parametrize(
    ("reason", "data"),
    [
        ("not_json", b'{"resourceLogs": ['),
        ("not_json", b""),
        ("not_json", b'{"resourceLogs": ' + b"[" * 100_000),
        ("not_an_object", b"[]"),
        ("missing_field", b"{}"),
        ("missing_field", b'{"resourceSpans": []}'),
        ("wrong_type", b'{"resourceLogs": 5}'),
        ("not_utf8", b'{"resourceLogs": "\xff"}'),
    ],
)
def test_what_is_no_object_of_logs_is_refused_whole(reason: str, data: bytes) -> None:
    (reject,) = read(data)
    assert isinstance(reject, Reject)
    assert (reject.reason, reject.position, reject.data) == (reason, AT, data)


def test_limits_are_those_of_a_record_and_of_what_is_held() -> None:
    assert why(logs([record("x" * 200), record("b")]), max_bytes=250) == ["too_large", None]
    assert why(logs([record("b")], host="x" * 200), max_bytes=250) == ["too_large"]
    assert why(logs([record("a")]) | {"more": "x" * 500}, max_bytes=250) == [None]
    (reject,) = read(b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[' + b"{}," * MOST + b"{}]}]}]}")
    assert isinstance(reject, Reject)
    assert reject.reason == "too_large"
    (reject,) = read(logs([record("a")] * 700, host="x" * 100_000), ("host",))
    assert isinstance(reject, Reject)
    assert (reject.reason, reject.position) == ("too_large", AT)
    assert reject.detail == "one by one, its log records have more than 67,108,864 bytes"


def test_empty_envelopes_hold_nothing() -> None:
    assert read({"resourceLogs": []}) == read({"resourceLogs": None}) == read(logs([])) == []


def test_a_piece_alone_is_an_object_of_one_record() -> None:
    whole = json.dumps(logs([record("a", 1.0), record("b", 2.0)]), indent=1).encode()
    keep = ("service.name", "component")
    alone = [each.alone() for each in pieces(whole)]
    assert not any(b"\n" in each for each in alone)
    again = [good(each, keep)[0] for each in alone]
    expected = good(whole, keep)
    assert [(each.value, each.time, each.keep) for each in again] == [
        (each.value, each.time, each.keep) for each in expected
    ]


def test_one_at_a_time_is_refused() -> None:
    with pytest.raises(ValueError, match="decode_all"):
        Decoder("otlp").decode(Raw(b"{}", AT, 0.0))
    assert len(Decoder("text").decode_all(Raw(b"a line", AT, 0.0))) == 1


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.sampled_from(["body", "timeUnixNano", "severityText", "attributes", "traceId", "eventName"])


@given(st.lists(st.dictionaries(NAMES, JSON, max_size=4) | JSON, max_size=4), JSON, JSON)
def test_whatever_stands_somewhere_nothing_raises(records: list[Any], resource: Any, scopes: Any) -> None:
    whole = logs(records)
    whole["resourceLogs"] += [
        {"resource": resource, "scopeLogs": [{"logRecords": records}]},
        {"scopeLogs": scopes},
    ]
    data = json.dumps(whole).encode()
    found = read(data, KEEP)
    assert all(isinstance(each, Record) or each.reason in REASONS for each in found)
    numbers = [each.position["record"] for each in found if "record" in each.position]
    assert numbers == list(range(1, len(numbers) + 1))


@given(JSON)
def test_values_come_back(of: Any) -> None:
    found = plain(msgspec.json.decode(json.dumps(value(of))))
    expected = msgspec.json.decode(json.dumps(of))
    assert found == expected or (isinstance(found, float) and math.isclose(found, expected))
    assert attributes({"a": of}) == [{"key": "a", "value": value(of)}]
