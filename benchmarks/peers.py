"""streamdp beside its peers in one run: quality and CPU time, as a table, a CSV and a picture.

Texts, NMI: raw texts in, labels out. streamdp is given a thousand at a time, which changes no answer. River's
TextClust learns a text, then is asked for it: with its defaults (a text's time being its line's number), with
its paper's settings, and with these and pairs of words besides. scikit-learn's MiniBatchKMeans is given the
true number of clusters, and a thousand texts at a time, which it learns, then labels: as TF-IDF of words
hashed to 4,096 columns, or as LSA of 100 dimensions; the first tenth of the texts teaches the weights of
either. Birch is given LSA, all texts before it labels any, and the true number of clusters.

Vectors, windowed ARI: as in ``benchmarks.estimators``, where everyone predicts a record before learning it;
besides, streamdp's engine given a thousand at a time, MiniBatchKMeans that learns a hundred, then labels
them, and Birch, told the number of clusters and half the radius that others are told, which labels when it
has seen all.

Lines of logs, group accuracy over eight sets: texts in, templates out, beside Drain3.

First announced and newest labels differ for streamdp alone: peers do not revise. CPU seconds are of learning
and answering, after everyone has seen some records uncounted; scikit-learn is held to one thread.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.embeddings import FITTED, birch_at_once, directions, lsa_of
from benchmarks.estimators import STREAMS, models, run
from benchmarks.inside import streamed
from benchmarks.log_lines import SETS, accuracy, log_lines
from benchmarks.logs import codes, drained
from benchmarks.peers_picture import Point, draw
from benchmarks.quality import labels_of, truth_of
from benchmarks.textclust import of_the_paper
from benchmarks.workloads import CHUNK, Document, documents, show, warm, windowed
from streamdp.engine import Engine
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

CORPORA = ("tweets_t", "tweets", "news_t", "news")
LONG = ("tweets", "news")
"""Texts that are left out unless they are asked for: minutes of TextClust."""
HEAD, PEERS_HEAD = 1600, 300
"""Records that streamdp and others see once before the clock runs."""
RECORDS, QUICK = 10_000, 1000
"""Most records of a set, and those with ``--quick``; a quarter as many of each log."""
PICTURES = Path("docs/pictures")
COLUMNS = 4096
"""Of hashed words."""
THRESHOLD = 0.7
"""Birch's, of vectors of length one: of .5, .7 and .9 the best in ARI on these sets."""


class Found(NamedTuple):
    """Labels as first announced and newest, and the CPU seconds that they took."""

    first: np.ndarray
    newest: np.ndarray
    seconds: float


Contender = Callable[[Any], Found]


class Contest(NamedTuple):
    """A set, its truth, who takes part, and how they are measured."""

    name: str
    data: Any
    truth: np.ndarray
    contenders: dict[str, Contender]
    measure: str
    judge: Callable[[np.ndarray, np.ndarray], float]


def clocked(work: Callable[[], Any]) -> Found:
    """Labels that are never revised, and the CPU seconds of getting them."""
    started = time.process_time()
    labels = np.asarray(work())
    return Found(labels, labels, time.process_time() - started)


# ---------------------------------------------------------------- texts


def ours(corpus: Sequence[Document], **given: Any) -> Found:
    """What streamdp says of texts or lines."""
    first, newest, _, seconds = labels_of(corpus, Settings(**given))
    return Found(first, newest, seconds)


def textclust(corpus: Sequence[Document], make: Callable[[], Any], longest: int) -> Found:
    """What TextClust says of each text once it has learned it, of runs of up to so many words."""
    from river.feature_extraction import BagOfWords

    words, model = BagOfWords(lowercase=True, ngram_range=(1, longest)), make()

    def labels() -> list[int]:
        told = []
        for text in corpus:
            bag = words.transform_one(text.text)
            model.learn_one(bag, t=text.time)
            label = model.predict_one(bag)
            told.append(-1 if label is None else label)
        return told

    return clocked(labels)


