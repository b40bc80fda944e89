"""Compressed batches: every codec is read, and none of them fills the memory."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import snappy
import zstandard
from broker.topics import make_topic, produce
from commands import newest_lines, parsed, succeed
from kafka.codec import snappy_encode
from streamdp_connectors.kafka.batches import LIMIT, UnreadableError, unpack
from streamdp_connectors.kafka.source import KafkaSource

PACK: dict[str, tuple[int, Callable[[bytes], bytes]]] = {
    "gzip": (1, gzip.compress),
    "snappy": (2, snappy_encode),
    "snappy alone": (2, snappy.compress),
    "lz4": (3, lambda data: lz4.frame.compress(data, block_linked=False)),
    "zstd": (4, zstandard.ZstdCompressor().compress),
}
CODECS = ("gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("name", PACK)
def test_what_was_packed_is_unpacked(name: str) -> None:
    codec, pack = PACK[name]
    for data in (b"", b"x", b"storm over the coast " * 200_000, bytes(range(256)) * 9):
        assert unpack(codec, pack(data)) == data


@pytest.mark.parametrize("name", PACK)
def test_no_more_is_unpacked_than_fits(name: str) -> None:
    codec, pack = PACK[name]
    data = bytes(64 << 20)
    packed = pack(data)
    with pytest.raises(UnreadableError, match="larger than 3 MiB when it is unpacked"):
        unpack(codec, packed, 3 << 20)
    tracemalloc.start()
    try:
        with pytest.raises(UnreadableError):
            unpack(codec, packed, 3 << 20)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert len(unpack(codec, pack(data[: 3 << 20]), 3 << 20)) == 3 << 20


@pytest.mark.parametrize("name", PACK)
def test_damage_is_told(name: str) -> None:
    codec, pack = PACK[name]
    packed = pack(b"storm over the coast " * 1000)
    cut = packed[: len(packed) // 2]
    for damaged in (b"\xff" * 40,) if name == "zstd" else (cut, b"\xff" * 40):  # zstd takes a cut for an end
        with pytest.raises(UnreadableError) as caught:
            unpack(codec, damaged)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_is_consumed(broker: Any, tmp_path: Path, codec: str) -> None:
    topic = make_topic(broker.bootstrap)
    values = [b'{"text": "storm over the coast %d"}' % (i % 9) for i in range(300)]
    produce(broker.bootstrap, topic, ((0, value) for value in values), compression_type=codec)
    where = ("--topic", topic, "--bootstrap", broker.bootstrap, "--until", "end", "--state", "state")
    succeed(tmp_path, "consume", *where, "--output", "out", "--beam", "1")
    lines = newest_lines((tmp_path / "out").read_bytes())
    assert [line["position"]["offset"] for line in lines] == list(range(300))


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_too_large_is_refused_and_the_stream_goes_on(broker: Any, tmp_path: Path, codec: str) -> None:
    topic = make_topic(broker.bootstrap, **{"max.message.bytes": str(16 << 20)})
    small = [(0, b'{"text": "storm over the coast"}')]
    how: dict[str, Any] = {"compression_type": codec, "batch_size": 2 * LIMIT, "linger_ms": 3000}
    how["max_request_size"] = 2 * LIMIT
    produce(broker.bootstrap, topic, small)
    produce(broker.bootstrap, topic, ((0, b" " * (LIMIT // 10)) for _ in range(11)), **how)
    produce(broker.bootstrap, topic, small)
    for limit in (500, 1):  # a source that begins within a batch finds the same
        source = KafkaSource(topic, broker.bootstrap, until_end=True)
        found = []
        while not source.at_end:
            found.extend(source.read(limit, 1.0))
            stored = source.positions()
            again = KafkaSource(topic, broker.bootstrap)
            again.seek(stored)
            again.close()
        assert [raw.position["offset"] for raw in found] == [0, 11, 12]
        assert [bool(raw.refused) for raw in found] == [False, True, False]
        source.close()
    where = ("--topic", topic, "--bootstrap", broker.bootstrap, "--until", "end", "--state", "state")
    succeed(tmp_path, "consume", *where, "--output", "out", "--beam", "1")
    assert len(newest_lines((tmp_path / "out").read_bytes())) == 2
    (reject,) = parsed((tmp_path / "out.rejects.jsonl").read_bytes())
    assert (reject["reason"], reject["position"]["offset"], reject["data"]) == ("unreadable", 11, "")
    assert "offsets 1 to 11, cannot be read: it is larger than 64 MiB" in reject["detail"]
