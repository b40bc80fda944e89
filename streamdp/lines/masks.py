"""Masks: what a user's expressions match in a line is a hole of its own kind, before anything is folded.

What is matched is written as a byte that is in no text, one for each name, and filled up with another: so a
masked line is as long as the line, and what stands where is known of both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

MASKED, FILLED = 0xF5, 0xFF
"""Bytes from here on are in no text: what was matched is written as one of them, and then the last."""

MOST_NAMES = FILLED - MASKED

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,31}")
_ESCAPE = 0xDC00
"""Less a byte of no text: what Python writes it as."""

_TAKEN = re.compile(f"[{chr(_ESCAPE + MASKED)}-{chr(_ESCAPE + FILLED)}]")


class Masks:
    """Expressions by name, in their order: each is looked for in what those before it have left.

    Raises ValueError for one that cannot be used.

    Examples
    --------
    >>> masks = Masks(["REQ=req-[0-9a-f]+"])
    >>> masks.named, masks.text(b"took req-3f of 2")
    (('<REQ>',), b'took \\xf5\\xff\\xff\\xff\\xff\\xff of 2')
    """

    def __init__(self, written: Sequence[str] = ()) -> None:
        found = [_parted(each) for each in written]
        names = tuple(dict.fromkeys(name for name, _ in found))
        if len(names) > MOST_NAMES:
            raise ValueError(f"names: there are {len(names)} names, and {MOST_NAMES} at most")
        self.named = tuple(f"<{name}>" for name in names)
        """What each byte from MASKED on is shown as."""
        self._expressions = [(chr(_ESCAPE + MASKED + names.index(name)), each) for name, each in found]

    def over(self, data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """The bytes of lines, each beginning at its place in ``offsets``, with what is masked."""
        if not self._expressions or not len(data):
            return data
        found, whole = data.copy(), data.tobytes()
        for start, stop in pairwise(offsets.tolist()):
            found[start:stop] = np.frombuffer(self.text(whole[start:stop]), np.uint8)
        return found

    def text(self, line: bytes) -> bytes:
        """The same of one line."""
        if not self._expressions:
            return line
        text = line.decode("utf-8", "surrogateescape")
        for sign, expression in self._expressions:

            def written(found: re.Match[str], sign: str = sign) -> str:
                if not found[0] or _TAKEN.search(found[0]) is not None:
                    return found[0]
                return sign + chr(_ESCAPE + FILLED) * (len(found[0].encode()) - 1)

            text = expression.sub(written, text)
        return text.encode("utf-8", "surrogateescape")


def _parted(written: str) -> tuple[str, re.Pattern[str]]:
    """Name and expression of a mask."""
    name, sign, expression = written.partition("=")
    if not sign or not _NAME.fullmatch(name):
        raise ValueError(f"{written[:40]!r}: write NAME=REGEX, with a name of letters, digits, dots, dashes")
    try:
        made = re.compile(expression, re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        raise ValueError(f"{name}: {expression[:60]!r} is no regular expression: {error}") from None
    if made.search("") is not None:
        why = "may match nothing: let it have one character at least"
        raise ValueError(f"{name}: {expression[:60]!r} {why}")
    return name, made


NO_MASKS = Masks()
