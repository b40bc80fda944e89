"""Models in files of streamdp's own format: a line with its name, a checksum, and msgpack."""

from __future__ import annotations

import dataclasses
import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec

from streamdp.errors import Exit, StreamdpError, foreseen
from streamdp.safe_files import open_regular, replaced
from streamdp.settings import Settings
from streamdp.settings.blueprint import PARTS
from streamdp.settings.load import UNNAMED, unnamed
from streamdp.state.stamp import FormatError, checked, stamped

NAME = b"streamdp model "
HEAD = NAME + b"2\n"
SUM = 4
"""Bytes of the checksum."""

_FAULTS = (msgspec.MsgspecError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What making a model of other values may raise."""


def write(path: Path, state: dict[str, Any], *, overwrite: bool) -> None:
    """Write it, whole or not at all. StreamdpError where a file is in the way that is no model of ours."""
    if path.exists() and not (overwrite and _begins(path)):
        why = "overwrite=True replaces it" if _begins(path) else "and it is no model of streamdp"
        raise StreamdpError(f"{path}: is there already; {why}", Exit.CANNOT_CREATE)
    body = msgspec.msgpack.encode(stamped({"state": _plain(state)}))
    with foreseen(StreamdpError, path, "written", Exit.CANNOT_CREATE), replaced(path) as file:
        file.write(HEAD + zlib.crc32(body).to_bytes(SUM, "big") + body)


def read(path: Path, embed: str | None = None) -> dict[str, Any]:
    """What was written, with the function ``embed`` and no other. StreamdpError where it is damaged."""
    with (
        foreseen(StreamdpError, path, "read", Exit.NO_INPUT),
        open(open_regular(path, follow=True), "rb") as file,
    ):
        data = file.read()
    body = data[len(HEAD) + SUM :]
    if not data.startswith(NAME):
        raise StreamdpError(f"{path}: is no model of streamdp", Exit.BAD_DATA)
    if zlib.crc32(body).to_bytes(SUM, "big") != data[len(HEAD) : len(HEAD) + SUM]:
        raise StreamdpError(f"{path}: is damaged", Exit.BAD_DATA)
    try:
        stored = checked(msgspec.msgpack.decode(body, strict=False), "learn it anew")
        state: dict[str, Any] = _made(stored["state"])
        settings = state["parameters"].get("settings")
        if settings is not None and settings.embed != embed and ":" in (settings.embed or ""):
            state["parameters"]["settings"] = unnamed(settings)
    except FormatError as error:
        raise StreamdpError(f"{path}: {error.message}", error.exit_code) from None
    except _FAULTS as error:
        raise StreamdpError(f"{path}: is damaged ({error})", Exit.BAD_DATA) from None
    return state


def _begins(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(NAME)) == NAME
    except OSError:
        return False


def _plain(value: Any) -> Any:
    """Objects of a model by their class and fields."""
    if isinstance(value, Settings):
        embed = value.embed and value.embed.removeprefix(UNNAMED)
        return {"settings!": msgspec.to_builtins(value) | {"embed": embed}}
    if isinstance(value, PARTS):
        own: Any = value
        fields = {f.name: _plain(getattr(own, f.name)) for f in dataclasses.fields(own) if f.init}
        return {"object!": _name_of(type(value)), "fields": fields}
    if isinstance(value, dict):
        return {"pairs!": [[_plain(key), _plain(each)] for key, each in value.items()]}
    if isinstance(value, tuple):
        return {"tuple!": [_plain(each) for each in value]}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


def _name_of(kind: type) -> str:
    """Where a class is found: of streamdp's own, under the public name, since modules may move."""
    for room in ("streamdp.priors", "streamdp.likelihoods"):
        if getattr(sys.modules.get(room), kind.__name__, None) is kind:
            return f"{room}:{kind.__name__}"
    return f"{kind.__module__}:{kind.__qualname__}"


def _made(value: Any) -> Any:
    """The inverse of :func:`_plain`."""
    if isinstance(value, list):
        return [_made(each) for each in value]
    if not isinstance(value, dict):
        return value
    if "settings!" in value:
        return msgspec.convert(value["settings!"], Settings, strict=False)
    if "tuple!" in value:
        return tuple(_made(value["tuple!"]))
    if "pairs!" in value:
        return {_made(key): _made(each) for key, each in value["pairs!"]}
    name = str(value["object!"])
    module, _, attribute = name.partition(":")
    if module not in sys.modules:  # a file may name any module, and to import one is to run it
        raise StreamdpError(f"{name} is not imported: import it before the model is read", Exit.CONFIG)
    found = getattr(sys.modules[module], attribute, None)
    if not (isinstance(found, type) and issubclass(found, PARTS)):
        raise StreamdpError(f"{name} is no part of a model", Exit.BAD_DATA)
    return found(**{name: _made(each) for name, each in value["fields"].items()})
