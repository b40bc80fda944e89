"""What ``import streamdp`` offers stays, from release to release."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden.api import broken, listing

from streamdp import __version__

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "golden" / "api"


def version_of(path: Path) -> tuple[int, ...]:
    return tuple(map(int, path.stem.split(".")))


RELEASES = sorted(FOLDER.glob("*.txt"), key=version_of)


def section(version: str) -> str:
    """What the changelog says of a release."""
    parts = (ROOT / "CHANGELOG.md").read_text("utf-8").split("\n## ")
    return next(part for part in parts if part.startswith(version))


def test_what_is_listed_of_this_release_is_offered() -> None:
    """The release itself lists all (deploy/release.py)."""
    path = FOLDER / f"{__version__}.txt"
    if path.exists():
        assert broken(path.read_text("utf-8").splitlines(), listing()) == [], "python -m tests.golden api"


def test_nothing_of_the_last_release_is_gone_without_a_word() -> None:
    before = [path for path in RELEASES if path.stem != __version__]
    if before:
        told = set(re.findall(r"`([\w.]+)[^`]*`", section(__version__)))
        gone = broken(before[-1].read_text("utf-8").splitlines(), listing())
        untold = [line for line in gone if re.sub(r"^streamdp\.", "", line.partition(":")[0]) not in told]
        assert untold == [], "the changelog names what is gone or has become necessary"


@pytest.mark.parametrize(
    ("before", "now", "expected"),
    [
        (["a", "a: x"], ["a", "a: x", "a: y=", "b"], []),
        (["a", "a: x="], ["a"], ["a: x="]),
        (["a", "a: x="], ["a", "a: x"], ["a: x", "a: x="]),
        (["a"], ["a", "a: y"], ["a: y"]),
        (["a", "b"], ["a", "c", "c: y"], ["b"]),
        (["a", "a: x*"], ["a", "a: x*", "a: y*"], []),
    ],
)
def test_what_breaks_a_program(before: list[str], now: list[str], expected: list[str]) -> None:
    assert broken(before, now) == expected


def test_the_list_has_what_pages_show() -> None:
    found = listing()
    for line in (
        "streamdp.Engine.loads: data",
        "streamdp.Engine.loads: options*",
        "streamdp.Settings: beam=",
        "streamdp.Assignment.cluster",
        "streamdp.priors.CRP: concentration=",
        "streamdp.StreamDP.learn_one: x",
        "streamdp.cluster",
    ):
        assert line in found
