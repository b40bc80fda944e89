"""One stream over several engines: agreement with the truth by number of shards, and what each part costs."""

from __future__ import annotations

import argparse
import time
from typing import NamedTuple

import msgspec
import numpy as np

from benchmarks.quality import labels_of, told_of, truth_of
from benchmarks.sharded import Sharded
from benchmarks.workloads import CHUNK, Document, documents, records_of, show, warm
from streamdp.encode.encoders import choose_encoder
from streamdp.encode.words import cut as words_of
from streamdp.records import Answers, Record, Reject
from streamdp.records.columns import Columns
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

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
    first, newest, _, seconds = labels_of(corpus, Settings(beam=beam))
    return Ran(first, newest, seconds, 0.0, 0)


def in_shards(corpus: list[Document], shards: int, beam: int) -> Ran:
    """So many engines, one after another, and one that joins their clusters."""
    sharded, records = Sharded(Settings(beam=beam), shards), records_of(corpus)
    answers, joining, clustering, parts = list[Answers](), 0.0, 0.0, set[int]()
    for i in range(0, len(records), CHUNK):
        begun = time.process_time()
        parted = sharded.with_parts(records[i : i + CHUNK])
        joined = time.process_time()
        answers.append(sharded.merger.advance(parted))
        clustering, joining = clustering + joined - begun, joining + time.process_time() - joined
        parts.update(r.part for r in parted if isinstance(r, Record) and r.part is not None)
    begun = time.process_time()
    answers.append(sharded.finish())
    joining += time.process_time() - begun
    return Ran(*told_of(answers, len(records)), clustering, joining, len(parts))


def reading(corpus: list[Document]) -> tuple[float, float]:
    """CPU seconds to look up the words of texts, and of texts that were cut into words before."""
    records = [record for record in records_of(corpus) if isinstance(record, Record)]
    cut = [msgspec.structs.replace(r, value=" ".join(words_of(str(r.value)))) for r in records]

    def seconds(given: list[Record]) -> float:
        encoder, begun = choose_encoder(given[0], Settings(), sparse=True), time.process_time()
        assert not isinstance(encoder, Reject)
        for i in range(0, len(given), CHUNK):
            some = given[i : i + CHUNK]
            encoder.take(np.zeros(len(some) - len(encoder.add(Columns.of(some)))))
        return time.process_time() - begun

    return min(seconds(records) for _ in range(3)), min(seconds(cut) for _ in range(3))


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
        truth = truth_of(corpus)
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
        whole, before = (f"{1e6 * seconds / len(corpus):.1f}" for seconds in reading(corpus))
        rows.append((name, "words looked up", "", "", "", "", whole, ""))
        rows.append((name, "the same, cut before", "", "", "", "", before, ""))
    show(
        f"records in memory, beam {options.beam}; us of CPU a record",
        ("data set", "shards", "NMI first", "newest", "clusters", "parts a record", "clustering", "joining"),
        rows,
    )


if __name__ == "__main__":
    main()
