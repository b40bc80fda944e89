"""What compiling costs: time until the first answer of a fresh process that has no compiled kernels.

But those in ``streamdp/prebuilt``, where a checkout (or a wheel that was unpacked) has them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from statistics import median
from typing import NamedTuple

import psutil

from benchmarks.tables import show

TEXT = b"ferry fire in Bergen harbour\n"
VECTOR = b'{"vector": [0.5, -1.25, 2.0, 0.0, 1.5, -0.75]}\n'
LINE = b"2026-01-05 10:00:00 INFO worker: request 17 took 3 ms\n"
EVENTS = ("ferry fire", "train drivers' strike", "budget vote", "bridge closed by a storm", "power cut")
PLACES = ("Bergen", "Oslo", "Moss", "Hamar", "Narvik", "Larvik", "Molde", "Vadsø", "Alta", "Skien")
TEXTS = "".join(f"{event} in {place}\n" for place, event in product(PLACES, EVENTS))


class Case(NamedTuple):
    """A command in a folder of its own, and what it reads from standard input."""

    name: str
    arguments: tuple[str, ...]
    given: bytes


CASES = (
    Case("consume, a line of text", ("consume", "--file", "-", "--format", "text"), TEXT),
    Case("consume, a vector", ("consume", "--file", "-", "--warmup", "0"), VECTOR),
    Case("consume, a line of a log", ("consume", "--file", "-", "--format", "log"), LINE),
    Case(
        "fit, 50 texts", ("fit", "texts.txt", "--format", "text", "--method", "gibbs", "--budget", "1"), b""
    ),
)


class Cost(NamedTuple):
    """Seconds from the start of the process to its first answer, and the most memory that it ever held."""

    cpu: float
    wall: float
    peak: int


def environment(checkout: Path, cache: str) -> dict[str, str]:
    """That of a process which imports from a checkout, with compiled kernels in a folder of its own."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STREAMDP_")}
    paths = os.pathsep.join((str(checkout), str(checkout / "connectors")))
    # kernels with a cache of numba's own would else be found beside their sources
    return kept | {"PYTHONPATH": paths, "STREAMDP_CACHE_DIR": cache, "NUMBA_CACHE_DIR": cache}


def cold(checkout: Path, case: Case) -> Cost:
    """Run a case from a checkout, with a cache of kernels that is empty."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as said:
        Path(folder, "texts.txt").write_text(TEXTS, "utf-8")
        started = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "streamdp", *case.arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            cwd=folder,
            env=environment(checkout, str(Path(folder, "cache"))),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(case.given)
        process.stdin.flush()
        line = process.stdout.readline()
        wall = time.perf_counter() - started
        if b'"cluster"' not in line:
            process.kill()
            process.wait()
            said.seek(0)
            raise RuntimeError(f"no assignment came from {checkout}, but {line!r} and {said.read().decode()}")
        times = psutil.Process(process.pid).cpu_times()
        process.stdin.close()
        process.stdout.read()
        # of all children, this one alone: getrusage would give the largest so far
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return Cost(times.user + times.system, wall, used.ru_maxrss * 1024)


def measured(checkout: Path, case: Case, runs: int) -> Cost:
    """The median of several runs, each figure by itself."""
    costs = [cold(checkout.resolve(), case) for _ in range(runs)]
    return Cost(
        median(c.cpu for c in costs), median(c.wall for c in costs), round(median(c.peak for c in costs))
    )


def rows(case: Case, costs: list[Cost]) -> list[tuple[str, ...]]:
    """A row for each figure, with the ratio of the last to the first where there are two."""
    return [
        _row(f"{case.name}: CPU s", [cost.cpu for cost in costs], 1),
        _row(f"{case.name}: wall s", [cost.wall for cost in costs], 1),
        _row(f"{case.name}: peak MiB", [cost.peak / 2**20 for cost in costs], 0),
    ]


def _row(name: str, figures: list[float], decimals: int) -> tuple[str, ...]:
    ratio = [f"{figures[-1] / figures[0]:.2f}"] if len(figures) > 1 else []
    return name, *(f"{figure:.{decimals}f}" for figure in figures), *ratio


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("path", nargs="?", type=Path, default=here, help="a checkout (default: this one)")
    parser.add_argument("--against", type=Path, metavar="PATH", help="an earlier checkout beside it")
    parser.add_argument("--runs", type=int, default=1, help="runs of which the median counts")
    known = "those whose name holds one of these words, as an earlier checkout may not know all"
    parser.add_argument("--cases", nargs="+", default=[""], metavar="WORD", help=known)
    options = parser.parse_args()
    checkouts = [path for path in (options.against, options.path) if path is not None]
    columns = ["before", "after", "ratio"] if len(checkouts) > 1 else [str(options.path)]
    found = [
        row
        for case in CASES
        if any(word in case.name for word in options.cases)
        for row in rows(case, [measured(checkout, case, options.runs) for checkout in checkouts])
    ]
    show("without compiled kernels, until the first answer", ("", *columns), found)


if __name__ == "__main__":
    main()
