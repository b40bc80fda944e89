"""Flags made from structs, and the structs of single commands."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import msgspec
import typer
from msgspec import Meta
from typer.core import TyperGroup

from streamdp.errors import ConfigError, Exit
from streamdp.offline.plan import Estimate, Method, Plan, Start
from streamdp.settings import Settings
from streamdp.settings.load import LAYERED, gather
from streamdp.settings.options import GROUPS, Option, option, options_of, refuse_meaningless
from streamdp.story.orders import Sort

Config = Annotated[
    str | None, typer.Option(help="settings file (default: streamdp.toml where there is one)", metavar="PATH")
]


def _show_all(context: typer.Context, wanted: bool) -> None:
    """Print the help of a command with every option that has a text."""
    if wanted:
        for each in context.command.params:
            each.hidden = not getattr(each, "help", None)  # type: ignore[attr-defined]
        typer.echo(context.get_help(), nl=False)
        raise typer.Exit


HelpAll = Annotated[
    bool, typer.Option("--help-all", help="all options, in groups", callback=_show_all, is_eager=True)
]
_about, _search = option(common=True), option("search")
Positive = Annotated[int, Meta(ge=1)]


_REPORT = {"report": "{flag} is of a report: say --report FILE"}


class FitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How ``fit`` searches, and what it draws. The first three are of a state, too."""

    budget: Annotated[
        str | None,
        _about("when to stop: 30s, 10m, 1h, or a number of rounds (default: 30s; of a state 10)"),
    ] = None
    chains: Annotated[Annotated[int, Meta(ge=1, le=64)], _about("chains side by side")] = 1
    hyper: Annotated[
        bool | None, _about("draw the hyperparameters that are automatic (default: of a file)")
    ] = None
    method: Annotated[Method, _about("how to search")] = "hybrid"
    start: Annotated[Start, _about("where samplers start")] = "auto"
    estimate: Annotated[
        Estimate, _about("best: the most probable clustering met; vi, binder: of all draws")
    ] = "best"
    queue: Annotated[Annotated[int, Meta(ge=0)], _search("states that astar keeps, 0 for all")] = 100
    look_ahead: Annotated[
        str, _search("astar's score: trivial, admissible, replica, predictive or inadmissible")
    ] = "inadmissible"
    order: Annotated[str, _search("astar's order: given, random, ascending or descending")] = "given"
    distances: Annotated[
        str | None, _search("D.npy: row i holds the distances of record i from earlier ones")
    ] = None

    @property
    def plan(self) -> Plan:
        """The plan of the search. Raises ConfigError."""
        rounds, seconds = parse_budget(self.budget or "30s")
        same = {name: getattr(self, name) for name in Plan.__dataclass_fields__ if hasattr(self, name)}
        same["hyper"] = self.hyper is not False
        return Plan(**same, rounds=rounds, seconds=seconds, score=self.look_ahead)

    @property
    def plan_of_state(self) -> Plan:
        """The plan of a search that begins at the clustering of a state. Raises ConfigError."""
        rounds, seconds = parse_budget(self.budget or "10")
        return Plan("hybrid", "one", rounds, seconds, self.chains, "best", self.hyper is True)


