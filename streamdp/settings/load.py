"""Where settings come from: a flag, over the environment, over ``streamdp.toml``, over the default."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from numbers import Number
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from streamdp.errors import ConfigError, Exit, foreseen
from streamdp.settings.alerts import TABLES, Alerting, alerts_of
from streamdp.settings.io_options import Input, Outputs, Serving
from streamdp.settings.options import AUTO, Option, nearest, options_of
from streamdp.settings.schema import Classes, Settings, setting_fields

CONFIG_FILE = "streamdp.toml"
"""The file read from the working directory when no path is given; it need not exist."""

_PREFIX = "STREAMDP_"
_OTHER_PREFIXES = ("STREAMDP_TEST_", "STREAMDP_KAFKA_")
"""Of the tests, and of what a Kafka client needs to log in: secrets, which are no settings."""
_NOT_SETTINGS = frozenset({"STREAMDP_CACHE_DIR", "STREAMDP_TOKEN"})

# These change neither which record gets which number nor which label it gets. Limits on what is
# accepted (size, lateness) do: a replay from a snapshot under other limits would number records anew.
_FREE_TO_CHANGE = frozenset(
    {"keep", "truth_field", "params", "snapshot_every", "snapshot_seconds", "snapshot_keep", "idle_timeout"}
)


LAYERED: tuple[type[msgspec.Struct], ...] = (Classes, Settings, Input, Outputs, Serving, Alerting)
"""Structs whose options come from the environment and the file too, where a command takes them."""


def gather(
    kinds: Iterable[type[msgspec.Struct]],
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    path: str | None,
) -> dict[str, Any]:
    """What was written of the options of some structs; every value found is checked, also one overridden.

    ``flags`` holds what the command line gave, under the options' names (None: not given); ``environ`` is the
    environment, where an empty variable counts as not set; ``path`` is the TOML file, None for
    ``streamdp.toml`` in the working directory if there is one. For a setting that may be automatic, ``auto``
    sets it back to that. Raises ``ConfigError``.
    """
    flagged = {each.name: each for kind in kinds for each in options_of(kind)}
    wanted = {name for kind in kinds if kind in LAYERED for name in kind.__struct_fields__}
    found: dict[str, Any] = {}
    if wanted:
        known = {each.name: each for kind in LAYERED for each in options_of(kind)}
        file = CONFIG_FILE if path is None else path
        table = {} if path is None and not Path(file).exists() else _read_toml(file)
        tables = table.pop(TABLES) if isinstance(table.get(TABLES), list | dict) else []
        alerts = alerts_of(tables, file)
        keys = [(key, key.replace("-", "_"), value) for key, value in table.items()]
        found = _read(f"{file}, key", keys, known, lambda option: option.name, strict=True)
        variables = _variables(environ)
        found |= _read("environment variable", variables, known, lambda option: option.variable)
        found |= {"tables": alerts} if alerts else {}
    given = []
    for name, value in flags.items():
        option = flagged.get(name.replace("-", "_"))
        flag = "--" + name.replace("_", "-") if option is None else option.flag
        given.append((flag, name.replace("-", "_"), value))
    chosen = _read("flag", given, flagged, lambda option: option.flag)
    return {name: found[name] for name in found if name in wanted} | chosen


Some = TypeVar("Some", bound=msgspec.Struct)


def checked(settings: Some) -> Some:
    """Return options that were made in Python, every value checked. Raises ``ConfigError``.

    They are read as if they stood in a file: ``auto`` means None, and 3 means 3.0 where a number need not
    be whole. Numbers of numpy become plain ones.
    """
    chosen, kind = {}, type(settings)
    for field in options_of(kind):
        value = getattr(settings, field.name)
        plain = value.item() if isinstance(value, Number) and hasattr(value, "item") else value
        place = f"setting {field.name}" if field.setting else f"{kind.__name__}: {field.name}"
        chosen[field.name] = _value(plain, field, place, strict=True)
    return kind(**chosen)


def model_settings(settings: Settings) -> dict[str, Any]:
    """The settings under which a state was made and under which alone it may be resumed."""
    plain: dict[str, Any] = msgspec.to_builtins(settings)
    plain["embed"] = settings.embed and settings.embed.removeprefix(UNNAMED)
    return {name: _stored(value) for name, value in plain.items() if name not in _FREE_TO_CHANGE}


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What differs between two results of ``model_settings``, a line each such as ``beam: was 8, is 16``.

    A setting that one side does not know (a state of another release) counts as its default.
    """
    defaults = {field.name: _stored(field.default) for field in setting_fields()}
    found = []
    for name in [*new, *(name for name in old if name not in new)]:
        before, after = (side.get(name, defaults.get(name, "no setting")) for side in (old, new))
        if before != after:
            found.append(f"{name}: was {_written(before)}, is {_written(after)}")
    return found


def resumed(
    settings: Settings, written: Container[str], before: Mapping[str, Any]
) -> tuple[Settings, list[str], list[str]]:
    """The settings with which a state goes on: where nothing was written, those under which it was made.

    ``written`` names the settings that the user has written, ``before`` are the ``model_settings`` of the
    state. Also returned: the differences to what was written, which forbid to go on, and the settings of the
    state that are not today's defaults, such as ``beam 16``. Raises as ``check_imports``.
    """
    now = model_settings(settings)
    check_imports(before, Classes.of(settings))
    kept = {name: value for name, value in before.items() if name in now and name not in written}
    changed = differences(before, {**now, **kept})
    defaults = model_settings(Settings())
    differing = [f"{name} {_written(value)}" for name, value in kept.items() if value != defaults[name]]
    return msgspec.convert(msgspec.to_builtins(settings) | kept, Settings), changed, differing


