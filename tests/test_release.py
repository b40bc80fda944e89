"""A release is checked before it is built, and its wheel runs from nothing; systems without locks."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from commands import environment, loaded, succeed, write_headlines

from streamdp import __version__

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


RELEASE = loaded(ROOT / "deploy" / "release.py")
FILES = {
    "streamdp/_version.py": '__version__ = "1.2.3"\n',
    "CHANGELOG.md": "# Changelog\n\n## 1.2.3 (2027-01-31)\n\n- New.\n\n## 1.2.2 (2027-01-01)\n\n- Old.\n",
    "CITATION.cff": "title: x\nversion: 1.2.3\n",
    "deploy/kubernetes/statefulset.yaml": "image: streamdp:1.2.3\n",
    "tests/golden/api/1.2.3.txt": "streamdp\n",
}


def git(root: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A repository that lacks nothing for a release."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "all")
    return tmp_path


def test_nothing_is_missing(ready: Path) -> None:
    assert list(RELEASE.missing(ready)) == []
    git(ready, "tag", "v1.2.3")
    assert list(RELEASE.missing(ready)) == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("streamdp/_version.py", '__version__ = "1.2"\n', "1.2 is no version of three numbers"),
        ("CHANGELOG.md", "# C\n\n## 1.2.3 (unreleased)\n\n- New.\n", "not '1.2.3 (YYYY-MM-DD)'"),
        ("CHANGELOG.md", "# C\n\n## 1.2.2 (2027-01-01)\n\n- Old.\n", "not '1.2.3 (YYYY-MM-DD)'"),
        ("CHANGELOG.md", "# C\n\n## 1.2.3 (2027-01-31)\n\n## 1.2.2 (2027-01-01)\n", "says nothing of 1.2.3"),
        ("CITATION.cff", "version: 1.2.2\n", "CITATION.cff: has no line 'version: 1.2.3'"),
        ("deploy/kubernetes/statefulset.yaml", "image: streamdp:1\n", "has no line 'image: streamdp:1.2.3'"),
        ("tests/golden/api/1.2.3.txt", None, "run python -m tests.golden api"),
    ],
)
def test_what_is_missing_is_told(ready: Path, name: str, text: str | None, told: str) -> None:
    if text is None:
        (ready / name).unlink()
    else:
        (ready / name).write_text(text)
    git(ready, "commit", "--all", "--quiet", "--message", "less")
    assert any(told in line for line in RELEASE.missing(ready))


def test_only_what_is_committed_is_released(ready: Path) -> None:
    git(ready, "tag", "v1.2.3")
    (ready / "more").write_text("more")
    assert list(RELEASE.missing(ready)) == ["git: not committed: more"]
    git(ready, "add", "more")
    git(ready, "commit", "--quiet", "--message", "more")
    assert list(RELEASE.missing(ready)) == ["git: v1.2.3 is another commit already"]


def test_this_tree_lacks_nothing_but_its_day() -> None:
    """Version, citation, manifests and the list of names go together; the date comes with the release."""
    found = [line for line in RELEASE.missing(ROOT) if not line.startswith("git: ")]
    assert found in ([], [f"CHANGELOG.md: its first section is '{__version__} (unreleased)', "
                          f"not '{__version__} (YYYY-MM-DD)'"])  # fmt: skip


def test_checksums_are_those_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"a")
    (tmp_path / "b.tar.gz").write_bytes(b"b")
    RELEASE.write_sums(tmp_path)
    RELEASE.write_sums(tmp_path)
    check = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=True).stdout.count(b": OK\n") == 2
    (tmp_path / "a.whl").write_bytes(b"other")
    assert subprocess.run(check, cwd=tmp_path, capture_output=True, check=False).returncode == 1


def test_the_source_distribution_is_complete(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (made,) = tmp_path.iterdir()
    assert made.name == f"streamdp-{__version__}.tar.gz"
    with tarfile.open(made) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    elsewhere = (".github/", ".ci/", ".dockerignore", ".pre-commit-config.yaml")
    assert {name for name in listed.splitlines() if not name.startswith(elsewhere)} - names == set()


@pytest.mark.slow
def test_a_release_from_nothing(tmp_path: Path) -> None:
    """Minutes of compiling, and packages from the network."""
    command = [sys.executable, "deploy/release.py", "--candidate", "--into", str(tmp_path / "dist")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    kinds = [".whl", ".tar.gz", "sbom.json", "SHA256SUMS"]
    names = [path.name for path in (tmp_path / "dist").iterdir()]
    assert sorted(name for name in names if not name.endswith(tuple(kinds))) == []
    listed = json.loads((tmp_path / "dist" / "sbom.json").read_text("utf-8"))
    assert {"streamdp", "numba", "msgspec"} <= {each["name"] for each in listed["components"]}
    assert shutil.which("sha256sum")
    subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=tmp_path / "dist", check=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    same_answers(RELEASE.environment_of(tmp_path / "installed", wheel), tmp_path)


@pytest.mark.slow
def test_the_demo_runs_without_an_environment(tmp_path: Path) -> None:
    """As the README says; packages come from the network."""
    said = "uvx --from . streamdp demo"
    assert f"`{said}`" in (ROOT / "README.md").read_text("utf-8")
    uvx, *more = said.split()
    command = [Path(sys.executable).with_name(uvx), "--python", sys.executable, *more, "--records", "300"]
    own = environment(cache_dir=os.environ.get("STREAMDP_CACHE_DIR", str(tmp_path))) | {
        "UV_CACHE_DIR": str(tmp_path / "uv")
    }
    done = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "300 records of" in done.stdout


def same_answers(python: Path, folder: Path) -> None:
    """With a wheel streams compile nothing; they and fit answer as when compiled here, byte by byte."""
    rng = random.Random(1)
    write_headlines(folder / "texts.jsonl", 3000)
    for name, length, count in (("short", 4, 1500), ("long", 40, 1500)):
        centres = [[rng.gauss(0, 3) for _ in range(length)] for _ in range(8)]
        rows = ([x + rng.gauss(0, 1) for x in rng.choice(centres)] for _ in range(count))
        (folder / f"{name}.jsonl").write_text("".join(f'{{"vector": {row}}}\n' for row in rows))
    (folder / "app.log").write_text(
        "".join(
            f"2026-01-05 10:00:{n % 60:02} INFO worker: request {n} took {n % 7} ms\n" for n in range(2000)
        )
    )
    fields = ({"a": rng.choice("xyz"), "b": rng.choice("pq"), "c": rng.choice("klmn")} for _ in range(1500))
    (folder / "fields.jsonl").write_text("".join(json.dumps(each) + "\n" for each in fields))
    for arguments in (
        ("consume", "texts.jsonl"),
        ("consume", "short.jsonl"),
        ("consume", "long.jsonl"),
        ("consume", "app.log", "--format", "log"),
        ("consume", "fields.jsonl", "--likelihood", "categorical"),
        ("demo", "--records", "3000"),
        ("fit", "texts.jsonl", "--method", "hybrid", "--budget", "2"),
    ):
        own = environment(cache_dir=str(folder / "none"))
        brought = subprocess.run(
            [python, "-I", "-m", "streamdp", *arguments], cwd=folder, env=own, capture_output=True, check=True
        )
        assert brought.stdout == succeed(folder, *arguments, process=True), arguments
        assert brought.stdout
        if arguments[0] != "fit":  # it compiles one small kernel still
            assert [path.name for path in (folder / "none").rglob("*.kernel")] == [], arguments


# ---------------------------------------------------------------- workflows


def steps() -> Iterator[dict[str, Any]]:
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text("utf-8"))["jobs"].values():
            yield from job["steps"]


def test_actions_are_pinned_and_see_no_more_than_they_need() -> None:
    for path in WORKFLOWS:
        found = yaml.safe_load(path.read_text("utf-8"))
        assert found["permissions"] == {}, path.name
        for name, job in found["jobs"].items():
            assert job["timeout-minutes"] <= 120, name
            writes = {scope for scope, right in job["permissions"].items() if right == "write"}
            assert writes <= ({"contents", "id-token", "packages"} if path.name == "release.yml" else set())
    used = [step["uses"] for step in steps() if "uses" in step]
    assert used
    assert [name for name in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name)] == []


def test_workflows_run_what_there_is() -> None:
    """Scripts are sound, files are there, and no expression is put into a script."""
    for step in steps():
        if "run" in step:
            script = step["run"]
            subprocess.run(["bash", "-n"], input=script, text=True, check=True)
            assert "${{" not in script, script
            named = re.findall(r"\b(?:tests|deploy)/[\w/.]+", script)
            assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_pythons_are_those_that_are_promised() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = {line.rpartition(" ")[2] for line in project["classifiers"] if ":: Python ::" in line}
    for path, expected in (("release.yml", promised), ("ci.yml", {min(promised), max(promised)})):
        text = (ROOT / ".github" / "workflows" / path).read_text("utf-8")
        jobs = yaml.safe_load(text)["jobs"].values()
        matrices = [job["strategy"]["matrix"] for job in jobs if "strategy" in job]
        found = [set(matrix["python"]) for matrix in matrices if "python" in matrix]
        assert found == [expected], path


# ---------------------------------------------------------------- systems without locks


WITHOUT_LOCKS = "import sys; sys.modules['fcntl'] = None; "


def test_windows_is_told_so_in_one_line() -> None:
    run = WITHOUT_LOCKS + "from streamdp.cli import main; sys.argv = ['streamdp', 'demo']; main()"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    told = "streamdp: this system has no fcntl, which locks files: use Linux, macOS, or WSL on Windows\n"
    assert (done.returncode, done.stdout, done.stderr) == (69, "", told)
    run = WITHOUT_LOCKS + "import streamdp; streamdp.Engine"
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert last == "ImportError: streamdp needs fcntl: use Linux, macOS, or WSL on Windows"
