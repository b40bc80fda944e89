"""How honest what is announced is: alarms for first stories, and probabilities against what came true."""

from __future__ import annotations

import argparse
from typing import NamedTuple

import numpy as np

from benchmarks.quality import answers_of
from benchmarks.workloads import Document, documents, records_of, show, warm
from streamdp.engine import Engine
from streamdp.ledger.confidence import Confidence
from streamdp.records import Assignment
from streamdp.settings import Settings

CORPORA = ("tweets_t", "tweets", "news_t", "news", "reuters21578", "stackoverflow10k")
BINS = 10
LABELS, DRAWS = (300, 1000), 5
"""How many records have a known topic where ``confidence`` is measured, and how often these are drawn."""


class Told(NamedTuple):
    """What was announced of the records with a known topic, in processing order; arrays of shape (n,)."""

    topic: np.ndarray  # int64
    first: np.ndarray  # int64 the label as first announced
    newest: np.ndarray  # int64 the label in the end
    revised: np.ndarray  # bool whether it was ever revised
    probability: np.ndarray
    new_probability: np.ndarray
    lasting_probability: np.ndarray
    stability: np.ndarray
    log_predictive: np.ndarray
    novelty: np.ndarray
    answers: list[Assignment]
    """All answers and revisions, in order."""


def told_of(corpus: list[Document], width: int) -> Told:
    """Run the default settings over a corpus."""
    answers = answers_of(Engine(Settings(beam=width)), records_of(corpus))
    topics = {str(d.cluster): 0 for d in corpus if d.cluster is not None}
    codes = {topic: i for i, topic in enumerate(topics)}
    first: dict[int, Assignment] = {}
    newest: dict[int, int] = {}
    revised, given = set(), []
    for answer in answers:
        for line in answer.lines:
            if isinstance(line, Assignment) and corpus[line.position["line"] - 1].cluster is not None:
                given.append(line)
                newest[line.seq] = line.cluster
                first.setdefault(line.seq, line)
                if line.revision:
                    revised.add(line.seq)
    lines = [first[seq] for seq in sorted(first)]
    return Told(
        np.array([codes[str(corpus[line.position["line"] - 1].cluster)] for line in lines]),
        np.array([line.cluster for line in lines]),
        np.array([newest[line.seq] for line in lines]),
        np.array([line.seq in revised for line in lines]),
        *(
            np.array([getattr(line, name) for line in lines])
            for name in (
                "probability",
                "new_probability",
                "lasting_probability",
                "stability",
                "log_predictive",
                "novelty",
            )
        ),
        given,
    )


def firsts(topic: np.ndarray) -> np.ndarray:
    """Whether each record is the first of its topic, shape (n,)."""
    found = np.zeros(len(topic), bool)
    found[np.unique(topic, return_index=True)[1]] = True
    return found


def auc(score: np.ndarray, wanted: np.ndarray) -> float:
    """Share of the pairs of a wanted record and another whose wanted one scores higher; ties count half."""
    others = np.sort(score[~wanted])
    below = np.searchsorted(others, score[wanted], "left")
    up_to = np.searchsorted(others, score[wanted], "right")
    return float((below + up_to).sum() / (2.0 * len(below) * len(others)))


def majority(labels: np.ndarray, topic: np.ndarray) -> dict[int, int]:
    """The topic of most records of each label; of equals the one that came first."""
    pairs, counts = np.unique(np.stack([labels, topic], axis=1), axis=0, return_counts=True)
    found: dict[int, int] = {}
    for i in np.lexsort((pairs[:, 1], -counts)):
        found.setdefault(int(pairs[i, 0]), int(pairs[i, 1]))
    return found


def right(told: Told) -> np.ndarray:
    """Whether the announced cluster turned out to be one of the record's topic, shape (n,).

    A cluster's topic is that of most of the records which have its label in the end; of a label that
    none has any more, of most of those that it was first announced for.
    """
    topics = majority(told.first, told.topic) | majority(told.newest, told.topic)
    return np.asarray(np.array([topics[label] for label in told.first.tolist()]) == told.topic)


def bin_of(probability: np.ndarray) -> np.ndarray:
    """Which of ten equal bins each probability is in, shape (n,)."""
    return np.minimum((probability * BINS).astype(np.int64), BINS - 1)


def by_bin(probability: np.ndarray, values: np.ndarray) -> list[float]:
    """The mean of values of shape (n,) in each of ten equal bins of probability; NaN in an empty one."""
    at = bin_of(probability)
    return [float(values[at == b].mean()) if (at == b).any() else float("nan") for b in range(BINS)]


def calibration_error(probability: np.ndarray, came_true: np.ndarray) -> float:
    """The mean over all records of |mean probability - share that came true| of their bin, in [0, 1]."""
    at = bin_of(probability)
    gaps = np.bincount(at, probability) - np.bincount(at, came_true)
    return float(np.abs(gaps).sum() / len(probability))


