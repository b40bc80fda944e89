"""Rows of data frames and matrices as records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def records_of(X: Any) -> Iterator[Any]:
    """A record for each row: features by column, a text where there is one column of them, else a vector.

    ``X`` is a data frame or a series of pandas, polars or pyarrow (any that narwhals knows), a matrix, or any
    iterable of records.
    """
    if isinstance(X, np.ndarray):
        yield from X.tolist()
        return
    table = _frame(X)
    if table is None:
        yield from X
    elif not hasattr(table, "columns"):
        yield from table.to_list()
    elif len(table.columns) == 1 and isinstance(next(iter(table[table.columns[0]]), 0), str):
        yield from table[table.columns[0]].to_list()
    else:
        yield from table.iter_rows(named=True)


def labels_like(X: Any, labels: list[int | None]) -> Any:
    """Labels, -1 for None, as a series like ``X`` where that is a data frame; else an array, shape (n,)."""
    values = np.array([-1 if label is None else label for label in labels], np.int64)
    table = None if isinstance(X, np.ndarray) else _frame(X)
    if table is None:
        return values
    import narwhals.stable.v1 as nw

    made = nw.new_series("cluster", values, native_namespace=nw.get_native_namespace(table))
    native = made.to_native()
    if hasattr(native, "index") and hasattr(X, "index"):
        native.index = X.index
    return native


def _frame(X: Any) -> Any:
    """The same as narwhals has it; None where it is no data frame."""
    if isinstance(X, list | tuple) or not hasattr(X, "shape"):
        return None
    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        return None
    table = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    return table if isinstance(table, nw.DataFrame | nw.Series) else None
