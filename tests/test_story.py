"""Stories: titles, keywords, what is now, and how they hold while the stream flows."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from feeds import reloaded, topical

from streamdp import Engine, Event, Record, Settings
from streamdp.encode.phrases import joined
from streamdp.kernels.packed import as_type, encoded
from streamdp.story.clock import Clock, duration, rounded_down
from streamdp.story.doubts import doubts
from streamdp.story.gather import Kin
from streamdp.story.memory import Memory
from streamdp.story.story import Story, iso, trend_of
from streamdp.story.titles import CLEARLY, Titles, unique
from streamdp.story.words import DISCOUNT, PULL, UNSEEN, Bag, Base, Elsewhere, keywords, phrases, typicality

# ---------------------------------------------------------------- words


def oracle(story: Counter[str], record: Counter[str], base: Counter[str]) -> float:
    """Mean log predictive of a token under the story without the record, one word after the other."""
    left = story - record
    total, kinds = sum(left.values()), len(left)
    whole = sum(base.values()) + UNSEEN * max(len(base), 1)
    logs = 0.0
    for word, count in record.items():
        common = (base[word] + UNSEEN) / whole
        held = max(left[word] - DISCOUNT, 0.0)
        logs += count * math.log((held + (PULL + DISCOUNT * kinds) * common) / (total + PULL))
    return logs / sum(record.values())


def test_typicality_is_that_of_the_story_without_the_record() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        records = [Counter(rng.integers(0, 12, rng.integers(1, 7)).tolist()) for _ in range(4)]
        story: Counter[int] = sum(records, Counter())
        base = Counter({word: int(rng.integers(0, 5)) for word in range(20)})
        base = Counter({word: count for word, count in base.items() if count})
        counts = np.array([base[word] for word in range(20)])
        bag = Bag.of(np.array([*story]), np.array([*story.values()]))
        words = np.concatenate([[*record] for record in records])
        held = np.concatenate([[*record.values()] for record in records])
        lengths = np.array([len(record) for record in records])
        found = typicality(bag, words, held, lengths, Base.of(counts))
        expected = [oracle(story, record, base) for record in records]  # type: ignore[arg-type]
        assert found == pytest.approx(expected)
        another = np.arange(6)  # a story of six words, each once, beside it
        beside = np.concatenate([bag.words + 20, another]), np.concatenate([bag.counts, np.ones(6)])
        both = Bag.of(*beside)
        which = np.ones(len(records), np.int64)
        again = typicality(both, words, held, lengths, Base.of(counts), which)
        assert again.tolist() == found.tolist()


def bags_of(*texts: str) -> tuple[list[Bag], list[str]]:
    """A bag for each text, and the words by their ids."""
    names = sorted({word for text in texts for word in text.split()})
    number = {name: i for i, name in enumerate(names)}
    counted = [Counter(text.split()) for text in texts]
    bags = [Bag.of(np.array([number[w] for w in c]), np.array([*c.values()])) for c in counted]
    return bags, names


def test_keywords_are_far_more_frequent_here_than_elsewhere() -> None:
    others = [f"the of and to word{i} word{i} word{i + 1}" for i in range(20)]
    bags, names = bags_of("the of and the storm storm coast coast once", *others)
    elsewhere = Elsewhere.of(bags, len(names))
    assert [names[i] for i in keywords(bags[0], elsewhere)] == ["coast", "storm"]
    assert [names[i] for i in keywords(bags[1], elsewhere, most=1)] == ["word0"]
    assert keywords(Bag.of(np.zeros(0, np.int64), np.zeros(0, np.int64)), elsewhere) == []


# ---------------------------------------------------------------- titles


def choose(
    titles: Titles, label: int, size: int, samples: dict[int, tuple[float, str]], **more: set[int]
) -> str | None:
    """Choose a title where all samples are known to be so typical."""
    given = [(seq, 0.0, text) for seq, (_, text) in samples.items()]
    scores = {seq: typical for seq, (typical, _) in samples.items()}
    living = more.get("living", {0, 1})
    asked = titles.asked(label, given)
    found = titles.choose(label, size, given, {s: scores[s] for s in asked if s in scores}, living)
    return None if found is None else found.text


def test_the_most_typical_record_is_the_title_and_not_the_latest() -> None:
    titles = Titles()
    assert choose(titles, 0, 3, {0: (-4.0, "first"), 1: (-2.0, "typical"), 2: (-3.0, "latest")}) == "typical"
    assert titles.of(0) == "typical"


def test_a_title_changes_only_for_one_that_is_clearly_better() -> None:
    titles = Titles()
    choose(titles, 0, 2, {0: (-4.0, "first"), 1: (-4.5, "second")})
    assert titles.due([0], [3]) == []
    assert titles.due([0], [4]) == [0]
    assert choose(titles, 0, 4, {0: (-4.0, "first"), 2: (-4.0 + 0.9 * CLEARLY, "third")}) is None
    assert titles.of(0) == "first"
    assert choose(titles, 0, 8, {0: (-4.0, "first"), 3: (-4.0 + CLEARLY, "fourth")}) == "fourth"
    assert titles.of(0) == "fourth"


def test_no_two_living_stories_have_one_title() -> None:
    titles = Titles()
    choose(titles, 0, 2, {0: (-1.0, "storm"), 1: (-2.0, "wind")})
    choose(titles, 1, 2, {2: (-1.0, "storm"), 3: (-2.0, "rain")})
    assert (titles.of(0), titles.of(1)) == ("storm", "rain")
    choose(titles, 2, 2, {4: (-1.0, "storm")}, living={1, 2})
    assert titles.of(2) == "storm"  # story 0 is gone


def test_titles_that_come_twice_get_a_keyword_or_the_label() -> None:
    given = {4: "storm", 2: "Storm", 7: "storm", 9: "sun"}
    assert unique(given, {4: ["coast"]}) == {2: "Storm", 4: "storm (coast)", 7: "storm (7)", 9: "sun"}


def test_memory_comes_back_as_it_was() -> None:
    memory = Memory()
    choose(memory.titles, 3, 2, {0: (-1.0, "storm")})
    split = Event(
        event="split",
        seq=5,
        time=None,
        cluster=7,
        other=3,
        size=4,
        moved=[(3, 4)],
        first_time=None,
        last_time=None,
    )
    memory.happened([split])
    again = as_type(msgspec.msgpack.decode(encoded(memory)), Memory)
    assert again.titles.of(3) == "storm"
    assert list(again.kin) == [Kin("split", 7, 3)]


# ---------------------------------------------------------------- what is now


def test_now_is_the_latest_stretch_of_event_time() -> None:
    start = 1_700_000_000.0
    times = start + 60.0 * np.arange(4000)
    clock = Clock.of(times, len(times))
    assert (clock.time, clock.stretch, clock.words) == (times[-1], 12 * 3600.0, "12 hours")
    labels = np.where(np.arange(4000) % 2, 5, 8)
    labels[-800:] = 8
    figures = clock.figures(labels, times)
    assert (figures[5].now, figures[5].before) == (0, 320)
    assert (figures[8].now, figures[8].before) == (720, 400)
    assert figures[8].peak == clock.time - clock.stretch
    assert figures[5].peak == clock.time - 5 * clock.stretch


def test_without_times_now_is_the_latest_records() -> None:
    clock = Clock.of(None, 5000)
    assert (clock.stretch, clock.words) == (1000.0, "1,000 records")
    found = clock.figures(np.array([1] * 1500 + [2] * 500), np.arange(3000, 5000, dtype=float))
    assert (found[1].now, found[1].before, found[1].peak) == (500, 1000, None)
    assert Clock.of(None, 100).stretch == 50
    assert Clock.of(None, 0).figures(np.zeros(0, int), np.zeros(0)) == {}


@pytest.mark.parametrize(
    ("took", "dates", "length"),
    [
        (7000.0, True, 3600.0),
        (0.2, True, 1.0),
        (90_000.0, True, 86_400.0),
        (970.0, False, 500.0),
        (0.0, False, 1.0),
    ],
)
def test_a_stretch_is_a_length_that_is_easily_said(took: float, dates: bool, length: float) -> None:
    assert rounded_down(took, as_date=dates) == length


def test_lengths_of_time_are_read() -> None:
    assert [duration(text) for text in ("90", "90s", "15m", "6h", "2d", "1w", "1.5h")] == [
        *(90.0, 90.0, 900.0, 21_600.0, 172_800.0, 604_800.0, 5400.0)
    ]
    for wrong in ("", "h", "-1h", "nan", "soon"):
        with pytest.raises(ValueError, match="is no length of time"):
            duration(wrong)


def test_trends_differ_by_more_than_chance() -> None:
    assert trend_of(0, 9, began_now=False) == "silent"
    assert trend_of(3, 0, began_now=True) == "new"
    assert trend_of(9, 4, began_now=False) == "growing"
    assert trend_of(4, 9, began_now=False) == "fading"
    assert trend_of(5, 4, began_now=False) == "steady"


def test_times_are_iso() -> None:
    assert iso(1_700_000_000.9) == "2023-11-14T22:13:20Z"
    assert (iso(12.5), iso(None)) == ("12.5", "")


# ---------------------------------------------------------------- of a stream


def generated(n: int) -> Iterator[Record]:
    rng = np.random.default_rng(1)
    for i in range(n):
        story = int(rng.integers(0, 6)) + i // 500
        words = [f"s{story}w{int(w)}" for w in rng.integers(0, 8, 6)]
        yield Record(" ".join(["the", "of", *words]), {"line": i}, 1_700_000_000.0 + 30.0 * i)


@pytest.mark.parametrize("drift", [False, True])
def test_titles_are_of_the_majority_of_their_stories(drift: bool) -> None:
    records, true = topical(6000, 3, drift=drift, share=0.35 if drift else 0.5)
    engine = Engine()
    by_text: dict[str, set[int]] = {}
    for record, kind in zip(records, true, strict=True):
        by_text.setdefault(str(record.value), set()).add(kind)
    right = judged = 0
    for start in range(0, len(records), 1500):
        engine.advance(records[start : start + 1500])
        labels, _ = engine.lately()
        first = engine.seq - len(labels)
        for story in engine.stories(records=False):
            members = np.flatnonzero(labels == story.label) + first
            titled = by_text.get(story.title)
            if len(members) < 4 or titled is None:
                continue
            judged += 1
            right += Counter(true[i] for i in members).most_common(1)[0][0] in titled
    assert judged > 100
    assert right / judged > 0.9


def test_titles_and_renames_do_not_depend_on_batches_or_on_being_dumped() -> None:
    records = list(generated(2600))
    whole = Engine(with_events=True)
    events = list(whole.advance(records).events)
    parts, told = reloaded(whole.settings, records, range(371, 2600, 371), with_events=True)
    assert told.events == events
    assert parts.dumps() == whole.dumps()
    assert parts.stories() == whole.stories()


def test_a_text_that_is_the_only_field_has_keywords_as_texts_have() -> None:
    texts = [str(record.value) for record in topical(600, 3, drift=False)[0]]
    engine = Engine(Settings(texts=("text",)))
    engine.advance([{"text": text} for text in texts])
    labels, ids = engine.lately()[0].tolist(), dict[str, int]()
    held: dict[int, Counter[int]] = {label: Counter() for label in labels}
    for label, text in zip(labels, texts, strict=True):
        held[label].update(ids.setdefault(word, len(ids)) for word in text.lower().split())
    bags = {k: Bag.of(np.array([*own]), np.array([*own.values()])) for k, own in held.items()}
    elsewhere, names = Elsewhere.of([*bags.values()], len(ids)), [*ids]
    stories = {story.label: story for story in engine.stories()}
    expected = {label: {names[i] for i in keywords(bags[label], elsewhere, 99)} for label in stories}
    assert sum(map(bool, expected.values())) > 3
    for label, story in stories.items():
        assert len(story.keywords) == min(len(expected[label]), 6) or not expected[label]
        if expected[label]:
            assert {*story.keywords} <= expected[label]


def test_a_title_is_near_in_words_and_in_meaning() -> None:
    """Of texts with as typical words, the latest is the title where its vector is like the others' alone."""
    titles = {}
    for near in (True, False):
        rng = np.random.default_rng(0)
        vectors = np.eye(16)[np.arange(512) % 2] + rng.normal(0.0, 0.1, (512, 16))
        vectors[510] = np.eye(16)[0 if near else 7]
        words = [("storm coast", "goal match")[i % 2] for i in range(512)]
        settings = Settings(prior="crp", texts=("text",), vector_field="vector", vector_weight=1.0)
        engine = Engine(settings)
        records = zip(words, vectors.tolist(), strict=True)
        engine.advance([{"text": f"{two} w{i}", "vector": v} for i, (two, v) in enumerate(records)])
        (titles[near],) = (
            s.title for s in engine.stories() if s.title.startswith("storm") and s.records > 200
        )
    assert titles[True] == "storm coast w510" != titles[False]


