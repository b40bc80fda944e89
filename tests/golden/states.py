"""Golden states as files: made anew, written, read."""

from __future__ import annotations

import functools
import gzip
import io
import itertools
import json
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import logs
import msgspec
from broker.topics import make_topic, produce
from commands import succeed
from golden.cases import AFTER, GOLDEN, LEARNED, MAKERS, Golden
from golden.schema import Schema, add

from benchmarks.drifting import demo_stream
from streamdp import __version__
from streamdp.engine import Engine
from streamdp.estimators.stored import HEAD, SUM
from streamdp.estimators.stream_dp import StreamDP
from streamdp.priors import CRP
from streamdp.records import Record
from streamdp.settings import Settings
from streamdp.settings.load import model_settings, stored_settings
from streamdp.settings.schema import Classes
from streamdp.sharding import Merger, Sharded
from streamdp.state.corrections import Correction
from streamdp.state.snapshot import PREFIX, Header, pack, snapshots, unpack

FOLDER = Path(__file__).parent
MODEL = 1
"""Raised where the same records and settings come to have other labels than under the release before."""

LATE = ("--max-lateness", "30")
RUNS: dict[str, tuple[str, ...]] = {
    "jsonl": LATE,
    "csv": LATE,
    "tsv": LATE,
    "text": (),
    "log": ("--format", "log", *LATE),
    "folder": LATE,
}
"""Formats of input, and the options of a run over each."""

SUFFIX = {"jsonl": ".jsonl", "csv": ".csv", "tsv": ".tsv", "text": ".txt", "log": ".log", "folder": ""}


# ---------------------------------------------------------------- engines


class Kept(NamedTuple):
    """A golden state, as its release wrote it."""

    release: str
    name: str
    golden: Golden
    model: int
    header: Header
    body: bytes

    @property
    def settings(self) -> Settings:
        """Those that it was made under."""
        return stored_settings(self.header.settings, Classes(embed=self.header.settings.get("embed")))

    @property
    def modes(self) -> dict[str, bool]:
        """Options of its engine."""
        return {"final_only": self.golden.final_only, "with_events": True}

    def records(self) -> list[Record]:
        """Those that it has seen, and those that it goes on with."""
        return read_records(FOLDER / self.release / f"{self.golden.records}.jsonl.gz")


def file_of(name: str) -> str:
    """The name of a state as a file has it."""
    return name.replace(" ", "-")


def read_records(path: Path) -> list[Record]:
    """Records as they were committed."""
    return [
        Record(each["value"], {"file": "x", "line": i}, each["time"], f"r{i}", raw=b"raw %d" % i)
        for i, each in enumerate(map(json.loads, gzip.decompress(path.read_bytes()).splitlines()), 1)
    ]


def _written(records: list[Record]) -> bytes:
    return b"".join(msgspec.json.encode({"value": r.value, "time": r.time}) + b"\n" for r in records)


def kept() -> Iterator[Kept]:
    """All golden states of engines, of every release."""
    for manifest in sorted(FOLDER.glob("*/states.json")):
        found = json.loads(manifest.read_text("utf-8"))
        for name, golden in found["states"].items():
            packed = (manifest.parent / f"{file_of(name)}.sdp.gz").read_bytes()
            header, body = unpack(gzip.decompress(packed), name)
            made = Golden(
                header.settings,
                golden["records"],
                golden["learned"],
                golden["final_only"],
                golden.get("corrected", False),
            )
            yield Kept(manifest.parent.name, name, made, found["model"], header, body)


def engine_of(golden: Golden, records: list[Record], settings: Settings) -> Engine:
    """An engine that has seen the first of the records, and was corrected."""
    engine = Engine(settings, final_only=golden.final_only, with_events=True)
    engine.advance(records[: golden.learned])
    if golden.corrected:
        a, b, c, *_ = (cluster.cluster for cluster in engine.clusters())
        engine.correct(Correction(what="rename", stories=(a,), title="The largest", who="ann"))
        engine.correct(Correction(what="keep-apart", stories=(a, b)))
        engine.correct(Correction(what="pin", stories=(c,)))
    return engine


