"""A topic that is read and written at once would feed itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import fail


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--output-topic", "news"), "--topic and --output-topic"),
        (("--rejects-topic", "news"), "--topic and --rejects-topic"),
        (("--output-topic", "out", "--rejects-topic", "out"), "--output-topic and --rejects-topic"),
    ],
)
def test_is_refused_before_anything_is_asked(tmp_path: Path, options: tuple[str, ...], named: str) -> None:
    code, message = fail(tmp_path, "consume", "--topic", "news", "--bootstrap", "127.0.0.1:9", *options)
    assert code == 64
    assert f"{named} name the same topic" in message
