"""A few records of every cluster, to show people what it is about."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.kernels.packed import as_type
from streamdp.kernels.sound import require
from streamdp.records import Record, holds_categories
from streamdp.records.columns import Columns

CLUSTERS = 2_000
"""Clusters that samples are held of: those joined latest."""

LONGEST = 200
"""Characters of a sample."""

FIRST = 3
"""Samples of a cluster."""


Sample = tuple[int, float, str]
"""A record of a cluster: its number, how well the cluster foretold it (nats a word), and what it says."""

Joined = tuple[int, Sample]
"""The label of a cluster, and a record that has joined it."""


def text_of_kept(kept: Mapping[str, Any], *, named: bool = False) -> str:
    """What kept fields say, as one text; each after its name where they are to be ``named``."""
    return ", ".join(
        (f"{name}=" if named else "")
        + (value if isinstance(value, str) else msgspec.json.encode(value).decode())
        for name, value in kept.items()
    )


def text_of(record: Record, texts: Sequence[str] = ()) -> str:
    """The beginning of the text of a record, which may be among its fields, under one of the names ``texts``.

    A record without a text is shown by its kept fields, else by its categories; numbers alone by nothing.
    """
    value = record.value
    fields: Mapping[str, Any] = value if holds_categories(value) else {}  # type: ignore[assignment]
    text = (
        value if isinstance(value, str) else " ".join(str(fields[name]) for name in texts if name in fields)
    )
    text = text or text_of_kept(record.keep or fields, named=not record.keep)
    return text[: 2 * LONGEST]


def _text_of_spans(data: memoryview, spans: Sequence[Sequence[int]]) -> str:
    """What kept fields say whose values, in JSON, stand there; none below 0."""
    written = [bytes(data[start:stop]) for start, stop in spans if start >= 0]
    values = zip(map(msgspec.json.decode, written), written, strict=True)
    return ", ".join(value if isinstance(value, str) else each.decode() for value, each in values)


def lasting_samples(labels: np.ndarray, novelties: np.ndarray) -> np.ndarray:
    """Which of some records may stay samples, in order, however they are held already.

    Of each label they are the first three, the last, and the most typical of the others.
    """
    n = len(labels)
    order = np.argsort(labels, kind="stable")
    begins = np.flatnonzero(np.diff(labels[order], prepend=labels[order[:1]] - 1))
    sizes = np.diff(begins, append=n)
    rank = np.arange(n) - np.repeat(begins, sizes)
    stays = np.zeros(n, bool)
    stays[order[rank < FIRST]] = True
    last = rank == np.repeat(sizes, sizes) - 1
    stays[order[last]] = True
    rest = order[(rank >= FIRST) & ~last]
    rest = rest[np.lexsort((rest, novelties[rest], labels[rest]))]  # the most typical of each label first
    stays[rest[np.flatnonzero(np.diff(labels[rest], prepend=labels[rest[:1]] - 1))]] = True
    return np.flatnonzero(stays)


class Samples:
    """The first, the most typical and the latest record of clusters.

    ``text_of`` gives the beginning of a record; records of which it is empty are no samples.
    """

    def __init__(self, text_of: Callable[[Record], str] = text_of) -> None:
        self._text_of = text_of
        self._held: OrderedDict[int, list[Sample]] = OrderedDict()

    def of(self, label: int) -> list[str]:
        """What the samples of a cluster say, by number of record; [] where none are held."""
        return list(dict.fromkeys(shown(text) for _, _, text in sorted(self._held.get(label, []))))

    def has_room(self, labels: int) -> bool:
        """Whether none is forgotten for so many new labels."""
        return len(self._held) + labels <= CLUSTERS

    def held(self, label: int) -> Sequence[Sample]:
        """The samples of a cluster; none where none are held."""
        return self._held.get(label, ())

    def all(self) -> list[tuple[int, int, str]]:
        """Number, label and text of all samples, by number."""
        return sorted(
            (seq, label, shown(text)) for label, held in self._held.items() for seq, _, text in held
        )

    def of_columns(
        self,
        records: Columns,
        first: int,
        labels: np.ndarray,
        novelties: np.ndarray,
        which: np.ndarray | None = None,
    ) -> list[Joined]:
        """Records numbered from ``first``, as :meth:`extend` takes them; ``which`` of them, all for None."""
        chosen = range(len(records)) if which is None else which.tolist()
        if records.objects is not None:
            texts = [self._text_of(records.objects[i]) for i in chosen]
        elif not records.dimension:
            texts = [records.text(i)[: 2 * LONGEST] for i in chosen]
        elif records.keep:  # numbers show nothing
            data, spans = records.given.data.data, records.given.kept.tolist()
            texts = [_text_of_spans(data, spans[i])[: 2 * LONGEST] for i in chosen]
        else:
            return []
        of_label, typical = labels.tolist(), (-novelties).tolist()
        return [(of_label[i], (first + i, typical[i], text)) for i, text in zip(chosen, texts, strict=True)]

    def extend(self, joined: Iterable[Joined]) -> None:
        """Records have joined clusters."""
        all_held = self._held
        for label, sample in joined:
            if _says_nothing(sample[2]):
                continue
            held = all_held.get(label)
            if held is None:
                all_held[label] = [sample]
                if len(all_held) > CLUSTERS:
                    all_held.popitem(last=False)
                continue
            all_held.move_to_end(label)
            if len(held) < FIRST:
                held.append(sample)
                continue
            _, middle, newest = held  # the first, the most typical, the latest
            if newest[1] > middle[1] or (newest[1] == middle[1] and newest[0] < middle[0]):
                held[1] = newest
            held[2] = sample

    def move(self, seq: int, before: int, after: int) -> None:
        """A record has another label now."""
        for sample in self._held.get(before, ()):
            if sample[0] == seq:
                self._held[before].remove(sample)
                if not self._held[before]:
                    del self._held[before]
                self.extend([(after, sample)])
                return

    def unite(self, before: int, after: int) -> None:
        """All records of a label have another now."""
        self.extend((after, sample) for sample in self._held.pop(before, ()))

    def dump(self) -> dict[int, list[tuple[int, float, str]]]:
        """All that is held, by label, as plain values."""
        return {
            label: [(*sample[:2], shown(sample[2])) for sample in held] for label, held in self._held.items()
        }

    def load(self, stored: Any) -> None:
        """The inverse of :meth:`dump`. Raises UnsoundError or ValidationError."""
        samples = as_type(stored, dict[int, list[tuple[int, float, str]]])
        require(len(samples) <= CLUSTERS, "samples of too many clusters")
        require(all(1 <= len(held) <= FIRST for held in samples.values()), "samples of a cluster")
        said = ((label, [sample for sample in held if sample[2]]) for label, held in samples.items())
        self._held = OrderedDict((label, [*held]) for label, held in said if held)


def _says_nothing(said: str) -> bool:
    """Whether nothing would be shown of a record: no text, or spaces alone."""
    return not said[:1].isalnum() and not shown(said)


def shown(said: str) -> str:
    """The same in one line of bounded length."""
    line = " ".join(said[: 2 * LONGEST].split())
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
