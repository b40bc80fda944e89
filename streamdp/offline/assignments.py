"""A clustering as lines for the outside."""

from __future__ import annotations

import msgspec

from streamdp.answers.announcer import DIGITS
from streamdp.offline.collection import Collection
from streamdp.offline.problem import Solution
from streamdp.offline.starts import sureness
from streamdp.priors import DistanceDependent
from streamdp.records import Assignment


def assignments_of(collection: Collection, found: Solution) -> list[Assignment]:
    """The answer to every record, in time order, as ``consume`` would write it."""
    labels = found.labels
    probability, log_predictive = sureness(found.chain)
    prior, seen = found.chain.prior, set()
    linked = isinstance(prior, DistanceDependent) and found.chain.distances is None
    times = collection.times.tolist()
    lines = []
    for i, (record, label) in enumerate(zip(collection.records, labels.tolist(), strict=True)):
        link = None
        if linked and label in seen:
            shares = prior.link_posterior(labels[: i + 1].tolist(), i, times[: i + 1])  # type: ignore[attr-defined]
            link = max(shares, key=lambda j: (shares[j], j))
        lines.append(
            Assignment(
                seq=i,
                id=record.id,
                position=record.position,
                time=record.time,
                cluster=label,
                probability=round(float(probability[i]), DIGITS),
                new=label not in seen,
                link=link,
                log_predictive=round(float(log_predictive[i]), DIGITS),
                keep=msgspec.UNSET if record.keep is None else record.keep,
            )
        )
        seen.add(label)
    return lines