class SparkJob(msgspec.Struct, frozen=True, kw_only=True):
    """What a query of Spark reads, how its records are divided, and where the answers go."""

    ONE_OF: ClassVar = {
        ("topic", "folder"): "say where to read: either --folder PATH or --topic NAME",
        ("key", "shards"): "say either --key FIELD, for an engine of each, or --shards N, for one stream",
    }

    checkpoint: Annotated[str, _about("Spark's checkpoint, which holds the states")]
    output: Annotated[str, _about("folder of Parquet files for the answers")]
    key: Annotated[str | None, _about("field that tells streams apart: one engine for each")] = None
    shards: Annotated[
        Positive | None, _about("number of engines that share one stream of texts, instead")
    ] = None
    topic: Annotated[str | None, _about("Kafka topic of JSON records")] = None
    folder: Annotated[str | None, _about("folder of files of JSON lines instead")] = None
    bootstrap: Annotated[str, _about("Kafka brokers, host:port,...")] = "localhost:9092"
    start: Annotated[Literal["earliest", "latest"], _about("where a topic is begun", flag="--from")] = (
        "earliest"
    )
    rows: Annotated[Positive | None, _about("most records of a topic in a micro-batch")] = None
    once: Annotated[
        bool,
        _about(
            "stop after what is there at the start",
            when={"keeps_keys": "--once never ends with --time-to-live: Spark goes on to look at the clock"},
        ),
    ] = False
    master: Annotated[str | None, _about("where Spark runs (default: spark-submit's, else local[*])")] = None
    time_to_live: Annotated[
        Annotated[float, Meta(ge=0.001)] | None,
        _about("seconds after which a silent key is forgotten", metavar="SECONDS"),
    ] = None
    partitions: Annotated[
        Positive | None, _about("parts that keys are divided into, for ever (default: twice the cores)")
    ] = None

    @property
    def keeps_keys(self) -> bool:
        """Whether no key is ever forgotten."""
        return self.time_to_live is None


class StoriesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which stories are printed, and how."""

    growing: Annotated[bool, _about("those with more records now than before, fastest first")] = False
    since: Annotated[
        str | None, _about("with records since a time (ISO 8601), or in the last 90m, 6h, 2d", metavar="TIME")
    ] = None
    until: Annotated[str | None, _about("that began by a time, or so long ago", metavar="TIME")] = None
    search: Annotated[
        str | None, _about("whose title, keywords or samples hold these words, ended ones too")
    ] = None
    every: Annotated[bool, _about("live and ended ones, latest activity first", flag="--all")] = False
    closed: Annotated[bool, _about("those that have ended, latest first, as far as known")] = False
    story: Annotated[int | None, _about("one story, whole", metavar="N")] = None
    themes: Annotated[
        str | None,
        _about("K themes in the place of stories; auto: as many as the model says", metavar="K"),
    ] = None
    theme: Annotated[int | None, _about("the stories of one theme (of 20, or --themes)", metavar="N")] = None
    records: Annotated[bool, _about("their records, in the place of the stories")] = False
    sort: Annotated[
        Sort | None,
        _about("what comes first: size (default of live ones), now, growing, new, title or last (of others)"),
    ] = None
    least: Annotated[Positive, _about("leave out stories of fewer records")] = 2
    limit: Annotated[
        Positive | None,
        _about("at most so many (default: 20 in a table, 10 in a report, all elsewhere)", metavar="N"),
    ] = None
    samples: Annotated[bool, _about("with some of their records, in a table")] = False
    now: Annotated[
        str | None, _about("how long now is: 1h, 1d (default: what the latest records took)", metavar="TIME")
    ] = None
    page: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        _about("serve a page of a state, and of each newer snapshot, at this port", metavar="PORT"),
    ] = None
    report: Annotated[
        str | None,
        _about("write a report to mail, one HTML file: the ten that matter now, or --limit", metavar="FILE"),
    ] = None
    title: Annotated[str | None, _about("of the report (default: the name of PATH)", when=_REPORT)] = None
    overwrite: Annotated[bool, _about("replace a report that exists", when=_REPORT)] = False
    csv: Annotated[bool, _about("as a table for other programs")] = False
    json: Annotated[bool, _about("as JSON lines")] = False

    def refuse_beside(self, *names: str) -> None:
        """Raise ConfigError for any option but some, of which the first is given."""
        if self != type(self)(**{name: getattr(self, name) for name in names}):
            others = ", ".join(f"--{name}" for name in names[1:]).replace("every", "all")
            raise ConfigError(
                f"--{names[0]} goes with {others or 'nothing that chooses or prints stories'}", Exit.USAGE
            )


class DiffOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a state, or a file of answers, is compared with."""

    ONE_OF: ClassVar = {
        ("since", "since_state", "mark", "truth"): "say one of --since, --since-state, --mark and --truth"
    }

    since: Annotated[
        str | None, _about("a time (ISO 8601), so long ago (6h, 2d), or a mark", metavar="TIME|MARK")
    ] = None
    since_state: Annotated[str | None, _about("an earlier or another state", metavar="STATE")] = None
    mark: Annotated[
        str | None, _about("only give this moment a name for --since, as deploy", metavar="NAME")
    ] = None
    time: Annotated[
        str | None,
        _about(
            "another moment for the mark (default: now; of old records, the newest's)",
            metavar="TIME",
            when={"mark": "--time is of a mark: say --mark NAME"},
        ),
    ] = None
    truth: Annotated[
        str | None, _about("JSON lines that hold the true cluster of each answer", metavar="FILE")
    ] = None
    field: Annotated[
        str, _about("field of the truth", when={"truth": "--field is of a truth: say --truth FILE"})
    ] = "cluster"
    id_field: Annotated[
        str | None,
        _about(
            "field of the truth's ids (default: as consume recognises it)",
            when={"truth": "--id-field is of a truth: say --truth FILE"},
        ),
    ] = None
    every: Annotated[bool, _about("also what chance explains", flag="--all")] = False
    json: Annotated[bool, _about("as JSON lines, what chance explains too")] = False


