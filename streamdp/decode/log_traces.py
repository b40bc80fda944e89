"""Stack traces among the lines of a log: each is one event, of its exception and of where that was raised.

``LANGUAGES`` says how traces of each language look.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from streamdp.lines.exceptions import ENDS
from streamdp.records import Raw

NEAR = 8
"""Messages of others that may stand among the lines of a trace."""

WRAPPED = 5
"""Lines over which the message of an exception may go on."""

_NEVER = "(?!)"
_KIND = r"(?:[^\W\d][\w$]*(?:\.|::))*[\w$]*(?:Error|Exception|Throwable)(?![\w$])(?!\.\w)"
_NAMED = re.compile(rf"(?<![\w.$:/#-])(?:{_KIND}|panic(?=:| serving | recovered))", re.ASCII)
_FIRST = re.compile(rf"{_KIND}|(?:[a-z_]\w*\.)+[A-Z][\w$]*(?=: |\s*$)", re.ASCII)
_LEAD = re.compile(
    r"(?:Exception in thread \"[^\"]*\" |Unhandled exception\. |Uncaught (?:\(in promise\) )?)?"
)
_NESTED = re.compile(r".*nested exception is:\s*$")


class Language(NamedTuple):
    """How the lines of a trace look.

    ``begins``, and where the exception is named behind its frames ``ends``, may have groups ``kind`` and
    ``said``; ``frame`` has ``name`` and ``path``, or the path is on the next line, by ``place``; ``more`` are
    other lines of a trace.
    """

    begins: re.Pattern[str]
    frame: re.Pattern[str]
    more: re.Pattern[str]
    place: re.Pattern[str]
    ends: re.Pattern[str]


def _language(begins: str, frame: str, more: str, place: str = _NEVER, ends: str = _NEVER) -> Language:
    return Language(*(re.compile(each, re.ASCII) for each in (begins, frame, more, place, ends)))


_AT = r"\s*(?:eval )?at (?:async |new )*"
_CAUSES = (
    r"\s*(?:Caused by|Suppressed|Wrapped by):|\s*(?:---> |--- End of |\(Coroutine boundary\)|\[CIRCULAR)"
    r"|\s*\.\.\. \d+ |\s+(?:eval )?at \S|.*nested exception is:$"
)
_RAISED = r"(?P<path>[^\s:]+):\d+:in [`'](?P<name>[^']*)'(?P<said>: .*) \((?P<kind>[A-Z][\w:]*)\)$"
_JAVA = _language(
    _NEVER,
    rf"{_AT}(?:[\w.@-]*/)*(?P<name>[\w$.<>-]+)"
    r"\((?:[\w$-]+\.\w+(?::\d+)?|Native Method|Unknown Source|<\w+>)\)",
    _CAUSES,
)
_NODE = _language(
    r"(?:file://)?/\S+\.[cm]?[jt]sx?:\d+$",
    rf"{_AT}(?:(?P<name>[\w$.<>#]+)(?: \[as [\w$.]+\])? \()?"
    r"(?P<path>(?:[\w-]+://|node:|/|[A-Za-z]:\\|\.{0,2}[\w-]+/)[^()]*?|<anonymous>|native)"
    r"(?::\d+){1,2}\)?(?: \{)?$"
    r"|\s+eval at .+\)$",
    rf"{_CAUSES}|\s|{_KIND}(?::|$)|Node\.js v\d|[}}\]]",
)
_NET = _language(
    _NEVER,
    rf"{_AT}(?P<name>[\w.`<>+|\[\],$]+) ?\([^()]*\)(?: \[0x\w+\])?(?: in (?P<path>.+?):(?:line )?\d+)?$",
    _CAUSES,
)
_BROWSER = _language(
    _NEVER,
    r"\s*(?P<name>[\w$.<>/*\[\]]*|\w+ code)@(?P<path>[a-z-]+:/\S+?(?::\d+){1,2}|\[native code\])$",
    _NEVER,
)
_PYTHON = _language(
    r"[\s|+-]*(?:Exception Group )?Traceback \(most recent call last\):$|\s+File \"[^\"]+\", line \d+$",
    r"[\s|]*File \"(?P<path>[^\"]+)\", line \d+(?:, in (?P<name>.+))?",
    r"[\s|+]|[~^]+$|During handling of the above|The above exception was|Traceback \(most"
    r"|\[Previous line repeated",
    ends=r"(?:\s*\| )?(?P<kind>[^\W\d]\w*(?:\.[^\W\d]\w*|\.<locals>)*)(?P<said>:.*|)$",
)
_RUBY = _language(
    _RAISED,
    r"\s*(?:\d+: )?(?:from )?(?P<path>(?:[\w-]+ \([\w.]+\) )?[^\s:]+|<internal:\S+):\d+"
    r":in [`'](?P<name>[^']*)'$",
    r"\s+\.\.\. ",
    ends=_RAISED,
)
_PHP = _language(
    r"(?:PHP )?Fatal error: +Uncaught (?:exception ')?(?P<kind>[\w\\]+)"
    r"(?P<said>.*?)(?: in (?P<path>\S+):\d+)?$"
    r"|(?:Uncaught )?exception '(?P<a_kind>[\w\\]+)'(?P<a_said>.*?)(?: in (?P<a_path>\S+):\d+)?$",
    r"#\d+ (?P<path>/[^()]*|[A-Z]:[^()]*|\[internal function\])(?:\(\d+\))?: (?P<name>[^(]+)\(",
    r"Stack trace:|\[(?:previous )?(?:exception|stacktrace)\]|#\d+ |Next [\w\\]+: |\s+thrown in |\"\}",
)
_GO = _language(
    r"[\d/:. ]*(?:http: )?(?P<kind>panic)(?: serving \S+)?(?P<said>: .+)"
    r"|(?P<a_kind>fatal error)(?P<a_said>: .+)|(?P<b_kind>goroutine) \d+ \[[^\]]*\]:$",
    r"(?:created by )?(?=\S*?\.)(?P<name>[^\s(]++(?:\([^\s()]*+\)[^\s(]++)?)(?:\(.*\))?"
    r"(?: in goroutine \d+)?$",
    r"panic\(|goroutine \d+ \[|exit status \d+|\[signal |\[originating |\.\.\.|\s",
    place=r"\s*(?P<path>\S+\.(?:go|s)):\d+",
)
_RUST = _language(
    r"thread '[^']*'(?: \(\d+\))? (?P<kind>panic)ked at (?:'(?P<said>.*)', )?(?P<path>\S+?)(?::\d+)*:?$",
    r"\s*\d+:\s+(?:0x\w+ - )?(?P<name>[<\w].*?)(?:::h[0-9a-f]{16})?$",
    r"(?i:stack backtrace|note|caused by):|\s",
    place=r"\s*at (?P<path>\S+?):\d+",
)
_DART = _language(
    r"(?:\[ERROR:.*\] )?Unhandled [eE]xception:(?P<said>.*)",
    r"#\d+\s+(?P<name>.+?) \((?P<path>(?:package|file|dart):[^()]+)\)$",
    r"<asynchronous suspension>|#\d+ ",
)
_SWIFT = _language(
    r"(?:\S+:\d+: )?(?P<kind>Fatal error)(?P<said>: .+)|\*\*\* Program (?P<a_kind>crashed)(?P<a_said>: .+)",
    r"\s*\d+\s+(?:\S+\s+)?0x[0-9a-f]+ (?P<name>.+?) \+ \d+(?: in \S+)?(?: at (?P<path>[^\s:]+)\S*)?$",
    r"Current stack trace:|(?:Thread|Crashed) .*:$|\*\*\*|\s",
)
_NATIVE = _language(
    r"(?:Program|Thread .*) received signal (?P<kind>\w+)(?P<said>.*)"
    r"|terminate called after throwing an instance of '(?P<a_kind>[^']+)'",
    r"#\d+\s+(?:0x[0-9a-f]+ in )?(?P<name>[\w:~<>$]+) ?\([^()]*\)(?: at (?P<path>\S+):\d+| from \S+)?$",
    r"\s+what\(\):|#\d+ |\[Switching to|Aborted|\d+\t",
)
_ELIXIR = _language(
    r"\*\* \((?P<kind>[\w.]+)\)(?P<said>.*)",
    r"\s+(?P<path>(?:\([\w.]+ [\w.-]+\) )?\S+\.(?:exs?|erl)):\d+: (?P<name>\S+)",
    r"(?:Last message|State|Function)\b.*:|\s",
)
_TOLD_APART = (_JAVA, _NODE, _NET, _BROWSER, _RUBY, _PHP, _DART, _NATIVE, _ELIXIR, _PYTHON)
"""Those whose frames are no messages, whatever is before them."""

LANGUAGES = (*_TOLD_APART, _GO, _RUST, _SWIFT)

_BY_FILE = (_PYTHON, _NODE, _BROWSER, _RUBY, _PHP)

BEGINS = re.compile(
    r"\s|at |Traceback|(?:http: )?panic|fatal error|goroutine |thread '|exception '|#\d|\*\*|\S+:\d+(?::|$)"
    r"|\[ERROR|(?:PHP|Fatal|Program|Thread|Unhandled|Uncaught|terminate) "
    r"|(?:[a-z_]\w*+\.)++[A-Z][\w$]*+(?::|\s*$)"
)
"""What a line may begin with that is of a trace, whatever came before it."""

_OTHERS = re.compile(
    r"(?:javax?|jdk|sun|com\.sun|kotlinx?|scala|groovy|jakarta|akka|reactor|System|Microsoft|com\.google"
    r"|com\.fasterxml|io\.netty|io\.grpc|org\.(?:apache|springframework|hibernate|eclipse|junit|jboss|postgresql"
    r"|slf4j|codehaus|mozilla|mortbay))\."
    r"|<?(?:std|core|alloc|tokio|backtrace)::|rust_|__|_?start\b|raise |abort "
    r"|_swift|Swift|(?P<go>[a-z][a-z0-9/]*)\.\S* \S*\bsrc/(?P=go)/"
    r"|.*(?:site-packages/|dist-packages/|/lib(?:64)?/python| <|node_modules/| node:| native$|/pkg/mod/"
    r"|/usr/(?:local/)?lib/|/gems/|/vendor/|/rustc/|/\.cargo/| dart:|package:flutter/|\[native|\[internal"
    r"| \(\d[\w.]*\) | \((?:elixir|stdlib|kernel|mix|ecto|phoenix|plug)\w* )",
    re.ASCII,
)
"""Names and paths, with a blank between, of frames of standard libraries and of installed packages."""


def names_exception(text: str) -> bool:
    """Whether a message may name an exception."""
    return "Error" in text or "Exception" in text or "Throwable" in text or "panic" in text


class Held(NamedTuple):
    """A message, its time and the fields that are kept, and the line that it is from.

    Without a head of its own, ``headed``, the fields are those of the line before.
    """

    message: str
    time: float | None = None
    kept: dict[str, Any] | None = None
    raw: Raw | None = None
    headed: bool = True


class _Open:
    """A trace that has begun; ``held`` are its lines, which are messages if it turns out to be none."""

    def __init__(self, held: Held, language: Language | None, head: tuple[str, str, str]) -> None:
        self.language, self.held = language, [held]
        self.before, self.kind, self.said = head
        self.own = self.first = self.call = ""
        """Frames: one's own, and any; a function whose path is on the next line, or the path of the next."""
        self.strong, self.sure, self.told = language is not None, False, False
        """Whether no message begins so; whether a second line is of it; whether it was told."""
        self.over = self.awaits = self.code = False
        """Whether the line that ends it came; whether the next line is of its message, or shows code."""
        self.wraps, self.away = WRAPPED, 0

    @property
    def ready(self) -> bool:
        """Whether all that is told of it is known."""
        return self.sure and (self.over or bool(self.own and self.kind and self.language is not _PYTHON))

    def text(self) -> str:
        """The line that names the exception, with a frame."""
        kind = re.sub("error$", "Error", self.kind.replace(" ", "-")) or "exception"
        kind = kind if kind.endswith(ENDS) else f"{kind}-Error"
        return f"{self.before}{kind}@{self.own or self.first or 'unknown'}{self.said.rstrip(' :')}"

    def follows(self, text: str, apart: bool, wraps: bool) -> bool:
        """Whether a line is of this trace.

        Where ``wraps``, a message may go on there; ``apart``: lines without a head stand among such with one.
        """
        code, self.code = self.code and _FIRST.match(text) is None, False
        if not text:
            return True
        if self.awaits:
            self._say(text)
            self.awaits, self.sure, self.wraps = False, True, WRAPPED
            return True
        if self.over and self.language is not None and self.language.begins.match(text) and "|" not in text:
            return False
        if not self.over and (self._frame(text) or (not code and self._ends(text))):
            self.sure, self.wraps = True, WRAPPED if self.over and apart else 0
        elif code or self._more(text):
            self.sure, self.awaits = True, _NESTED.match(text) is not None
            self.wraps = self.wraps if self.over else 0
        elif wraps and self.wraps and not (self.over and _beginning(text)):
            self.wraps -= 1
            if not self.told:
                self._say(text)
        else:
            return False
        return True

    def _languages(self) -> Iterator[Language]:
        if self.language is not None:
            yield self.language
        if not self.first:
            yield from _TOLD_APART

    def _frame(self, text: str) -> bool:
        for language in self._languages():
            place = language.place.match(text)
            found = place or language.frame.match(text)
            if found is None:
                continue
            self.language, parts = language, found.groupdict()
            name, path = parts.get("name") or "", parts.get("path") or ""
            if language.place.pattern != _NEVER:
                name, self.call = (self.call, "") if place else ("", name)
            elif language is _PHP:  # it is called there
                path, self.call = self.call, path
            if name or (path and not place):
                self.at(name, path)
            self.code = language is _PYTHON
            return True
        return False

    def at(self, name: str, path: str) -> None:
        """Note a frame: a function in a file."""
        short = "/".join(re.split(r"[/\\]", re.sub(r"[?#].*|(?::\d+)+$", "", path))[-2:])
        if self.language in _BY_FILE or not name:
            told = re.sub(r"[\s=:,;()\[\]\"']", "_", f"{short}#{name}" if name else short)
        else:
            told = re.sub(r"[()*]", "", name).replace(" ", "_")
        self.first = self.first or told
        if not _OTHERS.match(f"{name} {path}") and (not self.own or self.language is _PYTHON):
            self.own = told

    def _ends(self, text: str) -> bool:
        found = None
        if self.language is not None and (self.first or _FIRST.match(text)):
            found = self.language.ends.match(text)
        if found is None or self.kind:
            self.over = found is not None and self.language is _PYTHON
            return self.over
        self.over, self.kind, self.said = True, found["kind"], found["said"]
        if self.language is _RUBY:
            self.own = ""
            self.at(found["name"], found["path"])
        return True

    def _more(self, text: str) -> bool:
        if self.language is None:
            begun = _beginning(text) if text.startswith(("goroutine ", "Traceback ")) else None
            self.language = begun[0] if begun else None
            return begun is not None or _JAVA.more.match(text) is not None
        if self.language.more.match(text) is None:
            return False
        if self.language is _NODE and not text[:1].isspace() and (head := _head(text, first=True)):
            if self.kind:
                return False
            self.before, self.kind, self.said = head
        if " what(): " in text and not self.said:
            self.said = f": {text.partition('what():')[2].strip()}"
        self.over = self.over and text[:1].isspace()
        return True

    def _say(self, text: str) -> None:
        """A further line of the message."""
        if not self.kind:
            said = f": {text.strip()}"
            self.before, self.kind, self.said = _head(text, first=True) or ("", "exception", said)
        else:
            self.said += f"{' ' if self.said else ': '}{text.strip()}"


