"""Passwords and tokens appear in no log, metric, output, state, title of a process or traceback."""

from __future__ import annotations

import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from commands import call, environment, fail, start
from ports import free_port
from typer.main import get_command

from streamdp import safe_files
from streamdp.cli.app import app
from streamdp.run.reading import Client
from streamdp.settings.io_options import Input

PASSWORD, KEY = "hunter2-is-secret", "key-is-secret"
PROPERTIES = f"""security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.username=alice
sasl.password={PASSWORD}
"""
WAITS = ("consume", "--topic", "news", "--bootstrap", "127.0.0.1:1", "--state", "state")


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "client.properties").write_text(PROPERTIES)
    (tmp_path / "client.properties").chmod(0o600)
    return tmp_path


def holding(folder: Path) -> list[str]:
    """Names of files that hold a secret, but for the one that may."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "client.properties":
            data = path.read_bytes()
            found += [path.name for secret in (PASSWORD, KEY) if secret.encode() in data]
    return found


@pytest.mark.parametrize("form", ["plain", "json"])
def test_no_log_and_no_error_shows_one(here: Path, form: str) -> None:
    done = call(
        here, *WAITS, "--kafka-config", "client.properties", "--give-up-after", "1", "--log-format", form
    )
    assert done.returncode == 69
    assert PASSWORD.encode() not in done.stderr + done.stdout
    assert holding(here) == []


@pytest.mark.parametrize("form", ["plain", "json"])
def test_no_traceback_shows_one(here: Path, form: str) -> None:
    code = (
        "import streamdp_connectors.kafka.client as client\n"
        "def broken(self, **more): raise RuntimeError(f'a defect, in {self!r}')\n"
        "client.Broker.consumer = broken\n"
        "from streamdp.cli import main\nmain()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *WAITS, "--kafka-config", "client.properties", "--log-format", form],
        cwd=here,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "a defect, in Broker" in done.stderr
    assert PASSWORD not in done.stderr + done.stdout


def test_what_is_printed_of_a_client_has_no_values(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(here)
    client = Client.of(Input(topic="news", kafka_config="client.properties"))
    assert client.options["sasl_plain_password"] == PASSWORD
    assert PASSWORD not in f"{client!r} {client}"
    assert "sasl_plain_password" in repr(client)


def test_config_shows_none(here: Path) -> None:
    done = call(here, "check", kafka_sasl_password=PASSWORD, kafka_ssl_key_password=KEY)
    assert done.returncode == 0
    assert PASSWORD.encode() not in done.stdout + done.stderr
    assert KEY.encode() not in done.stdout + done.stderr


def test_no_metric_and_no_title_shows_one(here: Path) -> None:
    port = free_port()
    serving = ("--metrics-port", str(port), "--kafka-config", "client.properties", "--give-up-after", "600")
    process = start(here, *WAITS, *serving, process=True)
    try:
        pages = {path: ask(f"http://127.0.0.1:{port}/{path}") for path in ("metrics", "livez", "readyz")}
        assert "streamdp_build_info" in pages["metrics"]
        assert PASSWORD not in str(pages)
        title = Path(f"/proc/{process.pid}/cmdline").read_text()
        assert "client.properties" in title
        assert PASSWORD not in title
    finally:
        process.kill()
        _, said = process.communicate()
    assert PASSWORD.encode() not in said
    assert holding(here) == []


def ask(url: str) -> str:
    """What is served there, once it is."""
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()
        except OSError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def test_no_option_takes_one() -> None:
    """So that none is in a history of commands, or in the list of processes."""
    commands: Any = get_command(app)
    for command in commands.commands.values():
        for option in command.params:
            for word in ("password", "secret", "token", "login", "user"):
                if word in option.name:
                    assert option.name in ("page_token", "token")
                    assert option.metavar == "PATH"


# ---------------------------------------------------------------- files that others may read


@pytest.mark.parametrize("what", ["properties", "password", "token of the page"])
@pytest.mark.parametrize(("mode", "warned"), [(0o644, True), (0o640, False), (0o600, False)])
def test_a_secret_that_others_may_read_is_warned_of_once(
    here: Path, what: str, mode: int, warned: bool
) -> None:
    safe_files.warn_of_readers.cache_clear()
    login = {"kafka_security_protocol": "SASL_PLAINTEXT", "kafka_sasl_mechanism": "PLAIN"}
    run = (*WAITS, "--give-up-after", "1", "--output-topic", "answers")
    match what:
        case "properties":
            path, run = here / "client.properties", (*run, "--kafka-config", "client.properties")
            login = {}
        case "password":
            path = here / "password"
            path.write_text(PASSWORD)
            login |= {"kafka_sasl_username": "alice", "kafka_sasl_password_file": "password"}
        case _:
            path = here / "token"
            path.write_text(PASSWORD)
            run = (*run, "--page", "0", "--page-token", "token")
            login = {}
    path.chmod(mode)
    done = call(here, *run, **login)
    assert done.returncode == 69, done.stderr
    said = done.stderr.decode()
    assert said.count(f"{path.name} holds a secret, and every user of this machine may read it") == warned
    assert PASSWORD not in said


def test_properties_without_a_secret_may_be_read(here: Path) -> None:
    safe_files.warn_of_readers.cache_clear()
    path = here / "client.properties"
    path.write_text("client.id=streamdp\n")
    path.chmod(0o644)
    code, message = fail(here, *WAITS, "--give-up-after", "1", "--kafka-config", "client.properties")
    assert (code, "holds a secret" in message) == (69, False)
