"""River's TextClust with its paper's settings, for the benchmarks that compare with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.workloads import Document

if TYPE_CHECKING:
    from river.cluster import TextClust


def of_the_paper() -> TextClust:
    """Threshold by itself, fading by the number of texts."""
    from river.cluster import TextClust

    return TextClust(
        real_time_fading=False, fading_factor=0.01, tgap=200, auto_r=True, auto_merge=True, sigma=0.5
    )


def labels_of(corpus: Sequence[Document]) -> list[int]:
    """What it says of each text once it has learned it."""
    from river.feature_extraction import BagOfWords

    words, model, labels = BagOfWords(lowercase=True), of_the_paper(), list[int]()
    for text in corpus:
        bag = words.transform_one(text.text)
        model.learn_one(bag, t=text.time)
        label = model.predict_one(bag)
        labels.append(-1 if label is None else label)
    return labels
