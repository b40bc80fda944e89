"""One stream in shards: records follow their parts, second looks join these, batches do not matter."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from feeds import Told, nothing
from models import WORDS, pair
from streams import encode, random_stream

from benchmarks.drifting import demo_stream
from benchmarks.sharded import Sharded, shard_of
from streamdp import Engine, Record, Settings
from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch
from streamdp.errors import ConfigError
from streamdp.records import Assignment, Reject
from streamdp.scoring.agreement import agreement
from streamdp.sharding import Merger, Shard, merge_settings, shard_settings

SETTINGS = Settings(beam=2, second_look=256, retain=1024)


def stream(n: int) -> tuple[list[Record], list[int]]:
    """Headlines, and the story of each."""
    told = list(demo_stream(n, 7))
    stories = sorted({each.topic for each in told})
    records = [Record(each.text, {"record": i}, float(i), i) for i, each in enumerate(told)]
    return records, [stories.index(each.topic) for each in told]


def fed(engine: Any, records: Sequence[Any], sizes: Sequence[int]) -> Told:
    """All that is said of records that come in batches of these sizes, over and over."""
    told, at = nothing(), 0
    for size in itertools.cycle(sizes):
        if at >= len(records):
            return told
        told.add(engine.advance(records[at : at + size]))
        at += size
    raise AssertionError


def with_parts(records: Sequence[Record], shards: int) -> list[Record]:
    """The records with parts as shards find them."""
    sharded = Sharded(SETTINGS, shards)
    found = sharded.with_parts(list(records))
    assert all(isinstance(record, Record) and record.part is not None for record in found)
    return [record for record in found if isinstance(record, Record)]


@pytest.mark.parametrize("batch", [1, 100])
def test_records_that_share_one_position_have_parts_of_their_own(batch: int) -> None:
    records, truth = stream(400)
    refused = Reject({}, "invalid_json", "not JSON", b"")
    apart: list[Any] = []
    for i, record in enumerate(records):  # rejects of the source, and a record that only the engine refuses
        apart += [
            record,
            *([refused] if i % 7 == 0 else []),
            *([Record("", {"record": -i})] if i % 5 == 0 else []),
        ]
    shared, place = list[Any](), dict[str, Any]()
    for record in apart:
        shared.append(
            msgspec.structs.replace(record, position=place) if isinstance(record, Record) else record
        )
    labels = []
    for given in (apart, shared):
        sharded = Sharded(SETTINGS, 3)
        parts = [
            part for at in range(0, len(given), batch) for part in sharded.with_parts(given[at : at + batch])
        ]
        assert [part.position for part in parts] == [each.position for each in given]
        labels.append([part.part for part in parts if isinstance(part, Record)])
    assert labels[0] == labels[1]
    kept = [part for part in labels[1] if part is not None]
    assert len(kept) == len(truth)
    assert len(set(kept)) > 20


# ---------------------------------------------------------------- decisions that refer to a batch


@pytest.mark.parametrize("family", ["pitman_yor", "gamma"])
def test_a_decision_may_name_a_record_of_the_batch(family: str) -> None:
    rng = np.random.default_rng(4)
    problem = pair("exponential", family, 1)
    records, times = random_stream(rng, 40, not problem.likelihood.sparse, WORDS)
    batch = encode(records, times, not problem.likelihood.sparse)
    free = run(problem.search(), batch, np.full(40, -1))
    own = run(problem.search(), batch, np.zeros(0, np.int64))
    assert free == own, "what is not decided is searched"
    founders = [list(free[0]).index(label) for label in free[0]]
    by_founder = run(problem.search(), batch, np.array(founders))
    last = dict[int, int]()
    companions, begun = [], []
    for i, founder in enumerate(founders):
        companions.append(-2 - last[founder] if founder in last else i)
        begun.append(-2 - 40 - founder if founder in last else i)
        last[founder] = i
    assert run(problem.search(), batch, np.array(companions)) == by_founder
    assert run(problem.search(), batch, np.array(begun)) == by_founder
    assert by_founder[0] == free[0]
    assert by_founder[1] == pytest.approx(free[1])


def run(search: BeamSearch, batch: Batch, founders: np.ndarray) -> tuple[tuple[int, ...], float]:
    """Labels, and the log joint."""
    labels: list[int] = []
    for start, stop, out in search.run(batch, founders):
        labels += out.answers["label"][start:stop].tolist()
    return tuple(labels), float(search.log_joints[search.head])


# ---------------------------------------------------------------- who joins


def test_records_that_are_parts_of_their_own_are_clustered_as_by_any_greedy_engine() -> None:
    records, _ = stream(1500)
    plain = fed(Engine(msgspec.structs.replace(SETTINGS, beam=1)), records, [100]).lines
    apart = [msgspec.structs.replace(record, part=i) for i, record in enumerate(records)]
    assert fed(Merger(SETTINGS), apart, [100]).lines == plain
    assert fed(Merger(SETTINGS), records, [100]).lines == plain


def test_a_record_goes_where_the_last_of_its_part_is() -> None:
    records, _ = stream(3000)
    parted = with_parts(records, 4)
    told = nothing()
    merger = Merger(SETTINGS, with_events=True)
    followed = founded = 0
    last, newest, gone = dict[int, int](), dict[int, int](), set[int]()
    for record in parted:  # one by one, so that what is said before each is known
        answers = merger.advance([record])
        told.add(answers)
        for line in answers.lines:
            if not isinstance(line, Assignment):
                continue
            if line.revision == 0:
                assert record.part is not None
                if record.part not in last or line.seq - last[record.part] > SETTINGS.retain:
                    founded += 1
                elif newest[last[record.part]] not in gone:
                    assert line.cluster == newest[last[record.part]]
                    followed += 1
                last[record.part] = line.seq
            newest[line.seq] = line.cluster
        gone |= {event.cluster for event in answers.events if event.event in ("closed", "merged", "vanished")}
    assert followed > 1500
    assert founded > 100
    assert sum(line.revision > 0 for line in told.assignments()) > 50, "nothing was ever joined"


def test_answers_and_state_do_not_depend_on_batches_or_restarts() -> None:
    records, _ = stream(2000)
    parted: list[Any] = with_parts(records, 3)
    parted[500] = Reject({"record": 500}, "bad_json", "it is none", b"{")
    parted[600] = msgspec.structs.replace(parted[600], value="")
    swapped = parted[:900] + parted[910:930] + parted[900:910] + parted[930:]
    settings = msgspec.structs.replace(SETTINGS, max_lateness=40.0)
    whole = Merger(settings, with_events=True)
    expected = fed(whole, swapped, [len(swapped)])
    assert [reject.reason for reject in expected.rejects] == ["bad_json", "empty"]
    for sizes in ([1], [7, 300, 64]):
        merger = Merger(settings, with_events=True)
        assert fed(merger, swapped, sizes) == expected
        assert merger.dumps() == whole.dumps()
        assert merger.dump_parts() == whole.dump_parts()
    for at in (905, 1537):  # some records wait for their turn, their parts with them
        first = Merger(settings, with_events=True)
        told = fed(first, swapped[:at], [at])
        assert first.held_back > 10
        loaded = Merger.loads(first.dumps(), settings, with_events=True)
        loaded.load_parts(first.dump_parts())
        for revived in (copy.copy(first), loaded):
            later = fed(revived, swapped[at:], [200])
            assert told.lines + later.lines == expected.lines
            assert revived.dumps() == whole.dumps()


@pytest.mark.parametrize("decay", [12.0, 60.0])
def test_batches_do_not_matter_whatever_the_parts_are(decay: float) -> None:
    """Clusters close, and parts are silent for longer than records are retained, inside batches."""
    records, _ = stream(3400)
    chance, parts = random.Random(3), list(range(60))
    parted = []
    for i, record in enumerate(records):
        if i % 40 == 0:
            parts[chance.randrange(60)] = 60 + i
        among = parts if i % 1100 < 500 else parts[:3]
        parted.append(msgspec.structs.replace(record, part=chance.choice(among)))
    settings = msgspec.structs.replace(SETTINGS, retain=768, decay_scale=decay)
    whole = Merger(settings, with_events=True)
    expected = fed(whole, parted, [3400])
    assert any(event.event == "closed" for event in expected.events)
    for sizes in ([1], [97, 800]):
        merger = Merger(settings, with_events=True)
        assert fed(merger, parted, sizes) == expected
        assert merger.dumps() == whole.dumps()


def test_parts_that_nothing_comes_for_are_forgotten() -> None:
    records, _ = stream(4000)
    merger = Merger(SETTINGS)
    parted, sizes = [msgspec.structs.replace(r, part=i) for i, r in enumerate(records)], []
    for at in range(0, len(parted), 1000):
        fed(merger, parted[at : at + 1000], [512])
        sizes.append(len(merger.dump_parts()))
    assert sizes[-1] < 1.1 * sizes[-2]


# ---------------------------------------------------------------- shards


def test_shards_say_whose_part_a_record_is() -> None:
    records, _ = stream(800)
    shards = [Shard(SETTINGS, 2, number) for number in range(2)]
    refused = Record("", {"record": -1}, 0.0)
    first, second = (shard.advance([refused, *records[:400]]) for shard in shards)
    parts = [[r.part for r in found if isinstance(r, Record)] for found in (first, second)]
    assert parts[0][0] is parts[1][0] is None, "who joins refuses it"
    assert {part % 2 for part in parts[0][1:] if part is not None} == {0}
    assert [part + 1 for part in parts[0][1:] if part is not None] == parts[1][1:]
    assert [r.value for r in first if isinstance(r, Record)] == ["", *(r.value for r in records[:400])]


def test_a_shard_is_of_a_share_of_the_stream() -> None:
    found = shard_settings(Settings(concentration=50.0, decay_scale=300.0, max_lateness=9.0), 6)
    assert (found.concentration, found.decay_scale, found.max_lateness) == (150.0, 50.0, 0.0)
    assert found.second_look == 0
    timed = shard_settings(Settings(decay_scale=3600.0, distance="seconds"), 6)
    assert timed.decay_scale == 3600.0
    assert shard_settings(Settings(), 2).concentration == 60.0, "never less than the stream's"


@pytest.mark.parametrize("shards", [1, 2, 5])
def test_shards_together_find_the_stories(shards: int) -> None:
    records, stories = stream(3000)
    sharded = Sharded(SETTINGS, shards, with_events=True)
    told = fed(sharded, records, [500])
    told.add(sharded.finish())
    one = Engine(SETTINGS)
    alone = fed(one, records, [500])
    alone.add(one.finish())
    found, expected = (agreement(stories, each.newest()).nmi for each in (told, alone))
    assert found > expected - 0.04
    assert [line.seq for line in told.first()] == list(range(3000))
    if shards > 1:
        assert any(event.event == "merged" for event in told.events)


def test_the_shard_of_a_record_is_by_chance_and_always_the_same() -> None:
    found = [shard_of(str(n).encode(), 8) for n in range(8000)]
    assert found == [shard_of(str(n).encode(), 8) for n in range(8000)]
    assert min(found.count(s) for s in range(8)) > 800


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(prior="crp"), "distance-dependent prior, not crp"),
        (Settings(format="log"), "texts and categories"),
        (Settings(likelihood="template"), "texts and categories"),
        (Settings(likelihood="gaussian"), "texts and categories"),
        (Settings(second_look=0), "need second looks"),
        (Settings(retain=1200), "need second looks"),
    ],
)
def test_what_cannot_be_in_shards_is_said(settings: Settings, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        merge_settings(settings)


def test_vectors_are_no_stream_for_shards() -> None:
    sharded = Sharded(Settings(), 2)
    vectors = np.random.default_rng(0).normal(size=(600, 3))
    with pytest.raises(ConfigError, match="texts and categories"):
        fed(sharded, [Record(x.tolist(), {}, None) for x in vectors], [600])
