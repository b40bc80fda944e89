"""Records written as JSON objects, and files of JSON lines that a program has written."""

from __future__ import annotations

import contextlib
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from streamdp.decode.columns import TRUTH
from streamdp.decode.fields import (
    Fields,
    Parts,
    RefusedError,
    features_value,
    id_value,
    kept_value,
    nothing_of,
    text_value,
    time_value,
    vector_value,
)
from streamdp.errors import Exit, StreamdpError
from streamdp.records import ALL_CATEGORIES, FieldNames, written

_TYPES: dict[str, Any] = {
    "text": str | None,
    "vector": list[float] | None,
    "features": dict[str, float] | None,
    "time": float | str | None,
    "id": int | str | None,
}


class Objects:
    """Reads JSON objects in one pass, straight into the fields that matter.

    What the typed pass does not accept is read again field by field, to find out which rule it breaks.
    """

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self._scaled = fields.unit not in ("auto", "s") or fields.form is not None
        self._slots = {name: f"kept{i}" for i, name in enumerate(fields.keep) if name not in fields.roles}
        event = msgspec.defstruct(
            "Event",
            [(role, _TYPES[role], None) for role in _TYPES]
            + [(slot, Any, msgspec.UNSET) for slot in self._slots.values()],
            rename={role: getattr(fields, role) for role in _TYPES}
            | {slot: name for name, slot in self._slots.items()},
            gc=False,
        )
        self._typed: Callable[[bytes], Any] = msgspec.json.Decoder(event).decode
        # A kept field that also plays a part has no slot of its own.
        self._simple = len(self._slots) == len(fields.keep) and fields.date is None

    def read(self, data: bytes) -> Parts:
        """Return the value, time, id and kept fields; raises RefusedError or UnicodeDecodeError."""
        if not data.isascii():
            data.decode()  # msgspec does not look inside the fields that it skips
        try:
            event = self._typed(data)
        except (msgspec.DecodeError, RecursionError):
            return self._explain(data)
        text, vector, features = event.text, event.vector, event.features
        value: str | list[float] | dict[str, float]
        if text and vector is None and features is None and not text.isspace():
            value = text
        elif vector and text is None and features is None:
            value = vector  # finite: msgspec refuses numbers out of range
        elif features and text is None and vector is None:
            value = features
        else:
            return self._explain(data)
        if not self._simple:
            return self._explain(data)
        time = event.time
        if time is not None and (time.__class__ is str or self._scaled or abs(time) >= 1e11):
            time = time_value(
                time, self._fields.time, self._fields.unit, self._fields.zone, self._fields.form
            )
        identity = event.id
        if identity.__class__ is int:
            identity = id_value(identity, self._fields.id)
        return value, time, identity, self._kept(event) if self._slots else None

    def _kept(self, event: Any) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, slot in self._slots.items():
            value = getattr(event, slot)
            if value is not msgspec.UNSET:
                found[name] = value if value.__class__ is str else kept_value(value, name)
        return found

    def _explain(self, data: bytes) -> Parts:
        """Read a record by the same rules, one field at a time."""
        fields = self._fields
        found = fields_of(data)
        given = [name for name in fields.values if name in found]
        if not given:
            wanted = " or ".join(repr(name) for name in fields.values)
            raise RefusedError("missing_field", f"there is no field {wanted}")
        filled = [name for name in given if bytes(found[name]) != b"null"]
        if not filled:
            raise RefusedError("null_value", f"field {given[0]!r} is null")
        if len(filled) > 1:
            named = " and ".join(repr(name) for name in filled)
            raise RefusedError("ambiguous", f"fields {named} are both present; a record has one of them")
        name = filled[0]
        plain = plain_value(found[name], name, "not_finite")
        value: str | list[float] | dict[str, float]
        if name == fields.text:
            value = text_value(plain, name)
        else:
            value = vector_value(plain, name) if name == fields.vector else features_value(plain, name)
        return value, *rest_of(found, fields)


_untyped = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def fields_of(data: bytes) -> dict[str, msgspec.Raw]:
    """The fields of an object, none of them read yet; refuses ``not_json``, ``not_an_object``."""
    try:
        return _untyped(data)
    except msgspec.ValidationError:
        raise RefusedError("not_an_object", "the record is JSON, but not an object") from None
    except RecursionError:
        raise RefusedError("not_json", "the object is nested too deeply") from None
    except msgspec.DecodeError as error:
        if (strict := in_strict_json(data)) is None:
            raise RefusedError("not_json", str(error)) from None
        return fields_of(strict)


def plain_fields(data: bytes) -> dict[str, Any]:
    """What the fields of an object hold, without those that cannot be read; refuses as ``fields_of``."""
    found = {}
    for name, value in fields_of(data).items():
        with contextlib.suppress(RefusedError):
            found[name] = plain_value(value, name, "not_finite")
    return found


_HALF = re.compile(
    rb"(\\(?:[^u]|u(?!d[89a-f])|ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}))|\\ud[89a-f][0-9a-f]{2}",
    re.IGNORECASE,
)
"""An escape of JSON; in no group where it is half of a surrogate pair."""


