"""Engines and stories as a notebook shows them, and a display that follows a stream."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from feeds import headlines
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

import streamdp

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "python.md").read_text("utf-8")


@pytest.fixture
def shell() -> InteractiveShell:
    """What runs the cells of a notebook, its displays captured."""
    shell = InteractiveShell.instance(history_length=0, history_load_length=0)
    shell.history_manager.enabled = False  # type: ignore[union-attr]
    shell.display_pub = CapturingDisplayPublisher()
    return shell


def shown(shell: InteractiveShell) -> list[tuple[bool, str]]:
    """Whether each display is an update, and its HTML."""
    outputs: list[dict[str, Any]] = shell.display_pub.outputs  # type: ignore[attr-defined]
    return [(each["update"], each["data"]["text/html"]) for each in outputs]


def rows(html: str) -> list[list[str]]:
    """The cells of a table."""
    found = re.findall(r"<tr>.*?</tr>", html, re.DOTALL)
    return [cells for row in found if (cells := re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL))]


def test_a_display_follows_a_stream(shell: InteractiveShell) -> None:
    records = headlines(300, 1)
    engine = streamdp.Engine()
    shell.push({"engine": engine, "batches": [records[:100], records[100:200], records[200:]]})
    (cell,) = re.findall(r"```python\n(handle = .*?)```", PAGE, re.DOTALL)
    shell.run_cell("from IPython.display import display\n" + cell).raise_error()
    found = shown(shell)
    assert [update for update, _ in found] == [False, True, True, True]
    assert [re.findall(r"([\d,]+) records", html)[0] for _, html in found] == ["0", "100", "200", "300"]
    assert len({each["transient"]["display_id"] for each in shell.display_pub.outputs}) == 1  # type: ignore[attr-defined]
    stories = engine.stories()
    assert len(rows(found[-1][1])) == min(len(stories), 20)
    assert stories[0].title in found[-1][1]


def test_what_records_say_is_no_html(shell: InteractiveShell) -> None:
    engine = streamdp.Engine()
    engine.advance(["<script>alert</script> storm coast", "storm <script> coast"])
    for each in (engine, engine.stories(), engine.clusters()):
        data, _ = shell.display_formatter.format(each)  # type: ignore[union-attr]
        assert "<script>" not in data["text/html"]
        assert "text/plain" in data
