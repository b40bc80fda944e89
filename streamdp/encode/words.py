"""How a text is cut into words: one grammar, for ASCII and for all characters.

What means the same should be the same word, since records are alike by the words that they share. So a sign
that holds a name, an abbreviation or a number together is part of it, one that is written or left out as one
likes is dropped (e-mail, don't), and one that adds grammar to a word separates (Anna's, l'homme,
state-of-the-art). docs/words.md has the rules and examples of all of them.
"""

from __future__ import annotations

import functools
import html
import itertools
import re
import unicodedata
from itertools import chain
from typing import NamedTuple

# Ranges of character classes, for text beyond ASCII; tables of characters are made on the first such text.
HAN = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U000323af"
)
HIRAGANA = "\u3041-\u3096\u309d-\u309f\U0001b001-\U0001b11f"
KATAKANA = "\u30a1-\u30fa\u30fd-\u30ff\u31f0-\u31ff\U0001b000\U0001b120-\U0001b16f"
LONG_VOWEL = "\u30fc"  # of kana of both kinds
HANGUL = "\uac00-\ud7a3"
SOUTHEAST = (  # Thai, Lao, Myanmar and Khmer, without their digits and punctuation
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u103f\u1050-\u108f\u109a-\u109d"
    "\u1780-\u17d3\u17d7\u17dc\u17dd\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"
)
UNSPACED = HAN + HIRAGANA + KATAKANA + LONG_VOWEL + SOUTHEAST
_WRITTEN_BEFORE = "\u0e40-\u0e44\u0ec0-\u0ec4"  # vowels of the consonant that follows
_WRITTEN_AFTER = "\u0e30\u0e32\u0e45\u0e46\u0eb0\u0eb2\u0ec6" + LONG_VOWEL  # nothing begins with them
_STACKING = "\u1039\u17d2"  # the next consonant is written below

PICTURES = "\u231a\u231b\u23e9-\u23fa\u2600-\u2757\u2763-\u2767\u2b50\u2b55\U0001f000-\U0001faff"
_TONES = "\U0001f3fb-\U0001f3ff"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
_TAGS = "\U000e0020-\U000e007f"  # the letters in the flags of England, Scotland and Wales
_JOINER = "\u200d"

_INVISIBLE = "\u00ad\u200c\u2060\ufe0e\ufe0f\ufeff"  # hints of hyphenation, joining and colour
_TYPOGRAPHIC = (  # what is typed instead, once normalised
    *((apostrophe, "'") for apostrophe in "\u2019\u2018\u02bc\u05f3"),
    *((quote, '"') for quote in "\u201c\u201d\u05f4"),
    ("\u2010", "-"),
    ("\u200b", " "),  # of no width, between words
)

_FIRST_REWRITTEN = "\u0e00"


def fold(text: str) -> str:
    """Make spellings that look alike equal, but for upper and lower case.

    That is NFKC, with plain apostrophes, quotes and hyphens, and without what is invisible: hints of
    hyphenation, joining and colour. The joiner stays between emoji, of which it makes one.
    """
    if len(text) > 256:
        # Normalising sorts each run of combining marks, in quadratic time: a megabyte of them takes
        # minutes. No writing uses more than a few (Unicode calls 30 stream-safe).
        text = _long_runs().sub(r"\1", text)
    for character in _INVISIBLE:
        text = text.replace(character, "")
    if _JOINER in text:
        text = _stray_joiners().sub("", text)
    text = unicodedata.normalize("NFKC", text.replace("\u00b4", "'"))  # else a space and a mark
    for typographic, plain in _TYPOGRAPHIC:
        text = text.replace(typographic, plain)
    return text


def fold_case(text: str) -> str:
    """Folded text without upper case."""
    return unicodedata.normalize("NFKC", text.casefold())  # casefolding may take characters apart


@functools.cache
def marks() -> str:
    """All combining marks as ranges of a character class; ``re`` has no name for them."""
    ranges: list[list[int]] = []
    for code in [*range(0x20000), *range(0xE0100, 0xE01F0)]:
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


