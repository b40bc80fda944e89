"""Sharing a topic's partitions among the members of a group, against a real broker."""

from __future__ import annotations

import time
from typing import Any

import pytest
from broker.topics import add_partitions, make_topic
from streamdp_connectors.kafka.client import Members


def waits(members: Members, wait: float, wanted: set[int]) -> list[set[int]]:
    """What the shares were until it is this one."""
    deadline, shares = time.monotonic() + 180.0, list[set[int]]()
    while not shares or shares[-1] != wanted:
        assert time.monotonic() < deadline, shares
        share = members.share(wait)
        if share is not None:
            shares.append(share)
    return shares


@pytest.mark.parametrize("wait", [0.002, 0.2])
def test_new_partitions_are_shared_however_briefly_one_waits(broker: Any, wait: float) -> None:
    topic = make_topic(broker.bootstrap, 3)
    members = Members(topic, broker.bootstrap, f"{topic}.members", {}, 10.0, 6.0)
    try:
        assert waits(members, wait, {0, 1, 2}) == [{0, 1, 2}]
        add_partitions(broker.bootstrap, topic, 5)
        assert waits(members, wait, {0, 1, 2, 3, 4}) == [{0, 1, 2, 3, 4}]
        assert members.partitions() == {0, 1, 2, 3, 4}
    finally:
        members.close()