def state_of(golden: Golden, records: list[Record]) -> bytes:
    """The snapshot file of such an engine."""
    settings = Settings(**golden.settings)
    engine = engine_of(golden, records, settings)
    modes = {"final_only": golden.final_only, "events": True}
    positions = {"file": "x", "line": golden.learned, "offset": 0}
    return pack(Header(model_settings(settings), engine.seq, positions, {}, modes, 1.5), engine.dumps())


# ---------------------------------------------------------------- runs, models, shards


def write_input(folder: Path, form: str, first: int, last: int) -> None:
    """Headlines, or lines of a log, as an input of a format; a folder has a file for each hundred."""
    stream = list(demo_stream(last, 3))
    comma = {"csv": ",", "tsv": "\t"}.get(form)
    if comma is not None:
        lines = [comma.join((str(i), str(x.time), x.text)) for i, x in enumerate(stream)]
    elif form in ("jsonl", "folder"):
        lines = [json.dumps({"id": i, "time": x.time, "text": x.text}) for i, x in enumerate(stream)]
    elif form == "log":
        said = logs.lines(LEARNED + AFTER, 3)[0][:last]
        lines = [f"2026-01-05T09:{i // 60:02}:{i % 60:02} web1 app: {text}" for i, text in enumerate(said)]
    else:
        lines = [x.text for x in stream]
    lines = lines[first:]
    if comma is not None and not first:
        lines = [comma.join(("id", "time", "text")), *lines]
    if form == "folder":
        (folder / "in").mkdir(exist_ok=True)
        for start in range(0, len(lines), 100):
            part = lines[start : start + 100]
            (folder / "in" / f"{first + start:05}.jsonl").write_text("\n".join(part) + "\n")
        return
    with (folder / f"in{SUFFIX[form]}").open("a") as file:
        file.write("\n".join(lines) + "\n")


def run(folder: Path, form: str) -> None:
    """Cluster the input of a folder from file to file."""
    where = f"in{SUFFIX[form]}"
    outputs = ("--output", "out.jsonl", "--events", "events.jsonl", "--state", "st")
    succeed(folder, "consume", where, *RUNS[form], *outputs)


def _packed_run(form: str) -> bytes:
    """A folder after a run over the first records: input, outputs, and the last snapshot."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_input(folder, form, 0, LEARNED)
        run(folder, form)
        return _packed(folder)


def _packed(folder: Path) -> bytes:
    packed = io.BytesIO()
    state = snapshots(folder / "st")[0]
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.parent.name != "st"]
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in [*files, state]:
            entry = tarfile.TarInfo(path.relative_to(folder).as_posix())
            entry.size = path.stat().st_size
            tar.addfile(entry, io.BytesIO(path.read_bytes()))
    return packed.getvalue()


TOPIC = "golden"
OF_A_TOPIC = "run.topic"
"""The name of a run's folder whose input is a topic: made by ``python -m tests.golden topic``."""


def write_topic(bootstrap: str, first: int, last: int) -> None:
    """Headlines, to two partitions by turns."""
    values = [
        json.dumps({"id": i, "time": x.time, "text": x.text}) for i, x in enumerate(demo_stream(last, 3))
    ]
    produce(bootstrap, TOPIC, ((i % 2, values[i].encode()) for i in range(first, last)))


def run_topic(folder: Path, bootstrap: str) -> None:
    """Cluster the topic, to files."""
    where = ("--topic", TOPIC, "--bootstrap", bootstrap, "--until", "end", "--max-lateness", "30")
    outputs = ("--output", "out.jsonl", "--events", "events.jsonl", "--state", "st")
    succeed(folder, "consume", *where, *outputs)


def state_of_a_topic(bootstrap: str) -> bytes:
    """A folder after a run over the first records of a topic: outputs, and the last snapshot."""
    make_topic(bootstrap, 2, TOPIC)
    write_topic(bootstrap, 0, LEARNED)
    with tempfile.TemporaryDirectory() as made:
        run_topic(Path(made), bootstrap)
        return _packed(Path(made))


MODELS = {"bags": 120, "features": 120}
"""Models of ``StreamDP.save``: the records, and how many each has learned."""


def values(records: list[Record]) -> list[dict[str, float]]:
    """What River's models take: mappings from names to numbers."""
    return [each.value for each in records if isinstance(each.value, dict) and each.value]