class Trace:
    """Follows one log line by line: each trace in it becomes one event.

    Its text is the line that names the exception, with the nearest frame of one's own behind that name.
    ``ended`` has what is known now: traces, with True, and lines that were held and are messages.

    Examples
    --------
    >>> trace = Trace()
    >>> lines = "it failed: java.io.IOException: disk full", "\tat a.B.c(B.java:7)"
    >>> [trace.read(Held(line)) for line in lines]
    [True, True]
    >>> trace.ended[0][0].message
    'it failed: java.io.IOException@a.B.c: disk full'
    """

    def __init__(self) -> None:
        self._open: dict[str, _Open] = {}
        """By what stands before messages; of lines without a head by nothing."""
        self._latest: _Open | None = None
        """That of the line before."""
        self.ended: list[tuple[Held, bool]] = []

    @property
    def busy(self) -> bool:
        """Whether a trace has begun that may go on."""
        return bool(self._open)

    @property
    def held(self) -> list[Held]:
        """Lines of which something may still be told."""
        return [held for run in self._open.values() if not run.told for held in run.held]

    def read(self, held: Held, key: str = "", *, apart: bool = False, carried: bool = False) -> bool:
        """Whether a line is of a trace, or may be; else it is a message.

        ``key`` is what stands before the message, but for times; ``apart`` says that lines without a head
        stand among such with one, ``carried`` that containers write them, whose lines may alternate.
        """
        text = held.message.rstrip()
        if key not in self._open:  # behind a line with a head come lines of its trace that have less
            less, latest = key.rstrip("|"), self._latest
            self._open = {
                key if each is latest and of.startswith(less) else of: each for of, each in self._open.items()
            }
        run = self._open.get(key)
        if run is not None and run.follows(text, apart and not key, run.strong or not key):
            run.away = 0
            run.held = run.held[:1] if run.sure else [*run.held, held]
            if run.ready and not run.told:
                self._tell(run)
        else:
            begun = _begun(held)
            if run is not None and (begun is not None or not key):
                self._close(key)
            self._pass(key, carried)
            run = begun
            if begun is not None:
                self._open[key] = begun
        self._latest = run
        return run is not None

    def end(self, *, messages: bool = False) -> None:
        """Nothing follows for now: what has begun is over; or, of that, what is likely to be ``messages``."""
        for key, run in list(self._open.items()):
            if not (messages and (run.sure or run.strong)):
                self._close(key)

    def _pass(self, key: str, carried: bool) -> None:
        """A line passes that is not of the traces that have begun."""
        for of, run in list(self._open.items()):
            run.away, run.wraps = run.away + 1, 0
            waits = run.sure or run.strong or (carried and not run.before)
            if run.away > NEAR or not waits or not (of or key):
                self._close(of)

    def _close(self, key: str) -> None:
        run = self._open.pop(key)
        if run.sure and (run.kind or run.said):
            if not run.told:
                self._tell(run)
        elif not run.told:
            self.ended += [(held, False) for held in run.held]

    def _tell(self, run: _Open) -> None:
        run.told = True
        self.ended.append((run.held[0]._replace(message=run.text()), True))


