"""The shape of the source: modules, functions, and the rooms of the package with the arrows between them."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.tables import show

LONG, MANY = 60, 10
"""Lines of a function, and parameters, above which it is counted."""


class Module(NamedTuple):
    """A file of the package."""

    path: Path
    room: str
    lines: int
    tree: ast.Module


def read(root: Path) -> list[Module]:
    """Every module of ``streamdp`` and of ``streamdp_connectors`` in a checkout.

    A room is a folder of ``streamdp`` or a module beside them; the connectors are one, and what belongs to
    the package itself (its ``__init__`` and the like) another.
    """
    package, connectors = root / "streamdp", root / "connectors"
    found = []
    for path in [*sorted(package.rglob("*.py")), *sorted(connectors.rglob("*.py"))]:
        inside = path.relative_to(package if package in path.parents else connectors)
        room = inside.parts[0].removesuffix(".py")
        source = path.read_text("utf-8")
        found.append(
            Module(
                path.relative_to(root),
                "streamdp" if room.startswith("_") else room,
                len(source.splitlines()),
                ast.parse(source),
            )
        )
    return found


def imported(module: Module, rooms: set[str]) -> Iterator[str]:
    """The rooms that a module imports from."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for package, _, inside in (name.partition(".") for name in names):
            room = inside.partition(".")[0]
            if package == "streamdp":
                yield room if room in rooms else "streamdp"
            elif package in rooms:
                yield package


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many a function has, the object that a method belongs to aside."""
    a = function.args
    positional = [each.arg for each in (*a.posonlyargs, *a.args)]
    starred = [each for each in (a.vararg, a.kwarg) if each is not None]
    return len(positional) - (positional[:1] in (["self"], ["cls"])) + len(a.kwonlyargs) + len(starred)


def lines_of(paths: Iterable[Path]) -> int:
    """All lines of some files."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def shape(root: Path) -> dict[str, str]:
    """What there is to say of a checkout."""
    modules = read(root)
    if not modules:
        raise SystemExit(f"no module of streamdp in {root}")
    rooms = {module.room for module in modules}
    arrows = {(m.room, room) for m in modules for room in imported(m, rooms) if room != m.room}
    functions = [
        node
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    longest = max(modules, key=lambda module: module.lines)
    source, tests = sum(m.lines for m in modules), lines_of((root / "tests").rglob("*.py"))
    return {
        "modules": f"{len(modules):,}",
        "lines of source": f"{source:,}",
        "longest module, lines": f"{longest.lines:,}",
        "which is": str(longest.path),
        "median module, lines": f"{median(m.lines for m in modules):.0f}",
        "functions": f"{len(functions):,}",
        f"functions of more than {LONG} lines": str(
            sum((node.end_lineno or 0) - node.lineno + 1 > LONG for node in functions)
        ),
        f"functions of more than {MANY} parameters": str(sum(parameters(node) > MANY for node in functions)),
        "lines of tests : lines of source": f"{tests / source:.2f}",
        "rooms": str(len(rooms)),
        "arrows between rooms": str(len(arrows)),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("path", nargs="?", type=Path, default=here, help="a checkout (default: this one)")
    parser.add_argument("--against", type=Path, metavar="PATH", help="an earlier checkout beside it")
    options = parser.parse_args()
    after = shape(options.path)
    if options.against is None:
        show("the source", ("", str(options.path)), after.items())
    else:
        before = shape(options.against)
        show("the source", ("", "before", "after"), [(name, before[name], after[name]) for name in after])


if __name__ == "__main__":
    main()
