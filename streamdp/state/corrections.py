"""Corrections by hand, and the file in a state's folder that holds them.

The file ``corrections`` has lines of JSON and is only appended to: what it is, then corrections, numbered
from 1, and the position at which the running process applied each (the number of records before it). That is
noted before it is applied, so whoever reads the same records again applies it at the same place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

from streamdp.errors import Exit, StreamdpError, foreseen
from streamdp.safe_files import open_regular, sync_folder

NAME = "corrections"
START = b'{"streamdp":"corrections",'
"""What the file begins with."""

MOST_BYTES = 16 << 20
"""Bytes of the file: a larger one is refused."""

LONGEST = 120
"""Characters of a title, and of who has made a correction."""

RECORDS = 10_000
"""Records that one correction names, at most."""

What = Literal["rename", "merge", "split", "move", "keep-apart", "pin", "mute", "close", "undo"]

Number = Annotated[int, Meta(ge=0, lt=1 << 53)]

SHAPES: dict[What, tuple[int, int, int]] = {
    "rename": (1, 1, 0),
    "merge": (2, 2, 0),
    "split": (1, 1, RECORDS),
    "move": (1, 1, RECORDS),
    "keep-apart": (2, 100, 0),
    "pin": (1, 1, 0),
    "mute": (1, 1, 0),
    "close": (1, 1, 0),
    "undo": (0, 0, 0),
}
"""How many stories each names, at least and at most, and how many records at most."""


class CorrectionError(StreamdpError):
    """A correction makes no sense, or the file of corrections cannot be used.

    Examples
    --------
    >>> from streamdp import Engine, Settings
    >>> Engine(Settings()).correct(Correction(what="mute", stories=(7,)))
    Traceback (most recent call last):
    streamdp.state.corrections.CorrectionError: there is no live story 7
    """


class CorrectionRequest(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """Correct the stories of the stream, durably.

    rename a story (title), merge two, split records off one, move records to one, keep-apart several, pin or
    mute one, close a hole of a template, undo a correction.
    """

    what: Annotated[What, Meta(description="what is corrected")]
    stories: Annotated[tuple[Number, ...], Meta(description="labels of stories")] = ()
    ids: Annotated[
        tuple[Annotated[str, Meta(min_length=1, max_length=1000)] | int, ...],
        Meta(description="of split and move: ids of records"),
    ] = ()
    seqs: Annotated[tuple[Number, ...], Meta(description="of split and move: numbers of records")] = ()
    title: Annotated[str | None, Meta(description="of rename: one line")] = None
    hole: Annotated[
        Annotated[int, Meta(ge=1, lt=1 << 53)] | None,
        Meta(description="of close, and of split by a hole: its number"),
    ] = None
    value: Annotated[str | None, Meta(description="of split by a hole: the value")] = None
    undone: Annotated[Number | None, Meta(description="of undo: the number of a correction")] = None
    who: Annotated[str, Meta(description="who says so")] = ""

    def correction(self, who: str = "") -> Correction:
        """The correction, of ``who`` where it names nobody. Raises ValueError where it says nothing."""
        made = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return Correction(**msgspec.structs.asdict(self) | {"who": self.who or who}, when=made)


class Correction(
    CorrectionRequest, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """What somebody says of stories.

    Parameters
    ----------
    what
        ``rename``, ``merge``, ``split``, ``move``, ``keep-apart``, ``pin``, ``mute``, ``close`` or ``undo``.
    stories
        Labels: one, of ``merge`` two, of ``keep-apart`` two or more.
    ids, seqs
        Of ``split`` and ``move``: the records, by their ids and by their numbers. An id is a text: a number
        among them is the text of its digits.
    title
        Of ``rename``: one line, 120 characters at most.
    hole, value
        Of ``close``: the number of a template's hole, from 1 on, whose values become constants. Of ``split``
        of a template, in the place of records: the hole, and the value whose lines are a template.
    undone
        Of ``undo``: the number of the correction that is lifted.
    number, who, when
        Which of the stream's corrections it is, from 1 on (0: the next); by whom; ISO 8601.

    Raises ValueError where these do not go together.

    Examples
    --------
    >>> print(Correction(what="keep-apart", stories=(7, 9)))
    keep-apart 7 9
    >>> print(Correction(what="move", stories=(7,), ids=("seq:3",), seqs=(3,)))
    move seq:3 7 --seq 3
    """

    number: int = 0
    when: str = ""

    def __post_init__(self) -> None:
        if self.what not in get_args(What):
            raise ValueError(f"{self.what!r} is none of {', '.join(get_args(What))}")
        least, most, records = SHAPES[self.what]
        msgspec.structs.force_setattr(self, "ids", tuple(map(str, self.ids)))
        if (self.hole is not None) != (self.what == "close") and (self.hole is None or self.what != "split"):
            raise ValueError("a hole belongs to close, which needs one, and to split")
        if (self.value is not None) != (self.what == "split" and self.hole is not None):
            raise ValueError("a value belongs to split by a hole, which needs one")
        records = 0 if self.hole is not None else records
        if not least <= len(self.stories) <= most:
            few = {(0, 0): "no story", (1, 1): "one story", (2, 2): "two stories"}
            raise ValueError(f"{self.what} names {few.get((least, most), 'two stories or more')}")
        if len(set(self.stories)) < len(self.stories):
            raise ValueError(f"{self.what} names a story twice")
        if not min(records, 1) <= len(self.ids) + len(self.seqs) <= records:
            many = f"1 to {records:,} records" if records else "no records"
            raise ValueError(f"{self.what} names {many}")
        if (self.title is not None) != (self.what == "rename"):
            raise ValueError("a title belongs to rename, which needs one")
        if (self.undone is not None) != (self.what == "undo"):
            raise ValueError("undo names the number of a correction, and nothing else does")
        if self.value is not None and not 0 < len(self.value) <= 1000:
            raise ValueError("a value has 1 to 1,000 characters")
        for text in (self.title, self.who, self.when):
            if text is not None and (len(text) > LONGEST or not text.isprintable()):
                raise ValueError(f"a title, or a name, is one line of {LONGEST} characters at most")
        if self.title is not None and not self.title.strip():
            raise ValueError("a title says something")
        if any(not 0 < len(str(name)) <= 1000 for name in self.ids):
            raise ValueError("an id has 1 to 1,000 characters")
        numbers = (self.number, *self.stories, *self.seqs, self.undone or 0, (self.hole or 1) - 1)
        if min(numbers) < 0 or max(numbers) >= 1 << 53:
            raise ValueError("a label, or a number, is negative or too large")

    def __str__(self) -> str:
        if self.what == "undo":
            return f"undo {self.undone}"
        if self.hole is not None:
            by = "" if self.value is None else f" {self.value}"
            return f"{self.what} {self.stories[0]} hole {self.hole}{by}"
        named = [*map(str, self.ids), *map(str, self.stories)]
        if self.what == "split":
            named = [*map(str, self.stories), *map(str, self.ids)]
        named += [f"--seq {seq}" for seq in self.seqs]
        named = [*named[:4], "..."] if len(named) > 4 else named
        return " ".join([self.what, *named, *([self.title] if self.title else [])])


class CorrectionEntry(Correction, frozen=True, omit_defaults=False):
    """A correction; ``at`` is how many records came before it, null where it was not applied yet."""

    at: int | None = None

    @classmethod
    def of(cls, correction: Correction, at: int | None = None) -> CorrectionEntry:
        """A correction, with where it was applied."""
        return cls(**msgspec.structs.asdict(correction), at=at)


class CorrectionList(msgspec.Struct, frozen=True):
    """Some corrections, in order; ``next`` is what ``after`` is for the rest, null where there is none."""

    corrections: list[CorrectionEntry]
    next: int | None


class Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At which position a correction was applied: so many records came before it."""

    number: int
    at: int


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first line: what the file is, and how many corrections the state had taken before the first."""

    streamdp: Literal["corrections"] = "corrections"
    version: Literal[1] = 1
    after: int = 0


HEARD = "heard"
"""In a line, beside a correction that came from a topic: how far that had been read."""


def _with(correction: Correction, heard: Mapping[str, Any] | None) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(correction)
    return found if heard is None else {**found, HEARD: heard}


class CorrectionsFile:
    """The corrections of a state's folder, and their positions.

    Anything else of that name is refused. Raises CorrectionError.

    Parameters
    ----------
    folder
        Of the state.
    taken
        How many corrections the state has taken already: where there is no file, numbers go on from there.
    """

    def __init__(self, folder: str | os.PathLike[str], taken: int = 0) -> None:
        self.path, self.after = Path(folder) / NAME, taken
        self._seen: object = None
        self.corrections: list[Correction] = []
        self.marks: dict[int, int] = {}
        """Position by number."""
        self.heard: dict[str, Any] | None = None
        """How far a topic of corrections had been read, at the last that came from it."""

    def look(self) -> None:
        """Read it, if there is more in it than was read last."""
        if self._seen != self._look():
            self.read()

    def noted(self, after: int, most: int) -> CorrectionList:
        """Some of those after a number, with where each was applied."""
        left = [each for each in self.corrections if each.number > after]
        found = [CorrectionEntry.of(each, self.marks.get(each.number)) for each in left[:most]]
        return CorrectionList(found, found[-1].number if len(left) > most else None)

    def _look(self) -> object:
        try:
            found = os.lstat(self.path)
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns

    def read(self) -> None:
        """Read all of it; without a file there are no corrections."""
        seen = self._look()
        self.corrections, self.marks, self.heard, self._seen = [], {}, None, seen
        if seen is None:
            return
        with (
            foreseen(CorrectionError, self.path, "used", Exit.IO_ERROR),
            open(open_regular(self.path), "rb") as file,
        ):
            self._take(self._whole(file))

    def _whole(self, file: Any) -> bytes:
        """The lines that are whole: one that is cut off was never answered for."""
        data: bytes = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise CorrectionError(f"{self.path}: has more than {MOST_BYTES >> 20} MiB", Exit.BAD_DATA)
        if not data.startswith(START) and data != START[: len(data)]:
            raise CorrectionError(f"{self.path}: is no file of corrections", Exit.BAD_DATA)
        return data[: data.rfind(b"\n") + 1]

    def _take(self, data: bytes) -> None:
        for place, line in enumerate(data.splitlines(), 1):
            try:
                if place == 1:
                    self.after = msgspec.json.decode(line, type=_Head).after
                else:
                    self._add(line)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                what = " ".join(str(error).split())
                raise CorrectionError(f"{self.path}, line {place}: {what}", Exit.BAD_DATA) from None

    def _add(self, line: bytes) -> None:
        found = msgspec.json.decode(line)
        if isinstance(found, dict) and "at" in found:
            mark = msgspec.convert(found, Mark)
            last = max(self.marks.values(), default=0)
            if mark.number != self.after + len(self.marks) + 1 or mark.number > self.last or mark.at < last:
                raise ValueError("a position out of order")
            self.marks[mark.number] = mark.at
            return
        heard = found.pop(HEARD, None) if isinstance(found, dict) else None
        correction = msgspec.convert(found, Correction)
        if correction.number != self.last + 1:
            raise ValueError(f"correction {correction.number} comes after {self.last}")
        self.corrections.append(correction)
        self.heard = heard or self.heard

    def append(self, correction: Correction, heard: Mapping[str, Any] | None = None) -> Correction:
        """Add a correction, durably; it is given back with its number.

        ``heard`` is how far the topic has been read that it came from.
        """
        with self._open() as file:
            numbered = msgspec.structs.replace(correction, number=self.last + 1)
            self._append(file, _with(numbered, heard))
        return numbered

    @property
    def last(self) -> int:
        """The number of the last correction."""
        return self.after + len(self.corrections)

    def since(self, taken: int) -> list[Correction]:
        """The corrections after the first so many."""
        if self._seen is not None and not self.after <= taken <= self.last:
            raise CorrectionError(
                f"{self.path}: is of another state: it has corrections {self.after + 1} to {self.last}, "
                f"and the state has taken {taken}",
                Exit.BAD_DATA,
            )
        return self.corrections[taken - self.after :]

    def mark(self, number: int, at: int) -> None:
        """Note durably at which position a correction is applied."""
        with self._open() as file:
            self._append(file, Mark(number, at))

    @contextlib.contextmanager
    def _open(self) -> Iterator[Any]:
        """The file, of which others neither read nor write meanwhile; all that is in it has been read."""
        with foreseen(CorrectionError, self.path, "used", Exit.IO_ERROR):
            made = not self.path.exists()
            with open(open_regular(self.path, os.O_RDWR | os.O_CREAT), "r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                whole = self._whole(file)
                self.corrections, self.marks, self.heard = [], {}, None
                self._take(whole)
                file.seek(len(whole))
                file.truncate()  # what a process that died has left
                if not whole:
                    file.write(msgspec.json.encode(_Head(after=self.after)) + b"\n")
                yield file
                file.flush()
                os.fsync(file.fileno())
            if made:
                sync_folder(self.path.parent)
            self._seen = self._look()

    def _append(self, file: Any, line: Mapping[str, Any] | Mark) -> None:
        data = msgspec.json.encode(line) + b"\n"
        if file.tell() + len(data) > MOST_BYTES:
            raise CorrectionError(f"{self.path}: is full ({MOST_BYTES >> 20} MiB)", Exit.CANNOT_CREATE)
        file.write(data)
        self._add(data)
