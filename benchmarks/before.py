"""An earlier checkout beside this one, in one run: rates, latencies, memory and cold starts.

Each figure comes from a process of its own that imports ``streamdp`` from one of the checkouts, the two in
turn; kernels are compiled before what is timed. What an earlier one did not do yet (second looks, following
the stream) is also left out here, with ``second_look`` 0 and ``adapt`` false.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve()
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


def timed(path: str, count: int, step: int, settings: dict[str, Any]) -> dict[str, float]:
    """In a process of its own: records per CPU second, milliseconds a call, MiB."""
    import resource

    from streamdp.engine import Engine
    from streamdp.records import Record
    from streamdp.settings import Settings

    records = []
    with Path(path).open() as file:
        for number, line in zip(range(count), file, strict=False):
            read = json.loads(line)
            position = {"line": number + 1}
            records.append(Record(value=read["text"], position=position, time=read["time"], id=read["id"]))
    engine = Engine(Settings(**settings))
    for start in range(0, FIRST, step):
        engine.advance(records[start : start + step])
    calls = []
    for start in range(FIRST, len(records), step):
        began = time.process_time()
        engine.advance(records[start : start + step])
        calls.append(time.process_time() - began)
    p50, p99, p999 = 1000 * np.quantile(calls, (0.5, 0.99, 0.999))
    rate = (len(records) - FIRST) / sum(calls)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"rate": rate, "p50": p50, "p99": p99, "p99.9": p999, "MiB": most}


def environment(checkout: Path, cache: str) -> dict[str, str]:
    """That of a process which imports from a checkout, with kernels in a folder of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STREAMDP_")}
    paths = os.pathsep.join((str(checkout), str(checkout / "connectors")))
    return kept | {"PYTHONPATH": paths, "STREAMDP_CACHE_DIR": cache, "NUMBA_CACHE_DIR": cache}


def run(checkout: Path, cache: str, path: str, case: Case, settings: dict[str, Any]) -> dict[str, float]:
    """The better of two runs, after one that compiles."""
    found = []
    for count in (FIRST + BATCH, case.records, case.records):
        given = json.dumps([path, count, case.step, {"beam": case.beam} | settings])
        done = subprocess.run(
            [sys.executable, "-P", str(HERE), "--timed", given],
            env=environment(checkout, cache),
            check=True,
            capture_output=True,
        )
        found.append(json.loads(done.stdout))
    return max(found[1:], key=lambda each: each["rate"])


def write(name: str, folder: str) -> str:
    """A set as JSON lines; the file."""
    from benchmarks.workloads import documents

    path = Path(folder, f"{name}.jsonl")
    with path.open("w") as file:
        for read in documents(name):
            file.write(json.dumps({"id": read.id, "time": read.time, "text": read.text}) + "\n")
    return str(path)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, metavar="PATH", help="an earlier checkout")
    parser.add_argument("--timed", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.timed is not None:
        sys.stdout.write(json.dumps(timed(*json.loads(options.timed))))
        return
    from benchmarks.tables import show

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for case in CASES:
            path = write(case.data, folder)
            before = run(options.against.resolve(), f"{folder}/before", path, case, {})
            after = run(HERE.parents[1], f"{folder}/after", path, case, {})
            bare = run(HERE.parents[1], f"{folder}/after", path, case, BARE)
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
