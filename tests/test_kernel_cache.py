"""Compiled kernels are found again, in a copy or from a wheel, and never half of one."""

from __future__ import annotations

import ast
import fcntl
import gc
import inspect
import os
import pkgutil
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import msgspec
import numba
import numpy as np
import pytest
from commands import environment, wait_for
from numba.core import event
from numba.core.base import BaseContext
from numba.core.postproc import PostProcessor
from numba.core.types.functions import BaseFunction
from numba.np import linalg

import streamdp
from streamdp.beam.looks import dividing, rearrange, second_look, uniting
from streamdp.beam.step import advance
from streamdp.cli import beside, display, warm
from streamdp.kernels import cache, compilation, compiler, prebuilt
from streamdp.kernels.digest import _read, _Walk, digest_of
from streamdp.kernels.jit import Entry, Inner, constant_kernel, generic, kernel
from streamdp.kernels.prebuilt import V2, V3, baselines, baselines_of
from streamdp.settings import Settings

ROOT = Path(__file__).resolve().parents[1]


def swap(pair: np.ndarray) -> None:
    pair[0], pair[1] = pair[1], pair[0]


class Compilations(event.Listener):
    """Counts what is compiled."""

    def __init__(self) -> None:
        self.begun = 0

    def on_start(self, event: event.Event) -> None:
        self.begun += 1

    def on_end(self, event: event.Event) -> None:
        pass


@pytest.fixture
def compilations() -> Iterator[Compilations]:
    counted = Compilations()
    with event.install_listener("numba:compile", counted):
        yield counted


def run_swap() -> None:
    pair = np.array([1, 2])
    Entry(swap)(pair)
    assert pair.tolist() == [2, 1]


def use(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("STREAMDP_CACHE_DIR", str(folder))


def bring_along(monkeypatch: pytest.MonkeyPatch, kernels: Path, package: Path) -> None:
    """Have an installed package hold a folder of kernels as the set that serves here."""
    monkeypatch.setattr(prebuilt, "PREBUILT", package / "prebuilt")
    shutil.copytree(kernels, prebuilt.own_set())


def test_a_kernel_is_compiled_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations
) -> None:
    use(monkeypatch, tmp_path)
    run_swap()
    assert compilations.begun > 0
    (kept,) = tmp_path.glob("*/*.kernel")
    assert kept.parent.name == cache.FOLDER
    before = compilations.begun
    run_swap()
    assert compilations.begun == before


def test_a_folder_may_be_copied_or_come_with_a_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations
) -> None:
    use(monkeypatch, tmp_path / "here")
    run_swap()
    before = compilations.begun
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    use(monkeypatch, tmp_path / "there")
    run_swap()
    use(monkeypatch, tmp_path / "empty")
    bring_along(monkeypatch, tmp_path / "here", tmp_path / "package")
    run_swap()
    assert compilations.begun == before
    assert not list((tmp_path / "empty").glob("*/*.kernel"))


@pytest.mark.parametrize("harm", [lambda b: b[:-1], lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b""])
def test_what_is_not_whole_is_compiled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations, harm: object
) -> None:
    use(monkeypatch, tmp_path)
    run_swap()
    (kept,) = tmp_path.glob("*/*.kernel")
    whole = kept.read_bytes()
    kept.write_bytes(harm(whole))  # type: ignore[operator]
    before = compilations.begun
    run_swap()
    assert compilations.begun > before
    again = compilations.begun
    run_swap()
    assert compilations.begun == again


def test_a_kernel_of_another_cpu_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations
) -> None:
    use(monkeypatch, tmp_path)
    run_swap()
    (kept,) = tmp_path.glob("*/*.kernel")
    before, own = compilations.begun, cache.key_of(swap, (np.array([1, 2]),))[:16]
    monkeypatch.setattr(prebuilt, "cpu", lambda: ("another", ""))
    other = cache.key_of(swap, (np.array([1, 2]),))[:16]
    shutil.copy(kept, kept.with_name(kept.name.replace(own, other)))
    run_swap()
    assert compilations.begun > before


