"""Write the demo stream, generated headlines of known stories, to a Kafka topic, and end."""

from __future__ import annotations

import argparse
import sys
import time

import msgspec
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from streamdp.demo.stream import demo_stream

TIMEOUT = 30.0


def held(bootstrap: str, topic: str) -> int:
    """The offsets that the topic has given out so far. Raises LookupError where there is no such topic."""
    consumer = KafkaConsumer(bootstrap_servers=bootstrap.split(","), allow_auto_create_topics=False)
    try:
        partitions = consumer.partitions_for_topic(topic)
        if not partitions:
            raise LookupError(f"there is no topic {topic}: create it first")
        ends: dict[TopicPartition, int] = consumer.end_offsets([TopicPartition(topic, p) for p in partitions])
        return sum(ends.values())
    finally:
        consumer.close()


def produce(bootstrap: str, topic: str, records: int, seed: int, rate: float) -> None:
    """Write the records as JSON, in time order; ``rate`` is records a second, 0 for no limit."""
    producer = KafkaProducer(
        bootstrap_servers=bootstrap.split(","),
        acks="all",
        enable_idempotence=True,
        linger_ms=10,
        allow_auto_create_topics=False,
    )
    try:
        begun = time.monotonic()
        sent = []
        for number, record in enumerate(demo_stream(records, seed)):
            if rate:
                time.sleep(max(0.0, begun + number / rate - time.monotonic()))
            sent.append(producer.send(topic, msgspec.json.encode(record)))
        for future in sent:
            future.get(TIMEOUT)
    finally:
        producer.close(TIMEOUT)


def main() -> int:
    """Read the command line, produce, say what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", default="localhost:9092", help="Kafka brokers, host:port,...")
    parser.add_argument("--topic", default="news", help="an existing topic")
    parser.add_argument("--records", type=int, default=5000, help="how many (default: 5000)")
    parser.add_argument("--seed", type=int, default=0, help="of the generator (default: 0)")
    parser.add_argument("--rate", type=float, default=0.0, help="records a second (default: no limit)")
    parser.add_argument("--again", action="store_true", help="also into a topic that has had records")
    asked = parser.parse_args()
    if asked.records < 1 or asked.seed < 0 or not 0 <= asked.rate < float("inf"):
        parser.error("--records must be at least 1, --seed and --rate not negative")
    try:
        before = held(asked.bootstrap, asked.topic)
        if before and not asked.again:
            print(f"{asked.topic} has had {before:,} records already, nothing written (see --again)")
            return 0
        produce(asked.bootstrap, asked.topic, asked.records, asked.seed, asked.rate)
    except (KafkaError, LookupError) as error:
        print(f"{asked.bootstrap}: {error}", file=sys.stderr)
        return 69
    print(f"{asked.records:,} records written to {asked.topic}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
