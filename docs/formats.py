"""The tables of ``docs/formats.md``, from the types of what is written and answered.

``python docs/formats.py`` writes them anew: what stands between ``<!-- NAME -->`` and ``<!-- end -->`` is
made by this program, where NAME is one of ``TABLES``. The rest of the page is written by hand.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from streamdp.alerts.outbox import Done, MovedRecord, Notification
from streamdp.errors import Exit
from streamdp.lines.holes import Hole
from streamdp.questions.answers import Candidate
from streamdp.questions.questions import KINDS, Kind
from streamdp.records import Assignment, ClusterSummary, Event
from streamdp.reports.diff import Change
from streamdp.reports.marks import Mark
from streamdp.state.corrections import CorrectionEntry
from streamdp.story.story import StoryEvent, StoryRecord, Theme

PARTS = (StoryRecord, Hole, StoryEvent, Mark, Theme, Change, Candidate, CorrectionEntry)
"""What answers have lists of."""

PAGE = Path(__file__).with_name("formats.md")
NAMES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    Any: "any",
}
"""What types are called in JSON."""

ABSENT = (type(None), msgspec.UnsetType)
"""A value that is null, and a field that is left out."""


def json_type(kind: Any) -> str:
    """A type, as it is in JSON: ``integer?`` may be null, ``string[]`` is a list."""
    if kind in NAMES:
        return NAMES[kind]
    made, parts = typing.get_origin(kind), typing.get_args(kind)
    if made is typing.Annotated:
        return json_type(parts[0])
    if made is typing.Literal:
        return "/".join(str(part) for part in parts)
    if made in (typing.Union, types.UnionType):
        some = " or ".join(json_type(part) for part in parts if part not in ABSENT)
        return some + "?" * (type(None) in parts) + ", or left out" * (msgspec.UnsetType in parts)
    if made is tuple and parts[-1] is not Ellipsis:
        return f"({', '.join(map(json_type, parts))})"
    if made in (list, tuple):
        each = json_type(parts[0])
        return f"({each})[]" if " or " in each else f"{each}[]"
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    return "object"


def fields(struct: Any) -> dict[str, str]:
    """The fields of a struct, each with its type in JSON."""
    hints = typing.get_type_hints(struct, include_extras=True)
    return {each.encode_name: json_type(hints[each.name]) for each in msgspec.structs.fields(struct)}


def said(kind: type) -> dict[str, str]:
    """What stands below each name in the body of a class."""
    (body,) = (
        node for node in ast.walk(ast.parse(inspect.getsource(kind))) if isinstance(node, ast.ClassDef)
    )
    found = {}
    for one, following in zip(body.body, body.body[1:], strict=False):
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            (name,) = [node.id for node in ast.walk(one) if isinstance(node, ast.Name)][:1] or [""]
            found[name] = markdown(following.value.value)
    return found


def markdown(text: str) -> str:
    """A docstring as Markdown, without examples, in one line."""
    text = text.split("Examples\n")[0].split("Parameters\n")[0]
    text = re.sub(r":\w+:`~?([^`]+)`", lambda role: f"`{role[1].rpartition('.')[2]}`", inspect.cleandoc(text))
    text = text.replace("``", "`").replace("None", "null").replace("<", "&lt;")
    return " ".join(text.split())


def described(struct: Any) -> Iterator[str]:
    """A table of fields with what each means."""
    told = said(struct)
    yield "| field | type | |"
    yield "| --- | --- | --- |"
    for name, kind in fields(struct).items():
        yield f"| `{name}` | {kind} | {told[name]} |"


def brief(struct: Any) -> Iterator[str]:
    """A type of answers: its docstring, and its fields in a line."""
    yield f"### {struct.__name__}"
    yield ""
    yield markdown(struct.__doc__)
    yield ""
    yield ", ".join(f"`{name}` {kind}" for name, kind in fields(struct).items()) + "."
    yield ""


def outbox() -> Iterator[str]:
    """Lines of the outbox: what is to be told, then what is done."""
    yield from described(Notification)
    yield ""
    for struct in (MovedRecord, Done):
        yield from brief(struct)


def asked() -> Iterator[str]:
    """The questions, with what each takes and answers."""
    yield "| question | path | takes | answers |"
    yield "| --- | --- | --- | --- |"
    for kind in KINDS:
        takes = ", ".join(_taken(kind))
        path = f"{'POST' if kind.posted else 'GET'} {kind.path}"
        yield f"| `{kind.name}` | `{path}` | {takes} | {json_type(kind.answer)} |"


def _taken(kind: Kind) -> Iterator[str]:
    for name, what in fields(kind.takes).items():
        yield f"`{name}` {what}"


def answers() -> Iterator[str]:
    """Every type of an answer, and what it consists of."""
    for struct in dict.fromkeys([*(kind.answer for kind in KINDS), *PARTS]):
        yield from brief(struct)


def codes() -> Iterator[str]:
    """Exit codes."""
    told = said(Exit)
    yield "| code | name | |"
    yield "| --- | --- | --- |"
    yield "| 0 | | Done; with `--state` also after a signal, since the state continues from there. |"
    yield "| 1 | | Of `gate`: something is new, has surged or is gone. Else a defect, with a traceback. |"
    for code in Exit:
        yield f"| {code.value} | `{code.name}` | {told[code.name]} |"
    yield "| 130, 143 | | Ctrl-C or SIGTERM without `--state`, after a clean end. |"


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "Assignment": lambda: described(Assignment),
    "Event": lambda: described(Event),
    "Notification": outbox,
    "ClusterSummary": lambda: described(ClusterSummary),
    "questions": asked,
    "answers": answers,
    "Exit": codes,
}


def made(page: str) -> str:
    """The page with its tables written anew."""

    def table(found: re.Match[str]) -> str:
        rows = "\n".join(TABLES[found[1]]()).strip()
        return f"<!-- {found[1]} -->\n\n{rows}\n\n<!-- end -->"

    return re.sub(r"<!-- (\w+) -->\n.*?<!-- end -->", table, page, flags=re.DOTALL)


if __name__ == "__main__":
    PAGE.write_text(made(PAGE.read_text("utf-8")), "utf-8")
