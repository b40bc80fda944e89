"""Records that have words, or fields, and a vector: independent of each other in a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from streamdp.likelihoods.base import Likelihood, Parts
from streamdp.likelihoods.categorical import Categorical
from streamdp.likelihoods.vectors import VectorFamily


@dataclass(frozen=True)
class Product(Likelihood):
    """H is the product of that of the words of records and that of their vectors, to the power of its family.

    Parameters
    ----------
    words
        The family of the fields, or texts, of records.
    vectors
        The family of their vectors; a record without one has a factor of 1.

    Examples
    --------
    >>> import numpy as np
    >>> from streamdp.likelihoods import VonMisesFisher
    >>> family, base = Product(Categorical(), VonMisesFisher(2, power=0.2)), [0.0, -2.0, 1.0, 1.0]
    >>> x = np.array([0, 1, 2]), np.array([1, 1, 1]), np.array([0.6, 0.8])
    >>> round(family.log_marginal([x, x], base), 4)
    -1.3172
    """

    words: Categorical
    vectors: VectorFamily

    sparse = True

    def __post_init__(self) -> None:
        """Refuse what kernels have no score for, and a family whose row could be taken for a vector."""
        if not isinstance(self.words, Categorical):
            raise TypeError("beside a vector fields and texts are those of Categorical")
        if self.vectors.width == self.vectors.dimension:
            raise ValueError("beside words, a row of the vectors' family must not be as long as a vector")

    @property
    def bag(self) -> Categorical:
        """That of the words, or fields."""
        return self.words

    @property
    def vector(self) -> VectorFamily:
        """That of the vectors."""
        return self.vectors

    @property
    def main(self) -> Categorical:
        """That of the words, or fields."""
        return self.words

    def with_main(self, part: Categorical) -> Self:
        """The family with another one of the words."""
        return replace(self, words=part)

    @property
    def ordered(self) -> bool:
        """Whether log H of the words depends on the order of the records."""
        return self.words.ordered

    def terms(self) -> Parts:
        """What the stream's kernels read."""
        return self.part_terms

    def log_marginal(self, records: Sequence[Any], base: Any = None) -> float:
        """log H of records as one cluster, in nats: words, their counts, and a vector, NaN for none."""
        vectors = [x for _, _, x in records if not np.isnan(x[0])]
        return self.words.log_marginal([x[:2] for x in records], base) + self.vectors.log_marginal(vectors)
