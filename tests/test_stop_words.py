"""Words of grammar are left out of short texts, in the language that the stream is in."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from commands import succeed
from feeds import encoded, record

from streamdp import Engine, Settings
from streamdp.encode.bags import LONG
from streamdp.encode.encoders import load_encoder
from streamdp.encode.stop_words import LANGUAGES, mark, stop_words
from streamdp.encode.text import Tokenizer
from streamdp.encode.vocabulary import Vocabulary
from streamdp.encode.word_encoder import WordEncoder
from streamdp.encode.words import cut
from streamdp.kernels.packed import encoded as packed
from streamdp.kernels.sound import UnsoundError
from streamdp.settings.schema import StopWords

ENGLISH = [
    "What is the best way to read a file in Haskell?",
    "How do I commit to more than one branch of a repository?",
    "Is there an easy way to plot this in Matlab?",
    "Why does the cursor of a stored procedure stay open in Oracle?",
]
GERMAN = [
    "Wie kann ich die Datei in der Konsole lesen?",
    "Warum ist der Zeiger noch nicht geschlossen?",
    "Was sind die Unterschiede zwischen den beiden?",
]


def words_of(engine: Engine, text: str) -> set[str]:
    """Those that the stream counts of a text."""
    encoder = engine.stream().encoded.encoder.for_scoring()  # type: ignore[union-attr]
    assert encoded(encoder, [record(text, 0)]) == [None]
    known = [*encoder.words]
    return {known[number] or "" for number in encoder.take(np.zeros(1)).words.tolist() if number < len(known)}


def learned(texts: list[str], settings: Settings | None = None) -> Engine:
    """An engine that has read them."""
    engine = Engine(settings or Settings())
    engine.advance(texts)
    return engine


@pytest.mark.parametrize("language", LANGUAGES)
def test_lists_are_spelt_as_texts_are_cut(language: str) -> None:
    words = stop_words(language)
    assert len(words) > (30 if language in ("chinese", "japanese") else 100)
    assert all(cut(word) == [word] for word in words)
    assert all(mark(word) >> LANGUAGES.index(language) & 1 for word in words)


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("english", "not no never cannot dont wasnt up down off"),
        ("german", "nicht kein nie nein"),
        ("french", "ne pas jamais ni sans"),
        ("spanish", "no ni nunca tampoco sin"),
        ("italian", "non mai"),
        ("portuguese", "não nunca nem"),
        ("dutch", "niet nooit"),
        ("swedish", "inte"),
        ("polish", "nie"),
        ("russian", "не нет"),
        ("arabic", "ليس غير بدون"),
        ("hindi", "नहीं"),
    ],
)
def test_what_turns_a_meaning_round_is_none_of_its_language(language: str, words: str) -> None:
    bit = 1 << LANGUAGES.index(language)
    assert [word for word in words.split() if mark(word) & bit] == []


def test_the_opposite_is_another_text() -> None:
    engine = learned(["Die Fähre fährt nie nach Husum", *GERMAN, *GERMAN])
    assert words_of(engine, "Die Fähre fährt nie nach Husum") == {"fähre", "fährt", "nie", "husum"}


def test_every_list_can_be_asked_for() -> None:
    assert set(msgspec.json.schema(StopWords)["enum"]) == {"auto", "none", *LANGUAGES}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (ENGLISH, {"best", "way", "read", "file", "haskell"}),
        (GERMAN * 2, {"what", "is", "the", "best", "way", "to", "read", "file", "haskell"}),
    ],
)
def test_the_language_is_found(texts: list[str], expected: set[str]) -> None:
    assert words_of(learned([*texts, *ENGLISH[:1]]), ENGLISH[0]) == expected


def test_texts_of_two_languages_leave_out_their_own() -> None:
    engine = learned([*(3 * [*ENGLISH, *GERMAN]), "Ursache Störung men die war man"])
    assert words_of(engine, "What to do in Oracle") == {"oracle"}
    assert words_of(engine, "Was ist die Ursache der Störung") == {"ursache", "störung"}
    assert words_of(engine, "The men die in war, what man was it") == {"men", "die", "war", "man"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Пожар на складе в Томске", {"пожар", "складе", "томске"}),
        ("حريق كبير في سوق دمشق", {"حريق", "كبير", "سوق", "دمشق"}),
        ("दिल्ली में प्रदूषण के कारण", {"दिल्ली", "प्रदूषण"}),
        ("女排的冠军", {"女排", "冠军", *"女排冠军"}),
        ("地震の影響でけがをした", {"地震", "影響", *"地震影響", "でけ", "けが"}),
    ],
)
def test_a_script_of_its_own_says_the_language_at_once(text: str, expected: set[str]) -> None:
    for texts in ([text], [*ENGLISH, text]):
        assert words_of(learned(texts), text) == expected


FORMS = {
    "german": (GERMAN, ("Die Züge der Bahn", "Der Zug der Bahn")),
    "compound": (GERMAN, ("Der Streik an der Elbe", "Der Bahnstreik an der Elbe")),
    "russian": ([], ("Пожар на складе", "Пожары на складах")),
    "arabic": ([], ("حريق في سوق", "الحريق في السوق")),
}


@pytest.mark.parametrize("case", FORMS)
def test_forms_of_a_word_count_as_one(case: str) -> None:
    before, (first, second) = FORMS[case]
    engine = learned([*(3 * before), first, second])
    assert words_of(engine, first) <= words_of(engine, second)
    kept = learned([*(3 * before), first, second], Settings(stem="none"))
    assert not words_of(kept, first) <= words_of(kept, second)


def test_english_words_keep_their_forms() -> None:
    engine = learned([*ENGLISH, "The train stops", "The trains stop"])
    assert words_of(engine, "The trains stop") == {"trains", "stop"}
    assert "forms" not in engine.stream().encoded.encoder.dump()  # type: ignore[union-attr]


def test_forms_that_lost_their_words_count_as_what_is_left() -> None:
    encoder = WordEncoder(Tokenizer(stem="auto"), Vocabulary(1000))
    for text in ("склад", "складе", "склады", "пожар"):
        assert encoded(encoder, [record(text, 0)]) == [None]
    held = np.array([False, False, False, True])
    encoder.vocabulary.last_seen[2] = 9
    assert encoder.vocabulary.evict(held, 5).tolist() == [0, 1]
    encoder.take(np.zeros(4))
    assert encoded(encoder, [record(text, 0) for text in ("складе", "склада", "пожары")]) == [None] * 3
    assert encoder.take(np.zeros(3)).words.tolist() == [2, 2, 3]


@pytest.mark.parametrize("lost", ["evicted", "struck"])
def test_forms_are_stored_before_they_are_tidied(lost: str) -> None:
    encoder, texts = (
        WordEncoder(Tokenizer(stem="auto"), Vocabulary(1000)),
        ["склад", "складе", "склады", "пожар"],
    )
    assert encoded(encoder, [record(text, 0) for text in texts]) == [None] * 4
    if lost == "struck":
        assert encoder.vocabulary.strike([0]) == ["склад"]
    else:
        encoder.vocabulary.last_seen[1:3] = 9
        assert encoder.vocabulary.evict(np.array([False, False, False, True]), 5).tolist() == [0]
    stored = msgspec.msgpack.decode(packed(encoder.dump()))
    resumed = load_encoder(stored, Settings())
    for each in (encoder, resumed):
        assert encoded(each, [record(text, 0) for text in ("склада", "складам")]) == [None] * 2
        assert len(set(each.take(np.zeros(6)).words.tolist()[-2:])) == 1  # type: ignore[union-attr]
    assert packed(resumed.dump()) == packed(encoder.dump())


def test_forms_of_a_record_that_is_erased_lose_their_names() -> None:
    erased = "Ein Wort zu den Verträgen der Bahn"
    engine = learned([*(3 * GERMAN), "Der Vertrag der Bahn", erased])
    words = engine.stream().encoded.encoder.vocabulary  # type: ignore[union-attr]
    assert {"vertrag", "verträgen"} <= {*words.words}
    engine.forget([3 * len(GERMAN) + 1], [erased])
    assert "vertrag" in words.words
    assert "verträgen" not in words.words


def test_the_language_of_one_text_is_not_known() -> None:
    assert "the" in words_of(learned(ENGLISH[:1]), ENGLISH[0])


def test_texts_without_grammar_stay_as_they_are() -> None:
    texts = [
        f"storm flood coast number{i} will" if i % 9 == 0 else f"storm coast flood n{i}" for i in range(200)
    ]
    assert "will" in words_of(learned(texts), texts[0])


def test_a_text_of_stop_words_alone_keeps_them() -> None:
    engine = learned([*ENGLISH, "to be or to have been"])
    assert words_of(engine, "to be or to have been") == {"to", "be", "or", "have", "been"}


def test_a_long_text_keeps_them() -> None:
    long = " ".join(["the", *(f"word{i}" for i in range(LONG - 1))])
    engine = learned([*ENGLISH, long, f"{long} more"])
    assert "the" not in words_of(engine, long)
    assert "the" in words_of(engine, f"{long} more")


@pytest.mark.parametrize("language", ["none", "german"])
def test_a_language_can_be_asked_for(language: str) -> None:
    engine = learned([*ENGLISH, *GERMAN], Settings(stop_words=language))
    assert {"what", "the", "to"} <= words_of(engine, ENGLISH[0])
    assert ("ich" in words_of(engine, GERMAN[0])) == (language == "none")


def test_what_is_scored_teaches_nothing_of_the_language() -> None:
    engine = learned(["storm coast", "flood coast"])
    before = engine.dumps()
    for _ in range(9):
        engine.score(ENGLISH)
    assert engine.dumps() == before


def test_check_says_which_language(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("\n".join([*ENGLISH, "Storm floods coast"]))
    said = succeed(tmp_path, "check", "in.txt").decode()
    assert "clustered by: texts, from 'text', without the stop words of English\n" in said
    said = succeed(tmp_path, "check", "in.txt", "--stop-words", "none").decode()
    assert "clustered by: texts, from 'text'\n" in said


@pytest.mark.parametrize("at", range(1, 7))
def test_a_state_remembers_the_language(at: int) -> None:
    texts = [*ENGLISH, *GERMAN]
    through, first = learned(texts), learned(texts[:at])
    resumed = Engine.loads(first.dumps(), Settings())
    resumed.advance(texts[at:])
    assert resumed.dumps() == through.dumps()


def test_a_state_from_before_a_language_was_added_is_read() -> None:
    settings, stored = Settings(), learned(ENGLISH).stream().encoded.encoder.dump()  # type: ignore[union-attr]
    words, *languages = stored["languages"]
    assert words == sum(len(word) > 1 for text in ENGLISH for word in text.split())
    assert languages[0] == max(languages) > languages[-1] == 0
    loaded = load_encoder({**stored, "languages": stored["languages"][:-1]}, settings)
    assert loaded.dump() == stored
    with pytest.raises(UnsoundError, match="more languages than there are"):
        load_encoder({**stored, "languages": [*stored["languages"], 0]}, settings)


@pytest.mark.parametrize("numbers", [(), ("price",)])
def test_texts_among_fields_leave_them_out_too(numbers: tuple[str, ...]) -> None:
    more = {"warmup": 3} if numbers else {}
    given = Settings(fields=("tool",), texts=("subject",), numbers=numbers, **more)
    texts = [*ENGLISH, *GERMAN, *ENGLISH]
    records = [{"tool": "ab"[i % 2], "subject": text, "price": float(i)} for i, text in enumerate(texts)]
    engine = Engine(given)
    engine.advance(records)
    asked = {"tool": "a", "subject": ENGLISH[0], "price": 1.0}
    found = words_of(engine, asked)
    assert {f"subject={word}" for word in ("best", "way", "haskell")} <= found
    assert not {f"subject={word}" for word in ("what", "is", "the", "to")} & found
    kept = Engine(msgspec.structs.replace(given, stop_words="none"))
    kept.advance(records)
    assert "subject=the" in words_of(kept, asked)
    for at in range(1, len(records)):
        first = Engine(given)
        first.advance(records[:at])
        resumed = Engine.loads(first.dumps(), given)
        resumed.advance(records[at:])
        assert resumed.dumps() == engine.dumps()
