"""What a user's features are: counts of named things, or the numbers of a vector."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamdp.encode.encoders import HUGE
from streamdp.records import holds_categories, written
from streamdp.settings.schema import AUTO

ABSENT = 1 / 3
"""Share of features that records lack, on average, above which they are sparse."""


def named(value: Any) -> Any:
    """A name or an object that a parameter is; None where it is automatic."""
    return None if isinstance(value, str) and value == AUTO else value


def is_sparse(rows: Sequence[Any]) -> bool | None:
    """Whether these first records are bags of words or categories; None where more must be seen.

    Texts, Counters and mappings to texts are. Vectors are not. Of other mappings, those are of which each
    lacks many of the names that occur: the bag of words of a text has few words of all.
    """
    first = rows[0]
    if isinstance(first, str | Counter) or holds_categories(first):
        return True
    if not isinstance(first, Mapping):
        return False
    names = {name for row in rows for name in row}
    if len(rows) < 2 or not names:
        return None
    return 1.0 - sum(map(len, rows)) / (len(rows) * len(names)) > ABSENT


def counts_of(x: Mapping[Any, Any]) -> dict[str, float]:
    """Counts by name; a positive weight that is no count, such as a tf-idf, counts once, the rest never."""
    counts = {}
    for name, value in x.items():
        if value > 0:
            counts[str(name)] = float(value) if value == int(value) else 1.0
    return counts


def categories_of(x: Mapping[Any, Any]) -> dict[str, str]:
    """Categories by field; None is none. ValueError, with what is wrong, for a value that is no category."""
    found = {}
    for name, value in x.items():
        if value is not None:
            try:
                found[str(name)] = written(value)
            except ValueError as error:
                raise ValueError(f"feature {name!r} {error}") from None
    return found


def names_of(rows: Sequence[Any]) -> list[Any] | None:
    """All names of features, sorted; None for vectors, whose numbers have none."""
    if not isinstance(rows[0], Mapping):
        return None
    return sorted({name for row in rows for name in row}, key=lambda name: (str(type(name)), name))


def numbers_of(x: Any, names: list[Any] | None) -> list[float]:
    """The numbers of a record: 0 for a name that it lacks; names not in ``names`` are passed over.

    ValueError or TypeError, with what is wrong, where one is no finite number.
    """
    if names is None:
        numbers = [float(value) for value in x]
    else:
        get = x.get
        numbers = [get(name, 0.0) for name in names]
    try:
        if math.hypot(*numbers) < HUGE:
            return numbers
    except TypeError:
        pass
    shown = names or range(len(numbers))
    for name, number in zip(shown, numbers, strict=True):
        if not isinstance(number, int | float | np.number):
            raise TypeError(f"feature {name!r} is {number!r}, which is no number")
        if not abs(number) < HUGE:
            raise ValueError(f"feature {name!r} is {number!r}: numbers must be finite, and below {HUGE:g}")
    return numbers
