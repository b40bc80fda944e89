"""Records whose fields are categories, texts or numbers, written as JSON objects."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from streamdp.decode.columns import TRUTH
from streamdp.decode.fields import Fields, Parts, RefusedError, nothing_of
from streamdp.decode.objects import fields_of, plain_value, rest_of
from streamdp.records import ALL_CATEGORIES, FieldNames, written


class CategoryObjects:
    """Reads JSON objects; what their fields hold are categories, texts and numbers.

    Parameters
    ----------
    fields
        The names of what else a record has.
    named
        The fields that count. None are named: all do but time, id, the kept ones and ``cluster``.
    """

    def __init__(self, fields: Fields, named: FieldNames = ALL_CATEGORIES) -> None:
        self._fields, self._named, self._numbers = fields, named.all, frozenset(named.numbers)

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
