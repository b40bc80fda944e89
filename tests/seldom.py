"""What .ci/run leaves out of long series of alike cases: the rest of each stands for it.

Kernels are compiled for each prior and family anew, which takes more time than what is then tested. So the
families left out have sisters of the same kind of state: words in hierarchical Pitman-Yor, fields in
categories, sums and matrices in Wishart, directions on the sphere. ``tests/run`` leaves nothing out.
"""

from __future__ import annotations

import pytest

WORDS = ("flat", "flat_growing", "dirichlet", "dirichlet_document", "multinomial", "hierarchical_dirichlet")
VECTORS = ("gaussian", "gamma", "bernoulli", "poisson", "sphere_wide")
SISTERS = (*WORDS, "pitman_yor_fixed", *VECTORS, *(f"{name}_forget" for name in (*VECTORS, "wishart")))
OF_PAIRS = tuple(name for name in SISTERS if name != "gamma")
"""Most priors have no other family of vectors (tests/models.py)."""

SELDOM: dict[str, tuple[str, ...]] = {
    "test_samplers": SISTERS,
    "test_anchors": SISTERS,
    "test_astar": SISTERS,
    "test_beam_oracle": OF_PAIRS,
    "test_predictive": OF_PAIRS,
    "test_vector_families": SISTERS,
    "test_geweke": ("gamma", "bits"),
    "test_nine_families": (
        "dirichlet-multinomial",
        "hierarchical-dirichlet",
        "gaussian",
        "normal-inverse-gamma",
        "beta-bernoulli",
        "gamma-poisson",
    ),
    "test_fit": ("normal-inverse-gamma", "gamma-poisson", "beta-bernoulli"),
    "test_events": ("flat", "uniform", "vectors", "vectors-window", "gaussian", "features"),
    "test_docs": (
        "docs/categories.md",
        "docs/embeddings.md",
        "docs/offline.md",
        "docs/pictures.md",
        "docs/sensors.md",
    ),
}
"""By module: cases that have one of these in their names."""


def is_seldom(item: pytest.Item) -> bool:
    """Whether a test is one of those."""
    _, _, case = item.name.partition("[")
    named = f"-{case.rstrip(']').replace(' ', '-')}-"
    return bool(case) and any(f"-{word}-" in named for word in SELDOM.get(item.path.stem, ()))
