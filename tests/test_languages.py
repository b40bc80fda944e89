"""Stories of several languages: words of two languages share nothing, vectors of what they mean do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.languages import agreed, interleaved, stories
from streamdp import Engine, Settings
from streamdp.encode.stop_words import stop_words

TOPICS = (("dog", "hund"), ("train", "zug"), ("storm", "sturm"))
"""Each in two languages."""

WORDS = 150
"""Of a topic in each language: ``dog17`` means what ``hund17`` means."""

DIMENSION = 256


def _table() -> dict[str, np.ndarray]:
    """A vector for each word, near that of its translation, and not far from others of its topic."""
    rng, found = np.random.default_rng(5), dict[str, np.ndarray]()
    common = 2.0 * rng.normal(size=DIMENSION)
    for names in TOPICS:
        topic = common + rng.normal(size=DIMENSION)
        for i in range(WORDS):
            meaning = topic + rng.normal(size=DIMENSION)
            found |= {f"{name}{i}": meaning + 0.3 * rng.normal(size=DIMENSION) for name in names}
    return found


TABLE = _table()


def meaning(texts: Sequence[str]) -> np.ndarray:
    """The mean of the vectors of each text's words."""
    nothing = np.zeros(DIMENSION)
    return np.array([np.mean([TABLE.get(word, nothing) for word in text.split()], axis=0) for text in texts])


def texts_of(topics: np.ndarray, languages: np.ndarray, rng: np.random.Generator) -> list[str]:
    """A text of eight words for each topic and language."""
    return [
        " ".join(f"{TOPICS[topic][k]}{i}" for i in np.minimum(rng.geometric(4 / WORDS, 8), WORDS) - 1)
        for topic, k in zip(topics, languages, strict=True)
    ]


def home(labels: np.ndarray) -> int:
    """The label that most of some records have."""
    values, counts = np.unique(labels, return_counts=True)
    assert counts.max() > 0.8 * counts.sum()
    return int(values[counts.argmax()])


def test_texts_of_two_languages_are_one_story_where_they_mean_the_same() -> None:
    rng = np.random.default_rng(1)
    topics, languages = rng.integers(0, len(TOPICS), 800), rng.integers(0, 2, 800)
    texts = texts_of(topics, languages, rng)
    found = {}
    for embed in (None, "test_languages:meaning"):
        engine = Engine(Settings(embed=embed))
        engine.advance(texts)
        found[embed] = np.array(engine.lately()[0])
    words, both = found.values()
    for topic in range(len(TOPICS)):
        english, german = ((topics == topic) & (languages == k) for k in (0, 1))
        assert home(words[english]) != home(words[german])
        assert home(both[english]) == home(both[german])
    assert len({home(both[topics == topic]) for topic in range(len(TOPICS))}) == len(TOPICS)


def test_all_that_is_told_of_embedded_texts_knows_what_they_mean() -> None:
    """Keywords are plain words, meaning is a reason, and a theme has both languages of its topic."""
    rng = np.random.default_rng(2)
    topics, languages = rng.integers(0, len(TOPICS), 800), rng.integers(0, 2, 800)
    texts = texts_of(topics, languages, rng)
    engine = Engine(Settings(embed="test_languages:meaning"))
    engine.advance(texts)
    stories, labels = engine.stories(), np.array(engine.lately()[0])
    large = [story for story in stories if story.records > 20]
    assert all(story.title in texts for story in large)
    assert all(set(story.keywords) <= set(TABLE) for story in large)
    assert sum(bool(story.keywords) for story in large) > len(large) / 2
    german = engine.whereto("hund2 hund3 hund5")
    assert isinstance(german, list)
    assert "meaning" in dict(german[0].words)
    parts = stories.themed(len(TOPICS)).theme_numbers
    themes = np.array([parts.get(label, -1) for label in labels.tolist()])
    assert {home(themes[(topics == 0) & (languages == k)]) for k in (0, 1)} == {home(themes[topics == 0])}
    assert len({home(themes[topics == topic]) for topic in range(len(TOPICS))}) == len(TOPICS)


@pytest.mark.parametrize(
    "stream", ["arabic", "chinese", "german", "japanese", "russian", "spanish", "german+english"]
)
def test_headlines_of_each_language_find_their_stories(stream: str) -> None:
    first, newest = agreed(stream, "choose")
    assert min(first, newest) > 0.85
    told = Engine()
    told.advance(interleaved(stories(stream, "choose"), 0)[0])
    grammar = {word for name in stream.split("+") for word in stop_words(name)}
    for story in told.stories():
        assert not grammar & set(story.keywords)
        assert "chinese" not in stream or min(map(len, story.keywords), default=2) > 1
