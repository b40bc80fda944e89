"""A clustering as lines for the outside."""

from __future__ import annotations

from itertools import repeat

import numpy as np

from streamdp.answers.announcer import assignments
from streamdp.offline.collection import Collection
from streamdp.offline.problem import Solution
from streamdp.offline.starts import sureness
from streamdp.priors import DistanceDependent
from streamdp.records import Assignment


def assignments_of(collection: Collection, found: Solution) -> list[Assignment]:
    """The answer to every record, in time order, as ``consume`` would write it."""
    labels = found.labels.tolist()
    probability, new_probability, log_predictive = sureness(found.chain)
    latest: dict[int, int] = {}  # no decay rises with distance: the latest member is the likeliest link
    links: list[int | None] = []
    for i, label in enumerate(labels):
        links.append(latest.get(label))
        latest[label] = i
    rows = {
        "label": found.labels,
        "probability": probability,
        "new_probability": new_probability,
        "founded": np.array([link is None for link in links], np.bool_),
        "log_predictive": log_predictive,
    }
    linked = isinstance(found.chain.prior, DistanceDependent) and found.chain.distances is None
    told = links if linked else repeat(None)
    sizes = collection.encoded.encoder.sizes(collection.encoded.batch)
    return assignments(rows, sizes, collection.records, 0, links=told)
