"""What is sent: JSON, and made of that a message for a chat, or alerts for an Alertmanager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def sentence(told: Notification) -> str:
    """What has happened, for people.

    Examples
    --------
    >>> sentence(Notification(alert="a", key="born:3@7", event="born", at=0.0, story=3, title="coast storm"))
    'new story 3: coast storm'
    """
    what = f"{'template' if told.template else 'story'} {told.story}"
    size, lines = (
        f"{told.size or 0:,}",
        f"{told.lines or 0:,} lines, where {told.usual or 0.0:,.1f} are usual",
    )
    if told.event == "revised":
        one, sources = told.size == 1, told.sources.items()
        title = f" ({told.title})" if told.title else ""
        said = [
            f"{what}{title} {'was two' if told.split else 'is corrected'}: "
            f"{size} {'record' if one else 'records'} of it {'is' if one else 'are'} in {told.other}"
            f"{f' ({told.other_title})' if told.other_title else ''} now, "
            f"with probability {told.probability or 0.0:.2f}",
            *(
                f"{name}: " + ", ".join(f"{each} {n:,}" for each, n in counts.items())
                for name, counts in sources
            ),
            f"{told.expected or 0.0:.1f} of 100 answers were expected to change",
        ]
        return "; ".join(said)
    happened = {
        "born": f"new {what}",
        "split": f"new {what}, out of {told.other}",
        "merged": f"{what} is part of {told.other} now",
        "vanished": f"{what} is gone: most of it is in {told.other}",
        "titled": f"{what} has a title",
        "renamed": f"{what} has another title",
        "surged": f"{what} has surged: {lines}",
        "silent": f"{what} is silent: {lines}",
    }.get(told.event, f"{what} has ended with {size} records")
    return f"{happened}: {told.title}" if told.title else happened


Event = dict[str, Any]
"""What is sent of a notification as JSON; the other forms are made of it."""


def event_of(told: Notification, page: str | None) -> Event:
    """What is told, a sentence for people, and the story's address on the page."""
    found: Event = msgspec.to_builtins(told)
    del found["alert"]
    found["sentence"] = sentence(told)
    if page is not None:
        found["link"] = f"{page.partition('#')[0].removesuffix('/')}/#cluster/{told.story}"
    return found


def as_lines(told: Sequence[Notification], page: str | None) -> bytes:
    """A line of JSON for each, for a file; without the clock, so that the same run has the same lines."""
    events = [{"event": "", **event_of(one, page)} for one in told]
    for event in events:
        del event["at"]
    return msgspec.json.Encoder().encode_lines(events)


def _json(name: str, events: Sequence[Event], now: float) -> Any:
    return {"alert": name, "events": events}


def _slack(name: str, events: Sequence[Event], now: float) -> Any:
    """A message of text, as Slack, Mattermost and others take it at an incoming webhook."""
    lines = [f"*{escape(name, quote=False)}*"]
    for event in events[:SHOWN]:
        text = escape(event["sentence"], quote=False)
        lines.append(f"{text} (<{event['link']}|page>)" if "link" in event else text)
        some = event.get("records", ())[:LISTED]
        for record in some:
            kept = ", ".join(f"{name} {value}" for name, value in record.get("keep", {}).items())
            known = [f"record {record.get('id', record['seq'])}", record.get("text"), kept]
            lines.append(f"• {escape(': '.join(filter(None, known)), quote=False)}")
        if some and event["size"] > len(some):
            lines.append(f"• and {event['size'] - len(some):,} more")
    if len(events) > SHOWN:
        lines.append(f"and {len(events) - SHOWN} more")
    return {"text": "\n".join(lines)}


def _alertmanager(name: str, events: Sequence[Event], now: float) -> Any:
    """Alerts for ``/api/v2/alerts``. Labels hold no title: two of one story are one alert."""
    alerts = []
    for event in events:
        labels = {"alertname": name, "event": event["event"], "source": "streamdp"}
        labels |= {key: str(event[key]) for key in ("story", "level") if key in event}
        notes = {"summary": event["sentence"], "key": event["key"]}
        alert: Event = {"labels": labels, "annotations": notes}
        alert |= {"startsAt": _iso(min(event["at"], now)), "endsAt": _iso(now + HOLDS)}
        if "link" in event:
            alert["generatorURL"] = notes["page"] = event["link"]
        alerts.append(alert)
    return alerts


_FORMS: dict[Form, Callable[[str, Sequence[Event], float], Any]] = {
    "json": _json,
    "slack": _slack,
    "alertmanager": _alertmanager,
}


def body_of(form: Form, name: str, told: Sequence[Notification], page: str | None, now: float) -> bytes:
    """The body of a message in a form."""
    return msgspec.json.encode(_FORMS[form](name, [event_of(one, page) for one in told], now))


API = "/api/v2/alerts"
"""Where an Alertmanager takes alerts."""


def path_of(form: Form, path: str) -> str:
    """The path that a message is sent to: of an Alertmanager its API, behind what was given."""
    if form == "alertmanager" and not path.endswith(API):
        return path.rstrip("/") + API
    return path or "/"


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
