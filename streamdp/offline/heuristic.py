"""From a prior, and what the remaining records are expected to add, to what an A* search reads."""

from __future__ import annotations

import math

import numpy as np

from streamdp.likelihoods import BagFamily, Likelihood
from streamdp.offline.kernels.completion import COUNTS, JOINT, Heuristic
from streamdp.offline.kernels.store import Store, WordStore
from streamdp.offline.prepare import Data, word_totals
from streamdp.priors.base import Prior, cluster_sizes
from streamdp.priors.distance_dependent import MOST
from streamdp.priors.kinds import by_distance, by_order


def from_each_on(terms: np.ndarray) -> np.ndarray:
    """The sums of the terms from the n-th on, for n = 0 .. N."""
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


def all_link_weights(prior: Prior, data: Data, distances: np.ndarray | None) -> np.ndarray:
    """f(distance) of each record to each before it, shape (N, N); of other priors none, shape (0, 0).

    Parameters
    ----------
    prior, data
        How distance is measured, and where the records lie.
    distances
        d(i, j), shape (N, N), of which only j < i is read; None: as the prior measures it.
    """
    n = data.size
    if distances is not None:
        return prior.link_weights(distances, n)
    if (linked := by_distance(prior)) is None:
        return np.zeros((0, 0))
    if n > MOST:
        raise ValueError(f"{n:,} records are too many for a distance-dependent prior: at most {MOST:,}")
    positions = linked.positions(n, None if data.times is None else data.times.tolist())
    return linked.link_weights(np.abs(np.subtract.outer(positions, positions)), n)


def log_count_prior(prior: Prior, labels: np.ndarray) -> float:
    """log P(m), the probability that there are m_i clusters of size i, in nats (Daume 2007, eq. 2)."""
    sizes = cluster_sizes(labels.tolist())
    total = prior.log_probability(labels.tolist()) + math.lgamma(len(labels) + 1)
    total -= math.fsum(math.lgamma(size + 1) for size in sizes)
    return total - math.fsum(math.lgamma(m + 1) for m in cluster_sizes(sizes))


def with_long_tables(store: Store, likelihood: Likelihood, base: np.ndarray | None) -> Store:
    """The same with tables for clusters that N copies of the longest record join; to be prepared."""
    if not isinstance(store, WordStore) or not store.words.size:
        return store
    assert isinstance(likelihood, BagFamily)
    lengths = np.diff(np.append(0, np.cumsum(store.counts))[store.offsets])
    by_word, by_record = word_totals(store.words, store.counts)
    by_word[by_word.argmax()] += len(lengths) * lengths.max()
    if base is None:
        base = likelihood.base_of_records(store.offsets, store.words)
    longer = likelihood.set_terms(by_word, by_record, base)
    if "mass" in longer._fields:
        longer = longer._replace(mass=store.terms.mass)
    return store._replace(terms=longer)


def new_heuristic(
    prior: Prior, mode: int, look: int, ahead: np.ndarray, link_weights: np.ndarray
) -> tuple[Heuristic, float]:
    """What the kernels read, and the score of the state in which no record is placed.

    Parameters
    ----------
    prior
        Of the clusterings.
    mode, look
        As numbered where the kernels of the completion stand.
    ahead
        What log H of the records from the n-th on is expected to add, shape (N + 1,).
    link_weights
        Those of a distance dependent prior.
    """
    n = len(ahead) - 1
    join, grown, norm, rest = np.zeros((4, n + 1))
    root = 0.0
    linked = by_distance(prior) is not None
    if linked:
        alpha = prior.concentration
        found = np.full(n + 1, math.log(alpha))
        sums = link_weights.sum(axis=1)
        rest = from_each_on(np.log(np.maximum(sums, alpha)))
        root = -float(np.log(alpha + sums).sum())
    elif by_order(prior) is not None:
        found = prior.tables(n).found
        # all clusters are alike, so that the weights add up to their number and that of a new one
        norm = np.log(np.exp(found) + np.arange(n + 1))
    elif prior.exchangeable:
        join, grown, found, norms = prior.tables(n)
        root = -float(norms[0])
    else:
        raise ValueError(f"{type(prior).__name__} is not exchangeable")
    if mode == COUNTS:
        root += math.lgamma(n + 1)
    elif mode != JOINT:
        root = 0.0
    return Heuristic(
        closed=prior.all_or_none,
        linked=linked,
        mode=int(mode),
        look=int(look),
        join=join,
        found=found,
        norm=norm,
        grown=grown,
        founded=np.concatenate([[0.0], np.cumsum(found[:-1] - norm[:-1])]),
        link_weight=link_weights,
        rest=rest,
        ahead=ahead,
    ), root
