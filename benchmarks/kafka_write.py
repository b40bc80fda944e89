"""CPU per record of writing answers to a topic: ``KafkaProducer.send`` for each, and what streamdp does.

A broker of its own is started (Java and Maven are needed). Records are lines as ``consume`` writes them, with
the headers of their numbers; a thousand are handed over at once.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from broker.process import running
from broker.topics import make_topic
from streamdp_connectors.kafka.delivery import Delivery
from streamdp_connectors.kafka.sink import KafkaSink

from benchmarks.workloads import show

AT_ONCE = 1000
LINE = (
    b'{"seq":%d,"id":"h%d","cluster":17,"probability":0.981234,"revision":0,"time":1735689600.0,'
    b'"log_predictive":-48.123456,"position":{"topic":"news","partition":1,"offset":%d}}'
)


def one_by_one(bootstrap: str, count: int) -> tuple[Callable[[list[bytes]], object], Callable[[], object]]:
    """What writes lines, and what waits for all of them."""
    from kafka import KafkaProducer

    topic, number = make_topic(bootstrap), iter(range(count))
    producer: Any = KafkaProducer(
        bootstrap_servers=bootstrap, linger_ms=10, batch_size=1 << 18, metrics_enabled=False
    )

    def write(lines: list[bytes]) -> None:
        for line in lines:
            headers = [("epoch", b"1700000000000"), ("out_seq", b"%d" % next(number))]
            producer.send(topic, value=line, headers=headers, partition=0)

    return write, producer.flush


def at_once(
    bootstrap: str, transactions: bool
) -> tuple[Callable[[list[bytes]], object], Callable[[], object]]:
    """The same of an output topic's sink."""
    topic = make_topic(bootstrap)
    sink = KafkaSink(topic, Delivery(bootstrap, name=topic if transactions else None), 1_700_000_000_000)

    def write(lines: list[bytes]) -> None:
        sink.write(b"\n".join(lines) + b"\n")
        sink.flush(sync=False)

    return write, lambda: sink.flush(sync=True)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=300_000)
    count = parser.parse_args().records
    rows = []
    with tempfile.TemporaryDirectory() as name, running(Path(name)) as broker:
        ways = {
            "KafkaProducer.send": one_by_one(broker.bootstrap, count),
            "batches, in transactions": at_once(broker.bootstrap, True),
            "batches, without": at_once(broker.bootstrap, False),
        }
        for what, (write, finish) in ways.items():
            all_cpu, own = time.process_time(), 0.0
            for first in range(0, count, AT_ONCE):
                lines = [LINE % (i, i, i) for i in range(first, first + AT_ONCE)]
                began = time.thread_time()
                write(lines)
                own += time.thread_time() - began
            finish()
            spent = time.process_time() - all_cpu
            rows.append((what, f"{1e6 * spent / count:.1f}", f"{1e6 * own / count:.1f}"))
    show(f"{count:,} records to a topic, CPU us each", ["how", "all threads", "the stream's own"], rows)


if __name__ == "__main__":
    main()
