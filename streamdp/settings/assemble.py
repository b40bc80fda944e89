"""From settings to a model: which prior and likelihood are meant, with what is automatic filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast

import msgspec
import numpy as np

from streamdp.beam.data.state import FREQUENT_POSTINGS, MAX_SLACK, REVIEW_EVERY, TRIAL_NATS, Model
from streamdp.errors import ConfigError
from streamdp.likelihoods import (
    Categorical,
    HierarchicalPitmanYor,
    Likelihood,
    Product,
    VectorFamily,
    VonMisesFisher,
)
from streamdp.likelihoods.base import FULL, Moments
from streamdp.lines.base import USUAL, Bounds, Terms
from streamdp.lines.masks import Masks
from streamdp.priors import DistanceDependent, Prior, by_distance
from streamdp.settings.memory import CLUSTER_BYTES, LINE_BYTES, TEMPLATE_BYTES, Shares
from streamdp.settings.registry import CATEGORICAL, DECAYS, LIKELIHOODS, PRIORS, TEMPLATE, find
from streamdp.settings.schema import AUTO, Settings

WORDS, VECTORS, LONG_VECTORS = "hierarchical-pitman-yor", "normal-inverse-wishart", "normal-inverse-gamma"
"""The automatic likelihoods: of texts, of vectors, and of vectors whose covariances are too many to learn."""
EMBED_ALONE = f"embed goes with the {WORDS} likelihood alone: leave out one of the two"
LONG = FULL + 1
"""Numbers from which on a vector is one of those."""
DIRECTIONS = "von-mises-fisher"
"""The automatic likelihood of vectors that are to be normalised."""
PRIOR = "distance-dependent"
"""The automatic prior."""
SLACK_NATS = 10.0
BESIDE_TEXTS = 10.0
"""The automatic concentration of records that have texts and other fields."""
ESCAPE_AMONG_FIELDS = 10.0
"""The automatic mass of the words not yet seen of texts that have other fields beside them."""
BESIDE_KAPPA = 0.6
"""Concentration, by dimension, of the vectors of a cluster that stand beside other fields."""
BESIDE_WEIGHT = 0.15
"""Power of their likelihood: what a vector says is mostly what the other fields of its record say, too."""
WARMUP = 200
"""Vectors from which location and scale are learned where they are automatic, or numbers to be divided."""
NOTHING = Moments(np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros(()))
ANY = Moments.of(np.zeros((1, 2)))
"""Of some vector, where nothing is known of vectors yet."""


def is_sparse(settings: Settings) -> bool | None:
    """Whether records are word counts; None where the first record decides."""
    named = _named(settings)
    if named != AUTO:
        return _family(named).sparse
    if settings.embed is not None:
        return True
    return next((sparse for sparse in (False, True) if _given(settings, _settings_of(sparse))), None)


def likelihood_class(settings: Settings, dimension: int | None) -> type[Likelihood]:
    """The family that the settings mean for vectors of this length, or for texts (None)."""
    return _family(_name_of(settings, dimension))


def build_prior(settings: Settings, sparse: bool) -> Prior:
    """The prior that the settings mean: for embeddings of texts, and texts among fields, that of texts.

    Beside other fields texts found fewer clusters. Raises ConfigError.

    ``sparse`` says whether records are texts, where the settings do not name a likelihood.
    """
    named = _named(settings)
    like_texts = bool(settings.texts) or (sparse if named == AUTO else _family(named).of_texts)
    kind = PRIOR if settings.prior == AUTO else settings.prior
    found = _class(PRIORS, kind, Prior)
    _refuse_unused(settings, _prior_settings(), found.settings, f"the {kind} prior")
    given = _given(settings, found.settings)
    if kind == PRIOR and settings.texts and (settings.fields or settings.numbers):
        given.setdefault("concentration", BESIDE_TEXTS)
    try:
        if "decay" in given:
            given["decay"] = find(DECAYS, given["decay"])
        prior: Prior = found.automatic(given, like_texts)
    except (TypeError, ValueError) as error:
        raise ConfigError(str(error)) from error
    return prior


def distance_prior(settings: Settings, sparse: bool) -> DistanceDependent | None:
    """The same where it depends on distance."""
    return by_distance(build_prior(settings, sparse))


def build_likelihood(settings: Settings, moments: Moments | None) -> Likelihood:
    """The family that the settings mean; ``moments`` are those of the vectors, None for words.

    Raises ConfigError.
    """
    if settings.embed is not None:
        return _with_vector(settings, moments)
    kind = _name_of(settings, None if moments is None else len(moments.mean))
    found = _family(kind)
    beside = kind == CATEGORICAL and settings.of_vector_beside
    if (found.sparse and not beside) != (moments is None):
        what = "categories" if kind == CATEGORICAL else "texts" if found.sparse else "vectors"
        raise ConfigError(f"the {kind} likelihood is for {what}")
    if found.sparse and settings.normalise:
        raise ConfigError(
            f"normalise has no meaning with the {kind} likelihood: leave it out, or choose another"
        )
    waits = not found.sparse or beside or bool(settings.numbers)
    meant = {**found.settings, **({"warmup": ""} if waits else {})}
    _refuse_unused(settings, _settings_of(True) | _settings_of(False), meant, f"the {kind} likelihood")
    given = {found.settings[name]: value for name, value in _given(settings, found.settings).items()}
    if kind == CATEGORICAL and settings.texts:
        among = settings.fields or settings.numbers
        usual = ESCAPE_AMONG_FIELDS if among else HierarchicalPitmanYor.escape
        given["text"] = HierarchicalPitmanYor.automatic({"escape": given.get("escape", usual)})
    try:
        family: Likelihood = found.automatic(given, NOTHING if moments is None else moments)
        return _and_vector(family, settings, moments) if beside else family
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the {kind} likelihood: {error}") from error


def _and_vector(family: Any, settings: Settings, moments: Moments | None) -> Likelihood:
    """A family of words, or fields, with that of the vector of each record, and its weight."""
    if moments is None:
        return cast(Likelihood, family)
    dimension, weight = len(moments.mean), settings.vector_weight
    power, relative = BESIDE_WEIGHT if weight is None else weight, settings.embed is not None
    kappa = BESIDE_KAPPA * dimension
    return Product(family, VonMisesFisher(dimension, kappa, power=power, relative=relative))


def _with_vector(settings: Settings, moments: Moments | None) -> Likelihood:
    """The family of texts that the settings mean, with that of the embedding of each."""
    alone = msgspec.structs.replace(settings, embed=None, vector_weight=None)
    words = build_likelihood(alone, None)
    if not isinstance(words, HierarchicalPitmanYor) or not words.learns_base:
        raise ConfigError(EMBED_ALONE)
    return _and_vector(Categorical(text=words), settings, moments)


def records_for_all(settings: Settings) -> int:
    """After how many records a stream has done all that it does: refined, and looked back at earlier ones."""
    return max(settings.second_look, settings.refine_every) + 2 * REVIEW_EVERY


def template_terms(settings: Settings) -> Terms:
    """The weights of templates. ConfigError for a setting that has no meaning with them."""
    settings.check()
    if settings.prior not in (AUTO, "crp", "pitman-yor"):  # automatic is Pitman-Yor
        raise ConfigError(
            f"prior: templates of log lines are found under crp or pitman-yor, not {settings.prior}"
        )
    given = _given(settings, ("concentration", "discount", "rho_word"))
    if settings.prior == "crp":
        if settings.discount is not None:
            raise ConfigError("discount has no meaning with the crp prior: leave it out, or choose another")
        given["discount"] = 0.0
    return Terms(**given)


def template_masks(settings: Settings) -> Masks:
    """The masks of lines. ConfigError for one that cannot be used."""
    try:
        return Masks(settings.mask)
    except ValueError as error:
        raise ConfigError(f"mask {error}") from None


def template_bounds(settings: Settings) -> Bounds:
    """What is remembered of lines and templates at most."""
    half = settings.memory_limit // 2
    lines = min(settings.max_lines or USUAL.lines, half // LINE_BYTES)
    templates = min(settings.max_clusters or USUAL.templates, half // TEMPLATE_BYTES)
    return Bounds(max(lines, 2), max(templates, 2))


def warmup_length(settings: Settings) -> int:
    """How many vectors are held back at the start, to learn location and scale from."""
    if settings.warmup is not None:
        return settings.warmup
    found = likelihood_class(settings, len(ANY.mean))
    if not issubclass(found, VectorFamily):
        return WARMUP
    known = any(getattr(settings, name) is not None for name in found.enough)
    return WARMUP if found.needs_moments and not known else 0


def are_directions(settings: Settings, search: Any) -> bool:
    """Whether the automatic likelihood is that of directions, where a beam has begun."""
    return (
        settings.likelihood == AUTO and search is not None and isinstance(search.likelihood, VonMisesFisher)
    )


def build_model(settings: Settings, prior: Prior, likelihood: Likelihood) -> Model:
    """What the beam's kernels read. What is looked at again must have been decided by then."""
    age = second_look_of(settings, prior, likelihood)
    most = getattr(prior, "max_clusters", 0)  # without such a limit it closes clusters itself
    both = likelihood.sparse and likelihood.vector is not None
    each = CLUSTER_BYTES + (8 * likelihood.vector.width if both else 0)
    room = max(Shares.of(settings).clusters // each, 1)
    return Model(
        prior=prior.terms(),
        family=likelihood.part_terms,
        beam=settings.beam,
        max_undecided=min(settings.max_undecided, age) if age else settings.max_undecided,
        retire_after=getattr(prior, "retire_after", None) or 0,
        max_clusters=room if most is None else min(most, room),
        by_records=getattr(prior, "unit", "records") == "records",
        frequent=FREQUENT_POSTINGS,
        slack=float(min(SLACK_NATS if settings.slack is None else settings.slack, MAX_SLACK)),
        trial=TRIAL_NATS,
    )


def second_look_of(settings: Settings, prior: Prior, likelihood: Likelihood) -> int:
    """Records after which a record is looked at again, 0 for never.

    Second looks are for words, under a prior that is exchangeable or depends on distance, and move records
    that are retained.
    """
    enough = settings.retain >= settings.second_look + REVIEW_EVERY
    return settings.second_look if looks_back(settings, prior) and enough and likelihood.sparse else 0


def looks_back(settings: Settings, prior: Prior) -> bool:
    """Whether a stream may look back: that is wanted, and it is known what the prior says of moves."""
    known = prior.exchangeable or by_distance(prior) is not None
    return known and settings.second_look > 0 and settings.retain > 0


def _named(settings: Settings) -> str:
    """The likelihood, where the settings alone say which."""
    if settings.of_lines:
        return TEMPLATE
    if settings.of_categories:
        return CATEGORICAL
    return DIRECTIONS if settings.likelihood == AUTO and settings.normalise else settings.likelihood


def _name_of(settings: Settings, dimension: int | None) -> str:
    named = _named(settings)
    if named != AUTO:
        return named
    if dimension is None:
        return WORDS
    # what has a meaning with the diagonal family alone asks for it
    asked = _given(settings, _family(LONG_VECTORS).settings.keys() - _family(VECTORS).settings.keys())
    return LONG_VECTORS if asked or dimension >= LONG else VECTORS


def _family(name: str) -> type[Likelihood]:
    if name == TEMPLATE:
        raise ConfigError(f"the {TEMPLATE} likelihood is for a stream of log lines: use consume")
    found: type[Likelihood] = _class(LIKELIHOODS, name, Likelihood)
    return found


def _class(known: Mapping[str, str], name: str, kind: type) -> Any:
    try:
        found = find(known, name)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if not (isinstance(found, type) and issubclass(found, kind)):
        raise ConfigError(f"{name} is no {kind.__name__.lower()}")
    return found


@cache
def _settings_of(sparse: bool) -> frozenset[str]:
    """All settings that mean something to some family of words, or of vectors."""
    names = set() if sparse else {"warmup"}
    for name in LIKELIHOODS:
        family = find(LIKELIHOODS, name)
        if family.sparse == sparse:
            names |= family.settings.keys()
    return frozenset(names)


@cache
def _prior_settings() -> frozenset[str]:
    return frozenset().union(*(find(PRIORS, name).settings for name in PRIORS))


def _given(settings: Settings, names: Iterable[str]) -> dict[str, Any]:
    """Those of the settings that are not automatic."""
    values = {name: getattr(settings, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _refuse_unused(settings: Settings, names: Iterable[str], meant: Iterable[str], why: str) -> None:
    """A setting that would silently do nothing is an error."""
    for name in settings.__struct_fields__:
        if name in names and name not in meant and getattr(settings, name) is not None:
            default = settings.__struct_defaults__[settings.__struct_fields__.index(name)]
            if default is None:
                kinds = [(LIKELIHOODS, kind) for kind in LIKELIHOODS] + [(PRIORS, kind) for kind in PRIORS]
                serve = ", ".join(kind for known, kind in kinds if name in find(known, kind).settings)
                other = f"another ({serve})" if serve else "another"
                raise ConfigError(f"{name} has no meaning with {why}: leave it out, or choose {other}")


def automatic(settings: Settings) -> list[str]:
    """The values of the automatic settings, for texts and for vectors where both are possible."""
    if settings.of_lines:
        terms = template_terms(settings)
        given = (f"{name} {getattr(terms, name):g}" for name in ("concentration", "discount", "rho_word"))
        bounds = template_bounds(settings)
        most = f"at most {bounds.lines:,} distinct lines and {bounds.templates:,} templates"
        return [f"lines: templates, {', '.join(given)}, {most}"]
    sparse, found = is_sparse(settings), []
    if sparse is not False:
        what = "categories" if settings.of_categories else "texts"
        beside = settings.of_vector_beside
        family = build_likelihood(settings, ANY if beside else None)
        found.append(f"{what}: {family.main}, {build_prior(settings, True)}")
        if beside:
            vector = family.vector
            found.append(f"vector beside them: {type(vector).__name__}, weight {vector.power:g}")
    if sparse is not True:
        held = warmup_length(settings)
        scale = f", its scale learned from the first {held} vectors" if held else ""
        few, many = type(build_likelihood(settings, ANY)), likelihood_class(settings, LONG)
        beyond = "" if few is many else f" ({many.__name__} beyond {LONG - 1} dimensions)"
        found.append(f"vectors: {few.__name__}{beyond}{scale}, {build_prior(settings, False)}")
    return found
