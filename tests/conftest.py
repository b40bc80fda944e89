"""What several test modules share."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from broker.fixture import broker, own_broker  # noqa: F401 - fixtures
from commands import succeed, write_headlines
from hypothesis import HealthCheck, settings
from inside import LOGGERS
from parts import PARTS, group_of, part_of, summary
from xdist.scheduler import LoadScopeScheduling

from streamdp.cli.errors import print_messages

timed = [HealthCheck.too_slow]
settings.register_profile("untimed", deadline=None, suppress_health_check=timed)  # other work may run here
settings.load_profile("untimed")

LONGEST = (
    "faults",
    "faults-2",
    "kafka",
    "test_docs",
    "test_beam_oracle",
    "test_nine_families",
    "test_spark",
    "test_samplers",
    "test_own_family",
    "test_tampered_snapshots",
    "test_fit",
    "test_mixed",
    "test_astar",
    "test_anchors",
    "test_first_week",
    "test_rotation",
    "test_river",
    "test_lines",
    "test_face",
    "test_events",
    "test_vector_families",
    "test_engine",
)
"""What takes minutes: begun first, so that none of it is alone in the end."""

DIVIDED = ("test_nine_families", "test_docs", "test_beam_oracle", "test_astar")
"""Modules of which not all tests need be in one process, but those of one family, pair or page."""


class Groups(LoadScopeScheduling):
    """The tests of a group go to one process."""

    def _split_scope(self, nodeid: str) -> str:
        path, _, name = nodeid.partition("::")
        group = group_of(Path(path))
        return group + name[name.find("[") :] if group in DIVIDED and "[" in name else group


BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
"""What a virtual machine of Java is told that runs for a minute: to compile fast, not to fast code."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run be of one part."""
    parser.addoption("--part", choices=PARTS, help="run one of the three parts of tests/parts.py")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave modules of other parts out, without importing them."""
    part = config.getoption("--part")
    other = part and collection_path.suffix == ".py" and part_of(collection_path) != part
    return True if other else None


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say how long parts and the longest groups took, after a run of a part or of more."""
    reports = [each for found in terminalreporter.stats.values() for each in found if hasattr(each, "when")]
    if len(reports) > 1000:
        terminalreporter.section("seconds of processes, by parts and groups")
        root = config.rootpath
        for line in summary((root / each.nodeid.partition("::")[0], each.duration) for each in reports):
            terminalreporter.line(line)


def pytest_configure(config: pytest.Config) -> None:
    """Let Ctrl-C be heard by what tests start, also where a shell in the background has them ignore it."""
    os.environ.setdefault("SPARK_SUBMIT_OPTS", BRIEF)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups:
    """Who says what goes where."""
    return Groups(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest."""
    place = {group: i for i, group in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(group_of(item.path), len(place)))


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real Chromium, for the tests of the page."""
    from browser.process import browser  # no other test needs Playwright

    with browser() as found:
        yield found


@pytest.fixture(scope="session")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a stream, and the assignments, events and state of a run over it."""
    folder = tmp_path_factory.mktemp("learned")
    write_headlines(folder / "in.jsonl", 3000)
    run = ("consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--state", "state")
    assert succeed(folder, *run) == b""
    return folder


@pytest.fixture
def printed() -> Iterator[None]:
    """What runs say is printed, as by the command line."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    kept = [(log, log.handlers[:], log.level, log.propagate) for log in loggers]
    print_messages()
    yield
    for log, handlers, level, propagate in kept:
        log.handlers[:], log.level, log.propagate = handlers, level, propagate
