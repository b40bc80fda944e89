"""Hyperparameters drawn or climbed given the clustering.

The concentration of the CRP by West (1995); everything else by slice sampling (Neal 2003) of its
logarithm (of the log odds, for a discount), one parameter after the other.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from streamdp.offline.chain import Chain
from streamdp.priors import by_distance

WIDTH = 1.0
MOST_STEPS = 50
SHRINKS = 200


def west(
    alpha: float, clusters: int, records: int, shape: float, rate: float, rng: np.random.Generator
) -> float:
    """A concentration of the CRP given K and N, under a Gamma(shape, rate) prior.

    West 1995: an auxiliary eta ~ Beta(alpha + 1, N) makes the conditional a mixture of two gammas.
    """
    eta = rng.beta(alpha + 1.0, records)
    scale = rate - math.log(eta)
    odds = (shape + clusters - 1.0) / (records * scale)
    more = rng.random() < odds / (1.0 + odds)
    return float(rng.gamma(shape + clusters - (0.0 if more else 1.0)) / scale)


def slice_sample(log_density: Callable[[float], float], x: float, rng: np.random.Generator) -> float:
    """The next draw of a chain on the real line (Neal 2003, section 4: stepping out, shrinking)."""
    level = log_density(x) - rng.exponential()
    low = x - WIDTH * rng.random()
    high = low + WIDTH
    steps = int(rng.integers(0, MOST_STEPS))
    for _ in range(steps):
        if log_density(low) <= level:
            break
        low -= WIDTH
    for _ in range(MOST_STEPS - 1 - steps):
        if log_density(high) <= level:
            break
        high += WIDTH
    for _ in range(SHRINKS):
        y = low + (high - low) * rng.random()
        if log_density(y) > level:
            return y
        if y < x:
            low = y
        else:
            high = y
    return x


class Hyper:
    """A move that draws hyperparameters anew.

    Parameters
    ----------
    names
        Which: fields of the prior ("concentration", "discount", "scale" of the decay) or of the
        likelihood ("beta", "base_concentration", "word_discount", "variance", "mean_variance", "kappa",
        "shape", ...). None: those of the prior.
    shape, rate
        Of the gamma prior of every positive parameter; a discount is uniform on [0, 1).
    """

    def __init__(self, names: Sequence[str] | None = None, *, shape: float = 1.0, rate: float = 0.1) -> None:
        if not (shape > 0.0 and rate > 0.0):
            raise ValueError("shape and rate must be positive")
        self.names = None if names is None else tuple(names)
        self.shape, self.rate = shape, rate

    def __call__(self, chain: Chain) -> None:
        """Draw every parameter once."""
        chain.need_all_records("drawing hyperparameters")
        rng = chain.generator()
        for name in self.names or default_names(chain):
            if name == "concentration" and chain.prior.ewens:
                alpha = west(
                    chain.prior.concentration, chain.clusters, chain.size, self.shape, self.rate, rng
                )
                put(chain, name, alpha)
            else:
                self._slice(chain, name, rng)

    def _slice(self, chain: Chain, name: str, rng: np.random.Generator) -> None:
        discount = name in ("discount", "word_discount")
        present = get(chain, name)
        if not isinstance(present, float | int) or isinstance(present, bool):
            raise ValueError(f"{name} is not a single number: it cannot be drawn")
        if discount and present == 0.0:
            return  # 0 is a model of its own, not a place among the discounts
        start = math.log(present / (1.0 - present)) if discount else math.log(present)

        def log_density(y: float) -> float:
            if abs(y) > 300.0:
                return -math.inf
            value = 1.0 / (1.0 + math.exp(-y)) if discount else math.exp(y)
            if discount and value >= 1.0 - 1e-12:
                return -math.inf
            put(chain, name, value)
            # the density of y, not of the value
            change = math.log(value * (1.0 - value)) if discount else self.shape * y - self.rate * value
            return chain.log_joint + change

        y = slice_sample(log_density, start, rng)
        put(chain, name, 1.0 / (1.0 + math.exp(-y)) if discount else math.exp(y))


def default_names(chain: Chain) -> tuple[str, ...]:
    """The parameters of a chain's prior."""
    prior = chain.prior
    names = [name for name in prior.drawn if name != "scale" or chain.distances is None]
    # a discount of 0 is a model of its own
    return tuple(name for name in names if name != "discount" or getattr(prior, name) > 0.0)


def _of_prior(chain: Chain, name: str) -> bool:
    """Whether a hyperparameter is that of the prior, or else of the likelihood."""
    fields = {field.name for field in dataclasses.fields(chain.prior)}  # type: ignore[arg-type]
    if name in fields or (name == "scale" and by_distance(chain.prior) is not None):
        return True
    if hasattr(chain.likelihood.main, name):
        return False
    family = type(chain.likelihood.main).__name__
    raise ValueError(f"neither {type(chain.prior).__name__} nor {family} has a parameter {name}")


def get(chain: Chain, name: str) -> Any:
    """The value of a hyperparameter."""
    if not _of_prior(chain, name):
        return getattr(chain.likelihood.main, name)
    if name == "scale" and (linked := by_distance(chain.prior)) is not None:
        return linked.decay.scale
    return getattr(chain.prior, name)


def put(chain: Chain, name: str, value: float) -> None:
    """Go on with another value of a hyperparameter."""
    prior: Any = chain.prior
    if not _of_prior(chain, name):
        main = dataclasses.replace(chain.likelihood.main, **{name: value})
        chain.replace(likelihood=chain.likelihood.with_main(main))
    elif name == "scale":
        chain.replace(prior=dataclasses.replace(prior, decay=dataclasses.replace(prior.decay, scale=value)))
    else:
        chain.replace(prior=dataclasses.replace(prior, **{name: value}))
