"""Whether chains of a sampler have mixed: autocorrelation, effective sample size, R-hat.

Definitions are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization,
folding, and localization: an improved R-hat for assessing convergence of MCMC", Bayesian Analysis 16(2).
Traces are of numbers, one a draw: of a clustering, say, the log joint or the number of clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What the chains say about one quantity.

    ``mean`` and ``sd`` (with n - 1) are over the draws of all chains, in the quantity's own unit.
    ``ess`` is the rank-normalised effective sample size, in draws ("bulk-ESS"), ``r_hat`` the
    rank-normalised and folded R-hat; both are nan for a quantity that never changes.
    """

    name: str
    mean: float
    sd: float
    ess: float
    r_hat: float


def diagnose(traces: Mapping[str, ArrayLike]) -> list[Diagnosis]:
    """Judge every quantity, in the order given; each is an array of shape (chains, draws).

    Rules of thumb of the paper: trust nothing with an R-hat above 1.01 or with fewer than 100
    effective draws per chain. Raises ``ValueError`` as `effective_sample_size` does.
    """
    found = []
    for name, given in traces.items():
        chains = _checked(given, name)
        with np.errstate(invalid="ignore"):  # an infinite draw: no sd, and perhaps no mean
            mean, sd = float(chains.mean()), float(chains.std(ddof=1))
        ess = effective_sample_size(chains, rank_normalised=True)
        found.append(Diagnosis(name, mean, sd, ess, r_hat(chains)))
    return found


def autocorrelation(trace: ArrayLike) -> Floats:
    """Autocorrelation of a trace of shape (draws,) at the lags 0, 1, ..., draws - 1.

    Every lag is divided by the number of draws, not of its pairs: biased towards 0, but of small
    variance at long lags. All nan for a trace that is constant or not finite. Raises ``ValueError``
    unless the trace is one-dimensional and has a draw.
    """
    values = np.asarray(trace, dtype=np.float64)
    if values.ndim != 1 or not values.size:
        raise ValueError(f"trace must have shape (draws,) with at least one draw, not {values.shape}")
    if _uninformative(values):
        return np.full(len(values), np.nan)
    covariance = _autocovariance(values)
    return np.asarray(covariance / covariance[0])


def effective_sample_size(chains: ArrayLike, *, rank_normalised: bool = False) -> float:
    """How many independent draws would give the mean as precisely as the draws of all the chains.

    ``chains`` has shape (chains, draws). Chains are cut in halves, so that a drift counts as poor
    mixing; autocorrelations are summed as Geyer's (1992) initial monotone positive sequence. Draws
    that alternate can be worth more than independent ones, up to n log10(n) for n draws.

    With ``rank_normalised`` this is the "bulk-ESS": of normal scores in place of the values, so
    defined where the variance is not, and the same for any monotone transformation.

    The answer is nan when all draws are equal, which may be a quantity that is certain or a sampler
    that is stuck, or when one is not finite. Raises ``ValueError`` unless there are at least one
    chain and four draws.
    """
    halves = _halves(_checked(chains, "chains"))
    if _uninformative(halves):
        return float("nan")
    if rank_normalised:
        halves = _normal_scores(halves)
    n = halves.shape[1]
    within, total = _variances(halves)
    rho = 1 - (within - _autocovariance(halves).mean(axis=0)) / total
    rho[0] = 1.0

    # Sums of an even and the next odd lag are positive and falling for a reversible chain.
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    noise = np.flatnonzero(pairs < 0)
    kept = int(noise[0]) if noise.size else len(pairs)
    tau = -1 + 2 * float(np.minimum.accumulate(pairs[:kept]).sum())
    if kept < len(pairs):
        tau += max(0.0, float(rho[2 * kept]))  # the lag that alternating draws need, as in Stan
    return float(halves.size / max(tau, 1 / np.log10(halves.size)))


def r_hat(chains: ArrayLike) -> float:
    """Potential scale reduction of split chains: near 1 when all agree, larger when not.

    ``chains`` has shape (chains, draws). The larger of two figures: on the normal scores of the
    values, which finds chains in different places, and on those of the distances to the median, which
    finds chains of different spread (left out where these distances are all equal).

    The answer is inf when no half of a chain moves but they differ, nan when all draws are equal or
    one is not finite. Raises ``ValueError`` unless there are at least one chain and four draws.
    """
    halves = _halves(_checked(chains, "chains"))
    if _uninformative(halves):
        return float("nan")
    folded = np.abs(halves - np.median(halves))
    of_values, of_distances = (_scale_reduction(_normal_scores(draws)) for draws in (halves, folded))
    return float(np.fmax(of_values, of_distances))


def _checked(chains: ArrayLike, name: str) -> Floats:
    values = np.asarray(chains, dtype=np.float64)
    if values.ndim != 2 or not len(values) or values.shape[1] < 4:
        raise ValueError(
            f"{name} must have shape (chains, draws) with at least one chain and four draws, "
            f"not {values.shape}"
        )
    return values


def _halves(chains: Floats) -> Floats:
    """The first and second halves as chains of their own; of an odd number the middle draw is left out."""
    half = chains.shape[1] // 2
    return np.concatenate([chains[:, :half], chains[:, -half:]])


def _uninformative(draws: Floats) -> bool:
    return bool(np.all(draws == draws.flat[0])) or not bool(np.isfinite(draws).all())


def _autocovariance(draws: Floats) -> Floats:
    """Autocovariances along the last axis, divided by its length, by the Wiener-Khinchin theorem."""
    n = draws.shape[-1]
    centred = draws - draws.mean(axis=-1, keepdims=True)
    padded = 1 << (2 * n - 1).bit_length()  # zeros, so that the ends do not meet
    power = np.abs(np.fft.rfft(centred, padded)) ** 2
    return np.asarray(np.fft.irfft(power, padded)[..., :n] / n)


def _variances(chains: Floats) -> tuple[float, float]:
    """The variance within chains, and the estimate of the whole variance that R-hat is about."""
    n = chains.shape[1]
    moving = np.ptp(chains, axis=1) > 0  # rounding of the mean must not give a constant chain a variance
    within = float(np.where(moving, chains.var(axis=1, ddof=1), 0.0).mean())
    return within, within * (n - 1) / n + float(chains.mean(axis=1).var(ddof=1))


def _scale_reduction(chains: Floats) -> float:
    if _uninformative(chains):
        return float("nan")
    within, total = _variances(chains)
    return float(np.sqrt(total / within)) if within else float("inf")


def _normal_scores(draws: Floats) -> Floats:
    """Normal quantiles at the ranks among all draws, ties sharing their mean rank (Blom 1958)."""
    _, codes, counts = np.unique(draws, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    quantile = NormalDist().inv_cdf
    scores = np.array([quantile(p) for p in ((ranks - 0.375) / (draws.size + 0.25)).tolist()])
    return scores[codes].reshape(draws.shape)
