"""The programs of the benchmarks load: what they use of the package is still there; files are read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from commands import environment
from pyarrow import parquet

from benchmarks.strange_vectors import from_file

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
    folder = ROOT / "benchmarks"
    paths = [path.relative_to(folder).with_suffix("") for path in folder.rglob("*.py")]
    names = sorted(".".join(path.parts) for path in paths if path.stem != "__init__")
    run = [sys.executable, "-c", PROGRAM, *names]
    done = subprocess.run(run, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr


def test_strangers_may_be_files(tmp_path: Path) -> None:
    vectors, kinds = np.array([[0.5, 1.0], [2.0, 3.0], [4.0, 5.0]]), ["b", "a", "b"]
    np.save(tmp_path / "x.npy", vectors.astype(np.float16))
    np.save(tmp_path / "y.npy", np.array([7, 3, 7]))
    columns = {"one": vectors[:, 0], "kind": kinds, "two": vectors[:, 1]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "columns.parquet")
    parquet.write_table(pyarrow.table({"v": vectors.tolist(), "kind": kinds}), tmp_path / "lists.parquet")
    for name, truth in (
        ("x.npy", str(tmp_path / "y.npy")),
        ("columns.parquet", "kind"),
        ("lists.parquet", "kind"),
    ):
        data = from_file(str(tmp_path / name), truth, normalise=False)
        assert data.vectors.tolist() == vectors.tolist()
        assert data.truth.tolist() == [1, 0, 1]
    for name, truth in (
        ("x.npy", "none.npy"),
        ("lists.parquet", "kinds"),
        ("y.npy", str(tmp_path / "y.npy")),
    ):
        with pytest.raises(SystemExit):
            from_file(str(tmp_path / name), truth, normalise=False)
