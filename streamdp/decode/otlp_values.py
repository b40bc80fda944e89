"""Values of attributes and bodies, as OTLP has them in JSON."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamdp.decode.fields import RefusedError


def plain(value: Any) -> Any:
    """What a value of OTLP holds, as JSON has it. Raises RefusedError."""
    if value is None or value == {}:
        return None
    if not isinstance(value, dict):
        raise RefusedError("wrong_type", 'a value is an object such as {"stringValue": ...}')
    try:
        return next((read(value[kind]) for kind, read in _KINDS.items() if value.get(kind) is not None), None)
    except RecursionError:
        raise RefusedError("not_json", "a value is nested too deeply") from None


def _of(kind: type, name: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not isinstance(value, kind) or (kind is not bool and isinstance(value, bool)):
            raise RefusedError("wrong_type", f"{name!r} holds {type(value).__name__}")
        return value

    return read


def _whole(value: Any) -> int:
    try:
        return int(value) if isinstance(value, str) else _of(int, "intValue")(value)
    except ValueError:
        raise RefusedError("wrong_type", f"'intValue' is no whole number: {value[:40]!r}") from None


def _number(value: Any) -> float | str:
    """A number; NaN and infinities, which JSON lacks, are texts."""
    return value if isinstance(value, str) else _of(int | float, "doubleValue")(value)  # type: ignore[arg-type]


def _values(value: Any) -> list[Any]:
    found: Any = _of(dict, "arrayValue")(value).get("values")
    return [] if found is None else _of(list, "values")(found)


def _array(value: Any) -> list[Any]:
    return [plain(each) for each in _values(value)]


def _fields(value: Any) -> dict[str, Any]:
    pairs = [_of(dict, "kvlistValue")(each) for each in _values(value)]
    return {str(pair.get("key", "")): plain(pair.get("value")) for pair in pairs}


_KINDS: dict[str, Callable[[Any], Any]] = {
    "stringValue": _of(str, "stringValue"),
    "boolValue": _of(bool, "boolValue"),
    "intValue": _whole,
    "doubleValue": _number,
    "arrayValue": _array,
    "kvlistValue": _fields,
    "bytesValue": _of(str, "bytesValue"),
}
