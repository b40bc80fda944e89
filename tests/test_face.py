"""What ``import streamdp`` offers."""

from __future__ import annotations

import copy
import doctest
import importlib
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
from engine_cases import CASES, case
from feeds import feed, headlines

import streamdp
from streamdp.errors import ConfigError
from streamdp.kernels.cache import FOLDER, cache_folder
from streamdp.settings.assemble import build_prior


def test_importing_it_costs_nothing() -> None:
    code = (
        "import sys, streamdp; print([m for m in ('numba', 'numpy', 'msgspec', 'river') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


STARTED = """
import contextlib, sys
from streamdp.cli import main
sys.argv[0] = "streamdp"
with contextlib.suppress(SystemExit):
    main()
print([name for name in ("numba", "numba.np.linalg", "scipy.linalg", "pydantic") if name in sys.modules])
"""


def test_a_command_imports_no_more_than_it_needs(tmp_path: Path) -> None:
    """The slow parts of what others have written are left alone: at every start they would cost more than
    the package itself.
    """
    (tmp_path / "texts.txt").write_text("storm over the coast\ncoast storm\n")
    for arguments, imported in (
        (["--help"], b"[]"),
        (["consume", "texts.txt"], None),  # which may compile
        (["consume", "texts.txt", "--beam", "8"], b"[]"),
    ):
        command = [sys.executable, "-c", STARTED, *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
        assert imported in (done.stdout.splitlines()[-1], None), arguments


def test_everything_named_is_there() -> None:
    for name in streamdp.__all__:
        assert getattr(streamdp, name) is not None
    assert set(dir(streamdp)) == set(streamdp.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = streamdp.nothing


PLAIN = {"VectorStatistics", "WordStatistics"}
"""Results, of which others' examples show some."""


def public() -> dict[str, str]:
    """Modules of what is offered, by name."""
    rooms = (streamdp, streamdp.likelihoods, streamdp.priors)
    found = {name: getattr(room, name) for room in rooms for name in room.__all__}
    made = {name: each for name, each in found.items() if callable(each) and name not in PLAIN}
    return {name: each.__module__ for name, each in made.items() if not inspect.isabstract(each)}


@pytest.mark.parametrize("name", public())
def test_examples_in_docstrings(name: str) -> None:
    module = importlib.import_module(public()[name])
    tests = [test for test in doctest.DocTestFinder().find(module) if test.name.split(".")[-1] == name]
    tests += [t for t in doctest.DocTestFinder().find(module) if f".{name}." in t.name and t.examples]
    assert any(test.examples for test in tests)
    for test in tests:
        assert doctest.DocTestRunner().run(test).failed == 0


def test_plain_values_are_records() -> None:
    rows = np.random.default_rng(0).normal(size=(30, 2))
    texts = ["storm over the coast", "cup final tonight", "storm at the coast"]
    mappings = [{"a": float(x), "b": float(y)} for x, y in rows]
    for values, settings in ((texts, {}), (rows, {"warmup": 9}), (mappings, {"warmup": 9})):
        model = streamdp.Settings(**settings)  # type: ignore[arg-type]
        plain = streamdp.Engine(model).advance(values)
        made = [streamdp.Record(value, {"record": i}) for i, value in enumerate(values)]
        assert plain == streamdp.Engine(model).advance(made)
        assert [a.position for a in plain.assignments][:2] == [{"record": 0}, {"record": 1}]
    engine = streamdp.Engine()
    assert engine.advance(["one text here", ""]).rejects[0].position == {"record": 1}
    assert engine.advance(["", "more"]).rejects[0].position == {"record": 2}


def test_lines_come_apart() -> None:
    engine = streamdp.Engine(streamdp.Settings(second_look=0))
    answers = engine.advance(headlines(300, 1))
    assert {a.seq for a in answers.assignments} == set(range(300))
    assert answers.final_through is not None
    assert answers.assignments + [
        line for line in answers.lines if isinstance(line, streamdp.Final)
    ] == sorted(answers.lines, key=lambda line: isinstance(line, streamdp.Final))
    assert streamdp.Engine().advance([]).final_through is None


def test_a_stream_in_one_call() -> None:
    records = headlines(1600, 3)
    engine = streamdp.Engine(streamdp.Settings(beam=2))
    expected = [a for r in records for a in engine.advance([r]).assignments]
    assert list(streamdp.cluster(iter(records), beam=2)) == expected + engine.finish().assignments
    with pytest.raises(ValueError, match="empty: no words are left"):
        list(streamdp.cluster(["a text", ""]))


@pytest.mark.parametrize("name", ["crp", "vectors", "window"])
def test_names_and_objects_instead_of_settings(name: str) -> None:
    settings, maker = case(name)
    records = maker(80, 1)
    told = feed(streamdp.Engine(settings), records).encoded()
    prior = build_prior(settings, name != "vectors")
    bare = {"prior": "auto", "decay": None, "decay_scale": None, "concentration": None}
    without = msgspec.structs.replace(settings, **bare)
    assert feed(streamdp.Engine(without, prior=prior), records).encoded() == told
    revived = pickle.loads(pickle.dumps(streamdp.Engine(without, prior=prior)))
    assert feed(revived, records).encoded() == told


def test_a_family_that_was_made() -> None:
    family = streamdp.likelihoods.Gaussian(2, variance=1.0, mean_variance=80.0)
    engine = streamdp.Engine(prior=streamdp.priors.CRP(0.1), likelihood=family)
    rows = np.random.default_rng(0).normal(size=(40, 2)) + 20.0 * (np.arange(40) % 2)[:, None]
    labels = [a.cluster for a in engine.advance(rows).assignments if a.revision == 0]
    assert labels == [i % 2 for i in range(40)]
    other = copy.deepcopy(engine)
    assert other.dumps() == engine.dumps()
    assert other.advance(rows) == engine.advance(rows)
    with pytest.raises(ConfigError, match="the settings say crp, and uniform is given"):
        streamdp.Engine(streamdp.Settings(prior="crp"), prior="uniform")
    with pytest.raises(TypeError, match="the prior is a name or a Prior, not int"):
        streamdp.Engine(prior=3)  # type: ignore[arg-type]


def test_engines_are_pickled() -> None:
    for name in ("crp", "vectors"):
        settings, maker = case(name)
        assert name in CASES
        engine = streamdp.Engine(settings, with_events=True)
        engine.advance(maker(50, 1))
        other = pickle.loads(pickle.dumps(engine))
        assert other.dumps() == engine.dumps()
        assert other.advance(maker(20, 2)) == engine.advance(maker(20, 2))


def test_a_finite_set() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 2)) + 20.0 * (np.arange(40) % 2)[:, None]
    found = streamdp.fit(rows, plan=streamdp.Plan(rounds=30))
    assert not set(found.labels[::2].tolist()) & set(found.labels[1::2].tolist())
    assert found.similarity.shape == (40, 40)
    assert found.similarity[0, 2] > 0.0 == found.similarity[0, 1]
    assert [d.name for d in found.diagnostics] == ["log joint", "clusters", "largest cluster"]
    assert found.to_engine().seq == 40


@pytest.mark.parametrize(("name", "package"), [("Novelty", "river"), ("StreamDPClusterer", "scikit-learn")])
def test_what_is_not_installed_is_said(name: str, package: str) -> None:
    code = (
        f"import sys; sys.modules['river'] = sys.modules['sklearn'] = None\nimport streamdp; streamdp.{name}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: streamdp.{name} needs {package}: pip install {package}"
    )


def test_compiling_is_said(tmp_path: Path) -> None:
    """Of several kernels, and once; the one that takes longest is there."""
    streamdp.Engine().advance(["a text"])
    kept, folder = cache_folder(), tmp_path / FOLDER
    assert kept is not None
    folder.mkdir()
    for path in kept.glob("streamdp.beam.*.kernel"):
        (folder / path.name).symlink_to(path)
    code = "import streamdp; streamdp.Engine().advance(['a text'])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "STREAMDP_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    first, *later = done.stderr.splitlines()
    assert first.startswith("compiling kernels, only this once: ")
    assert all(line.startswith("compiling kernels: ") for line in later)  # on a slow machine
    made = {
        path.name.rpartition("-")[0] for path in folder.iterdir() if path.is_file() and not path.is_symlink()
    }
    assert any(name.startswith("streamdp.encode.") for name in made)
    assert not any(name.startswith("streamdp.beam.") for name in made)