def test_kernels_of_another_numba_are_kept_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations
) -> None:
    use(monkeypatch, tmp_path)
    run_swap()
    before = compilations.begun
    monkeypatch.setattr(cache, "_versions", lambda: "another")
    run_swap()
    assert compilations.begun > before
    assert len([*tmp_path.glob("*/*.kernel")]) == 2


def test_what_is_compiled_runs_without_numba(tmp_path: Path) -> None:
    """A text, and a search over what it is made of, from kernels that are there."""
    run = "import sys, streamdp; streamdp.Engine().advance(['a b c'] * 9); print('numba' in sys.modules)"
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", run], env=environment(), capture_output=True, text=True, check=True
        )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("whose", ["the file", "the folder"])
@pytest.mark.parametrize("mode", [0o777, 0o770, None])
def test_what_others_may_have_written_is_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations, whose: str, mode: int | None
) -> None:
    use(monkeypatch, tmp_path / "cache")
    run_swap()
    (kept,) = tmp_path.glob("cache/*/*.kernel")
    path = kept if whose == "the file" else kept.parent
    if mode is not None:
        path.chmod(mode)
    elif os.geteuid() == 0:
        os.chown(path, 12345, 12345)
    else:
        pytest.skip("only root can give a file away")
    before = compilations.begun
    cache._writable.cache_clear()
    run_swap()
    assert compilations.begun > before


def test_a_set_serves_where_python_and_baseline_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations
) -> None:
    """Whatever numba is there. Otherwise kernels are compiled, and it is said for what the set is."""
    use(monkeypatch, tmp_path / "here")
    run_swap()
    use(monkeypatch, tmp_path / "empty")
    bring_along(monkeypatch, tmp_path / "here", tmp_path / "package")
    before = compilations.begun
    monkeypatch.setattr(cache, "_versions", lambda: "another")
    run_swap()
    assert compilations.begun == before
    own = prebuilt.own_set()
    python, baseline = own.name.split("_")
    own.rename(own.with_name(f"{python}0_{baseline}"))
    prebuilt.mismatch.cache_clear()
    run_swap()
    assert compilations.begun > before
    assert compilation.first_message(compilation.Compiling("swap", 1, 2.0)) == (
        "compiling kernels, only this once: swap, 1 functions, 2 s; "
        f"those of the wheel are for {python}0, not {python}"
    )
    prebuilt.mismatch.cache_clear()


def test_kernels_of_a_wheel_may_belong_to_who_installed_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations
) -> None:
    use(monkeypatch, tmp_path / "here")
    run_swap()
    bring_along(monkeypatch, tmp_path / "here", tmp_path / "package")
    if os.geteuid() == 0:
        for path in (tmp_path / "package").rglob("*"):
            os.chown(path, 12345, 12345)
        os.chown(tmp_path / "package", 12345, 12345)
    use(monkeypatch, tmp_path / "empty")
    before = compilations.begun
    run_swap()
    assert compilations.begun == before


def test_only_the_user_may_read_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, tmp_path / "cache")
    before = os.umask(0)
    try:
        run_swap()
    finally:
        os.umask(before)
    (kept,) = tmp_path.glob("cache/*/*.kernel")
    assert not (kept.stat().st_mode | kept.parent.stat().st_mode) & 0o027


class Pair(NamedTuple):
    """A class from outside the package, as a family's would be."""

    values: np.ndarray


@generic
def turn(pair: Pair) -> None:
    """What a family does for itself."""


@turn.of(Pair)
def _turn(pair: Pair) -> None:
    pair.values[0], pair.values[1] = pair.values[1], pair.values[0]


FACTOR = 2


@kernel
def scaled(values: np.ndarray) -> None:
    for i in range(values.shape[0]):
        values[i] *= FACTOR


def turn_and_scale(pair: Pair) -> None:
    turn(pair)
    scaled(pair.values)


def digest(function: Callable[..., Any] = turn_and_scale) -> bytes:
    _read.cache_clear()
    return digest_of(function, [Pair])


def rewritten(function: Callable[..., Any], old: str, new: str) -> Any:
    """The code of a function after a change of its source."""
    source = inspect.getsource(function)
    assert old in source
    tree = ast.parse(source.replace(old, new))
    tree.body[0].decorator_list = []  # type: ignore[attr-defined]
    names: dict[str, Any] = {}
    exec(compile(ast.increment_lineno(tree, 7), "changed.py", "exec"), function.__globals__, names)
    return names[function.__name__].__code__


