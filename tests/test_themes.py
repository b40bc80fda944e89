"""Themes: the tree against a plain one over all pairs, its cuts, what commands, reports and Python say."""

from __future__ import annotations

import csv
import io
import json
import math
import pickle
import random
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from commands import fail, parsed, succeed
from feeds import headlines

import streamdp
from streamdp import Engine, Settings
from streamdp.beam.looks.uniting import collect_rows
from streamdp.likelihoods import (
    BetaBernoulli,
    Categorical,
    DirichletMultinomial,
    Gaussian,
    HierarchicalDirichlet,
    HierarchicalPitmanYor,
    NormalInverseGamma,
    Product,
    VonMisesFisher,
)
from streamdp.likelihoods.vectors import add_entry
from streamdp.story.statistics import Statistics
from streamdp.story.story import Stories, Story, Theme, times_of
from streamdp.story.themes import themes_of
from streamdp.story.tree import Tree, tree_of
from streamdp.story.words import Bag

# ---------------------------------------------------------------- the tree


def check(tree: Tree, records: list[list[Any]], sizes: list[int], marginal: Any, alpha: float) -> None:
    """Each step unites the pair that gains most, of all pairs, by the log marginals of their records."""
    parts: dict[int, list[Any]] = dict(enumerate(records))
    held = dict(enumerate(sizes))

    def gain(a: int, b: int) -> float:
        evidence = marginal(parts[a] + parts[b]) - marginal(parts[a]) - marginal(parts[b])
        prior = math.lgamma(held[a] + held[b]) - math.lgamma(held[a]) - math.lgamma(held[b])
        return float(evidence + prior - math.log(alpha))

    for into, gone, gained in zip(tree.into.tolist(), tree.gone.tolist(), tree.gains.tolist(), strict=True):
        best = max(gain(a, b) for a, b in combinations(parts, 2))
        assert gained == pytest.approx(gain(into, gone), abs=1e-7)
        assert gained == pytest.approx(best, abs=1e-7)
        assert held[into] >= held[gone]
        parts[into] = parts[into] + parts.pop(gone)
        held[into] += held.pop(gone)
    assert len(parts) == 1


@pytest.mark.parametrize(
    "family",
    [HierarchicalPitmanYor(), HierarchicalDirichlet(), DirichletMultinomial(vocabulary_size=12)],
    ids=lambda family: type(family).__name__,
)
def test_the_tree_of_words_is_the_plain_one(family: Any) -> None:
    base = np.full(12, 1 / 12)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        records: list[list[Any]] = []
        for story in range(9):
            favoured = rng.dirichlet(np.full(12, 0.3)) if story % 3 == 0 else favoured  # noqa: F821
            drawn = [Counter(rng.choice(12, 6, p=favoured).tolist()) for _ in range(rng.integers(1, 5))]
            records.append([(np.array([*r]), np.array([*r.values()])) for r in drawn])
        sizes, bags = [len(own) for own in records], []
        for own in records:
            total: Counter[int] = Counter()
            for words, counts in own:
                total.update(dict(zip(words.tolist(), counts.tolist(), strict=True)))
            bags.append(Bag.of(np.array([*total]), np.array([*total.values()])))

        def marginal(given: list[Any]) -> float:
            return float(family.log_marginal(given, base))

        tree = tree_of(Statistics([*range(9)], sizes, family, 2.0, bags, base=base))
        check(tree, records, sizes, marginal, 2.0)


@pytest.mark.parametrize(
    "family",
    [Gaussian(2), NormalInverseGamma(2), BetaBernoulli(2)],
    ids=lambda family: type(family).__name__,
)
def test_the_tree_of_vectors_is_the_plain_one(family: Any) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        records = [
            [(x > 0).astype(float) if isinstance(family, BetaBernoulli) else x for x in own]
            for own in (rng.normal(size=(rng.integers(1, 5), 2)) + 3 * (k % 3) for k in range(8))
        ]
        place = np.repeat(np.arange(8), [len(own) for own in records])
        block = np.zeros((8, family.width))
        collect_rows(family.terms(), np.concatenate(records), place, block)
        sizes = [len(own) for own in records]
        tree = tree_of(Statistics([*range(8)], sizes, family, 1.0, rows=block))
        check(tree, records, sizes, family.log_marginal, 1.0)