def runs() -> str:
    """The pattern of runs of one script that is written without spaces, and of one emoji.

    Japanese changes script where most words begin, so Han, hiragana and katakana are runs of their own. An
    emoji is a flag, or all pictures that joiners make one.
    """
    mark = marks()
    picture = rf"[{PICTURES}][{_TONES}]?[{_TAGS}]*"
    return "|".join(
        (
            rf"[{HAN}][{HAN}{mark}]*",
            rf"[{HIRAGANA}][{HIRAGANA}{LONG_VOWEL}{mark}]*",
            rf"[{KATAKANA}{LONG_VOWEL}][{KATAKANA}{LONG_VOWEL}{mark}]*",
            rf"(?=\w)[{SOUTHEAST}][{SOUTHEAST}{mark}]*",
            _FLAG,
            rf"{picture}(?:{_JOINER}{picture})*",
        )
    )


def rewrite(found: list[str]) -> list[str]:
    """Cut runs into words, as far as that can be done without a dictionary.

    Han, hiragana and the scripts of Southeast Asia become all pairs of neighbouring units (a single one
    stays what it is): most Chinese words are two characters long, and longer ones are recognised by their
    pairs. Characters of Han mean something alone, and a word that is abbreviated keeps one of them: they
    follow the pairs. A unit is a character with its marks, and with the vowels and consonants that none may
    part from it. Katakana writes a foreign word or a name from end to end, and stays whole: pairs would count
    one piece of evidence several times. Emoji lose the tone of skin, as letters lose their case.
    """
    if not found or max(found) < _FIRST_REWRITTEN:
        return found
    paired, han, units, picture, tones = _rewriting()
    result = []
    for token in found:
        if token < _FIRST_REWRITTEN:
            result.append(token)
        elif paired.match(token):
            parts = units.findall(token)
            if len(parts) > 1:
                result += map("".join, itertools.pairwise(parts))
            if len(parts) == 1 or han.match(token):
                result += parts
        elif picture.match(token):
            result.append(tones.sub("", token))
        else:
            result.append(token)
    return result


@functools.cache
def _rewriting() -> tuple[re.Pattern[str], ...]:
    mark = marks()
    below = rf"(?<=[{_STACKING}]).[{mark}]*"
    return (
        re.compile(rf"[{HAN}{HIRAGANA}{SOUTHEAST}]"),
        re.compile(rf"[{HAN}]"),
        re.compile(rf"[{_WRITTEN_BEFORE}]?.[{mark}]*(?:{below})*[{_WRITTEN_AFTER}]*"),
        re.compile(rf"[{PICTURES}]"),
        re.compile(rf"(?<=[{PICTURES}])[{_TONES}]"),
    )


@functools.cache
def _long_runs() -> re.Pattern[str]:
    mark = marks() + "\uff9e\uff9f"  # these two become marks when normalised
    return re.compile(rf"([{mark}]{{30}})[{mark}]+")


@functools.cache
def _stray_joiners() -> re.Pattern[str]:
    return re.compile(rf"{_JOINER}(?:(?<![{PICTURES}{_TAGS}].)|(?![{PICTURES}]))")


PIECES_HELD = 1 << 16
LONGEST_HELD = 64  # characters; longer pieces seldom come again

_LINK = r"(?:https?://|www\.)"
_RUN_ON = r"\.(?<=[a-z]\.)(?=[A-Z])"  # the end of a sentence without a space after it
_plain = re.compile(r"[A-Za-z0-9 \t\r\n]*+").fullmatch
_entities = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][0-9A-Za-z]{1,30});").sub
_run_on = re.compile(_RUN_ON).search


class _Grammar(NamedTuple):
    """Patterns in the order of their use; in the first two, group 1 is a link, which stays as it is."""

    sentences: re.Pattern[str]
    dropped: re.Pattern[str]
    words: re.Pattern[str]