def test_a_change_of_anything_that_takes_part_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    assert digest() == before
    for function, old, new in (
        (_turn, "pair.values[1], pair.values[0]", "pair.values[1], 0"),
        (scaled.py_func, "*=", "+="),
        (turn_and_scale, "turn(pair)", "scaled(pair.values)"),
    ):
        with monkeypatch.context() as change:
            change.setattr(function, "__code__", rewritten(function, old, new))
            assert digest() != before
    with monkeypatch.context() as change:
        change.setitem(turn_and_scale.__globals__, "FACTOR", 3)
        assert digest() != before
    with monkeypatch.context() as change:
        change.setattr(Pair, "_fields", ("others",))
        assert digest() != before
    assert digest() == before


def test_a_comment_or_what_takes_no_part_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest()
    with monkeypatch.context() as change:
        changed = rewritten(scaled.py_func, "    for i", "    # one after the other\n    for i")
        change.setattr(scaled.py_func, "__code__", changed)
        assert digest() == before
    with monkeypatch.context() as change:
        change.setitem(turn_and_scale.__globals__, "ROOT", 3)
        assert digest() == before


def documented(values: np.ndarray) -> None:
    """Two things are the same but for what is said of them."""
    values[0] = 1


def test_a_docstring_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(documented)
    monkeypatch.setattr(documented, "__code__", rewritten(documented, "Two things", "Three things"))
    assert digest(documented) == before


def modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(streamdp.__path__, "streamdp.")
    return [import_module(each.name) for each in found if ".spark" not in each.name]


def test_every_kernel_of_the_package_takes_part_in_an_entry() -> None:
    """So none can change without a digest that changes; and none is left that nothing calls."""
    named = [each for module in modules() for each in vars(module).values()]
    entries = {each for each in named if isinstance(each, Entry)}
    classes = {each for each in named if isinstance(each, type) and hasattr(each, "_fields")}
    kernels = {each.py_func for each in named if isinstance(each, Inner)}
    assert len(entries) > 50
    for entry in entries:
        walk = _Walk()
        for each in classes:
            walk.note(each)
        walk.note(entry._function)
        walk.resolve()
        kernels -= walk.functions
    assert {f"{each.__module__}.{each.__name__}" for each in kernels} == set()


@kernel
def times(values: np.ndarray, factor: int) -> int:
    for i in range(values.shape[0]):
        values[i] *= factor
    return factor + 1


def test_a_constant_makes_no_second_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def twelve_times(values: np.ndarray) -> int:
        return times(values, times(values, times(values, FACTOR)))

    use(monkeypatch, tmp_path)
    values = np.array([1, 2])
    assert Entry(twelve_times)(values) == 5
    assert values.tolist() == [24, 48]
    assert len(times.dispatcher.overloads) == 1  # type: ignore[attr-defined]


@constant_kernel
def plus(value: int, more: int) -> int:
    return value + more


def test_a_constant_makes_one_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def plus_three(values: np.ndarray) -> int:
        return plus(plus(int(values[0]), 1), FACTOR)

    use(monkeypatch, tmp_path)
    assert Entry(plus_three)(np.array([4, 5])) == 7
    assert len(plus.dispatcher.overloads) == 2  # type: ignore[attr-defined]


