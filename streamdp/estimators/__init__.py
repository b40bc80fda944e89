"""streamdp as Python, River and scikit-learn programs use it: a stream in one call, and estimators.

Each holds an engine and speaks as the others of its library do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from streamdp.engine import Engine
from streamdp.estimators.frames import Clustering, cluster_frame
from streamdp.records import Assignment, Record, Reject, Value
from streamdp.records.frames import rows_of
from streamdp.settings import Settings
from streamdp.settings.blueprint import Blueprint


@overload
def cluster(
    records: Iterable[Record | Value], columns: None = None, settings: Settings | None = None, **given: Any
) -> Iterator[Assignment]: ...
@overload
def cluster(
    records: Any, columns: str | Sequence[str], settings: Settings | None = None, **given: Any
) -> Clustering: ...
def cluster(
    records: Any,
    columns: str | Sequence[str] | None = None,
    settings: Settings | None = None,
    **given: Any,
) -> Iterator[Assignment] | Clustering:
    """A data frame with the cluster of each row; or, of any records, assignments as they come.

    With ``columns`` the result is a :class:`~streamdp.Clustering`: the frame with labels, its stories, and
    what speaks for two rows being together. Rows are taken in the order of their times (in the column that
    ``time_field`` names, by default ``time``), one without behind the row
    before it; the frame keeps its order.

    Without it, records are consumed one at a time, and revisions of earlier assignments come among the
    others; at the end comes what was held back. ValueError at a record that is refused. An
    :class:`~streamdp.Engine` goes on, and reports events.

    Parameters
    ----------
    records
        A data frame of pandas, polars or pyarrow. Or texts, vectors, mappings from features to numbers, or
        records; rows of a data frame. A mapping with a text (``{"text": ..., "time": ...}``) is read as a
        line of a file is.
    columns
        The column of texts or vectors that is clustered, or several of features.
    settings
        Model, search, text and time; None: the defaults.
    given
        Settings by name in the place of ``settings``. ConfigError where there is none such, or one cannot be.

    Examples
    --------
    >>> [a.cluster for a in cluster(["storm over the coast", "coast storm"], second_look=0)]
    [0, 0]
    """
    settings = Blueprint.of(settings, given=given).settings
    return _stream(records, settings) if columns is None else cluster_frame(records, columns, settings)


def _stream(records: Iterable[Record | Value], settings: Settings) -> Iterator[Assignment]:
    engine = Engine(settings)
    for record in rows_of(records):
        yield from _answered(engine.advance([record]))
    yield from _answered(engine.finish())


def _answered(answers: Any) -> list[Assignment]:
    rejects: list[Reject] = answers.rejects
    if rejects:
        raise ValueError(f"{rejects[0].reason}: {rejects[0].detail} ({rejects[0].position})")
    found: list[Assignment] = answers.assignments
    return found
