"""An earlier checkout beside this one, in one run: rates, latencies, memory.

Each figure comes from a process of its own that imports ``streamdp`` from one of the checkouts, the two in
turn; kernels are compiled before what is timed. What an earlier one did not do yet (second looks, following
the stream) is also left out here, with ``second_look`` 0. ``--only vectors`` measures
vectors of 16 numbers, and embeddings of 384 with ``normalise``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.compile_time import environment
from benchmarks.embeddings import topics
from benchmarks.tables import show
from benchmarks.workloads import documents

TIMED = Path(__file__).resolve().with_name("before_timed.py")
BATCH = 500
FIRST = 2_000
"""Records that come before the clock starts."""
BARE = {"second_look": 0}
"""Settings without what came later."""


class Case(NamedTuple):
    """What is timed: records of a set, so many at once, under these settings."""

    name: str
    data: str
    records: int
    step: int
    settings: dict[str, Any]


CASES = (
    Case("tweets_t by 500, beam 1", "tweets_t", 30_000, BATCH, {"beam": 1}),
    Case("tweets_t by 500, beam 16", "tweets_t", 30_000, BATCH, {"beam": 16}),
    Case("reuters21578 by 500, beam 16", "reuters21578", 8_000, BATCH, {"beam": 16}),
    Case("tweets_t one at a time, beam 16", "tweets_t", 20_000, 1, {"beam": 16}),
    Case("vectors of 16 by 500", "vectors", 40_000, BATCH, {}),
    Case("vectors of 16 one at a time", "vectors", 20_000, 1, {}),
    Case("embeddings by 500", "embeddings", 12_000, BATCH, {"normalise": True}),
    Case("embeddings one at a time", "embeddings", 12_000, 1, {"normalise": True}),
)
"""The last four are called vectors, too."""

CLUSTERS, DIMENSION = 20, 16
TOPICS, WIDE = 200, 384
"""Of the mixture of Gaussians, and of embeddings."""


def run(checkout: Path, cache: str, path: str, case: Case, count: int, bare: bool) -> dict[str, float]:
    """Time so many records of a case in a process of its own."""
    settings = case.settings | (BARE if bare else {})
    done = subprocess.run(
        [sys.executable, "-P", str(TIMED), json.dumps([path, count, FIRST, case.step, settings])],
        env=environment(checkout, cache),
        check=True,
        capture_output=True,
    )
    return dict(json.loads(done.stdout))


def of_case(against: Path, folder: str, case: Case, turns: int) -> list[dict[str, float]]:
    """Medians of the earlier checkout, of this one without what came later, and of this one, in turns."""
    here, path = TIMED.parents[1], write(case.data, folder)
    who = (
        (against, f"{folder}/before", False),
        (here, f"{folder}/after", True),
        (here, f"{folder}/after", False),
    )
    for checkout, cache, bare in who:  # compiles
        run(checkout, cache, path, case, FIRST + BATCH, bare)
    found = [
        [run(checkout, cache, path, case, case.records, bare) for checkout, cache, bare in who]
        for _ in range(turns)
    ]
    return [
        {name: float(np.median([each[name] for each in runs])) for name in runs[0]}
        for runs in zip(*found, strict=True)
    ]


def write(name: str, folder: str) -> str:
    """A set as JSON lines; the file."""
    path = Path(folder, f"{name}.jsonl")
    with path.open("w") as file:
        for record in records_of(name):
            file.write(json.dumps(record) + "\n")
    return str(path)


def records_of(name: str) -> Iterator[dict[str, Any]]:
    """The records of a set."""
    if name not in ("vectors", "embeddings"):
        yield from ({"id": read.id, "time": read.time, "text": read.text} for read in documents(name))
        return
    most = max(case.records for case in CASES if case.data == name)
    if name == "vectors":
        rng = np.random.default_rng(1)
        centres = rng.normal(0.0, 4.0, (CLUSTERS, DIMENSION))
        rows = centres[rng.integers(0, CLUSTERS, most)] + rng.normal(size=(most, DIMENSION))
    else:
        rows = topics(most, WIDE, TOPICS, 0.2)[0]
    yield from ({"id": str(i), "time": float(i), "vector": row} for i, row in enumerate(rows.tolist()))


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True, metavar="PATH", help="an earlier checkout")
    parser.add_argument("--only", metavar="WORD", default="", help="cases of this name, or vectors")
    parser.add_argument("--turns", type=int, default=3, help="runs of each, of which the median counts")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            kind = "vectors" if case.data == "embeddings" else ""
            if options.only not in f"{case.name} {kind}":
                continue
            which = of_case(options.against.resolve(), folder, case, options.turns)
            before = which[0]["rate"]
            rates = (f"{each['rate']:,.0f} ({each['rate'] / before:.2f})" for each in which)
            rows.append((f"{case.name}: records / CPU s", *rates))
            if case.step == 1:
                for part in ("p50", "p99", "p99.9", "longest"):
                    rows.append((f"{case.name}: {part} ms", *(f"{each[part]:.2f}" for each in which)))
            else:
                rows.append((f"{case.name}: most MiB", *(f"{each['MiB']:.0f}" for each in which)))
    show("an earlier checkout and this one", ("", "before", "after, alike", "after, defaults"), rows)


if __name__ == "__main__":
    main()
