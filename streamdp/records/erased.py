"""Records that are to be erased, and what is left of a line, or of a text, that speaks of them."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

CERTAIN = 40
"""Characters from which the beginning of a text is taken for that text."""

SPEAKING = 12
"""Characters from which a text is found inside of others."""

_CUT = re.compile(r"(.*?)(?:…|\.\.\.)?(?: \([^()]*\))?", re.DOTALL)
"""A text that was cut, and the word that makes a title unique."""

_WORD = re.compile(r"\w+")

_OWN = ("keep", "params", "text", "texts", "fields", "data", "data_base64", "detail", "sample", "samples")
"""What of an answer, a reject or a message is the record's own."""

_NAMED = ("ids", "records")
"""Lists of ids of records."""

_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4}|\\[^u])+")
"""Characters as JSON may write them."""


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """Records that are to be erased, as far as they are known.

    Parameters
    ----------
    ids
        As texts.
    seqs
        Their numbers.
    texts
        What they say, or how that begins.
    words
        Words that no other record has.
    where
        Fields and the values that they have in such records, and in no others.
    id_field
        The field of the id, in records as they came; empty where these are lines of text, without ids.
    seen
        Those of the ids that were met.
    places
        Their positions, as JSON.

    Examples
    --------
    >>> gone = Erased(ids=frozenset({"7"}), texts=frozenset({"storm over the coast"}))
    >>> answer = {"seq": 3, "id": 7, "position": {"line": 4}, "cluster": 0, "keep": {"from": "Ann"}}
    >>> gone.scrubbed(answer)
    {'seq': 3, 'id': None, 'position': {'line': 4}, 'cluster': 0}
    >>> gone.scrubbed({"event": "titled", "cluster": 0, "title": "storm over the coast (ann)"})
    {'event': 'titled', 'cluster': 0, 'title': ''}
    """

    ids: frozenset[str] = frozenset()
    seqs: frozenset[int] = frozenset()
    texts: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()
    where: tuple[tuple[str, str], ...] = ()
    id_field: str = "id"
    seen: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()

    def with_more(
        self,
        ids: Iterable[str] = (),
        seqs: Iterable[int] = (),
        texts: Iterable[str] = (),
        words: Iterable[str] = (),
        places: Iterable[Mapping[str, Any]] = (),
    ) -> Erased:
        """The same, and more of it is known: ids that were met, numbers, texts, words, positions."""
        lines = (" ".join(text.split()) for text in texts)
        return msgspec.structs.replace(
            self,
            ids=self.ids | (met := set(ids)),
            seen=self.seen | met,
            seqs=self.seqs | set(seqs),
            texts=self.texts | {line for line in lines if line},
            words=self.words | set(words),
            places=self.places | set(map(place_of, places)),
        )

    def named(self, name: object) -> bool:
        """Whether this is the id of one of them."""
        return name is not None and id_text(name) in self.ids

    def words_left(self, words: str | None) -> str | None:
        """Words, separated by blanks, without those that only they had."""
        return words and " ".join(word for word in words.split() if word not in self.words)

    def meant(self, fields: Mapping[str, Any] | None) -> bool:
        """Whether a record with these fields is one of them, by what its fields hold."""
        return bool(fields) and any(_written((fields or {}).get(name)) == value for name, value in self.where)

    def said(self, text: str) -> bool:
        """Whether a text is what one of them says, begins so and was cut, or has it inside, or a word of it.

        Such a word is one that no other record has.
        """
        if self.words and not self.words.isdisjoint(_WORD.findall(text.casefold())):
            return True
        line = " ".join(text.split())
        return any(_is_of(line, own) for own in self.texts)

    def ids_of(self, data: bytes) -> list[str] | None:
        """The ids of them that these bytes have, none where they are theirs without one; None: they are not.

        Bytes that are no object of JSON were refused: they are theirs where they hold a whole id or text.
        """
        fields = _fields_of(data)
        if fields is not None:
            name = fields.get(self.id_field)
            ids = [] if name is None else [id_text(name)]
            return ids if self.named(name) or self.meant(fields) else None
        text = data.decode("utf-8", "replace")
        shown = text + "\n" + _ESCAPED.sub(_unescaped, text)
        if not self.id_field:
            return None
        found = [name for name in self.ids if name in shown and _whole(name, self.id_field).search(shown)]
        line = " ".join(shown.split())
        says = any(len(own) >= SPEAKING and own in line for own in self.texts)
        return found if found or says else None

    def came_as(self, data: bytes) -> bool:
        """Whether these bytes are of one of them."""
        return self.ids_of(data) is not None

    def scrubbed(self, value: Any) -> Any:
        """A value of JSON without what is theirs; the same object where there is nothing of them in it."""
        if isinstance(value, str):
            return "" if self.said(value) else value
        if isinstance(value, list):
            left = [self.scrubbed(each) for each in value if not self._is_own_word(each)]
            same = len(left) == len(value) and all(a is b for a, b in zip(left, value, strict=True))
            return value if same else left
        if isinstance(value, dict):
            left_of = self._left_of(value)
            same = left_of.keys() == value.keys() and all(left_of[name] is value[name] for name in value)
            return value if same else left_of
        return value

    def _is_own_word(self, value: Any) -> bool:
        """Whether this is a word with a count, which only they have."""
        return isinstance(value, list | tuple) and len(value) == 2 and value[0] in self.words

    def _left_of(self, value: dict[str, Any]) -> dict[str, Any]:
        if "reason" in value and ("data" in value or "data_base64" in value):
            own = self.came_as(refused_data(value))
            return {name: value[name] for name in ("position", "reason")} if own else value
        answer = "cluster" in value and "position" in value
        name_of = "record" if "alert" in value else "id"
        own = self.named(value.get(name_of)) or (answer and value.get("seq") in self.seqs)
        if answer and not own:
            return value
        left: dict[str, Any] = {}
        first = "event" in value and value.get("seq") in self.seqs and value.get("size") in (0, 1)
        for name, part in value.items():
            if own and name in _OWN:
                continue
            if (own and name == name_of) or (first and name in ("words", "mean")):  # those of the one record
                left[name] = None
            elif name in _NAMED and isinstance(part, list):
                others = [each for each in part if not self.named(each)]
                left[name] = self.scrubbed(part if len(others) == len(part) else others)
            else:
                left[name] = self.scrubbed(part)
        return left


