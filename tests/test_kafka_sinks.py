"""Writing to topics of a real broker."""

from __future__ import annotations

import json
import socket
import time
from typing import Any

import pytest
from broker.topics import contents, make_topic, produce
from kafka import KafkaProducer
from streamdp_connectors.kafka.delivery import Delivery
from streamdp_connectors.kafka.sink import KafkaRejects, KafkaSink
from streamdp_connectors.protocol import SinkError

from streamdp.records import Reject

LINES = [b'{"seq":%d}' % i for i in range(1000)]


def text(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def headers(records: list[Any], name: str) -> list[bytes]:
    return [dict(record.headers)[name] for record in records]


def opened(topic: str, bootstrap: str, kind: Any = KafkaSink, epoch: int = 1500, **options: Any) -> Any:
    """A sink with a way of its own to its topic; ``name`` is its transactional id."""
    way = {key: options.pop(key) for key in ("name", "timeout", "client_options") if key in options}
    known = (options.get("resume") or {}).get("epoch", epoch)
    delivery = Delivery(bootstrap, **{"name": f"test-{topic}-{known}", **way})
    try:
        return kind(topic, delivery, epoch, **options)
    except SinkError:
        delivery.close()
        raise


def refusal(*arguments: Any, **options: Any) -> SinkError:
    with pytest.raises(SinkError) as caught:
        opened(*arguments, **options).close()
    assert "\n" not in caught.value.message
    return caught.value


def test_every_line_is_one_record_in_order(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, 3)
    sink = opened(topic, broker.bootstrap)
    sink.write(b"")
    sink.write(text(LINES[:400]))
    sink.write(text(LINES[400:]))
    sink.flush(sync=True)
    ids = {"topic_id", "cluster_id"}
    known = {key: value for key, value in sink.state().items() if key not in ids}
    assert known == {"epoch": 1500, "out_seq": 1000, "offset": 1000, "topic": topic}
    assert ids < set(sink.state())
    found = contents(broker.bootstrap, topic)
    assert [record.value for record in found] == LINES
    assert {record.key for record in found} == {None}
    assert headers(found, "out_seq") == [b"%d" % i for i in range(1000)]
    assert set(headers(found, "epoch")) == {b"1500"}
    sink.close()
    sink.close()


def test_after_a_crash_nothing_is_written_twice(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    produce(broker.bootstrap, topic, [(0, b"of somebody else")])
    sink = opened(topic, broker.bootstrap, anew=True)
    sink.mark({"topic": "in", "partitions": {"0": 100}})
    sink.write(text(LINES[:100]))
    sink.flush(sync=True)
    stored = json.loads(json.dumps(sink.state()))
    marks = [{"topic": "in", "partitions": {"0": n}} for n in (150, 200, 250)]
    sink.mark(marks[0])
    sink.mark(marks[1])
    sink.write(text(LINES[100:200]))
    sink.mark(marks[2])
    sink.write(text(LINES[200:250]))
    sink.close()  # and the snapshot that would have covered it never came
    for stop in (260, 300):
        again = opened(topic, broker.bootstrap, resume=stored)
        assert again.marks == marks
        assert again.state()["out_seq"] == 100
        again.mark(marks[0])
        again.write(text(LINES[100:stop]))
        assert again.differing == 0
        again.close()
    last = opened(topic, broker.bootstrap, resume=stored)
    last.write(text(LINES[100:]))
    last.close()
    found = contents(broker.bootstrap, topic)[1:]
    assert [record.value for record in found] == LINES
    assert set(headers(found, "epoch")) == {b"%d" % stored["epoch"]}
    assert sum("read" in dict(record.headers) for record in found) == 3


def test_a_hole_in_what_was_written_is_filled(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    sink = opened(topic, broker.bootstrap)
    stored = sink.state()
    sink.write(text(LINES[:3]))
    sink._out_seq += 2
    sink.write(text(LINES[5:8]))
    sink.close()
    again = opened(topic, broker.bootstrap, resume=stored)
    again.write(text(LINES[:10]))
    again.close()
    numbers = [int(number) for number in headers(contents(broker.bootstrap, topic), "out_seq")]
    assert numbers == [0, 1, 2, 5, 6, 7, 3, 4, 8, 9]


def test_other_bytes_on_repetition_are_noticed(broker: Any, caplog: pytest.LogCaptureFixture) -> None:
    topic = make_topic(broker.bootstrap)
    sink = opened(topic, broker.bootstrap)
    stored = sink.state()
    sink.write(b"one\ntwo\n")
    sink.close()
    again = opened(topic, broker.bootstrap, resume=stored)
    again.write(b"one\nTWO\nthree\n")
    again.close()
    assert again.differing == 1
    assert "record 1 came again with other bytes" in caplog.text
    values = [record.value for record in contents(broker.bootstrap, topic)]
    assert values == [b"one", b"two", b"TWO", b"three"]  # what was there may be anybody's: none is missing


def test_forged_records_are_not_taken_for_answers(broker: Any) -> None:
    """Somebody writes records with the numbers of answers that are still to come, or that came."""
    topic = make_topic(broker.bootstrap)
    sink = opened(topic, broker.bootstrap)
    sink.write(text(LINES[:10]))
    sink.flush(sync=True)
    stored = sink.state()
    sink.write(text(LINES[10:15]))
    sink.close()
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    odd = [b"[{}]", b"nonsense", b'[{"topic": "in", "partitions": {"0": 99999999}}]']
    for number in range(8, 30):
        named = [("epoch", b"1500"), ("out_seq", b"%d" % number), ("read", odd[number % 3])]
        producer.send(topic, b"forged", headers=named)
    producer.send(topic, None, key=b"k", headers=[("epoch", b""), ("out_seq", b"\xff")])
    producer.close()
    again = opened(topic, broker.bootstrap, resume=stored)
    again.write(text(LINES[10:40]))
    again.close()
    values = [record.value for record in contents(broker.bootstrap, topic)]
    assert [value for value in values if value not in (b"forged", None)] == LINES[:40]


def test_another_run_in_the_same_topic_is_not_taken_for_ours(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    first = opened(topic, broker.bootstrap)
    stored = first.state()
    other = opened(topic, broker.bootstrap, epoch=2000, anew=True)
    other.write(b"other\n")
    other.close()
    first.close()
    again = opened(topic, broker.bootstrap, resume=stored)
    again.write(b"ours\n")
    again.close()
    assert [record.value for record in contents(broker.bootstrap, topic)] == [b"other", b"ours"]


def test_rejects_keep_the_original_bytes(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    place = {"topic": "in", "partition": 1, "offset": 7}
    sink = opened(topic, broker.bootstrap, KafkaRejects)
    sink.write(Reject(place, "not_json", "näh", b"\xff\x00\n{"))
    sink.write(Reject(place, "empty", "no value", b""))
    sink.write(Reject(place, "too_large", "long", b"y" * 3_000_000))
    sink.close()
    found = contents(broker.bootstrap, topic)
    assert [record.value for record in found] == [b"\xff\x00\n{", b"", b"y" * 900_000]
    assert headers(found, "reason") == [b"not_json", b"empty", b"too_large"]
    assert json.loads(headers(found, "position")[0]) == place
    assert headers(found, "detail")[0].decode() == "näh"
    assert dict(found[2].headers)["bytes"] == b"3000000"


def test_a_record_that_the_topic_does_not_take(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, **{"max.message.bytes": "10000"})
    sink = opened(topic, broker.bootstrap)
    sink.write(b"x" * 20_000 + b"\n")
    with pytest.raises(SinkError, match=f"topic {topic} takes 10,000 bytes at once") as caught:
        sink.flush(sync=True)
    assert caught.value.exit_code == 74
    with pytest.raises(SinkError, match=f"topic {topic} takes 10,000 bytes at once"):
        sink.flush(sync=False)
    sink.close()


def test_the_broker_is_killed_while_lines_are_written(own_broker: Any) -> None:
    topic = make_topic(own_broker.bootstrap)
    sink = opened(topic, own_broker.bootstrap)
    sink.write(text(LINES[:500]))
    own_broker.kill()
    sink.write(text(LINES[500:]))
    own_broker.restart()
    sink.flush(sync=True)
    sink.close()
    assert [record.value for record in contents(own_broker.bootstrap, topic)] == LINES


def test_a_transaction_that_begins_while_its_broker_is_away_ends(own_broker: Any) -> None:
    topic = make_topic(own_broker.bootstrap)
    sink = opened(topic, own_broker.bootstrap)
    sink.write(b"before\n")
    sink.flush(sync=True)
    own_broker.kill()
    sink.write(b"after\n")
    sink.flush(sync=False)
    time.sleep(1.0)  # in which its request finds no coordinator
    own_broker.restart()
    sink.close()
    assert [record.value for record in contents(own_broker.bootstrap, topic)] == [b"before", b"after"]


def test_no_topic_no_broker_no_match(broker: Any) -> None:
    where = broker.bootstrap
    missing = refusal("no-such-topic", where)
    assert (missing.exit_code, missing.message[:36]) == (
        73,
        f"there is no topic no-such-topic at {where}"[:36],
    )
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        assert refusal("x", f"127.0.0.1:{taken.getsockname()[1]}", timeout=1.0).exit_code == 69
    topic = make_topic(where)
    gone = refusal(topic, where, resume={"epoch": 1, "out_seq": 5, "offset": 5})
    assert (gone.exit_code, "made anew" in gone.message) == (65, True)
    assert refusal(topic, where, resume={"length": 5}).exit_code == 65


def test_what_was_said_at_an_end_of_the_input(broker: Any) -> None:
    topic = make_topic(broker.bootstrap)
    sink = opened(topic, broker.bootstrap)
    sink.write(b"one\n")
    sink.flush(sync=True)
    ended = sink.state()
    sink.write(b"two\nfour\nend\n")  # of what the state holds open
    sink.close()
    for _ in range(2):  # the first is killed before its snapshot
        again = opened(topic, broker.bootstrap, resume=ended, ended=True)
        again.write(b"two\nthree\n")
        again.flush(sync=True)
        later = again.state()
        again.close()
    last = opened(topic, broker.bootstrap, resume=later)
    last.write(b"four\nfive\n")
    last.close()
    found = contents(broker.bootstrap, topic)
    assert [record.value for record in found] == [b"one", b"two", b"four", b"end", b"three", b"five"]
    assert headers(found, "out_seq") == [b"%d" % i for i in range(6)]


def test_what_is_longer_than_the_topic_takes_is_cut(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, **{"max.message.bytes": "5000"})
    sink = opened(topic, broker.bootstrap, KafkaRejects)
    whole = Reject({"line": 1}, "not_json", "malformed", b"x" * 3000)
    long = Reject({"line": 2}, "too_large", "the record has 70000 bytes" + " and so on" * 50, b"y" * 70_000)
    for reject in (whole, long, whole):
        sink.mark({"topic": "in", "partitions": {str(i): i for i in range(50)}})
        sink.write(reject)
    sink.flush(sync=True)
    sink.close()
    found = contents(broker.bootstrap, topic)
    assert [record.value for record in found] == [whole.data, found[1].value, whole.data]
    assert set(found[1].value) == set(b"y")
    assert 3000 < len(found[1].value) < 5000
    assert headers(found, "position") == [b'{"line":1}', b'{"line":2}', b'{"line":1}']
    assert [dict(record.headers).get("bytes") for record in found] == [None, b"70000", None]


def test_an_answer_longer_than_the_topic_takes_is_named_with_what_to_do(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, **{"max.message.bytes": "5000"})
    sink = opened(topic, broker.bootstrap)
    long = b'{"seq":7,"id":"p8","position":{"file":"in","line":8},"keep":{"k":"%b"}}\n' % (b"x" * 9000)
    sink.write(text([b'{"seq":6}', long.strip()]))
    with pytest.raises(SinkError) as error:
        sink.flush(sync=True)
    assert error.value.exit_code == 74
    said = error.value.message
    assert "p8" in said
    assert '{"file":"in","line":8}' in said
    assert f"{len(long):,} bytes" in said or f"{len(long) - 1:,} bytes" in said
    assert "max.message.bytes" in said
    assert "x" * 100 not in said


def test_batches_are_no_larger_than_the_topic_takes(broker: Any) -> None:
    topic = make_topic(broker.bootstrap, **{"max.message.bytes": "2000"})
    sink = opened(topic, broker.bootstrap)
    sink.write(text(LINES))
    sink.flush(sync=True)
    sink.close()
    assert [record.value for record in contents(broker.bootstrap, topic)] == LINES
