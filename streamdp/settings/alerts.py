"""Who is told of what happens to stories: ``[[alert]]`` tables of the settings file, and ``--alert URL``.

An address may be a secret, as that of a chat is, and a token always is one: no message here repeats a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from streamdp.errors import ConfigError
from streamdp.settings.options import nearest, option

TABLES = "alert"
"""The name of the tables in a settings file."""

MOST = 20
"""Alerts of a run."""

What = Literal[
    "born", "split", "merged", "vanished", "closed", "retired", "titled", "renamed", "surged", "silent",
    "revised",
]  # fmt: skip
"""What an alert may tell of: events of stories, and answers that have changed."""

Form = Literal["json", "slack", "alertmanager"]

_Text = Annotated[str, Meta(min_length=1, max_length=500)]
_Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9_-]{1,40}$")]


class Alert(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One receiver, and what it is told.

    Parameters
    ----------
    name
        What the outbox, metrics and messages call it.
    url, url_file, url_env
        Its address: as it is, or the name of a file or of an environment variable that holds it. That of a
        file of lines is ``file:PATH``.
    format
        ``json``; ``slack``, which other chats take too; or ``alertmanager``, whose API has version 2.
    on
        Which events.
    words
        Only of stories whose title, template or telling words have one of these.
    template
        Only of templates in which this regular expression is found.
    level
        Only of log lines of these levels.
    stories
        Only of the stories of these labels.
    least
        Of changed answers, only where one change has moved so many records.
    every
        Seconds between two messages; what happens meanwhile goes with the next. A file does not wait.
    token_file, token_env
        The file or environment variable that holds a token.
    header
        The header that carries the token: ``Authorization`` as a bearer's, any other as it is.
    link
        Address of the page, for links to stories.

    Examples
    --------
    >>> Alert(name="desk", url="file:changes.jsonl", on=("revised",), least=5).on
    ('revised',)
    """

    name: _Name
    url: _Text | None = None
    url_file: _Text | None = None
    url_env: _Text | None = None
    format: Form = "json"
    on: tuple[What, ...] = ("born", "surged", "silent")
    words: tuple[_Text, ...] = ()
    template: _Text | None = None
    level: tuple[_Text, ...] = ()
    stories: tuple[Annotated[int, Meta(ge=0)], ...] = ()
    least: Annotated[int, Meta(ge=1)] = 1
    every: Annotated[float, Meta(ge=0, le=86_400)] = 1.0
    token_file: _Text | None = None
    token_env: _Text | None = None
    header: Annotated[str, Meta(pattern=r"^[A-Za-z0-9-]{1,60}$")] = "Authorization"
    link: _Text | None = None

    ONE_OF: ClassVar = (("url", "url_file", "url_env"), ("token_file", "token_env"))


class Alerting(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told of what happens to stories, while a stream runs."""

    alert: Annotated[
        str | None,
        option("page")(
            "address that is sent new, surging and silent stories as JSON (a table in the file says more)",
            metavar="URL",
            when={
                "learns": "--alert is of a stream that learns: leave --frozen out",
                "kept": "--alert needs --state FOLDER: what was not delivered yet waits there",
            },
            common=True,
        ),
    ] = None
    watch_story: Annotated[
        tuple[Annotated[int, Meta(ge=0)], ...],
        option("page")(
            "label of a story: --alert tells of records that leave it or come into it, and of nothing else",
            metavar="N",
            repeated=True,
            allowed="a label, a whole number of at least 0, once for each story",
            when={"alert": "--watch-story needs --alert URL, or file:PATH: where corrections are sent"},
        ),
    ] = ()
    tables: tuple[Alert, ...] = ()
    """Those of the settings file. They are no option: they have no flag."""

    @property
    def all(self) -> tuple[Alert, ...]:
        """All alerts, that of the flag first."""
        if self.alert is None:
            return self.tables
        if any(each.name == "alert" for each in self.tables):
            raise ConfigError("an alert of the settings file is called alert, as that of --alert: rename it")
        watched: dict[str, Any] = (
            {"on": ("revised",), "stories": self.watch_story} if self.watch_story else {}
        )
        return (Alert(name="alert", url=checked_url(self.alert, "--alert"), **watched), *self.tables)


def alerts_of(tables: object, file: str) -> tuple[Alert, ...]:
    """The tables of a settings file. Raises ConfigError for one that makes no sense."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ConfigError(f"{file}: an alert begins with [[{TABLES}]], in double brackets")
    if len(tables) > MOST:
        raise ConfigError(f"{file}: has {len(tables)} alerts, and {MOST} are possible")
    found = [_alert(table, f"{file}, alert {number}") for number, table in enumerate(tables, 1)]
    names = [each.name for each in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ConfigError(f"{file}: two alerts are called {twice[0]}: names are unique")
    return tuple(found)


def _alert(table: Mapping[str, Any], place: str) -> Alert:
    for key in table:
        if key not in Alert.__struct_fields__:
            raise ConfigError(f"{place}: {_key(key)}: no such key{nearest(key, Alert.__struct_fields__)}")
    try:
        found = msgspec.convert(dict(table), Alert)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{place}: {_said(str(error))}") from None
    for names in Alert.ONE_OF:
        given = [name for name in names if getattr(found, name) is not None]
        if len(given) > 1 or (not given and "url" in names):
            raise ConfigError(f"{place}: say one of {', '.join(names)}")
    if found.url is not None:
        checked_url(found.url, f"{place}: url")
    if found.link is not None:
        checked_url(found.link, f"{place}: link")
    if found.format != "json" and file_of(found.url or "") is not None:
        raise ConfigError(f"{place}: format: a file has lines of json")
    if not found.on:
        raise ConfigError(f"{place}: on names no event")
    try:
        re.compile(found.template or "")
    except re.error as error:
        raise ConfigError(f"{place}: template is no regular expression: {error}") from None
    return found


def checked_url(url: str, place: str) -> str:
    """An address that can be sent to. ConfigError, which does not repeat it, for any other."""
    if file_of(url) is not None:
        return url.strip()
    try:
        parts = urlsplit(url.strip())
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    else:
        if sound and "@" in parts.netloc:
            raise ConfigError(f"{place}: an address holds no name and password: say token_file or token_env")
    if not sound or not url.strip().isascii() or any(c.isspace() for c in url.strip()):
        raise ConfigError(
            f"{place}: an address begins with http:// or https:// and names a host, or is file:PATH"
        )
    return url.strip()


def file_of(url: str) -> str | None:
    """The path of ``file:PATH``, or of ``file:///PATH``; None for any other address."""
    scheme, _, path = url.strip().partition(":")
    path = path[2:] if path.startswith("///") else path
    sound = scheme == "file" and path.isprintable() and not path.startswith("//")
    return path if sound and path.rpartition("/")[2] else None


def _said(message: str) -> str:
    """What is wrong, without the value that was given."""
    what, _, where = message.partition(" - at `$")
    key = where.strip("`.").split("[")[0]
    if what.startswith("Object missing"):
        return "name is missing: say what it is called"
    allowed: dict[str, Any] = {"on": get_args(What), "format": get_args(Form)}
    if what.startswith("Invalid enum") and key in allowed:
        what = f"must be of {', '.join(allowed[key])}"
    return f"{_key(key)}: {what[:1].lower()}{what[1:]}"


def _key(name: str) -> str:
    return name if name.isprintable() and len(name) <= 40 else repr(name[:40])
