"""A report on a stream: one accessible file with what happened, its stories, and how they went over time."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

import numpy as np

from streamdp.reports.source import StorySource
from streamdp.story.story import Stories, Story, iso

PAGE_STYLE = """
:root { color-scheme: light dark;
  --ink: #1c1e21; --paper: #fff; --line: #d5d9de; --quiet: #5a6069; --bar: #2f6fb5 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7e9ec; --paper: #16181b; --line: #383d44; --quiet: #a3abb5; --bar: #6aa9ee } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 72rem; margin: 0 auto; padding: 1rem }
table { border-collapse: collapse; width: 100% }
caption { text-align: left; color: var(--quiet); padding: .3rem 0 }
th, td { text-align: left; vertical-align: top;
  padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line) }
@media print { body { max-width: none; padding: 0 } a { color: inherit } section, tr { break-inside: avoid } }
"""


def document(title: str, body: str, style: str = "") -> str:
    """A page of a title, and of a body that is HTML already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{PAGE_STYLE}{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


MOST = 40
"""Stories that have a section of their own."""

THEMES = 20
"""Themes, where there are more stories than that."""

DRAWN = 8
"""Stories in the chart; the others are one more band."""

BINS = 60

WIDE, HIGH = 960, 260
"""Of the chart, in its own units."""

COLOURS = ("#2f6fb5", "#d9762b", "#3c9a5f", "#b5423f", "#7c5cb5", "#8a6a4f", "#c75d9c", "#5b7f95", "#9aa1a9")

STYLE = """
h1 { font-size: 1.6rem } h2 { font-size: 1.25rem; margin-top: 2rem } h3 { font-size: 1.05rem; margin: 0 }
svg { max-width: 100%; height: auto; display: block } text { fill: var(--quiet); font-size: 12px }
section.story { border-top: 1px solid var(--line); padding: .8rem 0 }
.meta, figcaption, dt { color: var(--quiet) } ul { margin: .3rem 0; padding-left: 1.2rem }
figure { margin: 0; overflow-x: auto } figure svg { min-width: 40rem }
.key { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; padding: 0 }
.key i { display: inline-block; width: .8em; height: .8em; margin-right: .4em }
.wide { overflow-x: auto } .warning { border-left: 4px solid #d9762b; padding-left: .8rem }
"""


def report(source: StorySource, title: str, *, themes: bool = False) -> str:
    """The report as a page; ``title`` is what the stream is called. ``themes`` adds those of many stories."""
    stories = source.stories()
    if themes and len(stories) > THEMES:
        stories = stories.themed(THEMES)
    several = stories.like(story for story in stories if story.records > 1)
    series = _Series(source, several, stories)
    parts = [
        f"<h1>{escape(title)}</h1>",
        *_summary(stories, several, source),
        *_chart(series, several),
        *_themes(several),
        *_table(several),
        f"<h2>{escape(stories.nouns.capitalize())}</h2>",
        *(_section(source.in_full(story), series, stories) for story in several[:MOST]),
    ]
    if len(several) > MOST:
        parts.append(f"<p>{escape(stories.counted(len(several) - MOST))} more are in the table alone.</p>")
    return document(title, "\n".join(["<main>", *parts, "</main>"]), STYLE)


class _Series:
    """Records by story and bin of time, or of numbers where records have no times."""

    def __init__(self, source: StorySource, several: Stories, stories: Stories) -> None:
        dated = stories.clock.dated
        labels = {story.label for story in (*stories, *source.stories(closed=True))}
        held = [
            (label, record.time if dated else float(record.seq)) for label, record in source.records(labels)
        ]
        places = np.array([place for _, place in held if place is not None], float)
        self.begin, self.end = 0.0, 1.0
        if len(places):
            self.begin, self.end = float(places.min()), float(places.max())
        self.dated, span = dated, max(self.end - self.begin, 1e-9)
        self.counts = {story.label: np.zeros(BINS, np.int64) for story in several}
        self.total = np.zeros(BINS, np.int64)
        for label, place in held:
            if place is not None:
                at = min(int((place - self.begin) / span * BINS), BINS - 1)
                self.total[at] += 1
                if label in self.counts:
                    self.counts[label][at] += 1

    def place(self, share: float) -> str:
        """What stands at a share of the way, for people."""
        at = self.begin + share * (self.end - self.begin)
        return iso(at) if self.dated else f"record {at:,.0f}"


def _summary(stories: Stories, several: Stories, source: StorySource) -> Iterator[str]:
    alone = len(stories) - len(several)
    yield (
        f"<p>{stories.records:,} records; {len(stories):,} live {escape(stories.nouns)}"
        f"{f', {alone:,} of one record' if alone else ''}. <em>Now</em> is the last "
        f"{escape(stories.clock.words)}"
        f"{f', to {iso(stories.clock.time)}' if stories.clock.dated else ''}.</p>"
    )
    for warning in stories.warnings:
        yield f'<p class="warning">{escape(warning)}</p>'
    if source.lacking:
        yield f'<p class="meta">{escape(source.lacking)}</p>'
    for trend, what in (("new", "New"), ("growing", "Growing"), ("fading", "Fading")):
        found = sorted((s for s in several if s.trend == trend), key=lambda s: (-abs(s.growth), s.label))[:5]
        if found:
            links = ", ".join(f'<a href="#s{s.label}">{escape(s.title)}</a> ({s.growth:+,})' for s in found)
            yield f"<p><strong>{what}:</strong> {links}</p>"


def _chart(series: _Series, several: Stories) -> Iterator[str]:
    """Bands of the largest stories, and of all others, over time; a scale on the left."""
    drawn = several[:DRAWN]
    bands = [series.counts[story.label] for story in drawn]
    rest = series.total - sum(bands, np.zeros(BINS, np.int64))
    names = [*(story.title for story in drawn), "all others"]
    top = max(int(series.total.max()), 1)
    step = _step(top)
    low, left = HIGH - 24, 48
    width = (WIDE - left) / BINS
    shapes = []
    for value in range(0, top + 1, step):
        y = low - (low - 10) * value / top
        shapes.append(f'<line x1="{left}" x2="{WIDE}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--line)"/>')
        shapes.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{value:,}</text>')
    base = np.zeros(BINS)
    for counts, colour in zip([*bands, rest], [*COLOURS[: len(bands)], COLOURS[-1]], strict=True):
        for i in np.flatnonzero(counts).tolist():
            height = (low - 10) * counts[i] / top
            y = low - (low - 10) * base[i] / top - height
            shapes.append(
                f'<rect x="{left + i * width:.1f}" y="{y:.1f}" width="{width - 0.6:.1f}" '
                f'height="{height:.1f}" fill="{colour}"/>'
            )
        base += counts
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        x = left + share * (WIDE - left)
        text = escape(series.place(share))
        shapes.append(f'<text x="{x:.0f}" y="{HIGH - 6}" text-anchor="{anchor}">{text}</text>')
    key = "".join(
        f'<li><i style="background:{colour}"></i>{escape(name)}</li>'
        for name, colour in zip(names, [*COLOURS[: len(bands)], COLOURS[-1]], strict=True)
    )
    yield "<h2>Over time</h2>"
    yield (
        '<figure tabindex="0" role="group" aria-label="chart">'
        f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="Records over time, by story: '
        f'{escape(", ".join(names), quote=True)}">{"".join(shapes)}</svg>'
        f'<ul class="key">{key}</ul>'
        f"<figcaption>Records in each of {BINS} equal stretches.</figcaption></figure>"
    )


def _step(top: int) -> int:
    """A round distance between lines of the scale, of which there are five at most."""
    size = 1
    while True:
        for factor in (1, 2, 5):
            if top <= 5 * factor * size:
                return factor * size
        size *= 10


def _themes(several: Stories) -> Iterator[str]:
    """Themes with their largest stories; nothing where there are none of several stories."""
    if not any(len(theme.stories) > 1 for theme in several.themes):
        return
    titles = {story.label: story.title for story in several}
    yield "<h2>Themes</h2><ol>"
    for theme in several.themes:
        others = [titles[label] for label in theme.stories[1:4] if label in titles]
        told = f"; with {', '.join(others)}" if others else ""
        yield (
            f"<li><strong>{escape(theme.title)}</strong> ({several.counted(len(theme.stories))}, "
            f"{theme.records:,} records, {theme.now:,} now: {theme.trend})"
            f'<br><span class="meta">{escape(", ".join(theme.keywords))}{escape(told)}</span></li>'
        )
    yield "</ol>"


def _table(several: Stories) -> Iterator[str]:
    head = ("title", "records", "now", "trend", "began", "last")
    cells = "".join(f'<th scope="col">{name}</th>' for name in head)
    rows = []
    for number, story in enumerate(several):
        name = escape(story.title)
        linked = f'<a href="#s{story.label}">{name}</a>' if number < MOST else name
        began = story.began or f"record {story.first_seq:,}"
        last = story.last or f"record {story.last_seq:,}"
        rest = (f"{story.records:,}", f"{story.now:,}", story.trend, began, last)
        rows.append(f'<tr><th scope="row">{linked}</th>{"".join(f"<td>{escape(c)}</td>" for c in rest)}</tr>')
    yield "<h2>All</h2>"
    yield (
        f'<div class="wide" tabindex="0" role="region" aria-label="All {several.nouns}"><table><thead><tr>'
        f"{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _section(story: Story, series: _Series, stories: Stories) -> str:
    facts = [f"{story.records:,} records", f"{story.now:,} now, {story.before:,} before: {story.trend}"]
    times = {"began": story.began, "peak": story.peak, "last": story.last}
    facts += [f"{name} {at}" for name, at in times.items() if at is not None]
    if story.split_from is not None:
        facts.append(f"split from {story.split_from}")
    if story.merged_with:
        facts.append(f"has taken in {', '.join(map(str, story.merged_with))}")
    words = f'<p class="meta">{escape(", ".join(story.keywords))}</p>' if story.keywords else ""
    if story.theme is not None and story.theme != story.label:
        facts.append(f"theme {story.theme}")
    holes = [hole.said(nth) for nth, hole in enumerate(story.holes, 1)]
    samples = story.samples or [record.text for record in story.surest if record.text]
    texts = [*holes, *(text for text in samples if text != story.title)]
    told = "".join(f"<li>{escape(text)}</li>" for text in texts)
    return (
        f'<section class="story" id="s{story.label}"><h3>{escape(story.title)}</h3>{words}'
        f"{_sparkline(series.counts[story.label], story)}"
        f"<p>{escape('; '.join(facts))} ({stories.noun} {story.label})</p>"
        f"{f'<ul>{told}</ul>' if told else ''}</section>"
    )


def _sparkline(counts: np.ndarray, story: Story) -> str:
    top = max(int(counts.max()), 1)
    bars = "".join(
        f'<rect x="{4 * i}" y="{28 - 28 * count / top:.1f}" width="3.2" height="{28 * count / top:.1f}" '
        'fill="var(--bar)"/>'
        for i, count in enumerate(counts.tolist())
        if count
    )
    label = escape(f"{story.title}: at most {top:,} records in a stretch", quote=True)
    size = f'viewBox="0 0 {4 * BINS} 28" width="{4 * BINS}" height="28"'
    return f'<svg {size} role="img" aria-label="{label}">{bars}</svg>'
