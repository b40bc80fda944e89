"""Feeding short streams of plain records to the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from streamdp.beam.search import BeamSearch
from streamdp.encode.batch import Batch

SparseRecord = list[tuple[int, int]]


def ordered(record: SparseRecord) -> SparseRecord:
    """Words of count one first, as the kernels want them."""
    return [p for p in record if p[1] == 1] + [p for p in record if p[1] > 1]


def encode(records: Sequence[Any], times: Sequence[float] | np.ndarray, dense: bool) -> Batch:
    """What the beam takes; words come in the order that their family wants, see ``ordered``."""
    stamps = np.array(times, float)
    if dense:
        return Batch.of_vectors(np.array(records, float), stamps)
    if records and isinstance(records[0], tuple):  # a vector beside the words, or none
        lacking = [np.nan, np.nan]
        vectors = np.array([lacking if vector is None else vector for _, vector in records], float)
        return replace(encode([words for words, _ in records], times, dense), vectors=vectors)
    offsets = np.zeros(len(records) + 1, np.int64)
    offsets[1:] = np.cumsum([len(r) for r in records])
    flat = [p for r in records for p in r]
    words, counts = np.array([w for w, _ in flat], np.int32), np.array([c for _, c in flat], np.int32)
    return Batch(offsets, words, counts, times=stamps)


def random_stream(rng: np.random.Generator, n: int, dense: bool, words: int) -> tuple[list[Any], list[float]]:
    """Records from a few clusters, and non-decreasing times with ties."""
    records: list[Any] = []
    centres = rng.normal(size=(3, 2)) * 1.5
    topics = rng.dirichlet(np.full(words, 0.4), size=3)
    for _ in range(n):
        k = rng.integers(3)
        if dense:
            records.append((centres[k] + 0.5 * rng.normal(size=2)).tolist())
        else:
            length = rng.integers(1, 8) if rng.random() < 0.9 else rng.integers(15, 30)
            counts = rng.multinomial(length, topics[k])
            found = [int(w) for w in rng.permutation(words) if counts[w]]
            records.append(ordered([(w, int(counts[w])) for w in found]))
    times = np.cumsum(rng.choice([0.0, 0.4, 1.0, 2.5], size=n)).tolist()
    return records, times


def history(search: BeamSearch, rank: int) -> dict[int, int]:
    """Founder of every undecided record under a hypothesis."""
    trellis, lineages = search.state.trellis, search.state.lineages.rows
    node = int(search.state.beam.leaf[rank])
    founders: dict[int, int] = {}
    while trellis.nodes["seq"][node] > search.decided:
        founders[int(trellis.nodes["seq"][node])] = int(lineages["founder"][trellis.lineage[node]])
        node = int(trellis.parent[node])
    return founders
