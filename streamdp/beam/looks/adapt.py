"""Concentration and scale of the decay follow the stream, slowly."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from streamdp.beam.data.state import REVIEW_EVERY, change_clock, prior_at
from streamdp.beam.search import BeamSearch
from streamdp.priors import DistanceDependent
from streamdp.priors.adaptation import slopes

LEAST = 5 * REVIEW_EVERY
"""Records from which anything is concluded: fewer have often been of one kind."""

STEP = math.log(1.1)
"""The most by which the logarithm of either parameter changes at a review."""

PULL = 0.25
"""Strength, for each record that counts, of the pull back to the settings: the precision of a log-normal
prior. A factor of e costs as much as 1/8 nat a record."""


class Adapted(NamedTuple):
    """Concentration and scale of the decay (records or seconds): of now, and as they were given."""

    concentration: float
    decay_scale: float
    given_concentration: float
    given_scale: float


def adapted(search: BeamSearch, prior: DistanceDependent) -> Adapted:
    """How far a search has come that began with ``prior``."""
    clock, scale = search.state.clock, prior.decay.scale
    rate = float(clock["rate"][0])
    return Adapted(float(clock["concentration"][0]), scale / rate, prior.concentration, scale)


def adapt(search: BeamSearch, prior: DistanceDependent, labels: np.ndarray, times: np.ndarray | None) -> None:
    """Take one step towards what suits the latest records best.

    Parameters
    ----------
    search
        The running beam.
    prior
        What the settings say: an exponential decay.
    labels
        The newest labels of the latest records, int64[n], the last of them the last of the stream.
    times
        Theirs in seconds, float64[n], where distance is measured in those.
    """
    n = len(labels)
    if n < LEAST:
        return
    positions = search.seq - n + np.arange(n, dtype=np.float64)
    if prior.unit == "seconds":
        assert times is not None
        positions = np.asarray(times, np.float64)
    # labels are minted in order: one above all before it is new, one below is of an older cluster
    founds = labels > np.maximum.accumulate(np.append(-1, labels[:-1]))
    concentration, scale, *_ = adapted(search, prior)
    found = slopes(labels, founds, positions, n // 2, concentration, scale)
    pull = PULL * found.counted
    if found.counted == 0:
        return
    concentration *= _factor(
        found.concentration, found.sharpness_concentration, pull, concentration / prior.concentration
    )
    scale *= _factor(found.scale, found.sharpness_scale, pull, scale / prior.decay.scale)
    clock = change_clock(
        search.state.clock, positions[-1], prior.decay.scale / scale, concentration, positions[0]
    )
    if clock is not search.state.clock:
        search.state = search.state._replace(clock=clock)
    search.model = search.model._replace(prior=prior_at(search.model.prior, clock))


def _factor(slope: float, sharpness: float, pull: float, away: float) -> float:
    """By which a parameter changes: a step of Newton's, up to the longest; it is off by ``away`` now."""
    step = (slope - pull * math.log(away)) / (sharpness + pull)
    return math.exp(min(max(step, -STEP), STEP))
