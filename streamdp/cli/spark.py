"""``spark``: engines in Spark for the keys of a topic or a folder, or for the shards of one stream."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from streamdp.cli.options import SparkJob
from streamdp.errors import ConfigError, Exit, StreamdpError, how_to_install
from streamdp.run.messages import say
from streamdp.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
"""The connector of Spark; its version is that of Spark."""


def run(settings: Settings, job: SparkJob) -> None:
    """Run a query until it is stopped, or (``once``) has read what is there."""
    warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
    try:
        from pyspark.errors import PySparkException

        from streamdp.spark import cluster
    except ImportError as error:
        missing = (error.name or "").partition(".")[0]
        raise StreamdpError(
            f"spark needs the package {missing}: {how_to_install('spark')}", Exit.UNAVAILABLE
        ) from None
    spark = _session(job)
    try:
        rows, keys = _rows(spark, job), () if job.key is None else ("streamdp_key",)
        _check_key(rows, job)
        answers = cluster(rows, settings, key=keys, shards=job.shards, time_to_live=job.time_to_live)
        _follow(answers.withColumnRenamed("streamdp_key", "key"), job)
    except PySparkException as error:
        raise _explained(error, job) from error
    finally:
        spark.stop()


def _session(job: SparkJob) -> SparkSession:
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        raise StreamdpError("spark needs Java 17 or newer, and there is none", Exit.UNAVAILABLE)
    builder = SparkSession.builder.appName(f"streamdp {job.topic or job.folder}")
    for name, value in _defaults(job).items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise StreamdpError(
            f"Spark does not start; what it said stands above (does this machine reach {PACKAGE}?)"
            if job.topic is not None
            else "Spark does not start; what it said stands above",
            Exit.UNAVAILABLE,
        ) from error
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _defaults(job: SparkJob) -> dict[str, str]:
    """Settings of Spark, without those that ``spark-submit`` was given."""
    from pyspark import SparkConf
    from pyspark.version import __version__

    chosen = {"spark.python.daemon.module": "streamdp.spark.daemon", "spark.ui.showConsoleProgress": "false"}
    if job.partitions is not None:
        chosen["spark.sql.shuffle.partitions"] = str(job.partitions)
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        submitted = SparkConf()
        return {name: value for name, value in chosen.items() if not submitted.contains(name)}
    chosen["spark.master"] = job.master or "local[*]"
    if chosen["spark.master"].startswith("local"):
        chosen.setdefault("spark.sql.shuffle.partitions", str(2 * (os.cpu_count() or 1)))
    if job.topic is not None:
        chosen["spark.jars.packages"] = f"{PACKAGE}:{__version__}"
    return chosen


def _rows(spark: SparkSession, job: SparkJob) -> DataFrame:
    import pyspark.sql.functions as F  # noqa: N812

    if job.topic is not None:
        reader = spark.readStream.format("kafka").option("subscribe", job.topic)
        reader = reader.option("kafka.bootstrap.servers", job.bootstrap)
        reader = reader.option("startingOffsets", job.start)
        if job.rows is not None:
            reader = reader.option("maxOffsetsPerTrigger", job.rows)
        rows = reader.load()
    else:
        rows = spark.readStream.format("text").option("maxFilesPerTrigger", 1).load(job.folder)
    if job.key is None:
        return rows
    path = "$." + job.key
    return rows.withColumn("streamdp_key", F.get_json_object(F.col("value").cast("string"), path))


def _check_key(rows: DataFrame, job: SparkJob) -> None:
    """Look at the first micro-batch of a new query alone. ConfigError where no row of it has the key.

    Not of a topic from its latest records on: the query would begin after those that were looked at.
    """
    of_latest = job.topic is not None and job.start == "latest"
    if job.key is None or of_latest or "://" in job.checkpoint or Path(job.checkpoint, "offsets").exists():
        return
    first: list[tuple[bool, str]] = []

    def look(batch: DataFrame, _: int) -> None:
        if not first and (row := batch.first()) is not None:
            known = batch.filter("streamdp_key is not null").first() is not None
            first.append((known, bytes(row["value"] or b"").decode("utf-8", "replace")))

    with TemporaryDirectory() as folder:
        writer = rows.selectExpr("streamdp_key", "cast(value as binary) value").writeStream
        writer = writer.foreachBatch(look).option("checkpointLocation", folder)
        query: Any = (writer.trigger(availableNow=True) if job.once else writer).start()
        while query.isActive and not first:
            query.awaitTermination(0.2)
        query.stop()
    if query.exception() is not None:
        raise query.exception()
    if first and not first[0][0]:
        with suppress(ValueError, AttributeError):
            there = ", ".join(map(repr, json.loads(first[0][1]).keys()))
            raise ConfigError(
                f"--key {job.key}: no record of the first batch has this field; the first has {there}"
            )
        raise ConfigError(
            f"--key {job.key}: no record of the first batch has this field, nor is one an object"
        )


def _follow(answers: DataFrame, job: SparkJob) -> None:
    """Run the query and report each micro-batch. One that a signal interrupts is done again later."""
    query: Any = (
        answers.writeStream.format("parquet")
        .option("checkpointLocation", job.checkpoint)
        .option("path", job.output)
    )
    query = (query.trigger(availableNow=True) if job.once else query).start()
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    reported = -1
    while not asked.is_set() and query.isActive:
        query.awaitTermination(0.5)
        for progress in query.recentProgress:
            if progress.batchId > reported and progress.numInputRows:
                seconds = progress.batchDuration / 1000
                say(f"batch {progress.batchId}: {progress.numInputRows:,} rows in {seconds:.1f} s")
            reported = max(reported, progress.batchId)
    query.stop()
    if query.exception() is not None:
        raise query.exception()


def _explained(error: Any, job: SparkJob) -> StreamdpError:
    """The error in one line: the message of our code on a worker, else the first of Spark's."""
    text = str(error)
    ours = [line for line in text.splitlines() if line.startswith("streamdp.")]
    if ours:
        return StreamdpError(ours[-1].partition(": ")[2], Exit.CONFIG)
    if "data source: kafka" in text.lower():
        return StreamdpError(
            f"Spark has no connector for topics: submit with --packages {PACKAGE}:VERSION", Exit.UNAVAILABLE
        )
    if "PATH_NOT_FOUND" in text:
        return StreamdpError(f"{job.folder}: no such folder", Exit.NO_INPUT)
    return StreamdpError(f"Spark: {' '.join(text.split())[:300]}", Exit.UNAVAILABLE)