def in_strict_json(data: bytes) -> bytes | None:
    """JSON that only Python's own reader takes, written as the standard wants it; None for any other.

    NaN and Infinity become null, as other writers have them, and half a surrogate pair becomes U+FFFD.
    """
    whole = _HALF.sub(lambda found: found[1] or rb"\ufffd", data)
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(
            whole.decode(), parse_float=_verbatim, parse_int=_verbatim, parse_constant=lambda name: None
        )
        return msgspec.json.encode(found)
    return None


def _verbatim(number: str) -> msgspec.Raw:
    return msgspec.Raw(number.encode())


def rest_of(
    found: dict[str, msgspec.Raw], fields: Fields
) -> tuple[float | None, str | int | None, dict[str, Any] | None]:
    """What is beside the value: time, id and kept fields."""
    time = identity = None
    if fields.time in found:
        moment = plain_value(found[fields.time], fields.time, "bad_time")
        date = None if fields.date not in found else plain_value(found[fields.date], fields.date, "bad_time")
        if date:
            moment = f"{date} {moment or ''}"
        time = time_value(moment, fields.time, fields.unit, fields.zone, fields.form)
    if fields.id in found:
        identity = id_value(plain_value(found[fields.id], fields.id, "wrong_type"), fields.id)
    keep = {
        name: kept_value(plain_value(found[name], name, "not_finite"), name)
        for name in fields.keep
        if name in found
    }
    return time, identity, keep if fields.keep else None


def plain_value(value: msgspec.Raw, name: str, out_of_range: str) -> Any:
    """What a field holds; refuses ``out_of_range`` for a number that is, ``not_json``."""
    try:
        return msgspec.json.decode(value)
    except msgspec.ValidationError:  # the only thing that can be wrong with a valid but untyped value
        raise RefusedError(out_of_range, f"field {name!r} holds a number out of range") from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise RefusedError("not_json", f"field {name!r}: {error}") from None


class CategoryObjects:
    """Reads JSON objects; what their fields hold are categories, texts and numbers, and a vector.

    Parameters
    ----------
    fields
        The names of what else a record has.
    named
        The fields that count. None are named: all do but time, id, the kept ones and ``cluster``.
    """

    def __init__(self, fields: Fields, named: FieldNames = ALL_CATEGORIES) -> None:
        self._fields, self._named, self._numbers = fields, named.all, frozenset(named.numbers)
        self._vectors = frozenset(named.vectors)

    def read(self, data: bytes) -> Parts:
        """Return the value, time, id and kept fields; raises RefusedError or UnicodeDecodeError."""
        if not data.isascii():
            data.decode()  # msgspec does not look inside the fields that it skips
        found = fields_of(data)
        names: Iterable[str] = self._named
        if not self._named:
            others = {self._fields.time, self._fields.id, TRUTH, *self._fields.keep}
            names = [name for name in found if name not in others]
        value: dict[str, Any] = {}
        for name in names:
            plain = plain_value(found[name], name, "not_finite") if name in found else None
            if plain is None or plain == "":
                continue
            if name in self._vectors:
                value[name] = vector_value(plain, name)
                continue
            try:
                number = name in self._numbers and isinstance(plain, float)
                value[name] = plain if number else written(plain)
            except ValueError as error:
                raise RefusedError(
                    "wrong_type", f"field {name!r} {error}; --fields names those to use"
                ) from None
        if not value:
            raise RefusedError("missing_field", nothing_of(self._named))
        return value, *rest_of(found, self._fields)


_T = TypeVar("_T")

Error = Callable[[str, Exit], StreamdpError]


@contextlib.contextmanager
def unpacked(path: str | Path, error: Error) -> Iterator[BinaryIO]:
    """A file to read, gzipped if its name ends in .gz. Raises ``error``."""
    opened: Any = gzip.open if str(path).endswith(".gz") else open
    try:
        with opened(path, "rb") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as cause:
        raise error(f"{path}: not a whole gzip file: {cause}", Exit.BAD_DATA) from cause
    except OSError as cause:
        raise error(f"{path}: cannot be read: {cause.strerror or cause}", Exit.NO_INPUT) from cause


def written_lines(
    path: str | Path, decode: Callable[[bytes], _T], error: Error, *, torn: tuple[bytes, ...] = ()
) -> Iterator[tuple[int, _T]]:
    """The lines that are not blank, decoded, with their numbers from 1; gzipped if the name ends in .gz.

    A last line without its newline that is no JSON is left out where it begins as one of ``torn`` does: a
    writer may not be done with it. Raises ``error``.
    """
    with unpacked(path, error) as file:
        for number, line in enumerate(file, 1):
            if line.isspace():
                continue
            try:
                decoded = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as cause:
                begun = not line.endswith(b"\n") and any(
                    line[: len(each)] == each[: len(line)] for each in torn
                )
                if begun and not isinstance(cause, msgspec.ValidationError):
                    return
                raise error(f"{path}, line {number}: {cause}", Exit.BAD_DATA) from cause
            yield number, decoded
