"""Record what the commands of the README print: python docs/recording.py

They are those of its first two blocks, run one after the other in an empty folder.
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = Path(__file__).with_name("recording.svg")
WIDTH, MOST = 116, 16
"""Columns, and lines of a command that are shown: its last."""

FRAME = """<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
line-height: {line_height}px; }}
.{unique_id}-title {{ font-size: 18px; font-family: sans-serif; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" /></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""
"""As rich has it, but with the fonts of who looks at it: nothing is fetched from other hosts."""


def commands() -> list[str]:
    """The commands of the first two blocks."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    return re.findall(r"^\$ (.+)$", "".join(blocks[:2]), re.MULTILINE)


def printed(command: str, folder: str) -> list[str]:
    """The lines of a command, with colours: those of a terminal, then those of stderr."""
    ours, theirs = pty.openpty()
    name, *arguments = shlex.split(command)
    run = [sys.executable, *(arguments if name == "python" else ["-m", "streamdp", *arguments])]
    environment = {**os.environ, "COLUMNS": str(WIDTH), "TERM": "xterm-256color", "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(  # noqa: S603 - commands of the README
        run, cwd=folder, env=environment, stdout=theirs, stderr=subprocess.PIPE
    )
    os.close(theirs)
    found = b""
    while chunk := _read(ours):
        found += chunk
    said: bytes = process.communicate()[1]
    os.close(ours)
    assert process.returncode == 0, said
    return (found + said).decode().replace("\r", "").splitlines()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how a terminal ends
        return b""


def main() -> None:
    """Run them, and draw."""
    with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as nowhere:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        console = Console(record=True, width=WIDTH, file=nowhere, force_terminal=True)
        for command in commands():
            console.print(f"[bold green]$[/] [bold]{command}[/]", highlight=False)
            lines = printed(command, folder)
            if len(lines) > MOST:
                console.print("...", style="dim", highlight=False)
            for line in lines[-MOST:]:
                console.print(Text.from_ansi(line), soft_wrap=True)
        console.save_svg(str(PICTURE), title="streamdp", code_format=FRAME, unique_id="recording")


if __name__ == "__main__":
    main()
