"""What the tests of faults share; the broker is that of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker.process import started
from held import Held
from secured import Secured


@pytest.fixture(scope="session")
def other_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A second broker, of a cluster of its own, with ports that demand TLS and logins."""
    broker = Secured(tmp_path_factory.mktemp("other"))
    broker.format_with_users("b3RoZXItc3RyZWFtZHAtdQ")
    with started(broker):
        yield broker


@pytest.fixture(scope="session")
def held(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Held]:
    """A broker behind a proxy."""
    broker = Held(tmp_path_factory.mktemp("held"))
    broker.format()
    with started(broker):
        try:
            yield broker
        finally:
            broker.release()
