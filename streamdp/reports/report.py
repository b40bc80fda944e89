"""A report to mail: one HTML file with the stories that matter now, what they say, and how they went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from html import escape
from itertools import islice
from typing import NamedTuple
from urllib.parse import urlsplit

import numpy as np

from streamdp.answers.listing import is_date
from streamdp.reports.source import StorySource
from streamdp.story.story import Stories, Story, StoryRecord, iso
from streamdp.story.titles import short

HEADLINES = 5
"""Of a story."""

LOOKED_AT = 40
"""Latest texts of a story, of which its headlines are chosen."""

ALIKE = 0.6
"""Share of words in common from which a headline gives way to one that says something else."""

LONGEST = 200
"""Characters of a headline."""

FIELDS, VALUES = 2, 4
"""Kept fields of a story that say where its records come from, and values of each."""

THEMES = 10
"""Themes that are listed, where they are asked for."""

BINS, HIGH = 80, 40
"""Bars of a picture, and its height in its own units; a bar is four wide."""

WAYS = {"new": "✦ new", "growing": "▲ growing", "steady": "steady", "fading": "▼ fading", "silent": "silent"}

STYLE = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #fff; --line: #d5d9de; --quiet: #5a6069;
  --bar: #b9c6d6; --now: #2f6fb5; --up: #1a7443; --down: #a8372f }
@media (prefers-color-scheme: dark) { :root { --ink: #e7e9ec; --paper: #16181b; --line: #383d44;
  --quiet: #a3abb5; --bar: #4a5665; --now: #6aa9ee; --up: #5cc48b; --down: #ef8a80 } }
html { font: 15px/1.4 system-ui, sans-serif; color: var(--ink); background: var(--paper) }
body { max-width: 76rem; margin: 0 auto; padding: 1.2rem 1rem; overflow-wrap: anywhere }
h1 { font-size: 1.6rem; margin: 0 } p { margin: .3rem 0 }
h2 { font-size: 1.08rem; line-height: 1.3; margin: 0 }
.stories { display: grid; gap: 0 2.2rem; margin-top: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(27rem, 100%), 1fr)) }
article { border-top: 1px solid var(--line); padding: .8rem 0; min-width: 0; break-inside: avoid }
.quiet, figcaption { color: var(--quiet); font-size: .85rem } .new, .growing { color: var(--up) }
.fading { color: var(--down) } time, .now, li .quiet { white-space: nowrap } a { color: inherit }
figure { margin: .4rem 0 0 } figcaption { display: flex; justify-content: space-between }
svg { display: block; width: 100%; height: 40px; border-bottom: 1px solid var(--line) }
ul { list-style: none; margin: .4rem 0 0; padding: 0 } .template { font: .9rem/1.35 ui-monospace, monospace }
.stories :is(h2, li, .sources) { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  overflow: hidden; margin-top: .2rem }
.warning { border-left: 4px solid #d9762b; padding-left: .8rem }
@page { margin: 14mm }
@media screen and (max-width: 30rem) { article { padding: .6rem 0 } svg { height: 24px }
  .stories :is(li:nth-child(n+3), .sources, article + article figcaption) { display: none } }
@media print { html { font-size: 8.5pt; line-height: 1.3 } body { max-width: none; padding: 0 }
  .stories { display: block; columns: 2; column-gap: 1.4rem } article { padding: .5rem 0 }
  .stories :is(h2, li, .sources) { display: block }
  svg { height: 26px; print-color-adjust: exact; -webkit-print-color-adjust: exact } }
"""


def report(source: StorySource, found: Stories, shown: Stories, title: str, since: float | None) -> str:
    """The report as a page.

    Parameters
    ----------
    source
        What knows the records.
    found
        All stories; their themes are listed, if they were looked for.
    shown
        Those that have an article each, what matters most first.
    title
        What the stream is called.
    since
        Where "now" begins if that was asked for, in seconds: pictures begin as long before.
    """
    dated = found.clock.dated
    begun = (s.began_time if dated else float(s.first_seq) for s in shown)
    first, two = (
        min((place for place in begun if place is not None), default=-np.inf),
        2 * found.clock.stretch,
    )
    begin = max(first, -np.inf if since is None and first > -np.inf else found.clock.time - two)
    told = [_Told.of(source, story, begin, found) for story in shown]
    repeated = _repeated(told)
    articles = "".join(_article(each, repeated, begin, found, since) for each in told)
    parts = [f"<h1>{escape(title)}</h1>", *_summary(found, shown, source, since)]
    parts += [f'<div class="stories">{articles}</div>', *_themes(found)]
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


