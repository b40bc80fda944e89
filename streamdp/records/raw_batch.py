"""Events side by side, as a source delivers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

import msgspec

from streamdp.records import Raw


class RawBatch(Sequence[Raw]):
    """Events of one source.

    Parameters
    ----------
    fixed
        What the positions of all have in common: ``{"file": path}``.
    counted
        The names of the numbers that follow in a position: ``("line",)``.
    """

    def __init__(self, fixed: Mapping[str, Any], counted: Sequence[str]) -> None:
        self.fixed, self.counted = dict(fixed), tuple(counted)
        self.data: list[bytes] = []
        self.places: list[int] = []
        """The numbers in the positions, one position after the other."""
        self.arrivals: list[float] = []
        self.times: dict[int, float] = {}
        """The source's own timestamps, by place in the list."""
        self.refused: dict[int, str] = {}
        """Why the source itself could not read some."""
        self.blank = 0
        """Blank lines that were skipped on the way."""
        self.unfinished = False
        """Whether there is more to read at once: that there are few, or none, is no silence."""

    @classmethod
    def of(cls, raws: Iterable[Raw]) -> RawBatch | None:
        """The same of events that are objects; None where positions differ in form, or count nothing."""
        self: RawBatch | None = None
        for i, raw in enumerate(raws):
            numbers = {name: value for name, value in raw.position.items() if type(value) is int}
            fixed = {name: value for name, value in raw.position.items() if name not in numbers}
            if self is None:
                self = cls(fixed, tuple(numbers))
            if not numbers or fixed != self.fixed or tuple(raw.position) != (*fixed, *self.counted):
                return None
            self.data.append(raw.data)
            self.places.extend(numbers.values())
            self.arrivals.append(raw.arrival)
            if raw.time is not None:
                self.times[i] = raw.time
            if raw.refused:
                self.refused[i] = raw.refused
        return self

    def heads(self) -> list[bytes]:
        """What stands before each number of a position as JSON: ``{"file":"a","line":``."""
        names = [msgspec.json.encode(name) + b":" for name in self.counted]
        first = msgspec.json.encode(self.fixed)[:-1] + (b"," if self.fixed else b"")
        return [(b"," if i else first) + name for i, name in enumerate(names)]

    def position(self, i: int) -> dict[str, Any]:
        """Where an event stands in its source."""
        n = len(self.counted)
        return {**self.fixed, **dict(zip(self.counted, self.places[i * n : (i + 1) * n], strict=True))}

    def positions(self, which: Iterable[int]) -> list[bytes]:
        """Where some events stand in their source, as JSON."""
        n, places = len(self.counted), self.places
        if not n:
            return [msgspec.json.encode(self.fixed) for _ in which]
        form = b"%d".join(head.replace(b"%", b"%%") for head in self.heads()) + b"%d}"
        return [form % tuple(places[i * n : i * n + n]) for i in which]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __len__(self) -> int:
        return len(self.data)

    @overload
    def __getitem__(self, at: int) -> Raw: ...
    @overload
    def __getitem__(self, at: slice) -> list[Raw]: ...
    def __getitem__(self, at: int | slice) -> Raw | list[Raw]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        i = at % len(self)
        return Raw(
            self.data[i], self.position(i), self.arrivals[i], self.times.get(i), self.refused.get(i, "")
        )
