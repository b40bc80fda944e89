"""Sources and sinks: our own by name, and by the scheme of an address those of installed packages."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import Distribution, EntryPoint, PackageNotFoundError, distribution, entry_points
from typing import Any

from streamdp_connectors.protocol import SinkRequest, SourceRequest

from streamdp.errors import ConfigError, Exit
from streamdp.settings.io_options import scheme_of, without_password
from streamdp.settings.options import nearest

SOURCES, SINKS = "streamdp.sources", "streamdp.sinks"
"""The groups of entry points. The name of one is the scheme of its addresses."""

_OWN = {
    SOURCES: {
        name: f"streamdp.run.reading:open_{name}"
        for name in ("file", "folder", "npy", "parquet", "journal", "topic")
    },
    SINKS: {name: f"streamdp.run.writing:open_{name}" for name in ("file", "parquet", "topic", "store")},
}


@cache
def _found(group: str) -> dict[str, EntryPoint]:
    own = {name: EntryPoint(name, value, group) for name, value in _OWN[group].items()}
    return {each.name: each for each in entry_points(group=group)} | own


def opened(group: str, name: str, request: SourceRequest | SinkRequest, contract: Any) -> Any:
    """Open a source or a sink. Raises ConfigError, SourceError or SinkError."""
    what, found = contract.__name__.lower(), _found(group)
    if scheme_of(request.address) is None:
        return found[name].load()(request)
    if name not in found or name in _OWN[group]:
        raise _missing(what, name, group)
    where, place = without_password(request.address), found[name].value
    made: Any = None
    try:
        made = found[name].load()
        opened = made(request)
    except ModuleNotFoundError as error:
        wrong = f"the {what} {place} does not load: {error}: {_how_to_mend(found[name].dist)}"
        raise ConfigError(f"{where}: {wrong}", Exit.UNAVAILABLE) from None
    except (ImportError, AttributeError, ValueError, OSError) as error:
        if made is None:
            raise ConfigError(f"{where}: the {what} {place} does not load: {error}") from None
        if isinstance(error, AttributeError):  # a defect of the package
            raise
        raise ConfigError(f"{where}: {error}", Exit.USAGE) from None
    if not isinstance(opened, contract):
        lacking = [each for each in _members(contract) if not hasattr(opened, each)]
        raise ConfigError(f"{where}: what {place} opens is no {what}: it lacks {', '.join(lacking)}")
    return opened


def _missing(what: str, scheme: str, group: str) -> ConfigError:
    """Why an address of a scheme is refused that no installed package has, and what to do."""
    none = f"there is no {what} for {scheme}://"
    if scheme in ("file", "kafka"):
        topic = "--topic NAME" if group == SOURCES else "--output-topic NAME"
        instead = "name the file itself" if scheme == "file" else f"a topic is {topic}"
        return ConfigError(f"{none} ({instead})", Exit.USAGE)
    others = sorted({*_found(group)} - {*_OWN[group]})
    here = ", ".join(f"{name}://" for name in others)
    if guess := nearest(scheme, others):
        return ConfigError(f"{none} (there are {here}{guess})", Exit.USAGE)
    installed = f"there are {here}" if others else "no package brings one"
    how = "pip install the package that has it (examples/ of streamdp has some), or write one"
    return ConfigError(f"{none} ({installed}): {how} (docs/connectors.md)", Exit.UNAVAILABLE)


def _how_to_mend(package: Distribution | None) -> str:
    """How what a package imports is installed."""
    assert package is not None  # only our own entries have none
    names = [found[0] for each in package.requires or () if (found := re.match(r"[\w.-]+(?!.*;)", each))]
    missing = [name for name in names if not _is_installed(name)]
    return f"pip install {' '.join(missing)}" if missing else f"install {package.name} again"


def _is_installed(name: str) -> bool:
    try:
        return distribution(name) is not None
    except PackageNotFoundError:
        return False


def _members(contract: Any) -> list[str]:
    return [name for name in vars(contract) if not name.startswith("_")]