class _Told(NamedTuple):
    """A story with its records by bin of the picture, headlines, and the values of kept fields."""

    story: Story
    counts: np.ndarray
    headlines: list[StoryRecord]
    kept: dict[str, Counter[str]]

    @classmethod
    def of(cls, source: StorySource, story: Story, begin: float, found: Stories) -> _Told:
        """What the records of a source say of a story, in one pass over them, the latest first."""
        clock, counts = found.clock, np.zeros(BINS, np.int64)
        kept, texts = dict[str, Counter[str]](), dict[str, StoryRecord]()
        for _, record in source.records([story.label], latest=True):
            place = record.time if clock.dated else float(record.seq)
            if place is None or place < begin:
                continue
            counts[min(int((place - begin) / max(clock.time - begin, 1e-9) * BINS), BINS - 1)] += 1
            for name, value in record.keep.items():
                if value not in ("", None, record.text):
                    kept.setdefault(name, Counter())[_host(value) or short(str(value), 40)] += 1
            if record.text and len(texts) < LOOKED_AT:
                texts.setdefault(" ".join(record.text.split()).casefold(), record)
        samples = (StoryRecord(seq=-1, text=text) for text in story.samples)
        return cls(story, counts, _differing(story.title, [*texts.values()] or [*samples]), kept)


def _differing(title: str, records: Iterable[StoryRecord]) -> list[StoryRecord]:
    """A few records, in their order, if possible of which none says what another or the title says."""
    chosen, others = [], []
    said = [set(title.casefold().split())]
    for record in records:
        words = set(record.text.casefold().split())
        if words == said[0]:
            continue
        if any(len(words & each) >= ALIKE * len(words | each) for each in said):
            others.append(record)
        else:
            said.append(words)
            chosen.append(record)
    picked = {record.seq for record in [*chosen, *others][:HEADLINES]}
    return [record for record in records if record.seq in picked][:HEADLINES]


def _repeated(told: Iterable[_Told]) -> list[str]:
    """The kept fields that say where records come from: few values that come again, those of most first."""
    total = dict[str, Counter[str]]()
    for each in told:
        for name, values in each.kept.items():
            total.setdefault(name, Counter()).update(values)
    several = {name: v.total() for name, v in total.items() if 2 * len(v) <= v.total() and len(v) > 1}
    return sorted(several, key=lambda name: -several[name])[:FIELDS]


def _host(value: object) -> str:
    """The host of an address of the web; empty where a value is none."""
    if not isinstance(value, str) or not value.startswith(("https://", "http://")):
        return ""
    try:
        return (urlsplit(value).hostname or "").removeprefix("www.")
    except ValueError:
        return ""


def _time(time: float | None, seq: float, *, year: bool = False) -> str:
    """A moment for people, with the exact one for programs and on hover; what has no date as a number."""
    if time is None:
        return f'<span class="now">record {seq:,.0f}</span>'
    if not is_date(time):
        return f'<span class="now">{time:,g}</span>'
    moment = datetime.fromtimestamp(int(time), UTC)
    shown = f"{moment.day} {moment:%b}{f' {moment.year}' if year else ''}, {moment:%H:%M}"
    return f'<time datetime="{iso(time)}" title="{iso(time)}">{shown}</time>'


def _stretch(found: Stories, since: float | None) -> tuple[str, str]:
    """How the latest stretch, and the one before, are called."""
    if since is not None:
        return f"since {_time(since, since)}", "in as long before"
    words = found.clock.words.removeprefix("1 ")
    return f'in the <span class="now">last {words}</span>', f"in the {words} before"


