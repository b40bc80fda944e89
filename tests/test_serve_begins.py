"""The beginning of a service: on a slow disk, and after one that was cut off anywhere."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import call as call_command
from commands import start
from serving import Served
from streamdp_connectors.store import schema, sink

from streamdp.serve.bodies import FILES, SERVICE
from streamdp.state import snapshot


def test_a_first_start_on_a_slow_disk_takes_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = os.fsync
    monkeypatch.setattr(os, "fsync", lambda file: (time.sleep(0.3), quick(file))[1])
    served = Served(tmp_path)
    assert served.send({"id": "a", "text": "storm over the coast"})[0] == 200
    assert served.stop() == 0
    assert b"Traceback" not in served.said


def killed_at(number: int, *functions: tuple[Any, str]) -> Callable[[pytest.MonkeyPatch], None]:
    """Has a process end by SIGKILL at the so manieth call of any of these."""

    def patch(patched: pytest.MonkeyPatch) -> None:
        left, tested = [number], os.getpid()
        for module, name in functions:
            whole = getattr(module, name)

            def calls(*given: Any, whole: Any = whole, **named: Any) -> Any:
                left[0] -= os.getpid() != tested
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return whole(*given, **named)

            patched.setattr(module, name, calls)

    return patch


def test_a_start_that_was_cut_off_anywhere_is_gone_on_with(tmp_path: Path) -> None:
    places = (os, "fsync"), (os, "rename"), (os, "replace"), (sink, "Tables"), (schema, "refuse_programs")
    for number in range(1, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patched:
            killed_at(number, *places)(patched)
            process = start(folder, "serve", "--state", "st", "--store", "news.db", "--port", "0")
            deadline = time.monotonic() + 120
            while process.poll() is None and not [*folder.glob("st/*.sdp")] and time.monotonic() < deadline:
                time.sleep(0.02)
            time.sleep(0.2)
            begun = process.poll() is None
            if begun:
                process.send_signal(signal.SIGKILL)
            process.communicate(timeout=120)
        served = Served(folder)
        assert served.send({"id": "a", "text": "storm over the coast"})[0] == 200
        assert served.stop() == 0
        if begun:
            break
    assert 3 < number < 99


def test_a_service_may_open_the_files_that_its_connections_need(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        served = Served(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    limits = Path(f"/proc/{served.process.pid}/limits").read_text()
    (allowed,) = [line.split()[3] for line in limits.splitlines() if line.startswith("Max open files")]
    assert int(allowed) == min(FILES, hard if hard != resource.RLIM_INFINITY else FILES)
    assert served.stop() == 0
    unit = Path(__file__).parents[1] / "deploy/serve/streamdp-serve.service"
    assert f"\nLimitNOFILE={FILES}\n" in unit.read_text()
    assert 2 * SERVICE.connections < FILES


def test_a_store_without_records_is_no_reason_to_refuse(tmp_path: Path) -> None:
    """One that was made, or begun, and holds nothing; another database is left alone."""
    (tmp_path / "in.jsonl").write_text('{"text": "storm over the coast"}\n')
    run = "consume", "in.jsonl", "--store", "news.db"
    with sqlite3.connect(tmp_path / "news.db") as store:
        store.execute("PRAGMA journal_mode = WAL")
    store.close()
    assert call_command(tmp_path, *run, "--output", "a.jsonl").returncode == 0
    refused = call_command(tmp_path, *run, "--output", "b.jsonl")
    assert (refused.returncode, b"news.db exists" in refused.stderr) == (73, True)
    with sqlite3.connect(tmp_path / "other.db") as store:
        store.execute("CREATE TABLE mine (one)")
    store.close()
    refused = call_command(tmp_path, "consume", "in.jsonl", "--store", "other.db", "--output", "c.jsonl")
    assert (refused.returncode, b"no store of streamdp" in refused.stderr) == (65, True)


def test_a_table_of_which_only_the_header_was_written_is_gone_on_with(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": "storm over the coast"}\n')
    run = "consume", "in.jsonl", "--output", "a.csv", "--output-format", "csv", "--state", "st"
    with pytest.MonkeyPatch.context() as patched:
        killed_at(1, (snapshot.StateFolder, "write"))(patched)
        process = start(tmp_path, *run)
        process.communicate(timeout=120)
    assert process.returncode == -signal.SIGKILL
    assert (tmp_path / "a.csv").stat().st_size
    assert call_command(tmp_path, *run).returncode == 0
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 2
