"""The generated headlines: plausible, and with stories that begin, grow, split and end."""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from itertools import pairwise
from string import Formatter

import msgspec
import pytest

from streamdp import Engine, Settings
from streamdp.demo.stream import PHASES, START, DemoRecord, demo_stream, grammar
from streamdp.records import Record
from streamdp.scoring.agreement import agreement

Stories = dict[str, list[DemoRecord]]


@pytest.fixture(scope="module")
def records() -> list[DemoRecord]:
    return list(demo_stream(5000, 0))


@pytest.fixture(scope="module")
def stories(records: list[DemoRecord]) -> Stories:
    found: Stories = defaultdict(list)
    for record in records:
        found[record.topic].append(record)
    return found


def test_same_seed_same_bytes(records: list[DemoRecord]) -> None:
    assert list(demo_stream(5000, 0)) == records
    assert list(demo_stream(700, 0)) == records[:700]
    assert [r.text for r in demo_stream(50, 1)] != [r.text for r in records[:50]]


def test_same_bytes_everywhere(records: list[DemoRecord]) -> None:
    digest = hashlib.sha256(msgspec.json.encode(records)).hexdigest()
    assert digest == "72de518b49a1f8882b568fe907150cc705672b745a19d57655e1ead553387236"


def test_shape_of_records(records: list[DemoRecord]) -> None:
    assert records[0].time >= START
    assert all(a.time <= b.time for a, b in pairwise(records))
    assert len({r.id for r in records}) == len(records)
    assert all(3 <= len(r.text.split()) <= 24 for r in records)
    assert all(r.text[0].isalnum() or r.text[0] == '"' for r in records)
    assert not any(set("[]{}|") & set(r.text) for r in records)


@pytest.mark.parametrize("seed", range(4))
def test_headlines_are_many_and_stories_of_all_sizes(seed: int) -> None:
    found = list(demo_stream(5000, seed))
    assert len({record.text for record in found}) >= 2000
    sizes = sorted(Counter(r.topic for r in found).values(), reverse=True)
    assert 25 <= len(sizes) <= 80
    assert sizes[0] > 5 * sizes[len(sizes) // 2]


def test_stories_begin_and_end(records: list[DemoRecord], stories: Stories) -> None:
    middle = records[2500].time
    assert sum(told[-1].time < middle for told in stories.values()) > 8
    assert sum(told[0].time > middle for told in stories.values()) > 8
    assert all(told[-1].time - told[0].time <= 72 * 3600 for told in stories.values())


def test_a_story_splits_and_what_splits_off_is_of_the_same_place(stories: Stories) -> None:
    kinds = {kind["name"]: kind for kind in grammar()["kinds"]}
    split = [name for name in stories if kinds[name.split(",")[0].split()[1]].get("split")]
    assert len(split) >= 2
    for name in split:
        number, place = int(name.split()[0]), name.split(", ")[1]
        assert any(other.startswith(f"{number - 1} ") and f", {place}, " in other for other in stories)


def test_what_is_told_of_a_story_changes_while_it_goes_on(stories: Stories) -> None:
    name, told = max(stories.items(), key=lambda story: len(story[1]))
    first, last = ({record.text for record in part} for part in (told[:60], told[-60:]))
    assert len(first & last) < 0.2 * len(first)
    place = name.split(", ")[1]
    assert sum(place in record.text for record in told) > 0.95 * len(told)


def test_the_grammar_is_whole() -> None:
    found = grammar()
    names = {kind["name"] for kind in found["kinds"]}
    slots = {"place", "area", "person", "other", "thing", "number", "day", "about"}
    for kind in found["kinds"]:
        assert set(kind.get("leads_to", ())) <= names
        assert len(set(kind["details"])) == len(kind["details"]) >= 10
        for phase in PHASES:
            for form in kind[phase]:
                used = {slot for _, slot, _, _ in Formatter().parse(form) if slot}
                assert used <= slots, form
                assert "about" not in used or "split" in kind, form
                assert (
                    form.count("[") == form.count("]") == len(re.findall(r"\[[^\[\]]+\|[^\[\]]+\]", form))
                ), form
    for words in (found["places"], found["people"], found["first_names"]):
        assert len(set(words)) == len(words) >= 60


def test_the_truth_is_found_again_and_not_in_full(records: list[DemoRecord]) -> None:
    engine = Engine(Settings())
    given = [Record(item.text, {"line": i}, item.time, item.id) for i, item in enumerate(records)]
    lines = [*engine.advance(given).assignments, *engine.finish().assignments]
    newest = {line.seq: line.cluster for line in lines}
    truth = {name: number for number, name in enumerate(dict.fromkeys(r.topic for r in records))}
    found = agreement([newest[i] for i in range(len(records))], [truth[r.topic] for r in records])
    assert 0.88 < found.nmi < 1.0


def test_empty_and_refused() -> None:
    assert list(demo_stream(0, 0)) == []
    for n, seed in ((-1, 0), (1, -1)):
        with pytest.raises(ValueError, match="must not be negative"):
            demo_stream(n, seed)
