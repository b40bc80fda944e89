"""streamdp as Python, River and scikit-learn programs use it: a stream in one call, and estimators.

Each holds an engine and speaks as the others of its library do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from streamdp.engine import Engine
from streamdp.records import Assignment, Record, Reject, Value
from streamdp.records.frames import rows_of
from streamdp.settings import Settings


def cluster(
    records: Iterable[Record | Value], settings: Settings | None = None, **given: Any
) -> Iterator[Assignment]:
    """Assignments of records as they come, and revisions of earlier ones; at the end what was held back.

    Raises ValueError at a record that is refused. An :class:`~streamdp.Engine` goes on, and reports events.

    Parameters
    ----------
    records
        Texts, vectors, mappings from features to numbers, or records, consumed one at a time; rows of a data
        frame. A mapping with a text (``{"text": ..., "time": ...}``) is read as a line of a file is.
    settings
        Model, search, text and time; None: the defaults.
    given
        Settings by name in the place of ``settings``. ConfigError where one cannot be.

    Examples
    --------
    >>> [a.cluster for a in cluster(["storm over the coast", "coast storm"], second_look=0)]
    [0, 0]
    """
    engine = Engine(settings if settings is not None else Settings(**given))
    for record in rows_of(records):
        yield from _answered(engine.advance([record]))
    yield from _answered(engine.finish())


def _answered(answers: Any) -> list[Assignment]:
    rejects: list[Reject] = answers.rejects
    if rejects:
        raise ValueError(f"{rejects[0].reason}: {rejects[0].detail} ({rejects[0].position})")
    found: list[Assignment] = answers.assignments
    return found
