"""The example that makes JSON lines of files of other programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "to_lines.py"
FROM = "From ann@example.org Mon Dec  1 08:00:00 2025"
MAIL = """From: Ann <ann@example.org>
Subject: =?utf-8?q?St=C3=B6rung?=
Date: Mon, 1 Dec 2025 08:00:00 +0000

It broke.
"""
RSS = "<rss><channel><title>X</title><item><title>Storm</title><guid>a</guid></item></channel></rss>"
ATOM = '<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>Goal</title><link href="a"/></entry></feed>'


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        (
            {"a.mbox": f"{FROM}\n{MAIL}"},
            [{"subject": "Störung", "body": "It broke.\n"}],
        ),
        ({"a.eml": MAIL}, [{"subject": "Störung", "date": "Mon, 01 Dec 2025 08:00:00 +0000"}]),
        ({"a.rss": RSS}, [{"title": "Storm", "guid": "a"}]),
        ({"a.xml": ATOM}, [{"title": "Goal", "link": "a"}]),
        ({"a.json": '[{"text": "a"}, {"text": "b"}]'}, [{"text": "a"}, {"text": "b"}]),
        ({"a.json": '{\n "messages": [{"content": "a"}]}'}, [{"content": "a"}]),
        (
            {"x/2.json": '[{"text": "b"}]', "x/1.json": '[{"text": "a"}]', "y/1.json": '[{"text": "c"}]'},
            [{"text": "a", "folder": "x"}, {"text": "c", "folder": "y"}, {"text": "b", "folder": "x"}],
        ),
    ],
)
def test_a_line_for_each_record(tmp_path: Path, files: dict[str, str], wanted: list[dict[str, Any]]) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    path = tmp_path / next(iter(files)) if len(files) == 1 else tmp_path
    done = subprocess.run([sys.executable, EXAMPLE, path], check=True, capture_output=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each | right for each, right in zip(found, wanted, strict=True)] == found
