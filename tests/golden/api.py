"""What ``import streamdp`` offers, a line for each name and parameter; compared from release to release."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import msgspec

import streamdp


def listing() -> list[str]:
    """Names, and parameters: ``name: parameter``, with ``=`` behind it where it may be left out."""
    return sorted(_of_module(streamdp, "streamdp"))


def broken(before: Iterable[str], now: Iterable[str]) -> list[str]:
    """Lines of a listing that are gone, and parameters that have become necessary."""
    old, new = set(before), set(now)
    names = {line for line in old if ":" not in line}
    needed = {line for line in new - old if ":" in line and not line.endswith(("=", "*"))}
    return sorted((old - new) | {line for line in needed if line.partition(":")[0] in names})


def _of_module(module: ModuleType, place: str) -> Iterator[str]:
    yield place
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        if isinstance(found, ModuleType):
            yield from _of_module(found, f"{place}.{name}")
        else:
            yield from _of_object(found, f"{place}.{name}")


def _of_object(found: Any, place: str) -> Iterator[str]:
    yield place
    if not callable(found):
        return
    for each in _parameters(found):
        yield f"{place}: {each}"
    if inspect.isclass(found):
        for name, member in _members(found):
            yield f"{place}.{name}"
            if callable(member):
                for each in _parameters(member):
                    yield f"{place}.{name}: {each}"


def _parameters(found: Any) -> Iterator[str]:
    if isinstance(found, type) and issubclass(found, msgspec.Struct):  # whose help shows some alone
        for field in msgspec.structs.fields(found):
            yield field.name if field.required else f"{field.name}="
        return
    try:
        signature = inspect.signature(found)
    except ValueError:
        return
    for name, each in signature.parameters.items():
        if name in ("self", "cls") or name.startswith("_"):
            continue
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            yield f"{name}*"
        else:
            yield name if each.default is each.empty else f"{name}="


def _members(found: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that streamdp defines."""
    ours = [base for base in found.__mro__ if base.__module__.startswith("streamdp")]
    for name in sorted({name for base in ours for name in vars(base) if not name.startswith("_")}):
        member = inspect.getattr_static(found, name)
        if isinstance(member, property) or not callable(getattr(found, name)):
            yield name, None
        else:
            yield name, getattr(found, name)
