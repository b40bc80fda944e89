"""How a text is cut into words: one grammar, for ASCII and for all characters.

What means the same should be the same word, since records are alike by the words that they share. So a sign
that holds a name, an abbreviation or a number together is part of it, one that is written or left out as one
likes is dropped (e-mail, don't), and one that adds grammar to a word separates (Anna's, l'homme,
state-of-the-art). docs/formats.md has the rules and examples of all of them.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Callable
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

from streamdp.encode import scripts

_PIECES_HELD = 1 << 16
_LONGEST_HELD = 64  # characters; longer pieces seldom come again

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
    letter, marks = rf"[^\W_{scripts.UNSPACED}]", scripts.marks()
    return _grammar(
        letter=letter,
        more=rf"(?:{letter}|[{marks}])+",
        digit=r"\d",
        points=".,:/\u066b\u066c-",
        name=rf"[\w{marks}]",
        gap=scripts.UNSPACED + "\u3000-\u303f",  # these run straight on after a link
        others=rf"[{scripts.HANGUL}]|{scripts.runs()}",  # one Hangul syllable is two letters or more
    )


def cut(text: str) -> list[str]:
    """Return the words of a text, in order, in lower case."""
    if _plain(text):
        return [word for word in text.lower().split() if len(word) > 1 or word.isdigit()]
    return list(chain.from_iterable(map(_PIECES.__getitem__, text.split())))


Piece = TypeVar("Piece", str, bytes)


class _Pieces(dict[Piece, list[str]], Generic[Piece]):
    """Remembers the words of what stands between spaces: most of it comes again, with its punctuation."""

    def __init__(self, cut: Callable[[Piece], list[str]]) -> None:
        self._cut: Callable[[Piece], list[str]] = cut

    def __missing__(self, piece: Piece) -> list[str]:
        words = self._cut(piece)
        if len(piece) <= _LONGEST_HELD:
            if len(self) >= _PIECES_HELD:
                self.clear()
            self[piece] = words
        return words


def cut_piece(piece: bytes) -> list[str]:
    """Return the words of what stands between two spaces of a text in UTF-8, as :func:`cut` does."""
    return _ENCODED[piece]


def _cut_piece(text: str) -> list[str]:
    if "&" in text:
        text = _entities(lambda entity: html.unescape(entity[0]), text)
    if not text.isascii():
        text = scripts.fold(text)
    ascii_only = text.isascii()
    grammar = _ASCII if ascii_only else _wide()
    if _run_on(text):
        text = grammar.sentences.sub(r"\1 ", text)
    text = text.lower() if ascii_only else scripts.fold_case(text)
    if "'" in text or "-" in text or '"' in text:
        text = grammar.dropped.sub(r"\1", text)
    found: list[str] = grammar.words.findall(text)
    return found if ascii_only else scripts.rewrite(found)


_PIECES = _Pieces(_cut_piece)
_ENCODED = _Pieces[bytes](lambda piece: cut(piece.decode("utf-8", "surrogatepass")))


def is_link(word: str) -> bool:
    """Whether a word is a web address."""
    return word.startswith(("http://", "https://", "www."))
