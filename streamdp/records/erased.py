"""Records that are to be erased, and what is left of a line, or of a text, that speaks of them."""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
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

_PLACE = ("file", "line")
"""What of a position says where a record stands that came by itself."""

_KINDS = ("event", "ended")
"""What is no text of anybody's."""

_OF_ONE = ("words", "mean", "keywords")
"""What of a story of one record, and of an event of it, is that record's own."""

_ALERT = ("alert", "key")
"""What an alert is called by."""

_SHOWN = ("title", "other_title", "sentence")
"""What an alert shows of stories, which may be what the record says."""

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
    id_field, text_field
        The fields of the id and of the text, in records as they came; no id where these are lines of text.
    seen
        Those of the ids that were met.
    places
        Their positions, as JSON.
    numbers
        Their numbers, as far as they are known, by their ids.

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
    text_field: str = "text"
    seen: frozenset[str] = frozenset()
    places: frozenset[str] = frozenset()
    numbers: dict[str, int] = {}

    def met(self, row: Mapping[str, Any]) -> Erased:
        """The same, and more is known of it, if a row of what is kept is of one of them.

        A row says of a record what is known there: its ``id``, ``seq``, ``position``, kept fields (``keep``),
        ``text``; or it has it as it came (``data``).
        """
        if "data" in row or "data_base64" in row:
            return self._met_as_it_came(row)
        name, seq, kept = row.get("id"), row.get("seq"), row.get("keep") or {}
        if not (self.named(name) or seq in self.seqs or self.meant(kept)):
            return self
        texts = [str(row.get("text", "")), *(texts_of(kept.values()) if kept else [])]
        place = row.get("position") or {}
        places = [place, {each: place[each] for each in _PLACE if each in place}] if place else []
        found = self.with_more(() if name is None else [id_text(name)], () if seq is None else [seq], texts)
        numbers = {} if name is None or seq is None else {id_text(name): seq}
        return msgspec.structs.replace(
            found, numbers=self.numbers | numbers, places=self.places | set(map(place_of, places))
        )

    def _met_as_it_came(self, row: Mapping[str, Any]) -> Erased:
        data = refused_data(row)
        ids = self.ids_of(data)
        if ids is None and not self._stands_at(row):
            return self
        text = (_fields_of(data) or {}).get(self.text_field)
        return self.with_more(ids or (), texts=[text] if isinstance(text, str) else ())

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
        return name is not None and id_text(name) in self.ids

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
            others = (each for each in value if not self._is_own(each))
            left = [each if _is_word(each) else self.scrubbed(each) for each in others]
            same = len(left) == len(value) and all(a is b for a, b in zip(left, value, strict=True))
            return value if same else left
        if isinstance(value, dict):
            left_of = self._left_of(value)
            same = left_of.keys() == value.keys() and all(left_of[name] is value[name] for name in value)
            return value if same else left_of
        return value

    def torn(self, data: bytes) -> bytes:
        """What is left of a line that is not whole."""
        return b"" if self.came_as(data) or self.said(data.decode("utf-8", "replace")) else data

    def _is_own(self, row: Any) -> bool:
        """Whether only they have this row of a list: a word with a count, or a record that waits."""
        if isinstance(row, list) and row and isinstance(last := row[-1], dict) and "value" in last:
            return self.named(last.get("id")) or self.meant(last.get("keep"))
        return _is_word(row) and row[0] in self.words

    def _stands_at(self, row: Mapping[str, Any]) -> bool:
        """Whether a record as it came, which was not refused, is one of them by its position."""
        return "reason" not in row and place_of(row["position"]) in self.places

    def _left_of(self, value: dict[str, Any]) -> dict[str, Any]:
        if "position" in value and ("data" in value or "data_base64" in value):
            return self._left_of_data(value)
        if "what" in value:
            return self._left_of_correction(value)
        if "streamdp" in value:  # what the file is
            return value
        answer = "position" in value and ("cluster" in value or "label" in value)
        if "alert" in value and "key" not in value:  # what has become of alerts
            return value
        alert = "key" in value and "event" in value
        name_of = "record" if alert else "id"
        own = self.named(value.get(name_of)) or ((answer or alert) and value.get("seq") in self.seqs)
        if answer and not own:
            return value
        left: dict[str, Any] = {}
        seq = value.get("seq" if "event" in value else "first_seq")
        first = seq in self.seqs and value.get("size") in (0, 1)
        for name, part in value.items():
            if own and (name in _OWN or (alert and name in _SHOWN)):
                continue
            if (own and name == name_of) or (first and name in _OF_ONE):
                left[name] = None
            elif alert and name == "records":
                kept = [self._left_of_moved(row) for row in part]
                left[name] = part if all(a is b for a, b in zip(kept, part, strict=True)) else kept
            elif name in _NAMED and isinstance(part, list):
                others = [each for each in part if not self.named(each)]
                left[name] = self.scrubbed(part if len(others) == len(part) else others)
            elif name == "keywords" and part:
                spoken = " ".join(word for word in part.split() if word not in self.words)
                left[name] = self.scrubbed(part if spoken == part else spoken)
            elif name in _KINDS or (alert and name in _ALERT):
                left[name] = part
            elif alert and name == "sources":
                left[name] = self._left_of_sources(part, value.get("records", ()))
            else:
                left[name] = self.scrubbed(part)
        if alert and any(left.get(name) is not part for name, part in value.items()):
            left.pop("sentence", None)  # it repeats what the line had
        return left

    def _is_of_them(self, row: Mapping[str, Any]) -> bool:
        return self.named(row.get("id")) or row.get("seq") in self.seqs or self.meant(row.get("keep"))

    def _left_of_moved(self, row: dict[str, Any]) -> Any:
        """What is left of a record that an alert speaks of."""
        own = self._is_of_them(row)
        return {k: v for k, v in row.items() if k not in (*_OWN, "id")} if own else self.scrubbed(row)

    def _left_of_sources(self, counts: dict[str, dict[str, int]], rows: Sequence[Any]) -> Any:
        """What is left of the numbers of records by the value of a kept field."""
        own = [row.get("keep", {}) for row in rows if self._is_of_them(row)]

        def stays(name: str, value: str) -> bool:
            theirs = self.meant({name: value}) or any(_written(kept.get(name)) == value for kept in own)
            return not theirs and not self.said(value)

        left = {name: {v: n for v, n in of.items() if stays(name, v)} for name, of in counts.items()}
        return counts if left == counts else left

    def _left_of_data(self, value: dict[str, Any]) -> dict[str, Any]:
        """What is left of a reject; or of a record as it came, in whose place stands what could be none."""
        data = refused_data(value)
        if not self.came_as(data) and not self._stands_at(value):
            return value
        if "reason" in value:
            return {name: value[name] for name in ("position", "reason")}
        nothing = b"{}" if self.id_field and data.startswith(b"{") else b""
        return value if data == nothing else value | {"data": nothing}

    def _left_of_correction(self, value: dict[str, Any]) -> dict[str, Any]:
        """A correction by hand, with the numbers of these records in the place of their ids."""
        left, title = dict(value), value.get("title")
        gone = [name for name in value.get("ids", ()) if self.named(name)]
        if gone:
            seqs = [self.numbers[name] for name in gone if name in self.numbers]
            rest = [name for name in value["ids"] if name not in gone]
            rest += ["erased" for name in gone if name not in self.numbers]
            left |= {"ids": rest, "seqs": [*value.get("seqs", ()), *seqs]}
            left = {name: part for name, part in left.items() if part != []}
        if "records" in value:  # in a store, where numbers are numbers of records
            others = [name for name in value["records"] if isinstance(name, int) or not self.named(name)]
            left["records"] = others if len(others) < len(value["records"]) else value["records"]
        if title is not None and self.said(title):
            left["title"] = "(erased)"
        return left


def _is_word(row: Any) -> bool:
    """Whether this is a word with a number."""
    return isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and not isinstance(row[1], str)


def rows_of_alert(alert: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records that an alert speaks of, as rows of what is kept."""
    first = {"id": alert.get("record"), "seq": alert.get("seq")}
    if alert.get("event") == "born" and alert.get("size") in (0, 1):  # the title is the record's own
        first["text"] = alert.get("title", "")
    return [first, *(row for row in alert.get("records", ()) if isinstance(row, dict))]


def place_of(position: Mapping[str, Any]) -> str:
    """A position as JSON."""
    return msgspec.json.encode(position).decode()


def refused_data(reject: Mapping[str, Any]) -> bytes:
    """A record as it came, or the bytes that a line of a file of rejects has of it."""
    data = reject.get("data")
    if isinstance(data, bytes):
        return data
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
