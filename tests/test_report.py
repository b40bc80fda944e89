"""``streamdp stories --report``: one file, complete, accessible and harmless."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest
from browser.process import axe, browser
from commands import fail, succeed

from streamdp import stories
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
    assert "<p>3 stories, those with most records" in page
    assert "The newest of 900 records" in page
    assert "A day &lt;i&gt;of&lt;/i&gt; news" in page
    assert "goal &lt;b&gt;match&lt;/b&gt; striker cup" in page
    assert "<b>match" not in page
    articles = re.findall(r"<article.*?</article>", page)
    told = [next(i for i, tale in enumerate(TALES) if tale.split()[0] in each) for each in articles]
    assert told == [2, 1, 0]  # by the records of the last six hours
    for third, article in zip(told, articles, strict=True):
        assert f": {(0, 60, 300)[third]} in the" in article
        assert "300 in all" in article
        places = [float(x) // 4 for x in re.findall(r'<rect x="(\d+)"', article)]
        first, last = third * 80 * 300 / 899, (third * 300 + 299) * 80 / 899
        assert places == [*range(int(first), min(int(last), 79) + 1)]
        headlines = re.findall(r"<li>(.*?) <span", article)
        assert len(headlines) == len(set(headlines)) == 5
        assert all(TALES[third].split()[0] in each for each in headlines)
    moments = re.findall(r'<time datetime="([^"]*)" title="\1">([^<]*)</time>', page)
    assert (iso(START + 60 * 899), "1 Jan 2026, 14:59") in moments
    assert (iso(START), "1 Jan, 00:00") in moments
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store of sixteen stories of four days, whose records come from somewhere."""
    folder, chance = tmp_path_factory.mktemp("papers"), random.Random(5)
    names = ["".join(chance.choices("bdfklmnprst", k=3)) + "a" + str(i) for i in range(160)]
    lines = []
    for hour in range(96):
        for i in range(16):
            if hour >= 48 or i < 12:  # some began in the last two days
                words = chance.sample(names[10 * i : 10 * i + 10], 6)
                paper = ("Post", "Star", "Wire")[chance.randrange(3)]
                link = f"https://www.{paper.lower()}.test/{hour}-{i}?a=1&b=2"
                lines.append(
                    {"time": START + 3600 * hour + i, "text": " ".join(words), "paper": paper, "link": link}
                    | {"id": f"n{hour}-{i}"}
                )
    lines[-1]["link"] = "javascript:alert(1)"
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    keep = ("--keep", "paper,link", "--output", "o")
    succeed(folder, "consume", "in.jsonl", "--store", "news.db", "--decay-scale", "500", *keep)
    return folder


def report_of(folder: Path, *options: str) -> str:
    """The report of a store."""
    succeed(folder, "stories", "news.db", "--report", "r.html", "--overwrite", *options)
    return (folder / "r.html").read_text()


def test_a_report_has_ten_stories_or_as_many_as_are_asked_for(papers: Path) -> None:
    assert report_of(papers).count("<article") == 10
    assert report_of(papers, "--limit", "3").count("<article") == 3
    assert report_of(papers, "--limit", "99").count("<article") == len(stories(papers / "news.db"))
    only = report_of(papers, "--search", "n95-2")
    assert only.count("<article") == 0  # no text holds an id
    title = stories(papers / "news.db")[0].title
    assert f">{title}</h2>" in report_of(papers, "--search", title)


def test_a_report_since_a_time_is_of_what_came_since(papers: Path) -> None:
    end = max(s.last_time or 0.0 for s in stories(papers / "news.db"))
    page = report_of(papers, "--since", "24h", "--limit", "99")
    assert f'since <time datetime="{iso(end - 86_400)}"' in page
    for story in stories(papers / "news.db", stretch=86_400.0):
        article = page[page.index(f'id="s{story.label}"') :]
        article = article[: article.index("</article>")]
        assert re.search(rf">: {story.now} since <time", article)
        assert f"{story.before} in as long before; {story.records} in all" in article
        assert f'<time datetime="{iso(end - 2 * 86_400)}"' in article  # where the picture begins
        bars = [
            (float(x), dark) for x, dark in re.findall(r'<rect x="(\d+)"[^>]*var\(--(now|bar)\)', article)
        ]
        assert {dark for x, dark in bars if x < 156} <= {"bar"}
        assert {dark for x, dark in bars if x >= 160} == {"now"}
    assert "1 Jan 2026" not in page


def test_a_report_says_where_headlines_come_from(papers: Path) -> None:
    page = report_of(papers)
    for article in re.findall(r"<article.*?</article>", page):
        papers_of = re.search(r"paper: ([^;<]*)", article)
        hosts = re.search(r"link: ([^;<]*)", article)
        assert papers_of is not None
        assert hosts is not None
        assert {each.split()[0] for each in papers_of[1].split(", ")} == {"Post", "Star", "Wire"}
        assert {each.split()[0] for each in hosts[1].split(", ")} >= {"post.test", "star.test", "wire.test"}
        lines = re.findall(r"<li>(.*?)</li>", article)
        for line in lines:
            linked = re.match(r'<a href="https://www\.(\w+)\.test/\d+-\d+\?a=1&amp;b=2" rel="[^"]*">', line)
            if linked is not None:
                assert f'<span class="quiet">{linked[1].title()} · <time' in line
        assert len(lines) == 5
    assert "<script" not in page
    assert not re.search(r'(href|src)="(?!https://)', page)


def test_a_report_fits_three_screens_a_phone_and_paper(papers: Path) -> None:
    report_of(papers)
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1280, "height": 800})
        page.goto((papers / "r.html").as_uri())
        assert page.evaluate("document.documentElement.scrollHeight") <= 3 * 800
        broken = "all => all.filter((e) => e.getClientRects().length > 1).map((e) => e.textContent)"
        page.set_viewport_size({"width": 390, "height": 844})
        shown = "all => all.filter((e) => e.getClientRects().length).length"
        assert page.evaluate("document.documentElement.scrollHeight") <= 3 * 844
        assert page.eval_on_selector_all("article:first-of-type li", shown) == 2
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        assert page.eval_on_selector_all("time", broken) == []
        paper = page.pdf(format="A4")
        assert len(re.findall(rb"/Type /Page\b", paper)) == 2
        page.emulate_media(media="print")
        assert page.eval_on_selector_all("article:first-of-type li", shown) == 5
        size = "e => parseFloat(getComputedStyle(e).fontSize)"
        said, quiet = (page.eval_on_selector(each, size) for each in ("li", "li .quiet"))
        assert quiet < said
        assert (
            page.eval_on_selector_all("article", "all => all.map((e) => getComputedStyle(e).breakInside)")
            == ["avoid"] * 10
        )


def test_a_table_of_nothing_has_a_head(reported: Path) -> None:
    for more in (("--closed",), ("--records", "--search", "nowhere")):
        full = succeed(reported, "stories", "news.db", "--csv", *more[:-2]).decode().splitlines()
        empty = succeed(reported, "stories", "news.db", "--csv", *more, "--search", "nowhere").decode()
        assert empty.splitlines() == full[:1] or more == ("--closed",)
        assert empty.startswith("story,title,record")


def test_a_report_of_templates_and_of_vectors(reported: Path) -> None:
    page = (reported / "logs.html").read_text()
    assert "<p>2 templates, " in page
    assert "user &lt;num&gt; logged in" in page
    assert " clusters, " in (reported / "vectors.html").read_text()


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