def stored_settings(stored: Mapping[str, Any], classes: Classes | None = None) -> Settings:
    """The settings of a snapshot. Raises msgspec.ValidationError, and as ``check_imports``."""
    settings, classes = msgspec.convert(stored, Settings), classes or Classes()
    check_imports(msgspec.to_builtins(settings) | {"embed": None}, classes)
    if settings.embed is None or (":" in settings.embed and settings.embed == classes.embed):
        return settings
    return unnamed(settings)  # most that reads a state needs no embedding


UNNAMED = "?"
"""Beginning of the name of an embedding that only a state has named: nothing is imported for it."""


def unnamed(settings: Settings) -> Settings:
    """The settings, with an embedding that nothing is imported for."""
    return msgspec.structs.replace(settings, embed=f"{UNNAMED}{settings.embed}")


def check_imports(stored: Mapping[str, Any], classes: Classes) -> None:
    """Raise ConfigError where a state names a class whose module the user has not named.

    To use a class is to import its module, that is, to run it; and anybody may have written the state.
    """
    for field in Classes.__struct_fields__:
        name = stored.get(field)
        if isinstance(name, str) and ":" in name and name != getattr(classes, field):
            what = "function" if field == "embed" else "class"
            raise ConfigError(
                f"{field}: the state names {_one_line(name)}, a {what} that is not streamdp's; its module is "
                f"imported only if you name it too: say --{field} {_one_line(name)}"
            )


def _stored(value: Any) -> Any:
    """A value as it comes back from a file of settings."""
    return list(value) if isinstance(value, tuple) else value


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[str, str, str | None]]:
    """Variables that may be options, the names of these, and their values."""
    for variable in sorted(environ):
        ours = variable.startswith(_PREFIX) and not variable.startswith(_OTHER_PREFIXES)
        if ours and variable not in _NOT_SETTINGS:
            name = variable.removeprefix(_PREFIX).lower() if variable.isupper() else variable
            yield variable, name, environ[variable] if environ[variable].strip() else None


def _read(
    place: str,
    given: Iterable[tuple[str, str, Any]],
    known: Mapping[str, Option],
    spelled: Callable[[Option], str],
    *,
    strict: bool = False,
) -> dict[str, Any]:
    """The values of one layer, by name.

    ``given`` says of each option how it is written there, its name, and its value, None where it has none.
    """
    found: dict[str, Any] = {}
    for written, name, value in given:
        at = f"{place} {_one_line(written)}"
        if isinstance(value, dict):
            raise ConfigError(f"{at}: is a table, but settings are written without tables")
        option = known.get(name)
        if option is None:
            raise ConfigError(f"{at}: no such setting{nearest(written, map(spelled, known.values()))}")
        if value is None or (option.repeated and value == [] and place == "flag"):
            continue
        if option.name in found:
            raise ConfigError(f"{at}: set twice, in two spellings of its name")
        if value == "" and not option.setting:
            what, code = (written, Exit.USAGE) if place == "flag" else (at, Exit.CONFIG)
            raise ConfigError(f"{what} is empty: name it, or leave it out", code)
        found[option.name] = _value(value, option, at, strict=strict)
    return found


def _read_toml(file: str) -> dict[str, Any]:
    with foreseen(ConfigError, file, "read", Exit.CONFIG):
        data = Path(file).read_bytes()
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file}, line {line}: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        # The parser gives the place only inside its message, and at the end of the file not even there.
        reason, _, place = str(error).rpartition(" (at ")
        at = re.match(r"line (\d+)", place)
        line = int(at[1]) if at else len(data.splitlines())
        raise ConfigError(f"{file}, line {line}: not TOML: {reason}") from error


def _value(value: Any, field: Option, place: str, *, strict: bool = False) -> Any:
    """``value`` in the option's type; when not ``strict``, whole numbers and truth values may be strings.

    Other numbers may be strings anywhere, as Python writes them: TOML itself has no ``.7``.
    """
    wanted = value
    if isinstance(wanted, str) and (field.setting or field.repeated):
        wanted = wanted.strip()
        if field.default is None and wanted == AUTO:
            return None
        if field.repeated:
            wanted = [wanted]
        elif isinstance(field.default, tuple):
            wanted = [part.strip() for part in wanted.split(",") if part.strip()]
    try:
        converted = msgspec.convert(wanted, field.type, strict=strict)
    except msgspec.ValidationError:
        converted = _as_python_reads(wanted, field, strict)
    # NaN passes no comparison and infinity passes most, so both are refused here, by name.
    if isinstance(converted, float) and not math.isfinite(converted):
        raise ConfigError(f"{place}: {_shown(value)} is not allowed, must be {field.allowed}")
    return converted


def _as_python_reads(wanted: Any, field: Option, strict: bool) -> Any:
    """A number that JSON would write otherwise, such as ``.7``, ``5.`` or ``1_000``; NaN where it is none."""
    try:
        return (
            msgspec.convert(float(wanted), field.type, strict=strict) if isinstance(wanted, str) else math.nan
        )
    except ValueError:  # what msgspec raises, too
        return math.nan


def _one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _shown(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return AUTO if value is None else str(value)
