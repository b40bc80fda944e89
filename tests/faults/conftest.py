"""What the tests of faults share; the broker is that of all tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from broker.process import Broker


@pytest.fixture(scope="session")
def other_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A second broker, of a cluster of its own."""
    broker = Broker(tmp_path_factory.mktemp("other"))
    broker.format("b3RoZXItc3RyZWFtZHAtdQ")
    broker.start()
    try:
        broker.wait()
        yield broker
    finally:
        broker.stop()
