"""Families over vectors by definition: sums over all members, explicit inverses, quadrature."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from .families import Dense, Family, Scalars, per_dimension

leggauss = lru_cache(np.polynomial.legendre.leggauss)


def log_mean_exp(values: Sequence[float] | np.ndarray, weights: Any = None) -> float:
    """log of the (weighted) mean of exponentials."""
    peak = float(np.max(values))
    return float(peak + math.log(np.average(np.exp(np.asarray(values) - peak), weights=weights)))


@dataclass(frozen=True)
class NormalInverseWishart(Family):
    """Predictive: Student t around m_n, nu_n - D + 1 degrees of freedom (Murphy 2007, section 9).

    Psi_n = Psi + S + kappa n/(kappa + n) (mean - m0)(mean - m0)' with S the scatter around the mean of the
    members; with forget f the i-th of n members has the weight f^(n-i).
    """

    m0: Scalars
    kappa: float
    nu: float
    psi: np.ndarray
    forget: float = 1.0

    def log_predictive(self, members: Sequence[Dense], x: Dense, base: Any = None) -> float:
        size = len(x)
        m0 = np.array(per_dimension(self.m0, size))
        weights = [self.forget ** (len(members) - 1 - i) for i in range(len(members))]
        n, psi_n, m_n = sum(weights), np.array(self.psi, float), m0
        if members:
            mean = sum(w * np.array(y) for w, y in zip(weights, members, strict=True)) / n
            for w, y in zip(weights, members, strict=True):
                psi_n = psi_n + w * np.outer(np.array(y) - mean, np.array(y) - mean)
            psi_n = psi_n + self.kappa * n / (self.kappa + n) * np.outer(mean - m0, mean - m0)
            m_n = (self.kappa * m0 + n * mean) / (self.kappa + n)
        kappa_n, dof = self.kappa + n, self.nu + n - size + 1.0
        shape = psi_n * (kappa_n + 1.0) / (kappa_n * dof)
        gap = np.array(x) - m_n
        distance = float(gap @ np.linalg.inv(shape) @ gap)
        peak = math.lgamma((dof + size) / 2.0) - math.lgamma(dof / 2.0) - size / 2.0 * math.log(dof * math.pi)
        peak -= 0.5 * float(np.linalg.slogdet(shape)[1])
        return peak - (dof + size) / 2.0 * math.log1p(distance / dof)


@dataclass(frozen=True)
class BetaBernoulli(Family):
    """Each feature is 1 with probability (a + ones) / (a + b + n)."""

    a: Scalars
    b: Scalars

    def log_predictive(self, members: Sequence[Dense], x: Dense, base: Any = None) -> float:
        a, b, total = per_dimension(self.a, len(x)), per_dimension(self.b, len(x)), 0.0
        for i, value in enumerate(x):
            p = (a[i] + sum(y[i] for y in members)) / (a[i] + b[i] + len(members))
            total += math.log(p if value else 1.0 - p)
        return total


@dataclass(frozen=True)
class GammaPoisson(Family):
    """Negative binomial: Gamma(r + x) / (Gamma(r) x!) p^r (1 - p)^x, r = a + sum, p = (b + n)/(b + n + 1)."""

    a: Scalars
    b: Scalars

    def log_predictive(self, members: Sequence[Dense], x: Dense, base: Any = None) -> float:
        a, b, total = per_dimension(self.a, len(x)), per_dimension(self.b, len(x)), 0.0
        for i, value in enumerate(x):
            r, rate = a[i] + sum(y[i] for y in members), b[i] + len(members)
            p = rate / (rate + 1.0)
            total += math.lgamma(r + value) - math.lgamma(r) - math.log(math.factorial(int(value)))
            total += r * math.log(p) + value * math.log(1.0 - p)
        return total


def log_sphere_normaliser(size: int, k: float) -> float:
    """-log of the integral of exp(k x_1) over the unit sphere in D dimensions.

    With x_1 = cos(angle) that is the area of the sphere in D - 1 dimensions times the integral of
    sin(angle)^(D-2) exp(k cos(angle)), by Gauss's rule in panels around the peak.
    """
    power = size - 2.0
    cosine = 2.0 * k / (power + math.hypot(power, 2.0 * k)) if k else 0.0  # where the integrand is largest
    peak = math.acos(min(cosine, 1.0)) if power else 0.0
    width = 40.0 / math.sqrt((power / math.sin(peak) ** 2 if power else 0.0) + k * math.cos(peak) + 1e-9)
    edges = np.linspace(max(peak - width, 0.0), min(peak + width, math.pi), 81)
    nodes, weights = leggauss(24)
    half = np.diff(edges)[:, None] / 2.0
    angles = (edges[:-1, None] + half * (nodes + 1.0)).ravel()
    logs = -2.0 * k * np.sin(angles / 2.0) ** 2  # k (cos - 1), to the last digit
    if power:
        logs = logs + power * np.log(np.sin(angles))
    integral = logs.max() + math.log(float(np.exp(logs - logs.max()) @ (half * weights).ravel()))
    log_area = math.log(2.0) + (size - 1.0) / 2.0 * math.log(math.pi) - math.lgamma((size - 1.0) / 2.0)
    return -(log_area + integral + k)


sphere_normaliser = lru_cache(maxsize=100_000)(log_sphere_normaliser)


@lru_cache
def sphere(size: int, points: int = 160) -> tuple[np.ndarray, np.ndarray]:
    """Points on the unit circle or sphere, and what share of it each stands for."""
    circle = np.arange(2 * points) * math.pi / points
    if size == 2:
        return np.column_stack((np.cos(circle), np.sin(circle))), np.full(2 * points, 0.5 / points)
    assert size == 3
    heights, weights = leggauss(points)
    radii = np.sqrt(1.0 - heights**2)
    directions = [
        (r * math.cos(u), r * math.sin(u), z)
        for (r, z), u in itertools.product(zip(radii, heights, strict=True), circle)
    ]
    return np.array(directions), np.repeat(weights / 2.0, 2 * points) / (2 * points)


@dataclass(frozen=True)
class VonMisesFisher(Family):
    """The mean direction integrated out by quadrature, and summed over concentrations; D = 2 or 3."""

    concentrations: Sequence[float]
    m0: Sequence[float] | None = None
    c0: float = 0.0
    power: float = 1.0

    def log_marginal(self, records: Sequence[Dense], views: Sequence[Any] | None = None) -> float:
        if not records:
            return 0.0
        size = len(records[0])
        directions, shares = sphere(size)
        prior = directions @ (self.c0 * np.array(self.m0 or np.zeros(size)))
        under = []
        for kappa in self.concentrations:
            logs = prior + kappa * (directions @ np.sum(records, axis=0))
            constant = len(records) * sphere_normaliser(size, kappa)
            under.append(constant + log_mean_exp(logs, shares) - log_mean_exp(prior, shares))
        return self.power * log_mean_exp(under)

    def log_predictive(self, members: Sequence[Dense], x: Dense, base: Any = None) -> float:
        return self.log_marginal([*members, x]) - self.log_marginal(members)


@dataclass(frozen=True)
class Directions(Family):
    """The same in any dimension: C(kappa)^n C(c0) / C(|kappa s + c0 m0|), each C by quadrature."""

    concentrations: Sequence[float]
    m0: Sequence[float]
    c0: float

    def log_marginal(self, records: Sequence[Dense], views: Sequence[Any] | None = None) -> float:
        total, under = np.sum(np.array([[0.0] * len(self.m0), *records]), axis=0), []
        for kappa in self.concentrations:
            end = float(np.linalg.norm(kappa * total + self.c0 * np.array(self.m0)))
            size = len(self.m0)
            value = len(records) * sphere_normaliser(size, kappa) + sphere_normaliser(size, self.c0)
            under.append(value - sphere_normaliser(size, end))
        return log_mean_exp(under)

    def log_predictive(self, members: Sequence[Dense], x: Dense, base: Any = None) -> float:
        return self.log_marginal([*members, x]) - self.log_marginal(members)
