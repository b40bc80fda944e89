"""Batches of texts are counted as a plain reading of each, one after the other, would have it."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import numpy as np
import pytest
import snowballstemmer
from feeds import encoded, record
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from streamdp.encode import word_encoder
from streamdp.encode.bags import LONG
from streamdp.encode.batch import Batch
from streamdp.encode.stop_words import LANGUAGES, stop_words
from streamdp.encode.text import Tokenizer, TooManyTokens
from streamdp.encode.vocabulary import Vocabulary
from streamdp.encode.word_encoder import WordEncoder
from streamdp.records import Reject

PIECES = (
    *("storm", "Storm", "STORM,", '("storm")', "coast.", "Anna's", "don't", "e-mail", "3.14", "7", "7,"),
    *("a", "A.", "u.s.", "at&t", "&amp;", "c++", "c#", "#tag", "@name,", "http://a.b/c.", "www.", "www.a.de"),
    *("node.js", "end.Start", "'ll", "n't", "'tis", "[1]", "!?", "\u7fa4\u96c6", "\u00e9t\u00e9", "o'"),
    *("na\u00efve,", "a\u00a0b", "x\u2003yz", "\u3000", "\x0b", "\x1c", "\x85", "\x00nul", "\ud800"),
    *("\ufdfa", "\U0001f602", "What", "is", "the", "in", "der", "dem", "running", "the the"),
)
GAPS = (" ", "  ", "\n", "\t", "")

TEXTS = st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(GAPS)), max_size=12).map(
    lambda pairs: "".join(piece + gap for piece, gap in pairs)
)
ANY = st.one_of(TEXTS, st.text(max_size=40), st.text(alphabet="ab1 .,'-&#@:/", max_size=20))
TOKENIZERS = (
    Tokenizer(),
    Tokenizer(ngrams=2),
    Tokenizer(stem="english"),
    Tokenizer(urls=False, mentions=False, hashtags=False),
    Tokenizer(stem="auto"),
    Tokenizer(stem="auto", ngrams=2),
    Tokenizer(max_tokens=4),
    Tokenizer(ngrams=2, max_tokens=7),
)


class Plain:
    """The same, one record and one word at a time."""

    def __init__(self, tokenizer: Tokenizer, limit: int, stops: str = "none") -> None:
        self.tokenizer, self.limit, self.stops = tokenizer, limit, stops
        self.ids: dict[str, int] = {}
        self.words = 0
        self.seen = dict.fromkeys(LANGUAGES, 0)
        self.lists = {
            language: {
                stem for word in stop_words(language) for stem in Tokenizer(stem=tokenizer.stem).tokens(word)
            }
            for language in LANGUAGES
        }

    def _stands_in(self, token: str, language: str) -> bool:
        if language == "chinese" and re.fullmatch("[一-鿿]{2}", token):
            return any(character in self.lists[language] for character in token)
        if language == "japanese" and re.fullmatch("[ぁ-ん]{2}", token):
            return all(character in self.lists[language] for character in token)
        return all(word in self.lists[language] for word in token.split(" "))

    def _language(self, tokens: list[str]) -> str:
        """The language of a text, "none" where it is not known; what it says of the stream's is counted."""
        if self.stops == "none" and self.tokenizer.stem != "auto":
            return "none"
        hits = {each: sum(self._stands_in(token, each) for token in tokens) for each in LANGUAGES}
        most = max(hits.values())
        self.words += len(tokens)
        for each in LANGUAGES:
            self.seen[each] += most * (hits[each] == most)
        if self.stops in LANGUAGES:
            return self.stops
        lead = max(LANGUAGES, key=lambda each: self.seen[each])
        known = self.seen[lead] >= 10 and self.seen[lead] / self.words >= 0.05
        if most == 0 or (known and hits[lead] == most):
            return lead if known else "none"
        own_script = ("russian", "arabic", "hindi", "chinese", "japanese")
        own = [
            each
            for each in LANGUAGES
            if hits[each] == most
            and (
                each in own_script
                or (known and self.seen[each] >= 10 and 20 * self.seen[each] >= self.seen[lead])
            )
        ]
        if own:
            return max(own, key=lambda each: self.seen[each])
        return lead if known else "none"

    def _without_stop_words(self, tokens: list[str], language: str) -> list[str]:
        if "none" in (language, self.stops) or len(tokens) > LONG:
            return tokens
        return [token for token in tokens if not self._stands_in(token, language)] or tokens

    def _counts_as(self, token: str, language: str) -> list[int]:
        """The words that a known one counts as: the first with its stem, and parts of a compound."""
        stems = dict[str, int]()
        for word, number in self.ids.items():  # in the order in which they came
            stemmer, found = stemmer_of(word, language), [number]
            if stemmer:
                stem = " ".join(
                    part if re.search(UNSTEMMED, part) else stemmed(part, stemmer) for part in word.split(" ")
                )
                found = [stems.setdefault(stem, number)]
                if stemmer in ("german", "swedish"):
                    ends = [
                        [stem[:n] for n in range(len(stem) - 3, 3, -1)],
                        [stem[n:] for n in range(3, len(stem) - 3)],
                    ]
                    first = [next((end for end in each if end in stems), "") for each in ends]
                    parts = dict.fromkeys(stems[end] for end in first if end)
                    names = [*self.ids]
                    found += [part for part in parts if not self._stands_in(names[part], stemmer)]
            if word == token:
                return found
        raise KeyError(token)

    def read(self, text: str) -> list[tuple[int, int]] | str:
        try:
            tokens = self.tokenizer.tokens(text)
        except TooManyTokens as error:
            return error.reason
        counts: dict[int, int] = {}
        for token in tokens:
            if token not in self.ids and len(self.ids) < self.limit:
                self.ids[token] = len(self.ids)
        known = [token for token in tokens if token in self.ids]
        language = self._language(known)
        for token in self._without_stop_words(known, language):
            forms = self.tokenizer.stem == "auto"
            for number in self._counts_as(token, language) if forms else [self.ids[token]]:
                counts[number] = counts.get(number, 0) + 1
        return sorted(counts.items(), key=lambda pair: pair[1] > 1) or "empty"