def test_stories_say_what_there_is() -> None:
    engine = Engine(with_events=True)
    engine.advance(generated(2600))
    stories = engine.stories()
    assert [s.records for s in stories] == sorted((s.records for s in stories), reverse=True)
    assert len({s.title for s in stories}) == len(stories)
    assert stories.records == 2600
    first = stories[0]
    assert not {"the", "of"} & set(first.keywords)
    assert first.title.startswith("the of s")
    assert first.surest[0].probability is not None
    assert first.surest[0].probability >= (first.unsure[0].probability if first.unsure else 0.0)
    assert sum(s.now for s in stories) <= 2600
    assert {s.trend for s in stories} >= {"silent"}
    closed = engine.stories(closed=True)
    assert closed.remembered == "latest"
    assert "stories of 2,600 records, now the last" in repr(stories)
    assert "<table>" in stories._repr_html_()
    assert stories.by("new")[0].first_seq == max(s.first_seq for s in stories)
    assert stories[:2].clock == stories.clock
    row = stories.rows()[0]
    assert row["began"].endswith("Z")
    assert row["records"] == first.records


@pytest.mark.parametrize(
    ("drift", "given", "doubtful"),
    [
        (True, {}, False),
        (False, {}, False),
        (False, {"concentration": 1.0, "base_concentration": 300.0}, True),
    ],
)
def test_a_stream_that_does_not_cluster_well_is_said_to(
    drift: bool, given: dict[str, float], doubtful: bool
) -> None:
    records, _ = topical(4000, 3, drift=drift)
    engine = Engine(Settings(**given))
    engine.advance(records)
    warnings = engine.stories(records=False).warnings
    assert len(warnings) == doubtful
    assert all("one story holds" in warning for warning in warnings)


