"""Blei and Frazier 2011, Distance dependent Chinese restaurant processes."""

from __future__ import annotations

import matplotlib.pyplot as plt
import msgspec
import numpy as np

from benchmarks.papers.figures import Experiment, Result, Table, difference, on_all_cores
from benchmarks.papers.problems import WORDS, data_file, in_order, nips
from benchmarks.priors import framed
from streamdp.beam.search import BeamSearch
from streamdp.likelihoods import DirichletMultinomial
from streamdp.priors import CRP, DistanceDependent, Exponential, Logistic, Window
from streamdp.priors.base import Prior
from streamdp.settings import Settings
from streamdp.settings.assemble import build_model

SCALES = (1.0, 2.0, 4.0, 8.0)
"""Years."""
CONCENTRATIONS = (1.0, 10.0, 100.0)
SINCE = 1998
DECAYS = (Window, Exponential, Logistic)


def foretold(prior: Prior) -> np.ndarray:
    """Log predictive a token of each paper since 1998 given all before it, by a beam of 8, in nats."""
    data = nips().data
    with np.load(data_file("nips12.npz")) as file:
        years = file["year"].astype(float)
    likelihood = DirichletMultinomial(10.0, WORDS)
    beam = BeamSearch(build_model(Settings(beam=8), prior, likelihood), likelihood)
    beam.ensure_words(WORDS)
    batch = msgspec.structs.replace(in_order(data, np.arange(data.size)), times=years)
    logs = np.empty(data.size)
    for start, stop, out in beam.run(batch):
        logs[start:stop] = out.answers["log_predictive"][start:stop]
    tokens = np.add.reduceat(data.counts, data.offsets[:-1])
    late = years >= SINCE
    return np.asarray(logs[late] / tokens[late].mean())


def best(priors: list[Prior]) -> np.ndarray:
    """That of the prior with the largest sum."""
    return max(map(foretold, priors), key=np.sum)


def decays() -> Result:
    """Log predictive of the last two years under three decays, beside the CRP."""
    kinds: list[list[Prior]] = [[CRP(a) for a in CONCENTRATIONS]]
    kinds += [
        [DistanceDependent(a, kind(scale), unit="seconds") for a in CONCENTRATIONS]
        for kind in DECAYS
        for scale in SCALES
    ]
    crp, *found = on_all_cores(best, kinds)
    figure, axes = plt.subplots(figsize=(6, 3.6))
    rows: list[tuple[object, ...]] = []
    for i, kind in enumerate(DECAYS):
        by_scale = found[i * len(SCALES) : (i + 1) * len(SCALES)]
        name = kind.__name__.lower()
        axes.plot(SCALES, [each.mean() for each in by_scale], "o-", label=name)
        rows.append((name, *(f"{each.mean():.4f} ({difference(each, crp, 4)})" for each in by_scale)))
    axes.axhline(crp.mean(), color="0.5", linestyle="--", label="CRP")
    axes.set_xscale("log", base=2)
    framed(axes, "scale, years", "log predictive a token, nats", "papers of 1998 and 1999")
    axes.legend(fontsize=8, frameon=False)
    figure.tight_layout()
    columns = "", *(f"{scale:g} year{'s' * (scale > 1)}" for scale in SCALES)
    title = f"nats a token (less those of the CRP, {crp.mean():.4f})"
    return Result([Table(columns, rows, title)], figure)


EXPERIMENTS = (Experiment("decays", "held-out likelihood by decay", decays),)