UNSTEMMED = r"^\W|^\d|[\d./:,&+#]"


def stemmer_of(word: str, language: str) -> str:
    """The stemmer of a word in a text in a language, or ""."""
    if re.match("[\u0430-\u044f]", word):
        return "russian"
    if re.match("[\u0621-\u064a]", word):
        return "arabic"
    latin = word.isascii() or word[0] < "\u0250"
    return language if latin and language in ("german", "french", "swedish") else ""


def stemmed(word: str, language: str) -> str:
    """What Snowball makes of it."""
    return str(snowballstemmer.stemmer(language).stemWord(word)) or word


def read(encoder: WordEncoder, texts: list[Any]) -> list[list[tuple[int, int]] | str]:
    """What a batch says of each."""
    outcomes = encoded(encoder, [record(text, i) for i, text in enumerate(texts)])
    batch = encoder.take(np.zeros(outcomes.count(None)))
    assert batch.size == outcomes.count(None)
    bags = iter(
        [
            list(zip(batch.words[a:b].tolist(), batch.counts[a:b].tolist(), strict=True))
            for a, b in zip(batch.offsets[:-1], batch.offsets[1:], strict=True)
        ]
    )
    return [next(bags) if outcome is None else outcome.reason for outcome in outcomes]


@limits(deadline=None, max_examples=400)
@given(
    st.lists(st.lists(ANY, max_size=6), max_size=4),
    st.sampled_from(TOKENIZERS),
    st.sampled_from([3, 1000]),
    st.sampled_from(["none", "auto", "english", "german"]),
)
def test_batches_are_what_a_plain_reading_says(
    batches: list[list[str]], tokenizer: Tokenizer, limit: int, stops: str
) -> None:
    encoder, plain = WordEncoder(tokenizer, Vocabulary(limit), stops), Plain(tokenizer, limit, stops)
    for texts in batches:
        assert read(encoder, texts) == [plain.read(text) for text in texts]
    assert encoder.vocabulary.ids == plain.ids


