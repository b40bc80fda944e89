"""Refinement inside the stream: agreement with the truth, the gap to many sweeps, cost and latency."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.latency import one_by_one, percentiles
from benchmarks.papers.problems import digits, nips
from benchmarks.quality import PEERS
from benchmarks.workloads import CHUNK, documents, records_of, show
from streamdp.engine import Engine
from streamdp.offline.problem import Problem
from streamdp.offline.samplers import Gibbs, LinkGibbs
from streamdp.offline.schedule import Budget, run
from streamdp.priors import DistanceDependent
from streamdp.records import Answers, Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

CORPORA = [name for name in PEERS if name != "reuters21578"]
PASSES: dict[str, dict[str, Any]] = {
    "without": {},
    "1,000 / 5,000": {"refine_every": 1000, "refine_moves": 5000},
    "2,500 / 20,000": {"refine_every": 2500},
}
"""``refine_every`` / ``refine_moves``."""
SWEEPS = 60


class Run(NamedTuple):
    """First and newest label of each record, the engine at the end of the stream, CPU seconds."""

    first: np.ndarray
    newest: np.ndarray
    engine: Engine
    seconds: float


def streamed(records: Sequence[Any], engine: Engine, *, finish: bool = True) -> Run:
    """Feed records, and end the stream."""
    labels = np.full((2, len(records)), -1)

    def take(answers: Answers) -> None:
        for line in answers.assignments:
            if line.revision == 0:
                labels[0, line.seq] = line.cluster
            labels[1, line.seq] = line.cluster

    began = time.process_time()
    for start in range(0, len(records), CHUNK):
        take(engine.advance(records[start : start + CHUNK]))
    if finish:
        take(engine.finish())
    seconds = time.process_time() - began
    return Run(labels[0, : engine.seq], labels[1, : engine.seq], engine, seconds)


def agreed(names: list[str]) -> None:
    """NMI, clusters and CPU seconds under default settings."""
    rows = []
    for name in names:
        corpus = documents(name)
        records = records_of(corpus)
        for told, settings in PASSES.items():
            found = streamed(records, Engine(Settings(**settings)))
            kept = [c for c, r in zip(corpus, records, strict=True) if r.value.strip()]
            truth = np.unique([str(c.cluster) for c in kept], return_inverse=True)[1][: len(found.first)]
            scores = [f"{agreement(x, truth).nmi:.4f}" for x in (found.first, found.newest)]
            refined = int(found.engine.refined().get("records_refined", 0))
            clusters, joint = len(set(found.newest.tolist())), f"{found.engine.log_joint:,.0f}"
            rows.append((name, told, *scores, clusters, joint, refined, f"{found.seconds:.1f}"))
    titles = ("corpus", "refined every / moves", "NMI first", "newest", "K", "log joint", "refined", "CPU s")
    show("Agreement with the truth", titles, rows)


class Case(NamedTuple):
    """Records, and the model of an engine for them."""

    records: list[Any]
    model: dict[str, Any]


def cases(quick: bool) -> dict[str, Case]:
    """The sets of the papers under their models, and a corpus under the default one."""
    papers, vectors = nips(), digits(3_000 if quick else 12_000)
    assert vectors.data.vectors is not None
    offsets, words, counts = papers.data.offsets, papers.data.words.tolist(), papers.data.counts.tolist()
    bags = [
        {f"w{w}": float(c) for w, c in zip(words[a:b], counts[a:b], strict=True)}
        for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)
    ]
    tweets = records_of(documents("tweets_t"))[: 3_000 if quick else None]
    rows = vectors.data.vectors.tolist()
    return {
        "NIPS": Case(bags, {"prior": papers.prior, "likelihood": papers.likelihood}),
        "MNIST": Case(rows, {"prior": vectors.prior, "likelihood": vectors.likelihood}),
        "tweets_t": Case(list(tweets), {}),
    }


def gaps(quick: bool) -> None:
    """Of the gap between greedy search and many sweeps from there, what a stream closes by itself."""
    rows = []
    for name, case in cases(quick).items():
        n = len(case.records)
        every, most = (512, n) if n < 5000 else (2500, 5000)

        def engine(case: Case = case, **settings: Any) -> Engine:
            return Engine(Settings(**settings), **case.model)

        streamed(case.records[:1700], engine(refine_every=512))  # compiles
        greedy = streamed(case.records, engine(beam=1, second_look=0, retain=n), finish=False)
        stream = greedy.engine.stream()
        assert stream is not None
        likelihood, least = stream.search.likelihood, greedy.seconds
        problem = Problem(stream.held.batch, likelihood, stream.prior, stream.settings, base=stream.base)
        chain = problem.chain(0, greedy.newest)
        low, move = chain.log_joint, LinkGibbs() if isinstance(stream.prior, DistanceDependent) else Gibbs()
        move(problem.chain(1, greedy.newest))
        began = time.process_time()
        _, best = run(chain, move, Budget(SWEEPS))
        long, gap = time.process_time() - began, best.log_joint - low
        rows.append((name, "greedy", *_cells(low, 0.0, least, least)))
        options: dict[str, dict[str, Any]] = {"defaults": {}}
        for width, looks in ((1, 0), (16, 1000)):
            for sweeps in (1, 2, 4, 8):
                told = f"beam {width}, every {every:,} {sweeps} x {most:,}"
                moves = {"refine_every": every, "refine_moves": sweeps * most}
                options[told] = {**moves, "beam": width, "second_look": looks}
        for told, settings in options.items():
            found = streamed(case.records, engine(**settings))
            joint = problem.chain(0, found.newest).log_joint
            rows.append((name, told, *_cells(joint, (joint - low) / gap, found.seconds, least)))
        rows.append((name, f"greedy and {SWEEPS} sweeps", *_cells(best.log_joint, 1.0, long + least, least)))
    show("Log joint", ("set", "search", "log joint", "of the gap", "CPU s", "of greedy's"), rows)


def _cells(joint: float, share: float, seconds: float, least: float) -> tuple[str, ...]:
    return f"{joint:,.0f}", f"{100 * share:.0f} %", f"{seconds:.2f}", f"{seconds / least:.1f}"


def latencies(quick: bool) -> None:
    """Wall and CPU time of ``advance``, one record at a time."""
    records: list[Record] = list(records_of(documents("tweets_t")))[: 5_000 if quick else None]
    rows = []
    for told, settings in PASSES.items():
        rows.append((told, *percentiles(one_by_one(Engine(Settings(**settings)), records))))
    show("One record at a time", ("refined every / moves", "p50 ms", "p99", "p99.9", "max"), rows)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=("agreement", "gap", "latency"))
    parser.add_argument("--corpora", nargs="+", default=CORPORA, choices=CORPORA)
    parser.add_argument("--quick", action="store_true", help="fewer records")
    options = parser.parse_args()
    for settings in PASSES.values():  # compiles
        few = records_of(documents("tweets_t")[:1600])
        streamed(few, Engine(Settings(**{**settings, **({"refine_every": 512} if settings else {})})))
    if options.only in (None, "agreement"):
        agreed(options.corpora)
    if options.only in (None, "gap"):
        gaps(options.quick)
    if options.only in (None, "latency"):
        latencies(options.quick)


if __name__ == "__main__":
    main()
