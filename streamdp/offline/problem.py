"""Clustering a finite set as a problem: all records at once, the model that settings mean, and the answer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import msgspec
import numpy as np

from streamdp.encode.batch import Batch
from streamdp.encode.encoders import Encoded, Encoder, encode_all
from streamdp.encode.rows import Rows
from streamdp.errors import ConfigError, Exit
from streamdp.likelihoods import Likelihood
from streamdp.likelihoods.words import SharedBase
from streamdp.offline.anchors import Anchors
from streamdp.offline.chain import Chain
from streamdp.offline.schedule import Trace
from streamdp.priors import Prior, by_distance
from streamdp.records import Record, Reject, Value, all_plain
from streamdp.records.frames import rows_of
from streamdp.settings import Settings
from streamdp.settings.assemble import PRIOR as STREAM_PRIOR
from streamdp.settings.assemble import build_likelihood, build_prior, is_sparse, likelihood_class
from streamdp.settings.blueprint import Blueprint
from streamdp.settings.registry import CATEGORICAL


class NothingLeftError(ConfigError):
    """There is no record to cluster; ``rejects`` are those that were refused."""

    def __init__(self, message: str, rejects: list[Reject]) -> None:
        super().__init__(message, Exit.BAD_DATA)
        self.rejects = rejects


class Collection:
    """Records that could be encoded, sorted by time (stably; those without one follow the last before).

    Parameters
    ----------
    settings
        Which likelihood is meant, and how texts are cut into words.
    records
        What was decoded, in the order of the input, or texts, vectors and features; rejects pass through.

    Raises NothingLeftError (65) where nothing is left to cluster.
    """

    def __init__(self, settings: Settings, records: Iterable[Record | Reject | Value]) -> None:
        self.rejects: list[Reject] = []
        taken, times = self._in_time(all_plain(rows_of(records), form=Rows(settings).read))
        self.records: list[Record] = []
        encoder, kept = self._encode(settings, taken, times)
        self.times = kept
        if encoder.beside is not None:
            encoder.beside.begin()
        encoder.recognise(settings)
        moments = encoder.learn()
        self.encoded = Encoded(encoder, encoder.take(kept), moments)

    def _in_time(self, records: Iterable[Record | Reject]) -> tuple[list[Record], np.ndarray]:
        taken, times, latest = [], [], None
        for record in records:
            if isinstance(record, Reject):
                self.rejects.append(record)
                continue
            if record.time is not None:
                latest = record.time if latest is None else max(latest, record.time)
            taken.append(record)
            times.append(record.time if record.time is not None else latest or 0.0)
        order = np.argsort(times, kind="stable")
        self.in_order = bool((np.diff(order) > 0).all())
        return [taken[i] for i in order], np.array(times)[order]

    def _encode(
        self, settings: Settings, taken: list[Record], times: np.ndarray
    ) -> tuple[Encoder, np.ndarray]:
        encoder, outcomes = encode_all(taken, settings, is_sparse(settings))
        kept = []
        for record, time, reject in zip(taken, times.tolist(), outcomes, strict=True):
            if reject is None:
                self.records.append(record)
                kept.append(time)
            else:
                self.rejects.append(reject)
        if encoder is None or not kept:
            why = "there are no records to cluster"
            if self.rejects:
                all_of_them = f"all {len(self.rejects):,} were refused, the first"
                refused = "the only one was refused" if len(self.rejects) == 1 else all_of_them
                why += f": {refused} because {self.rejects[0].detail}"
            raise NothingLeftError(why, self.rejects)
        return encoder, np.array(kept)


@dataclasses.dataclass(frozen=True)
class Problem:
    """What is clustered, and under which model."""

    data: Batch
    likelihood: Likelihood
    prior: Prior
    settings: Settings
    distances: np.ndarray | None = None
    base: np.ndarray | None = None
    """p_w by word, shape (V,), as a stream has learned it; None: learned from these records, if at all."""
    anchors: Anchors | None = None
    """Clusters of records that do not move."""
    fixed: np.ndarray | None = None
    """Records of ``data`` that stay together or apart as they are, by hand; None: of no running stream."""
    follows: bool = False
    """Whether the likelihood's parameters follow the clusters of vectors that are found, as in a stream."""
    start: np.ndarray | None = None
    """Where samplers start if the plan leaves that open: labels of a beam that has looked back."""

    @property
    def learned(self) -> bool:
        """Whether part of the model is learned from the records, so that nothing can be proved."""
        return self.likelihood.sparse and self.likelihood.bag.learns_base

    @property
    def counts_words(self) -> bool:
        """Whether the base measure is to be counted from the clustering of these records."""
        texts = isinstance(self.likelihood, SharedBase) or self.settings.embed is not None
        return texts and self.learned and self.base is None

    def chain(self, seed: int | np.random.SeedSequence, labels: np.ndarray | None = None) -> Chain:
        """A chain over it."""
        made = Chain(
            self.data,
            self.likelihood,
            self.prior,
            labels,
            seed=seed,
            base=self.base,
            distances=self.distances,
            anchors=self.anchors,
        )
        if self.fixed is not None:
            made.fixed = self.fixed
            made.settle()
        return made

    @property
    def bound(self) -> bool:
        """Whether records are fixed."""
        return self.fixed is not None and len(self.fixed) > 0


