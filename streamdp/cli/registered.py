"""Sources and sinks: our own by name, and by the scheme of an address those of installed packages."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from streamdp_connectors.protocol import Sink, SinkRequest, Source, SourceRequest

from streamdp.errors import ConfigError, Exit
from streamdp.settings.io_options import scheme_of, without_password
from streamdp.settings.options import nearest

SOURCES, SINKS = "streamdp.sources", "streamdp.sinks"
"""The groups of entry points. The name of one is the scheme of its addresses."""

_OWN = {
    SOURCES: {
        name: f"streamdp.cli.reading:open_{name}"
        for name in ("file", "folder", "npy", "parquet", "journal", "topic")
    },
    SINKS: {name: f"streamdp.cli.writing:open_{name}" for name in ("file", "parquet", "topic", "store")},
}


@cache
def _found(group: str) -> dict[str, EntryPoint]:
    own = {name: EntryPoint(name, value, group) for name, value in _OWN[group].items()}
    return {each.name: each for each in entry_points(group=group)} | own


def source_of(name: str, request: SourceRequest) -> Source:
    """Open a source. Raises ConfigError, or SourceError."""
    source: Source = _opened(SOURCES, name, request, Source)
    return source


def sink_of(name: str, request: SinkRequest) -> Sink[Any]:
    """Open a sink. Raises ConfigError, or SinkError."""
    sink: Sink[Any] = _opened(SINKS, name, request, Sink)
    return sink


def _opened(group: str, name: str, request: SourceRequest | SinkRequest, contract: Any) -> Any:
    what, found = contract.__name__.lower(), _found(group)
    if scheme_of(request.address) is None:
        return found[name].load()(request)
    if name not in found or name in _OWN[group]:
        raise ConfigError(f"there is no {what} for {name}:// ({_others(name, group)})", Exit.USAGE)
    where, place = without_password(request.address), found[name].value
    try:
        made = found[name].load()
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{where}: the {what} {place} does not load: {error}") from None
    try:
        opened = made(request)
    except (ImportError, ValueError, OSError) as error:
        raise ConfigError(f"{where}: {error}", Exit.USAGE) from None
    if not isinstance(opened, contract):
        lacking = [each for each in _members(contract) if not hasattr(opened, each)]
        raise ConfigError(f"{where}: what {place} opens is no {what}: it lacks {', '.join(lacking)}")
    return opened


def _others(scheme: str, group: str) -> str:
    """What there is instead of a scheme."""
    if scheme in ("file", "kafka"):
        topic = "--topic NAME" if group == SOURCES else "--output-topic NAME"
        return "name the file itself" if scheme == "file" else f"a topic is {topic}"
    others = sorted({*_found(group)} - {*_OWN[group]})
    here = ", ".join(f"{name}://" for name in others)
    return f"there are {here}{nearest(scheme, others)}" if others else "no package brings one"


def _members(contract: Any) -> list[str]:
    return [name for name in vars(contract) if not name.startswith("_")]
