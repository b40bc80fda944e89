"""What the model of templates is given: one setting for all logs."""

from __future__ import annotations

from typing import NamedTuple

STRENGTH = (0.5, 10.0, 1.0, 1.0)
DISCOUNT = (0.2, 0.8, 0.6, 0.6)
"""Of the slabs of a hole: few numbers, many numbers, identifiers, words."""


class Bounds(NamedTuple):
    """What bounds memory.

    Distinct ``lines``, and values of holes, and ``templates`` beyond which those that came least lately, or
    are rarest, go. At least 2.
    """

    lines: int = 500_000
    templates: int = 200_000


USUAL = Bounds()


class Terms(NamedTuple):
    """Weights and strengths.

    ``copies`` is the share of new templates that are copies of one that is there, ``mutation`` that of their
    slots which are not copied, ``elsewhere`` that of values of holes which are known from other places; the
    ``rho`` say how readily each kind of token is a hole; ``subsumed`` are nats in favour of a merge where one
    template is the other with holes filled.
    """

    concentration: float = 1.0
    discount: float = 0.3
    copies: float = 0.5
    mutation: float = 0.05
    line_strength: float = 0.5
    line_discount: float = 0.5
    class_strength: float = 0.3
    base_strength: float = 1.0
    base_discount: float = 0.5
    elsewhere: float = 0.1
    subsumed: float = 40.0
    rho_number: float = 0.015
    rho_identifier: float = 1e-3
    rho_word: float = 1e-13
