"""Rows of data frames and matrices, one record each."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from streamdp.records import is_missing, shown


def rows_of(X: Iterable[Any]) -> Iterator[Any]:
    """A record for each row: features by column, a text where there is one column of them, else a vector.

    ``X`` is a data frame or a series of pandas, polars or pyarrow (any that narwhals knows), a matrix, or any
    iterable of records. Rows of a sparse matrix of scipy are counts by the numbers of their columns.
    TypeError for a record by itself, and what is none.
    """
    if hasattr(X, "tocsr"):
        made = X.tocsr()
        for begin, end in itertools.pairwise(made.indptr.tolist()):
            columns, values = made.indices[begin:end].tolist(), made.data[begin:end].tolist()
            yield Counter(dict(zip(map(str, columns), values, strict=True)))
        return
    if isinstance(X, np.ndarray):
        yield from X.tolist() if X.dtype.kind in "OU" else X
        return
    table = frame_of(X)
    if table is None:
        if isinstance(X, str | bytes | Mapping) or not (hasattr(X, "__iter__") or hasattr(X, "__getitem__")):
            raise TypeError(f"records come in a list or another iterable, not as {shown(X)}")
        yield from X
    elif not hasattr(table, "columns"):
        yield from table.to_list()
    elif len(table.columns) == 1 and _holds_texts(column := table[table.columns[0]].to_list()):
        yield from column
    else:
        yield from table.iter_rows(named=True)


def frame_of(X: Any) -> Any:
    """The same as narwhals has it; None where it is no data frame. ImportError without narwhals."""
    if isinstance(X, list | tuple) or not hasattr(X, "shape"):
        return None
    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        if hasattr(X, "columns"):
            raise ImportError("data frames need one more package: pip install narwhals") from None
        return None
    table = nw.from_native(X, eager_only=True, allow_series=True, pass_through=True)
    return table if isinstance(table, nw.DataFrame | nw.Series) else None


def _holds_texts(column: list[Any]) -> bool:
    return isinstance(next((each for each in column if not is_missing(each)), None), str)
