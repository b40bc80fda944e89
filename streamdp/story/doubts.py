"""When stories are likely of little use, and what to try.

No good set of the benchmarks comes near a threshold: the largest story holds at most 15 % of the latest
records, 6 % are alone, 12 % of the answers were revised, 10 % of the words come once. Of stackoverflow10k
with concentration 1 and base_concentration 300 one story holds 96 %.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

LATEST = 5_000
"""Records that are looked at."""

ENOUGH = 2_000
"""Records below which nothing is said."""

HALF = 0.5
"""Share of the latest records in one story, or alone, from which that is doubtful."""

THIRD = 1 / 3
"""Share of answers that were revised from which that is doubtful."""

FRESH = 0.8
"""Share of the words of the latest records that come there only once, from which that is doubtful."""


def doubts(labels: np.ndarray, revised: float, words: np.ndarray | None) -> Iterator[str]:
    """What is doubtful about texts, a sentence each.

    Parameters
    ----------
    labels
        The newest labels of the latest records, shape (n,).
    revised
        Revisions by record.
    words
        The ids of the words of these records; None where records have none.
    """
    if len(labels) < ENOUGH:
        return
    _, counts = np.unique(labels, return_counts=True)
    largest, alone = counts.max() / len(labels), np.count_nonzero(counts == 1) / len(labels)
    if largest >= HALF:
        yield (
            f"one story holds {largest:.0%} of the latest records: others are likely hidden in it "
            "(try --prior crp --concentration 1, or --fields for what tells records apart)"
        )
    if alone >= HALF:
        yield (
            f"{alone:.0%} of the latest records are alone in their stories: they have little in common "
            "(try longer texts, --stem, or a larger --decay-scale)"
        )
    if revised >= THIRD:
        yield (
            f"{revised:.0%} of the answers were revised: labels are unsure when they are announced "
            "(try --final-only, or a larger --beam)"
        )
    if words is not None and len(words):
        _, times = np.unique(words, return_counts=True)
        fresh = np.count_nonzero(times == 1) / len(words)
        if fresh >= FRESH:
            yield (
                f"{fresh:.0%} of the words of the latest records come only once: texts cannot be compared by "
                "them (try --text-field, or a tokenizer's --stem)"
            )
