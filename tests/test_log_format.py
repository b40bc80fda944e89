"""What a run says, with time and level where that is wanted."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from commands import call

from streamdp.cli import errors


@pytest.fixture(autouse=True)
def plain_afterwards() -> object:
    yield
    errors.choose_log_format("plain")


def said(folder: Path, *more: str, lines: str = '{"text": "storm coast"}\n') -> list[str]:
    (folder / "in.jsonl").write_text(lines)
    done = call(folder, "consume", "in.jsonl", "--output", "out", "--state", "state", *more)
    found = done.stderr.decode().splitlines()
    return [line for line in found if "compiling the kernels" not in line]


def test_plain_is_as_it_was(tmp_path: Path) -> None:
    assert all(line.startswith("streamdp: ") for line in said(tmp_path))


def test_dated(tmp_path: Path) -> None:
    found = said(tmp_path, "--log-format", "dated")
    assert found
    shape = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (info|warning|error) streamdp: .+")
    assert all(shape.fullmatch(line) for line in found)


def test_every_line_is_an_object(tmp_path: Path) -> None:
    said(tmp_path)
    snapshots = sorted((tmp_path / "state").glob("*.sdp"))
    snapshots[-1].write_bytes(b"damaged")
    found = [json.loads(line) for line in said(tmp_path, "--log-format", "json")]
    assert all(set(line) == {"time", "level", "message"} for line in found)
    assert [line["level"] for line in found if "snapshot" in line["message"]] == ["warning"]
    assert "info" in {line["level"] for line in found}
    age = datetime.now(UTC) - datetime.fromisoformat(found[0]["time"])
    assert 0 <= age.total_seconds() < 300


@pytest.mark.parametrize(
    "wrong", [["--state", "in.jsonl"], ["--beam", "none"], ["--until", "tomorrow"], ["--from", "latest"]]
)
def test_errors_are_objects_too(tmp_path: Path, wrong: list[str]) -> None:
    found = [json.loads(line) for line in said(tmp_path, "--log-format", "json", *wrong)]
    assert [line["level"] for line in found] == ["error"]


@pytest.mark.usefixtures("printed")
def test_a_defect_is_a_line_and_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    errors.choose_log_format("json")
    with pytest.raises(KeyError) as caught:
        {}["missing"]
    assert errors.report(caught.value) == 1
    line = json.loads(capsys.readouterr().err)
    assert line["level"] == "critical"
    assert line["message"] == "a defect: KeyError: 'missing'"
    assert line["where"][0].endswith(" test_a_defect_is_a_line_and_no_traceback")
