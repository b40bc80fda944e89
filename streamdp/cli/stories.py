"""``streamdp stories``: the stories of a state, a store or a file of answers."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from streamdp.answers.listing import ago, counted, printable
from streamdp.cli.options import StoriesOptions
from streamdp.cli.summary import refined_line
from streamdp.errors import ConfigError, Exit, foreseen
from streamdp.ledger.samples import text_of_kept
from streamdp.questions.asking import chosen_of, stories_asked, story_of
from streamdp.questions.questions import ListStories
from streamdp.reports.marks import since_of
from streamdp.reports.report import report as written
from streamdp.reports.source import StateStories, StorySource, is_address, source_of
from streamdp.run.lines import csv_of
from streamdp.run.messages import say
from streamdp.settings.schema import Classes
from streamdp.story.clock import duration
from streamdp.story.orders import Sort
from streamdp.story.story import TYPES, Stories, Story, StoryRecord, Theme, iso, noun_of

IN_TABLE, IN_REPORT, MOST_AT_ONCE = 20, 10, 1_000
"""Stories of a table and of a report, unless a limit says otherwise; of one answer of a service."""

THEMES = 20
"""Themes of which --theme names one, unless --themes says otherwise."""

ARROWS = {"new": "✦ new", "growing": "↑", "steady": "", "fading": "↓", "silent": "silent"}

HEADS = {"lines": "template", "vectors": "mean"}
"""What the column of titles is called where records are no texts."""


def stories(path: str, options: StoriesOptions, classes: Classes) -> None:
    """Print the stories of a path. Raises StreamdpError."""
    if options.csv and options.json:
        raise ConfigError("say one of --csv and --json", Exit.USAGE)
    if is_address(path):
        _list_of_service(path, options)
        return
    if options.report is not None:
        _report(path, options.report, options, classes)
        return
    source, question = source_of(path, classes), _question(options)
    found = _found(source, question, options)
    if options.story is not None:
        _print_one(source, found, options.story, options)
        return
    if options.themes is not None or options.theme is not None:
        found = _with_themes(found, options)
        if options.theme is None:
            _print_themes(found, options)
            return
    of_theme = found.like(story for story in found if options.theme in (None, story.theme))
    chosen, small = chosen_of(question, of_theme, source, path)
    limit = options.limit or (None if options.csv or options.json else IN_TABLE)
    shown = chosen if limit is None else chosen[:limit]
    if options.records:
        _print_records(source, shown, options)
    elif not _write_stories(shown, options):
        console().print(_view(source, found, shown, options), highlight=False)
        if not shown:
            say(f"no {found.noun} was found")
    for line in _left_out(found, chosen, shown, small, source, options):
        say(line)


def _list_of_service(address: str, options: StoriesOptions) -> None:
    """Print the stories that a running service lists. Raises StreamdpError."""
    from streamdp.questions.sources import RemoteSource
    from streamdp.run.observers import token_of

    for name in ("records", "report", "story", "themes", "theme", "now"):
        if getattr(options, name) not in (None, False):
            how = f"for --{name} name its --state or --store"
            raise ConfigError(f"{address} is a service: {how}", Exit.USAGE)
    most = min(options.limit or (MOST_AT_ONCE if options.csv or options.json else IN_TABLE), MOST_AT_ONCE)
    source = RemoteSource(address, token_of(None))
    found = source.answer(msgspec.structs.replace(_question(options), limit=most))
    kind = "lines" if any(story.template for story in found.stories) else "texts"
    shown = Stories(found.stories, records=found.records, kind=kind)
    if not _write_stories(shown, options):
        title = f"{shown.nouns} of {address}: {counted(found.records, 'record')}"
        console().print(story_table(title, shown, samples=options.samples), highlight=False)
    if found.next is not None:
        how = f" (--limit {found.total} shows all)" if found.total <= MOST_AT_ONCE else ""
        say(f"{shown.counted(found.total - len(shown))} not shown{how}")
    for line in (found.lacking, *found.warnings):
        if line:
            say(line)


def console(width: int = 140) -> Console:
    """Where tables are printed: as wide as the terminal, else wide enough for titles."""
    return Console(width=None if sys.stdout.isatty() else width)


def table_of(title: str, *columns: str, wide: str = "", left: Collection[str] = ()) -> Table:
    """A table for a terminal, numbers at the right; a column that is ``wide`` takes what room is left."""
    table = Table(title=title, title_justify="left")
    for name in columns:
        table.add_column(
            name, justify="left" if name in (wide, *left) else "right", ratio=1 if name == wide else None
        )
    return table


# ---------------------------------------------------------------- which


def _seconds(option: str, text: str | None) -> float | None:
    try:
        return None if text is None else duration(text)
    except ValueError as error:
        raise ConfigError(f"{option}: {error}", Exit.USAGE) from None


def _question(options: StoriesOptions) -> ListStories:
    """Which stories the options ask for, as any door would."""
    every = (options.every or options.search is not None) and not options.closed
    usual: Sort = "growing" if options.growing else "last" if options.closed or options.every else "size"
    return ListStories(
        which="ended" if options.closed else "all" if every else "live",
        sort=options.sort or usual,
        least=options.least,
        search=options.search or "",
        since=options.since,
        until=options.until,
        growing=options.growing,
    )


def _found(source: StorySource, question: ListStories, options: StoriesOptions) -> Stories:
    """The stories that are chosen from; with their themes where the stream has them."""
    found = stories_asked(question, source, _seconds("--now", options.now))
    if question.which != "live" or not isinstance(source, StateStories):
        return found
    themes = source.engine.settings.themes
    return found.themed(themes) if themes else found


def _left_out(
    found: Stories, chosen: Stories, shown: Stories, small: int, source: StorySource, options: StoriesOptions
) -> Iterable[str]:
    """What is not shown, and how it is."""
    if len(chosen) > len(shown):
        yield f"{found.counted(len(chosen) - len(shown))} not shown (--limit {len(chosen)} shows all)"
    if small:
        of = "1 record" if options.least == 2 else f"fewer than {options.least} records"
        yield f"{found.counted(small)} of {of} left out (--least 1 shows all)"
    of_ended = options.closed or options.every
    if of_ended and found.remembered == "none":
        yield "stories that ended are remembered where consume was given --events or --store"
    elif of_ended and found.remembered == "latest":
        yield "a state remembers the last 100 that ended: a --store has all"
    if source.lacking:
        yield source.lacking
    yield from found.warnings


# ---------------------------------------------------------------- how


def _title(found: Stories, options: StoriesOptions) -> str:
    what = "ended" if options.closed else "growing" if options.growing else "live"
    what = "live and ended" if what == "live" and (options.every or options.search is not None) else what
    if not found.records:
        return f"{what} {found.nouns}: there are no records yet"
    return f"{what} {found.nouns}; now: the last {found.clock.words}, to {_end(found)}"


def _end(found: Stories) -> str:
    return iso(found.clock.time) if found.clock.dated else f"record {found.clock.time:,.0f}"


def _view(source: StorySource, found: Stories, shown: Stories, options: StoriesOptions) -> Group:
    """A table, below what a state says of itself."""
    above = _state_lines(source) if isinstance(source, StateStories) else ()
    table = story_table(_title(found, options), shown, samples=options.samples)
    return Group(*map(Text, above), table)


def _state_lines(source: StateStories) -> Iterable[str]:
    engine = source.engine
    counts, live = engine.counters(), len(engine.stories(records=False))
    more = f", {engine.held_back:,} more held back" if engine.held_back else ""
    begun = counts.get("clusters_created", 0)
    yield (
        f"{counted(engine.seq, 'record')}{more}; {live:,} live {noun_of(engine.kind, live)}, "
        f"{begun:,} since the stream began; written {ago(source.header.written)}"
    )
    if "lines_distinct" in counts:
        forgotten = f", {counts['lines_forgotten']:,} more forgotten" if counts["lines_forgotten"] else ""
        yield (
            f"{counted(counts['lines_distinct'], 'distinct line')} but for their numbers{forgotten}; "
            f"{counted(counts['clusters_merged'], 'template')} became part of older ones"
        )
    if counts.get("second_looks"):
        moved, merged = counts["records_moved"], counts["clusters_merged"]
        yield (
            f"{counted(counts['second_looks'], 'second look')}: {counted(moved, 'record')} moved, "
            f"{counted(merged, 'cluster')} merged, {engine.nats_gained:,.1f} nats won"
        )
    if line := refined_line(engine):
        yield line
    yield f"log evidence {engine.log_evidence:,.1f} nats"


def story_table(title: str, stories: Stories, *, samples: bool = False) -> Table:
    """A table for a terminal; ``samples`` adds a few records of each story."""
    first = "label" if stories.kind == "lines" else stories.noun
    last = "theme" if any(s.theme is not None for s in stories) else None
    wide, times = HEADS.get(stories.kind or "", "title"), ("trend", "began", "last")
    columns = first, wide, "records", "now", *times, *([] if last is None else [last])
    table = table_of(title, *columns, wide=wide, left=times)
    for story in stories:
        said = [story.title]
        if not story.template and story.keywords:
            said.append("  " + ", ".join(story.keywords))
        if samples:
            said += [f"· {sample}" for sample in story.samples]
        table.add_row(
            str(story.label),
            Text("\n".join(map(printable, said))),
            f"{story.records:,}",
            f"{story.now:,}",
            "ended" if story.ended else ARROWS[story.trend],
            story.began or f"record {story.first_seq:,}",
            story.last or f"record {story.last_seq:,}",
            *([] if last is None else ["" if story.theme is None else str(story.theme)]),
        )
    return table


def _write(
    columns: Iterable[str], items: Iterable[Any], rows: Iterable[Mapping[str, Any]], options: StoriesOptions
) -> bool:
    """Write items as JSON, or their rows under the columns as CSV, as asked for; False where neither was."""
    if options.json:
        sys.stdout.write("".join(msgspec.json.encode(item).decode() + "\n" for item in items))
    elif options.csv:
        sys.stdout.write(csv_of([columns, *(row.values() for row in rows)]).decode())
    return options.json or options.csv


def _write_stories(shown: Stories, options: StoriesOptions) -> bool:
    rows = shown.rows()
    return _write([*rows[0]] if rows else TYPES, shown, rows, options)


# ---------------------------------------------------------------- themes


def _with_themes(found: Stories, options: StoriesOptions) -> Stories:
    """The stories with their themes. Raises ConfigError where they have none, or not the one asked for."""
    asked = str(THEMES) if options.themes is None else options.themes
    if asked != "auto" and not (asked.isdecimal() and int(asked)):
        raise ConfigError(f"--themes: {asked!r} is neither a number above 0 nor auto", Exit.USAGE)
    themed = found.themed(None if asked == "auto" else int(asked))
    if not themed.themes:
        why = (
            "there are no stories"
            if not found
            else f"{found.nouns} that ended have none"
            if options.closed
            else "templates have none"
            if found[0].template
            else "the records' words are not known"
        )
        raise ConfigError(f"there are no themes: {why}", Exit.NO_INPUT)
    if options.theme is not None and all(theme.theme != options.theme for theme in themed.themes):
        raise ConfigError(f"there is no theme {options.theme}: --themes {asked} lists them", Exit.NO_INPUT)
    if options.theme is None and (rest := sum(story.theme is None for story in themed)) > 0:
        say(f"{found.counted(rest)} without a theme: their words are not known, or 3,000 are larger")
    return themed


def _print_themes(found: Stories, options: StoriesOptions) -> None:
    """Print themes, largest first."""
    shown = found.themes if options.limit is None else found.themes[: options.limit]
    rows = [_theme_row(theme) for theme in shown]
    if not _write(Theme.__struct_fields__, shown, rows, options):
        title = f"themes of {found.counted(len(found))}; now: the last {found.clock.words}, to {_end(found)}"
        columns = "theme", "title", "records", "now", "trend", found.nouns
        table = table_of(title, *columns, wide="title", left=("trend",))
        for theme in shown:
            said = map(printable, (theme.title, "  " + ", ".join(theme.keywords)))
            counts = f"{theme.records:,}", f"{theme.now:,}", ARROWS[theme.trend], f"{len(theme.stories):,}"
            table.add_row(str(theme.theme), Text("\n".join(said)), *counts)
        console().print(table, highlight=False)
    if len(found.themes) > len(shown):
        say(f"{len(found.themes) - len(shown)} themes not shown (--limit {len(found.themes)} shows all)")


def _theme_row(theme: Theme) -> dict[str, Any]:
    """The columns of a theme in a file."""
    row = msgspec.structs.asdict(theme)
    return row | {name: " ".join(map(str, row[name])) for name in ("keywords", "stories")}


def _print_records(
    source: StorySource, shown: Stories, options: StoriesOptions, most: int | None = None
) -> None:
    """Print the records of stories; the latest ones where there is a most."""
    of = {story.label: story for story in shown}
    known = sorted(source.records([*of]), key=lambda each: (of[each[0]].label, each[1].seq))
    if most is not None and len(known) > most:
        say(f"the latest {most:,} of {len(known):,} records (--limit)")
        known = known[-most:]
    without = sum(not record.text for _, record in known)
    if without and isinstance(source, StateStories) and source.engine.kind != "vectors":
        say(f"a state has some texts: {counted(without, 'record')} here without; a --store has all")
    rows = [_record_row(of[label].label, of[label].title, record) for label, record in known]
    items = (row | {"keep": record.keep} for row, (_, record) in zip(rows, known, strict=True))
    if not _write(_record_row(0, "", StoryRecord(seq=0)), items, rows, options):
        title = f"{len(rows):,} records of {shown.counted(len(shown))}"
        columns = "story", "record", "id", "time", "probability", "text"
        table = table_of(title, *columns, wide="text", left=("id", "time"))
        for row in rows:
            row |= {"text": f"{row['text']} ({row['keep']})".strip() if row["keep"] else row["text"]}
            texts = [
                printable("" if row[k] is None else str(row[k])) for k in row if k not in ("title", "keep")
            ]
            table.add_row(*map(Text, texts))
        console().print(table, highlight=False)


def _record_row(label: int, title: str, record: StoryRecord) -> dict[str, Any]:
    others = {name: value for name, value in record.keep.items() if value != record.text}
    return {
        "story": label,
        "title": title,
        "record": record.seq,
        "id": record.id,
        "time": record.when or "",
        "probability": record.probability,
        "text": record.text,
        "keep": text_of_kept(others, named=True),
    }


def _print_one(source: StorySource, found: Stories, label: int, options: StoriesOptions) -> None:
    """Print a story whole, which lives or has ended. Raises QuestionError where there is none."""
    known = found.story(label) or story_of(source, label, _seconds("--now", options.now))
    story = source.in_full(known)
    if options.csv or options.json or options.records:
        one = found.like([story])
        if options.records:
            _print_records(source, one, options, options.limit)
        else:
            _write_stories(one, options)
    else:
        console().print(Text("\n".join(map(printable, _life(story, found)))), highlight=False)
        _print_records(source, found.like([story]), options, options.limit)
    if source.lacking:
        say(source.lacking)


def _life(story: Story, found: Stories) -> Iterable[str]:
    """What there is to say of a story, line by line."""
    yield f"{found.noun} {story.label}{', which has ended' if story.ended else ''}: {story.title}"
    if story.keywords:
        yield f"keywords: {', '.join(story.keywords)}"
    times = [("began", story.began), ("peak", story.peak), ("last", story.last)]
    spoken = ", ".join(f"{name} {time}" for name, time in times if time is not None)
    yield f"{story.records:,} records; {spoken or f'records {story.first_seq:,} to {story.last_seq:,}'}"
    yield f"{story.now:,} in the last {found.clock.words}, {story.before:,} in those before: {story.trend}"
    for nth, hole in enumerate(story.holes, 1):
        yield hole.said(nth)
    if story.split_from is not None:
        yield f"split from {story.split_from}"
    if story.merged_with:
        yield f"has taken in {', '.join(map(str, story.merged_with))}"
    if story.merged_into is not None:
        yield f"became part of {story.merged_into}"
    for other, count in story.confused_with[:5]:
        yield f"{count:,} of its records were in {other} at first"


def _report(path: str, output: str, options: StoriesOptions, classes: Classes) -> None:
    """Write the report of a path to a file. Raises StreamdpError."""
    chooses = ("since", "until", "search", "every", "closed", "growing", "sort", "least", "limit", "now")
    options.refuse_beside("report", "title", "overwrite", "themes", *chooses)
    if os.path.exists(output) and not options.overwrite:
        raise ConfigError(f"{output} exists: --overwrite replaces it", Exit.CANNOT_CREATE)
    if os.path.exists(output) and os.path.samefile(output, path):
        raise ConfigError(f"{output} is what this command reads", Exit.USAGE)
    source = source_of(path, classes)
    question = msgspec.structs.replace(_question(options), sort=options.sort or "now")
    found, since = _found(source, question, options), None
    if options.since is not None and found:
        since = since_of(path, options.since, lambda: found.clock)
        if options.now is None and since < found.clock.time:
            found = stories_asked(question, source, found.clock.time - since)
    if options.themes is not None:
        found = _with_themes(found, options)
    chosen, _ = chosen_of(question, found, source, path)
    shown = chosen[: options.limit or IN_REPORT]
    page = written(
        source, found, shown, options.title or f"{found.nouns.capitalize()} of {Path(path).name}", since
    )
    with foreseen(ConfigError, output, "written", Exit.CANNOT_CREATE):
        Path(output).write_text(page, encoding="utf-8")
    more = f" of {len(chosen):,} (--limit {len(chosen)} has all)" if len(chosen) > len(shown) else ""
    say(f"wrote {output}: {found.counted(len(shown))}{more}")