PARTS = ("a", "an", "U", "US", "ab1", "1", "12", "www", "http", "net", "s", "S", "t", "o", "x2")
SIGNS = (".", ",", ":", "/", "-", "'", "'s", "--", "<", ">", "&", "@", ".-", "-.", "'S")


def test_pieces_that_take_no_grammar_are_cut_as_the_grammar_has_them() -> None:
    """Numbers, abbreviations, compounds and 's, with signs around them; the second time all are known."""
    rng = np.random.default_rng(7)
    texts: list[Any] = []
    for _ in range(6000):
        pieces = [
            [rng.choice(PARTS if rng.random() < 0.55 else SIGNS) for _ in range(rng.integers(1, 8))]
            for _ in range(4)
        ]
        texts.append(" ".join("".join(piece) for piece in pieces))
    tokenizer = Tokenizer()
    encoder, plain = WordEncoder(tokenizer, Vocabulary(1 << 20)), Plain(tokenizer, 1 << 20, "none")
    for _ in range(2):
        assert read(encoder, texts) == [plain.read(text) for text in texts]
    easy = "(1,000.5 U.S. company's <Corp> five-year 10-year; 1986/87 10:30 --"
    read(encoder, [easy])  # new words are strange
    assert read(encoder, [easy]) == [plain.read(easy)]


SENTENCES = (
    *(
        "Der Streik der Bahn und die Züge",
        "Bahnstreik: Zug und Zügen fehlt der Bahnhof",
        "the trains and the train",
    ),
    *("Les trains de la gare et le train", "Пожары на складе и пожар", "Unter der Untergrundbahn die Bahn"),
    *("حريق في السوق", "سوق", "女排的冠军和女排", "地震の後の地震", "Streiks", "train", "Bahnstreiks trains"),
    *(
        "Och det är ett tåg, tågen som inte går för en bro",
        "Kein Wort gilt",
        "Das ist der Zug in dem wir sind",
    ),
)


@limits(deadline=None, max_examples=200)
@given(
    st.lists(st.lists(st.sampled_from(SENTENCES), max_size=8), max_size=6),
    st.sampled_from(["auto", "none", "german"]),
    st.sampled_from([1, 2]),
)
def test_forms_count_as_a_plain_reading_says(batches: list[list[str]], stops: str, ngrams: int) -> None:
    tokenizer = Tokenizer(stem="auto", ngrams=ngrams)
    encoder, plain = WordEncoder(tokenizer, Vocabulary(1000), stops), Plain(tokenizer, 1000, stops)
    for texts in batches:
        assert read(encoder, texts) == [plain.read(text) for text in texts]
        resumed = WordEncoder(tokenizer, msgspec.structs.replace(encoder.vocabulary), stops)
        stored = encoder.dump()
        resumed.resume(stored["languages"], stored.get("forms"))
        assert resumed.dump()["languages"] == stored["languages"]
        assert str(resumed.dump().get("forms")) == str(stored.get("forms"))
        encoder = resumed


@limits(deadline=None, max_examples=100)
@given(st.lists(ANY, max_size=6), st.lists(ANY, max_size=6))
def test_a_frozen_encoder_learns_nothing(learned: list[str], scored: list[str]) -> None:
    tokenizer = Tokenizer()
    encoder = WordEncoder(tokenizer, Vocabulary(1000))
    read(encoder, learned)
    before = dict(encoder.vocabulary.ids)
    unknown = encoder.vocabulary.unknown
    expected: list[list[tuple[int, int]] | str] = []
    for text in scored:
        tokens = tokenizer.tokens(text)
        counts = {token: tokens.count(token) for token in tokens}
        ordered = sorted(counts, key=lambda token: counts[token] > 1)
        expected.append([(before.get(token, unknown), counts[token]) for token in ordered] or "empty")
    assert read(encoder.for_scoring(), scored) == expected
    assert encoder.vocabulary.ids == before


