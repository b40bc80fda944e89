"""What families over vectors refuse: vectors, removals and parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from algebra import add, empty, log_predictive, remove
from families import CASES, assert_equal

from streamdp.likelihoods import (
    BetaBernoulli,
    GammaPoisson,
    Gaussian,
    NormalInverseGamma,
    NormalInverseWishart,
    VonMisesFisher,
)


@pytest.mark.parametrize(
    ("name", "members", "gone"),
    [
        ("gaussian", [], [0.0, 0.0]),
        ("gaussian", [[1.0, 2.0]], [1.0, 9.0]),
        ("gaussian", [[0.0, 1.0], [0.0, 2.0]], [0.0, 5.0]),
        ("normal inverse gamma", [], [0.0, 0.0]),
        ("normal inverse gamma", [[0.0, 1.0], [0.0, 2.0]], [0.0, 5.0]),
        ("wishart diagonal", [], [0.0, 0.0]),
        ("wishart diagonal", [[1.0, 2.0]], [1.0, 9.0]),
        ("wishart diagonal", [[0.0, 1.0], [0.0, 2.0]], [0.0, 5.0]),
        ("wishart diagonal", [[-5.0, -5.0], [5.0, 5.0], [0.0, 0.0]], [3.0, -3.0]),
        ("bernoulli", [], [0, 0, 0]),
        ("bernoulli", [[0, 1, 1]], [0, 1, 0]),
        ("bernoulli", [[0, 1, 1], [0, 1, 1]], [1, 1, 1]),
        ("bernoulli", [[0, 1, 1], [0, 1, 1]], [0, 0, 1]),
        ("poisson", [], [0, 0]),
        ("poisson", [[1, 2], [3, 4]], [5, 0]),
        ("poisson", [[1, 2]], [1, 1]),
        ("poisson", [[1, 2], [1, 2]], [2, 2]),
        ("circle", [], [1.0, 0.0]),
        ("circle", [[1.0, 0.0]], [0.0, 1.0]),
        ("circle", [[1.0, 0.0], [0.0, 1.0]], [-1.0, 0.0]),
    ],
)
def test_removing_vectors_that_are_not_there(name: str, members: list[Any], gone: list[float]) -> None:
    case = CASES[name]
    statistics = case.of(members)
    with pytest.raises(ValueError, match="cannot remove a vector"):
        remove(case.family, statistics, np.array(gone))
    assert_equal(statistics, case.of(members))


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("gaussian", [1.0]),
        ("gaussian", [1.0, math.nan]),
        ("wishart diagonal", [1.0]),
        ("wishart diagonal", [1.0, math.nan]),
        ("bernoulli", [0.0, 1.0]),
        ("bernoulli", [0.0, 1.0, 0.5]),
        ("bernoulli", [0.0, 1.0, -1.0]),
        ("poisson", [1.0, -1.0]),
        ("poisson", [1.0, 1.5]),
        ("poisson", [1.0, math.inf]),
        ("circle", [1.0, 0.1]),
        ("circle", [0.0, 0.998]),
        ("sphere", [1.0, 0.0]),
    ],
)
def test_malformed_records_are_refused(name: str, x: list[float]) -> None:
    family = CASES[name].family
    statistics = empty(family)
    for act in (add, remove, log_predictive):
        with pytest.raises(ValueError, match=r"a record is \d "):
            act(family, statistics, np.array(x))
    assert_equal(statistics, empty(family))


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (Gaussian, {"dimension": 0}, "dimension must be an integer of at least 1, not 0"),
        (Gaussian, {"dimension": 2.0}, "dimension"),
        (Gaussian, {"variance": 0.0}, "variance must be a positive"),
        (Gaussian, {"mean_variance": math.inf}, "mean_variance must be a positive"),
        (Gaussian, {"mean": (1.0, 2.0, 3.0)}, "mean must be one number or 2 of them"),
        (Gaussian, {"mean": math.nan}, "mean must be finite"),
        (Gaussian, {"forget": 0.0}, "forget must be above 0 and at most 1"),
        (Gaussian, {"forget": 1.01}, "forget"),
        (NormalInverseGamma, {"kappa": 0.0}, "kappa must be a positive"),
        (NormalInverseGamma, {"shape": -1.0}, "shape must be a positive"),
        (NormalInverseGamma, {"scale": 0.0}, "scale must be positive"),
        (NormalInverseGamma, {"scale": (1.0, -1.0)}, "scale must be positive"),
        (NormalInverseGamma, {"scale": (1.0,)}, "scale must be one number or 2 of them"),
        (NormalInverseWishart, {"dimension": 0}, "dimension must be an integer of at least 1, not 0"),
        (NormalInverseWishart, {"mean": (1.0, 2.0, 3.0)}, "mean must be one number or 2 of them"),
        (NormalInverseWishart, {"forget": 0.0}, "forget must be above 0 and at most 1"),
        (NormalInverseWishart, {"kappa": 0.0}, "kappa must be a positive number"),
        (NormalInverseWishart, {"degrees": 1.0}, "degrees must be a number above dimension - 1 = 1, not 1.0"),
        (NormalInverseWishart, {"degrees": math.inf}, "degrees must be a number above"),
        (NormalInverseWishart, {"scale": 0.0}, "scale must be positive and finite"),
        (NormalInverseWishart, {"scale": (1.0, -1.0)}, "scale must be positive and finite"),
        (NormalInverseWishart, {"scale": (1.0, 2.0, 3.0)}, "scale must be one number, 2 of them or 2 rows"),
        (NormalInverseWishart, {"scale": ((1.0, 2.0), (3.0,))}, "scale must be one number, 2 of them or"),
        (NormalInverseWishart, {"scale": ((1.0, 0.5), (0.4, 1.0))}, "scale must be symmetric and finite"),
        (NormalInverseWishart, {"scale": ((1.0, math.nan), (0.4, 1.0))}, "scale must be symmetric and"),
        (NormalInverseWishart, {"scale": ((1.0, 2.0), (2.0, 1.0))}, "scale must be positive definite"),
        (BetaBernoulli, {"dimension": True}, "dimension must be an integer of at least 1, not True"),
        (BetaBernoulli, {"a": 0.0}, "a must be positive and finite, not 0.0"),
        (BetaBernoulli, {"b": (1.0, math.inf)}, "b must be positive and finite"),
        (BetaBernoulli, {"b": (1.0,)}, "b must be one number or 2 of them"),
        (GammaPoisson, {"shape": -1.0}, "shape must be positive and finite"),
        (GammaPoisson, {"rate": (1.0, 0.0)}, "rate must be positive and finite"),
        (VonMisesFisher, {"dimension": 1}, "dimension must be at least 2, not 1"),
        (VonMisesFisher, {"concentration": 0.0}, "concentration must be one or several positive numbers"),
        (VonMisesFisher, {"concentration": ()}, "concentration must be one or several positive numbers"),
        (VonMisesFisher, {"concentration": (1.0, -1.0)}, "concentration must be one or several positive"),
        (VonMisesFisher, {"mean": (1.0, 1.0)}, "mean must be 2 numbers of length one"),
        (VonMisesFisher, {"mean": (1.0, 0.0, 0.0)}, "mean must be 2 numbers of length one"),
        (
            VonMisesFisher,
            {"mean_concentration": -1.0},
            "mean_concentration must be zero or a positive",
        ),
        (VonMisesFisher, {"mean_concentration": 1.0}, "mean_concentration needs a mean"),
    ],
)
def test_invalid_parameters_are_refused(make: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make(**{"dimension": 2, **parameters})
