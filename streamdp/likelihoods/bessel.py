"""The modified Bessel function of the first kind, and the normaliser of von Mises-Fisher, in logarithms."""

from __future__ import annotations

import math

from streamdp.kernels.jit import shared

RAISED = 60.0
"""The least order that the asymptotic expansion is used at: there it is good to 3e-14."""


@shared
def log_iv(order: float, x: float) -> float:
    """log I_v(x) of order v >= 0 at x >= 0, to about 1e-13 or the last digits of the larger of v log x and x.

    The power series where x is small beside the order. Elsewhere the expansion that is uniform in x for
    large orders (DLMF 10.41.3, its logarithm taken term by term), at v raised to at least ``RAISED``; from
    there I_{v-1} / I_v = 2 v / x + I_{v+1} / I_v goes down to the order, which is stable.
    """
    if x <= 0.0:
        return 0.0 if order == 0.0 else -math.inf
    quarter = 0.25 * x * x
    if quarter <= 8.0 * (order + 1.0):
        total, term, m = 1.0, 1.0, 1.0
        while term > 1e-17 * total:
            term *= quarter / (m * (order + m))
            total += term
            m += 1.0
        return order * math.log(0.5 * x) - math.lgamma(order + 1.0) + math.log(total)
    steps = 0
    while order + steps < RAISED:
        steps += 1
    at, above = 0.0, 0.0  # log(I e^-x) at the raised order, and at the next one
    for j in range(steps + min(steps, 1), steps - 1, -1):
        v = order + j
        h = math.hypot(v, x)
        r, q = 1.0 / h, (v / h) * (v / h)
        d6 = 39350.0 * q - 141660.0
        d6 = ((((d6 * q + 196155.0) * q - 129336.0) * q + 40248.0) * q - 4860.0) * q + 103.0
        d5 = ((26089875.0 - 8696625.0 * q) * q - 28286370.0) * q + 13077470.0
        d5 = (d5 * q - 2252205.0) * q + 67599.0
        d4 = (((565.0 * q - 1356.0) * q + 1062.0) * q - 284.0) * q + 13.0
        d3 = ((9945.0 - 5525.0 * q) * q - 4779.0) * q + 375.0
        d2 = (5.0 * q - 6.0) * q + 1.0
        d1 = 3.0 - 5.0 * q
        tail = r * (d4 / 128.0 + r * (d5 / 322560.0 + r * d6 / 192.0))
        tail = r * (d1 / 24.0 + r * (d2 / 16.0 + r * (d3 / 5760.0 + tail)))
        above = at
        at = v * (v / (h + x)) - v * math.asinh(v / x) - 0.5 * math.log(2.0 * math.pi * h) + tail
    if steps == 0:
        return x + at
    product, ratio = 1.0, math.exp(above - at)
    for j in range(steps, 0, -1):
        inverse = 2.0 * (order + j) / x + ratio
        product *= inverse
        ratio = 1.0 / inverse
    return x + at + math.log(product)


@shared
def log_vmf_normaliser(dimension: int, k: float) -> float:
    """log C_D(k) of the density C_D(k) exp(k mu . x) on the unit sphere in D >= 2 dimensions, k >= 0.

    C_D(k) = k^(D/2-1) / ((2 pi)^(D/2) I_{D/2-1}(k)) (Mardia and Jupp 2000, section 9.3.2); C_D(0) is one
    over the area of the sphere.
    """
    half = 0.5 * dimension
    if k < 1e-12:  # which changes the logarithm by k^2 / 2D
        return math.lgamma(half) - math.log(2.0) - half * math.log(math.pi)
    return (half - 1.0) * math.log(k) - half * math.log(2.0 * math.pi) - log_iv(half - 1.0, k)
