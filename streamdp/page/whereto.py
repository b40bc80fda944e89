"""What pages ask the engine: where a text would go, and how a cluster's words stand against the base."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from streamdp.engine import Engine
from streamdp.page.text import short
from streamdp.records import Reject

MOST = 5
"""Clusters that are told."""


def where_to(engine: Engine, text: str) -> dict[str, Any]:
    """The likeliest clusters of a text, without learning it; ``error`` where it cannot be clustered.

    In a stream of vectors or features the text is JSON: a list of numbers, or an object.
    """
    found = engine.whereto(_value_of(engine, text), MOST)
    if isinstance(found, Reject):
        return {"error": found.detail or found.reason, "candidates": []}
    return {
        "candidates": [
            {
                "cluster": each.cluster,
                "probability": each.probability,
                "words": [(short(word, 40), nats) for word, nats in each.words],
            }
            for each in found
        ]
    }


def _value_of(engine: Engine, text: str) -> Any:
    if engine.search is None or engine.search.sparse:
        return text
    try:
        return msgspec.json.decode(text, type=list[float] | dict[str, float])
    except msgspec.DecodeError:
        return text  # and the engine says what it expects


def in_detail(engine: Engine, label: int, words: Sequence[str]) -> dict[str, Any]:
    """How often a cluster has words, and how often the base has: shares of all words, by word."""
    base = engine.base_of(words)
    (cluster,) = engine.clusters({label}) or [None]
    if cluster is None:
        return {}
    counts = [(short(word, 40), count) for word, count in cluster.words or ()]
    return {
        "against_base": [{"word": word, "count": count, "base": base.get(word)} for word, count in counts],
        "tokens": engine.tokens_of(label),
        "samples": [short(text, 300) for text in cluster.samples],
    }
