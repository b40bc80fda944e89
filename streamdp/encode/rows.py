"""Mappings made in Python that have the form of a record in a file: a text with its time, an id."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from streamdp.decode.decoder import Decoder
from streamdp.encode.encoders import decoder_of
from streamdp.records import Position, Raw, Record, Reject, is_missing, is_time, seconds_of, storable
from streamdp.settings import Settings


class Rows:
    """Reads mappings as lines of JSON are read, where they hold what is clustered under its name.

    Other mappings are features or categories, but for a time under its name.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._plain = settings.of_categories or settings.of_lines

    @cached_property
    def _decoder(self) -> Decoder:
        return decoder_of(self._settings, "jsonl")

    def _has_value(self, row: Mapping[Any, Any]) -> bool:
        """Whether it holds a text, or none, a vector or features under their names."""
        text, names = self._settings.text_field, (self._settings.vector_name, self._settings.features_field)
        if text in row and (isinstance(row[text], str) or is_missing(row[text])):
            return True
        return any(hasattr(row.get(name), "__len__") and not isinstance(row[name], str) for name in names)

    def read(self, row: Any, position: Position) -> Any:
        """A record, or what it was."""
        if not isinstance(row, Mapping):
            return row
        if not self._plain and self._has_value(row):
            fields = {str(name): _written(value) for name, value in row.items() if not is_missing(value)}
            try:
                data = msgspec.json.encode(fields, enc_hook=_plain)
            except UnicodeEncodeError:  # half of a surrogate pair
                data = msgspec.json.encode(storable(fields), enc_hook=_plain)
            found = self._decoder.decode(Raw(data, position, math.inf))
            return found if isinstance(found, Reject) else msgspec.structs.replace(found, arrival=None)
        time = row.get(self._settings.time_field)
        if not is_time(time):
            return row
        rest = {name: value for name, value in row.items() if name != self._settings.time_field}
        return Record(rest, position, seconds_of(time))


def _written(value: Any) -> Any:
    if not is_time(value):
        return value
    return datetime.fromtimestamp(seconds_of(value) or 0.0, UTC).isoformat()


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy as JSON has them; anything else as it is shown."""
    return value.tolist() if hasattr(value, "tolist") else str(value)
