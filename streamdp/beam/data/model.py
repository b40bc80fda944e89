"""What a kernel needs to know of the prior, the likelihood and the search."""

from __future__ import annotations

from typing import Any, NamedTuple

FREQUENT_POSTINGS = 256
"""Postings from which a word counts as frequent, and may be left alone (see ``rare``)."""

MAX_SLACK = 600.0
"""Nats; further below the best, a linear weight would leave the range of a double."""

REVIEW_EVERY = 512
"""Records between two reviews of those that have come of age for a second look."""

TRIAL_NATS = 10.0
"""Nats of evidence that change the lead: by chance alone it changes once in exp(10) tries, at most."""


class Model(NamedTuple):
    """Kernels are compiled for the classes of ``prior`` and ``family``."""

    prior: Any  # terms of a prior
    family: Any  # terms of a likelihood family
    beam: int  # most hypotheses
    max_undecided: int  # records
    retire_after: int  # records, 0 for never
    max_clusters: int  # 0 for no limit
    frequent: int  # postings
    temper: float  # power of the prior in selection
    slack: float  # nats
    trial: float  # nats of evidence by which greedy search or the beam takes the lead
