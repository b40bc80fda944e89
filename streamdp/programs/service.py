"""Answers to programs from a running ``streamdp serve``."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.parse
import urllib.request
from typing import TypeAlias, TypeVar

import msgspec

from streamdp.errors import Exit
from streamdp.page.changed import ChangeList
from streamdp.programs.sources import CHANGES, CORRECTIONS, WHERE, AskedError, LocalSource
from streamdp.serve.schemas import (
    ErrorBody,
    RecordList,
    StoryList,
    Text,
    Where,
)
from streamdp.state.corrections import CorrectionEntry, CorrectionList, CorrectionRequest
from streamdp.story.orders import Sort
from streamdp.story.story import Story

SECONDS = 90.0
"""How long an answer is waited for."""

MOST = 64 << 20
"""Bytes of an answer."""

Told = TypeVar("Told")


class RemoteSource:
    """A service at an address, ``http://`` or ``https://``. Raises AskedError where none is."""

    can = frozenset((WHERE, CHANGES, CORRECTIONS))

    def __init__(self, address: str, token: str | None = None) -> None:
        self.name = address
        self._base, self._token = address.rstrip("/"), token
        self._ask("/v1/stories?limit=1", StoryList)

    def _ask(self, path: str, kind: type[Told], body: msgspec.Struct | None = None) -> Told:
        headers = {"accept": "application/json", "content-type": "application/json"}
        if self._token is not None:
            headers["authorization"] = f"Bearer {self._token}"
        data = None if body is None else msgspec.json.encode(body)
        request = urllib.request.Request(self._base + path, data, headers)  # noqa: S310 - checked by the command
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
                return msgspec.json.decode(answer.read(MOST), type=kind)
        except urllib.error.HTTPError as error:
            code = Exit.UNAVAILABLE if error.code >= 500 else Exit.USAGE
            raise AskedError(f"{self._base} answers {error.code}: {_why(error)}", code) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "reason", error)
            raise AskedError(f"{self._base} does not answer: {why}", Exit.UNAVAILABLE) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise AskedError(f"{self._base}{path}: no answer of streamdp serve", Exit.BAD_DATA) from None

    def stories(self, sort: Sort, least: int, start: int, most: int) -> StoryList:
        """Live stories, in an order."""
        return self._ask(f"/v1/stories?{_query(sort=sort, least=least, start=start, limit=most)}", StoryList)

    def story(self, label: int) -> Story:
        """One story."""
        return self._ask(f"/v1/stories/{label}", Story)

    def records(self, label: int, after: int, most: int) -> RecordList:
        """The records of a story, in order."""
        return self._ask(f"/v1/stories/{label}/records?{_query(after=after, limit=most)}", RecordList)

    def changes(self, since: str, start: int, most: int, *, every: bool) -> ChangeList:
        """What has changed since a time or a mark."""
        chosen = "true" if every else "false"
        query = _query(since=since, all=chosen, start=start, limit=most)
        return self._ask(f"/v1/changes?{query}", ChangeList)

    def where(self, text: str) -> Where:
        """Where a text would go."""
        return self._ask("/v1/where", Where, Text(text))

    def corrections(self, after: int, most: int) -> CorrectionList:
        """Corrections by hand."""
        return self._ask(f"/v1/corrections?{_query(after=after, limit=most)}", CorrectionList)

    def correct(self, wanted: CorrectionRequest) -> CorrectionEntry:
        """Take one more."""
        return self._ask("/v1/corrections", CorrectionEntry, wanted)


Asked: TypeAlias = LocalSource | RemoteSource
"""What answers questions about a stream."""


def _query(**given: object) -> str:
    return urllib.parse.urlencode(given)


def _why(error: urllib.error.HTTPError) -> str:
    """What a refusal says."""
    try:
        return msgspec.json.decode(error.read(10_000), type=ErrorBody).error
    except (msgspec.DecodeError, UnicodeDecodeError, OSError):
        return str(error.reason)
