"""Read the features of a user's record: counts by name, or the numbers of a vector."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamdp.encode.vector_encoder import HUGE
from streamdp.records import Record, holds_categories, is_missing, plain, written
from streamdp.records.frames import frame_of
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


def categories_of(x: Mapping[Any, Any], beside: tuple[str, ...] = ()) -> dict[str, Any]:
    """Categories by field, without missing ones. ValueError, with what is wrong, for what is no category.

    Of the fields ``beside`` they are vectors, which become lists.
    """
    found: dict[str, Any] = {}
    for name, value in x.items():
        if not is_missing(value):
            try:
                found[str(name)] = [float(number) for number in value] if name in beside else written(value)
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
    if isinstance(x, str):
        raise ValueError("it is a text where those before are vectors")
    try:
        numbers: list[float] = (
            [float(value) for value in x] if names is None else [x.get(name, 0.0) for name in names]
        )
        if math.hypot(*numbers) < HUGE and not isinstance(x, bytes):
            return [*map(float, numbers)]
    except OverflowError:
        raise ValueError(f"a number in it is beyond {HUGE:g}") from None
    except (TypeError, ValueError):
        pass
    if names is None:
        plain(Record(x, {}), {})  # says what a record is
    shown = names or range(len(numbers))
    for name, number in zip(shown, numbers, strict=True):
        if not isinstance(number, int | float | np.number):
            raise TypeError(f"feature {name!r} is {number!r}, which is no number")
        if not abs(number) < HUGE:
            raise ValueError(f"feature {name!r} is {number!r}: numbers must be finite, and below {HUGE:g}")
    return numbers


def labels_like(X: Any, labels: list[int | None]) -> Any:
    """Labels, -1 for None, as a series like ``X`` where that is a data frame; else an array, shape (n,)."""
    values = np.array([-1 if label is None else label for label in labels], np.int64)
    table = None if isinstance(X, np.ndarray) else frame_of(X)
    if table is None:
        return values
    import narwhals.stable.v1 as nw

    made = nw.new_series("cluster", values, native_namespace=nw.get_native_namespace(table))
    native = made.to_native()
    if hasattr(native, "index") and hasattr(X, "index"):
        native.index = X.index
    return native
