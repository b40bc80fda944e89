"""Three brokers: a follower that lags, the leader killed while a transaction is open, a rolling restart."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from broker.process import Broker, BrokerError, Cluster
from broker.topics import contents, make_topic, produce
from commands import succeed, wait_for
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import KafkaError
from live import Live

pytestmark = pytest.mark.slow

PART = 3000
"""Records that come while each thing is done."""


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    try:
        cluster = Cluster(tmp_path_factory.mktemp("brokers"))
    except BrokerError as error:
        pytest.fail(str(error), pytrace=False)
    try:
        cluster.begin()
        yield cluster
    finally:
        cluster.stop()


T = TypeVar("T")


def patiently(ask: Callable[[], T]) -> T:
    """What is asked of brokers of which one may not answer. Records may be written twice so: to the input."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return ask()
        except KafkaError:
            if time.monotonic() > deadline:
                raise


class Watched:
    """Topics in three copies, and how they stand; asked of the brokers that do not stand still."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topic, self.output, self.quiet = (make_topic(cluster.bootstrap, replicas=3) for _ in range(3))
        self.count = 0

    def fill(self, count: int) -> None:
        """Records of a few words, each taken by two brokers at least."""
        numbers = range(self.count, self.count + count)
        items = [(0, b'{"id": %d, "text": "storm over coast %d"}' % (i, i % 5)) for i in numbers]
        patiently(lambda: produce(self.cluster.awake(), self.topic, items, acks="all"))
        self.count += count

    def partition(self, topic: str) -> dict[str, Any]:
        """What the brokers say of a topic's partition."""

        def asked() -> dict[str, Any]:
            admin = KafkaAdminClient(bootstrap_servers=self.cluster.awake(), request_timeout_ms=3000)
            try:
                found: dict[str, Any] = admin.describe_topics([topic])[0]["partitions"][0]
                return found
            finally:
                admin.close()

        return patiently(asked)

    def leader(self, topic: str) -> Broker:
        """The broker that leads a topic."""
        return self.cluster.members[self.partition(topic)["leader_id"] - 1]

    def in_step(self, count: int) -> bool:
        """Whether so many brokers have all of every topic."""
        topics = self.topic, self.output
        return all(len(self.partition(topic)["isr_nodes"]) == count for topic in topics)

    def open(self) -> bool:
        """Whether a transaction is open in the output: more is written than committed."""
        ends = []
        for level in ("read_uncommitted", "read_committed"):
            consumer = KafkaConsumer(bootstrap_servers=self.cluster.awake(), isolation_level=level)
            at = TopicPartition(self.output, 0)
            ends.append(int(consumer.end_offsets([at])[at]))
            consumer.close()
        return ends[0] > ends[1]

    def until_answered(self, run: Live) -> None:
        """Wait until every record has its first answer in the output."""
        run.until(lambda: (run.metric("streamdp_records_total") or 0) >= self.count, 120)
        run.until(lambda: self._answered() >= self.count, 120)

    def _answered(self) -> int:
        found = patiently(lambda: contents(self.cluster.awake(), self.output))
        return sum(b'"revision":0' in record.value for record in found)


def command(watched: Watched, output: str, state: str) -> list[str]:
    where = ["--topic", watched.topic, "--bootstrap", watched.cluster.bootstrap, "--state", state]
    return ["consume", *where, "--output-topic", output, "--rejects", f"{state}.rejects"]


def stopped_within_a_transaction(watched: Watched, run: Live) -> None:
    """Let the run stand still while one is open."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        watched.fill(500)
        run.pause()
        if watched.open():
            return
        run.resume()
    pytest.fail("no transaction was open at any moment")


def test_nothing_is_lost_or_doubled(cluster: Cluster, tmp_path: Path) -> None:
    watched = Watched(cluster)
    watched.fill(PART)
    with Live(tmp_path, *command(watched, watched.output, "state"), snapshot_every="700") as run:
        watched.until_answered(run)
        follower = next(each for each in cluster.members if each is not watched.leader(watched.output))
        follower.pause()
        wait_for(lambda: watched.in_step(2), seconds=180.0)
        watched.fill(PART)
        watched.until_answered(run)
        follower.resume()
        wait_for(lambda: watched.in_step(3), seconds=180.0)

        stopped_within_a_transaction(watched, run)
        leader = watched.leader(watched.output)
        leader.kill()
        wait_for(lambda: watched.leader(watched.output) is not leader, seconds=180.0)
        run.resume()
        watched.fill(PART)
        watched.until_answered(run)
        leader.restart()
        wait_for(lambda: watched.in_step(3), seconds=240.0)

        for each in cluster.members:
            each.stop()
            watched.fill(PART // 4)
            each.restart()
            wait_for(lambda: watched.in_step(3), seconds=240.0)
        watched.until_answered(run)
        assert run.terminate() == 0
    succeed(tmp_path, *command(watched, watched.output, "state"), "--until", "end")
    succeed(tmp_path, *command(watched, watched.quiet, "quiet"), "--until", "end")
    found, expected = (contents(cluster.bootstrap, each) for each in (watched.output, watched.quiet))
    assert [record.value for record in found] == [record.value for record in expected]
    assert len(found) > watched.count
