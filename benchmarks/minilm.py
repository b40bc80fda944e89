"""MiniLM's embeddings of banking77, which lie with the corpora, as a function of texts for ``embed``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from benchmarks.workloads import data_folder, documents

DIMENSION = 384


@cache
def _known() -> dict[str, np.ndarray]:
    with np.load(data_folder() / "more" / "emb_banking77.npz") as file:
        vectors = file["X"].astype(np.float32)
    texts = [document.text for document in documents("banking77")]
    return dict(zip(texts, vectors, strict=True))


def rows(texts: Sequence[str]) -> np.ndarray:
    """Of each text its embedding; NaN for a text of another corpus."""
    known, strange = _known(), np.full(DIMENSION, np.nan, np.float32)
    return np.array([known.get(text, strange) for text in texts])
