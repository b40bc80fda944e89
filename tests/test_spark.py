"""Engines inside a real Spark: each key's answers are those of a run over that key's records alone."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd
import psutil
import pytest
from commands import call, environment, succeed, write_headlines
from feeds import Told, nothing
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession
from tables_of_vectors import write_folder

from benchmarks.sharded import Sharded
from streamdp import Engine, Record, Settings
from streamdp.errors import ConfigError, StreamdpError
from streamdp.spark import cluster, export_states
from streamdp.spark.keeping import Live, body_of, packed, token_after
from streamdp.spark.schema import Intake, rows_of
from streamdp.spark.schema import Row as Given
from streamdp.state import snapshot
from streamdp.state.snapshot import SnapshotError
from streamdp.state.stamp import FORMAT

HERE = Path(__file__).parent
SETTINGS = Settings(beam=4, retain=1500)
FLAGS = ("--beam", "4", "--retain", "1500")
TENANTS = ("acme", "borg", "cyber")
EACH = 600
WHOLE, SHARDS = Settings(beam=2, second_look=256, retain=1024), 3
SCHEMA = "tenant string, id string, text string, time double"


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """A session with two workers."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.python.daemon.module", "streamdp.spark.daemon")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of records of three tenants, the lines of each file in no order, and some that are none."""
    folder = tmp_path_factory.mktemp("spark")
    write_headlines(folder / "all.jsonl", EACH * len(TENANTS))
    records = [json.loads(line) for line in (folder / "all.jsonl").read_text().splitlines()]
    for n, record in enumerate(records):
        record["tenant"] = TENANTS[n % len(TENANTS)]
        del record["cluster"]
        if n % 97 == 5:
            record["text"] = " "
    whole = {tenant: [r for r in records if r["tenant"] == tenant] for tenant in TENANTS}
    for tenant, own in whole.items():
        _write(folder / f"{tenant}.jsonl", own)
    (folder / "in").mkdir()
    chance = random.Random(3)
    for n in range(6):
        part = records[n * len(records) // 6 : (n + 1) * len(records) // 6]
        chance.shuffle(part)
        _write(folder / "in" / f"{n}.json", part)
        os.utime(folder / "in" / f"{n}.json", (n + 1, n + 1))  # Spark takes the oldest first
    return folder


def _write(path: Path, records: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def expected(stream: Path, tenant: str, settings: Settings = SETTINGS, *, finish: bool) -> Told:
    """What an engine says of one tenant's records."""
    engine, intake = Engine(settings, with_events=True), Intake(settings)
    lines = (stream / f"{tenant}.jsonl").read_bytes().splitlines()
    _, records = intake.take(Given(line, (n,), None, 0, 0, None) for n, line in enumerate(lines))
    answers = nothing()
    answers.add(engine.advance(records))
    if finish:
        answers.add(engine.finish())
    return answers


def told(rows: list[Row]) -> dict[str, list[dict[str, Any]]]:
    """Rows by their kind, without columns that mean nothing for it."""
    found: dict[str, list[dict[str, Any]]] = {"assignment": [], "final": [], "event": [], "reject": []}
    for row in rows:
        plain = {name: value for name, value in row.asDict(True).items() if value is not None}
        plain.pop("tenant", None)
        found[plain.pop("kind")].append(plain)
    return found


def as_rows(answers: Told) -> dict[str, list[dict[str, Any]]]:
    """The same of an engine's answers, by a way of its own: their JSON."""
    found: dict[str, list[dict[str, Any]]] = {"assignment": [], "final": [], "event": [], "reject": []}
    for line in answers.lines:
        plain = json.loads(msgspec.json.encode(line))
        plain = {name: value for name, value in plain.items() if value is not None}
        if "final_through" in plain:
            found["final"].append(plain)
            continue
        plain["id"] = str(plain["id"])
        assert plain.pop("position") == {}
        found["assignment"].append(plain)
    for event in answers.events:
        plain = json.loads(msgspec.json.encode(event))
        plain["words"] = [{"word": word, "count": count} for word, count in plain["words"] or []] or None
        found["event"].append({name: value for name, value in plain.items() if value is not None})
    for reject in answers.rejects:
        found["reject"].append({"reason": reject.reason, "detail": reject.detail, "data": reject.data})
    return found


