"""The help of each command: what most people need, everything on demand, and an example that parses."""

from __future__ import annotations

import pydoc
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from commands import fail, succeed
from typer.main import get_command

import streamdp
from streamdp.cli.app import app

COMMON = [
    "format",
    "text-field",
    "time-field",
    "id-field",
    "keep",
    "fields",
    "vector-field",
    "follow",
    "output",
    "events",
    "store",
    "overwrite",
    "state",
    "memory-limit",
    "embed",
    "max-lateness",
    "mask",
    "topic",
    "bootstrap",
    "until",
    "page",
    "page-corrections",
    "metrics-port",
    "alert",
    "config",
]


def commands(group: Any, before: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    """Every command with its names, those of groups too."""
    found = []
    for name, each in sorted(group.commands.items()):
        names = (*before, name)
        found += commands(each, names) if hasattr(each, "commands") else [(names, each)]
    return found


def flags(text: bytes) -> set[str]:
    """The names of the flags in a help."""
    found = re.findall(r"^│ \*? *--([\w-]+)", text.decode(), re.MULTILINE)
    return set(found) - {"help", "help-all", "no-help"}


COMMANDS = commands(get_command(app))


@pytest.mark.parametrize(("names", "command"), COMMANDS, ids=[" ".join(names) for names, _ in COMMANDS])
def test_every_command_has_an_example_that_parses(names: tuple[str, ...], command: Any) -> None:
    said, _, example = (command.epilog or "").partition(": ")
    assert said == "Example"
    assert tuple(shlex.split(example)[: len(names) + 1]) == ("streamdp", *names)
    command.make_context(names[-1], shlex.split(example)[len(names) + 1 :])


def test_the_help_has_what_most_people_need_and_all_of_it_on_demand(tmp_path: Path) -> None:
    short = succeed(tmp_path, "consume", "--help", columns="150")
    assert flags(short) == set(COMMON)
    assert b"Example: streamdp consume " in short
    whole = flags(succeed(tmp_path, "consume", "--help-all"))
    assert whole > {*COMMON, "beam", "stop-words", "kafka-config", "log-format", "finality"}
    named = get_command(app).commands["consume"].params  # type: ignore[attr-defined]
    assert whole == {
        each.opts[0].removeprefix("--") for each in named if each.param_type_name == "option"
    } - {"help-all"}
    assert b"--beam" not in short
    assert fail(tmp_path, "consume", "none", "--beam", "3")[0] == 66  # what is hidden is read


@pytest.mark.parametrize(("name", "own"), [("serve", "port host token"), ("fit", "method"), ("spark", "key")])
def test_the_help_of_other_commands_is_as_short(tmp_path: Path, name: str, own: str) -> None:
    short, whole = (flags(succeed(tmp_path, name, option)) for option in ("--help", "--help-all"))
    assert {*own.split(), "text-field", "config"} <= short < whole
    assert len(short) <= 30
    assert "beam" in whole - short


@pytest.mark.parametrize("command", [(), ("consume",), ("state",), ("stories",)])
def test_h_is_help(tmp_path: Path, command: tuple[str, ...]) -> None:
    assert succeed(tmp_path, *command, "-h") == succeed(tmp_path, *command, "--help")


@pytest.mark.parametrize("name", ["Settings", "Input", "Outputs", "Serving"])
def test_help_in_python_fits_on_a_screen(name: str) -> None:
    kind = getattr(streamdp, name)
    shown = pydoc.render_doc(kind, renderer=pydoc.plaintext)  # type: ignore[attr-defined, unused-ignore]
    assert len(shown.splitlines()) < 40
    assert len(shown) < 2_000
    assert set(kind.__struct_fields__) <= set(dir(example(name)))


def example(name: str) -> object:
    """One of each."""
    return streamdp.Input(file="news.jsonl") if name == "Input" else getattr(streamdp, name)()


def test_the_names_that_people_set_are_settings() -> None:
    named = re.findall(r"``(\w+)``", str(streamdp.Settings.__doc__).split("All of them")[0])
    assert len(named) == 10
    assert set(named) <= set(streamdp.Settings.__struct_fields__)
