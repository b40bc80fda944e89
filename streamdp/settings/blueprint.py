"""Which model an engine has: what settings say, or the prior and likelihood that a caller has made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from streamdp.beam.cluster_facts import Facts
from streamdp.beam.facts import state_of
from streamdp.beam.search import BeamSearch
from streamdp.errors import ConfigError
from streamdp.kernels.sound import require
from streamdp.likelihoods import Likelihood, VectorFamily
from streamdp.likelihoods.base import Moments
from streamdp.priors.base import Prior
from streamdp.priors.decays import Decay
from streamdp.records import shown
from streamdp.settings.assemble import (
    ANY,
    EMBED_ALONE,
    build_likelihood,
    build_model,
    build_prior,
    is_sparse,
    looks_back,
    second_look_of,
    warmup_length,
)
from streamdp.settings.load import checked
from streamdp.settings.options import refuse_misspelt
from streamdp.settings.registry import LIKELIHOODS, PRIORS, find
from streamdp.settings.schema import AUTO, Settings

PARTS = Prior, Likelihood, Decay
"""What a model is made of."""


@dataclass(frozen=True)
class Blueprint:
    """Settings, with a prior and a likelihood in the place of what they would mean."""

    settings: Settings
    prior: Prior | None = None
    likelihood: Likelihood | None = None

    @classmethod
    def of(
        cls,
        settings: Settings | None,
        prior: Prior | str | None = None,
        likelihood: Likelihood | str | None = None,
        given: Mapping[str, Any] = {},
    ) -> Blueprint:
        """Of objects or names, and of settings or those ``given`` by name.

        ConfigError where there are both, or the settings name another; TypeError for anything else.
        """
        if settings is not None and not isinstance(settings, Settings):
            raise TypeError(
                f"settings are streamdp.Settings, or given by name (beam=4), not {shown(settings)}"
            )
        refuse_misspelt(given, Settings.__struct_fields__)
        if given and settings is not None:
            raise ConfigError(f"{next(iter(given))}: say it in settings, or leave settings out")
        settings = checked(settings or Settings(**given))
        settings, made = _named(settings, "prior", prior, Prior, PRIORS)
        settings, family = _named(settings, "likelihood", likelihood, Likelihood, LIKELIHOODS)
        return cls(settings, made, family)

    @cached_property
    def sparse(self) -> bool | None:
        """Whether records are word counts; None where the first record decides."""
        return is_sparse(self.settings) if self.likelihood is None else self.likelihood.sparse

    @property
    def warmup(self) -> int:
        """Vectors that are held back at the start."""
        return warmup_length(self.settings) if self.likelihood is None else 0

    def prior_for(self, sparse: bool) -> Prior:
        """The prior, of words or of vectors. Raises ConfigError."""
        return build_prior(self.settings, sparse) if self.prior is None else self.prior

    def likelihood_for(self, moments: Moments | None) -> Likelihood:
        """The family; ``moments`` are those of the vectors, None for words. Raises ConfigError."""
        if self.likelihood is not None:
            return self.likelihood
        settings, family = self.settings, build_likelihood(self.settings, moments)
        refined = moments is not None and settings.refine_every and not settings.of_vector_beside
        if refined and not self._are_looked_at(family):
            family = build_likelihood(_without_forgetting(settings), moments)
        return family

    def check(self) -> None:
        """Raise ConfigError where no model can be made, before any record is there."""
        self.settings.check()
        if self.likelihood is not None and self.settings.embed is not None:
            raise ConfigError(EMBED_ALONE)
        if self.sparse is not None:
            self.likelihood_for(None if self.sparse and not self.settings.of_vector_beside else ANY)
        self.prior_for(sparse=self.sparse is not False)
        if self.settings.refine_every > self.settings.retain:
            raise ConfigError("refine_every: it is more than the records that --retain keeps")
        if self.settings.refine_every and self.settings.document_beta is not None:
            raise ConfigError("refine_every has no meaning with a document_beta: choose one of them")

    def second_look(self, likelihood: Likelihood) -> int:
        """Records after which a record is looked at again, 0 for never."""
        return second_look_of(self.settings, self.prior_for(likelihood.sparse), likelihood)

    def follows(self, moments: Moments | None) -> VectorFamily | None:
        """The family whose parameters follow the clusters found, as it is at first; None where they stay."""
        family = self.likelihood_for(moments)
        looked_at = self.likelihood is None and self._are_looked_at(family)
        return family.vector if looked_at else None

    def _are_looked_at(self, family: Likelihood) -> bool:
        """Whether looks back choose parameters of a family of vectors, and which clusters are one."""
        if family.sparse or not family.vector.learned:
            return False
        named = {parameter: name for name, parameter in family.settings.items()}
        given = any(
            getattr(self.settings, named.get(name, ""), None) is not None for name in family.vector.learned
        )
        return not given and looks_back(self.settings, self.prior_for(sparse=False))

    def search(
        self,
        moments: Moments | None,
        facts: Facts | None = None,
        learned: Mapping[str, np.ndarray] | None = None,
    ) -> BeamSearch:
        """The beam, for words where there are no moments of vectors.

        It goes on from ``facts``, and from parameters that it has ``learned``, where they are given, else
        from those of the first records; UnsoundError where they are not those of such a beam.
        """
        likelihood = self.likelihood_for(moments)
        family = self.follows(moments)
        require(family is not None or learned is None or facts is None, "parameters of another likelihood")
        if family is not None and learned is not None:
            likelihood = family.with_learned(learned)
        model = build_model(self.settings, self.prior_for(likelihood.sparse), likelihood)
        return BeamSearch(model, likelihood, None if facts is None else state_of(facts, model, likelihood))


def _named(settings: Settings, field: str, given: Any, kind: type, known: Mapping[str, str]) -> Any:
    """The settings with the name of what was given, and the object, if it is one."""
    if given is None:
        return settings, None
    name = given if isinstance(given, str) else _name_of(type(given), known)
    if not isinstance(given, str | kind):
        raise TypeError(f"the {field} is a name or a {kind.__name__}, not {type(given).__name__}")
    if getattr(settings, field) not in (AUTO, name):
        raise ConfigError(f"{field}: the settings say {getattr(settings, field)}, and {name} is given")
    settings = checked(msgspec.structs.replace(settings, **{field: name}))
    return settings, None if isinstance(given, str) else given


def _without_forgetting(settings: Settings) -> Settings:
    """What is forgotten of a cluster's vectors is no statistic of its records, which refinements move."""
    if settings.forget is not None and settings.forget < 1.0:
        raise ConfigError("refine_every: it takes vectors that are not forgotten: leave out one of the two")
    return msgspec.structs.replace(settings, forget=1.0)


def _name_of(found: type, known: Mapping[str, str]) -> str:
    name = next((name for name in known if find(known, name) is found), None)
    return name or f"{found.__module__}:{found.__qualname__}"