@limits(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.lists(ANY, max_size=4), st.lists(ANY, max_size=4)), max_size=4),
    st.sampled_from(["none", "auto", "english"]),
)
def test_an_encoder_for_scoring_follows_the_one_that_learns(
    turns: list[tuple[list[str], list[str]]], stops: str
) -> None:
    encoder = WordEncoder(Tokenizer(), Vocabulary(1000), stops)
    for learned, scored in turns:
        read(encoder, learned)
        encoded(encoder.for_scoring(), [record(text, 0) for text in scored])  # and nobody takes the batch
        anew = WordEncoder(Tokenizer(), encoder.vocabulary, stops, frozen=True)
        anew.begin_with(encoder)
        assert read(encoder.for_scoring(), scored) == read(anew, scored)


@pytest.mark.parametrize("stops", ["english", "auto"])
def test_scoring_leaves_out_the_stop_words_that_are_known_by_now(stops: str) -> None:
    encoder = WordEncoder(Tokenizer(), Vocabulary(1000), stops)
    read(encoder.for_scoring(), ["storm the"])
    read(encoder, ["the coast is on it and of them", "the coast was to be for you"])
    (found,) = read(encoder.for_scoring(), ["the coast"])
    assert found == [(encoder.vocabulary.ids["coast"], 1)]


def test_texts_counts_and_vectors_side_by_side() -> None:
    encoder = WordEncoder(Tokenizer(), Vocabulary(100))
    mixed = ["rain rain sun", {"sun": 2.0, "wind": 1.0}, [1.0], {"rain": 0.5}, {"rain": 0.0}, "wind", ""]
    assert read(encoder, mixed) == [
        [(1, 1), (0, 2)],
        [(2, 1), (1, 2)],
        *("wrong_kind", "wrong_type", "empty"),
        [(2, 1)],
        "empty",
    ]


def test_evicted_words_are_unknown_and_their_ids_used_again() -> None:
    vocabulary = Vocabulary(2000)
    encoder = WordEncoder(Tokenizer(), vocabulary)
    drawn = np.random.default_rng(1)
    for turn in range(60):
        texts = [
            " ".join(f"w{n}" for n in drawn.integers(200 * turn, 200 * turn + 400, 8)) for _ in range(100)
        ]
        bags = read(encoder, texts)
        spelt = [sorted({str(vocabulary.words[int(pair[0])]) for pair in bag}) for bag in bags]
        assert spelt == [sorted(set(text.split())) for text in texts]
        every = np.arange(len(vocabulary.words))
        vocabulary.touch(Batch(np.array([0, len(every)]), every, np.ones_like(every)), 0)
        held = drawn.random(len(every)) < 0.5
        vocabulary.evict(held, 1)
    assert vocabulary.evicted > 5000
    assert len(vocabulary.words) <= 2000
    assert set(vocabulary.pieces) <= set(vocabulary.ids)


def test_the_pieces_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_encoder, "PIECES_HELD", 20)
    encoder = WordEncoder(Tokenizer(), Vocabulary(1000))
    for n in range(100):
        assert read(encoder, [f"storm{'!' * n} storm {'?' * n}coast"]) == [[(1, 1), (0, 2)]]
        assert len(encoder.vocabulary.pieces) <= 23
    assert read(encoder, [f"coast {'!' * 100}storm"]) == [[(1, 1), (0, 1)]]
    assert max(map(len, encoder.vocabulary.pieces)) <= 64


def test_a_very_long_text_is_refused_before_its_words_are_learned() -> None:
    encoder = WordEncoder(Tokenizer(), Vocabulary(1000))
    outcome = encoded(encoder, [record("x1 " * 100_001, 1)])[0]
    assert isinstance(outcome, Reject)
    assert (outcome.reason, len(encoder.vocabulary)) == ("too_many_tokens", 0)


@pytest.mark.parametrize("texts", [[], [""], ["", "sun"]])
def test_nothing_in_a_batch(texts: list[str]) -> None:
    encoder = WordEncoder(Tokenizer(), Vocabulary(1000))
    assert read(encoder, texts) == ["empty" if not text else [(0, 1)] for text in texts]
