"""A real Chromium, of Debian's package, and axe-core, of npm's."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.sync_api import Browser, Page, expect, sync_playwright

INSTALL = "the tests of the page need Chromium and npm: apt install chromium npm"
OLDEST = 120
"""Older releases are refused. Debian keeps the newest alone, so none can be pinned; apt checks signatures."""

FONTS = "fonts-inter"
"""What the pictures are set in."""

AXE = "4.10.3"
AXE_SHA512 = "Xm7bpRXnDSX2YE2YFfBk2FnF0ep6tmG7xPh8iHee8MIcrgq762Nkce856dYtJYLkuIoYZvGfTs/PbZhideTcEg=="
PATIENCE = 120_000.0
"""Milliseconds that a test waits for what a page is to show."""

CACHE = Path.home() / ".cache" / "streamdp-tests"


class BrowserError(Exception):
    """Chromium cannot be had: one line."""


class Program(NamedTuple):
    """Where it is, and what it needs in its environment."""

    path: str
    environment: dict[str, str]


def chromium() -> Program:
    """The one that is installed, else that of Debian's package, fetched on first use and not installed."""
    folder = CACHE / "chromium"
    installed = shutil.which("chromium")
    if installed:
        return Program(installed, {})
    if not folder.is_dir():
        _fetch(folder)
    libraries = [folder / "usr" / "lib" / f"{os.uname().machine}-linux-gnu"]
    libraries += [libraries[0] / "pulseaudio", folder / "usr" / "lib" / "chromium"]
    return Program(
        str(folder / "usr" / "lib" / "chromium" / "chromium"),
        {
            "LD_LIBRARY_PATH": os.pathsep.join(map(str, libraries)),
            "XDG_DATA_HOME": str(folder / "usr" / "share"),
        },
    )


def _fetch(folder: Path) -> None:
    """The package and all that it needs and this machine has not, side by side in one folder."""
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    packages = fresh / "packages"
    (packages / "partial").mkdir(parents=True)
    wanted = ["install", "--yes", "--no-install-recommends", "--download-only", "chromium", FONTS]
    options = ["-o", f"Dir::Cache::archives={packages}", "-o", "Debug::NoLocking=1"]
    try:
        if not _run(["apt-get", *options, *wanted], fresh, must=False):
            _run(
                ["apt-get", "update"], fresh, must=False
            )  # what is known of the archive may be old, or missing
            _run(["apt-get", *options, *wanted], fresh)
        for package in sorted(packages.glob("*.deb")):
            _run(["dpkg-deb", "-x", str(package), "."], fresh)
        shutil.rmtree(packages)
        fresh.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # or else another process was faster
            raise BrowserError(f"{error}; {INSTALL}") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _run(command: list[str], folder: Path, *, must: bool = True) -> bool:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode and must:
        raise BrowserError(f"{command[0]}: {' '.join(done.stderr.split())[-200:]}; {INSTALL}")
    return done.returncode == 0


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser without a window."""
    program = chromium()
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=program.path,
            args=["--no-sandbox", "--disable-gpu"],
            env={**os.environ, **program.environment},
        )
        if int(found.version.partition(".")[0]) < OLDEST:
            raise BrowserError(f"Chromium {found.version} is too old; {INSTALL}")
        opened = found.new_page

        def new_page(**how: Any) -> Page:
            page = opened(**how)
            page.set_default_timeout(PATIENCE)
            return page

        found.new_page = new_page  # type: ignore[method-assign]
        expect.set_options(timeout=PATIENCE)
        yield found
        found.close()


def axe() -> str:
    """The source of axe-core, fetched on first use by npm."""
    held = CACHE / f"axe-core-{AXE}.js"
    if not held.exists():
        held.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            _run(["npm", "pack", "--silent", f"axe-core@{AXE}"], folder)
            (package,) = folder.glob("axe-core-*.tgz")
            if base64.b64encode(hashlib.sha512(package.read_bytes()).digest()).decode() != AXE_SHA512:
                raise BrowserError(f"axe-core {AXE} is not the package that was pinned")
            _run(["tar", "-xzf", package.name, "package/axe.min.js"], folder)
            fresh = held.with_name(f"{held.name}.{os.getpid()}")
            fresh.write_bytes((folder / "package" / "axe.min.js").read_bytes())
            fresh.rename(held)
    return held.read_text("utf-8")
