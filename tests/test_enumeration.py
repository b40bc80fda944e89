"""A beam wide enough to hold every clustering is exact: compared with plain enumeration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from models import DENSE, MIXED, PRIORS, SPARSE, WORDS, pair, pairs, shaped
from oracle.enumeration import (
    Partition,
    founders_of,
    log_joints,
    log_sum_exp,
    map_partition,
)
from streams import encode, random_stream

from streamdp.beam.search import BeamSearch

WIDTH = 256  # more than the 203 clusterings of six records
ORDER_DEPENDENT = {"crp_retire", "crp_max", "pitman_yor_max"}
EXACT = tuple(name for name in PRIORS if name not in ORDER_DEPENDENT)


def newest_clustering(
    beam: BeamSearch, records: Sequence[Any], times: Sequence[float], dense: bool
) -> Partition:
    """Feed the records one at a time; the clustering that the labels, as last revised, describe."""
    labels: list[int] = []
    for record, time in zip(records, times, strict=True):
        for _, _, out in beam.run(encode([record], [time], dense)):
            labels.append(int(out.answers["label"][0]))
            for r in range(int(out.counters.revisions)):
                labels[int(out.revisions["seq"][r])] = int(out.revisions["label"][r])
    return founders_of(labels)


@pytest.mark.parametrize(("prior", "family"), pairs(among=EXACT))
def test_full_width_is_exact(prior: str, family: str) -> None:
    """Best log joint, best clustering, and evidence = the sum over all clusterings."""
    dense = family in DENSE
    clear = 0
    for seed, n in ((1, 5), (2, 6), (3, 6)):
        rng = np.random.default_rng([seed, EXACT.index(prior), (SPARSE + DENSE + MIXED).index(family)])
        records, times = random_stream(rng, n, dense, WORDS)
        records = [shaped(family, record) for record in records]
        problem = pair(prior, family, WIDTH)
        naive = problem.naive
        for record, time in zip(records, times, strict=True):
            naive.step(record, time)  # for the base measure it records on its way
        joints = log_joints(records, times, naive.prior, naive.family, naive.views)
        ranked = sorted(joints.values(), reverse=True)

        beam = problem.search()
        found = newest_clustering(beam, records, times, dense)
        assert len(beam.log_joints) == len(joints)
        np.testing.assert_allclose(sorted(beam.log_joints, reverse=True), ranked, rtol=1e-10, atol=1e-9)
        assert beam.log_joints[beam.head] == pytest.approx(ranked[0], rel=1e-10, abs=1e-9)
        assert beam.log_evidence == pytest.approx(log_sum_exp(ranked), rel=1e-10, abs=1e-9)
        assert joints[found] == pytest.approx(ranked[0], abs=1e-9)
        if ranked[0] - ranked[1] > 1e-7:
            clear += 1
            assert found == map_partition(joints)
    assert clear >= 1
