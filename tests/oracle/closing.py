"""Places that are closed, in plain Python."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

SHUT = "\xc1"
"""Before a token that is closed."""

DELIMITERS = "=:,;()[]\"' \t\n\v\f\r"
METHOD = "GET|HEAD|POST|PUT|DELETE|PATCH|OPTIONS|CONNECT|TRACE"
LEVEL = "TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|SEVERE|CRIT|CRITICAL|ALERT|EMERG|FATAL|PANIC"
STATE = "up|down|online|offline|enabled|disabled|active|inactive"
VERB = (
    "began|broke|brought|built|came|chose|cut|fell|forgot|found|gave|got|grew|held|hung|kept|knew|left|lost|made"
    "|meant|met|paid|put|ran|read|rose|said|sank|saw|sent|set|shut|slept|sold|spent|spoke|split|stood|stuck|taken"
    "|threw|told|took|understood|went|woke|won|wrote"
)
WORDS = {
    "method": METHOD,
    "level": f"{LEVEL}|{LEVEL.lower()}",
    "state": f"{STATE}|{STATE.upper()}|{STATE.title()}",
}


@dataclass(frozen=True)
class Rule:
    """A place of lines with these tokens, None for a hole, that is closed: for one value, or for any."""

    shape: Sequence[str | None]
    place: int
    value: str | None = None


@dataclass(frozen=True)
class Closing:
    """Classes by name, and rules in the order in which they were made."""

    classes: Sequence[str] = ()
    rules: Sequence[Rule] = ()


OPEN = Closing()


def shut(token: str) -> bool:
    """Whether a token is closed."""
    return token.startswith(SHUT)


def closed_tokens(
    tokens: Sequence[str], raw: Sequence[tuple[bytes, bytes | None]], closing: Closing
) -> list[str]:
    """The tokens of a line, those of closed places as they are.

    Of each there is what it is of, and from the first to the last of its folded parts.
    """
    texts, found = [whole.decode("latin-1") for whole, _ in raw], list(tokens)
    for i, text in enumerate(texts):
        kinds = {name for name, words in WORDS.items() if re.fullmatch(words, text)}
        if i in statuses(texts):
            kinds.add("status")
        if kinds & set(closing.classes):
            found[i] = as_it_is(text)
    for rule in closing.rules:
        if len(rule.shape) != len(found):
            continue
        fits = all(
            not shut(token) if wanted is None else token == wanted
            for token, wanted in zip(found, rule.shape, strict=True)
        )
        whole, part = raw[rule.place]
        value = None if rule.value is None else rule.value.encode()
        if fits and (value is None or value in (whole, part)):
            found[rule.place] = as_it_is(texts[rule.place])
    return found


def statuses(texts: Sequence[str]) -> set[int]:
    """Which tokens are statuses of HTTP: behind a word that says so, or the first behind method and path."""
    found = set()
    for i, text in enumerate(texts):
        if re.fullmatch("[1-5][0-9][0-9]", text):
            before = [each for each in texts[:i] if each not in DELIMITERS]
            if before and re.search("(?i:status|code)$|^HTTP/.", before[-1]):
                found.add(i)
    methods = [i for i, text in enumerate(texts) if re.fullmatch(METHOD, text)]
    paths = [i for i, text in enumerate(texts) if methods and i > methods[0] and re.match("/|ht.p", text)]
    behind = [
        i for i, text in enumerate(texts) if paths and i > paths[0] and re.fullmatch("[1-5][0-9][0-9]", text)
    ]
    return found | set(behind[:1])


def as_it_is(text: str) -> str:
    """A closed token: what would end it is escaped."""
    return SHUT + "".join("\xc0" + chr(ord(char) | 128) if char in DELIMITERS else char for char in text)
