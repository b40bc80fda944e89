"""Foreseen errors: one base, one table of codes, one line each."""

from __future__ import annotations

import ast
import importlib
import inspect
import logging
import pkgutil
import sys
from pathlib import Path

import pytest
import streamdp_connectors
from streamdp_connectors.protocol import SinkError, SourceError

import streamdp
from streamdp.cli.errors import report
from streamdp.errors import ConfigError, Exit, StreamdpError
from streamdp.monitor.health import HealthError
from streamdp.scoring.score import ScoreError
from streamdp.state.snapshot import SnapshotError

pytestmark = pytest.mark.usefixtures("printed")


def test_the_codes_are_those_of_sysexits() -> None:
    assert {code.name: int(code) for code in Exit} == {
        "USAGE": 64,
        "BAD_DATA": 65,
        "NO_INPUT": 66,
        "UNAVAILABLE": 69,
        "OUT_OF_MEMORY": 71,
        "CANNOT_CREATE": 73,
        "IO_ERROR": 74,
        "CONFIG": 78,
    }


@pytest.mark.parametrize("kind", [SourceError, SinkError, SnapshotError, ScoreError, ConfigError])
def test_every_error_is_reported_in_one_line(
    kind: type[StreamdpError], capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(kind("so it is", Exit.IO_ERROR)) == 74
    assert capsys.readouterr().err == "streamdp: so it is\n"


def test_a_line_is_printed_once_whatever_a_library_does(capsys: pytest.CaptureFixture[str]) -> None:
    handler = logging.StreamHandler(sys.stderr)
    logging.getLogger().addHandler(handler)
    try:
        report(ConfigError("wrong"))
    finally:
        logging.getLogger().removeHandler(handler)
    assert capsys.readouterr().err == "streamdp: wrong\n"


def test_codes_that_need_not_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert (report(ConfigError("wrong")), report(HealthError("taken"))) == (78, 69)
    assert report(MemoryError()) == 71
    assert capsys.readouterr().err.splitlines()[2].startswith("streamdp: out of memory: bound the clusters")


def test_a_defect_is_no_foreseen_error(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither is an exception of another library that happens to know an exit code."""

    class Foreign(Exception):  # noqa: N818
        exit_code = 64

    assert (report(KeyError("x")), report(Foreign())) == (None, None)
    assert capsys.readouterr().err == ""


def test_no_other_class_has_an_exit_code() -> None:
    found = set()
    for package in (streamdp, streamdp_connectors):
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if info.name.endswith("__main__"):
                continue
            for kind in vars(importlib.import_module(info.name)).values():
                if inspect.isclass(kind) and "exit_code" in inspect.signature(kind.__init__).parameters:
                    found.add(kind)
    assert found
    assert all(issubclass(kind, StreamdpError) for kind in found), found


def test_connectors_know_records_errors_and_csv_cells_only() -> None:
    records = {
        "streamdp.records",
        *(
            f"streamdp.records.{name}"
            for name in ("answer_rows", "arrow", "cells", "columns", "erased", "raw_batch", "stored")
        ),
    }
    allowed = {*records, "streamdp.errors", "streamdp.safe_files"}
    root = Path(streamdp_connectors.__path__[0])
    for path in sorted(root.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text()))
        taken = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        others = {module for module in taken if module.split(".")[0] == "streamdp"} - allowed
        cells = {"streamdp.decode.columns", "streamdp.decode.fields"}
        assert others == (cells if path == root / "files" / "source.py" else set()), path
