"""CPU per record of keys or shards in Spark, the JVM's and the workers', beside ``consume`` of the same."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psutil

from benchmarks.workloads import documents, show
from streamdp.settings import Settings

FILES = 12


def write(folder: Path, keys: int, records: int) -> None:
    """Tweets, over and over, dealt to keys, a file for each micro-batch; all in one file as well."""
    (folder / "in").mkdir()
    texts = itertools.cycle([document.text for document in documents("tweets_t")])
    lines = [
        json.dumps({"key": f"k{n % keys}", "text": next(texts), "time": float(n), "id": n}) + "\n"
        for n in range(records)
    ]
    each = records // FILES
    for n in range(FILES):
        path = folder / "in" / f"{n:02}.json"
        path.write_text("".join(lines[n * each : (n + 1) * each]))
        os.utime(path, (n + 1, n + 1))
    (folder / "all.jsonl").write_text("".join(lines[: FILES * each]))


def consumed(folder: Path, beam: int) -> float:
    """CPU seconds of ``consume`` of all records as one stream, its start-up taken off."""

    def seconds(file: Path) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = (sys.executable, "-m", "streamdp", "consume", str(file), "--beam", str(beam), "--output")
        subprocess.run([*command, str(file) + ".out", "--overwrite"], check=True, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    few = folder / "few.jsonl"
    few.write_text("".join((folder / "all.jsonl").open().readlines()[:50]))
    seconds(few)
    return seconds(folder / "all.jsonl") - seconds(few)


class Clock:
    """CPU seconds of the JVM, and of Python workers."""

    def __init__(self) -> None:
        (self._jvm,) = [p for p in psutil.Process().children(recursive=True) if p.name() == "java"]

    def read(self) -> tuple[float, float]:
        """Both, those of workers that have ended too."""
        jvm, python = self._jvm.cpu_times(), 0.0
        for worker in self._jvm.children():
            for each in (worker, *worker.children(recursive=True)):
                times = each.cpu_times()
                python += times.user + times.system
            ended = worker.cpu_times()
            python += ended.children_user + ended.children_system
        return jvm.user + jvm.system, python


def in_spark(folder: Path, beam: int, shards: int | None) -> tuple[float, float, float]:
    """CPU seconds of the JVM and of workers, and bytes of state, after the first of the micro-batches."""
    from pyspark.sql import SparkSession

    from streamdp.spark import cluster, states

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder: Any = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", 4)
    builder = builder.config("spark.python.daemon.module", "streamdp.spark.daemon")
    spark = builder.config("spark.ui.enabled", "false").config("spark.driver.memory", "2g").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    rows = spark.readStream.schema("key string, id string, text string, time double")
    stream = rows.option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    keys = "key" if shards is None else ()
    answers = cluster(stream, Settings(beam=beam), key=keys, shards=shards)
    place = folder / "checkpoint"
    query = answers.writeStream.format("parquet").option("checkpointLocation", str(place))
    running = query.option("path", str(folder / "out")).trigger(availableNow=True).start()
    clock, begun = Clock(), None
    while running.isActive:
        running.awaitTermination(0.05)
        if begun is None and len(list((place / "commits").glob("[0-9]*"))) >= 2:
            begun = clock.read()
    ended = clock.read()
    assert begun is not None, "the query ended before it was looked at"
    operators = (0,) if shards is None else (0, 1)
    size = sum(len(row.snapshot) for each in operators for row in states(spark, place, each).collect())
    spark.stop()
    return ended[0] - begun[0], ended[1] - begun[1], size


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=120_000)
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument(
        "--shards", type=int, help="all as one stream over so many engines, in the place of keys"
    )
    parser.add_argument("--beam", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, options.keys, options.records)
        alone = 1e6 * consumed(folder, options.beam) / options.records
        jvm, python, size = in_spark(folder, options.beam, options.shards)
    over = f"{options.keys:,} keys" if options.shards is None else f"{options.shards:,} shards"
    counted = options.records * (FILES - 2) / FILES
    show(
        f"{options.records:,} records, {over}, beam {options.beam}, {FILES} micro-batches",
        ("", "us of CPU a record"),
        [
            ("consume, all of them one stream", f"{alone:.1f}"),
            ("Spark: JVM", f"{1e6 * jvm / counted:.1f}"),
            ("Spark: Python workers", f"{1e6 * python / counted:.1f}"),
            ("packed states, kB", f"{size / 1000:,.0f}"),
        ],
    )


if __name__ == "__main__":
    main()
