import csv
import json
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamdp.decode.columns import parse_row
from streamdp.decode.decoder import REASONS, Decoder
from streamdp.decode.fields import RefusedError
from streamdp.records import FieldNames, Raw, Record, Reject

POSITION = {"file": "x", "line": 3}


def raw(data: bytes | str | Any, time: float | None = None) -> Raw:
    if not isinstance(data, bytes):
        data = (data if isinstance(data, str) else json.dumps(data)).encode()
    return Raw(data, POSITION, 5.0, time)


def good(decoder: Decoder, data: Any, time: float | None = None) -> Record:
    record = decoder.decode(raw(data, time))
    assert isinstance(record, Record), record
    return record


def reason(decoder: Decoder, data: Any) -> str:
    event = raw(data)
    reject = decoder.decode(event)
    assert isinstance(reject, Reject), reject
    assert (reject.position, reject.data) == (POSITION, event.data)
    assert reject.detail
    return reject.reason


JSON = Decoder()


@pytest.mark.parametrize(
    ("fields", "value"),
    [
        ({"text": " hello "}, " hello "),
        ({"text": "ok", "vector": None, "features": None}, "ok"),
        ({"vector": [1, 2.5, -3]}, [1.0, 2.5, -3.0]),
        ({"vector": [10**30]}, [1e30]),
        ({"features": {"a": 1, "": 0}}, {"a": 1.0, "": 0.0}),
        ({"text": "ok", "other": 10**400, "cluster": [None, {"x": "y"}]}, "ok"),
    ],
)
def test_values(fields: dict[str, Any], value: Any) -> None:
    record = good(JSON, fields)
    assert record == Record(value, POSITION, None, None, 5.0, None, json.dumps(fields).encode())
    assert {type(item) for item in record.value if isinstance(record.value, list)} <= {float}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"text": "\xff"}', "not_utf8"),
        (b'{"text": "a", "other": "\xff"}', "not_utf8"),
        (b"", "not_json"),
        (b'{"text": "a"', "not_json"),
        (b'{"text": "a"} {}', "not_json"),
        (b'{"text": 5, "other" 6}', "not_json"),
        (b'{"text": "a", "x": 01}', "not_json"),
        (b"{'text': 'a'}", "not_json"),
        (b"NaN", "not_an_object"),
        (b'{"vector": [1, NaN]}', "null_value"),
        (b'{"features": {"a": -Infinity}}', "null_value"),
        (b'{"text": NaN}', "null_value"),
        (b'{"vector": [1, 1e999], "x": NaN}', "not_finite"),
        (b'{"text": "a", "time": 1e999, "x": NaN}', "bad_time"),
        (b'{"text": "a", "x": NaN, "y": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not_json"),
        (b'{"text": "a", "x": ' + b"[" * 100_000, "not_json"),
        (b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "not_json"),
        (b"[1, 2]", "not_an_object"),
        (b'"text"', "not_an_object"),
        (b"null", "not_an_object"),
        ({}, "missing_field"),
        ({"Text": "a"}, "missing_field"),
        ({"text": "a", "vector": [1]}, "ambiguous"),
        ({"vector": [], "features": {}}, "ambiguous"),
        ({"text": None}, "null_value"),
        ({"text": None, "vector": None}, "null_value"),
        ({"vector": [1, None]}, "null_value"),
        ({"features": {"a": None}}, "null_value"),
        ({"text": 5}, "wrong_type"),
        ({"text": ["a"]}, "wrong_type"),
        ({"vector": "1,2"}, "wrong_type"),
        ({"vector": [1, "2"]}, "wrong_type"),
        ({"vector": [True]}, "wrong_type"),
        ({"vector": {"a": 1}}, "wrong_type"),
        ({"features": [1]}, "wrong_type"),
        ({"features": {"a": False}}, "wrong_type"),
        ({"features": {"a": {}}}, "wrong_type"),
        ({"text": "a", "id": 1.5}, "wrong_type"),
        ({"text": "a", "id": True}, "wrong_type"),
        ({"text": "a", "id": [1]}, "wrong_type"),
        (b'{"text": "a", "id": 1' + b"0" * 5000 + b"}", "wrong_type"),
        ({"text": ""}, "empty"),
        ({"text": " \t\u3000"}, "empty"),
        ({"vector": []}, "empty"),
        ({"features": {}}, "empty"),
        (b'{"vector": [1e999]}', "not_finite"),
        (b'{"vector": [1' + b"0" * 400 + b"]}", "not_finite"),
        (b'{"features": {"a": -1e999}}', "not_finite"),
        ({"text": "a", "time": True}, "bad_time"),
        ({"text": "a", "time": "soon"}, "bad_time"),
        ({"text": "a", "time": "2014"}, "bad_time"),
        ({"text": "a", "time": "1_700_000_000"}, "bad_time"),
        ({"text": "a", "time": "nan"}, "bad_time"),
        ({"text": "a", "time": "2024-01-01T24:00:01Z"}, "bad_time"),
        ({"text": "a", "time": "2024-01-01T24:30"}, "bad_time"),
        ({"text": "a", "time": "2024-01-01T25:00:00"}, "bad_time"),
        ({"text": "a", "time": "2024-01-01T23:59:61Z"}, "bad_time"),
        ({"text": "a", "time": "9999-12-31T24:00:00Z", "id": []}, "wrong_type"),
        ({"text": "a", "time": {}}, "bad_time"),
        ({"text": "a", "time": "2024-02-30"}, "bad_time"),
        (b'{"text": "a", "time": 1e999}', "bad_time"),
        ({"text": "a", "time": 10**400}, "bad_time"),
    ],
)
def test_json_rejects(data: Any, expected: str) -> None:
    assert reason(JSON, data) == expected
    assert expected in REASONS


