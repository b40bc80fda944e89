"""Whether texts of the same few words meet, and what that costs other texts.

``streams``: records away from the main cluster of those with the same words, records in a cluster of which
another label has most, and records away as first announced, each as a share. ``sets``: agreement on corpora
of longer texts, beside one b1 for all of them (``base_concentration``), at several concentrations in pairs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.quality import answers_of, told_of, truth_of
from benchmarks.workloads import documents, show_named
from streamdp.engine import Engine
from streamdp.likelihoods import hierarchical_pitman_yor
from streamdp.records import Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

SETS = ("tweets_t", "tweets", "news_t", "news", "stackoverflow10k")
CONCENTRATIONS = (57.0, 58.5, 60.0, 61.5, 63.0)
REPLIES = ("lol", "yes", "thanks", "same", "wow", "good morning", "happy birthday", "so true", "well said")
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "ar", "en", "il", "on")]


class Stream(NamedTuple):
    """Texts; the true label of each; whether it is one of the short ones, which are judged."""

    texts: list[str]
    labels: list[str]
    judged: np.ndarray


class Shares(NamedTuple):
    """Of the judged records: see the module. Clusters that have any of them, and labels."""

    away: float
    other: float
    first: float
    clusters: int
    labels: int


def some_words(rng: np.random.Generator, n: int) -> list[str]:
    """Distinct made-up words of two or three syllables."""
    found = dict[str, None]()
    while len(found) < n:
        found["".join(rng.choice(SYLLABLES, rng.integers(2, 4)))] = None
    return list(found)


def by_zipf(rng: np.random.Generator, labels: Sequence[str], n: int) -> Stream:
    """Each label as often as its rank says."""
    weights = 1.0 / np.arange(1, len(labels) + 1)
    drawn = rng.choice(len(labels), n, p=weights / weights.sum()).tolist()
    texts = [labels[k] for k in drawn]
    return Stream(texts, texts, np.ones(n, bool))


def labels_of_words(rng: np.random.Generator, n: int, sizes: Sequence[int], spare: float = 1.0) -> list[str]:
    """Distinct labels of so many words in turn; ``spare``: how many words there are for each that is needed.

    With 1 no two labels have a word in common.
    """
    lengths = [sizes[i % len(sizes)] for i in range(n)]
    words, found = some_words(rng, int(sum(lengths) * spare)), dict[str, None]()
    at = 0
    while len(found) < n:
        size = lengths[len(found)]
        drawn = words[at : at + size] if spare == 1.0 else rng.choice(words, size, replace=False).tolist()
        found[" ".join(drawn)] = None
        at += size
    return list(found)


def labelled(n: int, records: int, sizes: Sequence[int], spare: float = 1.0) -> Callable[[Any], Stream]:
    """Records of n labels."""
    return lambda rng: by_zipf(rng, labels_of_words(rng, n, sizes, spare), records)


def in_a_grid(rng: np.random.Generator) -> Stream:
    """1,500 records of 24 labels: each of six first words goes with each of four second ones."""
    firsts, seconds = some_words(rng, 6), some_words(rng, 4)
    return by_zipf(rng, rng.permutation([f"{a} {b}" for a in firsts for b in seconds]).tolist(), 1500)


def among(name: str, share: float) -> Callable[[np.random.Generator], Stream]:
    """Short replies among the first 8,000 records of a corpus."""

    def make(rng: np.random.Generator) -> Stream:
        kept = [d for d in documents(name)[:8000] if len(d.text.split()) > 2]
        kept = kept[: int(len(kept) * (1.0 - share))]
        replies = by_zipf(rng, REPLIES, int(len(kept) * share / (1.0 - share)))
        texts, labels = (
            [d.text for d in kept] + replies.texts,
            [f"topic {d.cluster}" for d in kept] + replies.labels,
        )
        order = rng.permutation(len(texts)).tolist()
        return Stream([texts[i] for i in order], [labels[i] for i in order], np.array(order) >= len(kept))

    return make


STREAMS: dict[str, Callable[[np.random.Generator], Stream]] = {
    "10 of one word": labelled(10, 500, (1,)),
    "20 of two words": labelled(20, 1000, (2,)),
    "30 mixed": labelled(30, 2000, (1, 2, 1, 3)),
    "300 mixed": labelled(300, 6000, (1, 2, 1, 3)),
    "30 mixed, some words shared": labelled(30, 2000, (1, 2, 1, 3), 0.8),
    "300 mixed, some words shared": labelled(300, 6000, (1, 2, 1, 3), 0.8),
    "six by four": in_a_grid,
    "5 % among tweets": among("tweets", 0.05),
    "20 % among tweets": among("tweets", 0.2),
    "5 % among news": among("news", 0.05),
}


def labels_of(records: Sequence[Record], settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """Labels as first announced and as they stand in the end."""
    return told_of(answers_of(Engine(settings), list(records)), len(records))


def records_of(texts: Sequence[str]) -> list[Record]:
    """What an engine takes, in order."""
    return [Record(text, {"line": i}, time=float(i)) for i, text in enumerate(texts, start=1)]


def away(found: np.ndarray, bags: np.ndarray) -> float:
    """Share of records that are not where most records with the same words are."""
    most = sum(int(np.bincount(found[bags == bag]).max()) for bag in np.unique(bags))
    return 1.0 - most / len(bags)


def judge(stream: Stream, settings: Settings) -> Shares:
    """Run a stream."""
    first, newest = labels_of(records_of(stream.texts), settings)
    _, labels = np.unique(stream.labels, return_inverse=True)
    _, clusters = np.unique(newest, return_inverse=True)
    table = np.zeros((clusters.max() + 1, labels.max() + 1), np.int64)
    np.add.at(table, (clusters, labels), 1)
    other, judged = table.argmax(axis=1)[clusters] != labels, stream.judged
    return Shares(
        away(newest[judged], labels[judged]),
        float(other[judged].mean()),
        away(first[judged], labels[judged]),
        len(np.unique(newest[judged])),
        len(np.unique(labels[judged])),
    )


def show_streams(names: Sequence[str], seeds: Sequence[int], settings: Settings) -> None:
    """Run and print."""
    rows = list[dict[str, object]]()
    for name in names:
        seen = [judge(STREAMS[name](np.random.default_rng(seed)), settings) for seed in seeds]
        mean = np.mean(seen, axis=0)
        row = {key: f"{100 * value:.1f} %" for key, value in zip(Shares._fields[:3], mean[:3], strict=True)}
        rows.append({"stream": name, **row, "clusters": f"{mean[3]:.0f}", "labels": f"{mean[4]:.0f}"})
    show_named(f"twins, means of seeds {', '.join(map(str, seeds))}", rows)


def show_sets(names: Sequence[str]) -> None:
    """Newest NMI and ARI, and by how much more than with the same b1 for all texts, in pairs."""
    rows = list[dict[str, object]]()
    b1 = hierarchical_pitman_yor.HierarchicalPitmanYor.base_concentration
    for name in names:
        corpus = documents(name)
        truth = truth_of(corpus)
        records = [Record(d.text, {"line": i}, time=d.time) for i, d in enumerate(corpus, start=1)]
        pairs = []
        for concentration in CONCENTRATIONS:
            pair = []
            for fixed in (b1, None):
                _, found = labels_of(records, Settings(concentration=concentration, base_concentration=fixed))
                known = (truth >= 0) & (found >= 0)
                seen = agreement(found[known], truth[known])
                pair.append((seen.nmi, seen.ari))
            pairs.append(pair)
            print(name, concentration, pair, flush=True)
        both = np.array(pairs)
        gain = both[:, 1] - both[:, 0]
        error = gain.std(axis=0, ddof=1) / np.sqrt(len(pairs))
        rows.append(
            {
                "set": name,
                "NMI": f"{both[:, 1, 0].mean():.4f}",
                "more": f"{gain[:, 0].mean():+.4f} ± {error[0]:.4f}",
                "ARI": f"{both[:, 1, 1].mean():.4f}",
                "more ARI": f"{gain[:, 1].mean():+.4f} ± {error[1]:.4f}",
            }
        )
        show_named("beside one b1 for all", rows[-1:])
    show_named("beside one b1 for all texts, in pairs", rows)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part", choices=["streams", "sets"])
    parser.add_argument("--streams", nargs="+", default=list(STREAMS), choices=list(STREAMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--short", nargs="*", type=float, help="b1 of texts of one word, of two and so on")
    options = parser.parse_args()
    if options.short is not None:
        hierarchical_pitman_yor.SHORT = tuple(options.short)
    if options.part == "sets":
        show_sets(options.sets)
    else:
        show_streams(options.streams, options.seeds, Settings())


if __name__ == "__main__":
    main()
