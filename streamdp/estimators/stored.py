"""A model in a file of our own format: a line that says what it is, a checksum, and msgpack."""

from __future__ import annotations

import dataclasses
import os
import sys
import zlib
from pathlib import Path
from typing import Any

import msgspec

from streamdp.errors import Exit, StreamdpError
from streamdp.safe_files import create, open_regular
from streamdp.settings import Settings
from streamdp.settings.blueprint import PARTS

HEAD = b"streamdp model 1\n"
SUM = 4
"""Bytes of the checksum."""

_FAULTS = (msgspec.MsgspecError, ValueError, TypeError, LookupError, AttributeError, RecursionError)
"""What making a model of other values may raise."""


def write(path: Path, state: dict[str, Any], *, overwrite: bool) -> None:
    """Write it, whole or not at all. StreamdpError where a file is in the way that is no model of ours."""
    if path.exists() and not (overwrite and _begins(path)):
        why = "overwrite=True replaces it" if _begins(path) else "and it is no model of streamdp"
        raise StreamdpError(f"{path}: is there already; {why}", Exit.CANNOT_CREATE)
    body = msgspec.msgpack.encode(_plain(state))
    part = path.with_name(path.name + ".part")
    try:
        with open(create(part), "wb") as file:
            file.write(HEAD + zlib.crc32(body).to_bytes(SUM, "big") + body)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise StreamdpError(f"{path}: cannot be written: {error.strerror}", Exit.CANNOT_CREATE) from error


def read(path: Path) -> dict[str, Any]:
    """What was written. StreamdpError where it is damaged."""
    try:
        with open(open_regular(path, follow=True), "rb") as file:
            data = file.read()
    except OSError as error:
        raise StreamdpError(f"{path}: cannot be read: {error.strerror}", Exit.NO_INPUT) from error
    body = data[len(HEAD) + SUM :]
    if not data.startswith(HEAD):
        raise StreamdpError(f"{path}: is no model of streamdp", Exit.BAD_DATA)
    if zlib.crc32(body).to_bytes(SUM, "big") != data[len(HEAD) : len(HEAD) + SUM]:
        raise StreamdpError(f"{path}: is damaged", Exit.BAD_DATA)
    try:
        state: dict[str, Any] = _made(msgspec.msgpack.decode(body, strict=False))
    except _FAULTS as error:
        raise StreamdpError(f"{path}: is damaged ({error})", Exit.BAD_DATA) from None
    return state


def _begins(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(HEAD)) == HEAD
    except OSError:
        return False


def _plain(value: Any) -> Any:
    """Objects of a model by their class and fields."""
    if isinstance(value, Settings):
        return {"settings!": msgspec.to_builtins(value)}
    if isinstance(value, PARTS):
        own: Any = value
        fields = {f.name: _plain(getattr(own, f.name)) for f in dataclasses.fields(own) if f.init}
        return {"object!": f"{type(value).__module__}:{type(value).__qualname__}", "fields": fields}
    if isinstance(value, dict):
        return {"pairs!": [[_plain(key), _plain(each)] for key, each in value.items()]}
    if isinstance(value, tuple):
        return {"tuple!": [_plain(each) for each in value]}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value


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