def show_reliability(name: str, told: Told) -> None:
    """Print a corpus's table."""
    p, outcomes = told.probability, (right(told), told.first == told.newest)
    records = np.bincount(bin_of(p), minlength=BINS).tolist()
    shares = [by_bin(p, values) for values in (p, *outcomes)]
    rows: list[tuple[object, ...]] = [
        (
            f"{b / BINS:.1f} to {(b + 1) / BINS:.1f}",
            records[b],
            *(f"{share[b]:.3f}" if records[b] else "-" for share in shares),
        )
        for b in range(BINS)
    ]
    errors = (f"{calibration_error(p, came_true):.3f}" for came_true in outcomes)
    rows.append(("expected calibration error", len(p), "", *errors))
    columns = "probability", "records", "mean", "right topic", "final label"
    show(f"{name}: announced probability, and what came true", columns, rows)


def calibration(told: Told, wanted: np.ndarray) -> list[str]:
    """The sums of both probabilities of something new, and their calibration errors."""
    both = told.new_probability, told.lasting_probability
    return [f"{p.sum():.0f}" for p in both] + [f"{calibration_error(p, wanted):.4f}" for p in both]


def stability(told: Told) -> list[str]:
    """Of ``stability``: the share of answers that stayed, its calibration error, and two mean squares."""
    stayed = ~told.revised
    squares = [float(np.mean((p - stayed) ** 2)) for p in (told.stability, stayed.mean())]
    error = calibration_error(told.stability, stayed)
    return [f"{stayed.mean():.3f}", f"{error:.4f}", *(f"{square:.4f}" for square in squares)]


def confidence(told: Told, count: int, seed: int) -> tuple[float, float, float, float]:
    """With the topics of ``count`` records known: of how many others ``confidence`` is told, and how well.

    That share, the share of these that have the topic of their cluster's labels so far, and the calibration
    errors of ``probability`` and of ``confidence``.
    """
    known = np.zeros(len(told.topic), bool)
    known[np.random.default_rng(seed).permutation(len(known))[:count]] = True
    place = {seq: i for i, seq in enumerate(sorted({answer.seq for answer in told.answers}))}
    held, rows = Confidence(), []
    for answer in told.answers:
        seq, cluster, p = answer.seq, answer.cluster, answer.probability
        if answer.revision:
            held.move(seq, cluster)
            continue
        i, (share, _) = place[seq], held.told(cluster, p)
        if share == share and (count == len(known) or not known[i]):
            rows.append((p, share, held.class_of(cluster) == str(told.topic[i])))
        if known[i]:
            held.learn(seq, cluster, p, str(told.topic[i]))
    announced, shares, right = np.array(rows).T
    asked = len(known) if count == len(known) else len(known) - count
    error, own = (calibration_error(chance, right) for chance in (announced, shares))
    return len(rows) / asked, float(right.mean()), error, own


def confidences(name: str, told: Told) -> list[tuple[object, ...]]:
    """Rows of a table: ``confidence`` by numbers of labels, means over draws of these."""
    rows: list[tuple[object, ...]] = []
    for count in (*LABELS, len(told.topic)):
        draws = [confidence(told, count, seed) for seed in range(DRAWS if count in LABELS else 1)]
        rows.append((name, count, *(f"{mean:.3f}" for mean in np.mean(draws, axis=0))))
    return rows


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA))
    parser.add_argument("--beam", type=int, default=16)
    options = parser.parse_args()
    warm()
    alarms: list[tuple[object, ...]] = []
    calibrated: list[tuple[object, ...]] = []
    stable: list[tuple[object, ...]] = []
    sure: list[tuple[object, ...]] = []
    for name in options.corpora:
        told = told_of(documents(name), options.beam)
        wanted = firsts(told.topic)
        scores = told.new_probability, -told.log_predictive, told.novelty
        alarms.append((name, int(wanted.sum()), *(f"{auc(score, wanted):.3f}" for score in scores)))
        calibrated.append((name, int(wanted.sum()), *calibration(told, wanted)))
        stable.append((name, *stability(told)))
        sure += confidences(name, told)
        show_reliability(name, told)
    show(
        "stability: answers that were never revised",
        ("corpus", "stayed", "calibration error", "mean square", "mean square of the share"),
        stable,
    )
    show(
        "confidence: answers whose cluster has the record's topic by the labels so far",
        ("corpus", "labels", "told", "right", "error of probability", "of confidence"),
        sure,
    )
    show(
        "first record of a topic: sum of the probabilities, and their calibration error",
        (
            "corpus",
            "topics",
            "new_probability",
            "lasting_probability",
            "new_probability",
            "lasting_probability",
        ),
        calibrated,
    )
    show(
        "first record of a topic: area under the ROC curve",
        ("corpus", "topics", "new_probability", "-log_predictive", "novelty"),
        alarms,
    )


if __name__ == "__main__":
    main()
