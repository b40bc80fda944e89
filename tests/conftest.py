"""What several test modules share."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.fixture import broker, own_broker  # noqa: F401 - fixtures
from commands import succeed, write_headlines


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream, and the assignments, events and state of a run over it."""
    folder = tmp_path_factory.mktemp("learned")
    write_headlines(folder / "in.jsonl", 3000)
    run = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "state")
    assert succeed(folder, *run) == b""
    return folder
