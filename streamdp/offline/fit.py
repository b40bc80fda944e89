"""Clustering a finite set of records: from records, settings and a plan to an answer for every record."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import repeat

import msgspec
import numpy as np

from streamdp.answers import listing
from streamdp.answers.assignments import assignments, rounded
from streamdp.answers.describe import TOP
from streamdp.answers.listing import ClusterList
from streamdp.encode.category_encoder import CategoryEncoder
from streamdp.engine import Engine
from streamdp.likelihoods.categorical import learned_from_records
from streamdp.offline.diagnostics import Diagnosis
from streamdp.offline.handover import engine_of
from streamdp.offline.plan import Plan, check
from streamdp.offline.problem import Collection, Problem, Solution, problems_of, settled
from streamdp.offline.schedule import Trace, mixing
from streamdp.offline.similarity import clusters_of, similarity_matrix
from streamdp.offline.solve import Report, solve_likelier
from streamdp.offline.starts import sureness
from streamdp.priors import by_distance
from streamdp.records import Assignment, ClusterSummary, Record, Reject, Value
from streamdp.records.arrow import answers_table
from streamdp.settings import Settings


@dataclass(frozen=True, eq=False)
class Fit:
    """A clustering of a collection, and how it was found.

    Examples
    --------
    >>> found = fit([[0.0], [0.1], [9.0], [9.1]] * 5, Settings(likelihood="gaussian", variance=1.0))
    >>> [answer.cluster for answer in found.assignments[:4]], found.log_joint < 0
    ([0, 0, 1, 1], True)
    """

    collection: Collection
    problem: Problem
    solution: Solution

    @property
    def labels(self) -> np.ndarray:
        """The cluster of every record that was not refused, in time order, numbered by first members."""
        return self.solution.labels

    @property
    def log_joint(self) -> float:
        """log p(z, x), in nats."""
        return self.solution.chain.log_joint

    @property
    def draws(self) -> list[np.ndarray]:
        """Labels as samplers drew them in the second half of their budget."""
        return self.solution.draws

    @property
    def traces(self) -> list[Trace]:
        """What each chain went through."""
        return self.solution.traces

    @property
    def rejects(self) -> list[Reject]:
        """What could not be clustered."""
        return self.collection.rejects

    @cached_property
    def assignments(self) -> list[Assignment]:
        """The answer to every record, in time order, as a stream would give it."""
        chain, encoded = self.solution.chain, self.collection.encoded
        probability, new_probability, log_predictive = sureness(chain)
        latest: dict[int, int] = {}  # no decay rises with distance: the latest member is the likeliest link
        links: list[int] = []
        for i, label in enumerate(self.labels.tolist()):
            links.append(latest.get(label, -1))
            latest[label] = i
        rows = {
            "label": self.labels,
            "probability": probability,
            "new_probability": new_probability,
            "founded": np.array([link < 0 for link in links], np.bool_),
            "log_predictive": log_predictive,
        }
        linked = by_distance(chain.prior) is not None and chain.distances is None
        numbers = rounded(rows, encoded.encoder.sizes(encoded.batch))
        return assignments(rows, numbers, self.collection.records, 0, links=links if linked else repeat(-1))

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand the answers over as a table of Arrow, a row for each. ImportError without pyarrow."""
        return answers_table(self.assignments).__arrow_c_stream__(requested_schema)

    def clusters(self) -> ClusterList:
        """All clusters, largest first, as a stream would report them."""
        return summaries(self.collection, self.labels)

    @cached_property
    def similarity(self) -> np.ndarray:
        """How often each two records were together in the draws, or else in the answer, shape (N, N)."""
        return similarity_matrix(self.draws or [self.labels])

    @property
    def diagnostics(self) -> list[Diagnosis]:
        """How well the second halves of the chains have mixed; [] where too few rounds were made."""
        return mixing(self.traces)

    def to_engine(self) -> Engine:
        """An engine that goes on from here; it retains all records, so that it can be refined."""
        settings = settled(self.problem.settings, self.solution.chain)
        retain = max(settings.retain, len(self.labels))
        settings = msgspec.structs.replace(settings, retain=retain)
        return engine_of(settings, self.collection.encoded, self.labels)

    def _repr_html_(self) -> str:
        clusters = self.clusters()
        found = f"{len(self.labels):,} records in {len(clusters):,} clusters"
        reported = f"{found}; log joint {self.log_joint:,.2f} nats"
        judged = mixing(self.traces) if len(self.traces) > 1 else []
        chains = [(d.name, f"{d.mean:,.2f}", f"{d.ess:,.0f}", f"{d.r_hat:.3f}") for d in judged]
        columns = ("quantity", "mean", "effective draws", "R-hat")
        mixed = [listing.table(columns, chains, f"{len(self.traces)} chains")] if chains else []
        shown = listing.rows(clusters[:10])
        return "".join(
            [listing.paragraph(reported), *mixed, listing.table(listing.COLUMNS, shown, "the largest")]
        )


