from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from itertools import pairwise
from math import sqrt

import msgspec
import pytest

from benchmarks import drifting as demo
from benchmarks.drifting import START, DemoRecord, demo_stream

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


def words(told: list[DemoRecord]) -> Counter[str]:
    common = set(demo.COMMON)
    return Counter(word for record in told for word in record.text.split() if word not in common)


def cosine(a: Counter[str], b: Counter[str]) -> float:
    product = sum(a[word] * b[word] for word in a)
    return product / sqrt(sum(k * k for k in a.values()) * sum(k * k for k in b.values()))


def test_same_seed_same_bytes(records: list[DemoRecord]) -> None:
    assert list(demo_stream(5000, 0)) == records
    assert list(demo_stream(700, 0)) == records[:700]
    assert [r.text for r in demo_stream(50, 1)] != [r.text for r in records[:50]]


def test_same_bytes_everywhere(records: list[DemoRecord]) -> None:
    digest = hashlib.sha256(msgspec.json.encode(records)).hexdigest()
    assert digest == "22db8443ff2b2dc5a21163c5127eb9710a1026f80016d5eabab63c949dc2ed16"


def test_shape_of_records(records: list[DemoRecord]) -> None:
    assert records[0].time >= START
    assert all(a.time <= b.time for a, b in pairwise(records))
    assert len({r.id for r in records}) == len(records)
    assert {len(r.text.split()) for r in records} == set(range(6, 17))


@pytest.mark.parametrize("seed", range(6))
def test_number_and_sizes_of_stories(seed: int) -> None:
    sizes = sorted(Counter(r.topic for r in demo_stream(5000, seed)).values(), reverse=True)
    assert 25 <= len(sizes) <= 70
    assert sizes[0] > 8 * sizes[len(sizes) // 2]
    assert sum(sizes[: len(sizes) // 5]) > 0.5 * sum(sizes)


def test_stories_are_born_and_die(records: list[DemoRecord], stories: Stories) -> None:
    births = sorted(told[0].time for told in stories.values())
    gaps = [b - a for a, b in pairwise(births)]
    assert 0.5 * 7200 < sum(gaps) / len(gaps) < 2 * 7200
    middle, end = records[2500].time, records[-1].time
    dead = [name for name, told in stories.items() if told[-1].time < middle]
    unborn = [name for name, told in stories.items() if told[0].time > middle]
    assert len(dead) > 8
    assert len(unborn) > 8
    assert all(told[-1].time - told[0].time <= 72 * 3600 for told in stories.values())
    assert end - START > 86_400


def test_activity_rises_fast_and_decays_slowly(stories: Stories) -> None:
    whole = [told for told in stories.values() if len(told) >= 40]
    later = 0
    for told in whole:
        middle = (told[0].time + told[-1].time) / 2
        later += sum(record.time > middle for record in told)
    assert 0.02 < later / sum(map(len, whole)) < 0.4


def headline(name: str) -> set[str]:
    event, place, person = name.split(", ")
    return {*event.split()[1:], place, person}


def test_vocabulary_drifts(records: list[DemoRecord], stories: Stories) -> None:
    over = records[-1].time - 3600
    large = {name: told for name, told in stories.items() if len(told) >= 200 and told[-1].time < over}
    assert len(large) >= 4
    for name, told in large.items():
        quarter = len(told) // 4
        first, last = words(told[:quarter]), words(told[-quarter:])
        assert 0.4 < cosine(first, last) < 0.9
        for word in headline(name):
            # The headline stays, so a story remains one story; what is said besides does not.
            assert min(first.pop(word), last.pop(word)) > 0
        assert cosine(first, last) < 0.7
        odd, even = words(told[1 : 2 * quarter : 2]), words(told[: 2 * quarter : 2])
        assert cosine(odd, even) > 0.9


def test_headline_says_what_a_story_is_about(stories: Stories) -> None:
    for name, told in stories.items():
        about = headline(name)
        assert len(about) == 4
        share = sum(bool(about & set(record.text.split())) for record in told) / len(told)
        assert share > 0.7


def test_stories_share_words_but_differ(stories: Stories) -> None:
    large = [words(told) for told in stories.values() if len(told) >= 30]
    alike = [cosine(a, b) for i, a in enumerate(large) for b in large[:i]]
    assert sum(value > 0 for value in alike) > 0.1 * len(alike)
    assert max(alike) > 0.1
    assert sum(alike) / len(alike) < 0.1


def test_word_lists() -> None:
    lists = [demo.COMMON, demo.PLACES, demo.PEOPLE]
    lists += [part for theme in demo.THEMES for part in theme]
    assert all(len(set(part)) == len(part) for part in lists)
    assert len({word for part in lists for word in part}) > 600


def test_empty_and_refused() -> None:
    assert list(demo_stream(0, 0)) == []
    for n, seed in ((-1, 0), (1, -1)):
        with pytest.raises(ValueError, match="must not be negative"):
            demo_stream(n, seed)
