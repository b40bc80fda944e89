"""Stack traces among the lines of a log: the type of an exception, and the frame of one's own it came from.

Python, Java, Go, Node and .NET. Frames of the standard library and of installed packages are not one's own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

NEAR = 8
"""Messages of others that may stand among the lines of a trace."""

_NAME = r"[^\W\d][\w$]*(?:(?:\.|::)[^\W\d][\w$]*)*"
_LEAD = r"(?:Exception in thread \"[^\"]*\"\s+|Unhandled exception\. |Uncaught )?"
_TYPE = re.compile(rf"{_LEAD}({_NAME}(?:Error|Exception|Throwable))(?: \[\w+\])?(?::|$| --->)", re.ASCII)
_SAID = re.compile(rf"(?:^|[\s:\"'(])({_NAME}(?:Error|Exception|Throwable))(?![\w.])", re.ASCII)
_CAUSE = re.compile(rf"\s*(?:Caused by:|Suppressed:|--->) ({_NAME})", re.ASCII)
_MORE = re.compile(r"\s+\.\.\. \d+ (?:more|common frames omitted)|\s*--- End of (?:inner|stack)", re.ASCII)
_FRAME = re.compile(r"\s*at (?:async )?(?=\S)", re.ASCII)
_JAVA = re.compile(
    r"(?:[\w.@-]*/)*([\w$.]+(?:<\w+>)?)\((?:[\w$-]+\.\w+(?::\d+)?|Native Method|Unknown Source|<\w+>)\)",
    re.ASCII,
)
_NODE = re.compile(
    r"(?:(?:new )?(?P<name>[\w$.<>#]+)(?: \[as [\w$.]+\])? \()?"
    r"(?P<path>(?:node:|file:/|/|[A-Za-z]:\\|\.{0,2}[\w-]+/)[^()]*?|<anonymous>|native)(?::\d+)*\)?$",
    re.ASCII,
)
_NET = re.compile(r"(?P<name>[\w.`<>+|\[\],]+)\([^()]*\)(?: in (?P<path>.+?):line \d+)?\s*$", re.ASCII)
_PYTHON = re.compile(r"(?:[\s|+-]*)(?:Exception Group )?Traceback \(most recent call last\):\s*$", re.ASCII)
_FILE = re.compile(r"[\s|]*File \"([^\"]+)\", line \d+(?:, in (\S+))?", re.ASCII)
_RAISED = re.compile(rf"[\s|]*({_NAME})(?::|\s*$)", re.ASCII)
_CHAINED = re.compile(r"During handling of the above|The above exception was the direct cause", re.ASCII)
_GO = re.compile(r"(panic|fatal error): (.+)|goroutine \d+ \[.*\]:\s*$", re.ASCII)
_GO_CALL = re.compile(r"(?:created by )?(\S+\.\S+?)(?:\([^()]*\))?(?: in goroutine \d+)?\s*$", re.ASCII)
_GO_FILE = re.compile(r"\s*(\S+\.go):\d+", re.ASCII)
_GO_END = re.compile(r"exit status \d+|\[signal |\.\.\.additional frames elided", re.ASCII)
BEGINS = re.compile(
    r"\s|at |Caused by:|Suppressed:|--->|--- End|Traceback|Exception|panic: |fatal error: |goroutine "
    r"|During handling|The above exc"
)
"""What a line may begin with that is of a trace, whatever came before it."""

_NOT_OWN = re.compile(
    r"(?:java|javax|jdk|sun|com\.sun|kotlin|kotlinx|scala|groovy|jakarta|akka|reactor|System|Microsoft"
    r"|com\.google|com\.fasterxml|io\.netty|io\.grpc|org\.(?:apache|springframework|hibernate|eclipse|junit"
    r"|jboss|postgresql|slf4j|codehaus|mozilla))\.",
    re.ASCII,
)
_INSTALLED = re.compile(
    r"site-packages/|dist-packages/|/lib(?:64)?/python|^<|node_modules/|^node:|^native$|/go/pkg/mod/"
    r"|/go/src/|/usr/(?:local/)?lib/",
    re.ASCII,
)


def goes_on(text: str) -> bool:
    """Whether a line is indented, or begins with an exception."""
    return text[:1].isspace() or _TYPE.match(text) is not None


def names_exception(text: str) -> bool:
    """Whether a message may name an exception."""
    return "Error" in text or "Exception" in text or "Throwable" in text


class Trace:
    """Follows one log line by line; at most one trace is open.

    What is told of an exception is one word, so that different ones never become one template.

    Examples
    --------
    >>> trace = Trace()
    >>> trace.passes("it failed: java.io.IOException: disk full")
    False
    >>> trace.read("\\tat java.io.File.write(File.java:7)"), trace.read("\\tat shop.Cart.save(Cart.java:23)")
    ('', 'java.io.IOException@shop.Cart.save')
    """

    def __init__(self) -> None:
        self._named = ""
        """The last line, not long ago, that may name the exception of a trace to come."""
        self._clear()

    def _clear(self) -> None:
        self._language, self._headed = "", False
        self._type = self._call = ""  # the exception's; of Go, a function whose file is on the next line
        self._own = self._first = ""  # frames: one's own, and any
        self._open, self._away = False, 0  # what is told is still to come; messages since the last line

    def passes(self, text: str) -> bool:
        """A line that is no part of a trace: it may name the exception whose frames follow.

        Returns whether a trace is open of which nothing more is expected.
        """
        self._away += 1
        if names_exception(text):
            self._named, self._away = text, 0 if not self._open else self._away
        elif self._away > NEAR:
            self._named = ""
            return self._open
        return False

    def room(self, headed: bool) -> float:
        """How many lines that begin nothing are no part of a trace, and end none."""
        if self._language and self._away <= NEAR and headed == self._headed:
            return 0
        return max(0, NEAR - self._away) if self._open else math.inf

    def skip(self, lines: int, last: Sequence[str]) -> None:
        """So many lines pass, for which there is room; of the ``last`` ones only those ``NEAR`` count."""
        if self._away > NEAR:
            self._language = ""
        self._away += lines
        for ago, text in enumerate(reversed(last)):
            if names_exception(text):
                self._named, self._away = text, self._away if self._open else ago
                break
        if self._away > NEAR:
            self._named = ""

    @property
    def framed(self) -> bool:
        """Whether a trace is open that has a frame."""
        return self._open and bool(self._first)

    def end(self) -> str:
        """What there is to tell of a trace that is over and had no frame of one's own; empty for nothing."""
        told = self._tell(self._first) if self._open and (self._type or self._first) else ""
        self._clear()
        return told

    def joined(self, text: str) -> str:
        """A line that goes on with the one before: it may name an exception without frames."""
        named = _TYPE.match(text)
        told = ""
        if named is not None and self._language != "python":
            told = self.end()
            self._open, self._type, self._away = True, named[1], 0
        return told

    def read(self, text: str, headed: bool = False) -> str | None:
        """None for a line that is no part of a trace; else what is told now, empty for nothing yet.

        ``headed`` says whether there was a time or the like before it: either all lines of a trace have one,
        or none.
        """
        if self._away > NEAR:
            self._language = ""
        if (not self._language or headed != self._headed) and BEGINS.match(text) is None:
            return None
        found = self._line(text)
        if found is not None:
            self._away, self._headed = 0, headed
        return found

    def _line(self, text: str) -> str | None:
        if _PYTHON.match(text):
            return self._begin("python", "")
        if (opened := _GO.match(text)) is not None:
            if opened[1] is None:
                return "" if self._language == "go" else self._begin("go", "goroutine")
            return self._begin("go", f"{opened[1]}: {opened[2]}")
        if (cause := _CAUSE.match(text)) is not None:
            return self._begin(self._language or "other", cause[1])
        if _CHAINED.match(text):
            return ""
        if self._language == "python":
            return self._python(text)
        if self._language == "go" and (found := self._go(text)) is not None:
            return found
        if _MORE.match(text):
            return ""
        if (frame := _FRAME.match(text)) is not None:
            return self._frame(text[frame.end() :])
        return None

    def _begin(self, language: str, named: str) -> str:
        """A trace begins; what is told of one before that had no frame of one's own."""
        told = self.end()
        self._language, self._type, self._open = language, named, True
        return told

    def _frame(self, text: str) -> str | None:
        """A frame of Java, Node or .NET."""
        if (java := _JAVA.match(text)) is not None:
            name, own = java[1], _NOT_OWN.match(java[1]) is None
        elif (net := _NET.match(text)) is not None and not text.endswith(":)"):
            name, own = net["name"], bool(net["path"]) and _NOT_OWN.match(net["name"]) is None
        elif (node := _NODE.match(text)) is not None:
            own = _INSTALLED.search(node["path"]) is None
            name = _place(node["path"], node["name"])
        else:
            return "" if self._language == "other" and text[:1].isspace() else None
        if self._named or self._language not in ("", "other"):
            said = _SAID.search(self._named)
            told = self._begin("other", said[1] if said else "")
            self._named = ""
            if told:  # the frame is told with the next one
                return told
        elif not self._language:
            self._language, self._open = "other", True
        self._type = self._type or "exception"
        self._first = self._first or name
        if own and self._open:
            self._own, self._open = name, False
            return self._tell(name)
        return ""

    def _python(self, text: str) -> str | None:
        if (file := _FILE.match(text)) is not None:
            name = _place(file[1], file[2] or "")
            self._first, self._call = name, "code"  # the next line shows what is run there
            if _INSTALLED.search(file[1]) is None:
                self._own = name
            return ""
        code, self._call = self._call, ""
        if text[:1] in " \t" or (code and _TYPE.match(text) is None):
            return ""
        raised = _RAISED.match(text) if self._first else None
        if raised is None:
            return None
        self._type = raised[1]
        told = self._tell(self._own or self._first)
        self._clear()
        return told

    def _go(self, text: str) -> str | None:
        if (file := _GO_FILE.match(text)) is not None:
            name = re.sub(r"[()*]", "", self._call)
            self._first = self._first or name
            if self._open and self._call and _INSTALLED.search(file[1]) is None:
                self._own, self._open = name, False
                return self._tell(name)
            return ""
        if _GO_END.match(text):
            return ""
        if text.startswith("panic("):
            self._call = ""
            return ""
        if (call := _GO_CALL.match(text)) is not None:
            self._call = call[1]
            return ""
        return None

    def _tell(self, frame: str) -> str:
        kind = self._type
        if self._language == "go":
            kind = re.sub(r"\[recovered\]|[\[{\"'].*|0x[0-9a-f]+|\d+", "", kind)
        words = re.findall(r"[\w$.*/-]+", kind, re.ASCII)[:10]
        return "-".join(words) + (f"@{frame}" if frame else "")


def _place(path: str, name: str) -> str:
    """A function in a file: the last two parts of its path tell enough."""
    short = "/".join(re.split(r"[/\\]", path)[-2:])
    return re.sub(r"[\s=:,;()\[\]\"']", "_", f"{short}#{name}" if name else short)
