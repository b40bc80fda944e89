"""A broker comes back with a shorter log than it had: told, and never read as if nothing had happened."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from broker.process import Broker
from broker.topics import delete_topic, make_topic, produce
from kafka import TopicPartition
from kafka.errors import LogTruncationError
from kafka.structs import OffsetAndMetadata
from live import Live
from streamdp_connectors.kafka.gaps import GapPolicy
from streamdp_connectors.kafka.log import OutOfRangeError
from streamdp_connectors.kafka.source import KafkaSource
from streamdp_connectors.protocol import SourceError


def drain(source: KafkaSource, limit: int) -> int:
    count, deadline = 0, time.monotonic() + 180
    while count < limit:
        assert time.monotonic() < deadline
        count += len(source.read(500, 0.2))
    return count


def cut(broker: Broker, topic: str) -> None:
    """Kill the broker, take half of a partition's log away, and start it again."""
    broker.kill()
    folder: Path = broker.folder / "data" / f"{topic}-0"
    log = folder / f"{0:020}.log"
    size = log.stat().st_size
    for path in folder.glob("*.*index"):
        path.unlink()
    with log.open("r+b") as file:
        file.truncate(size // 2)
    for name in ("recovery-point-offset-checkpoint", ".kafka_cleanshutdown"):
        (broker.folder / "data" / name).unlink(missing_ok=True)
    broker.restart()


def test_the_log_is_cut_while_it_is_read(own_broker: Broker) -> None:
    topic = make_topic(own_broker.bootstrap)
    records = ((0, b"%d" % i) for i in range(100))
    produce(own_broker.bootstrap, topic, records, batch_size=50)  # many batches, so that whole ones are left
    strict = KafkaSource(topic, own_broker.bootstrap)
    lenient = KafkaSource(topic, own_broker.bootstrap, on_gap="earliest")
    for source in (strict, lenient):
        assert drain(source, 100) == 100
    cut(own_broker, topic)
    with pytest.raises(SourceError) as caught:
        drain(strict, 1)
    assert caught.value.exit_code == 65
    assert "was cut at" in caught.value.message
    assert "\n" not in caught.value.message
    lenient.read(10, 5.0)
    produce(own_broker.bootstrap, topic, [(0, b"after")])
    assert drain(lenient, 1) == 1
    (gap,) = lenient.gaps()
    assert "was cut at" in gap.detail
    strict.close()
    lenient.close()


def test_a_run_says_so_in_one_line(own_broker: Broker, tmp_path: Path) -> None:
    topic = make_topic(own_broker.bootstrap)
    records = ((0, b'{"text": "storm over the coast %d"}' % i) for i in range(100))
    produce(own_broker.bootstrap, topic, records, batch_size=50)
    command = ["consume", "--topic", topic, "--bootstrap", own_broker.bootstrap, "--state", "state"]
    with Live(tmp_path, *command, "--output", "out") as run:
        run.until(lambda: run.metric("streamdp_records_total") == 100)
        cut(own_broker, topic)
        assert run.ends() == 65
        assert not any("Traceback" in line for line in run.said)
        (told,) = [line for line in run.said if "was cut" in line]
        assert "before offset 100: the broker lost records; --on-gap earliest goes on" in told


def test_a_run_whose_topic_is_made_anew_says_so_in_one_line(own_broker: Broker, tmp_path: Path) -> None:
    topic = make_topic(own_broker.bootstrap)
    produce(own_broker.bootstrap, topic, ((0, b'{"text": "storm"}') for _ in range(100)))
    command = ["consume", "--topic", topic, "--bootstrap", own_broker.bootstrap, "--state", "state"]
    with Live(tmp_path, *command, "--output", "out") as run:
        run.until(lambda: run.metric("streamdp_records_total") == 100)
        delete_topic(own_broker.bootstrap, topic)
        make_topic(own_broker.bootstrap, name=topic)
        produce(own_broker.bootstrap, topic, ((0, b'{"text": "storm"}') for _ in range(300)))
        assert run.ends() == 65
        (told,) = [line for line in run.said if "compiling" not in line]
        assert f"topic {topic} was made anew" in told


def test_a_question_for_a_position_hears_of_it_first(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, ((0, b"%d" % i) for i in range(10)))
    source = KafkaSource(topic, broker.bootstrap)
    assert drain(source, 10) == 10
    consumer, at = source._log._consumer, TopicPartition(topic, 0)
    error = LogTruncationError({at: OffsetAndMetadata(4, "", 0)})
    monkeypatch.setattr(consumer, "position", lambda *_, **__: (_ for _ in ()).throw(error))
    assert sum(lag.records for lag in source.lags()) == 0
    monkeypatch.undo()
    with pytest.raises(SourceError, match="was cut at 4, before offset 10: the broker lost records"):
        drain(source, 1)
    source.close()


class Ten:
    """What a bridge asks of a topic of one partition, which begins at 2 and ends at 10."""

    topic, bootstrap, partitions = "news", "host:1", (0,)

    def begins(self, partitions: Any) -> dict[int, int]:
        return {0: 2}

    def ends(self, partitions: Any) -> dict[int, int]:
        return {0: 10}


@pytest.mark.parametrize(
    ("offset", "cut", "on_gap", "goes_on", "records"),
    [
        (5, {}, "stop", 5, None),  # nothing is wrong
        (5, {0: 7}, "stop", 5, None),  # what was cut had not been handed out
        (9, {0: 7}, "earliest", 7, 0),
        (9, {0: 7}, "latest", 10, 1),
        (9, {0: None}, "earliest", 9, 0),
        (12, {}, "earliest", 10, 0),
        (1, {}, "earliest", 2, 1),
        (1, {}, "latest", 10, 9),
    ],
)
def test_where_reading_goes_on(
    offset: int, cut: dict[int, int | None], on_gap: Any, goes_on: int, records: int | None
) -> None:
    bridge = GapPolicy(Ten(), on_gap)  # type: ignore[arg-type]
    assert bridge.within({0: offset}, OutOfRangeError(cut)) == {0: goes_on}
    assert [gap.records for gap in bridge.gaps] == ([] if records is None else [records])