@dataclasses.dataclass
class Solution:
    """A clustering, the chain that holds it, and how it was found."""

    labels: np.ndarray
    chain: Chain
    traces: list[Trace] = dataclasses.field(default_factory=list)
    draws: list[np.ndarray] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)

    @classmethod
    def of_labels(cls, problem: Problem, labels: np.ndarray) -> Solution:
        """A clustering that was found without a chain."""
        chain = problem.chain(problem.settings.seed, labels)
        return cls(chain.labels, chain)


def problem_of(settings: Settings, encoded: Encoded, distances: np.ndarray | None = None) -> Problem:
    """What is clustered, and under which model."""
    batch, sparse = encoded.batch, encoded.batch.sparse
    dated = batch.times is not None and bool(batch.times.any())
    settings = offline_settings(encoded.encoder.meant(settings), sparse, dated)
    likelihood = build_likelihood(settings, encoded.moments)
    follows = distances is None and Blueprint.of(settings).follows(encoded.moments) is not None
    prior = build_prior(settings, sparse)
    return Problem(batch, likelihood, prior, settings, distances, follows=follows)


def problems_of(settings: Settings, encoded: Encoded, distances: np.ndarray | None = None) -> list[Problem]:
    """What the settings leave open: texts may be those of a stream, or come in no order that matters."""
    first = problem_of(settings, encoded, distances)
    chosen = first.settings
    texts = first.counts_words and chosen.likelihood != CATEGORICAL
    if distances is not None or not texts or chosen.prior == settings.prior:
        return [first]
    other = msgspec.structs.replace(chosen, prior="crp" if chosen.prior == STREAM_PRIOR else STREAM_PRIOR)
    return [first, dataclasses.replace(first, prior=build_prior(other, sparse=True), settings=other)]


def offline_settings(settings: Settings, sparse: bool, dated: bool) -> Settings:
    """What is automatic for a finite set.

    Texts with times are a stream that has ended: what they are about comes and goes, and they have the
    prior of a stream. Else a set has no pace, and nothing is forgotten.
    """
    changes: dict[str, object] = {}
    if settings.prior == "auto" and settings.decay is None and settings.decay_scale is None:
        texts = sparse and settings.likelihood != CATEGORICAL
        changes["prior"] = STREAM_PRIOR if texts and dated else "crp"
    if not sparse and settings.forget is None and "forget" in likelihood_class(settings, 1).settings:
        changes["forget"] = 1.0
    return msgspec.structs.replace(settings, **changes)


def drawn(settings: Settings, likelihood: Likelihood) -> dict[str, float]:
    """The likelihood's parameters that samplers draw, being automatic single numbers, and their values."""
    family = likelihood.main
    named = {parameter: name for name, parameter in family.settings.items()}
    values = {
        parameter: getattr(family, parameter)
        for parameter in (() if settings.embed else family.drawn)  # which are of categories
        if parameter not in named or getattr(settings, named[parameter]) is None
    }
    return {parameter: value for parameter, value in values.items() if isinstance(value, float)}


def settled(settings: Settings, chain: Chain) -> Settings:
    """The settings with the hyperparameters that were drawn."""
    prior, likelihood = chain.prior, chain.likelihood.main
    changes: dict[str, object] = {
        name: getattr(prior, parameter)
        for name, parameter in prior.settings.items()
        if parameter in prior.drawn
    }
    if (linked := by_distance(prior)) is not None:
        changes["decay_scale"] = linked.decay.scale
    values = drawn(settings, chain.likelihood)
    if getattr(likelihood, "short_concentrations", ()):
        values.pop("base_concentration", None)  # a setting would hold for texts of a word or two as well
    changes |= {
        name: values[parameter] for name, parameter in likelihood.settings.items() if parameter in values
    }
    return msgspec.structs.replace(settings, **changes)
