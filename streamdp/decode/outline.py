"""What counts the parts of JSON before any of them is made: bytes outside of strings, a stretch at a time.

No stretch takes long, so that other threads go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

STRETCH = 1 << 18
"""Bytes that are looked at together."""

_IS_PART, _STEP = np.zeros(256, bool), np.zeros(256, np.int64)  # of each letter; how much deeper it goes
_IS_PART[list(b"{[,")] = True
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1


def has_parts(data: bytes, most: int) -> bool:
    """Whether JSON has more than so many commas, objects and arrays in all, outside of strings."""
    if len(data) <= most:
        return False
    return sum(int(np.count_nonzero(_IS_PART[letters])) for _, letters in outline(data)) > most


def elements(data: bytes, most: int) -> list[bytes] | None:
    """The elements of an array of JSON, none of them checked; None where there are more than ``most``.

    Examples
    --------
    >>> elements(b' [1, {"a": "b,c"}, [2, 3]]', 3)
    [b'1', b' {"a": "b,c"}', b' [2, 3]']
    """
    data, cuts, depth = data.strip(), [0], 0
    for at, letters in outline(data):
        depths = depth + np.cumsum(_STEP[letters])
        depth = int(depths[-1])
        cuts += (at + np.flatnonzero((letters == ord(",")) & (depths == 1))).tolist()
        if len(cuts) > most:
            return None
    if not data.endswith(b"]"):
        return [b""]  # which is no JSON
    found = [data[a + 1 : b] for a, b in zip(cuts, [*cuts[1:], len(data) - 1], strict=True)]
    return [] if len(found) == 1 and not found[0].strip() else found


def outline(data: bytes) -> Iterator[tuple[int, np.ndarray]]:
    """Stretches of JSON, and where each begins; letters of strings are 0."""
    escaped, inside = False, np.False_
    for at in range(0, len(data), STRETCH):
        part = data[at : at + STRETCH]
        if escaped:
            part = b"a" + part[1:]
        part = part.replace(rb"\\", b"aa").replace(rb"\"", b"aa")
        escaped = part.endswith(b"\\")
        letters = np.frombuffer(part, np.uint8)
        within = np.logical_xor.accumulate(letters == ord('"')) ^ inside
        inside = within[-1]
        yield at, np.where(within, 0, letters)
