"""Build a wheel that brings compiled kernels along, for the platform and the Python that run this.

    pip install '.[wheel]'
    python deploy/build_wheel.py [--into dist] [--without-offline]

Kernels of the automatic settings (texts, vectors, lines of logs) are compiled for every baseline of the CPU's
architecture that this CPU has, and found by `streamdp` where the CPU has the baseline, and Python, numba and
llvmlite are those that built them; all others compile, as without them.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import llvmlite.binding

from streamdp.kernels.cache import baselines_of

ROOT = Path(__file__).resolve().parents[1]
STREAMS = ((), ("--format", "log"))
"""Options of ``streamdp warm`` for each kind of stream that needs no setting of a model."""


def compile_into(folder: Path, baseline: str, offline: bool) -> None:
    """Compile what streams need, for CPUs of a baseline."""
    named = {"NUMBA_CPU_NAME": baseline, "NUMBA_CPU_FEATURES": "", "STREAMDP_CACHE_DIR": str(folder)}
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "connectors")))
    for stream in STREAMS:
        command = [sys.executable, "-m", "streamdp", "warm", *stream]
        if offline and not stream:
            command.append("--offline")
        with tempfile.TemporaryDirectory() as elsewhere:  # where no settings file is
            environment = {**os.environ, **named, "PYTHONPATH": paths}
            subprocess.run(command, check=True, cwd=elsewhere, env=environment)


def main() -> None:
    """Compile, and build."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--into", default="dist", help="folder for the wheel")
    parser.add_argument("--without-offline", action="store_true", help="leave out what fit and refine need")
    options = parser.parse_args()
    into = Path(options.into).resolve()
    prebuilt = ROOT / "streamdp" / "prebuilt"
    features = dict(llvmlite.binding.get_host_cpu_features())
    if prebuilt.exists():
        parser.error(f"{prebuilt} is there already: remove it")
    try:
        for baseline in baselines_of(platform.machine(), features):
            compile_into(prebuilt, baseline, not options.without_offline)
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)], check=True, cwd=ROOT
        )
    finally:
        shutil.rmtree(prebuilt, ignore_errors=True)


if __name__ == "__main__":
    main()
