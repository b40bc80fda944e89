"""The code that the documentation shows, and running it.

A ``python`` block is a program; what follows a print as a comment is what it prints. ``console`` blocks
are commands behind ``$`` and what they print, errors too; ``sh`` blocks commands that succeed, and a
``json`` or ``text`` block right after one is what it prints. ``...`` stands for anything. A block that is
not run here has a comment before it that says why, or which test runs it.
"""

from __future__ import annotations

import contextlib
import csv
import json
import os
import random
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from commands import environment
from inside import fork
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
DOCS = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
PAGES = ["README.md", "CONTRIBUTING.md", "SECURITY.md", *DOCS]
SHELL = """
streamdp() { "$PYTHON" -I -S -c "$ASK" "$@"; }
python() { "$PYTHON" "$@"; }
tail() { if [ "$1" = -f ]; then shift; cat "$@"; else command tail "$@"; fi; }
"""
"""A tool of this environment is what a page means; a log that grows for ever ends where it stands."""
ASK = """
import array, json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect(os.environ["ASKED"])
    what = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n"
    asked.sendmsg([what[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    asked.sendall(what[1:])
    sys.exit(int(asked.recv(9)))
"""
"""A command of a script asks the tests' process for a fork of it, and gives it its streams."""


class Block(NamedTuple):
    """A block of code, the comment before it, and whether only blanks are between it and the last block."""

    page: str
    line: int
    language: str
    text: str
    remark: str
    adjacent: bool

    @property
    def runs(self) -> bool:
        """Whether it is run here, and not explained."""
        return self.language in ("python", "console", "sh") and not self.remark


def blocks(page: str) -> list[Block]:
    """All blocks of code of a page."""
    found: list[Block] = []
    before: Any = None
    for token in MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text("utf-8")):
        if token.type in ("fence", "code_block"):
            remark = before.content.strip() if before is not None and before.type == "html_block" else ""
            adjacent = before is not None and before.type == "fence"
            language = token.info.strip() if token.type == "fence" else "indented"
            line = token.map[0] + 1 if token.map else 0
            remark = remark.removeprefix("<!--").removesuffix("-->").strip()
            found.append(Block(page, line, language, token.content, remark, adjacent))
        before = token
    return found


def same(printed: str, promised: str) -> bool:
    """Whether a text is what a page promises, ``...`` standing for anything."""
    wanted = ".*?".join(map(re.escape, promised.rstrip().split("...")))
    return (
        re.fullmatch(wanted, re.sub(r" +$", "", printed.rstrip(), flags=re.MULTILINE), re.DOTALL) is not None
    )


def run(command: list[str], folder: Path, errors: int = subprocess.STDOUT, *, may_fail: bool = False) -> str:
    """What a program prints, its errors included unless told otherwise."""
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": errors}
    started, found = environment() | {"PYTHON": sys.executable, "ASK": ASK}, command[-1].removeprefix(SHELL)
    if re.fullmatch(r"streamdp [^|<>&;$()*?`~#\n]+", found.replace("\\\n", "").strip()):
        process = fork(shlex.split(found)[1:], folder, started, **streams)
        said, wrong = process.communicate(timeout=600)
    else:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, serving() as asked:
            started["ASKED"] = asked.getsockname()
            streams |= {"stdout": out, "stderr": err if errors == subprocess.PIPE else errors}
            process = subprocess.Popen(command, cwd=folder, env=started, **streams)
            serve(asked, process)
            out.seek(0)
            err.seek(0)
            said, wrong = out.read(), err.read()
    text = said.decode()
    assert may_fail or process.returncode == 0, text + (wrong or b"").decode()
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.removeprefix("streamdp: ").startswith("compiling "))


@contextlib.contextmanager
def serving() -> Iterator[socket.socket]:
    """A socket that is asked for commands."""
    with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as asked:
        asked.bind(f"{name}/asked")
        asked.listen()
        asked.settimeout(0.01)
        yield asked


def serve(asked: socket.socket, process: subprocess.Popen[bytes], seconds: float = 600.0) -> None:
    """Run the commands that a script asks for, until it ends."""
    deadline, running = time.monotonic() + seconds, list[tuple[socket.socket, subprocess.Popen[bytes]]]()
    while process.poll() is None:
        assert time.monotonic() < deadline, f"not within {seconds} s"
        with contextlib.suppress(TimeoutError):
            client, _ = asked.accept()
            client.setblocking(True)
            first, ends, _, _ = socket.recv_fds(client, 1, 3)
            with client.makefile("rb") as rest:
                arguments, folder, started = json.loads(first + rest.readline())
            streams = dict(zip(("stdin", "stdout", "stderr"), ends, strict=True))
            running.append((client, fork(arguments, Path(folder), started, **streams)))
            for end in ends:
                os.close(end)
        for client, command in [each for each in running if each[1].poll() is not None]:
            code = command.returncode
            with client, contextlib.suppress(OSError):
                client.sendall(b"%d" % (code if code >= 0 else 128 - code))
            running.remove((client, command))
    for client, command in running:
        command.wait()
        client.close()


