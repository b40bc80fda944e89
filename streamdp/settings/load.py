"""Where settings come from: a flag, over the environment, over ``streamdp.toml``, over the default."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from numbers import Number
from pathlib import Path
from typing import Any

import msgspec

from streamdp.errors import Exit, StreamdpError
from streamdp.settings.schema import AUTO, SettingField, Settings, setting_fields

__all__ = [
    "CONFIG_FILE",
    "ConfigError",
    "SettingField",
    "Settings",
    "checked",
    "differences",
    "load",
    "model_settings",
    "setting_fields",
]

CONFIG_FILE = "streamdp.toml"
"""The file read from the working directory when no path is given; it need not exist."""

_PREFIX = "STREAMDP_"
_OTHER_PREFIXES = ("STREAMDP_TEST_", "STREAMDP_KAFKA_")
"""Of the tests, and of what a Kafka client needs to log in: secrets, which are no settings."""
_NOT_SETTINGS = frozenset({"STREAMDP_CACHE_DIR"})

# These change neither which record gets which number nor which label it gets. Limits on what is
# accepted (size, lateness) do: a replay from a snapshot under other limits would number records anew.
_FREE_TO_CHANGE = frozenset(
    {"keep", "params", "snapshot_every", "snapshot_seconds", "snapshot_keep", "idle_timeout"}
)


class ConfigError(StreamdpError):
    """Settings or options that cannot be used; the message names the place."""

    def __init__(self, message: str, exit_code: Exit = Exit.CONFIG) -> None:
        super().__init__(message, exit_code)


def load(flags: dict[str, Any], environ: Mapping[str, str], path: str | None) -> Settings:
    """Put the settings together; every value found is checked, also one that another overrides.

    ``flags`` holds what the command line gave, under the settings' names (None: not given);
    ``environ`` is the environment, where an empty variable counts as not set; ``path`` is the TOML
    file, None for ``streamdp.toml`` in the working directory if there is one. For a setting that may
    be automatic, ``auto`` sets it back to that. Raises ``ConfigError``.
    """
    chosen: dict[str, Any] = {}
    fields = {field.name: field for field in setting_fields()}
    chosen.update(_from_file(path, fields))
    chosen.update(_from_environment(environ, fields))
    chosen.update(_from_flags(flags, fields))
    return Settings(**chosen)


def checked(settings: Settings) -> Settings:
    """Return settings that were made in Python, every value checked. Raises ``ConfigError``.

    They are read as if they stood in a file: ``auto`` means None, and 3 means 3.0 where a number need not
    be whole. Numbers of numpy become plain ones.
    """
    chosen = {}
    for field in setting_fields():
        value = getattr(settings, field.name)
        plain = value.item() if isinstance(value, Number) and hasattr(value, "item") else value
        chosen[field.name] = _value(plain, field, f"setting {field.name}", strict=True)
    return Settings(**chosen)


def model_settings(settings: Settings) -> dict[str, Any]:
    """The settings under which a state was made and under which alone it may be resumed."""
    plain: dict[str, Any] = msgspec.to_builtins(settings)
    return {name: _stored(value) for name, value in plain.items() if name not in _FREE_TO_CHANGE}


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
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


def _stored(value: Any) -> Any:
    """A value as it comes back from a file of settings."""
    return list(value) if isinstance(value, tuple) else value


def _from_file(path: str | None, fields: dict[str, SettingField]) -> dict[str, Any]:
    file = CONFIG_FILE if path is None else path
    if path is None and not Path(file).exists():
        return {}
    found: dict[str, Any] = {}
    for key, value in _read_toml(file).items():
        place = f"{file}, key {_one_line(key)}"
        if isinstance(value, dict):
            raise ConfigError(f"{place}: is a table, but settings are written without tables")
        name = key.replace("-", "_")
        if name not in fields:
            raise ConfigError(f"{place}: no such setting{_nearest(name, fields)}")
        if name in found:
            raise ConfigError(f"{place}: set twice, once with - and once with _")
        found[name] = _value(value, fields[name], place, strict=True)
    return found


def _from_environment(environ: Mapping[str, str], fields: dict[str, SettingField]) -> dict[str, Any]:
    by_variable = {field.variable: field for field in fields.values()}
    found = {}
    for variable in sorted(environ):
        if not variable.startswith(_PREFIX) or variable.startswith(_OTHER_PREFIXES):
            continue
        if variable in _NOT_SETTINGS:
            continue
        place = f"environment variable {_one_line(variable)}"
        if variable not in by_variable:
            raise ConfigError(f"{place}: no such setting{_nearest(variable, by_variable)}")
        if environ[variable].strip():
            field = by_variable[variable]
            found[field.name] = _value(environ[variable], field, place)
    return found


def _from_flags(flags: dict[str, Any], fields: dict[str, SettingField]) -> dict[str, Any]:
    by_flag = {field.flag: field for field in fields.values()}
    found = {}
    for name, value in flags.items():
        flag = "--" + name.replace("_", "-")
        if flag not in by_flag:
            raise ConfigError(f"flag {_one_line(flag)}: no such setting{_nearest(flag, by_flag)}")
        if value is not None:
            field = by_flag[flag]
            found[field.name] = _value(value, field, f"flag {flag}")
    return found


def _read_toml(file: str) -> dict[str, Any]:
    try:
        data = Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}") from error
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


def _value(value: Any, field: SettingField, place: str, *, strict: bool = False) -> Any:
    """``value`` in the field's type; when not ``strict``, numbers and truth values may be strings."""
    wanted = value
    if isinstance(wanted, str):
        wanted = wanted.strip()
        if field.default is None and wanted == AUTO:
            return None
        if isinstance(field.default, tuple):
            wanted = [part.strip() for part in wanted.split(",") if part.strip()]
    try:
        converted = msgspec.convert(wanted, field.type, strict=strict)
    except msgspec.ValidationError:
        converted = math.nan
    # NaN passes no comparison and infinity passes most, so both are refused here, by name.
    if isinstance(converted, float) and not math.isfinite(converted):
        raise ConfigError(f"{place}: {_shown(value)} is not allowed, must be {field.allowed}")
    return converted


def _nearest(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f", did you mean {close[0]}?" if close else ""


def _one_line(name: str) -> str:
    return name if name.isprintable() else repr(name)


def _shown(value: object) -> str:
    text = repr(value).replace("\n", " ")
    return text if len(text) <= 80 else text[:77] + "..."


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return AUTO if value is None else str(value)
