"""The shape of the source: modules, functions, imports, and the ideas of which there are to be fewer."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.tables import show

LONG, MANY = 60, 10
"""A function is long with more lines, and has many parameters from so many on."""

KINDS = re.compile(
    r"(Beam|Template|Line)Stream|(Word|Vector|Category|Bag)Encoder|EmbeddedTexts"
    r"|(Vector|Bag|Word)Family|(Word|Vector|Category|Vectored)Clusters|WordStore|Categorical"
)
"""Classes of which each is for one kind of records or streams: whoever asks for one asks for the kind."""

SAYS_KIND = ("kind", "of_lines", "of_texts", "sparse", "dense")
"""Names that say which kind it is."""


class Module(NamedTuple):
    """A file of the package, and the modules of the package that it imports, for typing or not."""

    name: str
    path: Path
    lines: int
    tree: ast.Module
    imports: frozenset[str]

    @property
    def room(self) -> str:
        """A folder of ``streamdp`` or a module beside them; ``streamdp`` for the package itself."""
        package, _, inside = self.name.partition(".")
        room = inside.partition(".")[0]
        return package if package != "streamdp" or not room or room.startswith("_") else room


def read(root: Path) -> dict[str, Module]:
    """Every module of ``streamdp`` and ``streamdp_connectors`` in a checkout, by name."""
    sources = {
        _name(path.relative_to(around)): path
        for around, package in ((root, "streamdp"), (root / "connectors", "streamdp_connectors"))
        for path in sorted((around / package).rglob("*.py"))
    }
    found = {}
    for name, path in sources.items():
        source = path.read_text("utf-8")
        tree = ast.parse(source)
        named = (next((n for n in names if n in sources), None) for names in imported(tree))
        imports = frozenset(target for target in named if target is not None)
        found[name] = Module(name, path.relative_to(root), len(source.splitlines()), tree, imports)
    return found


def _name(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.AST) -> Iterator[tuple[str, ...]]:
    """Each import, wherever it is: the modules that it may name, the likeliest first."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name,) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the full path"
            yield from ((f"{node.module}.{alias.name}", str(node.module)) for alias in node.names)


def folders(name: str) -> set[str]:
    """The packages around a module."""
    parts = name.split(".")
    return {".".join(parts[:n]) for n in range(1, len(parts))}


def circles(modules: Mapping[str, Module]) -> list[list[str]]:
    """Circles of imports: one through each group of modules that import each other."""
    graph = {}
    for module in modules.values():
        # importing a module runs the packages around it; those around the importer are running already, and
        # ``streamdp`` itself imports what it offers only when that is used
        run = {each for target in module.imports for each in folders(target)} - folders(module.name)
        run.discard("streamdp")
        graph[module.name] = (module.imports | run) - {module.name}
    found: list[list[str]] = []
    while True:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            found.append(error.args[1])
            gone = set(found[-1])
            graph = {name: targets - gone for name, targets in graph.items() if name not in gone}
        else:
            return found


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many a function has, the object that a method belongs to aside."""
    a = function.args
    positional = [each.arg for each in (*a.posonlyargs, *a.args)]
    starred = [each for each in (a.vararg, a.kwarg) if each is not None]
    return len(positional) - (positional[:1] in (["self"], ["cls"])) + len(a.kwonlyargs) + len(starred)


def called(node: ast.AST) -> str:
    """The last part of a name, as in ``pool.meta``; empty for all else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def asks_for_prior(node: ast.AST) -> bool:
    """Whether it is ``isinstance(prior, ...)``."""
    return (
        isinstance(node, ast.Call) and called(node.func) == "isinstance" and called(node.args[0]) == "prior"
    )


