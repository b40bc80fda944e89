"""Options as metadata on the fields of structs.

Flags, environment variables, keys of a file, help texts and refusals are made from it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, get_type_hints

import msgspec
from msgspec import Meta, inspect

from streamdp.errors import ConfigError, Exit

AUTO = "auto"
"""What a user writes for an automatic setting; a setting that is automatic holds None."""

GROUPS = {
    "input": "Input",
    "output": "Output",
    "engine": "State",
    "model": "Model",
    "text": "Text",
    "search": "Search",
    "time": "Time",
    "log": "Logs and templates",
    "kafka": "Kafka",
    "page": "Page and metrics",
    "service": "Service",
}
"""Groups of options in the order in which ``--help`` shows them, with their titles."""


class Option(msgspec.Struct, frozen=True):
    """One field as a command line or a manual shows it.

    ``allowed`` says in words what values it takes; ``type`` is the annotated type, to be given to
    ``msgspec.convert``; ``group`` is a key of ``GROUPS``. A setting is always written as a value, ``auto``
    for None; other options may be switches. ``when`` says with what the option has a meaning: it maps a
    property, or a field, of the structs to the message for a run that does not have it. ``harmless`` is a
    value that is never refused. ``argument`` is the help of the argument that may stand in the place of the
    flag. An option that is ``repeated`` is given once for each of its values, which may have commas. A
    ``common`` one is in the short help of commands that have many.
    """

    name: str
    description: str
    allowed: str
    default: Any
    type: Any
    flag: str
    group: str = ""
    setting: bool = False
    when: Mapping[str, str] = {}
    harmless: Any = None
    metavar: str | None = None
    argument: str | None = None
    repeated: bool = False
    common: bool = False

    @property
    def variable(self) -> str:
        """The environment variable, such as ``STREAMDP_MAX_WORDS``."""
        return "STREAMDP_" + self.name.upper()


def option(group: str = "", *, setting: bool = False, **always: Any) -> Callable[..., Meta]:
    """What makes the metadata of a group's fields: of a description, and of fields of ``Option``."""

    def about(description: str, **more: Any) -> Meta:
        extra = {"group": group, "setting": setting, **always, **more}
        return Meta(description=description, extra=extra)

    return about


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


class _ByName(type(msgspec.Struct)):  # type: ignore[misc]
    """The class of structs of options: names are checked, and ``help`` shows the common ones alone."""

    def __call__(cls, *values: Any, **given: Any) -> Any:
        refuse_misspelt(given, cls.__struct_fields__)
        return super().__call__(*values, **given)

    @property
    def __signature__(cls) -> Signature:
        shown = [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default)
            for each in options_of(cls)
            if each.common
        ]
        return Signature([*shown, Parameter("others", Parameter.VAR_KEYWORD)])

    def __dir__(cls) -> list[str]:
        return []


if TYPE_CHECKING:
    Options = msgspec.Struct
else:

    class Options(msgspec.Struct, metaclass=_ByName):
        """A struct of options. ConfigError where one is made with a name that it has not."""


def refuse_misspelt(given: Iterable[str], names: Iterable[str]) -> None:
    """Raise ConfigError for the first name that is none of those, with the one that it is most like."""
    known = set(names)
    for name in given:
        if name not in known:
            raise ConfigError(f"{name}: no such setting{nearest(name, sorted(known))}")


@cache
def options_of(kind: type[msgspec.Struct]) -> tuple[Option, ...]:
    """Every option that a struct declares, in its order; a field without metadata is none."""
    struct = inspect.type_info(kind)
    hints = get_type_hints(kind, include_extras=True)
    assert isinstance(struct, inspect.StructType)
    found = []
    for field in struct.fields:
        about = field.type
        if not isinstance(about, inspect.Metadata):
            continue  # it comes from elsewhere: tables of the settings file
        said = {
            "flag": "--" + field.name.replace("_", "-"),
            "allowed": _allowed(about),
            **(about.extra_json_schema or {}),
            **(about.extra or {}),
        }
        if not said["setting"]:
            said["allowed"] = said["allowed"].removesuffix(f", or {AUTO}")
        found.append(Option(name=field.name, default=field.default, type=hints[field.name], **said))
    return tuple(found)


def grouped(options: Iterable[Option]) -> Iterator[tuple[str, list[Option]]]:
    """The title of each group that has options, with these."""
    options = list(options)
    for group, title in GROUPS.items():
        if found := [each for each in options if each.group == group]:
            yield title, found


def nearest(name: str, names: Iterable[str]) -> str:
    """A guess which of the names was meant, to end a message; empty where none is like it."""
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f", did you mean {close[0]}?" if close else ""


def refuse_meaningless(*chosen: msgspec.Struct) -> None:
    """Raise ConfigError for an option that has no meaning beside the others.

    What is asked for in ``when`` may be a property of any of the structs, or an option that is given. Wrong
    settings end with 78, wrong flags of a command with 64.
    """
    for struct in chosen:
        for names, message in getattr(struct, "ONE_OF", {}).items():
            if sum(getattr(struct, name) is not None for name in names) != 1:
                raise ConfigError(message, Exit.USAGE)
    for struct in chosen:
        for each in options_of(type(struct)):
            value = getattr(struct, each.name)
            if value in (each.default, each.harmless):
                continue
            for condition, message in each.when.items():
                if not any(getattr(other, condition, False) for other in chosen):
                    raise ConfigError(
                        message.format(name=each.name, flag=each.flag, of=struct),
                        Exit.CONFIG if each.setting else Exit.USAGE,
                    )
