"""A clustering as lines for the outside."""

from __future__ import annotations

import msgspec

from streamdp.answers.announcer import DIGITS, novelty
from streamdp.offline.collection import Collection
from streamdp.offline.problem import Solution
from streamdp.offline.starts import sureness
from streamdp.priors import DistanceDependent
from streamdp.records import Assignment


def assignments_of(collection: Collection, found: Solution) -> list[Assignment]:
    """The answer to every record, in time order, as ``consume`` would write it."""
    labels = found.labels
    probability, new_probability, log_predictive = sureness(found.chain)
    surprise = novelty(log_predictive, collection.encoded.batch.sizes)
    linked = isinstance(found.chain.prior, DistanceDependent) and found.chain.distances is None
    latest: dict[int, int] = {}  # no decay rises with distance: the latest member is the likeliest link
    lines = []
    for i, (record, label) in enumerate(zip(collection.records, labels.tolist(), strict=True)):
        lines.append(
            Assignment(
                seq=i,
                id=record.id,
                position=record.position,
                time=record.time,
                cluster=label,
                probability=round(float(probability[i]), DIGITS),
                new_probability=round(float(new_probability[i]), DIGITS),
                new=label not in latest,
                link=latest.get(label) if linked else None,
                log_predictive=round(float(log_predictive[i]), DIGITS),
                novelty=round(float(surprise[i]), DIGITS),
                keep=msgspec.UNSET if record.keep is None else record.keep,
            )
        )
        latest[label] = i
    return lines
