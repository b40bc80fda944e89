import msgspec
import pytest

from streamdp.encode.text import Tokenizer, TooManyTokens

PLAIN = Tokenizer()


@pytest.mark.parametrize("accent", ["", " é"])
def test_kinds_can_be_dropped(accent: str) -> None:
    text = "node.js @bob #tag 1/2 https://x.org/a www.y.org" + accent
    assert Tokenizer(urls=False).tokens(text) == ["node.js", "@bob", "#tag", "1/2"]
    assert Tokenizer(mentions=False, hashtags=False).tokens(text) == [
        "node.js",
        "1/2",
        "https://x.org/a",
        "www.y.org",
    ]


def test_stems() -> None:
    stemmer = Tokenizer(stem="english")
    assert stemmer.tokens("Running dogs @runnings #dogs https://dogs.org/") == [
        "run",
        "dog",
        "@runnings",
        "#dogs",
        "https://dogs.org/",
    ]
    kept = ["u.s", "node.js", "s&p500", "1980s", "10:30", "c++", ".net", "😂"]
    assert stemmer.tokens(" ".join(kept)) == kept
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
    assert Tokenizer(ngrams=2).tokens("3.14 😂 天气好") == [
        "3.14",
        "😂",
        *("天气", "气好", "天", "气", "好"),
        "3.14 😂",
        "😂 天气",
        *("天气 气好", "气好 天", "天 气", "气 好"),
    ]


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
