"""``streamdp stories --report``: one file, complete, accessible and harmless."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from browser.process import axe, browser
from commands import fail, succeed

from streamdp.story.story import iso

START = 1_767_225_600
TALES = ("storm hits coast flood wave", "election vote count ballot", "goal <b>match</b> striker cup")


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with reports of texts, log lines and vectors."""
    folder = tmp_path_factory.mktemp("reported")
    lines = [
        {"time": START + 60 * i, "text": f"{TALES[3 * i // 900]} report{i % 7}", "id": i} for i in range(900)
    ]
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = ("consume", "in.jsonl", "--store", "news.db", "--state", "st", "--decay-scale", "100")
    succeed(folder, *run, "--keep", "text", "--output", "out.jsonl")
    for path in ("news.db", "st", "out.jsonl"):
        succeed(folder, "stories", path, "--report", f"{path}.html", "--title", "A day <i>of</i> news")
    log = "".join(f"user {i} logged in\n" if i % 3 else f"disk {i} is full\n" for i in range(300))
    logs = ("consume", "-", "--format", "text", "--likelihood", "template")
    succeed(folder, *logs, "--state", "logs", "--output", "l", stdin=log.encode())
    succeed(folder, "stories", "logs", "--report", "logs.html")
    data = b"".join(b'{"vector": [%d, 0.5]}\n' % (9 * (i % 2)) for i in range(300))
    succeed(folder, "consume", "-", "--state", "v", "--output", "w", stdin=data)
    succeed(folder, "stories", "v", "--report", "vectors.html")
    return folder


@pytest.mark.parametrize("name", ["news.db", "st", "out.jsonl"])
def test_a_report_says_what_happened(reported: Path, name: str) -> None:
    page = (reported / f"{name}.html").read_text()
    assert "900 records; 3 live stories" in page
    assert "A day &lt;i&gt;of&lt;/i&gt; news" in page
    assert "goal &lt;b&gt;match&lt;/b&gt; striker cup" in page
    assert "<b>match" not in page
    assert "2026-01-01T00:00:00Z" in page
    chart = page[page.index("<figure") : page.index("</figure>")]
    for colour, name in re.findall(r'background:(#\w+)"></i>(\w+) [^<]*</li>', chart):
        third = next((i for i, tale in enumerate(TALES) if tale.split()[0] == name), 3)
        places = re.findall(rf'<rect x="([\d.]+)"[^>]*fill="{colour}"', chart)
        bins = [round((float(x) - 48) * 60 / (960 - 48)) for x in places]
        assert bins == [*range(20 * third, min(20 * third + 20, 60))]
    sections = re.findall(r"<section.*?</section>", page)
    assert len(sections) == 3
    for section in sections:
        third = next(i for i, tale in enumerate(TALES) if tale.split()[0] in section)
        began, last = (START + 60 * at for at in (300 * third, 300 * third + 299))
        peak = max(began, START + 60 * 899 - 6 * 3600 * (1, 2, 3)[2 - third])  # now is six hours
        assert f"<td>{iso(began)}</td><td>{iso(last)}</td></tr>" in page
        assert f"began {iso(began)}; peak {iso(peak)}; last {iso(last)}" in section
        places = [float(x) // 4 for x in re.findall(r'<rect x="(\d+)"', section)]
        assert places == [*range(20 * third, 20 * third + 20)]
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)


def test_a_report_of_templates_and_of_vectors(reported: Path) -> None:
    page = (reported / "logs.html").read_text()
    assert "2 live templates" in page
    assert "user &lt;num&gt; logged in" in page
    assert "live clusters" in (reported / "vectors.html").read_text()


@pytest.mark.parametrize("name", ["news.db", "logs", "vectors"])
def test_a_report_is_accessible_in_a_browser(reported: Path, name: str) -> None:
    with browser() as chromium:
        for width, scheme in ((1200, "light"), (390, "dark")):
            page = chromium.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
            page.goto((reported / f"{name}.html").as_uri())
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.locator("figure svg rect").count() > 0
            page.add_script_tag(content=axe())
            found = page.evaluate("axe.run().then(r => ({violations: r.violations}))")
            assert [each["id"] for each in found["violations"]] == []
            page.close()


def test_reports_replace_nothing_unasked(reported: Path) -> None:
    code, message = fail(reported, "stories", "st", "--report", "news.db.html")
    assert code == 73
    assert "--overwrite replaces it" in message
    assert fail(reported, "stories", "out.jsonl", "--report", "out.jsonl", "--overwrite")[0] == 64
    assert fail(reported, "stories", "none", "--report", "x.html")[0] == 66