def test_doubts_name_what_is_wrong() -> None:
    rng = np.random.default_rng(0)
    good = rng.integers(0, 40, 3000)
    words = rng.integers(0, 500, 30_000)
    assert list(doubts(good, 0.1, words)) == []
    assert list(doubts(np.zeros(1999, int), 1.0, None)) == []
    (alone,) = doubts(np.arange(3000), 0.1, words)
    (revised,) = doubts(good, 0.4, words)
    (fresh,) = doubts(good, 0.1, np.arange(30_000))
    assert alone.startswith("100% of the latest records are alone")
    assert revised.startswith("40% of the answers were revised")
    assert fresh.startswith("100% of the words")


def test_templates_are_titles_of_log_lines() -> None:
    engine = Engine(Settings(likelihood="template"))
    engine.advance([f"user {i} logged in" for i in range(30)] + [f"disk {i} is full" for i in range(9)])
    stories = engine.stories()
    assert stories.noun == "template"
    assert stories.counted(2) == "2 templates"
    assert [s.title for s in stories] == [s.title for s in sorted(stories, key=lambda s: -s.records)]
    assert all(s.template for s in stories)


def test_vectors_have_stories_too() -> None:
    rng = np.random.default_rng(0)
    engine = Engine()
    engine.advance([(rng.normal(size=3) + 9 * (i % 3)).tolist() for i in range(600)])
    stories = engine.stories()
    assert len(stories) >= 3
    assert all(isinstance(s, Story) and s.title for s in stories)


