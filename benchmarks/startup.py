"""Wall time until ``streamdp`` says something: its help, and the first assignment of ``consume``."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time

from benchmarks.workloads import clean_environment, median_of, show, streamdp, timed, warm

RECORD = b'{"id": "1", "text": "ferry fire in Bergen harbour"}\n'


def help_seconds() -> float:
    """Until ``--help`` has ended."""
    run = {"check": True, "stdout": subprocess.DEVNULL, "env": clean_environment()}
    return timed(lambda: subprocess.run(streamdp("--help"), **run), time.perf_counter)  # type: ignore[call-overload]


def first_answer_seconds(**environment: str) -> float:
    """From the start of the process to the first line of its output, the record being there at once."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        process = subprocess.Popen(
            streamdp("consume", "--file", "-"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=clean_environment(**environment),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(RECORD)
        process.stdin.flush()
        line = process.stdout.readline()
        seconds = time.perf_counter() - started
        process.stdin.close()
        process.stdout.read()
        process.wait()
        if b'"cluster"' not in line:
            raise RuntimeError(f"no assignment came, but {line!r}")
        return seconds


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of which the median counts")
    parser.add_argument("--no-cold", action="store_true", help="leave out the run that compiles everything")
    options = parser.parse_args()
    warm()
    rows: list[tuple[object, ...]] = [
        ("streamdp --help", f"{median_of(options.runs, help_seconds):.2f}"),
        ("first assignment, kernels cached", f"{median_of(options.runs, first_answer_seconds):.2f}"),
    ]
    if not options.no_cold:
        with tempfile.TemporaryDirectory() as empty:
            cold = first_answer_seconds(STREAMDP_CACHE_DIR=empty)
        rows.append(("first assignment, empty cache", f"{cold:.1f}"))
    show("from the start of the process", ("", "wall s"), rows)


if __name__ == "__main__":
    main()