def _head(text: str, *, first: bool = False) -> tuple[str, str, str] | None:
    """Of a message that names an exception, ``first`` or anywhere: what is before that, it, and the rest."""
    begin = _LEAD.match(text.strip())
    text = text.strip()[begin.end() if begin else 0 :]
    found = _FIRST.match(text)
    if found is None and not first and names_exception(text):
        found = _NAMED.search(text)
    return None if found is None else (text[: found.start()], found[0], text[found.end() :])


def _beginning(text: str) -> tuple[Language, re.Match[str]] | None:
    """The language whose traces begin so, and no messages."""
    found = ((language, language.begins.match(text)) for language in LANGUAGES)
    return next(((language, match) for language, match in found if match is not None), None)


def _begun(held: Held) -> _Open | None:
    """The trace that begins with a line, if one may."""
    text = held.message.rstrip()
    begins = _beginning(text)
    if begins is not None:
        language, found = begins
        parts = {name[-4:]: value for name, value in found.groupdict().items() if value is not None}
        said = re.sub(r"^'? with message '(.*)'$", r": \1", parts.get("said", "")).strip(" ,'")
        said = said if not said or said.startswith(":") else f": {said}"
        head = "", parts.get("kind", ""), said
        if not head[1] and said:
            head = _head(said[2:], first=True) or ("", "exception", said)
        run = _Open(held, language, head)
        if language is _PHP:
            run.call = parts.get("path", "")
        elif "path" in parts:
            run.at(parts.get("name", ""), parts["path"])
            run.own = run.own if language is _RUBY else ""  # else a frame says more
        run.awaits = (language is _RUST and text.endswith(":")) or _NESTED.match(text) is not None
        return run
    head_of = _head(text)
    run = _Open(held, None, head_of or ("", "", ""))
    if head_of is None:  # frames of an exception that was not named: they go with the line before
        if text[:1] not in " \t#a" or not any(each.frame.match(text) for each in _TOLD_APART):
            return None
        run.follows(text, apart=False, wraps=False)
        run.told = True
    run.awaits = _NESTED.match(text) is not None
    return run
