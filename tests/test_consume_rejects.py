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
    (b'{"vector": [NaN, 2]}', "null_value"),
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


ODD = [
    b'{"text": "storm over the coast", "id": 1, "time": 1767571200}',
    b'{"text": "storm over the coast", "id": 2.0, "time": "1767571201", "x": NaN}',
    b'{"text": "storm over the coast", "id": "3", "time": "2026-01-05T00:00:02Z", "x": "\\ud800"}',
    b'{"text": "storm over \\udfff the coast", "id": 4, "time": ""}',
    b'{"text": "storm over the coast", "id": 5, "time": "2026-01-05T23:59:60Z"}',
    b'{"text": "storm over the coast", "id": 6e0, "time": "2026-01-05T24:00:00Z"}',
    b'{"text": "storm over the coast", "id": 7, "x": ' + b"[" * 1000 + b"]" * 1000 + b"}",
    b'{"text": "storm over the coast", "id": 8, "x": ' + b"9" * 5000 + b"}",
]
"""Lines that other readers of JSON take, or write; the seventh alone is too deep."""


@pytest.mark.parametrize("copies", [1, 30])
@pytest.mark.parametrize("source", ["in.jsonl", "-"])
def test_what_is_odd_is_read_alike_first_or_later_in_a_file_or_a_pipe(
    tmp_path: Path, source: str, copies: int
) -> None:
    data = b"\n".join(ODD * copies) + b"\n"
    (tmp_path / "in.jsonl").write_bytes(data)
    run = ("consume", source, "--output", "out", "--max-leap", "1e9", "--max-ahead", "1e12")
    done = call(tmp_path, *run, stdin=data)
    assert done.returncode == 0, done.stderr
    rejects = parsed((tmp_path / "out.rejects.jsonl").read_bytes())
    assert [(r["reason"], r["detail"]) for r in rejects] == [
        ("not_json", "the object is nested too deeply")
    ] * copies
    found = newest_lines((tmp_path / "out").read_bytes())
    assert [line["id"] for line in found] == [1, 2, "3", 4, 5, 6, 8] * copies
    assert [line["time"] for line in found[:6]] == [
        1767571200, 1767571201, 1767571202, None, 1767657600, 1767657600
    ]  # fmt: skip
    if source != "-":
        done = call(tmp_path, "check", source)
        assert done.returncode == 0, done.stderr
        assert f"refused: {copies} not_json" in done.stdout.decode()


@pytest.mark.parametrize(
    "odd", [b"[" * 1000 + b"]" * 1000, b'{"a":' * 1000 + b"1" + b"}" * 1000, b"9" * 5000]
)
def test_odd_first_records_are_recognised_by_what_can_be_read(tmp_path: Path, odd: bytes) -> None:
    lines = [b'{"headline": "storm over the coast", "when": "2026-01-05", "x": %s}' % odd, odd]
    lines.append(b'{"headline": "coast storm", "when": "2026-01-06", "x": [NaN, "\\ud800"]}')
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    done = call(tmp_path, "check", "in.jsonl", "--text-field", "headline")
    assert b"Traceback" not in done.stderr
    assert b"times from 'when'" in done.stderr
    assert b"coast | storm" in done.stdout