def test_the_tree_of_words_and_vectors_weighs_both() -> None:
    """The weighted gain of the vectors counts beside that of the words; some records lack a vector."""
    sphere = VonMisesFisher(3, (2.0, 9.0), (0.0, 0.0, 1.0), 0.7, 0.6)
    family = Categorical(0.5, text=HierarchicalPitmanYor())
    for seed in range(4):
        rng = np.random.default_rng(seed)
        base = np.append([0.0, -1.0], np.full(12, -1 / 12))
        bags, rows, records = [], [], list[list[Any]]()
        for k in range(8):
            drawn, own, row = Counter[int](), list[Any](), sphere.empty_row()
            for i in range(rng.integers(1, 5)):
                text = Counter((2 + rng.choice(12, 4)).tolist())
                bag = {0: 1, 1: 4} | dict(sorted(text.items(), key=lambda each: each[1]))
                drawn.update(bag)
                x = np.eye(3)[k % 3] + rng.normal(0.0, 0.2, 3)
                x = None if i == 1 else x / np.linalg.norm(x)
                if x is not None:
                    add_entry(sphere.terms(), row, x)
                own.append(((np.array([*bag]), np.array([*bag.values()])), x))
            records.append(own)
            rows.append(row)
            bags.append(Bag.of(np.array([*drawn]), np.array([*drawn.values()])))

        def marginal(given: list[Any], base: np.ndarray = base) -> float:
            vectors = sphere.log_marginal([x for _, x in given if x is not None])
            return family.log_marginal([bag for bag, _ in given], base) + vectors

        sizes = [len(own) for own in records]
        statistics = Statistics([*range(8)], sizes, Product(family, sphere), 2.0, bags, np.array(rows), base)
        check(tree_of(statistics), records, sizes, marginal, 2.0)


def test_themes_of_a_stream_know_the_vectors_beside_words() -> None:
    """Stories of one subject share no word, but are near each other; some of two subjects share a word."""
    rng = np.random.default_rng(3)
    records: list[Any] = []
    for _ in range(600):
        subject, story = rng.integers(0, 2), rng.integers(0, 3)
        words = [f"s{subject}t{story}w{w}" for w in rng.integers(0, 6, 8)] + 2 * [f"common{story}"]
        vector = np.eye(16)[subject] + rng.normal(0.0, 0.1, 16)
        records.append({"text": " ".join(words), "vector": vector.tolist()})
    found = {}
    for name, more in (("words", {}), ("both", {"vector_field": "vector", "vector_weight": 1.0})):
        given = records if more else [{"text": record["text"]} for record in records]
        crp: dict[str, Any] = {"prior": "crp", "concentration": 20.0, "base_escape": 1.0}
        engine = Engine(Settings(texts=("text",), **crp, **more))  # type: ignore[arg-type]
        engine.advance(given)
        stories = engine.stories().themed(2)
        found[name] = [len(subjects_of(stories, theme)) for theme in stories.themes]
        assert len(stories) == 6
    assert found == {"words": [2, 2], "both": [1, 1]}


def subjects_of(stories: Stories, theme: Theme) -> set[str]:
    """The subjects of the records of a theme, by the words of titles."""
    words = " ".join(s.title for s in stories if s.label in theme.stories).replace("=", " ").split()
    return {word[:2] for word in words if word[0] == "s"}


def test_stories_of_two_themes_wait_for_those_of_none() -> None:
    alike = Bag.of(np.arange(6), np.full(6, 3))
    bags = [alike, alike, Bag.of(np.arange(5, 9), np.full(4, 2))]
    statistics = Statistics([3, 4, 8], [4, 4, 2], HierarchicalPitmanYor(), 1.0, bags)
    assert {*tree_of(statistics).cut(2).values()} == {0, 2}  # the two that are alike
    tree = tree_of(statistics, {3: 1, 4: 2})
    assert tree.gone[0] == 2
    assert len({tree.cut(2)[label] for label in (3, 4)}) == 2


