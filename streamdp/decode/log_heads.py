"""What stands before the message of a log's lines: one table of forms, and one regular expression for a log.

Behind the time no part of it can fail, and no part can match in two ways: it takes time in proportion to what
it reads, whatever a line holds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from streamdp.decode.log_times import LEVEL, LOW, PARTS, Written
from streamdp.decode.log_traces import BEGINS

_BRACKETS = r"\[(?!client\b)[^\[\]]*+(?:\[[^\]]*+\][^\[\]]*+)*+\]"
_ONE_WORD = r"\[(?:[^\sa-z\[\]]|\[[^\sa-z\]]*+\])*+\]\s"
_NAME = r"[A-Za-z_][\w.$/@*#-]*+(?:::[\w.$/@*#-]++)*+"
_HEAD = rf"""(?x:[\])>]?[\s:,|-]*+
    (?:(?!(?:SERVICE|HOST)\s)(?:[^\sa-z]++\s++|(?!{_ONE_WORD}){_BRACKETS}\s++){{0,8}}?
       [\[<]?(?P<level>{LEVEL}|(?i:info|error|warn(?:ing)?|notice|debug)(?=[\]\s])|(?:{LOW})(?=:)
       |[VDIWEF](?=[ /]))[\]>]?(?=[\s:,|-])[\s:,|-]*+)?
    (?P<named>(?P<component>[A-Za-z_][\w$-]*+(?:\.[\w$-]++)++)\s++(?=\[))?
    (?:\[(?P<component>[A-Za-z_][\w.:-]*+)\]:\s++(?P<own>)|{_BRACKETS}(?P<dash>\s++-\s++)?[\s:]*+)?
    (?(named)|(?(own)|(?(dash)|(?:(?![\w.$]*+(?:(?<=Error)|(?<=Exception)|(?<=Throwable)):)
        (?P<component>{_NAME.replace("#", chr(92) + "#")})(?:\(\s*+\d++\))?:\s++)?))))"""
"""What may be between the time and the message: numbers, a level, a thread in brackets, a component."""

_THREAD = r"\[[^\[\]]*+\]\s*+"
_SYSLOG = (
    r"\s+\S+\s+(?P<component>[^\s\[:]++(?:\s\S+?)??)(?:\[\d+\])?"
    r"(?:\s<(?P<level>[A-Z][a-z]+)>)?:\s+(?:\[\s*\d+\.\d+\]\s+)?"
)
_CODE = r"go|py|rs|[jt]sx?|cc?|cpp|h|rb|java|kt|cs|php"

_PACKAGED = r"\w[\w$]*+(?:\.[\w$]++)++"

FORMS: tuple[str, ...] = (
    rf"\|\s*(?P<level>{LEVEL})\s*\|\s*(?P<component>[^|\s]++)\s*\|\s*",  # NLog
    r"\|(?P<level>[A-Z]+)\|[^|]*+\|(?P<component>[^|]*+)\|[^|]*;\|",  # GlassFish
    r"\|(?P<component>[^|\s]+)\|(?:[^|\s]*\|)?",
    rf"\s+(?P<level>{LEVEL})\s+\d+\s+---\s+(?:{_THREAD}){{1,3}}(?P<component>\S+)\s+:\s+",  # Spring Boot
    rf"\s+\|\s+(?P<level>{LEVEL})\s*\|\s+(?P<component>[^\s:|]++)(?::[^\s:]+)*+\s+-\s+",  # loguru
    rf"(?:\s+-\s+\d+)?\s+-\s+(?P<component>[^\s-]\S*)\s+-\s+(?P<level>{LEVEL})\s+-\s+",  # Python
    rf"\s+{_THREAD}(?P<level>{LEVEL})\s+(?P<component>\S+)\s+(?:\([^()]*+\)\s+)?-\s+",  # logback, log4j
    rf"\s+(?P<level>{LEVEL})\s+{_THREAD}(?P<component>[\w.$]+)\s+(?:\([^()]*+\)\s+)?-\s+",
    rf"\s+(?P<level>{LEVEL})\s+(?P<component>{_PACKAGED}|\w[\w$]*+(?=:\d))(?::\d+)?\s+(?:\([^()]*+\)\s+)?-\s+",
    rf"\s+(?P<level>{LEVEL})\s+\[(?P<component>[\w.$-]+)\]\s+\([^()]*+\)\s+",  # WildFly, Quarkus
    rf"\s+(?P<level>{LEVEL})\s+\([^()]*+\)\s+\[(?P<component>[\w.$-]+)\]\s+",  # Home Assistant
    rf"\s+(?P<level>{LEVEL})\s+\([^()]*+\)\s+\[[^\]]*+\]\s+(?P<component>{_PACKAGED})\s+",  # Solr
    rf"\s+(?P<component>{_PACKAGED})\s+\[\d+\]:\s+(?P<level>{LEVEL})\s+",  # Fail2ban
    rf"(?:\s+[a-z_]+=\S+)++\s+(?:\||\[?(?P<level>{LEVEL}|[a-z]+(?=\]))\]?:?)\s+",  # Sidekiq, Ansible, Elixir
    rf"\]?\s+\[(?P<component>[^\]/]++)/(?P<level>{LEVEL})\](?:\s+\[[^\]]*+\])?:\s+",  # Minecraft
    rf"\]\s+(?P<level>{LEVEL})\[\d+\](?:\[[^\]]*+\])?:?\s+"  # Asterisk
    r"(?P<component>[\w./-]+\.c)(?::\d+)?:?\s+",
    r"\s+(?P<level>[a-z]+)\s+(?P<component>[\w-]+)\[\w+\]\s+\[Originator@[^\]]*+\]\s+",  # ESXi
    r">\s+<(?P<level>[A-Z][a-z]+)>\s+<(?P<component>[^<>]*+)>\s+.*?<BEA-\d+>\s+<",  # WebLogic
    r"\s+(?P<component>spid\d+s?|Server|Logon|Backup)\s{3,}",  # SQL Server
    r"\s*(?P<level>trce|dbug|info|warn|fail|crit): (?P<component>[A-Z][\w.`]+)\[\d+\](?:\s+|\Z)",  # .NET
    rf"\s+(?P<component>{_PACKAGED})\s+\S+\s+(?P<level>{LEVEL}):\s+",  # java.util.logging
    rf"\s+(?P<level>{LEVEL})\s+{_THREAD}(?P<component>(?:[a-z]\w*+\.){{2,9}}+[\w$.]++)\s+",  # Tomcat
    r"\s*+\[\d+(?:-\d+)?\]:?\s+(?:\S+\s+){0,2}?"  # PostgreSQL
    r"(?P<level>LOG|DETAIL|HINT|STATEMENT|CONTEXT|QUERY|LOCATION|ERROR|FATAL|PANIC|WARNING|NOTICE|INFO|DEBUG\d?):\s+",
    r"\s+\[(?P<level>[a-z]+)\]\s+\d+#\d+:\s+(?:\*\d+\s+)?",  # nginx
    r"\]\s+\[(?P<component>[\w-]*+):(?P<level>[a-z]+\d?)\]\s+\[pid[^\]]*+\]\s+",  # Apache 2.4
    rf"\]?\s*\[(?P<level>{LEVEL})\s*\]\s*\[(?P<component>[^\]\s]+)\s*\](?:\[[^\]]*+\])*+\s+"  # Elasticsearch
    r"(?:\[[\w.-]+\]\s*)?",
    r"\s+\[(?P<level>[a-z]+)\]\s+<\d+\.\d+\.\d+>(?:@(?P<component>\w+):\S+)?\s+",  # RabbitMQ, lager
    r"\]?(?:\s+\[[\w. ]*+\])?\s+\[(?P<level>[A-Z]+)\](?:\s+\[[\w-]*+\])?"
    r"\s+\[(?P<component>[\w.]*+)\]\s+\[tid:.*?\[\[",
    r"\]?\s+[0-9a-f]{8}\s+(?P<component>\S+)\s+(?P<level>[A-Z])\s+",  # WebSphere
    r"\s+(?P<level>[a-z])\s+(?P<component>\S+)\s+\w+\.\w+\(\d+\)\s+:\s+",  # SAP HANA
    r"\s+[0-9a-f]{12}\s+-?\d+\s+",  # Ceph
    r"\s+\d+\s+\d+\s+(?P<level>[VDIWEF])\s+(?P<component>[^\s:]++)\s*+:\s+",  # Android
    r"\s*(?P<level>[VDIWEF])/(?P<component>[^\s:(]++)\s*+\(\s*+\d+\):\s+",
    r"\s+(?P<component>[\w-]+)\[[0-9a-f]+\]\s+[a-z]{3}\s+\[(?P<level>[a-z]+)\]\s+",  # Fly.io
    r"\s+(?P<component>[\w/-]+)(?:\([^()]*+\))?(?:<[^<>]*+>)*+:"
    rf"\s+(?P<level>Debug|Info|Warning|Error|Fatal|Panic|{LOW}):\s+",  # Dovecot, BIND
    r"(?:\s+[\w.-]+\s*)?:\s+(?=%[A-Z][\w-]*?-(?P<level>[0-7])-)",  # Cisco
    r"(?:(?P<component>npm)|\d+)\s+"  # npm
    r"(?P<level>silly|verbose|info|timing|http|notice|warn|WARN|error|ERR!)\s+",
    r"\]\s+\[\s*(?P<level>info|warn|error|debug|trace)\]\s+\[(?P<component>[\w:.-]+)\]\s+",  # Fluent Bit
    r"\s+\[\s*\d+\s*\]\s+\{[^{}]*+\}\s+<(?P<level>[A-Z][a-z]+)>\s+"  # ClickHouse
    r"(?P<component>[^\s:]++):\s+",
    r"\s+(?P<level>[IWEFD]\d?)\s+(?P<component>[A-Z]{2,}|-)\s+\[[^\]]*+\]\s+",  # MongoDB before objects
    r"\s+0x[0-9a-f]+\s+(?P<level>[A-Z][a-z]+)\s+0x[0-9a-f]+\s+\d+\s+\d+\s+"  # Apple
    r"(?P<component>[^\s:]++):\s+",
    rf"\]?\s+(?P<component>[\w.-]+)\[\d+:\d+\]\s+(?P<level>{LOW}):\s+",  # Unbound
    r"\s+(?:(?P<level>Df|Db|[IEF])\s+)?(?P<component>[\w.-]+)\[\d+:[0-9a-f]+\]\s+",  # Apple, compact
    rf"\t[0-9a-f-]{{36}}\t(?:(?P<level>{LEVEL})\t)?",  # AWS Lambda
    r"\]\[\d+\]\[(?P<level>[a-z]+)\]\[(?P<component>[\w-]+)\]\s+(?:\[\S+\]\s+)?",  # Envoy
    rf"\s+#\d+\]\s+(?P<level>{LEVEL})\s+--\s+(?P<component>[^\s:]*+):\s+(?:\[[0-9a-f-]{{15,}}\]\s+)?",  # Ruby
    rf"\s+(?P<level>{LEVEL})\s+(?P<component>[\w:]+)\]\s+",  # Rust's env_logger
    rf"\s+(?P<level>{LEVEL})\s+(?=[^\s{{]*+\{{)(?:[\w.-]+(?:\{{(?:[^{{}}]|\{{[^{{}}]*+\}})*+\}})?:)++\s+"
    r"(?P<component>\w+(?:::\w+)*+):\s+",  # Rust's tracing, with spans
    rf"\]?\s+(?P<level>{LEVEL})\s+\((?:(?P<component>[\w.-]+)/)?\d+\):\s+",  # pino-pretty
    rf"\]?\s+(?P<component>[\w-]+)\.(?P<level>{LEVEL}):\s+",  # Monolog
    rf"\]?\s+\{{(?P<component>[^{{}}:]+):\d+\}}\s+(?P<level>{LEVEL})\s+-\s+",  # Airflow
    rf":\s+(?P<level>{LEVEL})/(?P<component>[\w-]+)\]\s+",  # Celery
    rf"\s+\[(?P<component>{_PACKAGED})\]\s+(?P<level>{LEVEL}):\s+",  # Scrapy
    r"\t(?P<level>[A-Za-z]+)\t(?:[^\t]+\t(?=(?:\w+\.){2,}\w+\t))?(?:\[?(?P<component>[\w.-]+)\]?\t)?"
    r"(?:[\w./@-]+\.go:\d+\t)?",  # zap on a terminal
    r"\s+\d+\s+\[(?P<level>Note|Warning|Error|ERROR|System)\]\s+"  # MySQL
    r"(?:\[MY-\d+\]\s+\[(?P<component>\w+)\]\s+)?",
    rf":?(?:\s+\[?(?P<level>{LEVEL}|[VDIWEF])\]?)?\s+"  # a file and a line: Go, Cassandra, Ray
    rf"\[?(?P<component>[\w./-]+\.(?:{_CODE})):\d+(?:[\]:]|\s+--?)?\s+",
    r"\]?\s+PHP (?:\w+ )??(?i:(?P<level>fatal|error|warning|notice|deprecated|standards))(?: error)?:\s+",
    r"\s+(?P<component>[\w-]+\[[a-z][\w.]*\]):\s+",  # Heroku
    r"\s*+##\[(?P<level>error|warning|notice|debug)\]",  # GitHub's actions
    rf"(?P<level>{LEVEL}):(?:(?P<component>[\w.]+):|\s+)",  # Python without a format, uvicorn
    rf"(?P<level>{LEVEL})\[\d+\]\s+",  # logrus on a terminal
    rf"(?P<level>{LOW}):\s+",  # winston
    rf"\s+\d+\s+(?P<level>{LEVEL})\s+\S+\s+(?P<component>{_PACKAGED}):\s+",  # Odoo
    r",\s+\d+(?:,[^\]]*+)?\]\s+\S+\.c:\d+\((?P<component>\w+)\)(?:\s+|\Z)",  # Samba
    r"\]?\s+(?P<level>information|notice|warning|critical|debug)/(?P<component>\w+):\s+",  # Icinga
    rf"\s+\|\s+(?P<level>{LEVEL})\s*\|[^|]++\|\s+(?P<component>[\w.]+)\s*\|\s+\d+ - [^|]++\|\s+",  # Karaf
    r",\s+(?P<level>Info|Error|Warning|Perf)\s{2,}(?P<component>\w+)\s{2,}",  # Windows' servicing
    rf":(?P<level>{LEVEL}):(?P<component>[^()\]]++)\(\d+\)\]\s+",  # Chromium
)
"""How heads look behind the time, the first that fits a line before others. Each needs a sign of its own, so
it can be tried on any line."""

COLUMNS = tuple(
    re.compile(form, re.ASCII)
    for form in (
        rf"\s+(?!(?:{LEVEL})\b)[\w.-]+\s+(?P<component>[\w./-]+(?:\s[\w./-]+(?=\[\d))?)(?:\[\d+\])?:\s+",
        rf"\]?\s+(?:{_THREAD})?(?!(?:{LEVEL})\b)"
        r"(?P<component>(?=[\w.$/-]*[A-Za-z])[\w.$/-]++)(?: \*?\d+)?\s+-\s+",
        rf"[\s-]+(?:{_THREAD})?(?P<level>{LEVEL})[\s-]+(?!(?:{LEVEL})\b)"
        rf"#?(?P<component>[A-Za-z_][\w.$]*+)\s+(?:{_THREAD})?-\s+",
    )
)
"""What may be no head, unless nearly all lines of a log have it: host and program, a logger before a dash."""

OF_TIMES = {
    "l": r"\s+\d+\s+(?P<component>[\w./@-]+):\d+"
    r"(?:\]|\s+\u22ee(?:\s+\[[^\]]*+\])?(?:\s+\d+)?|\s+\[[^\]]*+\])\s+",
    "version": r"\s+\S+\s+(?:-|(?P<component>\S+))\s+\S+\s+\S+\s+"
    r'(?:(?:-|(?:\[[^"\]]*+(?:"(?:[^"\\]|\\.)*+"[^"\]]*+)*+\])++)(?:\s|\Z))?\ufeff?',
    "role": r"\s+(?P<level>[.*#-])\s+",
}
"""Heads by a group of their times that is there: glog and CockroachDB, syslog of RFC 5424, Redis."""

PAIRED = "time|ts|t|level|lvl|msg|at|method"
"""With what lines of logfmt begin, or have soon."""

EVENT = r"(?:\S+ )?CEF:\d+\|"
"""With what events of ArcSight's common format (CEF) begin, behind a host or not."""

