"""``streamdp consume`` and records that cannot be used: kept with the reason, and the stream goes on."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from commands import (
    call,
    newest_lines,
    parsed,
    succeed,
)

GOOD_TEXT, GOOD_VECTOR = b'{"text": "a good text"}', b'{"vector": [1, 2]}'
BAD_TEXTS = [
    (b"not json", "not_json"),
    (b'{"text": "cut off', "not_json"),
    (b"[1, 2]", "not_an_object"),
    (b'{"time": 1}', "missing_field"),
    (b'{"text": null}', "null_value"),
    (b'{"text": ""}', "empty"),
    (b'{"text": "  "}', "empty"),
    (b'{"text": "!?"}', "empty"),
    (b'{"text": 5}', "wrong_type"),
    (b'{"text": "one two", "time": "yesterday"}', "bad_time"),
    (b'{"text": "one two", "time": true}', "bad_time"),
    (b'{"text": "one two", "time": 9e99}', "ahead"),
    (b'{"text": "one two", "id": [1]}', "wrong_type"),
    (b'{"text": "\xff\xfe"}', "not_utf8"),
    (b'{"text": "one", "vector": [1]}', "ambiguous"),
    (b'{"vector": [1.0]}', "wrong_kind"),
    (b'{"text": "' + b"long " * 300 + b'"}', "too_large"),
]
BAD_VECTORS = [
    (b'{"vector": [1, null]}', "null_value"),
    (b'{"vector": ["1", 2]}', "wrong_type"),
    (b'{"vector": [1, true]}', "wrong_type"),
    (b'{"vector": "1,2"}', "wrong_type"),
    (b'{"vector": [1e999, 2]}', "not_finite"),
    (b'{"vector": [NaN, 2]}', "not_json"),
    (b'{"vector": []}', "empty"),
    (b'{"vector": [1, 2, 3]}', "wrong_length"),
    (b'{"vector": [1e200, 3]}', "too_large"),
    (b'{"features": {"a": 1}}', "wrong_kind"),
    (b'{"text": "a good text"}', "wrong_kind"),
]


def mixed(good: bytes, bad: list[tuple[bytes, str]]) -> bytes:
    """Good, bad and blank lines by turns, from a good one to a good one."""
    lines = [good]
    for line, _ in bad:
        lines += [line, b"", good]
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize(("good", "bad"), [(GOOD_TEXT, BAD_TEXTS), (GOOD_VECTOR, BAD_VECTORS)])
def test_refused_records(tmp_path: Path, good: bytes, bad: list[tuple[bytes, str]]) -> None:
    (tmp_path / "in").write_bytes(mixed(good, bad))
    run = ("consume", "--file", "in", "--output", "out", "--max-record-bytes", "1000")
    done = call(tmp_path, *run)
    assert done.returncode == 0
    assert f"{len(bad)} records refused" in done.stderr.decode()
    assert len(newest_lines((tmp_path / "out").read_bytes())) == len(bad) + 1
    rejects = parsed((tmp_path / "out.rejects.jsonl").read_bytes())
    found = sorted((r["position"]["line"], r["reason"], original(r)) for r in rejects)
    assert found == [(3 * i + 2, reason, line) for i, (line, reason) in enumerate(bad)]
    assert all(r["detail"] and r["position"]["file"] == "in" for r in rejects)


def original(reject: dict[str, Any]) -> bytes:
    """The bytes of a refused record."""
    return reject["data"].encode() if "data" in reject else base64.b64decode(reject["data_base64"])


def test_rejects_stand_in_the_order_of_the_input(tmp_path: Path) -> None:
    """However the input is cut: a decoder's refusal does not overtake one of the engine."""
    data = mixed(GOOD_TEXT, BAD_TEXTS)
    succeed(tmp_path, "consume", "--file", "-", "--rejects", "rejects", stdin=data)
    lines = [r["position"]["line"] for r in parsed((tmp_path / "rejects").read_bytes())]
    assert lines == sorted(lines)


@pytest.mark.parametrize("first", [b'{"vector": [1e200, 3, 5]}', b'{"text": "!?"}', b"{}"])
def test_a_refused_first_record_does_not_stop_the_stream(tmp_path: Path, first: bytes) -> None:
    data = first + b"\n" + b'{"vector": [1, 2]}\n{"vector": [2, 1]}\n'
    lines = newest_lines(succeed(tmp_path, "consume", "--file", "-", "--likelihood", "auto", stdin=data))
    assert len(lines) == 2