def parse_budget(text: str) -> tuple[int | None, float | None]:
    """Rounds or seconds of ``500``, ``30s``, ``10m`` or ``1h``. Raises ConfigError."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number, unit = (text[:-1], text[-1:]) if text[-1:] in units else (text, "")
    try:
        value = float(number)
    except ValueError:
        value = 0.0
    if not 0.0 < value < 1e9 or (not unit and value != int(value)):
        raise ConfigError(
            f"--budget: {text!r} is neither a time such as 30s, 10m or 1h nor a number of rounds", Exit.USAGE
        )
    return (None, value * units[unit]) if unit else (int(value), None)


class Group(TyperGroup):
    """All commands, whose options cost nothing where they need no reading: defaults, and texts.

    typer makes a reader for each of a hundred options, and imports pydantic for the first.
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of all commands alike."""
        return _spared(super().get_params(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command of that name, None where there is none."""
        found: Any = super().get_command(ctx, cmd_name)
        if found is not None:
            _spared(found.get_params(ctx))
            found.parse_args = partial(_parse_args, found)
        return found


def _parse_args(command: Any, ctx: Any, args: list[str]) -> list[str]:
    """Parse the arguments of a command. Raises ConfigError (64) for a switch with a value."""
    switches = [each for each in command.params if getattr(each, "secondary_opts", None)]
    for written, behind in pairwise([*args, ""]):
        name, assigned, _ = written.partition("=")
        for each in switches if assigned or behind.lower() in ("true", "false") else ():
            on, off = each.opts[0], each.secondary_opts[0]
            if name in (on, off):
                raise ConfigError(f"{name} takes no value: write {on} for yes, {off} for no", Exit.USAGE)
    parsed: list[str] = type(command).parse_args(command, ctx, args)
    return parsed


def _spared(params: list[Any]) -> list[Any]:
    for param in params:
        param.process_value = partial(_value_of, param)
    return params


def _value_of(param: Any, ctx: Any, value: Any) -> Any:
    """The value of an option, as typer says it."""
    kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
    read = value is None or value == param.default or (kind is str and isinstance(value, str))
    if not read or param.required or param.nargs != 1:
        return type(param).process_value(param, ctx, value)
    given = () if value is None and param.multiple else value
    return given if param.callback is None else param.callback(ctx, param, given)