def test_numba_is_as_it_was_when_a_kernel_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where that fails: what makes it quick is for kernels alone."""

    def without_type(values: np.ndarray) -> None:
        values.nothing_of_this_name()

    def changed() -> list[object]:
        return [
            BaseFunction.get_call_type,
            BaseContext.get_abi_sizeof,
            PostProcessor.run,
            linalg.ensure_blas,
            llvm.ffi.lib._lock._cblist,
            gc.isenabled(),
        ]

    use(monkeypatch, tmp_path)
    before = changed()
    run_swap()
    assert changed() == before
    with pytest.raises(numba.TypingError):
        Entry(without_type)(np.zeros(1))
    assert changed() == before
    with compiler.quickly():
        assert not any(one == other for one, other in zip(changed(), before, strict=True))


def test_a_kernel_called_from_python_says_what_to_call() -> None:
    with pytest.raises(TypeError, match=r"scaled is a @kernel, which only kernels call: .* make an @entry"):
        scaled(np.zeros(2))


def test_who_comes_second_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations
) -> None:
    """What another process compiles is not compiled beside it; that one is waited for, and it is told."""
    use(monkeypatch, tmp_path / "other")
    run_swap()
    before = compilations.begun
    (kept,) = tmp_path.glob("other/*/*.kernel")
    use(monkeypatch, tmp_path / "here")
    here = tmp_path / "here" / cache.FOLDER
    here.mkdir(parents=True)
    second = threading.Thread(target=run_swap)
    with (here / f".{kept.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second.start()
        wait_for(lambda: compilation.compiling() is not None)
        told = compilation.compiling()
        assert told is not None
        assert told.kernel == "swap"
        shutil.copy(kept, here)
    second.join()
    assert compilation.compiling() is None
    assert compilations.begun == before
    assert [path.name for path in here.iterdir()] == [kept.name]


def test_who_comes_second_compiles_what_the_first_gave_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compilations: Compilations
) -> None:
    use(monkeypatch, tmp_path)
    run_swap()
    (kept,) = tmp_path.glob("*/*.kernel")
    kept.unlink()
    before = compilations.begun
    with kept.with_name(f".{kept.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=run_swap)
        second.start()
        time.sleep(0.1)
        assert compilations.begun == before
    second.join()
    assert compilations.begun > before
    assert kept.exists()


def test_without_a_writable_folder_kernels_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("in the way")
    use(monkeypatch, tmp_path / "file")
    cache._say_once.cache_clear()
    run_swap()
    run_swap()
    assert [
        record.message for record in caplog.records if "STREAMDP_CACHE_DIR" in record.message
    ].__len__() == 1


def test_baselines() -> None:
    v3, v2 = dict.fromkeys(V3 | {"avx512f"}, True), dict.fromkeys(V2, True)
    assert baselines_of("x86_64", v3) == ["x86-64-v3", "x86-64-v2"]
    assert baselines_of("x86_64", v3 | {"fma": False}) == ["x86-64-v2"]
    assert baselines_of("x86_64", v2) == ["x86-64-v2"]
    assert baselines_of("x86_64", v2 | {"popcnt": False}) == []
    assert baselines_of("aarch64", {}) == ["generic"]
    assert baselines_of("riscv64", {}) == []


SAY_CPU = "print(numba.core.registry.cpu_target.target_context.codegen().magic_tuple()[1])"


def test_kernels_are_for_the_baseline() -> None:
    """Of the two names of a CPU, LLVM's own and the baseline, the second stands in what is compiled."""
    run = f"from test_kernel_cache import *; compiler.compiled(swap, (np.zeros(2),), 'swap'); {SAY_CPU}"
    said = subprocess.run(
        [sys.executable, "-c", run],
        env=environment() | {"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() in baselines()


NOTING = """
import sys
from streamdp.cli import main
from streamdp.kernels import cache
path, find = sys.argv.pop(1), cache._find
def noted(folder, file, key):
    with open(path, "a") as written:
        print(file, file=written)
    return find(folder, file, key)
cache._find = noted
main()
"""
"""Runs a command, and notes the kernels that it loads or compiles."""


def test_warm_leaves_nothing_to_compile(tmp_path: Path) -> None:
    def kernels_of(*arguments: str) -> tuple[set[str], str]:
        command = [sys.executable, "-c", NOTING, "noted", *arguments]
        run = {"cwd": tmp_path, "capture_output": True, "text": True, "check": True}
        done = subprocess.run(command, env=environment(), **run)  # type: ignore[call-overload]
        noted = tmp_path / "noted"
        found = set(noted.read_text().split())
        noted.unlink()
        return found, done.stdout

    warmed, _ = kernels_of("check", "--compile", "--format", "log")
    lines = [f"2026-01-05 10:00:{n % 60:02} INFO worker: request {n} took {n % 7} ms" for n in range(2000)]
    (tmp_path / "app.log").write_text("\n".join([*lines, "2026-01-05 11:00:00 WARN worker: the end"]))
    asked, said = kernels_of("consume", "app.log", "--format", "log")
    assert said.count('"cluster"') >= 2001
    assert len(asked) >= 5
    assert asked <= warmed


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[Entry]:
    """The kernels that have been asked for."""
    found: set[Entry] = set()
    find = Entry.of

    def of(self: Entry, *arguments: Any) -> Callable[..., Any]:
        found.add(self)
        return find(self, *arguments)

    monkeypatch.setattr(Entry, "of", of)
    return found


def test_a_service_has_its_kernels_before_its_first_record(asked: set[Entry]) -> None:
    warm.prepare(Settings(likelihood="family_of_mine:Family"))  # which may refuse what is made up
    assert asked == set()
    warm.prepare(Settings())
    assert {advance.advance, second_look.look_again} <= asked
    modules = vars(dividing), vars(rearrange)  # a cluster of texts is parted, too
    assert {each for module in modules for each in module.values() if isinstance(each, Entry)} <= asked


def test_the_second_process_compiles_what_looks_back_at_texts(asked: set[Entry]) -> None:
    beside.compile_looks(Settings())
    named = {f"{each._function.__module__}.{each._function.__name__}" for each in asked}
    assert {second_look.look_again, rearrange.keep_head, dividing.try_as_two} <= asked
    assert advance.advance not in asked
    assert named <= set(compilation.PLANS[display.TEXTS])


def test_a_second_process_is_started_once_where_texts_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    class Started:
        def __init__(self, command: list[str], **given: Any) -> None:
            started.append(command)

        def kill(self) -> None:
            started.append([])

        wait = kill

    monkeypatch.setattr(compilation, "_watch", compilation._Watch())
    monkeypatch.setattr(display.subprocess, "Popen", Started)
    monkeypatch.setattr(display.os, "cpu_count", lambda: 2)
    settings = Settings(beam=3)
    with display.two_processes(settings), compilation.under_way("streamdp.lines.step.advance"):
        assert started == []
    compilation._watch = compilation._Watch()
    with display.two_processes(settings):
        for name in ("streamdp.encode.bags.count", "streamdp.beam.step.advance.advance"):
            with compilation.under_way(name):
                pass
        ((*_, module, given),) = started
    assert module == "streamdp.cli.beside"
    assert msgspec.json.decode(given, type=Settings) == settings
    assert len(started) == 3, "it is ended, and waited for"


def test_warm_has_vectors_look_back_too(asked: set[Entry]) -> None:
    """Kernels that unite clusters and take strays are needed once such are found: warm meets both."""
    warm.warm(Settings(), offline=False)
    entries = {each for each in vars(uniting).values() if isinstance(each, Entry)}
    assert len(entries) == 9
    assert entries - asked == set()


def test_warm_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    refused = subprocess.run(
        [sys.executable, "-m", "streamdp", "check", "--compile"],
        env=environment() | {"STREAMDP_CACHE_DIR": str(tmp_path / "file")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.returncode == 73
    assert "set STREAMDP_CACHE_DIR to one that can" in refused.stderr


def test_a_wheel_with_kernels_is_for_one_platform(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    skip = shutil.ignore_patterns("__pycache__", "prebuilt")
    for name in ("streamdp", "connectors"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skip)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d"]
    subprocess.run([*build, "plain"], cwd=tmp_path, check=True, capture_output=True)
    (plain,) = (tmp_path / "plain").iterdir()
    assert plain.name.endswith("-py3-none-any.whl")
    kernel = tmp_path / "streamdp" / "prebuilt" / "a-set" / "compiled" / "a.kernel"
    kernel.parent.mkdir(parents=True)
    kernel.write_bytes(b"compiled")
    subprocess.run([*build, "own"], cwd=tmp_path, check=True, capture_output=True)
    (own,) = (tmp_path / "own").iterdir()
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    assert f"-{tag}-{tag}-" in own.name
    assert not own.name.endswith("-any.whl")
    with zipfile.ZipFile(own) as wheel:
        assert wheel.read("streamdp/prebuilt/a-set/compiled/a.kernel") == b"compiled"
