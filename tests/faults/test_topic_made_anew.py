"""A topic is deleted and made again, or another cluster has one of its name: nothing is skipped unsaid."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from broker.process import Broker
from broker.topics import delete_topic, drain, forget, make_topic, produce
from commands import fail, succeed
from streamdp_connectors.kafka.source import KafkaSource
from streamdp_connectors.protocol import SourceError

from streamdp.records import Record
from streamdp.run.reading import Reader
from streamdp.settings import Settings
from streamdp.settings.io_options import Input


def filled(bootstrap: str, count: int, topic: str | None = None, prefix: str = "old") -> str:
    """A topic of one partition that holds so many records."""
    topic = make_topic(bootstrap, name=topic)
    more(bootstrap, topic, count, prefix)
    return topic


def more(bootstrap: str, topic: str, count: int, prefix: str = "old") -> None:
    values = (b'{"text": "%s record %d"}' % (prefix.encode(), i % 7) for i in range(count))
    produce(bootstrap, topic, ((0, value) for value in values))


def anew(bootstrap: str, topic: str, count: int) -> None:
    delete_topic(bootstrap, topic)
    filled(bootstrap, count, topic, "new")


def refused(source: KafkaSource, stored: dict[str, Any]) -> SourceError:
    with pytest.raises(SourceError) as caught:
        source.seek(stored)
    source.close()
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 65
    return caught.value


def consume(bootstrap: str, topic: str, *more: str) -> list[str]:
    where = ["--topic", topic, "--bootstrap", bootstrap, "--until", "end"]
    return ["consume", *where, "--output", "out", "--state", "state", *more]


def test_a_run_stops_at_a_topic_made_anew_and_goes_on_when_told(broker: Any, tmp_path: Path) -> None:
    topic = filled(broker.bootstrap, 500)
    succeed(tmp_path, *consume(broker.bootstrap, topic))
    anew(broker.bootstrap, topic, 900)
    code, message = fail(tmp_path, *consume(broker.bootstrap, topic))
    assert code == 65
    assert f"topic {topic} was made anew" in message
    assert "--on-gap earliest" in message
    assert "--on-gap latest" in message
    succeed(tmp_path, *consume(broker.bootstrap, topic, "--on-gap", "earliest"))
    lines = [json.loads(line) for line in (tmp_path / "out").read_bytes().splitlines()]
    offsets = [line["position"]["offset"] for line in lines if line.get("revision") == 0]
    assert offsets == [*range(500), *range(900)]
    (reject,) = [json.loads(line) for line in (tmp_path / "out.rejects.jsonl").read_bytes().splitlines()]
    assert reject["reason"] == "gap"
    assert reject["position"] == {"topic": topic, "partition": 0, "offset": 500}
    assert "made anew" in reject["detail"]
    succeed(tmp_path, *consume(broker.bootstrap, topic))  # the new topic's ids are noted


def test_the_latest_of_a_topic_made_anew(broker: Any) -> None:
    topic = filled(broker.bootstrap, 50)
    source = KafkaSource(topic, broker.bootstrap, until_end=True)
    drain(source)
    stored = source.positions()
    source.close()
    assert stored["topic_id"]
    assert stored["cluster_id"]
    anew(broker.bootstrap, topic, 90)
    source = KafkaSource(topic, broker.bootstrap, on_gap="latest")
    source.seek(stored)
    (gap,) = source.gaps()
    assert (gap.records, source.gaps()) == (90, [])
    produce(broker.bootstrap, topic, [(0, b"next")])
    assert [raw.data for raw in drain(source, limit=1)] == [b"next"]
    assert source.positions()["topic_id"] != stored["topic_id"]
    source.close()


def test_another_cluster_has_a_topic_of_the_name(broker: Any, other_cluster: Broker) -> None:
    topic = filled(broker.bootstrap, 50)
    source = KafkaSource(topic, broker.bootstrap, until_end=True)
    drain(source)
    stored = source.positions()
    source.close()
    filled(other_cluster.bootstrap, 90, topic)
    other = KafkaSource(topic, other_cluster.bootstrap)
    error = refused(other, stored)
    assert f"{other_cluster.bootstrap} is another cluster" in error.message
    lenient = KafkaSource(topic, other_cluster.bootstrap, on_gap="earliest", until_end=True)
    lenient.seek(stored)
    assert len(drain(lenient)) == 90
    lenient.close()


def test_positions_without_ids_go_on_and_note_them(broker: Any) -> None:
    topic = filled(broker.bootstrap, 50)
    source = KafkaSource(topic, broker.bootstrap, until_end=True)
    source.seek({"topic": topic, "partitions": {"0": 20}})
    assert len(drain(source)) == 30
    assert source.positions()["topic_id"]
    source.close()


@pytest.mark.parametrize(("on_gap", "first", "records"), [("earliest", 6, 3), ("latest", 10, 7)])
def test_what_retention_took_is_counted(broker: Any, on_gap: Any, first: int, records: int) -> None:
    topic = filled(broker.bootstrap, 10)
    source = KafkaSource(topic, broker.bootstrap)
    drain(source, limit=3)
    stored = source.positions()
    forget(broker.bootstrap, topic, {0: 6})
    message = refused(source, stored).message
    assert "offset 3" in message
    assert "begins at 6" in message
    lenient = KafkaSource(topic, broker.bootstrap, on_gap=on_gap)
    lenient.seek(stored)
    (gap,) = lenient.gaps()
    assert gap.records == records
    assert gap.position == {"topic": topic, "partition": 0, "offset": 3}
    assert f"offsets 3 to {first - 1}" in gap.detail
    produce(broker.bootstrap, topic, [(0, b"last")])
    assert drain(lenient, limit=1)[0].position["offset"] == first
    lenient.close()


def test_marks_of_the_old_topic_do_not_order_the_new_one(broker: Any) -> None:
    topic = filled(broker.bootstrap, 50)
    source = KafkaSource(topic, broker.bootstrap)
    stored = source.positions()
    drain(source, limit=30)
    marks = [source.positions()]
    source.close()
    anew(broker.bootstrap, topic, 10)
    source = KafkaSource(topic, broker.bootstrap, on_gap="earliest")
    source.seek(stored)
    source.replay(marks)
    assert len(drain(source, limit=10)) == 10
    source.close()


def test_made_anew_while_it_is_read(broker: Any) -> None:
    topic = filled(broker.bootstrap, 50)
    strict = KafkaSource(topic, broker.bootstrap)
    lenient = KafkaSource(topic, broker.bootstrap, on_gap="earliest")
    for source in (strict, lenient):
        drain(source, limit=50)
    anew(broker.bootstrap, topic, 90)
    with pytest.raises(SourceError) as caught:
        drain(strict, limit=1)
    assert "was made anew" in caught.value.message
    assert "new record" in drain(lenient, limit=90)[0].data.decode()
    assert [gap.position["offset"] for gap in lenient.gaps()] == [50]
    strict.close()
    lenient.close()


def test_deleted_while_it_is_read(broker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamdp_connectors.kafka.gaps.GONE_SECONDS", 1.0)
    topic = filled(broker.bootstrap, 5)
    source = KafkaSource(topic, broker.bootstrap)
    drain(source, limit=5)
    delete_topic(broker.bootstrap, topic)
    with pytest.raises(SourceError) as caught:
        drain(source, limit=1)
    assert caught.value.exit_code == 66
    assert f"topic {topic} is gone" in caught.value.message
    source.close()


def test_deleted_and_waited_for(
    broker: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("streamdp_connectors.kafka.gaps.GONE_SECONDS", 0.5)
    topic = filled(broker.bootstrap, 5)
    source = KafkaSource(topic, broker.bootstrap, on_gap="earliest")
    drain(source, limit=5)
    delete_topic(broker.bootstrap, topic)
    deadline = time.monotonic() + 120
    while "is gone" not in caplog.text:
        assert time.monotonic() < deadline
        assert source.read(10, 0.2) == []
    filled(broker.bootstrap, 7, topic, "new")
    assert len(drain(source, limit=7)) == 7
    assert caplog.text.count("is gone") == 1
    source.close()


def test_what_was_decoded_of_the_old_topic_is_forgotten(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, 2)
    timed = b'{"text": "%s %d", "time": %d}'
    old = [(0, timed % (b"old", i, time)) for i, time in enumerate((1, 2, 3, 9))]
    produce(broker.bootstrap, topic, [*old, (1, timed % (b"other", 0, 5))])
    reader = Reader(Settings(), Input(topic=topic, bootstrap=broker.bootstrap, on_gap="earliest"))
    assert isinstance(reader.source, KafkaSource)
    seen: list[str] = []

    def read(limit: int) -> None:
        deadline = time.monotonic() + 120
        while len(seen) < limit:
            assert time.monotonic() < deadline, seen
            found = reader.read(limit - len(seen), 0.2)
            seen.extend(str(record.value) for record in found if isinstance(record, Record))

    read(4)
    assert seen == ["old 0", "old 1", "old 2", "other 0"]  # and the last one was looked at already
    delete_topic(broker.bootstrap, topic)
    make_topic(broker.bootstrap, 2, topic)
    produce(broker.bootstrap, topic, ((0, timed % (b"new", i, i)) for i in range(4)))
    reader.source._log.refresh()  # else what waits of the old topic may come first
    read(8)
    assert seen[4:] == ["new 0", "new 1", "new 2", "new 3"]
    reader.source.close()


def test_a_broker_that_is_behind_is_not_believed(broker: Any) -> None:
    topic = filled(broker.bootstrap, 20)
    source = KafkaSource(topic, broker.bootstrap, on_gap="earliest")
    drain(source, limit=20)
    before = source._log.ids()
    now = before._replace(topic="of the new one")
    answers = [now, now, now, before, before, before]
    source._log.ids = lambda: answers.pop(0) if len(answers) > 1 else now  # type: ignore[method-assign]
    assert len(drain(source, limit=20)) == 20
    assert source.read(10, 0.5) == []
    assert len(source.gaps()) == 1
    source.close()
