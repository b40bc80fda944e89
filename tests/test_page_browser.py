"""The page in a real Chromium, beside real runs."""

from __future__ import annotations

import contextlib
import json
import random
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from browser.process import axe
from commands import command, environment, wait_for
from playwright.sync_api import Browser, Locator, Page, Request, expect
from ports import free_port

from benchmarks.drifting import demo_stream

MARKUP = "<script>document.title='hacked'</script><img src=x onerror=alert(1)> storm"


class Run:
    """A run of consume that reads what it is given, line by line, and serves a page."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.folder, self.port, self.more = folder, free_port(), more
        self.file = (folder / "in.jsonl").open("ab", buffering=0)
        self.stream, self.given = demo_stream(20_000, 7), 0
        self.start()

    def start(self) -> None:
        """Begin, or go on from the state."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command(
                    *("consume", "--file", "in.jsonl", "--follow", "--output", "out.jsonl"),
                    *("--state", "state", "--snapshot-every", "200"),
                    *("--page", str(self.port), *self.more),
                ),
                cwd=self.folder,
                env=environment(),
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """As a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def give(self, records: int) -> None:
        """So many more records of the stream."""
        items = [next(self.stream) for _ in range(records)]
        self.lines({"time": item.time, "id": item.id, "text": item.text} for item in items)
        self.time = items[-1].time

    def lines(self, records: Any) -> None:
        """These records."""
        self.raw([json.dumps(record).encode() + b"\n" for record in records])

    def raw(self, lines: list[bytes]) -> None:
        """Lines as they are, a record each."""
        self.given += len(lines)
        self.file.write(b"".join(lines))

    def close(self) -> None:
        """End it."""
        self.kill()
        self.file.close()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    made = Run(tmp_path_factory.mktemp("run"), "--beam", "4", "--second-look", "300", "--events", "events")
    made.give(800)
    wait_for(lambda: answers(made.port))
    yield made
    made.close()


class Told:
    """What a page's console says, and what it asks for elsewhere."""

    def __init__(self, page: Page, port: int) -> None:
        self.errors: list[str] = []
        self.strange: list[str] = []
        self.graphs = 0
        """Questions for the graph that are not answered yet."""
        page.on("console", lambda m: self.errors.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        here = f"http://127.0.0.1:{port}/"
        page.on("request", lambda r: None if r.url.startswith(here) else self.strange.append(r.url))
        page.on("request", lambda r: self._graph(r, 1))
        for end in ("requestfinished", "requestfailed"):
            page.on(end, lambda r: self._graph(r, -1))  # type: ignore[call-overload]

    def _graph(self, request: Request, more: int) -> None:
        self.graphs += more if "/api/graph" in request.url else 0


@contextlib.contextmanager
def shown(chromium: Browser, port: int) -> Iterator[tuple[Page, Told]]:
    """The page at a port, which asks for nothing elsewhere."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    told = Told(page, port)
    wait_for(lambda: visit(page, port))
    yield page, told
    page.close()
    assert told.strange == []


@pytest.fixture
def opened(chromium: Browser, run: Run) -> Iterator[tuple[Page, Told]]:
    with shown(chromium, run.port) as (page, told):
        page.wait_for_selector("#table tbody tr[data-cluster]")
        page.wait_for_selector("#legend li")
        up_to_date(page, run)
        yield page, told


def answers(port: int) -> bool:
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    return False


def visit(page: Page, port: int) -> bool:
    try:
        page.goto(f"http://127.0.0.1:{port}/")
    except Exception:  # the run is not there yet; nor is its refusal an error of the page
        return False
    return True


def records(page: Page) -> int:
    return int(re.sub(r"\D", "", page.inner_text("#strip dd")) or 0)


def up_to_date(page: Page, run: Run) -> None:
    """Wait until all records of a run are shown, so that what is read of the page stays."""
    wait_for(lambda: records(page) == run.given)


def test_the_graph_moves_while_the_run_goes_on(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    told.errors.clear()
    before, drawn = records(page), page.evaluate("document.getElementById('graph').toDataURL()")
    expect(page.locator("#legend button").nth(3)).to_be_visible()
    for _ in range(7):  # a few at a time: of a fast stream a page is shown some records only
        run.give(100)
        page.wait_for_timeout(300)
    wait_for(lambda: records(page) > before)
    wait_for(lambda: page.evaluate("document.getElementById('graph').toDataURL()") != drawn)
    revised = page.locator("#records li.was", has=page.locator("del")).locator(".revised")

    def is_revised() -> bool:
        """Whether a revision has struck an old label through; another may push it out."""
        said = revised.all_inner_texts()
        if not said:
            run.give(20)
            page.wait_for_timeout(300)
        return bool(said) and {each.strip() for each in said} == {"moved"}

    wait_for(is_revised)
    for row in page.locator("#records li.was", has=page.locator("del")).all():
        assert row.locator(".chip .name").inner_text() not in row.locator("del").all_inner_texts()
    assert told.errors == []


def test_a_cluster_that_was_searched_opens(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    name = page.locator("#table tbody tr[data-cluster] .open").nth(2).inner_text()
    word = name.split()[0]
    page.keyboard.press("/")
    page.keyboard.type(word)
    rows = page.locator("#table tbody tr[data-cluster]")
    wait_for(lambda: page.inner_text("#found") == f"{rows.count()} found, ended ones too", seconds=60.0)
    page.locator("#table .open", has_text=word).first.focus()
    page.keyboard.press("Enter")
    panel = page.locator("#cluster")
    expect(panel.locator("h2")).to_contain_text(word)
    expect(panel).to_contain_text("how many times as often as elsewhere")
    expect(panel.locator(".bars li").nth(3)).to_be_visible()
    expect(panel.locator(".records li").first).to_be_visible()
    expect(panel.locator(".events li").first).to_be_visible()
    assert panel.evaluate("panel => panel.scrollWidth <= panel.clientWidth")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()
    page.fill("#search", "nosuchwordanywhere")
    expect(page.locator("#table .nothing")).to_be_visible()
    page.fill("#search", "")
    page.click("#table thead th[data-key=now] button")
    expect(page.locator("th[data-key=now]")).to_have_attribute("aria-sort", "descending")
    assert told.errors == []


def answered(run: Run, question: str, body: bytes | None = None) -> Any:
    """What programs are answered."""
    address, headers = f"http://127.0.0.1:{run.port}/v1/{question}", {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address, body, headers)) as answer:
        return json.load(answer)


def percent(share: float) -> str:
    """How the page shows a probability."""
    return ">99 %" if 0.995 < share < 1 else "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


NONE = "\u2013"
"""What the page shows for no records."""


def trend(story: dict[str, Any]) -> str:
    """How the page shows how many more records a story, or a theme, has now."""
    more = story["now"] - story["before"]
    return f"▲ {more}" if more > 0 else f"▼ {-more}" if more < 0 else "=" if story["now"] else NONE


def ago(run: Run, time: float) -> str:
    """How the page shows a time: before that of the newest record."""
    past = run.time - time
    found = (
        (size, unit) for size, unit in ((86_400, "d"), (3600, "h"), (60, "min"), (1, "s")) if past >= 2 * size
    )
    size, unit = next(found, (0, ""))
    return f"{past // size:.0f} {unit} ago" if size else "now"


def exact(time: float) -> str:
    """What it says when a mouse is over it."""
    return f"{datetime.fromtimestamp(int(time), UTC):%Y-%m-%d %H:%M:%S} UTC"


ORDERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "name": lambda s: s["title"].lower(),
    "size": lambda s: s["records"],
    "now": lambda s: s["now"],
    "trend": lambda s: s["now"] - s["before"],
    "began": lambda s: s["first_seq"],
    "last": lambda s: s["last_seq"],
}
"""What the columns of the table go by."""


def test_the_table_says_what_is_answered_and_is_sorted_by_what_is_clicked(
    opened: tuple[Page, Told], run: Run
) -> None:
    page, told = opened
    while page.locator("#more").is_visible():
        page.click("#more")
        page.wait_for_timeout(300)
    listed = answered(run, "stories?least=1&limit=1000")["stories"]
    stories = {story["label"]: story for story in listed}

    def rows() -> list[list[str]]:
        each = "all => all.map((row) => [row.dataset.cluster, row.querySelector('.open').textContent, "
        each += "...[...row.cells].slice(1).map((cell) => cell.textContent.trim())])"
        found: list[list[str]] = page.eval_on_selector_all("#table tbody tr[data-cluster]", each)
        return found

    wait_for(lambda: len(rows()) == len(stories))
    for label, title, records, now, more, began, last, _ in rows():
        story = stories[int(label)]
        assert (title, records, now) == (story["title"], str(story["records"]), str(story["now"] or NONE))
        assert more == trend(story)
        assert (began, last) == (ago(run, story["began_time"]), ago(run, story["last_time"]))
    keys = page.eval_on_selector_all("#table thead th:has(button)", "all => all.map((th) => th.dataset.key)")
    assert {"name", "size", "now", "trend"} <= set(keys)
    for key in [key for key in keys for _ in range(2)]:  # the second click turns the order round
        head = page.locator(f"#table thead th[data-key={key}]")
        before = head.get_attribute("aria-sort")
        head.locator("button").click()
        down = head.get_attribute("aria-sort") == "descending"
        assert before != head.get_attribute("aria-sort")

        def in_order(key: str = key, down: bool = down) -> bool:
            by = [ORDERS[key](stories[int(row[0])]) for row in rows()]
            return by == sorted(by, reverse=down)

        wait_for(in_order, seconds=20.0)
    assert told.errors == []


def test_a_story_is_shown_as_it_is_answered(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    (story,) = answered(run, "stories?limit=1")["stories"]
    page.goto(f"{page.url}#cluster/{story['label']}")
    panel = page.locator("#cluster")
    expect(panel.locator("h2")).to_have_text(story["title"])
    names, values = (panel.locator(f".figures {tag}").all_inner_texts() for tag in ("dt", "dd"))
    figures = {"records": str(story["records"]), "now": str(story["now"] or NONE), "trend": trend(story)}
    figures |= {"began": ago(run, story["began_time"]), "latest": ago(run, story["last_time"])}
    figures |= {"number": str(story["label"])}
    assert figures.items() <= dict(zip(names, values, strict=True)).items()
    newest = answered(run, f"stories/{story['label']}/records?limit=1000")["records"][-1]
    row = panel.locator(".records li").first
    assert row.get_attribute("data-seq") == str(newest["seq"])
    assert row.locator("p").inner_text() == newest["text"]
    assert row.locator("time").inner_text() == ago(run, newest["time"])
    assert row.locator("time").get_attribute("title") == exact(newest["time"])
    assert row.locator(".sure").inner_text() == f"{percent(newest['probability'])} sure"
    live = page.locator("#strip div", has_text="Live").locator("dd").first.inner_text()
    assert live == str(answered(run, "health")["live"])
    assert told.errors == []


def test_what_is_clicked_is_what_opens(opened: tuple[Page, Told], run: Run) -> None:
    """Bands of the graph by their names, and both stories of what happened."""
    page, told = opened
    both = page.locator("#events li").filter(has=page.locator(".link + .link"))
    while not both.count():
        run.give(50)
        page.wait_for_timeout(300)
    page.click("#pause")

    def open_by(link: Locator) -> tuple[int, str]:
        """The story that opens, and its name."""
        link.click()
        expect(page.locator("#cluster h2")).to_be_visible()
        found = int(page.url.rpartition("/")[2]), page.inner_text("#cluster h2")
        page.keyboard.press("Escape")
        return found

    for button in page.locator("#legend button").all():
        name = button.locator(".name").inner_text()
        assert open_by(button) == (int(str(button.get_attribute("data-cluster"))), name)
    lines = (run.folder / "events").read_bytes().splitlines()
    pairs = {(line["cluster"], line["other"]) for line in map(json.loads, lines)}
    for row in both.all():
        cluster, other = (open_by(link)[0] for link in row.locator(".link").all())
        assert (cluster, other) in pairs
    assert told.errors == []


def test_a_title_stands_in_its_band_or_beside_all_of_them(opened: tuple[Page, Told]) -> None:
    """A thick band, two that are thin, of which the second finds the nearest place taken, and one unseen."""
    page, told = opened
    broad, first, second, unseen = page.evaluate(
        """async () => {
            const { inside, beside } = await import("./names.js");
            const c = document.createElement("canvas").getContext("2d");
            const frame = { x: (j) => 40 * j, y: (v) => 150 - v, w: 400, h: 300 };
            const band = (low, high) => ({ low: Array(11).fill(low), high: Array(11).fill(high) });
            const [thick, thin, other, flat] = [band(-10, 40), band(40, 45), band(45, 46), band(50, 51)];
            other.high[2] = 52; // where the first title is in the way
            const [rest, title, taken] = [[band(-10, -10), band(52, 52)], "storm floods market square", []];
            const place = (b) => inside(c, title, b, frame) || beside(c, title, b, rest, frame, taken);
            return [thick, thin, other, flat].map(place);
        }"""
    )
    assert "to" not in broad
    assert 110 < broad["y"] < 160
    assert unseen is None
    assert first["y"] < 150 - 52
    assert first["to"] == [0, 150 - 42.5]
    assert second["x"] != first["x"]
    for each in (first, second):
        assert " ".join(each["lines"]) == "storm floods market square"
    assert told.errors == []


def test_what_the_graph_says_of_a_place_is_what_came_then(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/api/graph") as answer:
        drawn = json.load(answer)
    at = drawn["start"] + drawn["width"] * (len(drawn["others"]) - 2)
    page.focus("#graph")
    for band in drawn["bands"][:4]:
        page.keyboard.press("ArrowUp")
        page.keyboard.press("ArrowLeft")
        records = answered(run, f"stories/{band['label']}/records?limit=1000")["records"]
        count = sum(at <= record["time"] < at + drawn["width"] for record in records)
        moment = datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        assert page.inner_text("#graph-said") == f"{band['title']}: {count} records, {moment}"
        page.keyboard.press("ArrowRight")
    assert told.errors == []


def test_a_typed_text_is_weighed(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    text = page.locator("#records li p").first.inner_text()
    page.fill("#text", text)
    page.press("#text", "Enter")
    candidates = page.locator("#scored .candidates > li")
    expect(candidates).to_have_count(5)
    found = answered(run, "where", json.dumps({"text": text}).encode())["candidates"]
    shares = candidates.locator(".sure").all_inner_texts()
    assert shares == [percent(each["probability"]) for each in found]
    expect(candidates.first).to_contain_text("because of:")
    story = candidates.locator("button.name").first
    name = story.inner_text()
    story.click()
    expect(page.locator("#cluster h2")).to_have_text(name)
    page.keyboard.press("Escape")
    page.fill("#text", "!!!")
    page.click("#score button")
    expect(page.locator("#scored")).to_contain_text("no words are left of its text")
    assert told.errors == []


def test_time_is_zoomed_and_stands_still(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    page.click("[data-zoom='10']")
    expect(page.locator("[data-zoom='10']")).to_have_attribute("aria-pressed", "true")
    page.click("#pause")
    wait_for(lambda: page.evaluate("true") and told.graphs == 0)
    page.wait_for_timeout(2000)  # in which the last answer is drawn
    drawn = page.evaluate("document.getElementById('graph').toDataURL()")
    before = page.locator("#records li").first.get_attribute("data-seq")
    run.give(100)
    up_to_date(page, run)
    page.wait_for_timeout(2500)
    assert page.locator("#records li").first.get_attribute("data-seq") == before
    assert page.evaluate("document.getElementById('graph').toDataURL()") == drawn
    page.click("#pause")
    wait_for(lambda: page.evaluate("document.getElementById('graph').toDataURL()") != drawn)
    page.focus("#graph")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#graph-said")).to_contain_text("records")
    page.keyboard.press("Enter")
    expect(page.locator("#cluster")).to_be_visible()
    assert told.errors == []


def test_a_stretch_of_time_is_dragged_over_and_let_go_again(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    box = page.locator("#graph").bounding_box()
    assert box is not None
    with page.expect_request(lambda request: "api/graph?from=" in request.url) as asked:
        page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 40)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 60, steps=5)
        page.mouse.up()
    found = re.search(r"from=([\d.]+)&to=([\d.]+)", asked.value.url)
    assert found is not None
    with urllib.request.urlopen(f"http://127.0.0.1:{run.port}/api/graph") as answer:
        first, last = json.load(answer)["whole"]
    share = (float(found[2]) - float(found[1])) / (last - first)
    assert 0.4 < share < 0.6
    for zoom in ("1", "3", "10"):
        expect(page.locator(f"[data-zoom='{zoom}']")).to_have_attribute("aria-pressed", "false")
    expect(page.locator("#cluster")).to_be_hidden()  # what ends on a band opens nothing
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], box["y"] + 2)
    expect(page.locator("[data-zoom='1']")).to_have_attribute("aria-pressed", "true")
    assert told.errors == []


def test_what_records_say_is_never_markup(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    run.lines({"time": run.time + i, "id": MARKUP, "text": f"{MARKUP} {i}"} for i in range(30))
    page.locator("#records li p", has_text="<script>document.title='hacked'</script>").first.wait_for()
    page.fill("#search", "<script>")
    row = page.locator("#table tbody tr[data-cluster]").first
    expect(row.locator(".said")).to_contain_text("<script>")
    row.locator(".open").click()
    expect(page.locator("#cluster .records li p").first).to_contain_text("<img src=x onerror=alert(1)>")
    assert "hacked" not in page.title()
    assert page.locator("main script, main img").count() == 0
    assert told.errors == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_fault_of_access(chromium: Browser, run: Run, scheme: Any) -> None:
    page = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme, bypass_csp=True)
    page.goto(f"http://127.0.0.1:{run.port}/")
    page.wait_for_selector("#table tbody tr[data-cluster]")
    page.emulate_media(reduced_motion="reduce", color_scheme=scheme)
    page.add_script_tag(content=axe())
    faults = []
    for opened in (False, True):
        if opened:
            page.locator("#table .open").first.click()
            expect(page.locator("#cluster")).to_be_visible()
        looked = page.evaluate("axe.run().then(r => ({violations: r.violations, passes: r.passes.length}))")
        assert looked["passes"] > 20
        found = [(v["impact"], v["id"], v["nodes"][0]["html"]) for v in looked["violations"]]
        faults += [fault for fault in found if fault[0] in ("serious", "critical")]
    page.close()
    assert faults == []


@pytest.mark.parametrize(
    ("kind", "more", "asked", "found"),
    [
        ("vectors", (), "[3, 0]", "Its centre"),
        ("lines", ("--format", "log"), "login of ann failed", "login of <word>"),
    ],
)
def test_what_is_no_text_is_shown_too(
    chromium: Browser, tmp_path: Path, kind: str, more: tuple[str, ...], asked: str, found: str
) -> None:
    run, chance = Run(tmp_path, *more), random.Random(2)
    page = chromium.new_page()
    told = Told(page, run.port)
    try:
        for n in range(600):
            if kind == "vectors":
                centre = 3.0 * (n % 3)
                run.lines([{"vector": [centre + chance.gauss(0, 0.3), chance.gauss(0, 0.3)], "time": n}])
            else:
                user = chance.choice(["ann", "bob", "cyd", "dan", "eve"])
                said = (f"login of {user} failed", f"disk {n} has {n * n} blocks", "all is well")[n % 3]
                run.raw([f"2026-11-23T10:{n // 60:02}:{n % 60:02} {said}\n".encode()])
        wait_for(lambda: answers(run.port))
        wait_for(lambda: visit(page, run.port))
        page.wait_for_selector("#table tbody tr[data-cluster]:nth-child(3)")
        page.wait_for_selector("#legend li")
        up_to_date(page, run)
        page.fill("#text", asked)
        page.click("#score button")
        page.wait_for_selector("#scored li .sure")
        page.fill("#search", "" if kind == "vectors" else "login")
        first = page.locator("#table tbody tr[data-cluster] .open").first
        expect(first).to_contain_text("" if kind == "vectors" else "login")
        first.click()
        expect(page.locator("#cluster")).to_contain_text(found)
        placeholder = page.get_attribute("#text", "placeholder") or ""
        assert ("list of numbers" if kind == "vectors" else "a line") in placeholder
        seqs = page.eval_on_selector_all("#records li", "all => all.map((li) => li.dataset.seq)")
        assert len(set(seqs)) == len(seqs) > 3
        assert not page.inner_text("#records li p").startswith("record")
        page.fill("#search", "")
        wait_for(lambda: (names := page.evaluate(NAMES))[0] and names[0] == names[1])
        assert told.errors == []
        assert told.strange == []
    finally:
        page.close()
        run.close()


NAMES = """
() => {
  const named = (selector, name) => new Map(
    [...document.querySelectorAll(selector)]
      .map((each) => [each.dataset.cluster, each.querySelector(name).textContent])
  );
  const rows = named("#table tr[data-cluster]", ".open");
  const drawn = named("#legend li button", ".name");
  const both = [...drawn.keys()].filter((cluster) => rows.has(cluster));
  return [both.map((cluster) => rows.get(cluster)), both.map((cluster) => drawn.get(cluster))];
}
"""
"""What clusters are called in the table, and in the graph."""


@pytest.mark.parametrize("width", [360, 3840])
def test_narrow_and_wide_windows_need_no_sideways_scrolling(chromium: Browser, run: Run, width: int) -> None:
    page = chromium.new_page(viewport={"width": width, "height": 800})
    page.goto(f"http://127.0.0.1:{run.port}/")
    page.wait_for_selector("#table tbody tr[data-cluster]")
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("#graph").bounding_box()["width"] > 0.5 * min(width, 2400)  # type: ignore[index]
    page.close()


def test_after_the_end_of_the_input_a_page_shows_the_end(chromium: Browser, tmp_path: Path) -> None:
    port, records = free_port(), demo_stream(1500, 7)
    lines = [json.dumps({"time": d.time, "text": d.text}).encode() + b"\n" for d in records]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            command("consume", "-", "--output", "out", "--page", str(port), "--page-linger"),
            cwd=tmp_path, env=environment(), stdin=subprocess.PIPE, stdout=log, stderr=log,
        )  # fmt: skip
        assert process.stdin is not None
        try:
            process.stdin.write(b"".join(lines[:300]))
            process.stdin.flush()
            with shown(chromium, port) as (page, told):
                page.wait_for_selector("#table tbody tr[data-cluster]")
                process.stdin.write(b"".join(lines[300:]))
                process.stdin.close()
                expect(page.locator("#state")).to_have_text("input ended")
                live = page.locator("#strip div", has_text="Live").locator("dd").first.inner_text()
                expect(page.locator("#found")).to_contain_text(re.compile(rf"^{live}, now"))
                assert told.errors == []
        finally:
            process.kill()
            process.wait()


def test_without_scripts_there_is_a_table(chromium: Browser, run: Run) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{run.port}/")
    expect(page.locator(".plain table")).to_be_visible()
    rows = [row.locator("th, td").all_inner_texts() for row in page.locator(".plain tbody tr").all()]
    found = answered(run, "stories?least=1&limit=50")["stories"]
    wanted = [(str(each["label"]), str(each["records"]), str(each["now"])) for each in found]
    assert [(row[0], row[2], row[5]) for row in rows] == wanted
    context.close()


def test_a_run_that_was_killed_and_goes_on_is_picked_up(opened: tuple[Page, Told], run: Run) -> None:
    page, told = opened
    page.evaluate("window.same = true")
    before = records(page)
    run.kill()
    expect(page.locator("#state")).to_have_text("connection lost, trying again")
    run.give(400)
    run.start()
    expect(page.locator("#state")).to_have_text("live")
    wait_for(lambda: records(page) >= before + 400)
    assert page.evaluate("window.same") is True
    expect(page.locator("#table tbody tr[data-cluster]").nth(3)).to_be_visible()
    others = [text for text in told.errors if "ERR_" not in text]  # that nobody answered for a while
    assert others == []
