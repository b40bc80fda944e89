import time
import unicodedata

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamdp.encode.text import Tokenizer, TooManyTokens, counts

PLAIN = Tokenizer()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n\t ", []),
        ("Markets RALLY, again!", ["markets", "rally", "again"]),
        ("a bc d ef 7 42", ["bc", "ef", "42"]),
        ("trump's l'homme don\u2019t snake_case", ["trump", "homme", "don", "snake", "case"]),
        ("x2y 3rd", ["x2y", "3rd"]),
        ("Straße ﬁne \uff21\uff22\uff23", ["strasse", "fine", "abc"]),
        ("co\u00adop naïve nai\u0308ve", ["coop", "naïve", "naïve"]),
        ("İstanbul", ["i\u0307stanbul"]),
        ("日本語 テキスト", ["日", "本", "語", "テ", "キ", "ス", "ト"]),
        ("か\u3099 ｶﾞ", ["が", "ガ"]),
        ("한국어 텍스트", ["한국어", "텍스트"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("سلام دنیا", ["سلام", "دنیا"]),
        ("\u0301 \u0301", []),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert PLAIN.tokens(text) == [unicodedata.normalize("NFKC", word) for word in expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see https://t.co/aB?c=1&d=2.", ["see", "https://t.co/ab?c=1&d=2"]),
        ("(http://x.org/a), www.example.com!", ["http://x.org/a", "www.example.com"]),
        ("https://t.co/abcを見て", ["https://t.co/abc", "を", "見", "て"]),
        ("@Bob_1 #News #東京 #x", ["@bob_1", "#news", "#東京", "#x"]),
        ("me@example.org c# &#39;", ["me", "example", "org", "39"]),
        ("awww.so https", ["awww", "so", "https"]),
    ],
)
def test_links_names_tags(text: str, expected: list[str]) -> None:
    assert PLAIN.tokens(text) == expected


@pytest.mark.parametrize("accent", ["", " é"])
def test_kinds_can_be_dropped(accent: str) -> None:
    text = "hello @bob #tag https://x.org/a www.y.org" + accent
    assert Tokenizer(urls=False).tokens(text) == ["hello", "@bob", "#tag"]
    assert Tokenizer(mentions=False, hashtags=False).tokens(text) == ["hello", "https://x.org/a", "www.y.org"]


def test_stems() -> None:
    stemmer = Tokenizer(stem="english")
    assert stemmer.tokens("Running dogs @runnings #dogs https://dogs.org/") == [
        "run",
        "dog",
        "@runnings",
        "#dogs",
        "https://dogs.org/",
    ]
    assert stemmer.tokens("running " + "s" * 200) == ["run", "s" * 200]


@pytest.mark.parametrize(("wrong", "close"), [("englsh", "english"), ("German", "german"), ("xx", "none")])
def test_unknown_stemmer_names_close_ones(wrong: str, close: str) -> None:
    with pytest.raises(ValueError, match=close):
        Tokenizer(stem=wrong)


@pytest.mark.parametrize("bad", [{"ngrams": 0}, {"ngrams": 6}, {"max_tokens": 0}])
def test_parameters_out_of_range(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Tokenizer(**bad)  # type: ignore[arg-type]


def test_ngrams_run_over_kept_tokens() -> None:
    three = Tokenizer(ngrams=3, urls=False)
    assert three.tokens("one www.x.org two three") == [
        "one",
        "two",
        "three",
        "one two",
        "two three",
        "one two three",
    ]
    assert three.tokens("one") == ["one"]
    assert three.tokens("") == []


def test_too_many_tokens() -> None:
    text = "ab " * 10
    assert len(Tokenizer(max_tokens=10).tokens(text)) == 10
    assert len(Tokenizer(max_tokens=19, ngrams=2).tokens(text)) == 19
    for limited in (Tokenizer(max_tokens=9), Tokenizer(max_tokens=18, ngrams=2)):
        with pytest.raises(TooManyTokens) as caught:
            limited.tokens(text)
        assert caught.value.reason == "too_many_tokens"


def test_is_plain_data() -> None:
    tokenizer = Tokenizer(stem="german", ngrams=2)
    assert msgspec.convert(msgspec.to_builtins(tokenizer), Tokenizer) == tokenizer
    assert hash(tokenizer) == hash(Tokenizer(stem="german", ngrams=2))


@given(st.text(st.characters(max_codepoint=127)))
@example("www.a@b &#39; _@x# https://.a.")
def test_plain_and_wide_paths_agree(text: str) -> None:
    assert PLAIN.tokens(text + " é") == PLAIN.tokens(text)


@given(st.text() | st.text("aB1_'@#.:/ é\u0300\u3099漢カｶﾞ한िहﬁß"))
@example("https://x.org/a.@b www.#ß")
def test_tokens_are_clean_and_final(text: str) -> None:
    tokens = PLAIN.tokens(text)
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    assert PLAIN.tokens(" ".join(tokens)) == tokens


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0300\u0316" * 200_000,
        "a" + "\uff9e\u0316" * 200_000,
        "www.!" * 100_000,
        "www." + "!" * 300_000,
    ],
)
def test_no_text_takes_quadratic_time(text: str) -> None:
    start = time.perf_counter()
    PLAIN.tokens(text)
    assert time.perf_counter() - start < 1.0


@given(st.lists(st.sampled_from("abcd")))
def test_counts(tokens: list[str]) -> None:
    found = counts(tokens)
    assert found == {token: tokens.count(token) for token in tokens}
    assert list(found) == list(dict.fromkeys(tokens))
    assert counts(iter(tokens)) == found