def in_order(kind: str, rows: list[dict[str, Any]]) -> list[Any]:
    """Rows in an order that does not depend on the files of a sink."""
    names = {"assignment": ("seq", "revision"), "final": ("final_through",)}
    return sorted(
        rows,
        key=lambda row: (
            [row[name] for name in names.get(kind, ())] or [json.dumps(row, sort_keys=True, default=repr)]
        ),
    )


def assert_same(found: list[Row], answers: Told) -> None:
    """Every number to its last bit."""
    got, wanted = told(found), as_rows(answers)
    for kind, rows in wanted.items():
        for row in [*got[kind], *rows]:
            if kind == "reject":
                row["data"] = json.loads(row["data"])
        assert in_order(kind, got[kind]) == in_order(kind, rows), kind


def streamed(
    spark: SparkSession, stream: Path, folder: Path, settings: Settings = SETTINGS, schema: str = SCHEMA
) -> DataFrame:
    """Run the query to the end of what is there; its answers."""
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(stream / "in"))
    return run_through(cluster(rows, settings, key="tenant"), folder)


def in_shards(spark: SparkSession, stream: Path, folder: Path) -> DataFrame:
    """The same with all records as one stream over three engines."""
    rows = spark.readStream.option("maxFilesPerTrigger", 1).text(str(stream / "in"))
    return run_through(cluster(rows, WHOLE, shards=SHARDS), folder)