def test_a_tree_is_cut_where_asked_or_where_nothing_is_gained() -> None:
    tree = Tree([5, 7, 9, 2], np.array([0, 2, 0]), np.array([1, 3, 2]), np.array([4.0, 1.0, -3.0]))
    assert len(set(tree.cut(1).values())) == 1
    assert len(set(tree.cut(4).values())) == len(set(tree.cut(99).values())) == 4
    cut = tree.cut()
    assert cut == tree.cut(2)
    assert (cut[5], cut[9]) == (cut[7], cut[2])
    assert cut[5] != cut[9]


def test_few_stories_make_a_tree() -> None:
    family = HierarchicalPitmanYor()
    assert tree_of(Statistics([], [], family, 1.0)).cut() == {}
    one = Bag.of(np.array([0]), np.array([1]))
    assert tree_of(Statistics([4], [1], family, 1.0, [one])).cut(3) == {4: 0}


# ---------------------------------------------------------------- what people are told

TOPICS = ("storm coast flood wave", "election vote count ballot", "goal match striker cup")


def records(n: int = 900) -> list[str]:
    """Three topics of three stories each, side by side: a story shares words with those of its topic."""
    rng = np.random.default_rng(5)
    texts = []
    for _ in range(n):
        topic, story = rng.integers(0, 3, 2)
        own = " ".join(f"t{topic}s{story}w{w}" for w in rng.integers(0, 6, 6))
        texts.append(f"{' '.join(rng.permutation(TOPICS[topic].split())[:2])} {own}")
    return texts


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine(Settings(prior="crp", concentration=60.0))
    engine.advance(records())
    return engine


def topics_of(stories: Stories, theme: Theme) -> set[str]:
    """Topics of the stories of a theme, by their titles' words."""
    titles = [story.title for story in stories if story.label in theme.stories]
    return {word[:2] for title in titles for word in title.split() if word[0] == "t" and word[1].isdigit()}


def test_themes_unite_stories_of_one_topic(engine: Engine) -> None:
    stories = engine.stories()
    assert len(stories) > 4
    themed = stories.themed(3)
    assert len(themed.themes) == 3
    assert all(len(topics_of(themed, theme)) == 1 for theme in themed.themes)
    assert [theme.records for theme in themed.themes] == sorted(
        (theme.records for theme in themed.themes), reverse=True
    )
    assert sum(theme.records for theme in themed.themes) == sum(story.records for story in stories)
    for theme in themed.themes:
        own = [story for story in themed if story.theme == theme.theme]
        assert [story.label for story in own] == theme.stories
        assert (theme.theme, theme.title) == (own[0].label, own[0].title)
    assert all(story.theme is None for story in stories)  # those that were asked stay as they are
    assert themed[:2].themes == themed.by("new").themes == themed.themes
    assert len(stories.themed(999).themes) == len(stories)


def test_themes_ask_nothing_of_what_has_no_words() -> None:
    lines = Engine(Settings(likelihood="template"))
    lines.advance([f"connection from 10.0.0.{i} closed" for i in range(30)])
    assert lines.stories().themed(2).themes == []
    assert Stories([]).themed(2).themes == []


def test_vectors_and_categories_have_themes_too() -> None:
    rng = np.random.default_rng(2)
    centres = np.array([[0, 0], [0, 6], [60, 0], [60, 6]])
    rows = centres[np.arange(400) % 4] + rng.normal(size=(400, 2))
    vectors = Engine(Settings(warmup=50))
    vectors.advance(rows.tolist())
    assert [len(theme.stories) for theme in vectors.stories().themed(1).themes] == [len(vectors.stories())]
    kinds: list[Any] = [{"a": f"a{i % 4}", "b": f"b{i % 4}", "c": f"c{i % 4 // 2}"} for i in range(400)]
    fields = Engine(Settings(likelihood="categorical", prior="crp", concentration=1.0))
    fields.advance(kinds)
    assert len(fields.stories().themed(2).themes) == min(2, len(fields.stories()))


def test_scikit_learn_answers_themes_where_asked() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(2)
    centres = np.array([[0, 0], [0, 9], [60, 0], [60, 9]])
    rows = centres[np.arange(400) % 4] + rng.normal(size=(400, 2))
    fine = streamdp.StreamDPClusterer().fit(rows)
    coarse = streamdp.StreamDPClusterer(themes=2).fit(rows)
    assert len(set(fine.labels_)) > 2
    assert len(set(coarse.labels_)) == 2
    assert len({*zip(fine.labels_, coarse.labels_, strict=True)}) == len(set(fine.labels_))  # it nests
    assert (coarse.predict(rows) == coarse.labels_).all()
    assert (coarse.partial_fit(rows).predict(rows) == coarse.predict(rows)).all()


