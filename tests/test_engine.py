"""The engine as a pure function of the records: however they are cut, whatever the hash seed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Sequence

import msgspec
import pytest
from engine_cases import CASES, case
from feeds import feed, headlines, record, untidy
from hypothesis import HealthCheck, given
from hypothesis import settings as limits
from hypothesis import strategies as st

from streamdp.engine import Engine
from streamdp.records import Record
from streamdp.settings import Settings


def check_batching(
    settings: Settings, records: Sequence[Record], cuts: Sequence[int], final_only: bool
) -> None:
    """In batches, everything is as record by record."""
    one = Engine(settings, final_only=final_only, with_events=True)
    many = Engine(settings, final_only=final_only, with_events=True)
    single = feed(one, records, range(1, len(records)))
    batched = feed(many, records, cuts)
    assert batched.encoded() == single.encoded()
    assert many.dumps() == one.dumps()
    single.add(one.finish())
    batched.add(many.finish())
    assert batched.encoded() == single.encoded()
    assert single.assignments()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("lateness", [0.0, 2.0])
@limits(max_examples=6, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_batches_do_not_matter(name: str, lateness: float, data: st.DataObject) -> None:
    settings, maker = case(name, max_lateness=lateness)
    records = untidy(maker(80, 3), data.draw(st.integers(0, 99)), times=settings.distance == "records")
    cuts = data.draw(st.lists(st.integers(1, len(records) - 1), max_size=12))
    check_batching(settings, records, cuts, data.draw(st.booleans()))


@pytest.mark.parametrize("beam", [1, 16])
def test_batches_do_not_matter_while_words_are_evicted(beam: int) -> None:
    settings = Settings(beam=beam, max_words=400, retain=300, max_lateness=600.0)
    rng = random.Random(beam)
    records = headlines(9000, 4)
    made = [
        msgspec.structs.replace(r, value=f"{r.value} rare{i // 3}") if i % 5 == 0 else r
        for i, r in enumerate(records)
    ]
    engines = [Engine(settings, with_events=True) for _ in range(3)]
    told = [
        feed(engine, made, cuts)
        for engine, cuts in zip(
            engines, ([], sorted(rng.sample(range(1, 9000), 40)), range(1, 9000)), strict=True
        )
    ]
    assert engines[0].counters()["words_evicted"] > 0
    assert told[1].encoded() == told[0].encoded()
    assert told[2].encoded() == told[0].encoded()
    assert engines[1].dumps() == engines[0].dumps()
    assert engines[2].dumps() == engines[0].dumps()


def test_rejects_come_in_the_order_of_the_records_however_they_are_cut() -> None:
    records = [
        record("one text", 1, 100.0),
        record([1.0], 2, 100.0),  # found out when it is encoded
        record("a late text", 3, 50.0),  # found out before
        record("another text", 4, 101.0),
    ]
    strict = Settings(late="refuse")
    single = feed(Engine(strict), records, range(1, 4)).rejects
    batched = feed(Engine(strict), records).rejects
    assert [r.position["line"] for r in single] == [2, 3]
    assert batched == single


DIGEST = """
import hashlib
from engine_cases import case
from feeds import feed, headlines
from streamdp.engine import Engine
digest = hashlib.sha256()
for name in ("crp", "crp counts", "window", "exponential", "vectors", "features"):
    settings, maker = case(name)
    for records in (maker(80, 1), headlines(300, 1)) if name == "crp" else (maker(80, 1),):
        engine = Engine(settings, with_events=True)
        digest.update(repr(feed(engine, records).encoded()).encode() + engine.dumps())
print(digest.hexdigest())
"""


def test_hash_seeds_do_not_matter() -> None:
    path = os.pathsep.join(filter(None, (os.path.dirname(__file__), os.environ.get("PYTHONPATH"))))
    found = set()
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", DIGEST],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path},
            capture_output=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr.decode()
        found.add(done.stdout)
    assert len(found) == 1