def place_of(position: Mapping[str, Any]) -> str:
    """A position as JSON."""
    return msgspec.json.encode(position).decode()


def refused_data(reject: Mapping[str, Any]) -> bytes:
    """The bytes that a line of a file of rejects has."""
    data = reject.get("data")
    return base64.b64decode(reject.get("data_base64", "")) if data is None else str(data).encode()


def id_text(name: object) -> str:
    """An id as a text, as the decoder reads it: 17 for 17.0, and no half of a surrogate pair."""
    plain = int(name) if isinstance(name, float) and name.is_integer() else name
    return str(plain).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _fields_of(data: bytes) -> dict[str, Any] | None:
    """The fields of a record of JSON, as Python's own reader takes it; None for anything else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _unescaped(found: re.Match[str]) -> str:
    try:
        return str(msgspec.json.decode(f'"{found[0]}"'))
    except msgspec.DecodeError:
        return found[0]


@functools.lru_cache(1 << 12)
def _whole(name: str, field: str) -> re.Pattern[str]:
    """What finds an id, and no part of a longer one; a number in quotes, as a cell, or behind its field."""
    if not name.isdecimal():
        return re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    cell = rf"(?:^|,)\s*{name}\s*(?:,|$)"
    return re.compile(rf'"{name}"|{cell}|{re.escape(field)}\W{{1,4}}{name}(?![\w-])', re.MULTILINE)


def texts_of(fields: Iterable[Any]) -> list[str]:
    """What kept fields say, together as samples show them, and each that is a text of several words."""
    found = [_written(field) for field in fields]
    return [", ".join(found), *(text for text in found if len(text.split()) > 2)]


def _written(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


@functools.lru_cache(1 << 12)
def _is_of(line: str, own: str) -> bool:
    """Whether a line shows a text, or has it inside."""
    if line == own or (len(own) >= SPEAKING and own in line):
        return True
    found = _CUT.fullmatch(line)
    shown = "" if found is None else found[1].rstrip()
    if shown == own:
        return True
    cut = line[len(shown) : len(shown) + 3].startswith(("…", "..."))
    least = SPEAKING if cut else CERTAIN
    return min(len(shown), len(own)) >= least and (own.startswith(shown) or shown.startswith(own))
