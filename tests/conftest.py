"""What several test modules share."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.fixture import broker, own_broker  # noqa: F401 - fixtures
from commands import succeed, write_headlines

LONGEST = (
    "test_nine_families",
    "test_docs",
    "test_samplers",
    "test_tampered_snapshots",
    "test_own_family",
    "test_rotation",
    "test_spark",
    "test_vector_families",
    "test_beam_oracle",
    "test_events",
    "test_face",
    "test_river",
    "test_first_week",
    "test_engine",
)
"""Modules that take minutes: begun first, so that none of them is alone in the end."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a module in one process, but for those of which a module says that they go apart.

    A module of long tests has ``APART``, the name of the parameter by which it is divided.
    """
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))
    for item in items:
        name = getattr(getattr(item, "module", None), "APART", None)
        params = getattr(getattr(item, "callspec", None), "params", {})
        part = f" {params[name]}" if name in params else ""
        item.add_marker(pytest.mark.xdist_group(f"{item.path.stem}{part}"))


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream, and the assignments, events and state of a run over it."""
    folder = tmp_path_factory.mktemp("learned")
    write_headlines(folder / "in.jsonl", 3000)
    run = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "state")
    assert succeed(folder, *run) == b""
    return folder
