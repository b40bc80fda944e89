"""Records that are to be erased, and what is left of a line, or of a text, that speaks of them."""

from __future__ import annotations

import base64
import csv
import functools
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
        The field of the id, in records as they came.
    seen
        Those of the ids that were met.

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

    def with_more(
        self,
        ids: Iterable[str] = (),
        seqs: Iterable[int] = (),
        texts: Iterable[str] = (),
        words: Iterable[str] = (),
    ) -> Erased:
        """The same, and more of it is known: ids that were met, numbers, texts, words."""
        lines = (" ".join(text.split()) for text in texts)
        return msgspec.structs.replace(
            self,
            ids=self.ids | (met := set(ids)),
            seen=self.seen | met,
            seqs=self.seqs | set(seqs),
            texts=self.texts | {line for line in lines if line},
            words=self.words | set(words),
        )

    def named(self, name: object) -> bool:
        """Whether this is the id of one of them."""
        return name is not None and str(name) in self.ids

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

    def came_as(self, data: bytes) -> bool:
        """Whether one of them came as these bytes: by its id, its fields, or what it says."""
        try:
            fields = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError):
            text = data.decode("utf-8", "replace")
            return self.said(text) or any(map(self.named, next(iter(csv.reader([text])), [])))
        if not isinstance(fields, dict):
            return False
        return self.named(fields.get(self.id_field)) or self.meant(fields)

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
            data = value.get("data")
            raw = base64.b64decode(value["data_base64"]) if data is None else str(data).encode()
            return {name: value[name] for name in ("position", "reason")} if self.came_as(raw) else value
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
