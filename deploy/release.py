"""Make a release by one command: what is to be published, in one folder.

    python deploy/release.py [--into dist] [--check] [--candidate]

Version, changelog and what else names the version are checked, and the tree must be what was committed. Then
come the wheel with compiled kernels (``build_wheel.py``), the sdist, a list of all that an installation
consists of (``sbom.json``, CycloneDX) and checksums (``SHA256SUMS``). The wheel is installed into an empty
environment and has to run ``streamdp demo`` there. ``--check`` only checks; ``--candidate`` builds although
something is missing for a release. Nothing is published: that is ``.github/workflows/release.yml``.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import resource
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HATCHLING, SBOM = "hatchling>=1.25", "cyclonedx-bom>=7,<8"
"""Tools that are installed for the release alone."""

MOST_CPU = 4.0
"""Seconds that ``streamdp demo`` may take from the wheel."""


def version_of(root: Path) -> str:
    """The version that the package says it has."""
    found = re.search(r'^__version__ = "(.+)"$', (root / "streamdp" / "_version.py").read_text("utf-8"), re.M)
    assert found is not None
    return found[1]


def missing(root: Path) -> Iterator[str]:
    """What a release still needs, a line each."""
    version = version_of(root)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        yield f"streamdp/_version.py: {version} is no version of three numbers"
    heading, _, said = (root / "CHANGELOG.md").read_text("utf-8").split("\n## ")[1].partition("\n")
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", heading):
        yield f"CHANGELOG.md: its first section is {heading!r}, not '{version} (YYYY-MM-DD)'"
    if not said.strip():
        yield f"CHANGELOG.md: says nothing of {version}"
    for path, line in (
        ("CITATION.cff", f"version: {version}"),
        ("deploy/kubernetes/statefulset.yaml", f"image: streamdp:{version}"),
    ):
        if line not in (root / path).read_text("utf-8"):
            yield f"{path}: has no line '{line}'"
    if not (root / "tests" / "golden" / "api" / f"{version}.txt").exists():
        yield "tests/golden/api: lists no names of this version: run python -m tests.golden api"
    yield from _of_git(root, version)


def _of_git(root: Path, version: str) -> Iterator[str]:
    def git(*arguments: str) -> str:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
        return done.stdout.rstrip()

    if changed := git("status", "--porcelain"):
        yield f"git: not committed: {', '.join(line[3:] for line in changed.splitlines()[:5])}"
    tag = f"v{version}"
    if git("tag", "--list", tag) and git("rev-list", "-1", tag) != git("rev-parse", "HEAD"):
        yield f"git: {tag} is another commit already"


def _run(*command: str | Path, **options: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | options
    subprocess.run(command, check=True, cwd=ROOT, env=environment)


def environment_of(folder: Path, *packages: str | Path) -> Path:
    """Make an environment with these packages from nothing; its Python."""
    venv.create(folder, with_pip=True, symlinks=True)
    python = folder / "bin" / "python"
    _run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def build(into: Path, scratch: Path) -> tuple[Path, Path]:
    """Build wheel and sdist into a folder."""
    python = environment_of(scratch / "build", HATCHLING, ROOT)
    _run(python, ROOT / "deploy" / "build_wheel.py", "--into", into)
    _run(python, "-m", "hatchling", "build", "-t", "sdist", "-d", into)
    (wheel,), (sdist,) = into.glob("*.whl"), into.glob("*.tar.gz")
    return wheel, sdist


def prove(python: Path) -> float:
    """Run what the wheel has installed, elsewhere than in the source; CPU seconds of ``streamdp demo``."""
    command = [python, "-I", "-m", "streamdp"]
    with tempfile.TemporaryDirectory() as empty:
        environment = {"PATH": os.environ["PATH"], "HOME": empty, "STREAMDP_CACHE_DIR": f"{empty}/kernels"}
        told = subprocess.run([*command, "--version"], check=True, capture_output=True, text=True).stdout
        if told != f"streamdp {version_of(ROOT)}\n":
            raise SystemExit(f"the wheel says that it is {told}")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([*command, "demo"], check=True, capture_output=True, cwd=empty, env=environment)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if compiled := [path.name for path in Path(empty).rglob("*.kernel")]:
            raise SystemExit(f"the wheel lacks what streamdp demo had to compile: {', '.join(compiled)}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def write_sums(folder: Path) -> None:
    """Write the SHA-256 of every file of a folder, as ``sha256sum --check`` reads it."""
    files = sorted(path for path in folder.iterdir() if path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / "SHA256SUMS").write_text("".join(lines))


def main() -> int:
    """Check, build, prove, list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", default="dist", help="folder for the files; must not exist")
    parser.add_argument("--check", action="store_true", help="only say what is missing for a release")
    parser.add_argument("--candidate", action="store_true", help="build although something is missing")
    options = parser.parse_args()
    faults = list(missing(ROOT))
    for fault in faults:
        print(f"not a release yet: {fault}", file=sys.stderr)
    if options.check or (faults and not options.candidate):
        return 1 if faults else 0
    into = Path(options.into).resolve()
    into.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as made:
        scratch = Path(made)
        wheel, _ = build(into, scratch)
        python = environment_of(scratch / "proof", wheel)
        seconds = prove(python)
        tools = environment_of(scratch / "tools", SBOM)
        listed = into / "sbom.json"
        _run(tools, "-m", "cyclonedx_py", "environment", "--output-reproducible", "-o", listed, python)
    write_sums(into)
    for path in sorted(into.iterdir()):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
    print(f"streamdp demo from the wheel: {seconds:.1f} CPU s")
    if seconds > MOST_CPU:
        print(f"that is more than {MOST_CPU:g}: are the kernels in the wheel?", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
