"""Of families combined with priors, samplers or whatever else, those combinations that stand for all.

Kernels are compiled for each prior and family anew, which takes more time than what is then tested. What a
prior or a sampler does depends on the kind of a family's statistics, not on its formula. So every kind meets
every partner, and every family meets one. The rest of a product is marked slow: ``tests/run --all`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pytest

KINDS = {
    "words": ("flat", "dirichlet", "pitman", "multinomial", "hierarchical", "words"),
    "categories": ("categorical", "mixed", "beside"),
}
"""Kinds by the first words of their families' names; all others are of vectors."""


def kind_of(family: str) -> str:
    """The kind of a family's statistics."""
    first = family.replace("-", "_").split("_")[0]
    return next((kind for kind, names in KINDS.items() if first in names), "vectors")


def marked(pairs: Iterable[tuple[Any, ...]], chosen: set[tuple[Any, ...]]) -> list[Any]:
    """All pairs as parameters of a test, those that are not chosen marked slow."""
    return [pytest.param(*pair, marks=() if pair in chosen else pytest.mark.slow) for pair in pairs]


def covering(families: Iterable[str], partners: Iterable[Any]) -> list[Any]:
    """All pairs of a family and a partner, of which those that cover both are not slow."""
    families, partners = list(families), list(partners)
    chosen: set[tuple[Any, ...]] = set()
    for kind in dict.fromkeys(map(kind_of, families)):
        chosen |= set(in_turn([f for f in families if kind_of(f) == kind], partners))
    return marked([(family, partner) for family in families for partner in partners], chosen)


def in_turn(some: Sequence[Any], others: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """Pairs in which each of both comes at least once."""
    for i in range(max(len(some), len(others))):
        yield some[i % len(some)], others[i % len(others)]
