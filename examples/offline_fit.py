"""Cluster a finite set with samplers: how many clusters, how sure, and a stream that begins there.

python examples/offline_fit.py
"""

from __future__ import annotations

import random

import numpy as np

from streamdp.offline.fit import fit
from streamdp.offline.plan import Plan
from streamdp.records import Assignment, Record
from streamdp.settings import Settings

CENTRES = [(0.0, 0.0), (6.0, 0.0), (3.0, 5.0)]


def points(n: int, seed: int = 0) -> list[list[float]]:
    """Points around three centres."""
    rng = random.Random(seed)
    return [[rng.gauss(c, 1.0) for c in CENTRES[i % 3]] for i in range(n)]


def main() -> None:
    """Fit, diagnose, go on."""
    records = [Record(point, {"line": i + 1}) for i, point in enumerate(points(300))]
    settings = Settings(likelihood="gaussian", variance=1.0, mean_variance=10.0, concentration=0.5)
    found = fit(records, settings, Plan(rounds=200, seconds=None))
    print("sizes:", *np.bincount(found.labels))
    counts = np.bincount([len(set(draw.tolist())) for draw in found.draws])
    print("draws by number of clusters:", {k: int(n) for k, n in enumerate(counts) if n})
    doubtful = min(found.assignments, key=lambda line: line.probability)
    print(f"least sure: record {doubtful.seq}, with probability {doubtful.probability:.2f}")
    engine = found.to_engine()
    answers = engine.advance([Record([6.2, 0.1], {"line": 301}), Record([-9.0, 9.0], {"line": 302})])
    for line in answers.lines:
        if isinstance(line, Assignment):
            print(f"record {line.seq}: cluster {line.cluster}, new: {line.new}")


if __name__ == "__main__":
    main()
