"""What can be asked: a state, a snapshot, a store or a file of answers; and a running service."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from streamdp.errors import Exit
from streamdp.questions.answers import ErrorBody
from streamdp.questions.asking import Answers, QuestionError
from streamdp.questions.questions import (
    KIND_OF,
    KINDS,
    Asked,
    ListChanges,
    ListCorrections,
    ListEvents,
    ListMarks,
    ListStories,
    WhereWouldItGo,
)
from streamdp.records.stored import store_version
from streamdp.reports.source import append_correction, is_state, open_state, source_of
from streamdp.state.corrections import CorrectionEntry, CorrectionRequest, CorrectionsFile
from streamdp.state.snapshot import written_at

SECONDS = 90.0
"""How long an answer is waited for."""

MOST = 64 << 20
"""Bytes of an answer."""


class LocalSource:
    """A state folder, a snapshot, a store or a file of answers, looked at again where it was written.

    ``can`` are the kinds of questions that it can be asked. Raises StreamdpError where the path is none, and
    where a question has no answer.
    """

    def __init__(self, path: str) -> None:
        self.name, self._path = path, path
        self._known: tuple[int, Answers] | None = None
        self._of_state = is_state(path)
        unknown: set[type[Asked]] = {ListEvents} if self._of_state else {WhereWouldItGo}
        if not self._of_state and not store_version(path):
            unknown |= {ListChanges, ListEvents, ListMarks}
        if not (self._of_state and Path(path).is_dir()):
            unknown |= {ListCorrections, CorrectionRequest}
        self.can = frozenset(kind.takes for kind in KINDS) - unknown
        self._now()

    def _now(self) -> Answers:
        """What is there now: opened again where it was written meanwhile."""
        seen = written_at(self._path) if self._of_state else Path(self._path).stat().st_mtime_ns
        if self._known is None or self._known[0] != seen or not self._of_state:
            self._known = seen, Answers(source_of(self._path), self._path)
        return self._known[1]

    def answer(self, question: Asked) -> Any:
        """The answer to a question. Raises StreamdpError."""
        if type(question) not in self.can:
            needed = "store" if isinstance(question, ListEvents) else "state"
            raise QuestionError(f"{self._path} cannot be asked this: it is no {needed}")
        match question:
            case ListCorrections(after=after, limit=limit):
                file = CorrectionsFile(self._path)
                file.read()
                return file.noted(after, limit)
            case CorrectionRequest():
                try:
                    correction = question.correction()
                except ValueError as error:
                    raise QuestionError(str(error)) from None
                made = append_correction(self._path, open_state(self._path)[1], correction)
                return CorrectionEntry.of(made)
        return self._now().to(question)


class RemoteSource:
    """A service at an address, ``http://`` or ``https://``. Raises QuestionError where none is."""

    can = frozenset(kind.takes for kind in KINDS)

    def __init__(self, address: str, token: str | None = None) -> None:
        self.name = address
        self._base, self._token = address.rstrip("/"), token
        self.answer(ListStories(limit=1))

    def answer(self, question: Asked) -> Any:
        """The answer to a question. Raises QuestionError."""
        kind = KIND_OF[type(question)]
        usual = {field.name: field.default for field in msgspec.structs.fields(question)}
        given = {k: v for k, v in msgspec.to_builtins(question).items() if v != usual[k]}
        path = kind.path
        for name in [name for name in given if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", str(given.pop(name)))
        body = msgspec.json.encode(question) if kind.posted else None
        if body is None and given:
            flat = {k: v if isinstance(v, str) else msgspec.json.encode(v).decode() for k, v in given.items()}
            path += "?" + urllib.parse.urlencode(flat)
        return self._ask(path, kind.answer, body)

    def _ask(self, path: str, answer: Any, body: bytes | None) -> Any:
        headers = {"accept": "application/json", "content-type": "application/json"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        request = urllib.request.Request(self._base + path, body, headers)  # noqa: S310 - checked by the command
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as found:  # noqa: S310
                return msgspec.json.decode(found.read(MOST), type=answer)
        except urllib.error.HTTPError as error:
            if error.code in (400, 404):
                raise QuestionError(_why(error), Exit.USAGE) from None
            code = Exit.UNAVAILABLE if error.code >= 500 else Exit.USAGE
            if error.code == 401:
                what = "asks for a token: name" if self._token is None else "has another token: look at"
                how = "the file that holds it (--token PATH)"
                raise QuestionError(f"{self._base} {what} {how}", code) from None
            raise QuestionError(f"{self._base} answers {error.code}: {_why(error)}", code) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", error)
            raise QuestionError(f"{self._base} does not answer: {why}", Exit.UNAVAILABLE) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise QuestionError(f"{self._base}{path}: no answer of streamdp serve", Exit.BAD_DATA) from None


Source: TypeAlias = LocalSource | RemoteSource
"""What answers questions about a stream."""


def _why(error: urllib.error.HTTPError) -> str:
    """What a refusal says."""
    try:
        return msgspec.json.decode(error.read(10_000), type=ErrorBody).error
    except (msgspec.DecodeError, UnicodeDecodeError, OSError):
        return str(error.reason)
