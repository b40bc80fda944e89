"""The fixtures ``broker`` (any real broker) and ``own_broker`` (one that may be killed)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from broker.process import Broker, BrokerError


class Existing(NamedTuple):
    """A broker that somebody else runs."""

    bootstrap: str


@pytest.fixture(scope="session")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker of the tests' own, running; who stops it starts it again."""
    broker = None
    try:
        broker = Broker(tmp_path_factory.mktemp("broker"))
        broker.format()
        broker.start()
        broker.wait()
        failure = ""
    except BrokerError as error:
        failure = str(error)
    try:
        if failure or broker is None:
            pytest.fail(failure, pytrace=False)
        yield broker
    finally:
        if broker is not None:
            broker.resume()
            broker.stop()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest) -> Broker | Existing:
    """A running broker: the one that STREAMDP_TEST_KAFKA names, else the tests' own."""
    named = os.environ.get("STREAMDP_TEST_KAFKA")
    if named:
        return Existing(named)
    own: Broker = request.getfixturevalue("own_broker")
    return own
