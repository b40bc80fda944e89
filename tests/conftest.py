"""What several test modules share."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from broker.fixture import broker, own_broker  # noqa: F401 - fixtures
from commands import succeed, write_headlines
from seldom import is_seldom
from xdist.scheduler import LoadScopeScheduling

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


DIVIDED = ("test_nine_families", "test_docs")
"""Modules of which not all tests need be in one process, but those of one family, or of one page."""


class Modules(LoadScopeScheduling):
    """The tests of a module go to one process."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, name = nodeid.partition("::")
        return path + name[name.find("[") :] if Path(path).stem in DIVIDED and "[" in name else path


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C be heard by what tests start, also where a shell in the background has them ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Modules:
    """Who says what goes where."""
    return Modules(config, log)


@pytest.hookimpl(tryfirst=True)  # before markers are asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest; mark what .ci/run leaves out."""
    for item in items:
        if is_seldom(item):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST))


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream, and the assignments, events and state of a run over it."""
    folder = tmp_path_factory.mktemp("learned")
    write_headlines(folder / "in.jsonl", 3000)
    run = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "state")
    assert succeed(folder, *run) == b""
    return folder