@pytest.mark.parametrize(
    ("line", "record"),
    [
        (b'{"text": "a", "x": NaN, "y": [-Infinity, 1e999]}', ("a", None, None)),
        (b'{"text": "a", "x": "\\ud83d", "\\udc00": {"\\ud800": "\\ud800\\u0041"}}', ("a", None, None)),
        (b'{"text": "a \\ud83d b \\ud83d\\ude00", "time": 5}', ("a \ufffd b \U0001f600", 5.0, None)),
        (b'{"text": "a\\\\ud800", "id": "\\udfff", "x": NaN}', ("a\\ud800", None, "\ufffd")),
        (b'{"vector": [0.1, 1e-3], "x": NaN, "id": 10}', ([0.1, 1e-3], None, 10)),
        (b'{"text": "a", "id": NaN, "time": NaN}', ("a", None, None)),
        (b'{"text": "a", "id": 17.0}', ("a", None, 17)),
        (b'{"text": "a", "id": -0.0}', ("a", None, 0)),
        (b'{"text": "a", "id": 1e3, "x": NaN}', ("a", None, 1000)),
        (b'{"text": "a", "x": 1' + b"0" * 5000 + b', "y": NaN}', ("a", None, None)),
    ],
)  # fmt: skip
def test_what_is_odd_beside_the_value_does_not_cost_the_record(line: bytes, record: tuple[Any, ...]) -> None:
    found = JSON.decode(raw(line))
    assert isinstance(found, Record)
    assert (found.value, found.time, found.id) == record
    assert found.raw == line
    if isinstance(found.value, str):
        of_fields = Decoder(categories=FieldNames(("text",))).decode(raw(line))
        assert isinstance(of_fields, Record)
        assert (of_fields.value, of_fields.time, of_fields.id) == ({"text": record[0]}, *record[1:])


def test_what_is_odd_in_a_kept_field_is_kept_as_json_can_have_it() -> None:
    assert good(Decoder(keep=("x",)), b'{"text": "a", "x": [NaN, 1]}').keep == {"x": [None, 1]}
    assert good(Decoder(keep=("x",)), {"text": "a", "x": "\ud800"}).keep == {"x": "\ufffd"}


