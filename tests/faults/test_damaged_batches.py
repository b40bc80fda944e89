"""A batch of a topic is damaged on its broker's disk: a run stops and says where, or passes exactly it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from broker.process import Broker
from broker.topics import make_topic, produce
from commands import call, newest_lines, parsed, succeed
from crc32c import crc32c

CRC, ATTRIBUTES = 17, 21
"""Where these stand in a batch of Kafka's format 2."""


def change(broker: Broker, topic: str, numbers: dict[int, Callable[[bytearray], None]]) -> None:
    """End the broker in order, change some batches of a partition's log, and start it again."""
    broker.stop()
    path: Path = broker.folder / "data" / f"{topic}-0" / f"{0:020}.log"
    data, at, number = path.read_bytes(), 0, 0
    found = bytearray()
    while at < len(data):
        size = 12 + struct.unpack_from(">i", data, at + 8)[0]
        batch = bytearray(data[at : at + size])
        if number in numbers:
            numbers[number](batch)
        found += batch
        at, number = at + size, number + 1
    assert number > max(numbers)
    path.write_bytes(found)
    broker.restart()


def flipped(batch: bytearray) -> None:
    """A letter is another, and the checksum is as it was."""
    batch[-5] ^= 1


def unknown_codec(batch: bytearray) -> None:
    """Packed by a codec that nobody knows, the checksum right."""
    batch[ATTRIBUTES + 1] = (batch[ATTRIBUTES + 1] & ~7) | 5
    struct.pack_into(">I", batch, CRC, crc32c(bytes(batch[ATTRIBUTES:])))


@pytest.mark.parametrize(
    ("damage", "why"), [(flipped, "does not match its checksum"), (unknown_codec, "its codec, number 5")]
)
def test_a_run_stops_there_or_passes_it(
    own_broker: Broker, tmp_path: Path, damage: Callable[[bytearray], None], why: str
) -> None:
    topic = make_topic(own_broker.bootstrap)
    for _ in range(9):  # a batch each
        values = [(0, b'{"text": "storm over the coast %d"}' % j) for j in range(3)]
        produce(own_broker.bootstrap, topic, values, linger_ms=200, batch_size=1 << 16)
    change(own_broker, topic, {2: damage, 5: damage})
    where = ("--topic", topic, "--bootstrap", own_broker.bootstrap, "--until", "end", "--state", "state")
    run = ("consume", *where, "--output", "out", "--beam", "1")
    for _ in range(2):  # every time
        done = call(tmp_path, *run)
        assert done.returncode == 65
        message = done.stderr.decode().splitlines()[-1]
        assert why in message
        assert f"topic {topic}, partition 0, offsets 6 to 8" in message
        assert "--on-damage skip" in message
    succeed(tmp_path, *run, "--on-damage", "skip")
    lines = newest_lines((tmp_path / "out").read_bytes())
    assert [line["position"]["offset"] for line in lines] == [i for i in range(27) if i // 3 not in (2, 5)]
    rejects: list[dict[str, Any]] = parsed((tmp_path / "out.rejects.jsonl").read_bytes())
    assert [(each["reason"], each["position"]["offset"]) for each in rejects] == [
        ("unreadable", 8),
        ("unreadable", 17),
    ]
    assert "offsets 15 to 17, cannot be read" in rejects[1]["detail"]
    assert why in rejects[1]["detail"]
