"""What the pages say of alerts: ten commands from nothing to a message, and tables that are read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import msgspec
from commands import environment
from pages import blocks, same, sessions
from ports import free_port

from streamdp.alerts.forms import as_lines, body_of
from streamdp.alerts.outbox import Done, Notification
from streamdp.settings.alerts import Alert, What, alerts_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "alerts.md").read_text("utf-8")
END = "--- the end of a command"


def programs(folder: Path) -> dict[str, str]:
    """An environment in which these programs are those of the tests."""
    for name, what in (("streamdp", " -m streamdp"), ("python", "")):
        (folder / name).write_text(f'#!/bin/sh\nexec {sys.executable}{what} "$@"\n')
        (folder / name).chmod(0o755)
    (folder / "pip").write_text('#!/bin/sh\nprintf "%s\\n" "$*" > pip.said\n')  # the tests install nothing
    (folder / "pip").chmod(0o755)
    return environment() | {"PATH": f"{folder}:{os.environ['PATH']}"}


def test_a_newcomer_gets_a_message_in_ten_commands(tmp_path: Path) -> None:
    mine = [block for block in blocks("docs/serve.md") if "a_newcomer" in block.remark]
    asked = [one for block in mine for one in sessions(block.text)]
    assert len(asked) == 10
    ports = {"8080": str(free_port()), "9000": str(free_port())}

    def here(text: str) -> str:
        """The text with ports of our own; what a reader is told to wait for a while, is waited for."""
        delivered = "curl -s http://127.0.0.1:8080/metrics | grep -q '^streamdp_alerts_delivered.* 1.0'"
        text = text.replace("sleep 2;", f"until {delivered}; do sleep 0.2; done;")
        for port, free in ports.items():
            text = text.replace(port, free)
        return text

    folder = tmp_path / "empty"
    folder.mkdir()
    whole = "".join(f"{here(script)}\necho '{END}'\n" for script, _ in asked)
    process = subprocess.Popen(
        ["sh", "-c", whole],
        cwd=folder,
        env=programs(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        printed = ""
        while printed.count(END) < 10 and (line := process.stdout.readline()):
            printed += line
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(60)
    for (script, promised), found in zip(asked, printed.split(f"{END}\n"), strict=False):
        assert same(found, here(promised)), f"{script}{printed}"
    wanted = (folder / "pip.said").read_text().split("[")[1].rstrip("]\n").split(",")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert {*wanted} <= {*extras}


def test_the_tables_of_the_page_are_read() -> None:
    (block,) = [block for block in blocks("docs/alerts.md") if block.language == "toml"]
    found = alerts_of(tomllib.loads(block.text)["alert"], "docs/alerts.md")
    assert [each.format for each in found] == ["alertmanager", "slack", "json"]


def test_the_message_of_the_page_is_what_is_sent() -> None:
    block, line = [block for block in blocks("docs/alerts.md") if block.language == "json"]
    changed = msgspec.json.decode(line.text.replace("{", '{"alert":"wire","at":0.0,', 1), type=Notification)
    assert as_lines([changed], None).decode() == line.text
    (event,) = json.loads(block.text)["events"]
    told = {name: value for name, value in event.items() if name in Notification.__struct_fields__}
    told = Notification(alert="new-errors", **told)
    sent = body_of("json", "new-errors", [told], "http://streamdp.example:8080/", 0.0)
    assert sent.decode() == block.text.rstrip()


def test_the_page_names_every_key_and_every_event() -> None:
    keys = PAGE.split("## Keys of a table")[1].split("\n## ")[0]
    events = PAGE.split("## What is told")[1].split("\n## ")[0]
    assert all(f"`{key}`" in keys for key in Alert.__struct_fields__)
    assert all(f"`{kind}`" in events for kind in get_args(What))


def test_the_outbox_is_described_field_by_field() -> None:
    page = (ROOT / "docs" / "formats.md").read_text("utf-8").split("\n## Alerts\n")[1].split("\n## ")[0]
    assert all(f"`{name}`" in page for kind in (Notification, Done) for name in kind.__struct_fields__)
