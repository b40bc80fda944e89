"""Foreseen errors of the command line: one line, an exit code of sysexits.h, and nothing lost."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from commands import (
    assignments,
    command,
    environment,
    fail,
    parsed,
    succeed,
)

GOOD_TEXT = b'{"text": "a good text"}'


@pytest.mark.parametrize(
    ("arguments", "codes", "says"),
    [
        (("--file", "none.jsonl"), (66,), "none.jsonl"),
        (("--file", "."), (64,), "several formats"),
        (("--file", "folder"), (66,), "folder holds no files"),
        (("--beam", "many"), (2, 78), "--beam"),
        (("--beam", "0"), (2, 78), "at least 1"),
        (("--prior", "crpp"), (2, 78), "crp"),
        (("--max-lateness", "nan"), (2, 78), "--max-lateness"),
        (("--max-ahead", "inf"), (2, 78), "--max-ahead"),
        (("--prior", "crp", "--decay", "window"), (78,), "decay has no meaning with the crp prior"),
        (("--distance", "seconds"), (78,), "decay_scale must be given"),
        (("--likelihood", "gaussian", "--kappa", "1"), (78,), "kappa has no meaning"),
        (("--time-field", "text"), (78,), "same name"),
        (("--config", "none.toml"), (66, 78), "none.toml"),
        (("--config", "broken.toml"), (78,), "broken.toml, line 2"),
        (("--config", "misspelt.toml"), (78,), "did you mean beam?"),
        (("--config", "wrong.toml"), (78,), "key beam"),
        (("--output", "existing"), (73,), "--overwrite"),
        (("--output", "none/out"), (73,), "none/out"),
        (("--rejects", "existing"), (73,), "--overwrite"),
        (("--events", "existing"), (73,), "--overwrite"),
        (("--state", "existing"), (73,), "state folder"),
        (("--output", "out.gz"), (64,), "gzip"),
        (("--file", "unnamed.csv"), (65, 78), "names no column"),
        (("--output", "/dev/full"), (74,), "No space left"),
    ],
)
def test_foreseen_errors_are_one_line(
    tmp_path: Path, arguments: tuple[str, ...], codes: tuple[int, ...], says: str
) -> None:
    (tmp_path / "in.jsonl").write_bytes(GOOD_TEXT + b"\n")
    (tmp_path / "existing").write_text("precious\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "broken.toml").write_text("beam = 3\nprior = crp\n")
    (tmp_path / "misspelt.toml").write_text("baem = 3\n")
    (tmp_path / "wrong.toml").write_text('beam = "3"\n')
    (tmp_path / "unnamed.csv").write_text(",\n1,2\n")
    file = () if "--file" in arguments else ("--file", "in.jsonl")
    code, message = fail(tmp_path, "consume", *file, *arguments)
    assert code in codes
    assert says in message
    assert (tmp_path / "existing").read_text() == "precious\n"


def test_errors_in_the_environment(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(GOOD_TEXT + b"\n")
    code, message = fail(tmp_path, "consume", "--file", "in.jsonl", beem="3")
    assert code == 78
    assert "did you mean STREAMDP_BEAM?" in message
    (tmp_path / "streamdp.toml").write_text("bean = 3\n")
    assert fail(tmp_path, "consume", "--file", "in.jsonl")[0] == 78


def test_overwrite(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(GOOD_TEXT + b"\n")
    for name in ("out", "out.rejects.jsonl", "events"):
        (tmp_path / name).write_text("old\n" * 1000)
    succeed(tmp_path, "consume", "--file", "in.jsonl", "--output", "out", "--events", "events", "--overwrite")
    assert len(assignments((tmp_path / "out").read_bytes())) == 1
    assert (tmp_path / "out.rejects.jsonl").read_bytes() == b""
    assert parsed((tmp_path / "events").read_bytes())[0]["event"] == "born"


@pytest.mark.parametrize(
    "arguments",
    [
        ("--output", "in.jsonl"),
        ("--output", "./in.jsonl"),
        ("--rejects", "in.jsonl"),
        ("--events", "in.jsonl"),
        ("--output", "same", "--events", "same"),
        ("--output", "same", "--rejects", "same"),
        ("--events", "same", "--rejects", "same"),
    ],
)
def test_no_file_is_used_twice(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """Even with --overwrite, which would otherwise empty the input before it is read."""
    data = GOOD_TEXT + b"\n" + b"broken\n"
    (tmp_path / "in.jsonl").write_bytes(data)
    code, _ = fail(tmp_path, "consume", "--file", "in.jsonl", "--overwrite", *arguments)
    assert code in (64, 73, 78)
    assert (tmp_path / "in.jsonl").read_bytes() == data


def test_a_closed_standard_output_is_an_error(tmp_path: Path) -> None:
    """Its number must not fall to the next file opened, and answers go into that one."""
    (tmp_path / "in.jsonl").write_bytes(GOOD_TEXT + b"\n")
    line = shlex.join(command("consume", "--file", "in.jsonl", "--state", "state")) + " >&-"
    done = subprocess.run(
        ["sh", "-c", line], cwd=tmp_path, env=environment(), capture_output=True, timeout=300
    )
    assert (tmp_path / "state" / "lock").read_bytes() == b""
    assert done.returncode == 74
    assert done.stderr.startswith(b"streamdp: cannot write standard output")


def test_messages_never_get_into_the_output(tmp_path: Path) -> None:
    """Not even where standard error is closed."""
    line = shlex.join(command("consume", "--file", "-", "--rejects", "rejects")) + " 2>&-"
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=tmp_path,
        env=environment(),
        input=GOOD_TEXT + b"\nbroken\n",
        stdout=subprocess.PIPE,
        timeout=300,
    )
    assert done.returncode == 0
    assert len(parsed(done.stdout)) == 2
