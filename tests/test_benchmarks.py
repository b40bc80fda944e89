"""The programs of the benchmarks load: what they use of the package is still there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from commands import environment

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(f"benchmarks.{name}")
    except ModuleNotFoundError as error:
        if error.name.split(".")[0] in ("benchmarks", "streamdp", "streamdp_connectors"):
            raise  # what is missing otherwise is a peer, which the extra bench installs
"""


def test_every_program_loads() -> None:
    names = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if path.stem != "__init__")
    run = [sys.executable, "-c", PROGRAM, *names]
    done = subprocess.run(run, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
