"""An earlier checkout beside this one, in one run: rates, latencies, memory.

Each figure comes from a process of its own that imports ``streamdp`` from one of the checkouts, the two in
turn; kernels are compiled before what is timed. What an earlier one did not do yet (second looks, following
the stream) is also left out here, with ``second_look`` 0 and ``adapt`` false.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.compile_time import environment
from benchmarks.tables import show
from benchmarks.workloads import documents

TIMED = Path(__file__).resolve().with_name("before_timed.py")
BATCH = 500
FIRST = 2_000
"""Records that come before the clock starts."""
BARE = {"second_look": 0, "adapt": False}
"""Settings without what came later."""


class Case(NamedTuple):
    """What is timed: records of a set, so many at once, under a beam."""

    name: str
    data: str
    records: int
    step: int
    beam: int


CASES = (
    Case("tweets_t by 500, beam 1", "tweets_t", 30_000, BATCH, 1),
    Case("tweets_t by 500, beam 16", "tweets_t", 30_000, BATCH, 16),
    Case("reuters21578 by 500, beam 16", "reuters21578", 8_000, BATCH, 16),
    Case("tweets_t one at a time, beam 16", "tweets_t", 20_000, 1, 16),
)


def run(checkout: Path, cache: str, path: str, case: Case, settings: dict[str, Any]) -> dict[str, float]:
    """The better of two runs, after one that compiles."""
    found = []
    for count in (FIRST + BATCH, case.records, case.records):
        given = json.dumps([path, count, FIRST, case.step, {"beam": case.beam} | settings])
        done = subprocess.run(
            [sys.executable, "-P", str(TIMED), given],
            env=environment(checkout, cache),
            check=True,
            capture_output=True,
        )
        found.append(json.loads(done.stdout))
    return max(found[1:], key=lambda each: each["rate"])


def write(name: str, folder: str) -> str:
    """A set as JSON lines; the file."""
    path = Path(folder, f"{name}.jsonl")
    with path.open("w") as file:
        for read in documents(name):
            file.write(json.dumps({"id": read.id, "time": read.time, "text": read.text}) + "\n")
    return str(path)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True, metavar="PATH", help="an earlier checkout")
    options = parser.parse_args()
    here, rows = TIMED.parents[1], []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            path = write(case.data, folder)
            before = run(options.against.resolve(), f"{folder}/before", path, case, {})
            after = run(here, f"{folder}/after", path, case, {})
            bare = run(here, f"{folder}/after", path, case, BARE)
            which = (before, bare, after)
            rows.append((f"{case.name}: records / CPU s", *(f"{each['rate']:,.0f}" for each in which)))
            if case.step == 1:
                for part in ("p50", "p99", "p99.9"):
                    rows.append((f"{case.name}: {part} ms", *(f"{each[part]:.2f}" for each in which)))
            else:
                rows.append((f"{case.name}: most MiB", *(f"{each['MiB']:.0f}" for each in which)))
    show("an earlier checkout and this one", ("", "before", "after, alike", "after, defaults"), rows)


if __name__ == "__main__":
    main()
