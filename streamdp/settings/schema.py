"""Every setting of streamdp: its name, type, range, default and one line about it.

How values are found and checked is in ``streamdp.settings.load``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from streamdp.errors import ConfigError
from streamdp.records import FieldNames
from streamdp.settings.options import AUTO as AUTO
from streamdp.settings.options import Option, Options, option, options_of, refuse_meaningless
from streamdp.settings.registry import CATEGORICAL, DECAYS, LIKELIHOODS, PRIORS, TEMPLATE

Positive = Annotated[float, Meta(gt=0)]
NonNegative = Annotated[float, Meta(ge=0)]
Discount = Annotated[float, Meta(ge=0, lt=1)]
Count = Annotated[int, Meta(ge=1)]
Whole = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1)]

LEAST_MEMORY = 1 << 20
"""Bytes of the least memory limit."""

# Languages that every supported release of snowballstemmer (2.2 and later) knows.
Stem = Literal[
    "auto",
    "none", "arabic", "armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french",
    "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian", "nepali",
    "norwegian", "porter", "portuguese", "romanian", "russian", "serbian", "spanish", "swedish", "tamil",
    "turkish", "yiddish",
]  # fmt: skip

StopWords = Literal[
    "auto", "none", "english", "german", "french", "spanish", "italian", "portuguese", "dutch", "swedish",
    "norwegian", "danish", "polish", "russian", "arabic", "hindi", "chinese", "japanese",
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


_setting = partial(option, setting=True)
_words = partial(
    _setting,
    when={"no_lines": "{name} has no meaning with the template likelihood: leave it out, or choose another"},
)
_input, _time, _engine, _log = _setting("input"), _setting("time"), _setting("engine"), _setting("log")
_text, _model, _search = _words("text"), _words("model"), _words("search")
_any_model, _any_search = _setting("model"), _setting("search")
"""Of settings that mean something with templates of log lines, too."""

_CATEGORIES = {
    "of_categories": "{name} are for the categorical likelihood, not for {of.likelihood}: leave out one"
}
_LOG = {"of_log": "{name} is for lines of a log: say --format log, or leave it out"}
_LINES = {"of_lines": "{name} has a meaning with the template likelihood alone: leave it out, or choose that"}


LOGS = ("log", "otlp")
"""Formats of logs, whose records are clustered by their templates."""


class Settings(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings, flat: what is not given is automatic, or at its default.

    Those that people set: ``text_field``, ``vector_field``, ``fields`` and ``time_field``, by which records
    are read; ``embed``, for the meaning of texts; ``prior``, ``likelihood``, ``concentration`` and ``beam``,
    for the model and its search; ``seed``.

    All of them, with ranges and units: ``streamdp check`` prints them, the annotation of each field has them.
    ConfigError where there is no setting of a name; a value is checked where the settings are used.

    Examples
    --------
    >>> Settings(prior="pitman-yor", discount=0.3).beam
    8
    """

    format: Annotated[
        Literal["auto", "jsonl", "csv", "tsv", "ssv", "psv", "text", "log", "otlp"],
        _input(
            "input format",
            when={"of_tables": "categories are fields of JSON or columns of a table: {of.format} has none"},
            common=True,
        ),
    ] = "auto"
    text_field: Annotated[Name, _input("field that holds the text", common=True)] = "text"
    vector_field: Annotated[
        Name | None,
        _input(
            "field that holds the dense vector; auto: vector, or none beside categories, texts, numbers",
            common=True,
        ),
    ] = None
    features_field: Annotated[Name, _input("field that holds the mapping from feature name to number")] = (
        "features"
    )
    fields: Annotated[
        tuple[Name, ...],
        _input(
            "fields that hold categories, comma-separated; a record is made of these",
            when=_CATEGORIES,
            common=True,
        ),
    ] = ()
    texts: Annotated[
        tuple[Name, ...],
        _input("fields whose words count beside those categories, comma-separated", when=_CATEGORIES),
    ] = ()
    numbers: Annotated[
        tuple[Name, ...],
        _input("fields whose numbers count beside those categories, comma-separated", when=_CATEGORIES),
    ] = ()
    time_field: Annotated[Name, _input("field that holds the event time", common=True)] = "time"
    time_unit: Annotated[
        Literal["auto", "s", "ms", "us", "ns"],
        _input("unit of times that are numbers since 1970; auto: seconds below 1e11, then ms, us, ns"),
    ] = "auto"
    time_zone: Annotated[
        Name | None,
        _input(
            "zone of times without one or with an ambiguous name, as Europe/Berlin, CET, +01:00; else UTC"
        ),
    ] = None
    time_format: Annotated[
        Annotated[str, Meta(pattern="^(day-first|month-first|.*%.*)$")] | None,
        _input(
            "how times are written: day-first or month-first (of 03/10/2014), or directives of strptime",
            allowed="day-first, month-first or directives such as %Y%m%d",
        ),
    ] = None
    date_field: Annotated[
        Name | None, _input("field that holds the date, where the time field holds the time of day alone")
    ] = None
    decimal_comma: Annotated[bool, _input("numbers of a table are written 3,14")] = False
    read_order: Annotated[
        Literal["auto", "forwards", "backwards"],
        _input("order in which a file is read; auto: backwards where its newest records come first"),
    ] = "auto"
    id_field: Annotated[Name, _input("field that holds the record's id", common=True)] = "id"
    keep: Annotated[
        tuple[Name, ...],
        _input("fields copied from each record to its assignment, comma-separated", common=True),
    ] = ()
    truth_field: Annotated[
        Name | None,
        _input("field with the class of some records, kept, and used for confidence alone"),
    ] = None
    timestamp_format: Annotated[
        str | None, _log("how the lines of a log begin: directives as of strptime", when=_LOG)
    ] = None
    pattern: Annotated[
        str | None,
        _log("regular expression of a log's lines, with groups time, level, component, message", when=_LOG),
    ] = None
    mask: Annotated[
        tuple[Annotated[str, Meta(min_length=3)], ...],
        _log(
            "what a regular expression matches in a line of a log becomes a hole NAME of its template",
            when=_LINES,
            repeated=True,
            allowed="NAME=REGEX, once for each",
            common=True,
        ),
    ] = ()
    split_by: Annotated[
        tuple[Literal["status", "method", "level", "state"], ...],
        _log(
            "what tells templates of log lines apart wherever it stands, comma-separated",
            when=_LINES,
            allowed="of status, method, level, state",
        ),
    ] = ()
    max_record_bytes: Annotated[Count, _input("longest record accepted, in bytes")] = 1_000_000

    embed: Annotated[
        Name | None,
        _text(
            "model whose embedding of each text counts beside its words",
            allowed="wordllama, a folder or name that model2vec loads, or MODULE:FUNCTION of your own",
            when={
                "no_lines": "{name} has no meaning with the template likelihood: leave out one of them",
                "of_plain_texts": "{name} is for plain texts: leave it out, or "
                "fields, texts, numbers, vector_field and normalise",
            },
            common=True,
        ),
    ] = None
    stop_words: Annotated[
        StopWords,
        _text("language whose words of grammar short texts leave out, auto for the stream's, or none"),
    ] = "auto"
    stem: Annotated[
        Stem, _text("Snowball stemmer's language, auto for those of the texts' but English, or none")
    ] = "auto"
    ngrams: Annotated[
        Annotated[int, Meta(ge=1, le=5)], _text("longest run of words counted as one feature")
    ] = 1
    urls: Annotated[bool, _text("keep web addresses as words")] = True
    mentions: Annotated[bool, _text("keep @mentions as words")] = True
    hashtags: Annotated[bool, _text("keep #hashtags as words")] = True
    # The learned base spreads its escape mass over 2^20 words, so no vocabulary may be larger.
    max_words: Annotated[Annotated[int, Meta(ge=1, le=2**20)], _text("most words held in the vocabulary")] = (
        1_000_000
    )

    likelihood: Annotated[Likelihood, _any_model("likelihood family of the clusters")] = "auto"
    normalise: Annotated[
        bool, _model("scale vectors to length one; likelihood auto is von-mises-fisher then")
    ] = False
    prior: Annotated[Prior, _any_model("prior over clusterings")] = "auto"
    concentration: Annotated[
        Positive | None, _any_model("the prior's concentration: weight of a new cluster")
    ] = None
    discount: Annotated[Discount | None, _any_model("discount of the Pitman-Yor prior")] = None
    components: Annotated[Count | None, _model("most clusters there can be (finite mixture)")] = None
    decay: Annotated[Decay | None, _model("decay of the distance-dependent prior")] = None
    decay_scale: Annotated[
        Positive | None, _model("scale of the decay, in records or seconds (see distance)")
    ] = None
    distance: Annotated[
        Literal["records", "seconds"], _model("unit in which the decay measures distance")
    ] = "records"
    close_below: Annotated[
        Discount, _model("weight below which a smoothly decaying cluster closes, 0 for never")
    ] = 1e-3
    base_concentration: Annotated[
        Positive | None, _model("pull of clusters' words towards the shared base (b1)")
    ] = None
    word_discount: Annotated[
        Discount | None, _model("discount of words within a cluster (hierarchical Pitman-Yor)")
    ] = None
    beta: Annotated[
        Positive | None, _model("prior mass per word (Dirichlet-multinomial) or value (categorical)")
    ] = None
    document_beta: Annotated[
        Positive | None, _model("document level's concentration (hierarchical Dirichlet)")
    ] = None
    base_discount: Annotated[Discount | None, _model("discount of every word seen in the shared base")] = None
    base_smoothing: Annotated[
        NonNegative | None, _model("mass added to every word seen in the shared base")
    ] = None
    base_escape: Annotated[
        Positive | None, _model("concentration of the shared base: mass of words, or values, not yet seen")
    ] = None
    vocabulary_size: Annotated[Count | None, _model("fixed vocabulary size (Dirichlet-multinomial)")] = None
    rho_word: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        _log("how readily a word of log lines is a hole of their template (template)", when=_LINES),
    ] = None
    max_lines: Annotated[
        Annotated[int, Meta(ge=2)] | None,
        _log("distinct lines of a log, and values of holes, remembered (template)", when=_LINES),
    ] = None
    variance: Annotated[Positive | None, _model("variance of vectors within a cluster (Gaussian)")] = None
    mean_variance: Annotated[Positive | None, _model("prior variance of clusters' means (Gaussian)")] = None
    kappa: Annotated[Positive | None, _model("prior records behind the mean (normal-inverse families)")] = (
        None
    )
    shape: Annotated[Positive | None, _model("prior shape of the variance (normal-inverse-gamma)")] = None
    scale: Annotated[Positive | None, _model("prior scale of the variance (normal-inverse-gamma)")] = None
    forget: Annotated[
        Annotated[float, Meta(gt=0, le=1)] | None,
        _model("factor on a cluster's statistics per record of its own, 1 for no forgetting"),
    ] = None
    warmup: Annotated[Whole | None, _model("vectors from which scales are learned at the start")] = None
    vector_weight: Annotated[
        Positive | None,
        _model(
            "how much a vector beside other fields counts for: power of its likelihood",
            when={"of_vector_beside": "{name} is for a vector beside other fields: name its --vector-field"},
        ),
    ] = None

    beam: Annotated[Annotated[int, Meta(ge=1, le=256)], _search("hypotheses held", harmless=1)] = 8
    slack: Annotated[
        Positive | None, _search("nats behind the best hypothesis at which another is dropped")
    ] = None
    second_look: Annotated[
        Whole,
        _search("records after which a record of words is looked at again, 0 for no looks back at all"),
    ] = 1000
    refine_every: Annotated[
        Whole, _search("records after which samplers go over those retained, 0 for never")
    ] = 0
    refine_moves: Annotated[
        Annotated[int, Meta(ge=1, le=10_000_000)],
        _search("least number of records that a refinement weighs again"),
    ] = 20_000
    refine: Annotated[
        Literal["fixed", "async"],
        _search("adopt a refinement at a fixed record, or when it is ready (not reproducible)"),
    ] = "fixed"
    max_undecided: Annotated[
        Count, _any_search("records after which the best hypothesis decides a disagreement")
    ] = 10_000
    retire_after: Annotated[
        Count | None, _search("records without a new member after which a cluster retires")
    ] = None
    max_clusters: Annotated[
        Count | None, _any_search("live clusters beyond which the least recently used retires")
    ] = None
    themes: Annotated[Whole, _search("themes of stories whose numbers the state keeps, 0 for none")] = 0
    seed: Annotated[Annotated[int, Meta(ge=0, le=2**32 - 1)], _any_search("seed of every random choice")] = 0

    max_lateness: Annotated[
        NonNegative, _time("seconds a record may be late and still be put in order", common=True)
    ] = 0.0
    late: Annotated[
        Literal["place", "refuse"],
        _time("what to do with later records: place them at the time the stream has reached, or refuse"),
    ] = "place"
    max_leap: Annotated[
        Positive, _time("seconds a time may leap ahead of the stream before other records confirm it")
    ] = 3600.0
    idle_timeout: Annotated[
        NonNegative,
        _time(
            "seconds of silence (also of one partition) after which held records are answered, 0 for never"
        ),
    ] = 10.0
    max_ahead: Annotated[NonNegative, _time("seconds a record's time may lie beyond its arrival")] = 86_400.0

    retain: Annotated[Whole, _engine("latest records kept for refinement")] = 5000
    params: Annotated[
        bool,
        _log(
            "write the values of a template's holes with each line of a log",
            when={"of_lines": "params are of templates: choose the template likelihood, or leave it out"},
        ),
    ] = False
    rate_window: Annotated[
        Positive | None,
        _log(
            "seconds over which lines of a log are counted, for events of silence and surges",
            when={"of_lines": "rate_window is of templates: choose the template likelihood, or leave it out"},
        ),
    ] = None
    memory_limit: Annotated[
        Annotated[int, Meta(ge=LEAST_MEMORY)],
        _engine(
            "bytes held; above, less is waited for and looked back at, and old clusters and words go",
            common=True,
        ),
    ] = 1 << 29
    snapshot_every: Annotated[Count, _engine("records read between two snapshots, refused ones too")] = 50_000
    snapshot_seconds: Annotated[NonNegative, _engine("seconds between two snapshots, 0 for none by time")] = (
        10.0
    )
    snapshot_keep: Annotated[Count, _engine("snapshots kept")] = 3

    @property
    def kept(self) -> tuple[str, ...]:
        """Fields that are copied from each record to its assignment, that of its class among them."""
        return tuple(dict.fromkeys((*self.keep, *([self.truth_field] if self.truth_field else []))))

    @property
    def of_lines(self) -> bool:
        """Whether records are lines of a log, to be clustered by their templates."""
        return self.likelihood == TEMPLATE or (self.likelihood == AUTO and self.format in LOGS)

    @property
    def no_lines(self) -> bool:
        """Whether records are anything else."""
        return not self.of_lines

    @property
    def of_log(self) -> bool:
        """Whether lines may be cut as those of a log."""
        return self.format == "log" or (self.of_lines and self.format != "otlp")

    @property
    def of_categories(self) -> bool:
        """Whether the settings alone say that records are categories."""
        named = self.likelihood == AUTO and self._has_fields
        return self.likelihood == CATEGORICAL or named

    @property
    def _has_fields(self) -> bool:
        return bool(self.fields or self.texts or self.numbers)

    @property
    def of_vector_beside(self) -> bool:
        """Whether records have a vector beside other fields, or beside the words of a text."""
        return self.embed is not None or (self.vector_field is not None and self.of_categories)

    @property
    def of_plain_texts(self) -> bool:
        """Whether records may be texts and nothing else."""
        return not (self._has_fields or self.vector_field or self.normalise or self.of_categories)

    @property
    def vector_name(self) -> str:
        """The field of vectors that are records by themselves."""
        return self.vector_field or "vector"

    @property
    def field_names(self) -> FieldNames:
        """Which fields records have that are categories, texts and numbers, and the vector beside them."""
        vector = (self.vector_field,) if self.vector_field is not None and self._has_fields else ()
        return FieldNames(self.fields, self.texts, self.numbers, vector)

    @property
    def of_tables(self) -> bool:
        """Whether the format has the fields that categories need, if there are categories."""
        return not (self.of_categories and self.format in ("text", *LOGS))

    def check(self) -> None:
        """Raise ConfigError for settings without a meaning together, and for fields that are two things."""
        refuse_meaningless(self)
        uses = Counter(name for kind in self.field_names for name in set(kind))
        if uses and max(uses.values()) > 1:
            twice = ", ".join(repr(name) for name in sorted(uses) if uses[name] > 1)
            raise ConfigError(f"fields, texts, numbers, vector_field: {twice} cannot be two of these")
        if self.embed is None and self.of_vector_beside and not self._has_fields:
            raise ConfigError("vector_field: name the fields, texts or numbers that count beside it")


def setting_fields() -> tuple[Option, ...]:
    """Every setting in the order of ``Settings``."""
    return options_of(Settings)


class Classes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which modules a command may import that reads a state: a state names them, and is not trusted."""

    likelihood: Annotated[Likelihood, _any_model("likelihood family of the state, if it is your own")] = AUTO
    prior: Annotated[Prior, _any_model("prior of the state, if it is your own")] = AUTO
    decay: Annotated[Decay | None, _any_model("decay of the state, if it is your own")] = None
    embed: Annotated[Name | None, _text("embedding of the state, if it is a function of your own")] = None

    @classmethod
    def of(cls, settings: Settings) -> Classes:
        """Those that settings name."""
        return cls(**{name: getattr(settings, name) for name in cls.__struct_fields__})