NEVER = "(?!)"

CLOSED = {"<": ">", "[[": "]]", ";|": "|#]"}
"""How messages end before which a head opens something."""

_OPENED = "|".join(f"(?<={re.escape(sign)})" for sign in CLOSED)

NUMBER = re.compile(r"\s+\d+(?=\s+\S)", re.ASCII)
"""A column of numbers behind the time."""

_NAMES = {
    "T": "TRACE", "V": "VERBOSE", "D": "DEBUG", "I": "INFO", "W": "WARN", "E": "ERROR", "F": "FATAL",
    ".": "DEBUG", "-": "VERBOSE", "*": "NOTICE", "#": "WARNING", "0": "EMERG", "1": "ALERT", "2": "CRIT",
    "3": "ERROR", "4": "WARNING", "5": "NOTICE", "6": "INFO", "7": "DEBUG", "D1": "DEBUG", "D2": "DEBUG",
    "D3": "DEBUG", "D4": "DEBUG", "D5": "DEBUG", "10": "TRACE", "20": "DEBUG", "30": "INFO", "40": "WARN",
    "50": "ERROR", "60": "FATAL", "VRB": "VERBOSE", "DBG": "DEBUG", "INF": "INFO", "WRN": "WARN",
    "ERR": "ERROR", "FTL": "FATAL", "Df": "INFO", "Db": "DEBUG", "trce": "TRACE", "dbug": "DEBUG",
    "fail": "ERROR", "ERR!": "ERROR", "A": "INFO", "O": "INFO", "i": "INFO", "w": "WARN", "e": "ERROR",
    "f": "FATAL", "d": "DEBUG",
}  # fmt: skip


