"""The base measure of a finite set, counted from its clustering by the rule of a stream.

A stream counts in how many clusters it has seen each word. A set does so of the clustering that its chains
have come to, from time to time: a plug-in, that is held fixed while log joints are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from streamdp.likelihoods.shared_base import SharedBase
from streamdp.offline.chain import Chain
from streamdp.offline.prepare import counts_of


def recount(chains: Sequence[Chain]) -> None:
    """Give chains over the same records one base measure: that of the mean of their counts."""
    families = [chain.likelihood for chain in chains if isinstance(chain.likelihood, SharedBase)]
    counts = np.mean(
        [counts_of(chain.data, family, chain.labels) for chain, family in zip(chains, families, strict=True)],
        axis=0,
    )
    base = families[0].of_set(np.rint(counts))
    for chain in chains:
        if chain.base is None or not np.array_equal(chain.base, base):
            chain.rebase(base)
