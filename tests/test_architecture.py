"""The shape of the package: which rooms may know which, and no circle of imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.shape import circles, counts, imported, read

ROOT = Path(__file__).resolve().parents[1]

LAYERS = (
    "_version errors records safe_files threads web",
    "kernels",
    "priors likelihoods lines",
    "decode settings offline.kernels",
    "encode",
    "beam.data",
    "beam.step",
    "beam.clusters",
    "beam",
    "beam.looks",
    "ledger",
    "state",
    "answers",
    "story",
    "settings.assemble",
    "settings.blueprint",
    "offline",
    "streams",
    "engine",
    "offline.handover",
    "offline.refine offline.fit",
    "sharding",
    "reports",
    "questions",
    "estimators scoring monitor alerts demo plots page spark streamdp_connectors",
    "run",
    "serve",
    "programs",
    "cli",
    "__main__ streamdp",
)
"""The rooms from low to high: a room knows those of the layers below it, and none beside it.

A room is a module of ``streamdp``, or a folder without the rooms inside it that are named here. The last,
``streamdp``, is what the package itself offers.
"""

ONLY = {
    "offline.kernels": ("streamdp.kernels", "streamdp.priors", "streamdp.likelihoods"),
    "likelihoods": ("streamdp.kernels",),
    "lines": ("streamdp.kernels",),
    "streamdp_connectors": (
        "streamdp.errors",
        "streamdp.records",
        "streamdp.safe_files",
        "streamdp.decode.columns",  # the rows of a CSV file
        "streamdp.decode.fields",
    ),
}
"""Rooms that know less than their layer lets them: modules, or folders with all that is in them."""

LAYER_OF = {room: layer for layer, rooms in enumerate(LAYERS) for room in rooms.split()}
MODULES = read(ROOT)


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
    assert circles(MODULES) == []


def test_imports_point_down() -> None:
    wrong: dict[tuple[str, str], list[str]] = {}
    for module in MODULES.values():
        room = room_of(module.name)
        for target in module.imports:
            if room_of(target) != room and not may_know(room, target):
                wrong.setdefault((room, target), []).append(module.name)
    assert {arrow: sorted(names) for arrow, names in wrong.items()} == {}


def test_the_command_shows_what_is_counted() -> None:
    command = [sys.executable, "-m", "benchmarks.shape"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^│ (.+?) +│ +([\d,]+) │$", shown, re.M))
    assert found == {name: f"{count:,}" for name, count in counts(ROOT).items()}


@pytest.mark.parametrize(
    ("room", "target", "allowed"),
    [
        ("cli", "streamdp.offline.fit", True),
        ("engine", "streamdp.cli.app", False),
        ("priors", "streamdp.likelihoods.base", False),
        ("likelihoods", "streamdp.beam.data.state", False),
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
    if TYPE_CHECKING:
        import j
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
    found = set(imported(ast.parse(source)))
    assert found == {("a.b",), ("c.d", "c"), ("c.e", "c"), ("g",), ("h",), ("i",), ("j",)}


def test_a_checkout_is_counted(tmp_path: Path) -> None:
    (tmp_path / "streamdp" / "priors").mkdir(parents=True)
    (tmp_path / "streamdp" / "priors" / "crp.py").write_text("x = isinstance(prior, CRP)\n")
    (tmp_path / "streamdp" / "a.py").write_text(
        "import typing\nif typing.TYPE_CHECKING:\n    import streamdp.b\n"
        "def f(self, b, c, d, e, f, g, h, i, *j, k):\n"
        "    return self.kind == 'texts' and isinstance(c, str | BeamStream) and isinstance(c.prior, CRP)\n"
        "class Rows(typing.NamedTuple):\n    erased: int\n"
        "class Held:\n    def dump(self): ...\n    def load(self): ...\n"
    )
    (tmp_path / "streamdp" / "b.py").write_text(
        '"""meta[0] is erased"""\n@generic\ndef f():\n    from streamdp import a\n'
        '    meta: "meta[0]" = out.meta[A] + meta[B]\n    x = 1 if fine.of_lines else 2\n'
    )
    found = counts(tmp_path)
    assert (found["files"], found["lines of source"], found["functions"]) == (3, 17, 4)
    expected = {
        "files": 3,
        "functions of more than 60 lines": 0,
        "functions of 10 parameters or more": 1,
        "arrows between rooms": 2,
        "circles of imports": 1,
        "`meta[...]`": 2,
        "`isinstance(prior, ...)` outside priors/": 1,
        "branches on the kind of records or stream": 3,
        "classes with a dump and load of their own": 1,
        "modules that know of erasing": 1,
        "modules that know of corrections": 0,
        "generics": 1,
        "named tuples": 1,
    }
    assert {name: found[name] for name in expected} == expected


def test_no_module_asks_what_class_a_prior_is_of() -> None:
    asks = re.compile(r"isinstance\((\w+\.)*_?prior,|match (\w+\.)*_?prior:")
    rooms = (path for path in (ROOT / "streamdp").rglob("*.py") if "priors" not in path.parts)
    assert [path.name for path in rooms if asks.search(path.read_text("utf-8"))] == []
