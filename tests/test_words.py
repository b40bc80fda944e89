"""How texts are cut: the table that users read, and what must hold for any text."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamdp.encode import words
from streamdp.encode.text import Tokenizer

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "words.md").read_text("utf-8")
TABLE = PAGE[PAGE.index("| text | words |") :].split("\n\n")[0].splitlines()[2:]
WRITTEN = st.text("aBcZ09 .,:/-'\"&+#@_éßж\u2019漢かカー한िहﬁกเำ်្\u200d\u0300\u3099👍🏽🇩🇪❤\ufe0f")

tokens_of = Tokenizer().tokens


@pytest.mark.parametrize("row", TABLE)
def test_texts_are_cut_as_the_table_says(row: str) -> None:
    text, expected = (re.findall("`([^`]+)`", cell) for cell in row.split("|")[1:3])
    assert tokens_of(*text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n\t\x1f ", []),
        ("one\u3000two\xa0three\u200bfour\u2028five", ["one", "two", "three", "four", "five"]),
        ("nai\u0308ve co\u00adop \u202bwe\u2060ll", ["naïve", "coop", "well"]),
        ("か\u3099 ｶﾞ", ["が", "ガ"]),
        ("\u0301 \u0e31 \u200d", []),
        ("out.https://t.co/a é.b.www.x.org", ["out", "https://t.co/a", "www.x.org"]),
        ("a.b.c.d. .net.", ["a.b.c.d", ".net"]),
        ("https:// www. http://", ["https", "www", "http"]),
        ("(end.Then,https://x.org/it's-a.B)", ["end", "then", "https://x.org/it's-a.b"]),
        ("é;end.Then,https://x.org/it's-a.B", ["end", "then", "https://x.org/it's-a.b"]),
        ("U.S-led R&D-led and/e-mail", ["u.s", "led", "r&d", "led", "and", "mail"]),
        ("&amp;lt; &nosuch; &#0; &#x1F602;", ["lt", "nosuch", "😂"]),
        ("🏽 👍\u200da 🇩 \U0001f3f4\U000e0067", ["🏽", "👍", "🇩", "\U0001f3f4\U000e0067"]),
        ("ᄒ" + "ᅡ", ["하"]),
        ("plan B, phase 2", ["plan", "phase", "2"]),
        ("50% of $5 and $1.5bn", ["50", "of", "5", "and", "1.5bn"]),
        ("1,2, 3. -4 5-star", ["1,2", "3", "4", "5", "star"]),
        ("node.js or Example.com?", ["node.js", "or", "example.com"]),
        ("ASP.NET C++11 c#5", ["asp.net", "c++", "11", "5"]),
        ("state-of-the-art covid-19", ["state", "of", "the", "art", "covid", "19"]),
        ("x-ray of an F-16", ["xray", "of", "an", "f16"]),
        ("l'e-mail", ["email"]),
        ("rock'n'roll, rock & roll", ["rock", "roll", "rock", "roll"]),
        ("Ankara'da", ["ankara", "da"]),
        ("me@example.org", ["me", "example.org"]),
        ("co\u00adop naïve İstanbul", ["coop", "naïve", "i̇stanbul"]),
        ("Ελλάδα ΟΔΟΣ", ["ελλάδα", "οδοσ"]),
        ("한국어 텍스트 집", ["한국어", "텍스트", "집"]),
        (
            "iPhone15発売 #東京 https://t.co/abcを",
            ["iphone15", "発売", "発", "売", "#東京", "https://t.co/abc", "を"],
        ),
        ("ສະບາຍດີ", ["ສະບາ", "ບາຍ", "ຍດີ"]),
        ("မြန်မာ", ["မြန်", "န်မာ"]),
        ("😂😂 ❤️❤", ["😂", "😂", "❤", "❤"]),
        ("a I ?!", []),
    ],
)
def test_corners(text: str, expected: list[str]) -> None:
    assert tokens_of(text) == expected


@given(st.text(st.characters(max_codepoint=127)) | st.text("aBcn09 .,:/-'\"&+#@_ts"))
@example("www.a@b &#39; _@x# https://.a.")
@example("c#_ c#5 o'n.Net isn't-a u.s's &amp;x-1/2")
def test_ascii_is_cut_alike_beside_other_characters(text: str) -> None:
    for piece in text.split():  # each is cut on its own
        assert tokens_of(piece + "、") == tokens_of(piece + "<")


@given(st.text() | WRITTEN)
@example("https://x.org/a.@b www.#ß")
def test_words_are_clean_and_stay_what_they_are(text: str) -> None:
    tokens = tokens_of(text)
    assert all(token and not any(c.isspace() for c in token) for token in tokens)
    assert tokens_of(" ".join(tokens)) == tokens


@given(WRITTEN, WRITTEN)
def test_no_word_depends_on_what_stands_beyond_a_space(one: str, other: str) -> None:
    assert tokens_of(f"{one} {other}") == tokens_of(one) + tokens_of(other)


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0300\u0316" * 200_000,
        "a" + "\uff9e\u0316" * 200_000,
        "ก" + "\u0e34\u0e38" * 200_000,
        "\u1780\u17d2" * 200_000,
        "เ" * 99_000,
        "漢" * 49_000,
        "www.!" * 100_000,
        "www." + "!" * 300_000,
        "é http://" + "&#" * 150_000,
        "a." * 200_000,
        "1-" * 200_000,
        "a&" * 200_000,
        "a.B" * 100_000,
        "o'n't-e-" * 40_000,
        "x'" * 200_000 + "é",
        "&amp;" * 60_000,
        "👩\u200d" * 100_000,
        "\u200d" * 300_000,
        "🏽" * 150_000,
        "🇩" * 99_000,
    ],
)
def test_no_text_takes_quadratic_time(text: str) -> None:
    start = time.process_time()
    tokens_of(text)
    assert time.process_time() - start < 5.0  # where quadratic time would be minutes


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    held = words._Pieces()
    monkeypatch.setattr(words, "_PIECES", held)
    monkeypatch.setattr(words, "PIECES_HELD", 3)
    text = "one, two, three, four, one, " + "long" * 100 + ","
    assert tokens_of(text) == tokens_of(text) == [*["one", "two", "three", "four", "one"], "long" * 100]
    assert set(held) <= {"one,", "two,", "three,", "four,"}
    assert len(held) <= 3