def sessions(text: str) -> Iterator[tuple[str, str]]:
    """Commands of a console, and what each prints."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        end = next(i for i, line in enumerate(lines) if not line.endswith("\\\n")) + 1
        yield "".join(lines[:end]), "".join(lines[end:])


def ran(block: Block, folder: Path) -> Iterator[tuple[str, str, str | None]]:
    """Each part of a block, what it prints, and what it promises; None where it promises nothing."""
    if block.language == "python":
        promised = "\n".join(re.findall(r"print\(.*\)  # (.*)", block.text))
        yield block.text, run([sys.executable, "-c", block.text], folder), promised
    elif block.language == "console":
        for script, promised in sessions(block.text):
            yield script, run(["sh", "-c", SHELL + script], folder, may_fail=True), promised
    else:
        yield block.text, run(["sh", "-ec", SHELL + block.text], folder, subprocess.PIPE), None


def failures(page: str, folder: Path) -> Iterator[str]:
    """Run a page in a folder, from the top; tell what it promises and does not hold."""
    pieces = blocks(page)
    for block, after in zip(pieces, [*pieces[1:], None], strict=True):
        for what, printed, promised in ran(block, folder) if block.runs else ():
            if (
                promised is None
                and after is not None
                and after.adjacent
                and after.language in ("json", "text")
            ):
                promised = after.text
            if promised is not None and not same(printed, promised):
                yield f"{page}:{block.line}: {what}\nprinted\n{printed}\ninstead of\n{promised}"


def prepare(folder: Path, stream: Path) -> None:
    """The files that commands read: headlines as they come in the tests, a table of some, and a log."""
    all_lines = stream.read_text().splitlines(keepends=True)
    lines = all_lines[:1200]
    (folder / "news.jsonl").write_text("".join(lines))
    with (folder / "news.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time", "headline"])
        table.writerows([record["time"], record["text"]] for record in map(json.loads, lines[:200]))
    (folder / "app.log").write_text("".join(log_lines(2000)))
    (folder / "shop.log").write_text(TRACES)
    (folder / "collected.json").write_text(COLLECTED)
    (folder / "more.jsonl").write_text("".join(all_lines[1200:1400]))
    rng = random.Random(1)
    for name, n in {"counts": 120, "more_counts": 6}.items():
        rows = [[rng.randrange(3) + (9 if d == i % 3 else 0) for d in range(3)] for i in range(n)]
        (folder / f"{name}.jsonl").write_text("".join(f'{{"vector":{row}}}\n' for row in rows))
    os.symlink(ROOT / "examples", folder / "examples")


TRACES = """\
2026-01-05 10:00:01 ERROR request 17 failed
Traceback (most recent call last):
  File "/app/shop/views.py", line 23, in handle
    cart.add(item)
  File "/app/shop/cart.py", line 7, in add
    return self.items[item]
  File "/usr/lib/python3.11/collections/__init__.py", line 3, in __missing__
    raise KeyError(key)
KeyError: 'socks'
2026-01-05 10:00:02 ERROR request 18 failed
java.lang.IllegalStateException: cart 5 is empty
\tat java.base/java.util.Optional.get(Optional.java:143)
\tat com.acme.shop.Cart.add(Cart.java:17)
"""
"""A log with two stack traces."""


COLLECTED = (
    '{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},'
    '"scopeLogs":[{"scope":{"name":"cart"},"logRecords":[{"timeUnixNano":"1767571200000000000",'
    '"severityNumber":9,"body":{"stringValue":"user 17 added item 204"}},{"body":5},'
    '{"timeUnixNano":"1767571201000000000","severityNumber":17,'
    '"body":{"stringValue":"payment of user 17 failed"},'
    '"attributes":[{"key":"http.route","value":{"stringValue":"/pay"}}]}]}]}]}\n'
)
"""A line as OpenTelemetry's collector writes them."""


def log_lines(n: int) -> Iterator[str]:
    """A log of five kinds of lines, of which one is rare."""
    rng = random.Random(0)
    for i in range(n):
        address, port = f"10.0.{rng.randrange(4)}.{rng.randrange(1, 255)}", rng.randrange(1024, 65536)
        lines = [
            f"sshd: Accepted publickey for deploy from {address} port {port}",
            f"sshd: Failed password for invalid user admin from {address} port {port}",
            f"nginx: GET /cart/{rng.randrange(10_000)} 200 {rng.randrange(1, 90)}ms",
            f"postgres: checkpoint complete: wrote {port} buffers in {rng.random() * 30:.3f} s",
            f"kernel: Out of memory: Killed process {rng.randrange(300, 32_768)} (java)",
        ]
        kind = 4 if rng.random() < 0.01 else rng.choices(range(4), [5, 2 if i < 1200 else 9, 20, 3])[0]
        host = rng.choice(["db1", "db2", "web1", "web2"])
        yield f"2026-01-05T{i // 250:02}:{i % 60:02}:00 {host} {lines[kind]}\n"
