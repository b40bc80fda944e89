"""Agreement with the truth before and after a refinement of the last records, older ones being frozen."""

from __future__ import annotations

import argparse
import time

import numpy as np

from benchmarks.quality import PEERS, truth_of
from benchmarks.workloads import CHUNK, documents, records_of, show, warm
from streamdp.engine import Engine
from streamdp.offline.plan import Plan
from streamdp.offline.refine import Refinement, refine
from streamdp.records import Assignment, Record
from streamdp.scoring.agreement import agreement
from streamdp.settings import Settings

CORPORA = [name for name in PEERS if name != "reuters21578"]


def streamed(records: list[Record], settings: Settings) -> tuple[Engine, np.ndarray, np.ndarray]:
    """The engine, and where each of its records stands in the file, and its newest label."""
    engine = Engine(settings)
    places, labels = np.full(len(records), -1), np.full(len(records), -1)
    for start in range(0, len(records), CHUNK):
        for line in engine.advance(records[start : start + CHUNK]).lines:
            if isinstance(line, Assignment):
                places[line.seq] = line.position["line"] - 1
                labels[line.seq] = line.cluster
    return engine, places[: engine.seq], labels[: engine.seq]


def after(found: Refinement, labels: np.ndarray) -> np.ndarray:
    """The labels that a refinement leaves all records with."""
    refined = labels.copy()
    for line in found.merged:
        refined[labels == line.cluster] = line.other
    for change in found.changes:
        refined[change.seq] = change.cluster
    return refined


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", nargs="+", default=CORPORA, choices=CORPORA)
    parser.add_argument("--sweeps", nargs="+", type=int, default=[10])
    parser.add_argument("--retain", type=int, default=5000)
    parser.add_argument("--records", type=int, help="of each corpus only the first so many")
    options = parser.parse_args()
    warm()
    rows: list[tuple[object, ...]] = []
    for name in options.corpora:
        corpus = documents(name)[: options.records]
        engine, places, before = streamed(records_of(corpus), Settings(retain=options.retain))
        truth = truth_of([corpus[i] for i in places.tolist()])
        for sweeps in options.sweeps:
            began = time.process_time()
            found = refine(engine, Plan("gibbs", rounds=sweeps, seconds=None, hyper=False))
            seconds = time.process_time() - began
            labels, free = after(found, before), found.task.seqs
            scores = [
                f"{agreement(each[among], truth[among]).nmi:.3f}"
                for among in (slice(None), free)
                for each in (before, labels)
            ]
            rows.append(
                (
                    name,
                    sweeps,
                    len(free),
                    len(found.task.names),
                    len(found.changes),
                    *scores,
                    f"{found.log_joint - found.started:,.0f}",
                    f"{seconds:.1f}",
                )
            )
    columns = "free", "anchors", "changes", "NMI", "refined", "of free", "refined", "nats", "CPU s"
    show("default settings, refined by link Gibbs", ("corpus", "sweeps", *columns), rows)


if __name__ == "__main__":
    main()
