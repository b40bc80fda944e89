"""CPU microseconds a record of whole runs of ``streamdp consume``, file to file, beside peers: one table.

Tweets at several beams, vectors as JSON and as a table, lines of logs, news stories. TextClust, River's
KMeans and Drain3 read, parse and learn from the first records of the same files; they write nothing.
"""

from __future__ import annotations

import argparse
import functools
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.log_lines import Fresh, drain, write_log
from benchmarks.textclust import of_the_paper
from benchmarks.workloads import (
    Document,
    Used,
    child_used,
    clean_environment,
    documents,
    show,
    streamdp,
    timed,
)

DEFAULT = 8
BEAMS = (1, 4, DEFAULT, 16)
CLUSTERS, DIMENSION = 20, 16
WARM = 3_000
"""Lines that compile kernels, or load them, before a run counts."""


class Case(NamedTuple):
    """A file, how many records it has, what ``consume`` is told of it, and what a peer does with a line."""

    name: str
    path: Path
    records: int
    arguments: tuple[str, ...] = ()
    peer: str = ""


def repeated(corpus: list[Document], times: int) -> Iterator[Document]:
    """The corpus over and over, with fresh ids and times that go on."""
    step = corpus[-1].time + 1.0
    for turn in range(times):
        for d in corpus:
            yield msgspec.structs.replace(d, id=f"{turn}-{d.id}", time=d.time + turn * step)


# ---------------------------------------------------------------- what is read


def texts(folder: Path, name: str, times: int) -> tuple[Path, int]:
    """A corpus as JSON lines; the file and how many there are."""
    path, encode, n = folder / f"{name}.jsonl", msgspec.json.Encoder().encode, 0
    with path.open("wb") as file:
        for document in repeated(documents(name), times):
            file.write(encode(document) + b"\n")
            n += 1
    return path, n


def vectors(folder: Path, n: int) -> tuple[Path, Path]:
    """A mixture of Gaussians as JSON lines, and as a table."""
    draw = np.random.default_rng(1)
    centres = draw.normal(0.0, 4.0, (CLUSTERS, DIMENSION))
    lines, table = folder / "vectors.jsonl", folder / "vectors.csv"
    with lines.open("wb") as one, table.open("w") as other:
        other.write("id,time," + ",".join(f"x{d}" for d in range(DIMENSION)) + "\n")
        for i in range(n):
            vector = (centres[draw.integers(CLUSTERS)] + draw.normal(size=DIMENSION)).tolist()
            one.write(msgspec.json.encode({"id": f"r{i}", "time": 0.25 * i, "vector": vector}) + b"\n")
            other.write(f"r{i},{0.25 * i}," + ",".join(map(repr, vector)) + "\n")
    return lines, table


def cases(folder: Path, times: int) -> list[Case]:
    """All of them, their files written."""
    tweets, n = texts(folder, "tweets_t", times)
    stories, few = texts(folder, "reuters21578", 1)
    many = 20_000 * times
    lines, table = vectors(folder, many)
    log = folder / "lines.log"
    write_log(log, Fresh(words=False).draw(2 * many))
    return [
        *(Case(f"tweets, beam {b}", tweets, n, ("--beam", str(b)), "TextClust") for b in BEAMS),
        Case(f"vectors of {DIMENSION}", lines, many, (), "KMeans"),
        Case(f"a table of {DIMENSION} columns", table, many),
        Case("lines of logs", log, 2 * many, ("--format", "log"), "Drain3"),
        Case("reuters21578", stories, few),
    ]


# ---------------------------------------------------------------- who reads it


def learner(peer: str) -> Callable[[bytes], object]:
    """What a peer does with a line: decoding, tokenising and learning. ImportError where it is not there."""
    decode = msgspec.json.Decoder().decode
    if peer == "Drain3":
        miner = drain()
        return lambda line: miner.add_log_message(line[25:].decode())
    if peer == "KMeans":
        from river.cluster import KMeans

        means = KMeans(n_clusters=CLUSTERS, seed=0)

        def learn(line: bytes) -> None:
            row = dict(enumerate(decode(line)["vector"]))
            means.predict_one(row)
            means.learn_one(row)

        return learn
    from river.feature_extraction import BagOfWords

    model, words = of_the_paper(), BagOfWords(lowercase=True)
    return lambda line: model.learn_one(words.transform_one(decode(line)["text"]))


@functools.cache
def peer_seconds(peer: str, path: Path, records: int) -> float:
    """CPU seconds a record of a peer, for the first records of a file; NaN where it is not installed."""
    try:
        learn = learner(peer)
    except ImportError:
        return float("nan")

    def work() -> None:
        with path.open("rb") as file:
            for line in islice(file, records):
                learn(line)

    return timed(work) / records


def consume(case: Case, path: Path) -> Used:
    """What a run uses."""
    command = streamdp("consume", "--file", str(path), "--output", f"{path}.out", "--overwrite")
    given = {"cwd": path.parent, "env": clean_environment(), "stderr": subprocess.DEVNULL}
    return child_used([*command, *case.arguments], **given)


def measured(case: Case, runs: int) -> Used:
    """Medians of some runs, after one of the first records, which loads or compiles kernels."""
    head = case.path.with_name(f"head-{case.path.name}")
    with case.path.open("rb") as file:
        head.write_bytes(b"".join(islice(file, WARM)))
    consume(case, head)
    found = [consume(case, case.path) for _ in range(runs)]
    return Used(median(u.seconds for u in found), median(u.peak for u in found))


def row_of(case: Case, runs: int, peer_records: int) -> tuple[object, ...]:
    """Records, microseconds, MiB; the peer, its microseconds, and the ratio."""
    used = measured(case, runs)
    each = used.seconds / case.records
    row = (case.records, f"{1e6 * each:.1f}", f"{used.peak:.0f}")
    if not case.peer:
        return (*row, "", "", "")
    theirs = peer_seconds(case.peer, case.path, min(peer_records, case.records))
    return (*row, case.peer, f"{1e6 * theirs:,.0f}", f"{theirs / each:.1f}")


def seen(name: str, row: Sequence[object]) -> tuple[object, ...]:
    """A line of a table, said at once, since all take long."""
    sys.stderr.write(f"{name}: {', '.join(map(str, row))}\n")
    return (name, *row)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10, help="how often the tweets are repeated")
    parser.add_argument("--peer-records", type=int, default=20_000, help="records that a peer is given")
    parser.add_argument("--runs", type=int, default=3, help="runs of which the median counts")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="rows that name one of these")
    options = parser.parse_args()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        rows = [
            seen(case.name, row_of(case, options.runs, options.peer_records))
            for case in cases(Path(name), options.times)
            if any(word in case.name for word in options.only)
        ]
    heads = ("", "records", "us", "MiB", "peer", "its us", "ratio")
    show("CPU us a record, file to file, start-up included", heads, rows)
    sys.stdout.write(f"{(time.perf_counter() - began) / 60:.0f} minutes\n")


if __name__ == "__main__":
    main()
