"""The numbers a kernel needs to know of the prior, the likelihood and the search."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CRP, PITMAN_YOR, UNIFORM, DISTANCE_DEPENDENT = range(4)
WINDOW, EXPONENTIAL, LOGISTIC = range(3)
RECORDS, SECONDS = range(2)
INTERPOLATED, FLAT, GAUSSIAN, NORMAL_INVERSE_GAMMA = range(4)
TABLES, TOKENS, FIXED = range(3)

(
    PRIOR,
    DECAY,
    UNIT,
    RETIRE_AFTER,
    MAX_CLUSTERS,
    MAX_UNDECIDED,
    BEAM,
    FAMILY,
    BASE,
    VOCABULARY,
    FREQUENT,
) = range(11)
(
    CONCENTRATION,
    DISCOUNT,
    DECAY_SCALE,
    CLOSE_BELOW,
    TEMPER,
    SLACK,
    BASE_CONCENTRATION,
    WORD_DISCOUNT,
    INVERSE_DOCUMENT_BETA,
    SMOOTHING,
    ESCAPE,
    VARIANCE,
    MEAN_VARIANCE,
    KAPPA,
    SHAPE,
    FORGET,
    BASE_DISCOUNT,
) = range(17)

WORD_SPACE = 1 << 20
"""Distinct words that the escape mass of a learned base measure is spread over."""

FREQUENT_POSTINGS = 256
"""Postings from which a word counts as frequent, and may be left alone (see ``rare``)."""

MAX_SLACK = 600.0
"""Nats; further below the best, a linear weight would leave the range of a double."""


class Model(NamedTuple):
    """``ints`` and ``floats`` are read by the indices above."""

    ints: np.ndarray  # int64[11]
    floats: np.ndarray  # float64[17]
    location: np.ndarray  # float64[D] m0 of the dense families
    scale: np.ndarray  # float64[D] b of NormalInverseGamma
    base: np.ndarray  # float64[V] a fixed base measure, or empty
