"""Records per CPU second of the beam on tokenised tweets, beside River's TextClust."""

from __future__ import annotations

import argparse
from collections import Counter

from benchmarks.textclust import of_the_paper
from benchmarks.workloads import (
    Encoded,
    chunks,
    documents,
    encode,
    feed,
    median_of,
    show,
    timed,
    warm,
    word_search,
)
from streamdp.settings import Settings

GOALS = {1: 75, 16: 30, 64: 12}
"""Times as fast as the peer, by beam width."""


def engine_seconds(texts: Encoded, width: int) -> float:
    """CPU seconds for all texts under the default model."""
    search = word_search(Settings(beam=width), texts.vocabulary)
    batches = chunks(texts.batch)
    return timed(lambda: feed(search, batches))


def peer_seconds(bags: list[Counter[str]]) -> float:
    """CPU seconds of TextClust's learning alone: it is not asked for its answers."""
    model = of_the_paper()

    def learn() -> None:
        for bag in bags:
            model.learn_one(bag)

    return timed(learn)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", default="tweets_t", help="tweets_t, tweets, news_t or news")
    parser.add_argument("--peer-records", type=int, default=None, help="records that the peer is given")
    parser.add_argument("--runs", type=int, default=3, help="runs of the engine, of which the median counts")
    options = parser.parse_args()
    corpus = documents(options.corpus)
    texts = encode(corpus)
    warm()
    bags = [Counter(d.text.split()) for d in corpus[: options.peer_records]]
    peer = len(bags) / peer_seconds(bags)
    rows: list[tuple[object, ...]] = [("River TextClust, unigrams", f"{peer:,.0f}", "1.0", "")]
    for width, goal in GOALS.items():
        seconds = median_of(options.runs, lambda width=width: engine_seconds(texts, width))
        rate = texts.batch.size / seconds
        rows.append((f"streamdp, beam {width}", f"{rate:,.0f}", f"{rate / peer:.1f}", f"{goal}"))
    show(
        f"{options.corpus}, {len(corpus):,} records, already tokenised",
        ("", "records / CPU s", "ratio", "goal"),
        rows,
    )


if __name__ == "__main__":
    main()
