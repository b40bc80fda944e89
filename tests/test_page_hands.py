"""Corrections, stories that ended, themes and a phone, in a real Chromium beside a real run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from commands import parsed, wait_for
from playwright.sync_api import Browser, Page, expect

from tests.test_page_browser import NONE, Run, Told, answered, answers, shown, trend, up_to_date


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    more = ("--beam", "4", "--decay-scale", "60", "--page-corrections", "--store", "db")
    made = Run(tmp_path_factory.mktemp("hands"), *more)
    wait_for(lambda: answers(made.port))
    yield made
    made.close()


@pytest.fixture
def opened(chromium: Browser, run: Run) -> Iterator[tuple[Page, Told]]:
    with shown(chromium, run.port) as found:
        yield found


def open_story(page: Page, nth: int) -> str:
    """Open a story of the table, the first that do not move; its label."""
    page.click("#table thead th[data-key=size] button")
    page.wait_for_timeout(700)
    row = page.locator("#table tbody tr[data-cluster]").nth(nth)
    label = row.get_attribute("data-cluster")
    page.goto(re.sub("#.*", "", page.url) + f"#cluster/{label}")
    expect(page.locator("#cluster h2")).to_be_visible()
    return str(label)


def test_an_empty_chart_says_what_it_waits_for(opened: tuple[Page, Told], run: Run) -> None:
    page, _ = opened
    label = re.compile("Waiting for the first record of in.jsonl|Kernels are being compiled")
    expect(page.locator("#graph")).to_have_attribute("aria-label", label)
    run.give(1500)


def test_a_story_is_renamed_and_the_name_undone(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    page.wait_for_selector("#table tbody tr[data-cluster]")
    up_to_date(page, run)
    chip = page.locator("#records .chip").first  # which stands there before the story has its name
    label = chip.get_attribute("data-cluster")
    page.goto(re.sub("#.*", "", page.url) + f"#cluster/{label}")
    page.click("[data-correct=Rename]")
    page.fill("#cluster .asked input", "Talks in Turin")
    page.wait_for_timeout(4000)  # ticks come, and what is typed stays
    expect(page.locator("#cluster .asked input")).to_have_value("Talks in Turin")
    page.press("#cluster .asked input", "Enter")
    expect(page.locator("#cluster h2")).to_have_text("Talks in Turin")
    expect(page.locator(f"#table tr[data-cluster='{label}'] .open")).to_have_text("Talks in Turin")
    chips = page.locator(f"#records .chip[data-cluster='{label}']")
    expect(chips).to_have_text(["Talks in Turin"] * chips.count())
    page.locator("#cluster .note [data-undo]").click()
    expect(page.locator("#cluster .note")).to_contain_text("is lifted")
    lines = parsed((run.folder / "state" / "corrections").read_bytes())
    said = [(line["what"], line.get("title"), line.get("undone")) for line in lines if "what" in line]
    assert said == [("rename", "Talks in Turin", None), ("undo", None, 1)]
    assert told.errors == []


def another(page: Page, label: str, *labels: str) -> str:
    """The first story of the table that is none of these.

    The order changes as the stream goes on, and so do names.
    """
    rows = page.locator("#table tbody tr[data-cluster]").all()
    found = [row.get_attribute("data-cluster") for row in rows]
    return next(each for each in found if each is not None and each not in (label, *labels))


def choose(page: Page, label: str) -> None:
    """Take a story in the form that asks for one, found by its number."""
    page.fill("#cluster .asked input", label)
    page.locator(f"#cluster .asked .near button[data-cluster='{label}']").click()


def test_stories_are_merged_pinned_kept_apart_and_a_record_moved(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    page.wait_for_selector("#table tbody tr[data-cluster]:nth-child(4)")
    first = open_story(page, 0)
    page.click("[data-correct=Pin]")
    expect(page.locator("#cluster .pinned")).to_be_visible()
    other = another(page, first)
    page.click("[data-correct='Keep apart…']")
    choose(page, other)
    expect(page.locator("#cluster .note")).to_contain_text("Kept apart from")
    page.click("[data-correct='Merge…']")
    choose(page, other)
    expect(page.locator("#cluster .note.bad")).to_contain_text("contradicts it")
    page.keyboard.press("Escape")
    page.locator("#cluster .move").first.click()
    third = another(page, first, other)
    choose(page, third)
    expect(page.locator("#cluster .note")).to_contain_text("Moved to")
    page.click("#cluster .close")
    expect(page.locator("#corrections")).to_be_visible()
    expect(page.locator("#corrected li")).to_have_count(3)
    page.locator("#corrected [data-undo]").first.click()
    expect(page.locator("#corrected li")).to_have_count(2)
    lines = parsed((run.folder / "state" / "corrections").read_bytes())
    assert [line["what"] for line in lines if "what" in line][2:] == ["pin", "keep-apart", "move", "undo"]
    assert first
    assert [error for error in told.errors if "409" not in error] == []  # of what contradicts


def test_stories_that_ended_are_searched_and_all_records_read(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    page.wait_for_selector("#table tbody tr[data-cluster]")
    page.click("[data-level=ended]")
    row = page.locator("#level-rows tbody tr").first
    expect(row).to_be_visible()
    name = row.locator(".open").inner_text()
    page.fill("#search", " ".join(name.split()[:3]))
    expect(page.locator("#level-rows .open", has_text=name).first).to_be_visible()
    page.fill("#search", "nosuchwordanywhere")
    expect(page.locator("#lacking")).to_contain_text("No story that ended has these words.")
    page.fill("#search", "")
    page.click("[data-level=themes]")
    page.select_option("#themes-wanted", "5")
    rows = page.locator("#level-rows tbody tr")
    expect(rows).to_have_count(5)
    themes = answered(run, "themes?themes=5")["themes"]
    cells = [[cell.inner_text() for cell in row.locator("td").all()] for row in rows.all()]
    assert cells == [
        [str(len(each["stories"])), str(each["records"]), str(each["now"] or NONE), trend(each)]
        for each in themes
    ]
    word = themes[0]["keywords"][0]
    for search, count in ((word, 1), (f"{word} nosuchwordanywhere", 0), ("", 5)):
        page.fill("#search", search)
        page.wait_for_timeout(500)
        assert (rows.count() >= count) if search == word else (rows.count() == count)
    page.locator("#level-rows .members button").first.click()
    expect(page.locator("#cluster h2")).to_be_visible()
    page.keyboard.press("Escape")
    page.click("[data-level=live]")
    label = open_story(page, 0)
    shown = page.locator("#cluster .records > li")
    for count in (20, 40):
        page.click("#all")
        expect(shown).to_have_count(count)
    records = answered(run, f"stories/{label}/records?limit=1000")["records"][::-1][:40]
    assert [row.locator("p").inner_text() for row in shown.all()] == [each["text"] for each in records]
    assert [row.get_attribute("data-seq") for row in shown.all()] == [str(each["seq"]) for each in records]
    assert told.errors == []


COVERED = """
() => [...document.querySelectorAll("button, input, select, textarea, a:not(.skip), h2, th")]
  .filter((each) => each.checkVisibility() && each.getBoundingClientRect().width > 2)
  .filter((each) => {
    each.scrollIntoView({ block: "start" });
    const box = each.getBoundingClientRect();
    if (box.left < 0 || box.right > innerWidth + 1) return true;
    const down = Math.max(box.top, 0) + Math.min(box.height, 20) / 2;
    const at = document.elementFromPoint(box.left + box.width / 2, down);
    return at !== null && !each.contains(at) && !at.contains(each) && !at.closest("label")?.contains(each);
  })
  .map((each) => each.outerHTML.slice(0, 120))
