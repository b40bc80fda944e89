"""One stream over several engines: agreement with the truth by number of shards, and what each part costs."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.workloads import CHUNK, Document, documents, records_of, show, warm
from streamdp.engine import Engine
from streamdp.records import Answers, Assignment, Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings
from streamdp.sharding.merging import Merger
from streamdp.sharding.shard import Shard, shard_of

CORPORA = ("tweets_t", "tweets", "news_t", "news")


class Ran(NamedTuple):
    """Labels, and CPU seconds of the shards and of who joins; of one engine, all of them its own."""

    first: np.ndarray
    newest: np.ndarray
    clustering: float
    joining: float
    parts: int


def alone(corpus: list[Document], beam: int) -> Ran:
    """One engine."""
    engine = Engine(Settings(beam=beam))
    answers, begun = [], time.process_time()
    records = records_of(corpus)
    for i in range(0, len(records), CHUNK):
        answers.append(engine.advance(records[i : i + CHUNK]))
    answers.append(engine.finish())
    first, newest = labels_of(answers, len(records))
    return Ran(first, newest, time.process_time() - begun, 0.0, 0)


def in_shards(corpus: list[Document], shards: int, beam: int) -> Ran:
    """So many engines, one after another, and one that joins their clusters."""
    settings = Settings(beam=beam)
    engines, merger = [Shard(settings, shards, s) for s in range(shards)], Merger(settings)
    answers, joining, clustering, parts = list[Answers](), 0.0, 0.0, set[int]()
    records = records_of(corpus)
    routes = [shard_of(repr(record.value).encode(), shards) for record in records]
    for i in range(0, len(records), CHUNK):
        begun = time.process_time()
        coming, of = records[i : i + CHUNK], routes[i : i + CHUNK]
        found = [
            iter(engine.advance([r for r, own in zip(coming, of, strict=True) if own == s]))
            for s, engine in enumerate(engines)
        ]
        parted = [next(found[s]) for s in of]
        joined = time.process_time()
        answers.append(merger.advance(parted))
        clustering, joining = clustering + joined - begun, joining + time.process_time() - joined
        parts.update(r.part for r in parted if isinstance(r, Record) and r.part is not None)
    begun = time.process_time()
    answers.append(merger.finish())
    first, newest = labels_of(answers, len(records))
    return Ran(first, newest, clustering, joining + time.process_time() - begun, len(parts))


def labels_of(answers: Sequence[Answers], n: int) -> tuple[np.ndarray, np.ndarray]:
    """As first announced and as they stand in the end."""
    first, newest = np.full((2, n), -1)
    for answer in answers:
        for line in answer.lines:
            if isinstance(line, Assignment):
                at = line.position["line"] - 1
                newest[at] = line.cluster
                if line.revision == 0:
                    first[at] = line.cluster
    return first, newest


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=CORPORA)
    parser.add_argument("--shards", nargs="+", type=int, default=[1, 2, 4, 8, 16, 64])
    parser.add_argument("--beam", type=int, default=16)
    options = parser.parse_args()
    warm()
    rows: list[tuple[object, ...]] = []
    for name in options.corpora:
        corpus = documents(name)
        truth = np.unique([str(each.cluster) for each in corpus], return_inverse=True)[1]
        for shards in [0, *options.shards]:
            ran = in_shards(corpus, shards, options.beam) if shards else alone(corpus, options.beam)
            n, used = len(corpus), ran.first >= 0
            first, newest = (agreement(truth[used], each[used]).nmi for each in (ran.first, ran.newest))
            rows.append(
                (
                    name,
                    shards or "one engine",
                    f"{first:.3f}",
                    f"{newest:.3f}",
                    len(np.unique(ran.newest[used])),
                    f"{ran.parts / n:.2f}" if shards else "",
                    f"{1e6 * ran.clustering / n:.1f}",
                    f"{1e6 * ran.joining / n:.1f}" if shards else "",
                )
            )
    show(
        f"records in memory, beam {options.beam}; us of CPU a record",
        ("data set", "shards", "NMI first", "newest", "clusters", "parts a record", "clustering", "joining"),
        rows,
    )


if __name__ == "__main__":
    main()