def mini_batches(rows: Any, clusters: int, size: int) -> np.ndarray:
    """What MiniBatchKMeans says of so many rows at a time, once it has learned them."""
    from sklearn.cluster import MiniBatchKMeans

    model = MiniBatchKMeans(clusters, random_state=0, n_init=3)
    labels = []
    for start in range(0, rows.shape[0], size):
        part = rows[start : start + size]
        labels.append(model.partial_fit(part).predict(part))
    return np.concatenate(labels)


def hashed(texts: list[str]) -> Any:
    """TF-IDF of hashed words; the weights are those of the first texts."""
    from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

    counts = HashingVectorizer(n_features=COLUMNS, alternate_sign=False, norm=None).transform(texts)
    return TfidfTransformer().fit(counts[: len(texts) // FITTED]).transform(counts)


def by_lsa(texts: list[str], cluster: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Labels of what LSA makes of texts; -1 for those that have no word that is known."""
    vectors, known = lsa_of(texts)
    labels = np.full(len(texts), -1)
    labels[known] = cluster(directions(vectors[known]))
    return labels


def text_contest(name: str, most: int) -> Contest:
    """Everyone on a corpus."""
    corpus = documents(name)[:most]
    truth = truth_of(corpus)
    k = len(np.unique(truth))

    def texts(corpus: Sequence[Document]) -> list[str]:
        return [d.text for d in corpus]

    def default() -> Any:
        from river.cluster import TextClust

        return TextClust()

    def nmi(labels: np.ndarray, truth: np.ndarray) -> float:
        return agreement(labels, truth).nmi

    contenders: dict[str, Contender] = {
        "streamdp, beam 1": lambda c: ours(c, beam=1),
        "streamdp, beam 16": lambda c: ours(c, beam=16),
        "TextClust": lambda c: textclust(c, default, 1),
        "TextClust, paper's": lambda c: textclust(c, of_the_paper, 1),
        "TextClust, paper's, pairs": lambda c: textclust(c, of_the_paper, 2),
        "KMeans, hashed, k": lambda c: clocked(lambda: mini_batches(hashed(texts(c)), k, CHUNK)),
        "KMeans, LSA, k": lambda c: clocked(lambda: by_lsa(texts(c), lambda v: mini_batches(v, k, CHUNK))),
        "Birch, LSA, k, at once": lambda c: clocked(
            lambda: by_lsa(texts(c), lambda v: birch_at_once(v, THRESHOLD, k))
        ),
    }
    return Contest(name, corpus, truth, contenders, "NMI", nmi)


# ---------------------------------------------------------------- vectors


def by_the_thousand(vectors: np.ndarray) -> Found:
    """What streamdp says of vectors, a thousand at a time."""
    ran = streamed(vectors.tolist(), Engine())
    return Found(ran.first, ran.newest, ran.seconds)


def vector_contest(name: str, most: int) -> Contest:
    """Everyone on a stream of vectors."""
    stream = STREAMS[name]
    vectors, truth = (part[:most] for part in stream.load())

    def one_by_one(make: Callable[[], Any]) -> Contender:
        def found(vectors: np.ndarray) -> Found:
            labels, seconds = run(make(), [dict(enumerate(row)) for row in vectors.tolist()])
            return Found(labels, labels, seconds)

        return found

    def judge(labels: np.ndarray, truth: np.ndarray) -> float:
        return windowed(labels, truth, stream.window)

    short = {
        "StreamDP": "streamdp, beam 16",
        "StreamDP, beam 1": "streamdp, beam 1",
        "River KMeans": "River KMeans, k",
        "River DBSTREAM": "DBSTREAM",
        "River DenStream": "DenStream",
        "scikit-learn MiniBatchKMeans": "KMeans of scikit-learn, k",
    }
    contenders = {short[who]: one_by_one(make) for who, make in models(stream).items()}
    contenders["streamdp by the 1,000"] = by_the_thousand
    contenders["KMeans by the 100, k"] = lambda v: clocked(lambda: mini_batches(v, stream.clusters, 100))
    contenders["Birch, k, at once"] = lambda v: clocked(
        lambda: birch_at_once(v, stream.radius / 2, stream.clusters)
    )
    return Contest(name, vectors, truth, contenders, "windowed ARI", judge)


# ---------------------------------------------------------------- lines of logs


def log_contest(most: int) -> Contest:
    """Templates of the eight sets, each a stream of its own."""
    logs = [
        [
            Document(f"{name} {i}", float(i), line.text, f"{name} {line.cluster}")
            for i, line in enumerate(log_lines(name)[: most // 4])
        ]
        for name in SETS
    ]

    def each(one: Callable[[Sequence[Document]], Found]) -> Contender:
        def found(logs: list[list[Document]]) -> Found:
            of_all = [one(log) for log in logs]

            def told(parts: Iterable[np.ndarray]) -> np.ndarray:
                return codes([(i, label) for i, part in enumerate(parts) for label in part.tolist()])

            seconds = sum(found.seconds for found in of_all)
            return Found(
                told(found.first for found in of_all), told(found.newest for found in of_all), seconds
            )

        return found

    def drain(masks: bool) -> Contender:
        return each(lambda log: clocked(lambda: drained([line.text for line in log], masks)))

    def judge(labels: np.ndarray, truth: np.ndarray) -> float:
        return accuracy(labels.tolist(), truth.tolist())[0]

    contenders = {
        "streamdp": each(lambda log: ours(log, likelihood="template")),
        "Drain3": drain(masks=False),
        "Drain3, its example's masks": drain(masks=True),
    }
    truth = truth_of([line for log in logs for line in log])
    return Contest("log lines", logs, truth, contenders, "group accuracy", judge)


# ---------------------------------------------------------------- all


def contests(names: Iterable[str], most: int) -> Iterator[Contest]:
    """Those of these names, at most so many records of each."""
    for name in names:
        if name in CORPORA:
            yield text_contest(name, most)
        elif name in STREAMS:
            yield vector_contest(name, most)
        else:
            yield log_contest(most)


def measured(contest: Contest) -> Iterator[Point]:
    """Everyone on one set."""
    for who, contender in contest.contenders.items():
        contender(contest.data[: HEAD if who.startswith("streamdp") else PEERS_HEAD])
        first, newest, seconds = contender(contest.data)
        scores = (contest.judge(labels, contest.truth) for labels in (first, newest))
        yield Point(contest.name, who, contest.measure, len(newest), len(np.unique(newest)), *scores, seconds)


def told(points: Sequence[Point]) -> None:
    """Print what was seen on one set."""
    rows = [
        (p.method, p.clusters, f"{p.first:.3f}", f"{p.newest:.3f}", f"{p.seconds:.2f}", f"{p.cost:,.1f}")
        for p in points
    ]
    title = f"{points[0].data}, {points[0].records:,} records, {points[0].measure}"
    show(title, ("", "clusters", "first", "newest", "CPU s", "us a record"), rows)


def write_points(path: Path, points: Sequence[Point]) -> None:
    """Write what was seen as a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow((*Point._fields, "microseconds"))
        for p in points:
            figures = (f"{p.first:.4f}", f"{p.newest:.4f}", f"{p.seconds:.3f}", f"{p.cost:.2f}")
            writer.writerow((*p[:5], *figures))


def main() -> None:
    """Run, print, write and draw."""
    import sklearn.cluster
    import sklearn.decomposition  # noqa: F401  its threads are there to be limited
    from threadpoolctl import threadpool_limits

    names = (*CORPORA, *STREAMS, "logs")
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", nargs="+", default=[n for n in names if n not in LONG], choices=names)
    parser.add_argument("--records", type=int, default=RECORDS, help="at most so many of each set")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:,} of each")
    parser.add_argument("--output", type=Path, default=PICTURES, help="folder of CSV and picture")
    options = parser.parse_args()
    warm()
    points: list[Point] = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", module="sklearn")
        for contest in contests(options.sets, QUICK if options.quick else options.records):
            points += (found := list(measured(contest)))
            told(found)
    write_points(Path(options.output, "peers.csv"), points)
    draw(Path(options.output, "peers.png"), points)


if __name__ == "__main__":
    main()