def fit(
    records: Iterable[Record | Reject | Value],
    settings: Settings | None = None,
    plan: Plan | None = None,
    *,
    distances: np.ndarray | None = None,
    report: Report | None = None,
    stop: threading.Event | None = None,
) -> Fit:
    """Cluster. Raises ConfigError where records, settings and plan do not go together.

    Parameters
    ----------
    records
        Texts, vectors, features or records, in any order: they are sorted by time, stably. Rejects
        pass through.
    settings, plan
        The model, and how to search; None: the defaults.
    distances
        Distance of record i from each earlier one in ``distances[i, j]``, shape (N, N), for the
        distance-dependent prior; None: as the prior measures it.
    report
        Called with (number of the chain, chain, trace) after every round of a sampler.
    stop
        Set from outside to end samplers early.

    Examples
    --------
    >>> settings = Settings(likelihood="gaussian", variance=1.0)
    >>> found = fit([[0.0], [0.1], [9.0], [9.1]] * 5, settings, Plan(rounds=20))
    >>> found.labels[:4].tolist()
    [0, 0, 1, 1]
    """
    settings, plan = settings or Settings(), plan or Plan()
    check(plan)
    collection = Collection(settings, records)
    problems = problems_of(settings, collection.encoded, distances)
    return Fit(collection, *solve_likelier(problems, plan, report, stop))


def summaries(collection: Collection, labels: np.ndarray) -> ClusterList:
    """Clusters, the largest first, the older first among equals; their weight is 0, for the set has ended."""
    batch = collection.encoded.batch
    words = _telling_words(collection, labels)
    found = []
    for members in clusters_of(labels):
        times = [t for t in (collection.records[i].time for i in members.tolist()) if t is not None]
        found.append(
            ClusterSummary(
                cluster=int(labels[members[0]]),
                size=len(members),
                first_time=min(times, default=None),
                last_time=max(times, default=None),
                first_seq=int(members[0]),
                last_seq=int(members[-1]),
                weight=0.0,
                words=words.get(int(labels[members[0]]), []) if batch.sparse else None,
                mean=None
                if batch.vectors is None or batch.sparse
                else batch.vectors[members].mean(axis=0).tolist(),
            )
        )
    return ClusterList(sorted(found, key=lambda c: (-c.size, c.cluster)))


def _telling_words(collection: Collection, labels: np.ndarray) -> dict[int, list[tuple[str, int]]]:
    """By cluster, words that are frequent in it and rare among the clusters (tf-idf), or telling values."""
    batch, names = collection.encoded.batch, collection.encoded.encoder.words
    vocabulary = collection.encoded.encoder.vocabulary
    if names is None or vocabulary is None:
        return {}
    owner = np.repeat(labels, np.diff(batch.offsets)).astype(np.int64)
    cells, where = np.unique(owner * len(names) + batch.words, return_inverse=True)
    counts = np.bincount(where, weights=batch.counts)
    cluster, word = np.divmod(cells, len(names))
    if isinstance(collection.encoded.encoder, CategoryEncoder):
        texts = bool(collection.encoded.encoder.names.texts)
        of_values = learned_from_records(batch.offsets, batch.words, texts=texts)
        telling = of_values.telling(cluster, word, counts)
    else:
        spread = np.bincount(word, minlength=len(names))
        telling = counts * np.log((1.0 + len(np.unique(labels))) / spread[word])
        telling[word < vocabulary.fixed] = -np.inf
    order = np.lexsort((word, -telling, cluster))
    order = order[telling[order] > -np.inf]
    found: dict[int, list[tuple[str, int]]] = {}
    for i in order.tolist():
        top = found.setdefault(int(cluster[i]), [])
        if len(top) < TOP:
            top.append((names[int(word[i])] or "", int(counts[i])))
    return found
