"""The shape of the package: which rooms may know which, no circle of imports, no module too long."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT / "streamdp", ROOT / "connectors" / "streamdp_connectors")

LAYERS = (
    "_version errors records checks registry",
    "kernels",
    "priors likelihoods lines",
    "decode settings offline.kernels",
    "encode settings.reading",
    "beam",
    "state",
    "answers",
    "settings.assemble",
    "settings.blueprint",
    "offline",
    "inside",
    "engine",
    "offline.handover",
    "offline.refine offline.fit",
    "sharding",
    "estimators scoring monitor demo plots page spark streamdp_connectors",
    "cli",
    "__main__ streamdp",
)
"""The rooms from low to high: a room knows those of the layers below it, and none beside it.

A room is a module of ``streamdp``, or a folder without the rooms inside it that are named here. The last,
``streamdp``, is what the package itself offers.
"""

ONLY = {
    "offline.kernels": ("streamdp.kernels", "streamdp.priors", "streamdp.likelihoods"),
    "likelihoods": ("streamdp.kernels", "streamdp.checks"),
    "lines": ("streamdp.kernels",),
    "streamdp_connectors": (
        "streamdp.errors",
        "streamdp.records",
        "streamdp.decode.columns",  # the rows of a CSV file
        "streamdp.decode.fields",
    ),
}
"""Rooms that know less than their layer lets them: modules, or folders with all that is in them."""

LONGEST = 400


class Module(NamedTuple):
    """A module, its lines, and the modules of the two packages that it imports."""

    name: str
    lines: int
    imports: frozenset[str]


def modules() -> dict[str, Module]:
    """Every module by name."""
    paths = {_name(path, package): path for package in PACKAGES for path in sorted(package.rglob("*.py"))}
    found = {}
    for name, path in paths.items():
        source = path.read_text("utf-8")
        imported = {
            target
            for names in _imported(ast.parse(source))
            if (target := next((n for n in names if n in paths), None)) is not None
        }
        found[name] = Module(name, len(source.splitlines()), frozenset(imported))
    return found


def _name(path: Path, package: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """What is imported anywhere below, but for type checking: what it may name, the likeliest first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name,) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports name the whole path"
            for alias in child.names:
                yield f"{child.module}.{alias.name}", str(child.module)
        elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            yield from (names for each in child.orelse for names in _imported(ast.Module([each], [])))
        else:
            yield from _imported(child)


def folders(name: str) -> set[str]:
    """The packages around a module."""
    parts = name.split(".")
    return {".".join(parts[:n]) for n in range(1, len(parts))}


LAYER_OF = {room: layer for layer, rooms in enumerate(LAYERS) for room in rooms.split()}
MODULES = modules()


def room_of(name: str) -> str:
    """The innermost room that a module is in."""
    inside = name.removeprefix("streamdp.")
    around = [room for room in LAYER_OF if f"{inside}.".startswith(f"{room}.")]
    assert around, f"{name} is in no room of LAYERS"
    return max(around, key=len)


def may_know(room: str, target: str) -> bool:
    """Whether modules of a room may import one of another room."""
    allowed = ONLY.get(room)
    if allowed is not None and not any(f"{target}.".startswith(f"{prefix}.") for prefix in allowed):
        return False
    return LAYER_OF[room_of(target)] < LAYER_OF[room]


def test_no_circle_of_imports() -> None:
    graph: dict[str, set[str]] = {}
    for module in MODULES.values():
        # importing a module runs the packages around it; those around the importer are running already
        run = {each for target in module.imports for each in folders(target)} - folders(module.name)
        graph[module.name] = (set(module.imports) | run) - {module.name}
    TopologicalSorter(graph).prepare()  # a CycleError names the circle


def test_imports_point_down() -> None:
    wrong: dict[tuple[str, str], list[str]] = {}
    for module in MODULES.values():
        room = room_of(module.name)
        for target in module.imports:
            if room_of(target) != room and not may_know(room, target):
                wrong.setdefault((room, target), []).append(module.name)
    assert {arrow: sorted(names) for arrow, names in wrong.items()} == {}


def test_no_module_is_too_long() -> None:
    assert {module.name: module.lines for module in MODULES.values() if module.lines > LONGEST} == {}


@pytest.mark.parametrize(
    ("room", "target", "allowed"),
    [
        ("cli", "streamdp.offline.fit", True),
        ("engine", "streamdp.cli.app", False),
        ("priors", "streamdp.likelihoods.base", False),
        ("likelihoods", "streamdp.beam.model", False),
        ("settings", "streamdp.settings.assemble", False),
        ("settings.assemble", "streamdp.settings.load", True),
        ("offline", "streamdp.offline.kernels.store", True),
        ("offline.kernels", "streamdp.offline.chain", False),
        ("offline.kernels", "streamdp.records", False),
        ("streamdp_connectors", "streamdp.decode.decoder", False),
        ("engine", "streamdp_connectors.files", False),
    ],
)
def test_the_rules_say_what_is_meant(room: str, target: str, allowed: bool) -> None:
    assert may_know(room, target) is allowed


def test_imports_are_found_where_they_hide() -> None:
    source = """
import a.b
def f():
    from c import d, e
class C:
    try:
        import g
    except ImportError:
        pass
if typing.TYPE_CHECKING:
    import h
else:
    import i
"""
    found = list(_imported(ast.parse(source)))
    assert found == [("a.b",), ("c.d", "c"), ("c.e", "c"), ("g",), ("i",)]


def test_no_module_asks_what_class_a_prior_is_of() -> None:
    asks = re.compile(r"isinstance\((\w+\.)*_?prior,|match (\w+\.)*_?prior:")
    rooms = (path for path in (ROOT / "streamdp").rglob("*.py") if "priors" not in path.parts)
    assert [path.name for path in rooms if asks.search(path.read_text("utf-8"))] == []
