"""Build a wheel that brings compiled kernels along, for the platform and the Python that run this.

    pip install '.[wheel]'
    python deploy/build_wheel.py [--into dist] [--without-offline]

A set of kernels is compiled for every baseline of the CPU's architecture that this CPU has: those of texts,
vectors, lines of logs and categories under the default settings. A set serves where the CPU has the baseline,
and Python, numba and llvmlite are those that built it (``kernels/prebuilt.py``). The sets are compiled at the
same time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path

from streamdp.kernels.prebuilt import baselines, set_for

ROOT = Path(__file__).resolve().parents[1]
STREAMS = {
    "texts and vectors": (),
    "lines of logs": ("--format", "log"),
    "categories": ("--likelihood", "categorical"),
}
"""Options of ``streamdp check --compile`` for each kind of stream."""


def warm(folder: Path, baseline: str, *options: str) -> int:
    """Compile what a stream needs into a folder, for CPUs of a baseline; the bytes that it adds."""
    named = {"NUMBA_CPU_NAME": baseline, "NUMBA_CPU_FEATURES": "", "STREAMDP_CACHE_DIR": str(folder)}
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "connectors")))
    before = _bytes_in(folder)
    with tempfile.TemporaryDirectory() as elsewhere:  # where no settings file is
        subprocess.run(
            [sys.executable, "-m", "streamdp", "check", "--compile", *options],
            check=True,
            cwd=elsewhere,
            env={**os.environ, **named, "PYTHONPATH": paths},
        )
    return _bytes_in(folder) - before


def _bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.kernel"))


def compile_into(folder: Path, baseline: str, offline: bool) -> None:
    """Compile a set, and print what each part of it adds."""
    for kind, options in STREAMS.items():
        print(f"{baseline}, {kind}: {warm(folder, baseline, *options):,} bytes", flush=True)
        if offline and "log" not in options:
            added = warm(folder, baseline, *options, "--offline")
            print(f"{baseline}, fit and refine of {kind}: {added:,} bytes", flush=True)


def main() -> None:
    """Compile, and build."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", default="dist", help="folder for the wheel")
    parser.add_argument("--without-offline", action="store_true", help="leave out what fit and refine need")
    options = parser.parse_args()
    into = Path(options.into).resolve()
    prebuilt = ROOT / "streamdp" / "prebuilt"
    if prebuilt.exists():
        parser.error(f"{prebuilt} is there already: remove it")
    try:
        with ThreadPoolExecutor() as pool:
            names = baselines()
            folders = [prebuilt / set_for(name).name for name in names]
            list(pool.map(compile_into, folders, names, repeat(not options.without_offline)))
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)], check=True, cwd=ROOT
        )
    finally:
        shutil.rmtree(prebuilt, ignore_errors=True)


if __name__ == "__main__":
    main()
