"""Every setting of streamdp: its name, type, range, default and one line about it.

How values are found and checked is in ``streamdp.settings.load``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
from msgspec import Meta, inspect

from streamdp.registry import DECAYS, LIKELIHOODS, PRIORS, TEMPLATE

AUTO = "auto"
"""What a user writes for an automatic setting; a setting that is automatic holds None."""

Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Discount = Annotated[float, Meta(ge=0, lt=1)]
Count = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(min_length=1)]

# Languages that every supported release of snowballstemmer (2.2 and later) knows.
Stem = Literal[
    "none", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french",
    "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali",
    "norwegian", "porter", "portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil",
    "turkish", "yiddish",
]  # fmt: skip


def _one_of(known: Mapping[str, str], *more: str) -> Meta:
    """A name of the registry, or a class of the user's own."""
    names = sorted([*more, *known])
    return Meta(
        pattern=rf"^({'|'.join(names)}|\w+(\.\w+)*:\w+)$",
        extra={"allowed": f"one of {', '.join(names)}, or MODULE:CLASS of your own"},
    )


Likelihood = Annotated[str, _one_of(LIKELIHOODS, AUTO, TEMPLATE)]
Prior = Annotated[str, _one_of(PRIORS, AUTO)]
Decay = Annotated[str, _one_of(DECAYS)]


def _about(group: str) -> partial[Meta]:
    return partial(Meta, extra={"group": group})


