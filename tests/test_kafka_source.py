"""Reading topics of a real broker."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest
from broker.topics import add_partitions, drain, forget, make_topic, produce, settle
from kafka import KafkaConsumer, TopicPartition
from streamdp_connectors.kafka.arrivals import Idle
from streamdp_connectors.kafka.source import KafkaSource
from streamdp_connectors.protocol import SourceError

from benchmarks.drifting import demo_stream
from streamdp.decode.decoder import Decoder
from streamdp.records import Raw, Record

N = 2000
LINES = [msgspec.json.encode(item) for item in demo_stream(N, 3)]
Place = tuple[int, int]


def times_of(raws: Sequence[Raw]) -> list[float | None]:
    found = map(Decoder().decode, raws)
    return [record.time if isinstance(record, Record) else None for record in found]


def numbers(raws: Sequence[Raw]) -> list[float | None]:
    """Records that are their times."""
    return [float(raw.data) for raw in raws]


def places(found: Sequence[Raw]) -> list[Place]:
    return [(raw.position["partition"], raw.position["offset"]) for raw in found]


def refusal(*arguments: Any, **options: Any) -> SourceError:
    with pytest.raises(SourceError) as caught:
        KafkaSource(*arguments, **options).close()
    assert "\n" not in caught.value.message
    return caught.value


@pytest.fixture(scope="module")
def news(broker: Any) -> str:
    """The demo stream in four partitions, round robin."""
    topic = make_topic(broker.bootstrap, 4)
    produce(broker.bootstrap, topic, ((i % 4, line) for i, line in enumerate(LINES)))
    return topic


@pytest.fixture
def source(broker: Any, news: str) -> Iterator[KafkaSource]:
    source = KafkaSource(news, broker.bootstrap, until_end=True, times_of=times_of)
    yield source
    source.close()


def test_the_whole_topic_in_time_order(source: KafkaSource) -> None:
    assert sum(lag.records for lag in source.lags()) == N
    found = drain(source)
    assert [raw.data for raw in found] == LINES
    assert [Decoder().decode(raw).id for raw in found[:3]] == ["000000", "000001", "000002"]  # type: ignore[union-attr]
    assert places(found) == [(i % 4, i // 4) for i in range(N)]
    assert all(raw.time and abs(raw.time - time.time()) < 3600 for raw in found)
    assert source.positions()["partitions"] == dict.fromkeys("0123", N // 4)
    assert (sum(lag.records for lag in source.lags()), source.read(5, 0.1)) == (0, [])


def test_continues_after_any_number_of_records(broker: Any, news: str) -> None:
    for stop in (0, 1, 2, 777, 1999, N):
        other = KafkaSource(news, broker.bootstrap, until_end=True, times_of=times_of)
        assert [raw.data for raw in drain(other, 130, stop)] == LINES[:stop]
        stored = json.loads(json.dumps(other.positions()))
        other.close()
        again = KafkaSource(news, broker.bootstrap, until_end=True, times_of=times_of)
        again.seek(stored)
        assert again.positions() == stored
        assert [raw.data for raw in drain(again, 77)] == LINES[stop:]
        again.close()


def test_small_queues_pause_and_resume(monkeypatch: pytest.MonkeyPatch, source: KafkaSource) -> None:
    monkeypatch.setattr("streamdp_connectors.kafka.source._QUEUED_RECORDS", 20)
    monkeypatch.setattr("streamdp_connectors.kafka.source._FETCH", 30)
    assert [raw.data for raw in drain(source, 7)] == LINES


def test_start_latest_and_at_a_time(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, 2)
    produce(broker.bootstrap, topic, [(0, b"old"), (1, b"old")])
    time.sleep(0.05)
    between = time.time()
    time.sleep(0.05)
    latest = KafkaSource(topic, broker.bootstrap, start="latest")
    produce(broker.bootstrap, topic, [(0, b"new")])
    assert places(drain(latest, limit=1)) == [(0, 1)]
    latest.close()
    timed = KafkaSource(topic, broker.bootstrap, start=between, until_end=True)
    assert [raw.data for raw in drain(timed)] == [b"new"]
    timed.close()


def test_live_an_idle_partition_does_not_block(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, 3)
    source = KafkaSource(topic, broker.bootstrap)
    assert source.read(10, 0.3) == []
    for i in range(3):
        produce(broker.bootstrap, topic, [(1, b"%d" % i)])
        assert [raw.data for raw in drain(source, limit=1)] == [b"%d" % i]
    assert not source.at_end
    source.close()


def test_new_partitions_are_picked_up(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    source = KafkaSource(topic, broker.bootstrap, refresh=1.0)
    add_partitions(broker.bootstrap, topic, 3)
    produce(broker.bootstrap, topic, [(2, b"there")])
    assert places(drain(source, limit=1)) == [(2, 0)]
    assert source.positions()["partitions"] == {"0": 0, "1": 0, "2": 1}
    source.close()


def test_replay_repeats_the_order_of_a_live_run(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, 2)
    source = KafkaSource(topic, broker.bootstrap, times_of=numbers)
    start, cuts, order = source.positions(), [], []
    for batch in ([(0, b"5"), (0, b"9")], [(1, b"1"), (1, b"7")], [(0, b"6"), (1, b"8")]):
        produce(broker.bootstrap, topic, batch)
        seen = len(order)
        while len(order) < seen + 2:
            found = source.read(10, 0.2)
            order.extend(places(found))
            if found:
                cuts.append(source.positions())
    source.close()
    assert order[:4] == [(0, 0), (0, 1), (1, 0), (1, 1)]
    produce(broker.bootstrap, topic, [(0, b"0")])
    again = KafkaSource(topic, broker.bootstrap, times_of=numbers)
    again.seek(start)
    again.replay(cuts)
    assert places(drain(again, limit=7)) == [*order, (0, 3)]
    again.close()


def test_a_tombstone_and_a_large_record(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    large = b"x" * 3_000_000
    produce(broker.bootstrap, topic, [(0, None), (0, large), (0, b"{}")])
    source = KafkaSource(topic, broker.bootstrap, until_end=True)
    found = drain(source)
    assert [raw.data for raw in found] == [large, b"{}"]
    assert [raw.position["offset"] for raw in found] == [1, 2]
    source.close()


def test_a_transaction_aborted_or_open_does_not_block(broker: Any) -> None:
    from kafka import KafkaProducer

    topic = make_topic(broker.bootstrap, 2)
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic)
    producer.init_transactions()
    for value in (b"aborted", b"kept"):
        producer.begin_transaction()
        producer.send(topic, value, partition=0).get(120)
        (producer.commit_transaction if value == b"kept" else producer.abort_transaction)()
    settle(broker.bootstrap, topic)
    ended = KafkaSource(topic, broker.bootstrap, until_end=True)
    assert [raw.data for raw in drain(ended)] == [b"kept"]
    assert sum(lag.records for lag in ended.lags()) == 0
    ended.close()
    producer.begin_transaction()
    producer.send(topic, b"open", partition=0).get(120)
    live = KafkaSource(topic, broker.bootstrap)
    produce(broker.bootstrap, topic, [(1, b"other")])
    assert {raw.data for raw in drain(live, limit=2)} == {b"kept", b"other"}
    producer.commit_transaction()
    assert [raw.data for raw in drain(live, limit=1)] == [b"open"]
    live.close()
    producer.close()


def test_retention_passed_the_stored_offset(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, ((0, b"%d" % i) for i in range(10)))
    source = KafkaSource(topic, broker.bootstrap, until_end=True)
    drain(source, 1, 3)
    stored = source.positions()
    forget(broker.bootstrap, topic, {0: 6})
    with pytest.raises(SourceError) as caught:
        source.seek(stored)
    assert caught.value.exit_code == 65
    assert caught.value.message.startswith(
        f"retention passed offset 3 of topic {topic}, partition 0, which now begins at 6"
    )
    source.close()
    lenient = KafkaSource(topic, broker.bootstrap, until_end=True, on_gap="earliest")
    lenient.seek(stored)
    assert [raw.data for raw in drain(lenient)] == [b"6", b"7", b"8", b"9"]
    lenient.close()


def test_marks_that_nobody_can_have_made_are_not_waited_for(broker: Any) -> None:
    """Whoever may write to the output may note positions there that are beyond the end of the input."""
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, ((0, b"%d" % i) for i in range(10)))
    source = KafkaSource(topic, broker.bootstrap, until_end=True)
    marks = [{"topic": topic, "partitions": {"0": end}} for end in (4, 10**9, -1, "x")]
    source.replay([*marks, {"topic": topic, "partitions": {"7": 3}}, {"topic": topic}, {}])
    assert [raw.data for raw in drain(source)] == [b"%d" % i for i in range(10)]
    source.close()


def test_retention_passes_a_source_at_work(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, [(0, b"one")])
    source = KafkaSource(topic, broker.bootstrap)
    drain(source, 1, 1)
    source._go_to({0: 0})
    forget(broker.bootstrap, topic, {0: 1})
    with pytest.raises(SourceError) as caught:
        source.read(10, 120.0)
    assert caught.value.exit_code == 65
    source.close()


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"0": 7}, "was cut at 0, before offset 7: it was made anew, or"),
        ({"0": 0, "5": 1}, "has no partition 5"),
        ({"0": "x"}, "is not one of a topic"),
    ],
)
def test_positions_that_do_not_fit(broker: Any, stored: dict[str, Any], words: str) -> None:
    topic = make_topic(broker.bootstrap)
    source = KafkaSource(topic, broker.bootstrap)
    with pytest.raises(SourceError, match=words) as caught:
        source.seek({"topic": topic, "partitions": stored})
    assert caught.value.exit_code == 65
    with pytest.raises(SourceError, match=f"the state continues topic other, not {topic}"):
        source.seek({"topic": "other", "partitions": {"0": 0}})
    source.close()


def test_the_group_is_told_and_not_asked(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, [(0, b"1"), (0, b"2")])
    for _ in range(2):
        source = KafkaSource(topic, broker.bootstrap, group=topic, until_end=True)
        assert len(drain(source)) == 2
        source.commit(source.positions())
        source.close()
    watcher = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=topic, enable_auto_commit=False)
    assert watcher.committed(TopicPartition(topic, 0)) == 2
    watcher.close()


def test_a_missing_topic(broker: Any) -> None:
    error = refusal("no-such-topic", broker.bootstrap)
    what = f"there is no topic no-such-topic at {broker.bootstrap}, or it may not be read"
    assert (error.exit_code, error.message) == (66, f"{what}: make it, or check its name")
    make_topic(broker.bootstrap, name="headlines")
    assert refusal("headlnes", broker.bootstrap).message.endswith("check its name (there is headlines)")


def test_nobody_at_the_port(capfd: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        started = time.monotonic()
        error = refusal("news", where, timeout=1.0)
    assert error.exit_code == 69
    assert error.message.startswith(f"nothing listens at {where}: start the broker")
    assert time.monotonic() - started < 60
    assert capfd.readouterr() == ("", "")


def test_something_else_at_the_port() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        where = f"127.0.0.1:{server.getsockname()[1]}"
        assert refusal("news", where, timeout=1.0).exit_code == 69


def test_an_unknown_setting(broker: Any) -> None:
    error = refusal("news", broker.bootstrap, client_options={"ssl_cofile": "x"})
    assert (error.exit_code, error.message) == (64, "kafka-python knows no setting ssl_cofile")


def test_the_broker_is_killed_and_comes_back(own_broker: Any) -> None:
    topic = make_topic(own_broker.bootstrap, 4)
    produce(own_broker.bootstrap, topic, ((i % 4, line) for i, line in enumerate(LINES)))
    small = {"max_partition_fetch_bytes": 4096, "fetch_max_bytes": 8192}
    source = KafkaSource(topic, own_broker.bootstrap, until_end=True, times_of=times_of, client_options=small)
    found = drain(source, 50, 400)
    own_broker.kill()
    began, busy = time.monotonic(), time.process_time()
    while time.monotonic() - began < 2.0:
        found.extend(source.read(50, 0.2))
    assert time.process_time() - busy < 1.0
    assert len(found) < N
    own_broker.restart()
    found.extend(drain(source, 50))
    assert [raw.data for raw in found] == LINES
    source.close()


def test_a_silent_partition_is_not_waited_for_for_ever(broker: Any, caplog: pytest.LogCaptureFixture) -> None:
    topic = make_topic(broker.bootstrap, 2)
    produce(broker.bootstrap, topic, ((i % 2, b"%d" % i) for i in range(20)))
    patient = KafkaSource(topic, broker.bootstrap, idle_timeout=0.0)
    patient._log.pause(1)  # it has records, and nothing comes of it
    assert patient.read(20, 2.0) == []
    patient.close()
    source = KafkaSource(topic, broker.bootstrap, idle_timeout=5.0)
    source._log.pause(1)
    assert places(drain(source, limit=10)) == [(0, i) for i in range(10)]
    source._log.resume(1)
    assert places(drain(source, limit=10)) == [(1, i) for i in range(10)]
    said = [record.getMessage() for record in caplog.records if record.name.endswith("kafka.arrivals")]
    assert said == [
        f"topic {topic}, partition 1 has records, and gave none for 5 s: the others go on without it "
        "(--idle-timeout)",
        f"topic {topic}, partition 1 is read again",
    ]
    again = KafkaSource(topic, broker.bootstrap, idle_timeout=5.0)
    again.replay([source.positions()])
    assert len(drain(again, limit=20)) == 20
    again.close()
    source.close()


def test_time_away_is_no_silence() -> None:
    now = [0.0]
    idle = Idle("t", 10.0, clock=lambda: now[0])
    for step, is_over in ((0.0, False), (9.0, False), (0.5, False), (0.6, True)):
        now[0] += step
        assert idle.over(0) == is_over
        idle.end()
        idle.begin()
    now[0] += 30.0
    idle.begin()
    assert not idle.over(0)


def test_new_partitions_are_noticed_within_seconds(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, [(0, b"old")])
    source = KafkaSource(topic, broker.bootstrap)
    assert places(drain(source, limit=1)) == [(0, 0)]
    add_partitions(broker.bootstrap, topic, 2)
    produce(broker.bootstrap, topic, [(1, b"new")])
    assert places(drain(source, limit=1)) == [(1, 0)]
    source.close()
