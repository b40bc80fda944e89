"""Text to tokens to counts, the same way for every language and without a stop-word list.

The likelihoods learn how common each word is, so common words need no list. What a token *is* stays
fixed for the life of a state: it changes the data, so evidence cannot choose it.
"""

from __future__ import annotations

import difflib
import functools
import re
import unicodedata
from collections.abc import Iterable

import msgspec

_LONGEST_STEMMED = 64  # characters; what is longer is no word of any language, and would fill the cache
_STEMS_HELD = 1 << 17

_CJK = (
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U000323af"
)
_URL_END = r"""[^\s<>"'`.,;:!?()\[\]{}|\\*]"""  # punctuation after a link belongs to the sentence
_ASCII = re.compile(
    r"""(?:https?://|www\.)[^\s<>"]*""" + _URL_END + r"|[a-z0-9]{2,}|(?<![\w&])[@#]\w+"  # not &#39; nor a@b
)
_INVISIBLE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"  # hyphenation and joining hints inside words


class TooManyTokens(ValueError):  # noqa: N818 - it names the limit, and becomes a reject reason
    """One text gave more tokens than ``max_tokens``."""

    reason = "too_many_tokens"


class Tokenizer(msgspec.Struct, frozen=True, kw_only=True):
    """How a text is cut into tokens.

    ``stem`` is a Snowball language ("english", "german", ...) or "none". ``ngrams`` n (1 to 5) adds every
    run of 2 to n neighbouring tokens, joined by spaces. ``urls``, ``mentions`` and ``hashtags`` say
    whether links, @names and #tags are kept (one token each, never stemmed) or dropped whole.
    ``max_tokens`` bounds the tokens of one text, n-grams included. Raises ValueError for a bad value.
    """

    stem: str = "none"
    ngrams: int = 1
    urls: bool = True
    mentions: bool = True
    hashtags: bool = True
    max_tokens: int = 100_000

    def __post_init__(self) -> None:
        if not 1 <= self.ngrams <= 5:
            raise ValueError(f"ngrams must be 1 to 5, not {self.ngrams}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, not {self.max_tokens}")
        if self.stem != "none":
            _stems(self.stem)

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of ``text``, in order; longer n-grams follow after all shorter ones.

        The text is normalised (NFKC) and casefolded. A word is a run of two or more letters, digits and
        combining marks; everything else separates, apostrophes too, so that "trump's" and "l'homme"
        give "trump" and "homme" (their other halves are too short). Each Han, Hiragana or Katakana
        character is a token; Hangul is written in words. Raises TooManyTokens.
        """
        if text.isascii():
            found: list[str] = _ASCII.findall(text.lower())
        else:
            found = _wide().findall(_fold(text))
        if not (self.urls and self.mentions and self.hashtags):
            found = [token for token in found if self._keeps(token)]
        if self.stem != "none":
            stems = _stems(self.stem)
            found = [stems[token] for token in found]
        total = sum(max(0, len(found) - n) for n in range(self.ngrams))
        if total > self.max_tokens:
            raise TooManyTokens(f"the text has {total} tokens, more than the limit of {self.max_tokens}")
        if self.ngrams > 1:
            words = found.copy()
            for n in range(2, self.ngrams + 1):
                found += map(" ".join, zip(*(words[i:] for i in range(n)), strict=False))
        return found

    def _keeps(self, token: str) -> bool:
        if token[0] == "@":
            return self.mentions
        if token[0] == "#":
            return self.hashtags
        return self.urls or not _is_url(token)


def counts(tokens: Iterable[str]) -> dict[str, int]:
    """Count each token; the keys stand in order of first occurrence."""
    tokens = tokens if isinstance(tokens, list) else list(tokens)
    result = dict.fromkeys(tokens, 1)
    if len(result) == len(tokens):  # most short texts repeat no word
        return result
    result = dict.fromkeys(tokens, 0)
    for token in tokens:
        result[token] += 1
    return result


def _is_url(token: str) -> bool:
    return "." in token or "/" in token  # no other kind of token can hold either


def _fold(text: str) -> str:
    """Normalise and casefold, so that spellings which look alike become equal."""
    if len(text) > 256:
        # Normalising sorts each run of combining marks, in quadratic time: a megabyte of them takes
        # minutes. No writing uses more than a few (Unicode calls 30 stream-safe).
        text = _long_runs().sub(r"\1", text)
    for character in _INVISIBLE:
        text = text.replace(character, "")
    text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", text)  # casefolding may take characters apart


@functools.cache
def _marks() -> str:
    """All combining marks as ranges of a character class; ``re`` has no name for them."""
    ranges: list[list[int]] = []
    for code in [*range(0x20000), *range(0xE0100, 0xE01F0)]:
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


@functools.cache
def _wide() -> re.Pattern[str]:
    """Compile the pattern for text beyond ASCII; on ASCII text it finds what ``_ASCII`` finds."""
    marks, letter = _marks(), rf"[^\W_{_CJK}]"
    gap = _CJK + "\u3000-\u303f"  # scripts without spaces run straight on after a link
    url = rf"""(?:https?://|www\.)[^\s<>"{gap}]*{_URL_END[:-1]}{gap}]"""
    word = rf"{letter}(?:{letter}++|[{marks}]++)++"
    return re.compile(rf"{url}|{word}|[{_CJK}][{marks}]*+|(?<![\w&])[@#][\w{marks}]++")


@functools.cache
def _long_runs() -> re.Pattern[str]:
    marks = _marks() + "\uff9e\uff9f"  # these two become marks when normalised
    return re.compile(rf"([{marks}]{{30}})[{marks}]+")


class _Stems(dict[str, str]):
    """Remembers the stem of each word seen: the stemmer takes 20 microseconds, a look-up 30 ns."""

    def __init__(self, language: str) -> None:
        import snowballstemmer  # here, because it loads all its languages and few streams want one

        known = sorted(snowballstemmer.algorithms())
        if language not in known:
            close = difflib.get_close_matches(language.casefold(), known, n=3)
            hint = f"did you mean {' or '.join(close)}?" if close else f"known: none, {', '.join(known)}"
            raise ValueError(f"no stemmer for {language!r}; {hint}")
        self._stemmer = snowballstemmer.stemmer(language)

    def __missing__(self, token: str) -> str:
        if len(token) > _LONGEST_STEMMED or token[0] in "@#" or _is_url(token):
            return token
        if len(self) >= _STEMS_HELD:
            self.clear()
        stem: str = self._stemmer.stemWord(token) or token
        self[token] = stem
        return stem


@functools.cache
def _stems(language: str) -> _Stems:
    return _Stems(language)