def _grammar(
    *, letter: str, more: str, digit: str, points: str, name: str, gap: str, others: str
) -> _Grammar:
    """Compile the grammar for some repertoire of characters.

    ``letter`` is a letter or digit, ``more`` a run of what may follow one, ``points`` are signs within
    numbers, ``name`` is a character of names and tags, ``gap`` ends a link, ``others`` are more words.
    """
    rest = rf"""[^\s<>"{gap}]*[^\s<>"'`.,;:!?()\[\]{{}}|\\*{gap}]"""  # punctuation after it is the sentence's
    dotted = rf"\.(?<=[a-z]\.)(?=[a-z])(?!{_LINK}){more}"
    within_number = rf"[{points}](?<={digit}.)(?={digit}){more}"
    words = (
        _LINK + rest,
        rf"(?:{letter}{more}|{digit})(?:{within_number}|{dotted}|&[a-z](?!{letter}))*",  # 3.14 node.js at&t
        rf"[a-z](?:\+\+|\#(?!{letter})|&(?=[a-z]){more}|(?:{dotted})+)",  # c++ c# q&a u.s
        rf"(?<![a-z0-9.])\.net(?!{letter})",
        others,
        rf"(?<![\w&])[@#]{name}++",  # neither in a@b nor in what is left of &#39;
    )
    dropped = (
        rf"({_LINK}{rest})",
        r"'(?:(?<=n')(?=t\b)|(?<=\bo')(?=[a-z]{2})|(?<=\w')(?:s|d|m|ll|re|ve)\b)",  # don't o'neil anna's
        rf"-(?<=(?<![\w@#&./-])[a-z]-)(?=[a-z0-9])(?!{_LINK})",  # e-mail
        r"'(?<=[\u0400-\u052f]')(?=[\u0400-\u052f])",  # a letter of Ukrainian and Belarusian
        r"""['"](?<=[\u05d0-\u05ea].)(?=[\u05d0-\u05ea])""",  # in Hebrew abbreviations
    )
    return _Grammar(
        re.compile(rf"((?i:{_LINK}){rest})|{_RUN_ON}"),
        re.compile("|".join(dropped)),
        re.compile("|".join(filter(None, words))),
    )


_ASCII = _grammar(
    letter="[a-z0-9]", more="[a-z0-9]++", digit="[0-9]", points=".,:/-", name=r"\w", gap="", others=""
)


@functools.cache
def _wide() -> _Grammar:
    letter, mark = rf"[^\W_{UNSPACED}]", marks()
    return _grammar(
        letter=letter,
        more=rf"(?:{letter}|[{mark}])+",
        digit=r"\d",
        points=".,:/\u066b\u066c-",
        name=rf"[\w{mark}]",
        gap=UNSPACED + "\u3000-\u303f",  # these run straight on after a link
        others=rf"[{HANGUL}]|{runs()}",  # one Hangul syllable is two letters or more
    )


def cut(text: str) -> list[str]:
    """Return the words of a text, in order, in lower case."""
    if _plain(text):
        return [word for word in text.lower().split() if len(word) > 1 or word.isdigit()]
    return list(chain.from_iterable(map(_PIECES.__getitem__, text.split())))


class _Pieces(dict[str, list[str]]):
    """Remembers the words of what is between spaces: most of it comes again, with its punctuation."""

    def __missing__(self, piece: str) -> list[str]:
        words = _cut_piece(piece)
        if len(piece) <= LONGEST_HELD:
            if len(self) >= PIECES_HELD:
                self.clear()
            self[piece] = words
        return words


def _cut_piece(text: str) -> list[str]:
    if "&" in text:
        text = _entities(lambda entity: html.unescape(entity[0]), text)
    if not text.isascii():
        text = fold(text)
    ascii_only = text.isascii()
    grammar = _ASCII if ascii_only else _wide()
    if _run_on(text):
        text = grammar.sentences.sub(r"\1 ", text)
    text = text.lower() if ascii_only else fold_case(text)
    if "'" in text or "-" in text or '"' in text:
        text = grammar.dropped.sub(r"\1", text)
    found: list[str] = grammar.words.findall(text)
    return found if ascii_only else rewrite(found)


_PIECES = _Pieces()


def is_link(word: str) -> bool:
    """Whether a word is a web address."""
    return word.startswith(("http://", "https://", "www."))
