"""Every partition of a few records, its log joint, and the links behind dd-CRP partitions (DESIGN 2, MATH 1).

A partition is a tuple of founders: entry i is the seq of the first member of record i's cluster.
"""

import itertools
import math
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from .families import Family, NoBase
from .priors import DistanceDependent, Prior, log_shares

Partition = tuple[int, ...]


def restricted_growth_strings(n: int) -> Iterator[tuple[int, ...]]:
    """All a_0 .. a_{n-1} with a_0 = 0 and a_i <= 1 + max(a_0 .. a_{i-1}): one per set partition."""
    if n == 0:
        yield ()
        return
    for head in restricted_growth_strings(n - 1):
        for block in range(max(head, default=-1) + 2):
            yield (*head, block)


def founders_of(names: Sequence[int]) -> Partition:
    """The partition of any sequence of cluster names."""
    return tuple(list(names).index(k) for k in names)


def partitions(n: int) -> list[Partition]:
    """All partitions of n records."""
    return [founders_of(s) for s in restricted_growth_strings(n)]


def log_prior(
    partition: Partition, times: Sequence[float], prior: Prior, pinned: Collection[int] = ()
) -> float:
    """log p(z) = sum_i log(weight of the choice of record i / norm), closing clusters on the way.

    Clusters of ``pinned`` founders begin anew where they would close.
    """
    if prior.max_clusters is not None:
        raise ValueError("max_clusters closes by the head of a beam: a partition alone has no prior")
    open_clusters: dict[int, list[int]] = {}
    n_founded, total = 0, 0.0
    for i, founder in enumerate(partition):
        for k in list(open_clusters):
            if prior.closes(open_clusters[k], i, times[i], times):
                members = open_clusters.pop(k)
                if k in pinned:
                    open_clusters[k] = prior.anew(members, i)
        joins, new = prior.weights(list(open_clusters.values()), n_founded, i, times[i], times)
        log_joins, log_new = log_shares(joins, new)
        if founder == i:
            open_clusters[i] = [i]
            n_founded += 1
            total += log_new
        elif founder in open_clusters:
            total += log_joins[list(open_clusters).index(founder)]
            open_clusters[founder].append(i)
        else:
            return -math.inf
    return total


def log_likelihood(
    partition: Partition, records: Sequence[Any], family: Family, views: Sequence[Any]
) -> float:
    """sum_i log H(x_i | earlier members of its cluster) under the recorded base views."""
    total = 0.0
    for i, founder in enumerate(partition):
        members = [records[j] for j in range(i) if partition[j] == founder]
        total += family.log_predictive(members, records[i], views[i])
    return total


def fixed_views(base: NoBase, records: Sequence[Any]) -> list[Any]:
    """The view of every record under a base that does not depend on the clustering."""
    views = []
    for x in records:
        views.append(base.view(x))
        base.absorb(x, [])
    return views


def log_joints(
    records: Sequence[Any],
    times: Sequence[float],
    prior: Prior,
    family: Family,
    views: Sequence[Any],
    pinned: Collection[int] = (),
) -> dict[Partition, float]:
    """log p(z, x) of every partition; the impossible ones are left out."""
    joints = {}
    for z in partitions(len(records)):
        lp = log_prior(z, times, prior, pinned)
        if lp > -math.inf:
            joints[z] = lp + log_likelihood(z, records, family, views)
    return joints


def log_sum_exp(values: Sequence[float]) -> float:
    """log sum_i exp(v_i), relative to the largest."""
    top = max(values)
    return top + math.log(math.fsum(math.exp(v - top) for v in values))


def map_partition(joints: dict[Partition, float]) -> Partition:
    """The partition of largest log joint."""
    return max(joints, key=lambda z: joints[z])


def posterior(joints: dict[Partition, float]) -> dict[Partition, float]:
    """p(z | x) = exp(log joint - log sum of all)."""
    total = log_sum_exp(list(joints.values()))
    return {z: math.exp(v - total) for z, v in joints.items()}


def link_configurations(n: int) -> Iterator[tuple[int, ...]]:
    """All links c_i <= i; c_i = i founds."""
    return itertools.product(*[range(i + 1) for i in range(n)])


def partition_of_links(links: Sequence[int]) -> Partition:
    """Every record inherits the founder of the record it links to."""
    founders: list[int] = []
    for i, c in enumerate(links):
        founders.append(i if c == i else founders[c])
    return tuple(founders)


def link_probability(links: Sequence[int], times: Sequence[float], prior: DistanceDependent) -> float:
    """p(c) = prod_i (a if c_i = i else f(d_ij)) / (a + sum_{j<i} f(d_ij)) (MATH 1)."""
    p = 1.0
    for i, c in enumerate(links):
        f = [prior.link_weight(j, i, times[i], times) for j in range(i)]
        p *= (prior.concentration if c == i else f[c]) / (prior.concentration + math.fsum(f))
    return p


def partition_probabilities_by_links(
    times: Sequence[float], prior: DistanceDependent
) -> dict[Partition, float]:
    """p(z): the link configurations summed by the partition they make (no closing by close_below)."""
    table: dict[Partition, float] = {}
    for links in link_configurations(len(times)):
        z = partition_of_links(links)
        table[z] = table.get(z, 0.0) + link_probability(links, times, prior)
    return table


def link_posterior_by_links(
    i: int, partition: Partition, times: Sequence[float], prior: DistanceDependent
) -> dict[int, float]:
    """p(c_i = j | z) from all link configurations that make z."""
    mass = [0.0] * (i + 1)
    for links in link_configurations(len(times)):
        if partition_of_links(links) == partition:
            mass[links[i]] += link_probability(links, times, prior)
    return {j: m / math.fsum(mass) for j, m in enumerate(mass) if m > 0.0}


def link_posterior(
    i: int, partition: Partition, times: Sequence[float], prior: DistanceDependent
) -> dict[int, float]:
    """p(c_i = j | z) = f(d_ij) / W over the earlier members j of i's cluster; a founder links to itself."""
    if partition[i] == i:
        return {i: 1.0}
    earlier = [j for j in range(i) if partition[j] == partition[i]]
    f = {j: prior.link_weight(j, i, times[i], times) for j in earlier}
    return {j: w / math.fsum(f.values()) for j, w in f.items() if w > 0.0}