def test_details_name_the_field() -> None:
    decoder = Decoder(text_field="body")
    for fields, name in (
        ({"body": 5}, "body"),
        ({"vector": [1, "a"]}, "vector[1]"),
        ({"features": {"q": None}}, "q"),
    ):
        reject = decoder.decode(raw(fields))
        assert isinstance(reject, Reject)
        assert name in reject.detail


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (None, None),
        ("", None),
        (" \t", None),
        ("1700000000", 1.7e9),
        (" 1700000000.5 ", 1_700_000_000.5),
        ("1700000000123", 1_700_000_000.123),
        ("-1.7e9", -1.7e9),
        ("1700000000000000000", 1.7e9),
        ("20231114", 1_699_920_000.0),
        ("2026-01-05T24:00:00Z", 1_767_657_600.0),
        ("2026-01-05 24:00", 1_767_657_600.0),
        ("20260105T240000.000+01:00", 1_767_654_000.0),
        ("2026-12-31T23:59:60Z", 1_798_761_600.0),
        ("1990-12-31T15:59:60-08:00", 662_688_000.0),
        ("2026-12-31T23:59:60.25Z", 1_798_761_600.25),
        ("20261231T235960", 1_798_761_600.0),
        (0, 0.0),
        (-1.5, -1.5),
        (10**30, 1e21),
        (99_999_999_999, 99_999_999_999.0),
        (1_700_000_000_123, 1_700_000_000.123),
        (1_700_000_000_123_456, 1_700_000_000.123456),
        (1_700_000_000_123_456_789, 1_700_000_000.123456789),
        (-1_700_000_000_123, -1_700_000_000.123),
        ("1970-01-01T00:00:01", 1.0),
        ("1970-01-01 00:00:01.5Z", 1.5),
        ("1970-01-01T01:00:00+01:00", 0.0),
        ("1970-01-02", 86400.0),
        ("1969-12-31", -86400.0),
    ],
)
def test_times(time: Any, seconds: float | None) -> None:
    record = good(JSON, {"text": "a", "time": time})
    assert record.time == seconds
    assert record.time is None or type(record.time) is float
    assert good(JSON, {"text": "a", "time": time}, time=7.0).time == (7.0 if seconds is None else seconds)


@pytest.mark.parametrize(
    ("identity", "expected"), [(None, None), ("a", "a"), ("", ""), (-5, -5), (2**64, "18446744073709551616")]
)
def test_ids(identity: Any, expected: Any) -> None:
    assert good(JSON, {"text": "a", "id": identity}).id == expected


def test_keep() -> None:
    decoder = Decoder(keep=("user", "cluster", "absent"))
    record = good(decoder, {"text": "a", "cluster": None, "user": {"n": [10**30]}, "x": 1})
    assert record.keep == {"user": {"n": [str(10**30)]}, "cluster": None}
    assert good(Decoder(keep=("text", "time", "x")), {"text": "a", "time": 5}).keep == {
        "text": "a",
        "time": 5,
    }
    assert reason(decoder, b'{"text": "a", "user": 1e999}') == "not_finite"
    assert reason(decoder, '{"text": "a", "user": ' + "[" * 80 + "]" * 80 + "}") == "wrong_type"


def test_field_names() -> None:
    assert (
        good(Decoder(text_field="tëxt", time_field="created at"), {"tëxt": "a", "created at": 1}).time == 1.0
    )
    with pytest.raises(ValueError, match="same name"):
        Decoder(text_field="time")
    with pytest.raises(ValueError, match="format"):
        Decoder("xml")  # type: ignore[arg-type]


@pytest.mark.parametrize("decoder", [Decoder(max_bytes=9), Decoder("text", max_bytes=9)])
def test_too_large(decoder: Decoder) -> None:
    assert reason(decoder, b"x" * 10) == "too_large"


def test_plain_text() -> None:
    decoder = Decoder("text")
    assert good(decoder, b'{"text": 5}', time=2.0).value == '{"text": 5}'
    assert good(decoder, "tëxt", time=2.0).time == 2.0
    assert reason(decoder, b"\xff") == "not_utf8"
    assert reason(decoder, "\u3000") == "empty"


