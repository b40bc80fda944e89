"""What scripts make of words: spellings that look alike, writing without spaces, emoji.

All of it is for text beyond ASCII; the tables of characters are made on the first such text.
"""

from __future__ import annotations

import functools
import itertools
import re
import unicodedata

# Ranges of character classes.
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
    pairs. A unit is a character with its marks, and with the vowels and consonants that none may part from
    it. Katakana writes a foreign word or a name from end to end, and stays whole: pairs would count one
    piece of evidence several times. Emoji lose the tone of skin, as letters lose their case.
    """
    if not found or max(found) < _FIRST_REWRITTEN:
        return found
    paired, units, picture, tones = _rewriting()
    result = []
    for token in found:
        if token < _FIRST_REWRITTEN:
            result.append(token)
        elif paired.match(token):
            parts = units.findall(token)
            result += map("".join, itertools.pairwise(parts)) if len(parts) > 1 else parts
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
