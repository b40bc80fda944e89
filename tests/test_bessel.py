"""The Bessel function and the normaliser of von Mises-Fisher against other computations of them."""

from __future__ import annotations

import itertools
import math

import pytest
from oracle import vector_families as va
from scipy import special

from streamdp.kernels.jit import entry
from streamdp.likelihoods import bessel

NORMALISERS = [  # log C_D(k) computed with 40 digits
    (2, 0.5, -1.89942678559482679),
    (2, 100.0, -98.6176097563519292),
    (3, 1e8, -99999983.4171963225),
    (5, 12.5, -11.0409152352794323),
    (16, 1e4, -9944.70408758646058),
    (100, 40.0, 79.1624220703084866),
    (768, 900.0, 1084.25997493533215),
    (4096, 250.0, 11211.6111393772906),
    (4096, 5000.0, 9089.38085830716319),
]


@pytest.mark.parametrize(("size", "k", "expected"), NORMALISERS)
def test_normaliser_to_all_digits(size: int, k: float, expected: float) -> None:
    assert bessel.log_vmf_normaliser(size, k) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("size", [2, 3, 4, 7, 50, 119, 120, 121, 122, 123, 124, 768, 4096])
def test_normaliser_of_von_mises_fisher(size: int) -> None:
    edge = math.sqrt(16.0 * size)  # where the power series gives way
    for k in (0.0, 1e-13, 1e-11, 1e-3, 0.7, edge - 1e-6, edge + 1e-6, 30.0, size / 2.0, 3e3, 1e5, 1e8):
        expected = va.log_sphere_normaliser(size, k)
        assert bessel.log_vmf_normaliser(size, k) == pytest.approx(expected, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("order", [0.0, 0.5, 1.0, 7.3, 30.0, 59.5, 60.0, 61.0, 200.0])
def test_bessel_function(order: float) -> None:
    for x in (1e-5, 0.3, 2.0, 5.5, 6.0, 40.0, 44.2, 300.0, 5e4):
        scaled = float(special.ive(order, x))
        if scaled > 1e-290:
            assert bessel.log_iv(order, x) == pytest.approx(math.log(scaled) + x, rel=1e-12, abs=1e-12)


def test_bessel_function_in_closed_form() -> None:
    for x in (1e-9, 0.1, 1.0, 8.0, 100.0, 1e8, 1e200):
        log_sinh = x - math.log(2.0) + math.log(-math.expm1(-2.0 * x))
        assert bessel.log_iv(0.5, x) == pytest.approx(0.5 * math.log(2.0 / (math.pi * x)) + log_sinh)
    assert bessel.log_iv(0.0, 0.0) == 0.0
    assert bessel.log_iv(0.5, 0.0) == -math.inf


@pytest.mark.parametrize("size", [384, 768, 1536])
def test_bessel_functions_of_embeddings(size: int) -> None:
    order = size / 2.0 - 1.0
    for x in (0.1 * size, 0.5 * size, size, 2.0 * size, 8.0 * size, 100.0 * size):
        scaled = float(special.ive(order, x))
        if scaled > 1e-290:  # below it scipy has no digits left
            assert bessel.log_iv(order, x) == pytest.approx(math.log(scaled) + x, rel=1e-12, abs=1e-10)
        below, at, above = (bessel.log_iv(order + j, x) for j in (-1.0, 0.0, 1.0))
        assert math.exp(below - at) - math.exp(above - at) == pytest.approx(2.0 * order / x, rel=1e-9)


@pytest.mark.parametrize("size", [2, 3, 40, 384, 1536])
def test_slope_of_the_normaliser_in_the_square_of_its_argument(size: int) -> None:
    """What bounds the predictive: C_D / (4 pi C_{D+2}) is the slope of -log C_D, and falls."""

    def slope(q: float) -> float:
        k = math.sqrt(q)
        ratio = bessel.log_vmf_normaliser(size, k) - bessel.log_vmf_normaliser(size + 2, k)
        return math.exp(ratio) / (4.0 * math.pi)

    squares = [(f * size) ** 2 for f in (0.0, 0.05, 0.3, 1.0, 4.0, 60.0)]
    slopes = [slope(q) for q in squares]
    assert slopes[0] == pytest.approx(0.5 / size, rel=1e-9)
    assert slopes == sorted(slopes, reverse=True)
    for q in squares[1:]:
        step = 1e-3 * q
        rise = bessel.log_vmf_normaliser(size, math.sqrt(q - step))
        rise -= bessel.log_vmf_normaliser(size, math.sqrt(q + step))
        assert slope(q) == pytest.approx(rise / (2.0 * step), rel=1e-4)


@entry
def compiled(size: int, k: float) -> float:
    """The normaliser, as kernels have it."""
    return bessel.log_vmf_normaliser(size, k)


def test_normaliser_is_the_same_compiled() -> None:
    for size, k in itertools.product((2, 3, 130), (0.0, 0.5, 50.0, 1e6)):
        assert compiled(size, k) == pytest.approx(bessel.log_vmf_normaliser(size, k), rel=1e-13)
