"""States, models and shards of every kind, and what is stored of them."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from golden.cases import GOLDEN, MAKERS, Golden
from golden.schema import Schema, add

from benchmarks.sharded import Sharded
from streamdp.engine import Engine
from streamdp.estimators.stored import HEAD, SUM
from streamdp.estimators.stream_dp import StreamDP
from streamdp.priors import CRP
from streamdp.records import Record
from streamdp.settings import Settings
from streamdp.settings.load import model_settings
from streamdp.sharding import Merger
from streamdp.state.corrections import Correction
from streamdp.state.snapshot import PREFIX, Header, pack

STORED = Path(__file__).parent / "stored.json"
"""The format, and what is stored in it."""

MODELS = ("bags", "features")
SHARDED = Settings(decay_scale=60.0, second_look=200, retain=800)


def engine_of(golden: Golden, records: list[Record]) -> Engine:
    """An engine that has seen the first of the records, and was corrected."""
    engine = Engine(Settings(**golden.settings), final_only=golden.final_only, with_events=True)
    engine.advance(records[: golden.learned])
    if golden.corrected:
        a, b, c, *_ = (cluster.cluster for cluster in engine.clusters())
        engine.correct(Correction(what="rename", stories=(a,), title="The largest", who="ann"))
        engine.correct(Correction(what="keep-apart", stories=(a, b)))
        engine.correct(Correction(what="pin", stories=(c,)))
    return engine


def header() -> dict[str, Any]:
    """The header of a snapshot file as it is stored."""
    packed = pack(
        Header(model_settings(Settings()), 7, {"file": "x", "line": 7}, {}, {"events": True}, 1.5), b""
    )
    return stored(packed[PREFIX.size : -4])


def model_of(records: list[Record]) -> dict[str, Any]:
    """What ``StreamDP.save`` stores of a model that has learned mappings from names to numbers."""
    model = StreamDP(beam=4, prior=CRP(3.0))
    for value in [each.value for each in records if isinstance(each.value, dict) and each.value][:120]:
        model.learn_one(value)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        return stored((Path(folder) / "model").read_bytes()[len(HEAD) + SUM :])


def shards_of(records: list[Record]) -> Iterator[dict[str, Any]]:
    """What a merger stores that has seen records of three shards."""
    merger = Merger(SHARDED, with_events=True)
    merger.advance(
        [each for each in Sharded(SHARDED, 3).with_parts(records[:250]) if isinstance(each, Record)]
    )
    yield stored(merger.dumps())
    yield stored(merger.dump_parts())


def stored(data: bytes) -> dict[str, Any]:
    """Plain values."""
    found: dict[str, Any] = msgspec.msgpack.decode(data, strict=False)
    return found


@functools.cache
def schema_now() -> Schema:
    """What this release stores."""
    schema: dict[str, set[str]] = {}
    records = {name: maker() for name, maker in MAKERS.items()}
    for golden in GOLDEN.values():
        add(schema, "state", stored(engine_of(golden, records[golden.records]).dumps()))
    add(schema, "header", header())
    for name in MODELS:
        add(schema, "model", model_of(records[name]))
    for each in shards_of(records["texts"]):
        add(schema, "shards", each)
    return {place: " or ".join(sorted(found)) for place, found in sorted(schema.items())}
