"""Sources and sinks by kind: our own, and by the scheme of an address those of installed packages."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from streamdp_connectors.protocol import Sink, SinkRequest, Source, SourceRequest

from streamdp.errors import ConfigError, Exit
from streamdp.settings.options import nearest
from streamdp.settings.places import scheme_of, without_password

SOURCES, SINKS = "streamdp.sources", "streamdp.sinks"
"""The groups of entry points. The name of one is the scheme of its addresses."""

_OWN = {
    SOURCES: {
        name: f"streamdp.cli.reading:open_{name}"
        for name in ("file", "folder", "npy", "parquet", "journal", "topic")
    },
    SINKS: {name: f"streamdp.cli.writing:open_{name}" for name in ("file", "topic", "store")},
}


@cache
def _found(group: str) -> dict[str, EntryPoint]:
    own = {name: EntryPoint(name, value, group) for name, value in _OWN[group].items()}
    return {each.name: each for each in entry_points(group=group)} | own


def source_of(kind: str, request: SourceRequest) -> Source:
    """Open a source. Raises ConfigError, or SourceError."""
    source: Source = _opened(SOURCES, kind, request, Source)
    return source


def sink_of(kind: str, request: SinkRequest) -> Sink[Any]:
    """Open a sink. Raises ConfigError, or SinkError."""
    sink: Sink[Any] = _opened(SINKS, kind, request, Sink)
    return sink


def _opened(group: str, kind: str, request: SourceRequest | SinkRequest, contract: Any) -> Any:
    what, found = contract.__name__.lower(), _found(group)
    if scheme_of(request.address) is None:
        return found[kind].load()(request)
    if kind not in found or kind in _OWN[group]:
        others = sorted({*found} - {*_OWN[group]})
        here = (
            f"there are {', '.join(f'{name}://' for name in others)}" if others else "no package brings one"
        )
        near = nearest(kind, others)
        raise ConfigError(f"there is no {what} for {kind}:// ({here}{near})", Exit.USAGE)
    where, place = without_password(request.address), found[kind].value
    try:
        opened = found[kind].load()(request)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{where}: the {what} {place} does not load: {error}") from None
    except (ValueError, OSError) as error:
        raise ConfigError(f"{where}: {error}", Exit.USAGE) from None
    if not isinstance(opened, contract):
        lacking = [name for name in _members(contract) if not hasattr(opened, name)]
        raise ConfigError(f"{where}: what {place} opens is no {what}: it lacks {', '.join(lacking)}")
    return opened


def _members(contract: Any) -> list[str]:
    return [name for name in vars(contract) if not name.startswith("_")]
