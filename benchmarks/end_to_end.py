"""CPU time of a whole ``streamdp consume``, file to file, beside River's TextClust from the same file."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import msgspec

from benchmarks.textclust import of_the_paper
from benchmarks.workloads import (
    Document,
    child_cpu_seconds,
    clean_environment,
    documents,
    median_of,
    show,
    streamdp,
    timed,
    warm,
)

GOAL = 12
"""Times as fast as the peer."""


def repeated(corpus: list[Document], times: int) -> Iterator[Document]:
    """The corpus over and over, with fresh ids and times that go on."""
    step = corpus[-1].time + 1.0
    for turn in range(times):
        for d in corpus:
            yield msgspec.structs.replace(d, id=f"{turn}-{d.id}", time=d.time + turn * step)


def peer_seconds(path: Path, records: int) -> float:
    """CPU seconds of TextClust for the first records of the file.

    Decoding, tokenising and learning; it is not asked for its answers, and writes none.
    """
    from river.feature_extraction import BagOfWords

    decode = msgspec.json.Decoder(Document).decode
    words = BagOfWords(lowercase=True)
    model = of_the_paper()

    def learn() -> None:
        with path.open("rb") as file:
            for line in islice(file, records):
                model.learn_one(words.transform_one(decode(line).text))

    return timed(learn)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="tweets_t", help="tweets_t, tweets, news_t or news")
    parser.add_argument("--times", type=int, default=10, help="how often the corpus is repeated")
    parser.add_argument("--peer-records", type=int, default=30_000, help="records that the peer is given")
    parser.add_argument("--runs", type=int, default=3, help="runs of streamdp, of which the median counts")
    options = parser.parse_args()
    warm()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.jsonl"
        encoder = msgspec.json.Encoder()
        with path.open("wb") as file:
            n = 0
            for document in repeated(documents(options.corpus), options.times):
                file.write(encoder.encode(document) + b"\n")
                n += 1
        command = streamdp("consume", "--file", path.name, "--output", "out.jsonl", "--overwrite")
        quiet = {"cwd": folder, "env": clean_environment(), "stderr": subprocess.DEVNULL}
        seconds = median_of(options.runs, lambda: child_cpu_seconds(command, **quiet))
        peer_records = min(options.peer_records, n)
        peer = peer_records / peer_seconds(path, peer_records)
    rate = n / seconds
    show(
        f"{options.corpus} {options.times} times, {n:,} records, file to file",
        ("", "records", "CPU s", "records / CPU s", "ratio", "goal"),
        [
            ("River TextClust", peer_records, f"{peer_records / peer:.2f}", f"{peer:,.0f}", "1.0", ""),
            ("streamdp consume", n, f"{seconds:.2f}", f"{rate:,.0f}", f"{rate / peer:.1f}", GOAL),
        ],
    )


if __name__ == "__main__":
    main()
