"""CPU microseconds a record of whole runs of ``streamdp consume``, file to file, beside peers: one table.

Tweets at several beams, vectors as JSON and as a table, lines of logs, news stories; then records one at a
time from Python, and the first answer without compiled kernels. TextClust, River's KMeans and Drain3 read,
parse and learn from the first records of the same files; they write nothing. ``--against`` puts an earlier
checkout in turn with this one, ``--topic`` adds a Kafka topic.
"""

from __future__ import annotations

import argparse
import functools
import os
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

from benchmarks import before, compile_time
from benchmarks.log_lines import Fresh, drain, write_log
from benchmarks.textclust import of_the_paper
from benchmarks.workloads import Document, Used, child_used, documents, show, streamdp, timed

GOAL = 12
"""Times as fast on tweets as TextClust, at the default beam."""
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


def consume(checkout: Path, cache: str, case: Case, path: Path) -> Used:
    """What a run of a checkout uses."""
    command = streamdp("consume", "--file", str(path), "--output", f"{path}.out", "--overwrite")
    given = compile_time.environment(checkout, os.environ.get("STREAMDP_CACHE_DIR", cache))
    return child_used([*command, *case.arguments], cwd=path.parent, env=given, stderr=subprocess.DEVNULL)


def measured(checkouts: Sequence[Path], cache: str, case: Case, runs: int) -> list[Used]:
    """Medians of the runs of each checkout, in turn."""
    head = case.path.with_name(f"head-{case.path.name}")
    with case.path.open("rb") as file:
        head.write_bytes(b"".join(islice(file, WARM)))
    for checkout in checkouts:
        consume(checkout, cache, case, head)
    found: list[list[Used]] = [[] for _ in checkouts]
    for _ in range(runs):
        for checkout, each in zip(checkouts, found, strict=True):
            each.append(consume(checkout, cache, case, case.path))
    return [Used(median(u.seconds for u in each), median(u.peak for u in each)) for each in found]


def row_of(
    case: Case, checkouts: Sequence[Path], cache: str, runs: int, peer_records: int
) -> tuple[object, ...]:
    """Records, microseconds of each checkout, MiB; the peer, its microseconds, and the ratio."""
    used = measured(checkouts, cache, case, runs)
    figures = [f"{1e6 * each.seconds / case.records:.1f}" for each in used]
    last = used[-1].seconds / case.records
    theirs = peer_seconds(case.peer, case.path, min(peer_records, case.records)) if case.peer else 0.0
    beside = (case.peer, f"{1e6 * theirs:,.0f}", f"{theirs / last:.1f}") if case.peer else ("", "", "")
    return (case.records, *figures, f"{used[-1].peak:.0f}", *beside)


def alone(checkouts: Sequence[Path], cache: str, tweets: Path, beam: int) -> tuple[object, ...]:
    """Records one at a time from Python; the better of two runs, after one that compiles."""
    case, found = before.Case("", "tweets_t", 20_000, 1, {"beam": beam}), []
    for each in checkouts:
        counts = (before.FIRST + before.BATCH, case.records, case.records)
        runs = [before.run(each, cache, str(tweets), case, count, bare=False) for count in counts]
        found.append(max(runs[1:], key=lambda run: run["rate"]))
    slow = " / ".join(f"{found[-1][part]:.2f}" for part in ("p50", "p99", "p99.9"))
    return (*(f"{each['rate']:,.0f}" for each in found), slow)


def first(checkouts: Sequence[Path], case: compile_time.Case) -> tuple[object, ...]:
    """The first answer without compiled kernels."""
    return (*(f"{compile_time.measured(each, case, 1).cpu:.1f}" for each in checkouts), "")


def others(
    checkouts: Sequence[Path], cache: str, tweets: Path
) -> Iterator[tuple[str, Callable[[], tuple[object, ...]]]]:
    """What is no run from file to file: names, and how each is measured."""
    for beam in (1, DEFAULT):
        name = f"one at a time, beam {beam}: records / CPU s"
        yield name, functools.partial(alone, checkouts, cache, tweets, beam)
    for case in compile_time.CASES[:3]:
        yield f"{case.name}, no kernels: CPU s", functools.partial(first, checkouts, case)


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
    parser.add_argument("--against", type=Path, metavar="PATH", help="an earlier checkout, in turn with this")
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD", help="rows that name one of these")
    parser.add_argument("--topic", action="store_true", help="a Kafka topic too (needs Java and Maven)")
    options = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    checkouts = [here] if options.against is None else [options.against.resolve(), here]
    named = ["us"] if len(checkouts) == 1 else ["us before", "us after"]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = [
            seen(case.name, row_of(case, checkouts, f"{name}/cache", options.runs, options.peer_records))
            for case in cases(folder, options.times)
            if any(word in case.name for word in options.only)
        ]
        if rows:
            title = f"CPU us a record, file to file, start-up included; TextClust's ratio is to be {GOAL}"
            show(title, ("", "records", *named, "MiB", "peer", "its us", "ratio"), rows)
        more = [
            seen(what, measure())
            for what, measure in others(checkouts, f"{name}/cache", folder / "tweets_t.jsonl")
            if any(word in what for word in options.only)
        ]
        if more:
            heads = ["here"] if len(checkouts) == 1 else ["before", "after"]
            show("from Python, and cold", ("", *heads, "p50 / p99 / p99.9 ms"), more)
    if options.topic:
        from benchmarks import kafka_rate

        kafka_rate.report(20_000 * options.times, (DEFAULT,))
    sys.stdout.write(f"{(time.perf_counter() - began) / 60:.0f} minutes\n")


if __name__ == "__main__":
    main()
