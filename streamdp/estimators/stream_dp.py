"""A clusterer for River."""

from __future__ import annotations

import copy
import inspect
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import msgspec
import numpy as np

from streamdp.answers import listing
from streamdp.answers.listing import ClusterList
from streamdp.beam.search import BeamSearch
from streamdp.beam.single import shares_of_head
from streamdp.engine import Engine
from streamdp.errors import ConfigError
from streamdp.estimators import stored
from streamdp.estimators.reading import (
    categories_of,
    counts_of,
    is_sparse,
    labels_like,
    named,
    names_of,
    numbers_of,
)
from streamdp.estimators.themes import ThemeNumbers
from streamdp.estimators.vectors import Vectors
from streamdp.records import (
    Answers,
    ClusterSummary,
    Event,
    Record,
    Value,
    holds_categories,
    is_missing,
    seconds_of,
)
from streamdp.records.answer_rows import all_rows
from streamdp.records.frames import rows_of
from streamdp.settings import Settings
from streamdp.settings.assemble import WORDS
from streamdp.settings.blueprint import Blueprint
from streamdp.settings.registry import CATEGORICAL
from streamdp.settings.schema import AUTO
from streamdp.threads import OneThreadAtATime, share_lock


class _WithoutRiver:
    """What an estimator inherits where River is not installed: its parameters, and new ones with the same."""

    def _get_params(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    if TYPE_CHECKING:  # River's own does it, in a pipeline

        def __ror__(self, other: Any) -> Any: ...

    def clone(self, new_params: dict[str, Any] | None = None) -> Self:
        """A new estimator with the same parameters, that has learned nothing."""
        return type(self)(**{**copy.deepcopy(self._get_params()), **(new_params or {})})

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters
        given = (f"{n}={v!r}" for n, v in self._get_params().items() if v != parameters[n].default)
        return f"{type(self).__name__}({', '.join(given)}) without River"


if TYPE_CHECKING:
    Clusterer = _WithoutRiver
else:
    try:
        from river.base import Clusterer
    except ImportError:
        Clusterer = _WithoutRiver

FIRST = 10
"""Records after which mappings are known to be sparse or dense."""

HOT = ("learn_one", "learn_predict_one", "learn_many", "predict_one", "predict_many", "score_one")
"""Methods that take the lock themselves."""

EVENTS = 1000
"""Events that are remembered."""


class StreamDP(OneThreadAtATime, Clusterer, but=HOT):
    """Nonparametric Bayesian clustering of a stream: nobody says how many clusters there are.

    Threads may share one: each call waits for the one before it. Records are texts, vectors, or mappings from
    features to numbers or to texts. Where a value is a text, the features are categories, and one that is
    missing counts nowhere. Texts and sparse mappings (a bag of words) are clustered by their words, dense
    ones as vectors; a likelihood decides it at once, else the first ten records do, taken for vectors until
    then. The scales of vectors are learned from the first: again after 2, 5, 10, 20, 50, 100 and 200 records,
    which are clustered anew then; a cluster keeps the label that most of its records had. After that clusters
    are looked at again as those of an engine are; ``events`` says what becomes of them. A feature that is
    missing is 0; one that comes later than the scales are learned is passed over.

    Parameters
    ----------
    likelihood
        Family of the clusters: a name such as ``"normal-inverse-gamma"``, or an object of
        ``streamdp.likelihoods``; ``"auto"``: by the records.
    prior
        A name such as ``"crp"``, or an object of ``streamdp.priors``; ``"auto"``: distance-dependent.
    beam
        Competing clusterings, 1 to 256; 1 is greedy and fastest.
    concentration
        Weight of a new cluster, > 0: higher means more clusters. None: 60 for words, 1 for vectors.
    forget
        Factor on a cluster's statistics for each record of its own, in (0, 1]. None: as the family does.
    warmup
        Vectors from which scales are learned. None: 200.
    time
        Name of a feature that is the event time (seconds since 1970, a datetime, a Timestamp of pandas, a
        datetime64), and no feature otherwise. None: records have no times but the ``t`` of ``learn_one``.
    themes
        What labels are. None: clusters; K: K themes, which unite clusters that are likest under the model and
        keep their numbers as the stream goes on.
    settings
        All other settings. None: the defaults.
    normalise
        Whether vectors are scaled to length one, as embeddings are: what counts is their direction.

    Examples
    --------
    >>> import random
    >>> import streamdp
    >>> rng = random.Random(1)
    >>> model = streamdp.StreamDP(beam=4)
    >>> for i in range(300):
    ...     model.learn_one({"x": rng.gauss(20.0 * (i % 3), 1.0), "y": rng.gauss(0.0, 1.0)})
    >>> model.n_clusters
    3
    >>> model.predict_one({"x": 0.3, "y": 0.1}), model.predict_one({"x": 39.0, "y": -0.5})
    (0, 2)
    >>> model.score_one({"x": 9.0, "y": 4.0}) > model.score_one({"x": 0.3, "y": 0.1})
    True

    Notes
    -----
    A beam search for the most probable clustering [^1] under a distance-dependent Chinese restaurant
    process [^2]. ``predict_one`` says what label a record would be given now, that of a cluster not yet there
    among them; None where that is not known.

    References
    ----------
    [^1]: Daume III, H., 2007. Fast search for Dirichlet process mixture models. AISTATS.
    [^2]: Blei, D. M. and Frazier, P. I., 2011. Distance dependent Chinese restaurant processes. JMLR 12.
    """

    def __init__(
        self,
        likelihood: Any = "auto",
        prior: Any = "auto",
        beam: int = 8,
        concentration: float | None = None,
        forget: float | None = None,
        warmup: int | None = None,
        time: str | None = None,
        themes: int | None = None,
        settings: Settings | None = None,
        normalise: bool = False,
    ) -> None:
        self.likelihood = likelihood
        self.prior = prior
        self.beam = beam
        self.concentration = concentration
        self.forget = forget
        self.warmup = warmup
        self.time = time
        self.themes = themes
        self.settings = settings
        self.normalise = normalise
        self._above = ThemeNumbers(themes or 0)
        self._undecided: list[Any] = []
        self._words: Engine | None = None
        self._kind = WORDS
        self._vectors: Vectors | None = None
        self._events: deque[Event] = deque(maxlen=EVENTS)

    # ---------------------------------------------------------------- learning

    def learn_one(self, x: Value, t: float | None = None) -> None:  # type: ignore[override, unused-ignore]
        """Let a record join the clustering; ``t`` is its event time: seconds since 1970, or a datetime.

        TypeError or ValueError where a feature is no finite number. A text without words teaches nothing.
        """
        with self._lock:
            self._learn(x, t)

    def learn_predict_one(self, x: Value, t: float | None = None) -> int | None:
        """Let a record join; the label that it was given."""
        with self._lock:
            found = self._learn(x, t)
            return self._above.of(_label_of(found) if isinstance(found, Answers) else found)

    def _learn(self, x: Value, t: float | None) -> Answers | int | None:
        """Let a record join; its label, or the answers that have it."""
        found = self._join(x, t)
        if self._above.wanted:
            self._above.look(self.engine)
        return found

    def _join(self, x: Value, t: float | None) -> Answers | int | None:
        if self.time is not None and isinstance(x, Mapping):
            given: Any = x.get(self.time, t)
            t, x = given, self._without_time(x)
        if t is not None and t.__class__ is not float:
            t = seconds_of(t)
        if self._vectors is not None and not self._undecided:
            return self._vectors.learn(x, t)
        if self._words is not None:
            return self._learn_words(x, t)
        return self._begin(x, t)

    def _begin(self, x: Value, t: float | None) -> Answers | int | None:
        """Find out from the first records what they are."""
        held = self._undecided
        if not isinstance(x, str) and (held or not self._categories(x)):
            numbers_of(x, names_of([x]))  # what is wrong is reported before anything is kept
        x = dict(x) if isinstance(x, Mapping) else x
        rows = [*(row for row, _ in held), x]
        sparse = self._blueprint().sparse
        if sparse is None:
            sparse = is_sparse(rows if len(rows) >= FIRST else rows[:1])
        if sparse:
            self._kind = CATEGORICAL if self._categories(rows[0]) else WORDS
            self._words = self._engine(words=True)
            self._vectors, self._undecided = None, []
            self._events.clear()
            return [self._learn_words(row, at) for row, at in [*held, (x, t)]][-1]
        if self._vectors is None:  # what they are taken for until it is known
            self._vectors = Vectors(self._engine, self._blueprint(), self._events)
        begun = self._vectors.engine is not None
        label = self._vectors.learn(x, t) if begun or sparse is not None or len(x) else None
        self._undecided = [*held, (x, t)] if sparse is None else []
        return label

    def _categories(self, x: Any) -> bool:
        settings = self._blueprint().settings
        return holds_categories(x) if settings.likelihood == AUTO else settings.of_categories

    def _blueprint(self, **more: Any) -> Blueprint:
        """Which model is meant. Raises ConfigError."""
        given = {"concentration": self.concentration, "forget": self.forget, "warmup": self.warmup, **more}
        given["normalise"] = self.normalise or None
        given = {"beam": self.beam, **{name: value for name, value in given.items() if value is not None}}
        settings = msgspec.structs.replace(self.settings or Settings(), **given)
        return Blueprint.of(settings, named(self.prior), named(self.likelihood))

    def _engine(self, state: bytes | None = None, *, words: bool = False, **more: Any) -> Engine:
        """A new engine, or one that goes on from a state; ``words``: of words or categories."""
        if words and self._blueprint().sparse is None:
            more["likelihood"] = self._kind
        blueprint = self._blueprint(**more)
        if blueprint.settings.numbers:
            raise ConfigError("numbers beside categories are held back at the start: use Engine")
        options: dict[str, Any] = {
            "prior": blueprint.prior,
            "likelihood": blueprint.likelihood,
            "with_events": True,
        }
        if state is None:
            made = Engine(blueprint.settings, **options)
        else:
            made = Engine.loads(state, blueprint.settings, **options)
        share_lock(self, made)  # whoever looks into the engine waits for those who use the estimator
        return made

    def _learn_words(self, x: Any, t: float | None) -> Answers:
        assert self._words is not None
        answers = self._words.advance([self._record(self._words, x, t)])
        self._events.extend(answers.events)
        for reject in answers.rejects:
            if reject.reason != "empty":
                raise ValueError(reject.detail)
        return answers

    def _record(self, engine: Engine, x: Any, t: float | None) -> Record:
        """A record of categories, or of words: counts where features are given."""
        if x.__class__ is not str and isinstance(x, Mapping):  # the first is quicker to ask
            beside = engine.settings.field_names.vectors
            x = categories_of(x, beside) if self._kind == CATEGORICAL else counts_of(x)
        return Record(x, {}, time=t)

    def learn_many(self, X: Any) -> None:
        """Let every row of a data frame or matrix join, or every text of a column, in turn.

        All of them or, where one is refused, none: ValueError or TypeError names its row. What is missing
        teaches nothing.
        """
        rows = list(rows_of(X))
        with self._lock:
            before, number = self.__getstate__(), 0
            try:
                if self._begins_with_categories(rows):
                    self._kind = CATEGORICAL
                    self._words = self._engine(words=True)
                for number in range(len(rows)):
                    if not is_missing(rows[number]):
                        self.learn_one(rows[number])
            except (TypeError, ValueError) as error:
                self.__setstate__(before)
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"row {number}: {error}; none of the rows is learned") from None
            except BaseException:
                self.__setstate__(before)
                raise

    def _begins_with_categories(self, rows: list[Any]) -> bool:
        """Whether these are the first records, and one of them shows that they are categories."""
        begun = self.engine is not None or self._undecided or self._blueprint().settings.likelihood != AUTO
        return not begun and any(holds_categories(self._without_time(row)) for row in rows)

    # ---------------------------------------------------------------- asking

    def predict_one(self, x: Value) -> int | None:  # type: ignore[override, unused-ignore]
        """The label that a record would be given now; None where that is not known."""
        with self._lock:
            if self._vectors is None:
                label = self._score_words(x)[0]
            else:
                label = self._vectors.predict(x if self.time is None else self._without_time(x))
            return self._above.of(label) if self._above.wanted else label

    def predict_proba_one(self, x: Value) -> dict[int, float]:
        """Posterior of every live cluster, and of a new one by the label that it would have; {} for none.

        Under the best clustering: they sum to one.
        """
        search, found = self._score(x), dict[int, float]()
        for label, share in ({} if search is None else shares_of_head(search)).items():
            above = self._above.numbers.get(label, label)
            found[above] = found.get(above, 0.0) + share
        return found

    def score_one(self, x: Value) -> float:
        """Novelty: the negative log predictive density or probability of a record, in nats; 0 before any."""
        with self._lock:
            if self._vectors is None:
                return self._score_words(x)[1]
            return self._vectors.novelty(x if self.time is None else self._without_time(x))

    def predict_many(self, X: Any) -> Any:
        """``predict_one`` of every row: a series for a data frame, else an array; -1 in the place of None."""
        rows = X if isinstance(X, list) else list(rows_of(X))
        with self._lock:
            return labels_like(X, [None if is_missing(x) else self.predict_one(x) for x in rows])

    def _without_time(self, x: Any) -> Any:
        if self.time is None or not isinstance(x, Mapping):
            return x
        return {name: value for name, value in x.items() if name != self.time}

    def _score(self, x: Any) -> BeamSearch | None:
        """The beam that has scored a record."""
        if self._vectors is not None:
            return self._vectors.score(self._without_time(x))
        return self._words.search if self._score_words(x)[0] is not None and self._words else None

    def _score_words(self, x: Any) -> tuple[int | None, float]:
        engine = self._words
        if engine is None or engine.search is None:
            return None, 0.0
        found = engine.score([self._record(engine, self._without_time(x), None)]).assignments
        if not found:
            return None, 0.0
        label = found[0].cluster
        return engine.search.next_label if label < 0 else label, -found[0].log_predictive

    # ---------------------------------------------------------------- looking in

    @property
    def n_clusters(self) -> int:
        """Live clusters of the best clustering."""
        engine = self.engine
        return 0 if engine is None or engine.search is None else len(engine.search.head_slots())

    @property
    def clusters(self) -> ClusterList:
        """The live clusters, largest first."""
        return ClusterList() if self.engine is None else self.engine.clusters()

    @property
    def sizes(self) -> dict[int, int]:
        """Records of each live cluster, largest first."""
        return {each.cluster: each.size for each in self.clusters}

    @property
    def centers(self) -> dict[int, dict[Any, float]]:
        """Mean of each feature by cluster; of words how often the most telling ones are in it."""
        return {each.cluster: dict(self._named(each)) for each in self.clusters}

    def top_features(self, label: int, n: int = 10) -> list[tuple[Any, float]]:
        """The features that distinguish a cluster, and their means or counts; KeyError without it.

        Of vectors by how far the mean is from that of all clusters, in units of the clusters' spread.
        """
        clusters = {each.cluster: each for each in self.clusters}
        named = self._named(clusters[label])
        if clusters[label].mean is None:
            return named[:n]
        means = np.array([each.mean for each in clusters.values()])
        sizes = np.array([each.size for each in clusters.values()], float)
        centre = np.average(means, axis=0, weights=sizes)
        spread = np.sqrt(np.average((means - centre) ** 2, axis=0, weights=sizes)) + 1e-300
        far = np.abs(np.array([value for _, value in named]) - centre) / spread
        return [named[i] for i in np.lexsort((np.arange(len(far)), -far))[:n]]

    def _named(self, cluster: ClusterSummary) -> list[tuple[Any, float]]:
        if cluster.mean is None:
            return [(word, float(count)) for word, count in cluster.words or ()]
        names = None if self._vectors is None else self._vectors.names
        return list(zip(names or range(len(cluster.mean)), cluster.mean, strict=True))

    def events(self) -> list[Event]:
        """What happened to clusters, the last 1,000: born, split, merged, closed, retired, vanished."""
        return list(self._events)

    @property
    def engine(self) -> Engine | None:
        """What is inside, to look at: None before anything was learned."""
        return self._words if self._vectors is None else self._vectors.engine

    def _repr_html_(self) -> str:
        counted = f"{self.n_clusters:,} clusters, of which the largest are"
        return listing.paragraph(counted) + listing.table(
            listing.COLUMNS, listing.rows(self.clusters[:10]), "clusters"
        )

    # ---------------------------------------------------------------- keeping

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write all that was learned to a file. StreamdpError where one is there, unless ``overwrite``."""
        stored.write(Path(path), self.__getstate__(), overwrite=overwrite)

    @classmethod
    def load(cls, path: str | Path, embed: str | None = None) -> Self:
        """The model that was saved. StreamdpError where the file is damaged or is none of ours.

        Its embedding, where that is a function of your own, is imported only if ``embed`` names it too.
        """
        model = cls.__new__(cls)
        model.__setstate__(stored.read(Path(path), embed))
        return model

    def __getstate__(self) -> dict[str, Any]:
        """Parameters, and the state of the engine as bytes."""
        return {
            "parameters": self._get_params(),
            "undecided": list(self._undecided),
            "words": None if self._words is None else self._words.dumps(),
            "kind": self._kind,
            "vectors": None if self._vectors is None else self._vectors.dump(),
            "themes": [self._above.looked, list(self._above.numbers.items())],
            "told": msgspec.to_builtins(list(self._events)),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """The inverse of ``__getstate__``."""
        type(self).__init__(self, **state["parameters"])
        self._undecided = [tuple(each) for each in state["undecided"]]
        self._events.extend(msgspec.convert(state["told"], list[Event]))
        self._above.looked, numbers = state["themes"]
        self._above.numbers = dict(numbers)
        self._kind = state["kind"]
        if state["words"] is not None:
            self._words = self._engine(state["words"], words=True)
        if state["vectors"] is not None:
            self._vectors = Vectors.load(state["vectors"], self._engine, self._blueprint(), self._events)


def _label_of(answers: Answers) -> int | None:
    """The label of the last record that is answered."""
    rows = all_rows(answers.lines).rows
    fresh = rows["label"][rows["revision"] == 0]
    return int(fresh[-1]) if len(fresh) else None