"""
"""What is covered by something else, or sticks out, when it is scrolled to the top."""


@pytest.mark.parametrize("opens", [False, True])
def test_on_a_phone_nothing_is_covered(chromium: Browser, run: Run, *, opens: bool) -> None:
    how: dict[str, Any] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
    page = chromium.new_page(**how)
    page.goto(f"http://127.0.0.1:{run.port}/")
    page.wait_for_selector("#table tbody tr[data-cluster]")
    up_to_date(page, run)
    if opens:
        page.tap("#table tbody tr[data-cluster] .open")
        expect(page.locator("#cluster h2")).to_be_visible()
    page.wait_for_timeout(500)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate(COVERED) == []
    page.close()


def test_a_story_that_is_opened_when_the_run_is_gone_says_so(opened: tuple[Page, Told], run: Run) -> None:
    page, _ = opened
    page.wait_for_selector("#table tbody tr[data-cluster]:nth-child(2)")
    open_story(page, 0)
    run.kill()
    expect(page.locator("#state")).to_have_text("connection lost, trying again")
    page.locator("#table tbody tr[data-cluster] .open").nth(1).click()
    expect(page.locator("#cluster .gone")).to_contain_text("The connection is lost")
    run.start()
    expect(page.locator("#cluster .figures")).to_be_visible()
