"""Words of grammar: articles, pronouns, prepositions, conjunctions, auxiliaries and the like, by language.

They say how a sentence is built and not what it is about. In a short text they are a third of all words, and
what they agree in would be taken for a topic ("what is the best way to ..."). Only closed classes are
listed, which hardly ever gain a word; nouns, adjectives and full verbs are none, however common. Nor are
negations, nor what tells a thing that is up from one that is down. The words of stop_words.txt are spelt as
:mod:`streamdp.encode.words` cuts them. Chinese and Japanese are cut into pairs of characters, so theirs are
characters: with one of Chinese in it, a pair stands across two words; kana are grammar where both are.
"""

from __future__ import annotations

import functools
import itertools
import re
from importlib.resources import files
from typing import Final

from streamdp.encode.text import Tokenizer
from streamdp.encode.words import HAN, HIRAGANA

_TEXT: Final = files(__package__).joinpath("stop_words.txt").read_text(encoding="utf-8")
_LISTS: Final = dict(re.findall(r"\[(\w+)\]\n([^\[]+)", _TEXT))

DENYING: Final = frozenset(_LISTS.pop("denying").split())
"""Words that turn a meaning round and have none alone: no stop words, but no keywords either."""

LANGUAGES: Final = tuple(_LISTS)
"""Those that have a list, in the order in which one goes before another that has as many words of a text."""

OWN_SCRIPT: Final = LANGUAGES.index("russian")
"""The first of those whose words are written as none of a language before it is."""

_WORDS: Final = tuple(frozenset(words.split()) for words in _LISTS.values())


def stop_words(language: str) -> frozenset[str]:
    """The list of a language of ``LANGUAGES``. ValueError for another.

    >>> from streamdp.encode.stop_words import stop_words
    >>> sorted(stop_words("english"))[:5]
    ['about', 'above', 'across', 'after', 'again']
    """
    return _WORDS[LANGUAGES.index(language)]


@functools.cache
def _marks(stem: str) -> dict[str, int]:
    tokenizer, found = Tokenizer(stem=stem), dict[str, int]()
    for bit, words in enumerate(_WORDS):
        for token in itertools.chain.from_iterable(map(tokenizer.tokens, words)):
            found[token] = found.get(token, 0) | 1 << bit
    return found


def mark(token: str, stem: str = "none") -> int:
    """In which languages a token is a stop word, a bit each; a run of words is one where all of them are.

    ``stem`` is the tokenizer's.

    >>> from streamdp.encode.stop_words import mark
    >>> bin(mark("in")), mark("cluster"), mark("我们") > 0
    ('0b101001011', 0, True)
    """
    marks, found = _marks(stem), -1
    if not token.isascii() and (pair := _is_pair(token)):
        first, second = (marks.get(character, 0) for character in token)
        return first | second if pair[1] else first & second
    for word in token.split(" "):
        found &= marks.get(word, 0)
    return found


_is_pair = re.compile(rf"([{HAN}]{{2}})|[{HIRAGANA}]{{2}}").fullmatch