def run_through(answers: DataFrame, folder: Path) -> DataFrame:
    """Run a query to the end of what is there."""
    query = (
        answers.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .option("path", str(folder / "out"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return answers.sparkSession.read.parquet(str(folder / "out"))


@pytest.fixture(scope="module")
def ran(spark: SparkSession, stream: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a query that was never stopped."""
    folder = tmp_path_factory.mktemp("ran")
    streamed(spark, stream, folder)
    return folder


@pytest.fixture(scope="module")
def sharded(spark: SparkSession, stream: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a query over shards that was never stopped."""
    folder = tmp_path_factory.mktemp("sharded")
    in_shards(spark, stream, folder)
    return folder


@pytest.mark.slow
def test_a_checkpoint_goes_on_with_rows_that_have_more_columns(
    spark: SparkSession, stream: Path, ran: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    for schema, files in ((SCHEMA, "[0-2].json"), (f"{SCHEMA}, language string, more double", "[3-5].json")):
        for path in (stream / "in").glob(files):
            shutil.copy2(path, tmp_path / "in")
        rows = streamed(spark, tmp_path, tmp_path / "run", schema=schema)
    whole = spark.read.parquet(str(ran / "out"))
    assert sorted(map(str, rows.collect())) == sorted(map(str, whole.collect()))


def test_shards_answer_as_they_do_in_one_process(
    spark: SparkSession, stream: Path, sharded: Path, tmp_path: Path
) -> None:
    intake, engines, answers = Intake(WHOLE), Sharded(WHOLE, SHARDS, with_events=True), nothing()
    for n in range(6):
        lines = (stream / "in" / f"{n}.json").read_bytes().splitlines()
        _, records = intake.take(Given(line, (), None, 0, 0, None) for line in lines)
        answers.add(engines.advance(records))
    assert sum(event.event == "merged" for event in answers.events) > 0
    assert_same(spark.read.parquet(str(sharded / "out")).collect(), answers)
    written = export_states(spark, sharded / "checkpoint", tmp_path)
    assert [path.parent.name for path in written] == ["all"]
    shown = json.loads(succeed(tmp_path, "stories", "all", "--json", "--least", "1").splitlines()[0])
    assert shown["records"] > 1


def test_a_table_in_shards_is_answered_to_the_end(spark: SparkSession, stream: Path) -> None:
    found = cluster(spark.read.text(str(stream / "in")), WHOLE, shards=SHARDS).collect()
    lines = [line for n in range(6) for line in (stream / "in" / f"{n}.json").read_bytes().splitlines()]
    _, records = Intake(WHOLE).take(Given(line, (), None, 0, 0, None) for line in lines)
    engines, answers = Sharded(WHOLE, SHARDS, with_events=True), nothing()
    answers.add(engines.advance(records))
    answers.add(engines.finish())
    assert_same(found, answers)


def test_each_key_is_answered_as_a_stream_of_its_own(spark: SparkSession, stream: Path, ran: Path) -> None:
    rows = spark.read.parquet(str(ran / "out"))
    for tenant in TENANTS:
        answers = expected(stream, tenant, finish=False)
        assert len(answers.rejects) > 3
        assert_same(rows.where(rows.tenant == tenant).collect(), answers)


def test_texts_have_their_embedding_in_every_worker(
    spark: SparkSession, stream: Path, tmp_path: Path
) -> None:
    """Of a table that knows a few words of the stream."""
    lines = (stream / "all.jsonl").read_text().splitlines()
    words = Counter(word for line in lines for word in json.loads(line)["text"].lower().split())
    known = ["[UNK]", *(word for word, _ in words.most_common(100)[-8:])]
    table = write_folder(tmp_path / "table", words=known)
    settings = msgspec.structs.replace(SETTINGS, embed=str(table))
    found = streamed(spark, stream, tmp_path, settings)
    answers = expected(stream, TENANTS[1], settings, finish=False)
    assert_same(found.where(f"tenant = '{TENANTS[1]}'").collect(), answers)
    assert answers.lines != expected(stream, TENANTS[1], finish=False).lines


def test_rows_without_the_key_are_rejects(spark: SparkSession, stream: Path, tmp_path: Path) -> None:
    """Of a stream and of a finished table, with one column or two."""
    for n in range(2):
        records = [json.loads(line) for line in (stream / "in" / f"{n}.json").read_text().splitlines()]
        for record in records[:40]:
            del record["tenant"]
        (tmp_path / "in").mkdir(exist_ok=True)
        _write(tmp_path / "in" / f"{n}.json", records)
        os.utime(tmp_path / "in" / f"{n}.json", (n + 1, n + 1))
    table = spark.read.schema(SCHEMA).json(str(tmp_path / "in"))
    of_two = cluster(table.withColumn("desk", table.tenant), SETTINGS, key=("tenant", "desk")).collect()
    for rows in (cluster(table, SETTINGS, key="tenant").collect(), of_two):
        keyless = [row for row in rows if row.tenant is None]
        assert {(row.kind, row.reason) for row in keyless} == {
            ("reject", "missing_field"),
            ("reject", "empty"),
        }
        assert len(keyless) == 80
        assert {row.tenant for row in rows} == {None, *TENANTS}
    query = streamed(spark, tmp_path, tmp_path)
    rows = query.where(query.tenant.isNull()).collect()
    assert (len(rows), {row.kind for row in rows}) == (80, {"reject"})


def desks(folder: Path, name: str, at: int, **more: Any) -> None:
    """A file of twelve records."""
    path = folder / "wire" / name
    path.parent.mkdir(exist_ok=True)
    _write(path, [{"text": f"storm over the coast {n}", "time": float(at + n), **more} for n in range(12)])
    os.utime(path, (at, at))


@pytest.mark.parametrize("lines", [None, "[1]\n"])
def test_a_key_that_no_record_of_the_first_batch_has_ends_the_query(
    tmp_path: Path, lines: str | None
) -> None:
    desks(tmp_path, "0.json", 1, desk="home")
    if lines is not None:
        (tmp_path / "wire" / "0.json").write_text(lines)
        os.utime(tmp_path / "wire" / "0.json", (1, 1))
    desks(tmp_path, "1.json", 100, dsek="home")
    job = ("--folder", "wire", "--checkpoint", "ckpt", "--output", "answers", "--once")
    done = call(tmp_path, "spark", *job, "--key", "dsek", process=True)
    message = [line for line in done.stderr.decode().splitlines() if line.startswith("streamdp: ")][-1]
    assert done.returncode == 78, done.stderr
    there = "the first has 'text', 'time', 'desk'" if lines is None else "nor is one an object"
    assert "--key dsek: no record of the first batch has this field" in message
    assert there in message
    assert not (tmp_path / "answers").exists()
    assert not (tmp_path / "ckpt").exists()


def test_later_batches_without_the_key_do_not_stop_a_query(tmp_path: Path) -> None:
    job = ("--folder", "wire", "--checkpoint", "ckpt", "--output", "answers", "--once", "--key", "desk")
    desks(tmp_path, "0.json", 1, desk="home")
    desks(tmp_path, "1.json", 100)
    succeed(tmp_path, "spark", *job, process=True)
    desks(tmp_path, "2.json", 200)
    succeed(tmp_path, "spark", *job, process=True)
    rows = pd.read_parquet(tmp_path / "answers")
    found = rows[rows.revision.fillna(0) == 0].groupby(["kind", rows.key.fillna("")]).size().to_dict()
    assert found[("assignment", "home")] == 12
    assert found[("reject", "")] == 24


def test_a_table_is_answered_to_the_end_as_consume_does(
    spark: SparkSession, stream: Path, tmp_path: Path
) -> None:
    rows = cluster(spark.read.schema(SCHEMA).json(str(stream / "in")), SETTINGS, key="tenant")
    found = rows.where(rows.tenant == "borg").collect()
    assert_same(found, expected(stream, "borg", finish=True))
    output = succeed(tmp_path, "consume", str(stream / "borg.jsonl"), *FLAGS, "--rejects", "rejects")
    consumed = [json.loads(line) for line in output.splitlines()]
    ours = in_order("assignment", told(found)["assignment"])
    theirs = in_order("assignment", [line for line in consumed if "seq" in line])
    shared = ("seq", "revision", "id", "time", "cluster", "probability", "new", "log_predictive", "novelty")
    assert [[row[name] for name in shared] for row in ours] == [
        [line[name] for name in shared] for line in theirs
    ]


def test_the_states_of_a_query_are_snapshots(spark: SparkSession, ran: Path, tmp_path: Path) -> None:
    written = export_states(spark, ran / "checkpoint", tmp_path)
    assert sorted(path.parent.name for path in written) == list(TENANTS)
    shown = json.loads(succeed(tmp_path, "stories", "acme", "--json", "--least", "1").splitlines()[0])
    assert shown["records"] > 1
    again = export_states(spark, ran / "checkpoint", tmp_path)
    assert again == written
    (tmp_path / "in").write_text("storm over the coast\n")
    succeed(tmp_path, "consume", "in", "--format", "text", "--state", "cyber2")
    written[0].unlink()
    (tmp_path / "cyber2").rename(tmp_path / "own")
    for path in tmp_path.glob("own/*.sdp"):
        path.rename(written[0].parent / path.name)
    with pytest.raises(StreamdpError, match="of another stream"):
        export_states(spark, ran / "checkpoint", tmp_path)


@pytest.mark.parametrize(("version", "said"), [(FORMAT - 1, "start again"), (FORMAT + 1, "upgrade it")])
def test_a_state_of_another_release_is_refused(
    monkeypatch: pytest.MonkeyPatch, version: int, said: str
) -> None:
    with monkeypatch.context() as other:
        other.setattr(snapshot, "FORMAT", version)
        stored = packed(Engine(SETTINGS), b"token")
    with pytest.raises(SnapshotError, match=f"the state of a: was written in format {version}; .*{said}"):
        body_of(stored, SETTINGS, "the state of a")


def test_a_state_is_not_gone_on_with_under_other_settings(
    spark: SparkSession, stream: Path, tmp_path: Path
) -> None:
    few = tmp_path / "in"
    few.mkdir()
    for n in range(2):
        _write(few / f"{n}.json", [{"tenant": "a", "id": "1", "text": "storm coast", "time": float(n)}])
        streamed_folder = tmp_path / "run"
        if n == 0:
            streamed(spark, tmp_path, streamed_folder)
    with pytest.raises(
        Exception, match=r"the state of tenant a: was made under other settings \(beam: was 4"
    ):
        streamed(spark, tmp_path, streamed_folder, Settings(beam=5, retain=1500))
    assert streamed(spark, tmp_path, streamed_folder).where("kind = 'assignment'").count() == 2


def test_records_of_a_topic_are_taken_as_a_consumer_takes_them(spark: SparkSession) -> None:
    texts = ["storm over the coast", "minister resigns", "storm coast flood", "cup final tonight"]
    rows = [
        Row(
            value=json.dumps({"text": text, "id": n, "time": 100.0 + n, "lang": "en"}).encode(),
            topic="news",
            partition=n % 2,
            offset=n // 2,
            timestamp=None,
        )
        for n, text in enumerate(texts)
    ]
    df = spark.createDataFrame(
        list(reversed(rows)), "value binary, topic string, partition int, offset bigint, timestamp timestamp"
    )
    found = cluster(df.selectExpr("*", "'en' as lang"), SETTINGS, key="lang").collect()
    told_of = sorted((row.seq, row.id, row.position) for row in found if row.kind == "assignment")
    assert told_of == [
        (
            n,
            str(n),
            json.dumps({"topic": "news", "partition": n % 2, "offset": n // 2}, separators=(",", ":")),
        )
        for n in range(4)
    ]


@pytest.mark.slow
def test_a_key_that_nothing_comes_for_is_forgotten(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    rows = spark.readStream.schema(SCHEMA).json(str(tmp_path / "in"))
    writer = cluster(rows, SETTINGS, key="tenant", time_to_live=25.0).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.option("path", str(tmp_path / "out")).start()

    def answered(name: str, total: int) -> list[int]:
        """The record numbers of all answers, once there are so many."""
        record = {"tenant": "a", "id": name, "text": "storm coast", "time": 1.0}
        _write(tmp_path / "in" / f".{name}", [record])
        (tmp_path / "in" / f".{name}").rename(tmp_path / "in" / f"{name}.json")
        deadline = time.monotonic() + 90
        while query.isActive and time.monotonic() < deadline:
            with contextlib.suppress(AnalysisException):  # nothing is there yet
                found = spark.read.parquet(str(tmp_path / "out")).where("kind = 'assignment'").collect()
                if len(found) == total:
                    return sorted(row.seq for row in found)
            time.sleep(0.2)
        raise AssertionError(query.exception() or "no answer came")

    assert answered("one", 1) == [0]
    while not list((tmp_path / "checkpoint" / "commits").glob("0")):
        time.sleep(0.1)  # answers are written first
    (path,) = export_states(spark, tmp_path / "checkpoint", tmp_path / "states")
    assert path.parent.name == "a"
    time.sleep(25.0)
    assert answered("two", 2) == [0, 0]
    query.stop()


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("tenant string, text string", {"key": "tenant"}, "in no order"),
        ("tenant string, body string, time double", {"key": "tenant"}, "none of the columns 'text'"),
        ("tenant string, text string, time double", {"key": "language"}, "no column 'language'"),
        ("tenant string, text string, time double", {}, "either key"),
        ("tenant string, text string, time double", {"key": "tenant", "shards": 2}, "either key"),
        ("text string, time double", {"shards": 0}, "at least 1"),
        ("text string, time double", {"shards": 2, "time_to_live": 9.0}, "for keys"),
        ("text string, time double", {"shards": 2, "settings": Settings(prior="crp")}, "distance-dependent"),
        ("cluster string, text string, time double", {"key": "cluster"}, "is a column of the answers"),
        (
            "tenant string, text string, time double",
            {"key": "tenant", "settings": Settings(format="csv")},
            "for files",
        ),
        (
            "tenant string, value string",
            {"key": "tenant", "settings": Settings(format="log")},
            "timestamp_format",
        ),
        ("tenant string, text string, time double", {"key": "tenant", "settings": Settings(beam=0)}, "beam"),
        (
            "tenant string, text string, time double",
            {"key": "tenant", "settings": Settings(embed="nowhere")},
            "there is no folder nowhere",
        ),
    ],
)
def test_what_cannot_be_clustered_is_said_before_the_query_begins(
    spark: SparkSession, columns: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster(spark.createDataFrame([], columns), **options)


DRIVER = """
import sys
sys.path.insert(0, {tests!r})
from pathlib import Path
from pyspark.sql import SparkSession
from test_spark import in_shards, streamed
session = (
    SparkSession.builder.master({master!r}).config("spark.sql.shuffle.partitions", 2)
    .config("spark.ui.enabled", "false").config("spark.driver.memory", "512m")
    .config("spark.python.daemon.module", "streamdp.spark.daemon").getOrCreate()
)
{function}(session, Path({stream!r}), Path({folder!r}))
"""


class Driver:
    """A query in a process of its own."""

    def __init__(self, master: str, run: Callable[..., DataFrame], stream: Path, folder: Path) -> None:
        given = {"stream": str(stream), "folder": str(folder), "function": run.__name__, "master": master}
        code = DRIVER.format(tests=str(HERE), **given)
        self.folder = folder
        with (folder / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", code],
                env=environment() | {"PYSPARK_PYTHON": sys.executable},
                cwd=folder,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def committed(self) -> int:
        """Micro-batches."""
        return len(list((self.folder / "checkpoint" / "commits").glob("[0-9]*")))

    def wait_for(self, batches: int) -> None:
        """Wait until so many are done."""
        deadline = time.monotonic() + 240
        while self.committed() < batches:
            assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def running(self, what: str) -> list[psutil.Process]:
        """Its processes whose command line holds this."""
        found = []
        for each in psutil.Process(self.process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if what in " ".join(each.cmdline()):
                    found.append(each)
        return found


@pytest.mark.slow
@pytest.mark.parametrize("run", [streamed, in_shards])
@pytest.mark.parametrize("victim", ["CoarseGrainedExecutorBackend", "-m streamdp.spark.daemon"])
def test_killed_executors_and_workers_are_made_up_for(
    spark: SparkSession,
    stream: Path,
    ran: Path,
    sharded: Path,
    tmp_path: Path,
    run: Callable[..., DataFrame],
    victim: str,
) -> None:
    driver = Driver("local-cluster[2,1,1024]", run, stream, tmp_path)
    killed = 0
    for batches in (1, 3):
        driver.wait_for(batches)
        time.sleep(0.3)
        for each in driver.running(victim)[:2]:
            with contextlib.suppress(psutil.Error):
                each.kill()
                killed += 1
    assert driver.process.wait(300) == 0, (tmp_path / "log").read_text()[-2000:]
    assert killed >= 2
    rows = spark.read.parquet(str(tmp_path / "out"))
    whole = spark.read.parquet(str((ran if run is streamed else sharded) / "out"))
    assert sorted(map(str, rows.collect())) == sorted(map(str, whole.collect()))


@pytest.mark.parametrize("run", [streamed, in_shards])
def test_a_killed_driver_goes_on_from_its_checkpoint(
    spark: SparkSession, stream: Path, ran: Path, sharded: Path, tmp_path: Path, run: Callable[..., DataFrame]
) -> None:
    driver = Driver("local[2]", run, stream, tmp_path)
    driver.wait_for(2)
    os.killpg(driver.process.pid, signal.SIGKILL)  # with its JVM and its workers
    driver.process.wait()
    assert driver.committed() < 6, "it was killed too late to show anything"
    rows = run(spark, stream, tmp_path)
    whole = spark.read.parquet(str((ran if run is streamed else sharded) / "out"))
    assert sorted(map(str, rows.collect())) == sorted(map(str, whole.collect()))


def test_an_engine_is_kept_for_what_it_has_seen_and_nothing_else() -> None:
    live, engine = Live(), Engine(Settings(beam=1))
    place, token = ("query", ("a",)), token_after(b"", [b"one", b"two"])
    assert token != token_after(b"", [b"onet", b"wo"])
    assert token == token_after(b"", iter([b"one", b"two"]))
    live.keep(place, token, engine, 10, 100)
    assert live.take(place, token_after(b"", [b"other"])) is None
    assert live.take(place, token) is None, "what was wrong once is let go of"
    live.keep(place, token, engine, 10, 100)
    assert live.take(place, token) is engine
    for n in range(12):
        live.keep(("query", (n,)), token, engine, 10, 100)
    assert live.take(("query", (1,)), token) is None
    assert live.take(("query", (2,)), token) is engine


def test_rows_are_ordered_whatever_order_they_come_in() -> None:
    def given(data: dict[str, Any], **where: Any) -> Given:
        row = Given(json.dumps(data).encode(), (), None, 0, 0, None)
        return row._replace(**where)

    def values(rows: list[Given]) -> list[Any]:
        _, records = Intake(Settings()).take(rows)
        assert all(isinstance(record, Record) for record in records)
        return [record.value for record in records if isinstance(record, Record)]

    timed = [given({"text": text, "time": time}) for text, time in (("c", 3), ("a", 1), ("b", 1))]
    assert values(timed) == values(timed[::-1]) == ["a", "b", "c"]
    # a record that comes late in its partition stays behind those before it
    places = [("p", 0, 0, 5), ("q", 0, 1, 2), ("r", 1, 0, 3), ("s", 1, 1, 9)]
    topic = [
        given({"text": text, "time": time}, topic="t", partition=partition, offset=offset)
        for text, partition, offset, time in places
    ]
    assert values(topic) == values(topic[::-1]) == ["r", "p", "q", "s"]
    ranked = [given({"text": text}, order=_orders(n)) for text, n in (("z", 1), ("x", None), ("y", 3))]
    assert values(ranked) == values(ranked[::-1]) == ["x", "z", "y"]


def _orders(n: int | None) -> tuple[object, ...]:
    frame = pd.DataFrame({"streamdp_record": [b"{}"], "streamdp_order_0": pd.Series([n], dtype="Int64")})
    (row,) = rows_of(frame)
    return row.order
