"""Records per second from a Kafka topic: bare polling and decoding, and ``consume`` to a file and to a topic.

A broker of its own is started (Java and Maven are needed); 200,000 generated headlines lie in a topic of
four partitions. Wall seconds; ``consume`` with its start-up.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from broker.process import running
from broker.topics import make_topic, produce

from benchmarks.drifting import demo_stream
from benchmarks.workloads import show

PARTITIONS = 4


def bare(bootstrap: str, topic: str, count: int) -> float:
    """Seconds to poll and decode everything with kafka-python alone."""
    from kafka import KafkaConsumer, TopicPartition

    decode = msgspec.json.Decoder().decode
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, p) for p in range(PARTITIONS)])
    consumer.seek_to_beginning()
    began, seen = time.perf_counter(), 0
    while seen < count:
        for records in consumer.poll(timeout_ms=500, max_records=2000).values():
            for record in records:
                decode(record.value)
            seen += len(records)
    seconds = time.perf_counter() - began
    consumer.close()
    return seconds


def consumed(bootstrap: str, topic: str, folder: Path, beam: int, output: str | None = None) -> float:
    """Seconds of ``streamdp consume --until end`` to a file, or to a topic."""
    where = ["--topic", topic, "--bootstrap", bootstrap, "--until", "end", "--beam", str(beam)]
    to = ["--state", str(folder / f"state-{beam}-{output}")]
    to += ["--output-topic", output] if output else ["--output", str(folder / f"out-{beam}")]
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "streamdp", "consume", *where, *to], check=True)
    return time.perf_counter() - began


def rates(count: int, beams: Sequence[int] = (8, 1)) -> list[tuple[str, float]]:
    """Seconds of the bare consumer, then of ours, each with its name."""
    with tempfile.TemporaryDirectory() as brokers, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(Path(brokers)) as broker:
            topic = make_topic(broker.bootstrap, PARTITIONS)
            encode = msgspec.json.encode
            items = ((i % PARTITIONS, encode(item)) for i, item in enumerate(demo_stream(count, 1)))
            produce(broker.bootstrap, topic, items)
            found = [("bare poll and JSON", bare(broker.bootstrap, topic, count))]
            for to, beam in itertools.product(("file", "topic"), beams):
                output = make_topic(broker.bootstrap, 1) if to == "topic" else None
                seconds = consumed(broker.bootstrap, topic, folder, beam, output)
                found.append((f"consume to a {to}, beam {beam}", seconds))
    return found


def report(count: int, beams: Sequence[int] = (8, 1)) -> None:
    """Measure and print."""
    found = rates(count, beams)
    rows = [(what, f"{count / s:,.0f}", f"{found[0][1] / s:.2f}") for what, s in found]
    show(f"{count:,} records of a topic of {PARTITIONS} partitions", ["what", "records/s", "of bare"], rows)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=200_000)
    report(parser.parse_args().records)


if __name__ == "__main__":
    main()
