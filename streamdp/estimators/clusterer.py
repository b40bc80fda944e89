"""A clusterer for scikit-learn."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamdp.encode.encoders import choose_encoder
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.engine import Engine
from streamdp.estimators.reading import named
from streamdp.records import Record
from streamdp.records.answer_rows import answer_rows
from streamdp.records.columns import Columns
from streamdp.settings import Settings
from streamdp.settings.assemble import are_directions
from streamdp.threads import OneThreadAtATime

if TYPE_CHECKING:

    class BaseEstimator:  # noqa: D101
        pass

    class ClusterMixin:  # noqa: D101
        pass
else:
    from sklearn.base import BaseEstimator, ClusterMixin

WARMUP = 200
"""Rows from which scales are learned, where there are as many."""


class StreamDPClusterer(OneThreadAtATime, ClusterMixin, BaseEstimator):
    """One pass over the rows of a matrix, in their order; nobody says how many clusters there are.

    Threads may share one: each call waits for the one before it.

    Parameters
    ----------
    likelihood, prior
        Names, or objects of ``streamdp.likelihoods`` and ``streamdp.priors``.
    beam
        Competing clusterings, 1 to 256.
    concentration
        Weight of a new cluster, > 0; None: 1.
    forget
        Factor on a cluster's statistics for each record of its own, in (0, 1]; None: as the family does.
    themes
        What ``labels_`` and ``predict`` answer. None: clusters; K: the K themes of the live clusters
        (:meth:`Stories.themed <streamdp.Stories.themed>`), found anew at each ``fit`` and ``partial_fit``.
    normalise
        Whether rows are scaled to length one, as embeddings are: what counts is their direction.

    Attributes
    ----------
    labels_
        Cluster, or theme, of each row of the last ``fit`` or ``partial_fit``, shape (n,), as it is after it;
        -1 for a row that cannot be clustered.
    n_clusters_
        Live clusters.
    cluster_centers_
        Means of the live clusters, shape (n_clusters_, D), largest cluster first.
    n_features_in_
        D.

    Examples
    --------
    >>> import numpy as np
    >>> from streamdp import StreamDPClusterer
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) + np.repeat([[0, 0], [9, 9]], 50, axis=0)
    >>> StreamDPClusterer().fit(X).n_clusters_
    2
    """

    def __init__(
        self,
        likelihood: Any = "auto",
        prior: Any = "auto",
        beam: int = 8,
        concentration: float | None = None,
        forget: float | None = None,
        themes: int | None = None,
        normalise: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.prior = prior
        self.beam = beam
        self.concentration = concentration
        self.forget = forget
        self.themes = themes
        self.normalise = normalise

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster rows, shape (n, D), forgetting what was learned before; look back when all are in.

        A row with a number beyond 1e100, or one to be normalised of zeros alone, is left out with a warning:
        its label is -1.
        """
        return self._learn(None, self._rows(X, reset=True), last=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Let further rows join. Scales are learned from the first batch, and as more rows come."""
        engine = getattr(self, "_engine", None)
        return self._learn(engine, self._rows(X, reset=engine is None))

    def predict(self, X: Any) -> np.ndarray:
        """The cluster that each row would join, shape (n,); -1 where a new one is likelier than any."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        usable = self._usable(self._engine, rows)
        found = self._engine.score(rows[usable].tolist()).assignments
        above, labels = self._themes, np.full(len(rows), -1, np.int64)
        labels[usable] = [self._names.get(above.get(e.cluster, e.cluster), -1) for e in found]
        return labels

    def _rows(self, X: Any, *, reset: bool) -> np.ndarray:
        from sklearn.utils.validation import validate_data

        return np.asarray(validate_data(self, X, dtype=np.float64, reset=reset), np.float64)

    def _made(self, rows: int) -> Engine:
        settings = Settings(
            beam=self.beam,
            warmup=min(WARMUP, rows),
            concentration=self.concentration,
            forget=self.forget,
            normalise=self.normalise,
        )
        return Engine(settings, prior=named(self.prior), likelihood=named(self.likelihood))

    @staticmethod
    def _usable(engine: Engine, rows: np.ndarray) -> np.ndarray:
        """Which rows can be clustered, shape (n,); warns of others. ValueError where there is none at all."""
        encoder = choose_encoder(Record(rows[0].tolist(), {}), engine.settings, sparse=False)
        assert isinstance(encoder, VectorEncoder)
        encoder.normalise |= are_directions(engine.settings, engine.search)
        with suppress(ValueError):
            if encoder.extend(rows):
                return np.ones(len(rows), bool)
        records = [Record(row, {}) for row in rows.tolist()]
        refused = {n: reject.detail for n, reject in encoder.add(Columns.of(records))}
        usable = ~np.isin(np.arange(len(rows)), [*refused])
        for number, why in [*refused.items()][:1]:
            if engine.seq == 0 and not usable.any():
                raise ValueError(f"row {number} cannot be clustered: {why}")
            more = (
                f"row {number} cannot be clustered: {why}; the label is -1, as of {len(refused) - 1:,} others"
            )
            warnings.warn(more, UserWarning, stacklevel=4)
        return usable

    def _learn(self, engine: Engine | None, rows: np.ndarray, *, last: bool = False) -> Self:
        usable = self._usable(engine or self._made(1), rows)
        rows = rows[usable]
        if engine is None:
            engine = self._engine = self._made(len(rows))
            self._names: dict[int, int] = {}  # by the engine's labels: after ``fit`` they have no gaps
        first, labels = engine.seq, np.zeros(len(rows), np.int64)
        for answers in (engine.advance(rows.tolist()), *([engine.finish()] if last else [])):
            found = answer_rows(answers.lines).rows
            own = found[found["seq"] >= first]
            labels[own["seq"] - first] = own["label"]  # the last of several counts
        self._themes = self._found_themes()
        themes, places = np.unique([self._themes.get(k, k) for k in labels.tolist()], return_inverse=True)
        numbers = [self._names.setdefault(label, len(self._names)) for label in themes.tolist()]
        summaries = engine.clusters()
        self.labels_ = np.full(len(usable), -1, np.int64)
        self.labels_[usable] = np.array(numbers, np.int64)[places.reshape(-1)]
        self.n_clusters_ = len(summaries)
        self.cluster_centers_ = np.array([each.mean for each in summaries])
        return self

    def _found_themes(self) -> dict[int, int]:
        """The theme of each live cluster, by the engine's labels; {} where none are asked for."""
        if self.themes is None:
            return {}
        stories = self._engine.stories(records=False).themed(self.themes)
        return {story.label: story.theme for story in stories if story.theme is not None}
