"""What stands on the page of a cluster or a record: short texts, whatever the stream holds."""

from __future__ import annotations

from collections.abc import Sequence

from streamdp.answers.samples import what_is_said
from streamdp.records import Record

NAME = 3
"""Words of a cluster's name."""

LONGEST = 60
"""Characters of a word or a name."""

NUMBERS = 8
"""Of a vector, so many are shown."""


def short(text: str, most: int = LONGEST) -> str:
    """A text in one line of bounded length."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def said(record: Record) -> str:
    """The beginning of what a record says: texts and values, else the first numbers of its vector."""
    found, value = what_is_said(record), record.value
    if found or not isinstance(value, list):
        return found
    return _numbers(value, NUMBERS) + (" …" if len(value) > NUMBERS else "")


def _numbers(values: Sequence[float], most: int) -> str:
    return " ".join(f"{value:.3g}" for value in values[:most])


def name_of(
    cluster: int,
    words: Sequence[tuple[str, int]] | None,
    template: object = None,
    mean: Sequence[float] | None = None,
) -> str:
    """What a cluster is called: its template, its top words, where it lies, else its number."""
    if isinstance(template, str):
        return short(template)
    if words:
        return short(" ".join(short(word, 24) for word, _ in words[:NAME]))
    if mean:
        return short(_numbers(mean, NAME))
    return f"cluster {cluster}" if cluster >= 0 else "a new cluster"
