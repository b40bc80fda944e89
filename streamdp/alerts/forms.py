"""What is sent: JSON of its own kind, a message for a chat, or alerts for an Alertmanager."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

import msgspec

from streamdp.alerts.outbox import Notification
from streamdp.settings.alerts import Form

HOLDS = 300.0
"""Seconds for which an Alertmanager is told that an alert goes on: an event is over when it has happened."""

SHOWN = 20
"""Lines of a message for a chat, but for records that have moved."""

LISTED = 5
"""Of these, so many by the change."""

Link = Callable[[Notification], str | None]
"""The address of a story's page."""


def link_of(base: str | None) -> Link:
    """Addresses of stories on the page that is at ``base``."""

    def link(told: Notification) -> str | None:
        if base is None:
            return None
        page = base.partition("#")[0]
        page = page if page.endswith("/") else f"{page}/"
        return page if told.story is None else f"{page}#cluster/{told.story}"

    return link


def sentence(told: Notification) -> str:
    """What has happened, for people.

    Examples
    --------
    >>> sentence(Told(alert="a", key="born:3@7", event="born", at=0.0, story=3, title="coast storm"))
    'new story 3: coast storm'
    """
    what = f"{'template' if told.template else 'story'} {told.story}"
    size, usual = f"{told.size or 0:,}", f"{told.usual or 0.0:,.1f}"
    said = {
        "born": f"new {what}",
        "split": f"new {what}, out of {told.other}",
        "merged": f"{what} is part of {told.other} now",
        "vanished": f"{what} is gone: most of it is in {told.other}",
        "closed": f"{what} has ended with {size} records",
        "retired": f"{what} has ended with {size} records",
        "titled": f"{what} has a title",
        "renamed": f"{what} has another title",
        "surged": f"{what} has surged: {told.lines or 0:,} lines, where {usual} are usual",
        "silent": f"{what} is silent: {told.lines or 0:,} lines, where {usual} are usual",
    }.get(told.event, "")
    return _change(told, what) if told.event == "revised" else ": ".join(filter(None, [said, told.title]))


def _change(told: Notification, what: str) -> str:
    """What has become of answers that were given before."""
    one, after = told.size == 1, f"{told.other}{f' ({told.other_title})' if told.other_title else ''}"
    said = [
        f"{what}{f' ({told.title})' if told.title else ''}{' was two' if told.split else ' is corrected'}: "
        f"{told.size or 0:,} {'record' if one else 'records'} of it {'is' if one else 'are'} in {after} now, "
        f"with probability {told.probability or 0.0:.2f}"
    ]
    for name, counts in told.sources.items():
        said.append(f"{name}: " + ", ".join(f"{value} {count:,}" for value, count in counts.items()))
    said.append(f"{told.expected or 0.0:.1f} of 100 answers were expected to change")
    return "; ".join(said)


def _listed(told: Notification) -> list[str]:
    """A line for each of some records that have moved."""
    found = []
    for record in told.records[:LISTED]:
        kept = ", ".join(f"{name} {value}" for name, value in record.keep.items())
        known = [f"record {record.seq if record.id is None else record.id}", record.text, kept]
        found.append(": ".join(filter(None, known)))
    left = (told.size or 0) - len(found)
    return [*found, f"and {left:,} more"] if found and left else found


def as_json(name: str, told: Sequence[Notification], link: Link) -> bytes:
    """An object with all of them in order, each with its key, sentence and link."""
    alerts = [
        {**_plain(one), "sentence": sentence(one), **({"link": where} if (where := link(one)) else {})}
        for one in told
    ]
    return msgspec.json.encode({"alert": name, "events": alerts})


def as_lines(told: Sequence[Notification], link: Link) -> bytes:
    """A line of JSON for each, for a file; without the clock, so that the same run has the same lines."""
    lines = []
    for one in told:
        plain = {name: value for name, value in _plain(one).items() if name not in ("event", "at")}
        where = {"link": found} if (found := link(one)) else {}
        lines.append({"event": one.event, **plain, "sentence": sentence(one), **where})
    return msgspec.json.Encoder().encode_lines(lines)


def as_slack(name: str, told: Sequence[Notification], link: Link) -> bytes:
    """A message of text, as Slack, Mattermost and others take it at an incoming webhook."""
    lines = []
    for one in told[:SHOWN]:
        text, where = escape(sentence(one), quote=False), link(one)
        lines.append(f"{text} (<{where}|page>)" if where else text)
        lines += [f"• {escape(line, quote=False)}" for line in _listed(one)]
    if len(told) > SHOWN:
        lines.append(f"and {len(told) - SHOWN} more")
    return msgspec.json.encode({"text": "\n".join([f"*{escape(name, quote=False)}*", *lines])})


def as_alertmanager(name: str, told: Sequence[Notification], link: Link, now: float) -> bytes:
    """A list of alerts for ``/api/v2/alerts``. Labels hold no title: two of one story are one alert."""
    alerts = []
    for one in told:
        labels = {"alertname": name, "event": one.event, "source": "streamdp"}
        if one.story is not None:
            labels["story"] = str(one.story)
        if one.level is not None:
            labels["level"] = one.level
        notes = {"summary": sentence(one), "key": one.key}
        where = link(one)
        if where is not None:
            notes["page"] = where
        alert: dict[str, Any] = {
            "labels": labels,
            "annotations": notes,
            "startsAt": _iso(min(one.at, now)),
            "endsAt": _iso(now + HOLDS),
        }
        if where is not None:
            alert["generatorURL"] = where
        alerts.append(alert)
    return msgspec.json.encode(alerts)


def body_of(form: Form, name: str, told: Sequence[Notification], link: Link, now: float) -> bytes:
    """The body of a message in a format."""
    if form == "alertmanager":
        return as_alertmanager(name, told, link, now)
    return as_slack(name, told, link) if form == "slack" else as_json(name, told, link)


API = "/api/v2/alerts"
"""Where an Alertmanager takes alerts."""


def path_of(form: Form, path: str) -> str:
    """The path that a message is sent to: of an Alertmanager its API, behind what was given."""
    if form == "alertmanager" and not path.endswith(API):
        return path.rstrip("/") + API
    return path or "/"


def _plain(told: Notification) -> Mapping[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(told)
    return {name: value for name, value in found.items() if name != "alert"}


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
