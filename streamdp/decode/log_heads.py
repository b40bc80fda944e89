"""What stands before the message of a log's lines, as one regular expression for a log.

Behind the time no part of it can fail, and no part can match in two ways: it takes time in proportion to what
it reads, whatever a line holds.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from streamdp.decode.log_times import PARTS, Written
from streamdp.decode.log_traces import BEGINS

LEVEL = r"TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|SEVERE|CRIT(?:ICAL)?|ALERT|EMERG|FATAL|VERBOSE|PANIC"
_BRACKETS = r"\[(?!client\b)[^\[\]]*+(?:\[[^\]]*+\][^\[\]]*+)*+\]"
_ONE_WORD = r"\[(?:[^\sa-z\[\]]|\[[^\sa-z\]]*+\])*+\]\s"
_HEAD = rf"""(?x:[\])>]?[\s,|-]*+
    (?:(?:[^\sa-z]++\s++|(?!{_ONE_WORD}){_BRACKETS}\s++){{0,8}}?
       [\[<]?(?P<level>{LEVEL}|(?i:info|error|warn(?:ing)?|notice|debug)(?=[\]\s])|[VDIWEF](?=[ /]))[\]>]?
       (?=[\s:,|-])[\s:,|-]*+)?
    (?:(?P<logger>[A-Za-z_][\w$-]*+(?:\.[\w$-]++)++)\s++(?=\[))?
    (?:{_BRACKETS}(?P<dash>\s++-\s++)?[\s:]*+)?
    (?(dash)|(?:(?P<component>[A-Za-z_][\w.$/@*\#-]*+)(?:\(\s*+\d++\))?:\s++)?))"""
"""What may be between the time and the message: numbers, a level, a thread in brackets, a component."""

_SYSLOG = r"\s+\S+\s+(?P<program>[^\s\[:]++(?:\s\S+?)??)(?:\[\d+\])?:\s+"
_HOST = rf"\s+(?!(?:{LEVEL})\b)[\w.-]+\s+(?P<service>[\w./-]+)(?:\[\d+\])?:\s+"
_DASHED = rf"\]?\s+(?!(?:{LEVEL})\b)(?P<name>(?=[\w.$/-]*[A-Za-z])[\w.$/-]++)(?: \*?\d+)?\s+-\s+"
_PIPES = r"\|(?P<step>[^|\s]+)\|(?:[^|\s]*\|)?"
_GLOG = r"\s+\d+\s+(?P<file>[\w./-]+):\d+\]\s+"
_CRI = r"\s(?:stdout|stderr)\s[FP]\s"
NEVER = "(?!)"

NUMBER = re.compile(r"\s+\d+(?=\s+\S)", re.ASCII)
"""A column of numbers behind the time."""

COLUMNS = (re.compile(_HOST, re.ASCII), re.compile(_DASHED, re.ASCII))
"""What nearly all lines of a log may have behind the time: host and program, or a logger before a dash."""

_COMPONENTS = ("file", "program", "service", "name", "step", "component", "logger")
LEVELS = ("level", "l")


class HeadForm(NamedTuple):
    """What the lines of a log have before their messages.

    ``columns`` is one of ``COLUMNS``, ``numbers`` how many numbers there may be behind the time.
    """

    time: Written
    second: Written | None = None
    columns: re.Pattern[str] | None = None
    numbers: int = 0


class HeadReader(NamedTuple):
    """The expression of a form, and what its groups are for.

    ``odd`` is the last to match where the message is empty, or begins as a line of a stack trace may. It
    matches nothing that can be seen, and so stands for the ``times`` that the form has not.
    """

    pattern: re.Pattern[str]
    times: tuple[int, ...]
    levels: tuple[int, ...]
    components: tuple[int, ...]
    odd: int

    @property
    def parts(self) -> tuple[int, ...]:
        """Groups of the level and the component."""
        return self.levels + self.components

    def level_and_component(self, parts: tuple[str | None, ...]) -> tuple[str | None, str | None]:
        """Those that ``parts`` have matched: of each the first."""
        levels, components = parts[: len(self.levels)], parts[len(self.levels) :]
        return next(filter(None, levels), None), next(filter(None, components), None)


def head_reader(form: HeadForm | None) -> HeadReader:
    """How heads of a form are read; None: lines have none."""
    head = "" if form is None else _head(form)
    pattern = re.compile(rf"{head}(?:(?=(?u:{BEGINS.pattern})|\Z)(?P<odd>))?", re.ASCII)
    groups = pattern.groupindex
    times = tuple(groups.get(name, groups["odd"]) for name in PARTS)
    levels, components = (
        tuple(groups[name] for name in names if name in groups) for names in (LEVELS, _COMPONENTS)
    )
    return HeadReader(pattern, times, levels, components, groups["odd"])


def _head(form: HeadForm) -> str:
    time, second = form.time, form.second
    columns = NEVER if form.columns is None else form.columns.pattern
    hosts = _SYSLOG if time.syslog else columns
    again = ""
    if second is not None:
        nameless = re.sub(r"\?P<\w+>", "?:", second.pattern.pattern)
        again = rf"(?P<again>(?u:\s*+){nameless})?"
        if second.syslog != time.syslog:
            hosts = f"(?(again){_SYSLOG if second.syslog else columns}|{hosts})"
    glog = _GLOG if "l" in time.pattern.groupindex else NEVER
    numbers = f"(?:{NUMBER.pattern}){{0,{form.numbers}}}"
    return f"{time.pattern.pattern}{again}(?:{_CRI}|{glog}|{hosts}|{_PIPES}|{numbers}{_HEAD})"