_input, _text, _model = _about("input"), _about("text"), _about("model")
_search, _time, _engine = _about("search"), _about("time"), _about("engine")


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings, flat. None means automatic. Ranges and units stand with each field.

    Examples
    --------
    >>> Settings(prior="pitman-yor", discount=0.3).beam
    16
    """

    format: Annotated[
        Literal["auto", "jsonl", "csv", "tsv", "text", "log"], _input(description="input format")
    ] = "auto"
    text_field: Annotated[Name, _input(description="field that holds the text")] = "text"
    vector_field: Annotated[Name, _input(description="field that holds the dense vector")] = "vector"
    features_field: Annotated[
        Name, _input(description="field that holds the mapping from feature name to number")
    ] = "features"
    fields: Annotated[
        tuple[Name, ...],
        _input(description="fields that hold categories, comma-separated: a record is what these hold"),
    ] = ()
    texts: Annotated[
        tuple[Name, ...],
        _input(description="fields whose words count beside those categories, comma-separated"),
    ] = ()
    numbers: Annotated[
        tuple[Name, ...],
        _input(description="fields whose numbers count beside those categories, comma-separated"),
    ] = ()
    time_field: Annotated[Name, _input(description="field that holds the event time")] = "time"
    time_unit: Annotated[
        Literal["auto", "s", "ms", "us", "ns"],
        _input(
            description="unit of times that are numbers since 1970; auto: seconds below 1e11, then ms, us, ns"
        ),
    ] = "auto"
    id_field: Annotated[Name, _input(description="field that holds the record's id")] = "id"
    keep: Annotated[
        tuple[Name, ...],
        _input(description="fields copied from each record to its assignment, comma-separated"),
    ] = ()
    timestamp_format: Annotated[
        str | None, _input(description="how the lines of a log begin: directives as of strptime")
    ] = None
    pattern: Annotated[
        str | None,
        _input(
            description="regular expression of a log's lines, with groups time, level, component, message"
        ),
    ] = None
    max_record_bytes: Annotated[Count, _input(description="longest record accepted, in bytes")] = 1_000_000

    stem: Annotated[Stem, _text(description="Snowball stemmer's language, or none")] = "none"
    ngrams: Annotated[
        Annotated[int, Meta(ge=1, le=5)], _text(description="longest run of words counted as one feature")
    ] = 1
    urls: Annotated[bool, _text(description="keep web addresses as words")] = True
    mentions: Annotated[bool, _text(description="keep @mentions as words")] = True
    hashtags: Annotated[bool, _text(description="keep #hashtags as words")] = True
    # The learned base spreads its escape mass over 2^20 words, so no vocabulary may be larger.
    max_words: Annotated[
        Annotated[int, Meta(ge=1, le=2**20)], _text(description="most words held in the vocabulary")
    ] = 1_000_000

    likelihood: Annotated[Likelihood, _model(description="likelihood family of the clusters")] = "auto"
    normalise: Annotated[
        bool, _model(description="scale vectors to length one; likelihood auto is von-mises-fisher then")
    ] = False
    prior: Annotated[Prior, _model(description="prior over clusterings")] = "auto"
    concentration: Annotated[
        Positive | None, _model(description="the prior's concentration: weight of a new cluster")
    ] = None
    discount: Annotated[Discount | None, _model(description="discount of the Pitman-Yor prior")] = None
    components: Annotated[Count | None, _model(description="most clusters there can be (finite mixture)")] = (
        None
    )
    decay: Annotated[Decay | None, _model(description="decay of the distance-dependent prior")] = None
    decay_scale: Annotated[
        Positive | None, _model(description="scale of the decay, in records or seconds (see distance)")
    ] = None
    distance: Annotated[
        Literal["records", "seconds"], _model(description="unit in which the decay measures distance")
    ] = "records"
    close_below: Annotated[
        Discount, _model(description="weight below which a smoothly decaying cluster closes, 0 for never")
    ] = 1e-3
    adapt: Annotated[
        bool, _model(description="let concentration and decay scale follow a stream of texts, slowly")
    ] = False
    base_concentration: Annotated[
        Positive | None, _model(description="pull of clusters' words towards the shared base (b1)")
    ] = None
    word_discount: Annotated[
        Discount | None, _model(description="discount of words within a cluster (hierarchical Pitman-Yor)")
    ] = None
    beta: Annotated[
        Positive | None,
        _model(description="prior mass per word (Dirichlet-multinomial) or value (categorical)"),
    ] = None
    document_beta: Annotated[
        Positive | None, _model(description="document level's concentration (hierarchical Dirichlet)")
    ] = None
    base_discount: Annotated[
        Discount | None, _model(description="discount of every word seen in the shared base")
    ] = None
    base_smoothing: Annotated[
        NonNegative | None, _model(description="mass added to every word seen in the shared base")
    ] = None
    base_escape: Annotated[
        Positive | None,
        _model(description="concentration of the shared base: mass of words, or values, not yet seen"),
    ] = None
    vocabulary_size: Annotated[
        Count | None, _model(description="fixed vocabulary size (Dirichlet-multinomial)")
    ] = None
    rho_word: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        _model(description="how readily a word of log lines is a hole of their template (template)"),
    ] = None
    max_lines: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        _model(description="distinct lines of a log, and values of holes, remembered (template)"),
    ] = None
    variance: Annotated[
        Positive | None, _model(description="variance of vectors within a cluster (Gaussian)")
    ] = None
    mean_variance: Annotated[
        Positive | None, _model(description="prior variance of clusters' means (Gaussian)")
    ] = None
    kappa: Annotated[
        Positive | None,
        _model(description="prior records behind the mean (normal-inverse families)"),
    ] = None
    shape: Annotated[
        Positive | None, _model(description="prior shape of the variance (normal-inverse-gamma)")
    ] = None
    scale: Annotated[
        Positive | None, _model(description="prior scale of the variance (normal-inverse-gamma)")
    ] = None
    forget: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        _model(description="factor on a cluster's statistics per record of its own, 1 for no forgetting"),
    ] = None
    warmup: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        _model(description="vectors from which scales are learned at the start"),
    ] = None

    beam: Annotated[Annotated[int, Meta(ge=1, le=256)], _search(description="hypotheses held")] = 16
    slack: Annotated[
        Positive | None, _search(description="nats behind the best at which a hypothesis is dropped")
    ] = None
    temper: Annotated[Share, _search(description="power of the prior in selection, 1 for the true prior")] = (
        1.0
    )
    second_look: Annotated[
        Annotated[int, Meta(ge=0)],
        _search(description="records after which a record of words is looked at again, 0 for never"),
    ] = 1000
    refine_every: Annotated[
        Annotated[int, Meta(ge=0)],
        _search(description="records after which samplers go over those retained, 0 for never"),
    ] = 0
    refine_moves: Annotated[
        Count, _search(description="records that such a refinement weighs again, at least")
    ] = 20_000
    refine: Annotated[
        Literal["fixed", "async"],
        _search(description="adopt a refinement at a fixed record, or when it is ready (not reproducible)"),
    ] = "fixed"
    max_undecided: Annotated[
        Count, _search(description="records after which the best hypothesis decides a disagreement")
    ] = 10_000
    retire_after: Annotated[
        Count | None, _search(description="records without a new member after which a cluster retires")
    ] = None
    max_clusters: Annotated[
        Count | None, _search(description="live clusters beyond which the least recently used retires")
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=0, le=2**32 - 1)], _search(description="seed of every random choice")
    ] = 0

    max_lateness: Annotated[
        NonNegative, _time(description="seconds a record may be late and still be put in order")
    ] = 0.0
    late: Annotated[
        Literal["place", "refuse"],
        _time(description="later still: place a record at the time the stream has reached, or refuse it"),
    ] = "place"
    max_leap: Annotated[
        Positive,
        _time(description="seconds a time may leap ahead of the stream before other records confirm it"),
    ] = 3600.0
    idle_timeout: Annotated[
        NonNegative,
        _time(
            description="seconds of silence (of a partition, too) that records held back wait for, 0 for ever"
        ),
    ] = 10.0
    max_ahead: Annotated[
        NonNegative, _time(description="seconds a record's time may lie beyond its arrival")
    ] = 86_400.0

    retain: Annotated[
        Annotated[int, Meta(ge=0)], _engine(description="latest records kept for refinement")
    ] = 5000
    params: Annotated[
        bool, _engine(description="tell the values of a template's holes with each line of a log")
    ] = False
    rate_window: Annotated[
        Positive | None,
        _engine(description="seconds of a log in which lines are counted, to tell of silence and surges"),
    ] = None
    snapshot_every: Annotated[
        Count, _engine(description="records read between two snapshots, refused ones too")
    ] = 50_000
    snapshot_seconds: Annotated[
        NonNegative, _engine(description="seconds between two snapshots, 0 for none by time")
    ] = 10.0
    snapshot_keep: Annotated[Count, _engine(description="snapshots kept")] = 3


class SettingField(msgspec.Struct, frozen=True):
    """One setting as a command line or a manual shows it.

    ``group`` is input, text, model, search, time or engine; ``allowed`` says in words what values it
    takes; ``type`` is the annotated type, to be given to ``msgspec.convert``.
    """

    name: str
    group: str
    description: str
    allowed: str
    default: Any
    type: Any

    @property
    def flag(self) -> str:
        """The flag on the command line, such as ``--max-words``."""
        return "--" + self.name.replace("_", "-")

    @property
    def variable(self) -> str:
        """The environment variable, such as ``STREAMDP_MAX_WORDS``."""
        return "STREAMDP_" + self.name.upper()


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    limits = (("at least", kind.ge), ("above", kind.gt), ("at most", kind.le), ("below", kind.lt))
    return " and ".join(f"{word} {limit}" for word, limit in limits if limit is not None)


def _allowed(kind: inspect.Type) -> str:
    match kind:
        case inspect.Metadata():
            return (kind.extra or {}).get("allowed") or _allowed(kind.type)
        case inspect.UnionType():
            return ", or ".join(
                AUTO if isinstance(member, inspect.NoneType) else _allowed(member) for member in kind.types
            )
        case inspect.LiteralType():
            return "one of " + ", ".join(map(str, kind.values))
        case inspect.IntType():
            return f"a whole number, {_bounds(kind)}"
        case inspect.FloatType():
            return f"a finite number, {_bounds(kind)}"
        case inspect.BoolType():
            return "true or false"
        case inspect.VarTupleType():
            return "a list of names"
        case _:
            return "a name"


@cache
def setting_fields() -> tuple[SettingField, ...]:
    """Every setting in the order of ``Settings``."""
    struct = inspect.type_info(Settings)
    hints = get_type_hints(Settings, include_extras=True)
    assert isinstance(struct, inspect.StructType)
    found = []
    for field in struct.fields:
        about = field.type
        assert isinstance(about, inspect.Metadata)
        found.append(
            SettingField(
                name=field.name,
                group=(about.extra or {})["group"],
                description=(about.extra_json_schema or {})["description"],
                allowed=_allowed(about),
                default=field.default,
                type=hints[field.name],
            )
        )
    return tuple(found)
