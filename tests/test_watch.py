"""What of a run comes to be metrics: how far reading is behind, how old records are, where the time goes."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from feeds import assigned
from streamdp_connectors.protocol import Lag

from streamdp.beam.data.state import REVIEW_EVERY
from streamdp.engine import Engine
from streamdp.monitor.stages import STAGES
from streamdp.records import Answers, Final, Raw, Record, Reject
from streamdp.records.columns import Columns
from streamdp.run.observers import Measured, Observers, RunObserver
from streamdp.run.reading import Reader
from streamdp.settings import Settings
from streamdp.settings.io_options import Input


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    (tmp_path / "in.jsonl").write_text('{"text": "storm"}\n')
    return Reader(Settings(), Input(file=str(tmp_path / "in.jsonl")))


@pytest.fixture
def served() -> Iterator[Measured]:
    served = Measured(at=("127.0.0.1", 0))
    yield served
    served.close()


def figures(served: Measured, name: str) -> dict[str, float]:
    """The samples of a metric by what stands between name and value."""
    lines = served.metrics.render()[0].decode().splitlines()
    return {
        line[len(name) :].rpartition(" ")[0]: float(line.rpartition(" ")[2])
        for line in lines
        if line.startswith(name)
    }


def test_lag_in_event_time(reader: Reader, monkeypatch: pytest.MonkeyPatch) -> None:
    def raw(data: bytes, broker_time: float | None) -> Raw:
        return Raw(data, {"topic": "t", "partition": 0, "offset": 1}, 0.0, broker_time)

    lags = [
        Lag("t", 0, 9, raw(b'{"text": "x", "time": 900}', 950.0)),
        Lag("t", 1, 9, raw(b'{"text": "x"}', 950.0)),
        Lag("t", 2, 9, raw(b"rubbish", 960.0)),
        Lag("t", 3, 9, raw(b'{"text": "x", "time": 2000}', None)),
        Lag("t", 4, 9, None),
        Lag("t", 5, 0, raw(b'{"text": "x", "time": 900}', 950.0)),
    ]
    monkeypatch.setattr(Reader, "watched", SimpleNamespace(lags=lambda: lags))
    found = reader.lags(1000.0)
    assert [lag.seconds for lag in found] == [100.0, 50.0, 40.0, 0.0, None, 0.0]
    assert [(lag.partition, lag.records) for lag in found[-2:]] == [(4, 9), (5, 0)]


def test_ages_of_a_batch(served: Measured) -> None:
    now = time.time()
    records: list[Record | Reject] = [Reject({}, "not_json", "", b"")]
    records += [Record("storm", {}, arrival=now - 2.0) for _ in range(9)]
    served.taken(Columns.of(records))
    lines = [Final(1), assigned(0, time=now - 5000.0, revision=1), assigned(7, time=now - 20.0)]
    served.batch(Answers(lines, [Reject({}, "late", "", b"")], []), 6, 3, 0.1, 0.2)
    assert figures(served, "streamdp_answer_seconds_bucket")['{le="3.0"}'] == 7.0
    assert figures(served, "streamdp_answer_seconds_bucket")['{le="1.0"}'] == 0.0
    assert figures(served, "streamdp_event_age_seconds_bucket")['{le="30.0"}'] == 6.0
    assert figures(served, "streamdp_event_age_seconds_bucket")['{le="10.0"}'] == 0.0
    assert figures(served, "streamdp_rejects_total")['{reason="late"}'] == 1.0
    served.batch(Answers([assigned(8, time=None)], [], []), 9, 0, 0.1, 0.2)
    assert figures(served, "streamdp_answer_seconds_count")[""] == 10.0
    assert figures(served, "streamdp_event_age_seconds_count")[""] == 6.0  # they had no time


def test_an_engine_tells_of_its_stages_by_the_batch() -> None:
    told: list[str] = []
    engine = Engine(Settings(beam=2))
    engine.stage = told.append
    engine.advance([f"storm over coast {i}" for i in range(200)])
    assert told == ["kernel", "announce", "kernel", "encode"] * (len(told) // 4)
    assert len(told) < 20
    told.clear()
    engine.advance([f"storm over coast {i}" for i in range(REVIEW_EVERY - 200)])
    assert told == ["kernel", "announce", "kernel", "looks", "encode"]
    assert set(told) <= set(STAGES)


def test_levels_tell_of_the_stream_and_revisions_of_the_process() -> None:
    whole = Engine(Settings(beam=4))
    texts = [f"storm coast {i % 7} {i % 3}" for i in range(300)]
    before = whole.advance(texts[:200])
    resumed = Engine.loads(whole.dumps(), whole.settings)
    after = resumed.advance(texts[200:])
    levels = resumed.levels()
    assert levels["stream_records"] == 300
    assert levels["log_evidence"] == resumed.log_evidence
    assert levels["revisions"] == sum(line.revision > 0 for line in after.assignments)
    assert whole.levels()["revisions"] == sum(line.revision > 0 for line in before.assignments)
    final = after.final_through if after.final_through is not None else before.final_through
    assert levels["final_lag"] == 299 - (-1 if final is None else final)
    assert 0.0 <= levels["agreement"] <= 1.0
    assert Engine().levels() == {"stream_records": 0.0, "log_evidence": 0.0, "agreement": 1.0, "revisions": 0}
    assert Engine(Settings(beam=1)).levels()["agreement"] == 1.0
    templates = Engine(Settings(format="log"))
    templates.advance([f"pool has {n} of 16 busy" for n in range(40)])
    assert templates.levels()["stream_records"] == 40


def test_several_watches_are_told_of_everything() -> None:
    said = [name for name, what in vars(RunObserver).items() if inspect.isfunction(what) and name[0] != "_"]
    each = [Mock(spec=RunObserver), Mock(spec=RunObserver)]
    for watch in each:
        watch.stages = RunObserver().stages
    together = Observers(*each)
    for name in said:
        places = [Mock() for _ in inspect.signature(getattr(together, name)).parameters]
        getattr(together, name)(*places)
        for watch in each:
            getattr(watch, name).assert_called_once_with(*places)
