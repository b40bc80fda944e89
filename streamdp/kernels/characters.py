"""Which characters parts of a regular expression match, as ``re`` has parsed it."""

from __future__ import annotations

import re
from typing import Any

_SPACES = frozenset(b" \t\n\r\f\v")
_DIGITS = frozenset(b"0123456789")
WORDS = frozenset(byte for byte in range(128) if chr(byte).isalnum() or byte == ord("_"))
"""Letters, digits and the underscore, of ASCII."""


class UntranslatedError(Exception):
    """An expression uses what is not translated."""


def members_of(kind: str, value: Any, flags: int) -> frozenset[int] | None:
    """The characters of ASCII that a part matches which is one character; None for other parts."""
    every = frozenset(range(128))
    if kind == "LITERAL":
        found = {value}
    elif kind == "NOT_LITERAL":
        return every - _either_case({value}, flags)
    elif kind == "ANY":
        return every if flags & re.DOTALL else every - {0x0A}
    elif kind == "IN":
        found = set()
        negated = False
        for each, what in value:
            name = str(each)
            if name == "NEGATE":
                negated = True
            elif name == "LITERAL":
                found.add(what)
            elif name == "RANGE":
                found.update(range(what[0], what[1] + 1))
            elif name == "CATEGORY":
                found |= _category(str(what), flags)
            else:
                raise UntranslatedError
        if negated:
            return every - _either_case(found, flags)
    else:
        return None
    if max(found, default=0) > 127:
        raise UntranslatedError
    return _either_case(found, flags)


def _category(name: str, flags: int) -> frozenset[int]:
    spaces = _SPACES if flags & re.ASCII else frozenset(i for i in range(128) if chr(i).isspace())
    known = {"CATEGORY_SPACE": spaces, "CATEGORY_DIGIT": _DIGITS, "CATEGORY_WORD": WORDS}
    if name in known:
        return known[name]
    name = name.replace("_NOT_", "_")
    if name not in known:
        raise UntranslatedError
    return frozenset(range(128)) - known[name]


def _either_case(found: set[int], flags: int) -> frozenset[int]:
    if flags & re.IGNORECASE:
        found = found | {
            ord(each) for byte in found if byte < 128 for each in (chr(byte).lower(), chr(byte).upper())
        }
    return frozenset(byte for byte in found if byte < 128)
