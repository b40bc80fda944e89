"""The page of a log in a real Chromium: what has changed, and what stands in the holes of a template."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser.process import axe
from commands import command, environment, succeed, wait_for
from playwright.sync_api import Browser, Page, expect
from ports import free_port
from serving import Served
from test_diff import START, log
from test_page_browser import Told, answers, shown, visit


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A run over the log, with a mark, that waits for more lines."""
    folder, port = tmp_path_factory.mktemp("log"), free_port()
    (folder / "app.log").write_bytes(log())
    run = ("consume", "app.log", "--keep", "level", "--output", "out.jsonl", "--state", "app")
    process = subprocess.Popen(
        command(*run, "--follow", "--page", str(port)),
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_for(lambda: answers(port))
    wait_for(lambda: asked(port, "api/status").get("records", 0) == log().count(b"\n"))
    succeed(folder, "diff", "app", "--mark", "deploy", "--time", f"{START}09:00:00")
    yield port
    process.kill()
    process.wait()


@pytest.fixture
def opened(chromium: Browser, port: int) -> Iterator[tuple[Page, Told]]:
    with shown(chromium, port) as (page, told):
        page.wait_for_selector("#table tbody tr[data-cluster]")
        yield page, told
    assert told.errors == []


def asked(port: int, path: str) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{path}", timeout=60) as answer:
        return json.loads(answer.read())


def test_what_has_changed_is_shown(opened: tuple[Page, Told], port: int) -> None:
    page, _ = opened
    page.click("[data-level=changes]")
    rows = page.locator("#level-rows tbody tr")
    expect(rows).to_have_count(4)  # since an hour ago: an hour of lines had come by then
    page.select_option("#since", "deploy")
    expect(page.locator("#lacking")).to_contain_text("5 Jan, 09:00 to")
    expect(rows).to_have_count(4)
    found = asked(port, "v1/changes?since=deploy")["changes"]
    cells = [[cell.replace(",", "") for cell in row.locator("td").all_inner_texts()] for row in rows.all()]
    assert cells == [[str(round(each[k])) for k in ("before", "after", "surprise")] for each in found]
    kinds = {row.locator(".change").inner_text(): row for row in rows.all()}
    assert set(kinds) == {"new", "surged", "silent", "changed"}
    expect(kinds["new"].locator(".around .own")).to_contain_text("exhausted: giving up")
    expect(kinds["new"].locator(".around span")).to_have_count(3)
    expect(kinds["new"].locator(".members")).to_contain_text("ERROR")
    expect(kinds["changed"].locator(".members").first).to_contain_text("500 0.0 % before")
    for search, count in (("heartbeat nosuchword", 0), ("heartbeat node", 1)):
        page.fill("#search", search)
        expect(rows).to_have_count(count)
    rows.locator(".open").click()
    expect(page.locator("#cluster h2")).to_contain_text("heartbeat of node")


def test_the_same_is_answered_to_programs(port: int) -> None:
    found = asked(port, "v1/changes?since=deploy&limit=2")
    assert (found["total"], len(found["changes"]), found["dated"]) == (4, 2, True)
    assert [mark["name"] for mark in asked(port, "v1/marks")["marks"]] == ["deploy"]
    for query, code in (("since=soon", 404), ("since=900d", 404), ("", 400)):
        with pytest.raises(urllib.error.HTTPError) as error:
            asked(port, f"v1/changes?{query}")
        assert error.value.code == code


def test_holes_of_a_template_are_shown_on_a_click(opened: tuple[Page, Told], port: int) -> None:
    page, _ = opened
    page.fill("#search", "done with")
    page.locator("#table tbody tr[data-cluster] .open", has_text="request").first.click()
    holes = page.locator("#cluster .hole")
    expect(holes).to_have_count(4)
    expect(holes.nth(1).locator("li .word").first).to_have_text("200")
    expect(holes.nth(2)).to_contain_text("half up to")
    expect(holes.nth(3)).to_contain_text("level 1 value")
    label = int(page.url.rpartition("/")[2])
    told = asked(port, f"v1/stories/{label}")["holes"]
    assert [value for value, _ in told[1]["common"]] == ["200", "404", "500"]
    assert told[0]["distinct"] <= told[0]["lines"] == sum(told[1]["counts"])


def test_a_service_shows_what_was_planted_first(chromium: Browser, tmp_path: Path) -> None:
    """Of lines sent over HTTP a new kind comes late: it heads the list, and a click opens its story."""
    served = Served(tmp_path, "--format", "log", "--keep", "level")
    usual = [line for line in log(600).splitlines() if b"heartbeat" not in line]
    planted = [
        f"{START}09:{minute:02}:30 ERROR disk sda{minute % 3} is full".encode() for minute in range(60)
    ]
    lines = sorted([*usual, *planted], key=lambda line: line[:19])
    for start in range(0, len(lines), 5_000):
        body = b"\n".join(lines[start : start + 5_000])
        status, answers = served.ask("POST", "/v1/records", body, "text/plain")
        assert (status, {each["status"] for each in answers}) == (200, {"answered"})
    succeed(tmp_path, "diff", "st", "--mark", "deploy", "--time", f"{START}09:00:00")
    with shown(chromium, served.port) as (page, told):
        page.click("[data-level=changes]")
        page.select_option("#since", "deploy")
        first = page.locator("#level-rows tbody tr").first
        expect(first.locator(".change")).to_have_text("new")
        expect(first).to_contain_text("is full")
        first.locator(".open").click()
        expect(page.locator("#cluster h2")).to_contain_text("is full")
        expect(page.locator("#cluster .hole").first).to_contain_text("values")
        assert told.errors == []
    assert served.stop() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_fault_of_access(chromium: Browser, port: int, scheme: Any) -> None:
    page = chromium.new_page(color_scheme=scheme, viewport={"width": 390, "height": 844}, bypass_csp=True)
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)
    visit(page, port)
    page.wait_for_selector("#table tbody tr[data-cluster]")
    page.click("[data-level=changes]")
    page.wait_for_selector("#level-rows .change")
    page.locator("#level-rows .open", has_text="request").click()
    page.wait_for_selector("#cluster .hole")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.add_script_tag(content=axe())
    found = page.evaluate("axe.run()")["violations"]
    assert [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")] == []
    page.close()