def test_csv_with_text() -> None:
    decoder = Decoder("csv", header=["id", "text", "time", "cluster", "lang"], keep=("lang", "nothing"))
    record = good(decoder, '7,"a ""b"",\r\nc",1.5,4,en\n')
    assert (record.value, record.id, record.time, record.keep) == ('a "b",\r\nc', "7", 1.5, {"lang": "en"})
    record = good(decoder, ",a,1970-01-01T00:00:01Z,,", time=9.0)
    assert (record.id, record.time, record.keep) == (None, 1.0, {"lang": ""})
    assert good(decoder, ",a,,,", time=9.0).time == 9.0
    assert good(decoder, f',"{"long " * 100_000}",,,').value == "long " * 100_000
    for row, expected in [
        ("1,a,2", "csv_columns"),
        ("", "csv_columns"),
        ('1,"a,2,3,4', "csv_columns"),
        ('1,"a"b,2,3,4', "csv_columns"),
        ("1,a,2,3,4\n1,a,2,3,4", "csv_columns"),
        ("1, ,2,3,4", "empty"),
        ("1,a,nan,3,4", "bad_time"),
        ("1,a,1_0,3,4", "bad_time"),
        ("1,a,soon,3,4", "bad_time"),
        (b"1,\xff,2,3,4", "not_utf8"),
    ]:
        assert reason(decoder, row) == expected, row


@given(st.text('ab ,;\t"\r\n\0é', max_size=9))
@example("")
@example(",")
def test_cells_are_those_of_the_module_csv(text: str) -> None:
    try:
        expected: list[str] | None = next(csv.reader([text], strict=True)) if text else []
    except csv.Error:
        expected = None
    try:
        assert parse_row(text) == expected
    except RefusedError:
        assert expected is None


def test_csv_with_numbers() -> None:
    decoder = Decoder("csv", keep=("k",))
    with pytest.raises(ValueError, match="header"):
        decoder.decode(raw("1"))
    decoder.header = ["", "x", "cluster", "y", "time", "k"]
    record = good(decoder, "0, 1.5 ,9,-2e3,3,z")
    assert (record.value, record.time, record.keep) == ({"x": 1.5, "y": -2000.0}, 3.0, {"k": "z"})
    for cell, expected in [
        ("", "null_value"),
        ("a", "wrong_type"),
        ("1_0", "wrong_type"),
        ("inf", "not_finite"),
    ]:
        assert reason(decoder, f"0,1,9,{cell},3,z") == expected
    for header in (["id", "time", "cluster"], ["x", "x"]):
        with pytest.raises(ValueError, match="header"):
            decoder.header = header


DECODERS = [
    JSON,
    Decoder(keep=("a", "text")),
    Decoder("text"),
    Decoder("csv", header=["text", "id"]),
    Decoder("csv", header=["a", "time"]),
]
SCALAR = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
NESTED = st.recursive(
    SCALAR, lambda s: st.lists(s, max_size=3) | st.dictionaries(st.text(max_size=2), s, max_size=3)
)
OBJECT = st.dictionaries(st.sampled_from(["text", "vector", "features", "time", "id", "a"]), NESTED)


def sound(result: Record | Reject) -> None:
    if isinstance(result, Reject):
        assert result.reason in REASONS
        return
    values = result.value
    if isinstance(values, str):
        assert values.strip()
    else:
        numbers = list(values.values()) if isinstance(values, dict) else values
        assert numbers
        assert all(type(number) is float and math.isfinite(number) for number in numbers)
    assert result.time is None or (type(result.time) is float and math.isfinite(result.time))
    assert result.id is None or type(result.id) in (str, int)


@given(st.binary() | st.text().map(str.encode) | OBJECT.map(lambda o: json.dumps(o).encode()))
@example(b"")
@example(b"\x00")
@example(b'"')
def test_no_bytes_make_it_raise(data: bytes) -> None:
    for decoder in DECODERS:
        sound(decoder.decode(raw(data)))


@given(OBJECT)
def test_both_readings_of_json_agree(fields: dict[str, Any]) -> None:
    # A kept field that is also the text forces the reading that goes field by field.
    fast, slow = JSON.decode(raw(fields)), Decoder(keep=("text",)).decode(raw(fields))
    assert type(fast) is type(slow)
    if isinstance(fast, Record) and isinstance(slow, Record):
        assert (fast.value, fast.time, fast.id) == (slow.value, slow.time, slow.id)
    elif isinstance(fast, Reject) and isinstance(slow, Reject):
        assert fast == slow