def level_name(written: str) -> str:
    """The name of a level that is written by a letter, a sign or a number; another one as it is."""
    return _NAMES.get(written, written)


class HeadForm(NamedTuple):
    """What the lines of a log have before their messages.

    ``columns`` is one of ``COLUMNS``, ``numbers`` how many numbers there may be behind the time, ``forms``
    those of ``FORMS`` that are tried.
    """

    time: Written
    second: Written | None = None
    columns: re.Pattern[str] | None = None
    numbers: int = 0
    forms: tuple[str, ...] = FORMS


class HeadReader(NamedTuple):
    """The expression of a form, and what its groups are for.

    ``odd`` is the last to match where the message is empty or in brackets, or begins as a line of a stack
    trace, an object or pairs may. It matches nothing that can be seen, and so stands for the ``times`` that
    the form has not.
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
        level, component = (next(filter(None, each), None) for each in (levels, components))
        if level is not None:
            level = level_name(str(int(level) % 8) if level.isdigit() else level)
        return level, component


def head_reader(form: HeadForm | None) -> HeadReader:
    """How heads of a form are read; None: lines have none."""
    head = "" if form is None else _head(form)
    pattern = re.compile(
        rf"{head}(?:(?=(?u:{BEGINS.pattern}|\{{|{EVENT}|(?:{PAIRED})=)|\Z|{_OPENED})(?P<odd>))?", re.ASCII
    )
    groups = pattern.groupindex
    times = tuple(groups.get(name, groups["odd"]) for name in PARTS)
    levels, components = (
        tuple(number for name, number in groups.items() if re.fullmatch(named, name))
        for named in (r"level\d+|l|pri|early", r"component\d+")
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
    numbers = f"(?:{NUMBER.pattern}){{0,{form.numbers}}}"
    of_time = [
        f"(?({name}){own}|{NEVER})" for name, own in OF_TIMES.items() if name in time.pattern.groupindex
    ]
    forms = "|".join([*of_time, *form.forms, hosts, f"{numbers}{_HEAD}"])
    return f"{time.pattern.pattern}{again}(?:{_numbered(forms)})"


def forms_of(rest: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """The forms that some lines have from a place on."""
    tried = [(form, re.compile(form, re.ASCII).match) for form in FORMS]
    return tuple(form for form, match in tried if any(match(*each) for each in rest))


def _numbered(forms: str) -> str:
    """The forms with a group of its own for each level and component."""
    parts = re.split(r"(?<=\(\?P<level)(?=>)|(?<=\(\?P<component)(?=>)", forms)
    return "".join(f"{part}{n}" for n, part in enumerate(parts[:-1])) + parts[-1]
