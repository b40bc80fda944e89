"""An anomaly detector for River's pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamdp.estimators.stream_dp import StreamDP

if TYPE_CHECKING:
    AnomalyDetector = object
else:
    from river.base import AnomalyDetector


class Novelty(AnomalyDetector):
    """How little a record is like anything before: the negative log predictive of a clustering.

    Parameters
    ----------
    clusterer
        What learns; None: ``StreamDP()``.

    Examples
    --------
    >>> import random
    >>> rng, detector = random.Random(1), Novelty()
    >>> for _ in range(250):
    ...     detector.learn_one({"x": rng.gauss(0.0, 1.0), "y": rng.gauss(0.0, 1.0)})
    >>> detector.score_one({"x": 9.0, "y": 9.0}) > detector.score_one({"x": 0.0, "y": 0.0})
    True
    """

    def __init__(self, clusterer: StreamDP | None = None) -> None:
        self.clusterer = clusterer
        self._clusterer = StreamDP() if clusterer is None else clusterer

    def learn_one(self, x: Any) -> None:
        """Let a record join the clustering."""
        self._clusterer.learn_one(x)

    def score_one(self, x: Any) -> float:
        """Novelty in nats: high for what is unlike all that was learned."""
        return self._clusterer.score_one(x)