def model_of(records: list[Record], learned: int) -> StreamDP:
    """A model that has learned the first of the records."""
    model = StreamDP(beam=4, prior=CRP(3.0))
    for value in values(records)[:learned]:
        model.learn_one(value)
    return model


def _saved(model: StreamDP) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return (Path(folder) / "model").read_bytes()


SHARDED = Settings(decay_scale=60.0, second_look=200, retain=800)


def with_parts(records: list[Record]) -> list[Record]:
    """The records, each with the cluster that its shard has found for it."""
    found = Sharded(SHARDED, 3).with_parts(records)
    return [each for each in found if isinstance(each, Record)]


def merger_of(records: list[Record]) -> Merger:
    """A merger that has seen the first records."""
    merger = Merger(SHARDED, with_events=True)
    merger.advance(records[:LEARNED])
    return merger


# ---------------------------------------------------------------- all of a release


@functools.cache
def made() -> dict[str, bytes]:
    """The files of this release, by name, unpacked."""
    found: dict[str, bytes] = {}
    for name, maker in MAKERS.items():
        found[f"{name}.jsonl"] = _written(maker())
    records = {name: maker() for name, maker in MAKERS.items()}
    for name, golden in GOLDEN.items():
        found[f"{file_of(name)}.sdp"] = state_of(golden, records[golden.records])
    for form in RUNS:
        found[f"{form}.run.tar"] = _packed_run(form)
    for name, learned in MODELS.items():
        found[f"{name}.model"] = _saved(model_of(records[name], learned))
    merger = merger_of(with_parts(records["texts"]))
    found["merger"], found["merger.parts"] = merger.dumps(), merger.dump_parts()
    return found


def schema_of_run(packed: bytes) -> Schema:
    """What the snapshot in a packed folder stores."""
    return schema_of({"a.tar": packed})


def schema_of(*releases: dict[str, bytes]) -> Schema:
    """What the files of these releases store."""
    schema: Schema = {}
    for name, data in itertools.chain.from_iterable(files.items() for files in releases):
        if name.endswith(".sdp"):
            add(schema, msgspec.msgpack.decode(_split(data)[1]))
        elif name.endswith(".tar"):
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                (entry,) = (entry for entry in tar if entry.name.endswith(".sdp"))
                file = tar.extractfile(entry)
                assert file is not None
                for stored in _split(file.read()):
                    add(schema, msgspec.msgpack.decode(stored))
        elif name.startswith("merger"):
            add(schema, msgspec.msgpack.decode(data))
        elif name.endswith(".model"):
            add(schema, msgspec.msgpack.decode(data[len(HEAD) + SUM :], strict=False))
    return schema


def _split(snapshot: bytes) -> tuple[bytes, bytes]:
    """Header and body of a snapshot file as they are stored."""
    _, _, head, body = PREFIX.unpack_from(snapshot)
    start = PREFIX.size + head
    return snapshot[PREFIX.size : start], snapshot[start : start + body]


def committed(folder: Path) -> dict[str, bytes]:
    """The files of a release as they were committed, by name, unpacked."""
    return {path.name.removesuffix(".gz"): gzip.decompress(path.read_bytes()) for path in folder.glob("*.gz")}


def releases() -> list[Path]:
    """Folders of releases that have golden states."""
    return sorted(path.parent for path in FOLDER.glob("*/states.json"))


def write(folder: Path) -> None:
    """Make the golden states of this release. A run that stores what it did stays: its clock is another."""
    folder.mkdir(exist_ok=True)
    before = committed(folder)
    for name in before.keys() - made().keys() - {OF_A_TOPIC}:
        (folder / f"{name}.gz").unlink()
    for name, data in made().items():
        alike = name in before and schema_of({name: before[name]}) == schema_of({name: data})
        if not (alike and name.endswith(".tar")):
            (folder / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))
    states = {
        name: {
            "records": each.records,
            "learned": each.learned,
            "final_only": each.final_only,
            "corrected": each.corrected,
        }
        for name, each in GOLDEN.items()
    }
    manifest = {"release": __version__, "model": MODEL, "states": states}
    (folder / "states.json").write_text(json.dumps(manifest, indent=1) + "\n")