def _summary(found: Stories, shown: Stories, source: StorySource, since: float | None) -> Iterator[str]:
    clock, (now, _) = found.clock, _stretch(found, since)
    most = f"{len(shown)} of " if len(shown) < len(found) else ""
    zone = " UTC" if clock.dated and is_date(clock.time) else ""
    yield (
        f"<p>{most}{found.counted(len(found))}, those with most records {now} first. The newest of "
        f"{found.records:,} records is of {_time(clock.time if clock.dated else None, clock.time, year=True)}"
        f"{zone}. The dark bars of the pictures are the records {now}.</p>"
    )
    for warning in found.warnings:
        yield f'<p class="warning">{escape(warning)}</p>'
    if source.lacking:
        yield f'<p class="quiet">{escape(source.lacking)}</p>'


def _article(told: _Told, repeated: Iterable[str], begin: float, found: Stories, since: float | None) -> str:
    story, (now, before) = told.story, _stretch(found, since)
    trend = "ended" if story.ended else WAYS[story.trend]
    items = "".join(f"<li>{_headline(each, repeated)}</li>" for each in told.headlines)
    from_where = [
        f"{escape(name)}: {escape(', '.join(f'{v} {n:,}' for v, n in told.kept[name].most_common(VALUES)))}"
        for name in repeated
        if name in told.kept
    ]
    sources = f'<p class="quiet sources">{"; ".join(from_where)}</p>' if from_where else ""
    return (
        f'<article id="s{story.label}">'
        f"<h2{' class=template' if story.template else ''}>{escape(story.title)}</h2>"
        f'<p class="quiet"><strong class="{story.trend}">{trend}</strong>: {story.now:,} {now}, '
        f"{story.before:,} {before}; {story.records:,} in all</p>"
        f"{_picture(told, begin, found)}{f'<ul>{items}</ul>' if items else ''}"
        f"{sources}</article>"
    )


def _headline(record: StoryRecord, repeated: Iterable[str]) -> str:
    """A record in a line: its text, a link if it has one, its source and its time."""
    text = escape(short(record.text, LONGEST))
    links = (str(value) for value in record.keep.values() if _host(value))
    if link := next(links, None):
        text = f'<a href="{escape(link, quote=True)}" rel="noopener noreferrer">{text}</a>'
    own = [str(record.keep[name]) for name in repeated if record.keep.get(name) not in ("", None)][:1]
    facts = [escape(_host(each) or short(each, 40)) for each in own]
    facts += [_time(record.time, record.seq)] if record.time is not None else []
    return f'{text} <span class="quiet">{" · ".join(facts)}</span>' if facts else text


def _picture(told: _Told, begin: float, found: Stories) -> str:
    """Bars of a story's records over time; those of the latest stretch in another colour."""
    clock, top = found.clock, max(int(told.counts.max()), 1)
    width = max(clock.time - begin, 1e-9) / BINS
    bars = "".join(
        f'<rect x="{4 * i}" y="{HIGH - HIGH * n / top:.1f}" width="3.4" height="{HIGH * n / top:.1f}" '
        f'fill="var(--{"now" if begin + (i + 0.5) * width > clock.time - clock.stretch else "bar"})"/>'
        for i, n in enumerate(told.counts.tolist())
        if n
    )
    label = f"{told.story.title}: records over time, at most {top:,} in one of {BINS} stretches"
    ends = (_time(at if clock.dated else None, at) for at in (begin, clock.time))
    return (
        f'<figure><svg viewBox="0 0 {4 * BINS} {HIGH}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label, quote=True)}">{bars}</svg>'
        f"<figcaption>{''.join(ends)}</figcaption></figure>"
    )


def _themes(found: Stories) -> Iterator[str]:
    """The largest themes; nothing where nobody asked for them."""
    if not found.themes:
        return
    yield "<h2>Themes</h2><ol>"
    for theme in islice(found.themes, THEMES):
        yield (
            f"<li><strong>{escape(theme.title)}</strong> ({found.counted(len(theme.stories))}, "
            f'{theme.records:,} records) <span class="quiet">{escape(", ".join(theme.keywords))}</span></li>'
        )
    yield "</ol>"