def test_an_engine_without_records_has_no_stories() -> None:
    engine = Engine()
    assert not engine.stories()
    assert not engine.stories(closed=True)


def test_a_story_whose_first_records_have_no_time_has_no_beginning() -> None:
    engine = Engine(with_events=True)
    day = 1.76e9
    found = engine.advance([Record(value="storm hits coast", time=t) for t in (None, day, day + 60)])
    assert [(s.began, s.first_seq, s.last_time) for s in engine.stories()] == [(None, 0, day + 60)]
    assert [cluster.first_time for cluster in engine.clusters()] == [None]
    assert [event.first_time for event in found.events if event.event == "born"] == [None]
    numbered = Engine()
    numbered.advance([Record(value="storm hits coast", time=t) for t in (0.0, 60.0)])
    assert [(s.began, s.last) for s in numbered.stories()] == [("0", "60")]


def test_words_of_clusters_and_events_are_phrases_as_often_as_their_rarest_pair() -> None:
    engine = Engine(with_events=True)
    texts = ["四川地震死亡", "四川地震: 捐款", "四川地震后: 重建", "女排夺冠"]
    events = engine.advance(texts * 3).events
    assert [cluster.words for cluster in engine.clusters()] == [[("四川地震", 9)], [("女排夺冠", 3)]]
    assert ("born", [("女排夺冠", 1)]) in [(event.event, event.words) for event in events]
    assert joined([("storm", 2), ("st", 1)], ["storm"]) == [("storm", 2), ("st", 1)]
    assert joined([("地震", 2), ("震", 1)], []) == [("地震", 2), ("震", 1)]
    assert joined([("ちゃ", 2), ("赤", 3), ("ゃん", 1)], ["赤ちゃん"]) == [("赤ちゃん", 1)]


def test_what_most_of_was_said_is_no_keyword() -> None:
    pairs = [a + b for a, b in itertools.pairwise("台风海燕逼近福建沿海")]
    assert phrases([pairs[0], pairs[-1], *pairs], ["台风海燕逼近福建沿海"]) == ["台风海燕逼近福建"]


def test_keywords_are_phrases_of_the_texts() -> None:
    texts = ["四川地震\uff1a大熊猫双胞胎获救", "四川发生地震, \uff21\uff22"]
    words = ["地震", "震", "双胞", "熊", "胞胎", "not", "没", "of", "余震", "ab"]
    assert phrases(words, texts) == ["地震", "双胞胎", "of", "ab"]
    assert phrases(["利", "利上", "ちゃ", "ゃん", "赤"], ["利上げと赤ちゃん"]) == ["利上", "赤ちゃん"]
    assert phrases(["虹", "not"], ["「虹」が解散"]) == ["虹"]
    assert phrases(["nicht"], ["Das geht nicht"]) == []
    once = phrases(words, texts)
    assert phrases(once, texts) == once
