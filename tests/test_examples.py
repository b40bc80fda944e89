"""The examples run, and print what they are there to show."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import environment, write_headlines

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SHOWN = {
    "strings": "cluster 2, 3 records: flood bridge cork",
    "file_to_labels": "1,000 records in 14 clusters",
    "drifting_sensors": "fault in cluster 2:   75 minutes\nidle  in cluster 1:  435 minutes",
    "offline_fit": "sizes: 100 100 100\n",
}
"""The scripts, and a piece of what each prints; test_own_family.py and pages run others."""


def run(name: str, folder: Path, *arguments: str) -> str:
    """What a script prints in a folder that is not its own."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments],
        cwd=folder,
        env=environment(),
        capture_output=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.parametrize("name", SHOWN)
def test_scripts_show_what_they_should(name: str, tmp_path: Path) -> None:
    assert SHOWN[name] in run(name, tmp_path)


def test_a_file_becomes_a_table(tmp_path: Path) -> None:
    write_headlines(tmp_path / "news.jsonl", 300)
    assert run("file_to_labels", tmp_path, "news.jsonl", "labels.csv") == ""
    head, *rows = (tmp_path / "labels.csv").read_text().splitlines()
    assert head == "record,id,cluster,probability"
    assert [row.split(",")[0] for row in rows] == [str(i) for i in range(300)]


def test_all_are_tried_and_listed() -> None:
    elsewhere = {"own_family", "newsroom", "oncall", "blobs", "to_lines"}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*SHOWN, *elsewhere}
    listed = (EXAMPLES / "README.md").read_text()
    assert all(f"`{path.name}`" in listed for path in EXAMPLES.glob("*.[pi]*"))


def test_the_notebook_prints_what_it_holds(tmp_path: Path) -> None:
    notebook = json.loads((EXAMPLES / "first_look.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    between = "\nprint('--- next cell')\n"
    (tmp_path / "notebook.py").write_text(between.join("".join(cell["source"]) for cell in cells))
    done = subprocess.run(
        [sys.executable, "notebook.py"],
        cwd=tmp_path,
        env=environment() | {"MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    held = [
        "".join("".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream")
        for cell in cells
    ]
    assert done.stdout.split("--- next cell\n") == held
