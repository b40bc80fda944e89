"""A clusterer for scikit-learn."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from streamdp.beam.single import shares_of_head
from streamdp.encode.encoders import choose_encoder
from streamdp.encode.vector_encoder import VectorEncoder
from streamdp.engine import Engine
from streamdp.estimators.reading import counts_of, named
from streamdp.records import Record, Reject, is_missing
from streamdp.records.answer_rows import answer_rows
from streamdp.records.columns import Columns
from streamdp.records.frames import rows_of
from streamdp.settings import Settings
from streamdp.settings.assemble import WORDS, are_directions, is_sparse
from streamdp.threads import OneThreadAtATime

if TYPE_CHECKING:

    class BaseEstimator:  # noqa: D101
        pass

    class ClusterMixin:  # noqa: D101
        def fit_predict(self, X: Any, y: Any = None, **more: Any) -> np.ndarray: ...  # noqa: D102
else:
    from sklearn.base import BaseEstimator, ClusterMixin

FIRST = 10
"""Values of a column by which it is one of texts."""

WARMUP = 200
"""Rows from which scales are learned, where there are as many."""


class StreamDPClusterer(OneThreadAtATime, ClusterMixin, BaseEstimator):
    """One pass over the rows of a matrix, in their order; nobody says how many clusters there are.

    Rows of numbers are vectors. A list, array or column of texts is clustered by words, and so is a sparse
    matrix of scipy, as ``CountVectorizer`` makes it: a count is so many words, another weight above 0 is one.
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
    probabilities_
        How sure each of these is, from 0 to 1, shape (n,); 0 for a row that cannot be clustered.
    n_clusters_
        Live clusters.
    cluster_centers_
        Means of the live clusters of vectors, shape (n_clusters_, D), largest cluster first.
    cluster_labels_, cluster_sizes_
        Label, and number of records, of each of these, shape (n_clusters_,).
    n_features_in_
        D; not of texts.

    Examples
    --------
    >>> import numpy as np
    >>> from streamdp import StreamDPClusterer
    >>> X = np.random.default_rng(0).normal(size=(100, 2)) + np.repeat([[0, 0], [9, 9]], 50, axis=0)
    >>> StreamDPClusterer().fit(X).n_clusters_
    2
    >>> StreamDPClusterer().fit_predict(["storm over the coast", "late goal wins", "coast storm"]).tolist()
    [0, 1, 0]
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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Cluster rows, shape (n, D), or texts, anew, and look back when all are in.

        A row with a number beyond 1e100, one to be normalised of zeros alone, and a text without a word are
        left out with a warning: their label is -1.
        """
        return self._learn(None, self._rows(X, reset=True), last=True)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Let further rows join. Scales are learned from the first batch, and as more rows come."""
        engine = getattr(self, "_engine", None)
        return self._learn(engine, self._rows(X, reset=engine is None))

    def predict(self, X: Any) -> np.ndarray:
        """The cluster that each row would join, shape (n,); -1 where a new one is likelier than any."""
        rows, usable = self._asked(X)
        found = self._engine.score(rows).assignments
        labels = np.full(len(usable), -1, np.int64)
        labels[usable] = [self._name(each.cluster) for each in found]
        return labels

    def predict_proba(self, X: Any) -> np.ndarray:
        """Posterior of each label for each row, shape (n, labels + 1): the last column is a new cluster's.

        Column k is label k, and -1 the last. A row that cannot be clustered is of zeros; others sum to one.
        """
        rows, usable = self._asked(X)
        found = np.zeros((len(usable), len(self._names) + 1))
        for row, record in zip(np.flatnonzero(usable).tolist(), rows, strict=True):
            self._engine.score([record])
            assert self._engine.search is not None
            for label, share in shares_of_head(self._engine.search).items():
                found[row, self._name(label)] += share
        return found

    def _asked(self, X: Any) -> tuple[list[Any], np.ndarray]:
        """The rows that can be scored, and which they are, shape (n,)."""
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        usable = self._usable(self._engine, rows)
        return [row for row, fine in zip(rows, usable, strict=True) if fine], usable

    def _name(self, label: int) -> int:
        """What a label of the engine is called here; -1 for a cluster that has no name yet."""
        return self._names.get(self._themes.get(label, label), -1)

    def _rows(self, X: Any, *, reset: bool) -> list[Any]:
        """Records of vectors, texts or counts."""
        from sklearn.utils.validation import validate_data

        one = isinstance(X, list | tuple) or len(getattr(X, "shape", ())) == 1
        texts = [*X] if one else []
        if any(isinstance(each, str) for each in texts[:FIRST]):
            return ["" if is_missing(each) else str(each) for each in texts]
        rows = validate_data(self, X, dtype=np.float64, reset=reset, accept_sparse="csr")
        if not hasattr(rows, "tocsr"):
            return list(rows.tolist())
        if rows.nnz and rows.data.min() < 0.0:
            raise ValueError("counts of a sparse matrix are not below 0: make it dense, for vectors")
        return [counts_of(row) for row in rows_of(rows)]

    def _made(self, rows: int, record: Any) -> Engine:
        words = None if isinstance(record, list) else WORDS
        settings = Settings(
            beam=self.beam,
            warmup=None if words else min(WARMUP, rows),
            concentration=self.concentration,
            forget=self.forget,
            normalise=self.normalise,
        )
        return Engine(settings, prior=named(self.prior), likelihood=named(self.likelihood) or words)

    @staticmethod
    def _usable(engine: Engine, rows: list[Any]) -> np.ndarray:
        """Which rows can be clustered, shape (n,); warns of others. ValueError where there is none at all."""
        sparse = is_sparse(engine.settings) if engine.kind is None else engine.kind != "vectors"
        sparse = not isinstance(rows[0], list) if sparse is None else sparse
        encoder = choose_encoder(Record(rows[0], {}), engine.settings, sparse)
        if isinstance(encoder, Reject):
            raise ValueError(f"row 0 cannot be clustered: {encoder.detail}")
        if isinstance(encoder, VectorEncoder):
            encoder.normalise |= are_directions(engine.settings, engine.search)
            with suppress(ValueError):
                if encoder.extend(np.array(rows)):
                    return np.ones(len(rows), bool)
        refused = dict(encoder.add(Columns.of([Record(row, {}) for row in rows])))
        usable = ~np.isin(np.arange(len(rows)), [*refused])
        for number, reject in [*refused.items()][:1]:
            why = reject.detail
            if reject.reason == "wrong_kind" or (engine.seq == 0 and not usable.any()):
                raise ValueError(f"row {number} cannot be clustered: {why}")
            more = (
                f"row {number} cannot be clustered: {why}; the label is -1, as of {len(refused) - 1:,} others"
            )
            warnings.warn(more, UserWarning, stacklevel=5)
        return usable

    def _learn(self, engine: Engine | None, rows: list[Any], *, last: bool = False) -> Self:
        usable = self._usable(engine or self._made(1, rows[0]), rows)
        rows = [row for row, fine in zip(rows, usable, strict=True) if fine]
        if engine is None:
            engine = self._engine = self._made(len(rows), rows[0])
            self._names: dict[int, int] = {}  # by the engine's labels: after ``fit`` they have no gaps
        first, labels = engine.seq, np.zeros(len(rows), np.int64)
        sure = np.zeros(len(rows))
        for answers in (engine.advance(rows), *([engine.finish()] if last else [])):
            found = answer_rows(answers.lines).rows
            own = found[found["seq"] >= first]
            labels[own["seq"] - first] = own["label"]  # the last of several counts
            sure[own["seq"] - first] = own["probability"]
        self._themes = self._found_themes()
        themes, places = np.unique([self._themes.get(k, k) for k in labels.tolist()], return_inverse=True)
        numbers = [self._names.setdefault(label, len(self._names)) for label in themes.tolist()]
        summaries = engine.clusters()
        self.labels_ = np.full(len(usable), -1, np.int64)
        self.labels_[usable] = np.array(numbers, np.int64)[places.reshape(-1)]
        self.probabilities_ = np.zeros(len(usable))
        self.probabilities_[usable] = sure
        self.n_clusters_ = len(summaries)
        self.cluster_labels_ = np.array([self._name(each.cluster) for each in summaries], np.int64)
        self.cluster_sizes_ = np.array([each.size for each in summaries], np.int64)
        if engine.kind == "vectors":
            self.cluster_centers_ = np.array([each.mean for each in summaries])
        return self

    def _found_themes(self) -> dict[int, int]:
        """The theme of each live cluster, by the engine's labels; {} where none are asked for."""
        if self.themes is None:
            return {}
        stories = self._engine.stories(records=False).themed(self.themes)
        return {story.label: story.theme for story in stories if story.theme is not None}
