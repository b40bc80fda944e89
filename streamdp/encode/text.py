"""Text to tokens, the same way for every language.

What a token *is* stays fixed for the life of a state: it changes the data, so evidence cannot choose it.
"""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping

import msgspec

from streamdp.encode.words import cut, is_link

_LONGEST_STEMMED = 64  # characters; what is longer is no word of any language, and would fill the cache
_STEMS_HELD = 1 << 17
_WHOLE = "none", "auto"
_never_stemmed = re.compile(r"[\d./:,&+#]").search


class TooManyTokens(ValueError):  # noqa: N818 - it names the limit, and becomes a reject reason
    """One text gave more tokens than ``max_tokens``."""

    reason = "too_many_tokens"


class Tokenizer(msgspec.Struct, frozen=True, kw_only=True):
    """How a text is cut into tokens.

    ``stem`` is a Snowball language ("english", "german", ...) or "none"; it leaves alone what is not written
    in letters only, such as numbers, links, ``node.js`` and emoji. "auto" cuts as "none" does: forms are
    united later (:mod:`streamdp.encode.forms`). ``ngrams`` n (1 to 5) adds every run of 2
    to n neighbouring tokens, joined by spaces. ``urls``, ``mentions`` and ``hashtags`` say whether links,
    @names and #tags are kept (one token each) or dropped whole. ``max_tokens`` bounds the tokens of one
    text, n-grams included. Raises ValueError for a bad value.
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
        if self.stem not in _WHOLE:
            stems_of(self.stem)

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of ``text``, in order; longer n-grams follow after all shorter ones.

        Words are cut as :mod:`streamdp.encode.words` says. Raises TooManyTokens.
        """
        found = self._kept(cut(text))
        if self.stem not in _WHOLE:
            stems = stems_of(self.stem)
            found = [stems[token] for token in found]
        if len(found) * self.ngrams > self.max_tokens:
            total = sum(max(0, len(found) - n) for n in range(self.ngrams))
            if total > self.max_tokens:
                raise TooManyTokens(f"the text has {total} tokens, more than the limit of {self.max_tokens}")
        if self.ngrams > 1:
            words = found.copy()
            for n in range(2, self.ngrams + 1):
                found += map(" ".join, zip(*(words[i:] for i in range(n)), strict=False))
        return found

    def _kept(self, words: list[str]) -> list[str]:
        if self.urls and self.mentions and self.hashtags:
            return words
        signs = {"@": self.mentions, "#": self.hashtags}
        return [word for word in words if signs.get(word[0], self.urls or not is_link(word))]


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
        if len(token) > _LONGEST_STEMMED or not token[0].isalpha() or _never_stemmed(token):
            return token
        if len(self) >= _STEMS_HELD:
            self.clear()
        stem: str = self._stemmer.stemWord(token) or token
        self[token] = stem
        return stem


@functools.cache
def stems_of(language: str) -> Mapping[str, str]:
    """The stem of each word by a stemmer. ValueError for a language without one."""
    return _Stems(language)