def with_options(command: Callable[..., int | None]) -> Callable[..., int | None]:
    """Turn the parameters of a command that are structs into flags, one for each field.

    The command receives the structs, loaded and checked. ``written``, where it takes that, are the names of
    the options that the user has written. With settings come ``--config`` and the environment, and a help
    that shows the common options alone.
    """
    parameters = inspect.signature(command, eval_str=True).parameters
    kinds: dict[str, type[msgspec.Struct]] = {
        name: each.annotation
        for name, each in parameters.items()
        if isinstance(each.annotation, type) and issubclass(each.annotation, msgspec.Struct)
    }
    many = Settings in kinds.values()
    given_by = [each for kind in kinds.values() for each in _flags_of_all(kind, many)]
    order = ["", *GROUPS]
    given_by.sort(key=lambda each: order.index(each[0].group))
    found = [each for each, _ in given_by]
    flags = [flag for _, those in given_by for flag in those]
    shown = [each for name, each in parameters.items() if name not in (*kinds, "written")]
    if any(kind in LAYERED for kind in kinds.values()):
        shown.append(_parameter("config", Config))
    if many:
        shown.append(_parameter("help_all", HelpAll))

    def run(**arguments: Any) -> int | None:
        arguments.pop("help_all", None)
        given = {flag.name: arguments.pop(flag.name) for flag in flags}
        for each in found:
            if each.argument is not None and (argument := given.pop(_argument(each))) is not None:
                if given[each.name] is not None:
                    raise ConfigError(
                        f"there is one {each.name} to read: {argument} or {each.flag} {given[each.name]}",
                        Exit.USAGE,
                    )
                given[each.name] = argument
        chosen = gather(kinds.values(), given, os.environ, arguments.pop("config", None))
        structs = {
            name: kind(**{field: chosen[field] for field in kind.__struct_fields__ if field in chosen})
            for name, kind in kinds.items()
        }
        refuse_meaningless(*(each for each in structs.values() if not isinstance(each, Settings)))
        more = {"written": frozenset(chosen)} if "written" in parameters else {}
        return command(**structs, **more, **arguments)

    whole = [*(each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in shown), *flags]
    made: Any = run
    made.__signature__ = inspect.Signature(whole)
    made.__annotations__ = {each.name: each.annotation for each in whole}
    made.__doc__, made.__name__ = command.__doc__, command.__name__
    return run


@cache
def _flags_of_all(kind: type[msgspec.Struct], many: bool) -> list[tuple[Option, list[inspect.Parameter]]]:
    """Every option that a struct declares, and its flags: several commands have the same."""
    return [(each, _flags_of(each, hidden=many and not each.common)) for each in options_of(kind)]


def _flags_of(each: Option, *, hidden: bool) -> list[inspect.Parameter]:
    """The flag of an option, and the argument that may stand in its place."""
    required = each.default is msgspec.NODEFAULT
    kind, bounds = _plain(each.type)
    switch = kind is bool
    if each.repeated or (each.setting and not switch):
        kind, bounds = list[str] if each.repeated else str, {}
    valued = each.setting and not switch
    about = typer.Option(
        f"{each.flag}/--no-{each.flag.removeprefix('--')}" if switch else each.flag,
        help=f"{each.description}; {each.allowed}" if valued else each.description,
        rich_help_panel=GROUPS.get(each.group),
        hidden=hidden,
        show_default=False if required else _default(each),
        metavar="VALUE" if valued else each.metavar,
        **bounds,
    )
    flags = [_parameter(each.name, Annotated[kind if required else kind | None, about], required=required)]
    if each.argument is not None:
        argument = typer.Argument(help=each.argument, metavar=f"[{each.name.upper()}]")
        flags.insert(0, _parameter(_argument(each), Annotated[kind | None, argument]))
    return flags


def _plain(hint: Any) -> tuple[Any, dict[str, Any]]:
    """A type without None and metadata, and its bounds."""
    bounds: dict[str, Any] = {}
    while NoneType in get_args(hint) or get_origin(hint) is Annotated:
        if get_origin(hint) is Annotated:
            for meta in hint.__metadata__:
                bounds |= {} if meta.ge is None else {"min": meta.ge}
                bounds |= {} if meta.le is None else {"max": meta.le}
        hint = get_args(hint)[0]
    return hint, bounds


def _parameter(name: str, annotation: Any, *, required: bool = False) -> inspect.Parameter:
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _argument(each: Option) -> str:
    return f"{each.name}_argument"


def _default(each: Option) -> str | bool:
    """The default as the help shows it."""
    if each.setting:
        default = "automatic" if each.default is None else each.default
        return (",".join(default) if isinstance(default, tuple) else str(default).lower()) or "none"
    if each.default is True:
        return each.name
    return False if each.default in (None, False) else str(each.default)