# ---------------------------------------------------------------- commands


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state, a store and answers of the records above."""
    folder = tmp_path_factory.mktemp("themes")
    lines = (json.dumps({"time": 1_767_225_600 + 60 * i, "text": text}) for i, text in enumerate(records()))
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")
    run = ("consume", "in.jsonl", "--prior", "crp", "--concentration", "60", "--keep", "text")
    succeed(folder, *run, "--state", "st", "--store", "news.db", "--output", "out.jsonl")
    return folder


@pytest.mark.parametrize("path", ["st", "news.db", "out.jsonl"])
def test_the_command_prints_themes_and_the_stories_of_one(told: Path, path: str) -> None:
    themes = parsed(succeed(told, "stories", path, "--themes", "3", "--json"))
    assert len(themes) == 3
    found = streamdp.stories(told / path).themed(3)
    assert [theme["theme"] for theme in themes] == [theme.theme for theme in found.themes]
    assert all(len(topics_of(found, theme)) == 1 for theme in found.themes)
    number = str(themes[0]["theme"])
    data = succeed(told, "stories", path, "--themes", "3", "--theme", number, "--csv", "--least", "1")
    rows = list(csv.DictReader(io.StringIO(data.decode())))
    assert [int(row["story"]) for row in rows] == themes[0]["stories"]
    assert {row["theme"] for row in rows} == {number}
    table = succeed(told, "stories", path, "--themes", "auto").decode()
    assert "themes of" in table
    rows = list(
        csv.DictReader(io.StringIO(succeed(told, "stories", path, "--themes", "3", "--csv").decode()))
    )
    assert [row["records"] for row in rows] == [str(theme["records"]) for theme in themes]


def test_what_is_no_theme_is_told(told: Path) -> None:
    assert fail(told, "stories", "st", "--themes", "some") == (
        64,
        "streamdp: --themes: 'some' is neither a number above 0 nor auto\n",
    )
    code, message = fail(told, "stories", "st", "--theme", "99999")
    assert (code, message) == (66, "streamdp: there is no theme 99999: --themes 20 lists them\n")
    (told / "a.log").write_text("".join(f"connection {i} closed\n" for i in range(40)))
    succeed(told, "consume", "a.log", "--format", "text", "--likelihood", "template", "--state", "log")
    code, message = fail(told, "stories", "log", "--themes", "2")
    assert (code, message) == (66, "streamdp: there are no themes: templates have none\n")


def test_a_report_shows_themes_where_they_are_asked_for(told: Path) -> None:
    succeed(told, "stories", "news.db", "--report", "r.html", "--overwrite")
    assert "<h2>Themes" not in (told / "r.html").read_text()
    succeed(told, "stories", "news.db", "--report", "r.html", "--overwrite", "--themes", "3")
    page = (told / "r.html").read_text()
    themes = streamdp.stories(told / "news.db").themed(3).themes
    assert page.count("<li><strong>") == 3
    for theme in themes:
        assert f"<strong>{theme.title}</strong> ({len(theme.stories)} stor" in page


def test_a_theme_is_called_by_its_largest_story() -> None:
    def story(label: int, size: int, now: int) -> Story:
        return Story(
            label=label, title=f"t{label}", keywords=["w", f"k{label}"], records=size,
            **times_of(0.0, None, 1.0), first_seq=0, last_seq=9, now=now, before=2, trend="steady",
        )  # fmt: skip

    family = HierarchicalPitmanYor()
    bags = [Bag.of(np.array([0, 1]), np.array([9, 9])) for _ in range(2)]
    statistics = Statistics([3, 8], [4, 6], family, 1.0, bags)
    found = Stories([story(3, 4, 1), story(8, 6, 30)], statistics=lambda: statistics).themed(1)
    (theme,) = found.themes
    assert (theme.theme, theme.title, theme.stories, theme.records) == (8, "t8", [8, 3], 10)
    assert theme.keywords[0] == "w"
    assert (theme.now, theme.before, theme.trend) == (31, 4, "growing")


# ---------------------------------------------------------------- from one look to the next


def kept(looks: list[dict[int, tuple[int, int]]]) -> float:
    """The share of records whose story keeps the number of its theme."""
    same = total = 0
    for before, after in pairwise(looks):
        for label in before.keys() & after.keys():
            size, number = after[label]
            total += size
            same += size * (before[label][1] == number)
    return same / total


def test_stories_that_were_together_stay_together_and_numbers_stay() -> None:
    rng = np.random.default_rng(4)
    bags = [Bag.of(np.sort(rng.choice(40, 6, replace=False)), rng.integers(1, 5, 6)) for _ in range(9)]
    statistics = Statistics([*range(10, 19)], [5, 9, 2, 7, 1, 3, 8, 2, 4], HierarchicalDirichlet(), 2.0, bags)
    before = {10: 40, 11: 40, 12: 41, 13: 41, 14: 42, 15: 42, 99: 43}
    found = themes_of(statistics, 4, before)
    assert len(set(found.values())) == 4
    for a, b in ((10, 11), (12, 13), (14, 15)):
        assert found[a] == found[b]
    parts = {number: {k for k, of in found.items() if of == number} for number in found.values()}
    for number, own in parts.items():
        shared = {before[label] for label in own if label in before}
        assert number in shared or not shared & {*parts}
    tree = tree_of(statistics, {label: before[label] for label in statistics.labels if label in before})
    assert np.isinf(tree.gains[:3]).all()
    free = tree_of(statistics)
    assert themes_of(statistics, 9, before).keys() == set(statistics.labels)  # more than were left together
    assert len(set(themes_of(statistics, 9, before).values())) == 9
    anew = themes_of(statistics, 4, before, anew=True)
    cut = free.cut(4)
    assert {frozenset(k for k in anew if anew[k] == n) for n in anew.values()} == {
        frozenset(k for k in cut if cut[k] == n) for n in cut.values()
    }


def test_a_stream_keeps_its_themes_in_its_state() -> None:
    records = headlines(6000, 3)
    engine, looks = Engine(Settings(beam=1, themes=6)), []
    for begin in range(0, 6000, 1024):
        engine.advance(records[begin : begin + 1024])
        found = engine.stories(records=False).themed(6)
        looks.append({s.label: (s.records, s.theme) for s in found if s.theme is not None})
    assert kept(looks) >= 0.9
    again = Engine.loads(engine.dumps(), engine.settings)
    assert again.stories(records=False).themed(6).theme_numbers == found.theme_numbers
    assert again.dumps() == engine.dumps()
    whole = Engine(Settings(beam=1, themes=6))
    whole.advance(records[:4500])
    whole.advance(records[4500:])
    assert whole.dumps() == engine.dumps()
    plain = Engine(Settings(beam=1))
    plain.advance(records)
    assert not msgspec.msgpack.decode(plain.dumps(), strict=False)["stories"]["themes"]


def test_river_answers_themes() -> None:
    chance = random.Random(2)
    model, fine = streamdp.StreamDP(beam=2, themes=2), streamdp.StreamDP(beam=2)
    centres = [(0.0, 0.0), (0.0, 9.0), (40.0, 0.0), (40.0, 9.0)]
    for i in range(400):
        x, y = centres[i % 4]
        row = {"x": chance.gauss(x, 0.3), "y": chance.gauss(y, 0.3)}
        model.learn_one(row)
        fine.learn_one(row)
    rows = [{"x": x, "y": y} for x, y in centres]
    assert len({fine.predict_one(row) for row in rows}) == 4
    found = [model.predict_one(row) for row in rows]
    assert found[0] == found[1] != found[2] == found[3]
    assert sum(model.predict_proba_one(rows[0]).values()) == pytest.approx(1.0)
    assert max(model.predict_proba_one(rows[0]).items(), key=lambda each: each[1])[0] == found[0]
    before = model.__getstate__()
    model.predict_one(rows[0])
    again = pickle.loads(pickle.dumps(model))
    assert again.__getstate__() == before == model.__getstate__()
    assert [again.predict_one(row) for row in rows] == found