def asks_for_kind(node: ast.AST) -> bool:
    """Whether it asks which kind of records, or of stream, it has."""
    if isinstance(node, ast.Call) and called(node.func) == "isinstance":
        asked = node.args[1]
        classes = asked.elts if isinstance(asked, ast.Tuple) else [*ast.walk(asked)]
        return any(KINDS.fullmatch(called(each)) for each in classes)
    if isinstance(node, ast.Compare):
        return called(node.left) == "kind"
    if isinstance(node, ast.If | ast.IfExp | ast.While):
        test = node.test.operand if isinstance(node.test, ast.UnaryOp) else node.test
        return called(test) in SAYS_KIND
    return False


def knows_of(module: Module, idea: str) -> bool:
    """Whether a module's own names, or those that it uses, speak of something; not its texts."""
    names = (
        getattr(node, field, None)
        for node in ast.walk(module.tree)
        for field in ("id", "attr", "name", "arg", "module", "asname")
    )
    return any(isinstance(name, str) and idea in name.lower() for name in names)


def stores_itself(node: ast.AST) -> bool:
    """Whether it is a class that dumps and loads itself."""
    if not isinstance(node, ast.ClassDef):
        return False
    return {"dump", "load"} <= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}


def is_named_tuple(node: ast.AST) -> bool:
    """Whether it is the class of a named tuple."""
    return isinstance(node, ast.ClassDef) and any(called(base) == "NamedTuple" for base in node.bases)


def is_generic(node: ast.AST) -> bool:
    """Whether it is a kernel that families or priors implement."""
    if not isinstance(node, ast.FunctionDef):
        return False
    return any(called(each) == "generic" for each in node.decorator_list)


def counts(root: Path) -> dict[str, int]:
    """What there is to count in a checkout."""
    modules = read(root)
    if not modules:
        raise SystemExit(f"no module of streamdp in {root}")
    nodes = [(module, node) for module in modules.values() for node in ast.walk(module.tree)]
    functions = [node for _, node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    rooms = {(module.room, modules[target].room) for module in modules.values() for target in module.imports}
    return {
        "files": len(modules),
        "lines of source": sum(module.lines for module in modules.values()),
        "longest file, lines": max(module.lines for module in modules.values()),
        "median file, lines": round(median(module.lines for module in modules.values())),
        "functions": len(functions),
        f"functions of more than {LONG} lines": sum(
            (node.end_lineno or 0) - node.lineno + 1 > LONG for node in functions
        ),
        f"functions of {MANY} parameters or more": sum(parameters(node) >= MANY for node in functions),
        "rooms": len({module.room for module in modules.values()}),
        "arrows between rooms": sum(room != target for room, target in rooms),
        "circles of imports": len(circles(modules)),
        "`meta[...]`": sum(
            isinstance(node, ast.Subscript) and called(node.value) == "meta" for _, node in nodes
        ),
        "`isinstance(prior, ...)` outside priors/": sum(
            asks_for_prior(node) for module, node in nodes if module.room != "priors"
        ),
        "branches on the kind of records or stream": sum(asks_for_kind(node) for _, node in nodes),
        "classes with a dump and load of their own": sum(stores_itself(node) for _, node in nodes),
        "modules that know of erasing": sum(knows_of(module, "eras") for module in modules.values()),
        "modules that know of corrections": sum(knows_of(module, "correct") for module in modules.values()),
        "generics": sum(is_generic(node) for _, node in nodes),
        "named tuples": sum(is_named_tuple(node) for _, node in nodes),
        "lines of tests": sum(
            len(path.read_text("utf-8").splitlines()) for path in (root / "tests").rglob("*.py")
        ),
    }


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("path", nargs="?", type=Path, default=here, help="a checkout (default: this one)")
    parser.add_argument("--against", type=Path, metavar="PATH", help="an earlier checkout beside it")
    options = parser.parse_args()
    after = counts(options.path)
    if options.against is None:
        show("the source", ("", options.path.resolve().name), after.items())
    else:
        before = counts(options.against)
        show("the source", ("", "before", "after"), [(name, before[name], after[name]) for name in after])


if __name__ == "__main__":
    main()
