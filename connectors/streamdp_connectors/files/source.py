"""Read records from files, pipes and standard input."""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Literal

from streamdp.decode.columns import DELIMITERS, parse_row
from streamdp.decode.fields import RefusedError
from streamdp.errors import Exit
from streamdp.records.raw_batch import RawBatch
from streamdp_connectors.files.lines import Block, Lines, Rows, leaves_quote_open
from streamdp_connectors.inputs import WORK, Input, Known
from streamdp_connectors.protocol import SourceError

Written = Literal["jsonl", "csv", "tsv", "ssv", "psv", "text"]
"""How the records of a file are written: by lines, or by rows of cells."""

_log = logging.getLogger(__name__)
_BOM = b"\xef\xbb\xbf"
_RETURN = 0x0D
_BLANK = 4096  # blank lines that are skipped at once between others
_LARGEST = 4 << 20  # bytes of a batch, above which it grows no further


class FileSource:
    """The lines, or CSV rows, of one file; ``-`` is standard input.

    A record's position is ``{"file": path, "line": n}``: the number, from 1, of its first line. Its data
    is the line without line end, or the row with the line ends inside quotes. Blank lines are counted and
    skipped, a byte order mark is dropped, and gzip is unpacked. Of a line longer than ``max_line`` bytes
    only the first ``max_line`` are held and delivered: let it be above the decoder's limit. A CSV row whose
    quote is still open after as many bytes is delivered as its first line, and reading resumes after that.

    At the end a last line without newline is a record too, unless ``whole`` leaves it for later (in a file
    that is not packed). With ``follow`` there is no end: the source waits for more, delivers a line when its
    newline has come, and goes on with the new file when the old one is replaced or cut. Pipes are read as
    lines arrive, with or without ``follow``.

    A position has what a file is ``known`` by: inode, length, and checksums of its beginning and of what lies
    before the position. So a file that is not the one that was read is refused; with ``follow`` it begins
    anew, after what is left of the old one where that is found beside it under another name.

    ``clock`` gives the arrival time in seconds since the epoch. Raises SourceError.
    """

    place = ("file", "line")

    def __init__(
        self,
        path: str,
        format: Written = "jsonl",
        follow: bool = False,
        clock: Callable[[], float] = time.time,
        max_line: int = 16 << 20,
        whole: bool = False,
    ) -> None:
        self.path = path
        self.header: list[str] | None = None
        """The column names of a CSV file, known from the start (a pipe is waited for); else None."""
        self._delimiter = DELIMITERS.get(format, "")
        self._csv = bool(self._delimiter)
        self._body = 0, 0  # lines and bytes of the header
        self._clock, self._max_line = clock, max_line
        self._take = self._take_rows if self._csv else self._take_lines
        self._input, self._follow = Input(path, follow, self._csv), follow
        self._whole = whole and self.seekable and not self._input.packed
        self._blank = 0  # lines that were skipped
        self._restart(0, 0)
        try:
            self._wait_for_header()
        except SourceError:
            self.close()
            raise

    @property
    def at_end(self) -> bool:
        """Whether no more records will ever come."""
        return self._ended and not self._blocks

    @property
    def encoding(self) -> str | None:
        """What a table is written in that is no UTF-8 and does not say so."""
        return self._input.encoding

    @property
    def packed(self) -> bool:
        """Whether it is unpacked while it is read."""
        return self._input.packed

    @property
    def seekable(self) -> bool:
        """Whether it is a file: pipes and standard input only go on."""
        return self._input.seekable

    def share(self) -> float | None:
        """How much of a file has been read; None for a pipe, and while a file is followed."""
        return self._input.share()

    def read(self, max_records: int, timeout: float) -> RawBatch:
        """Return what is there, at most ``max_records``; none if nothing came in ``timeout`` seconds.

        Bytes may go on coming without end, and without the end of a line: work that takes longer is
        ``unfinished``, as is a batch of some megabytes.
        """
        found = RawBatch({"file": self.path}, ("line",))
        began, first, blank = time.monotonic(), self._offset, self._blank
        waits, works = began + timeout, began + max(timeout, WORK)
        while len(found) < max_records:
            now = time.monotonic()
            if now > works or self._offset - first > _LARGEST:
                found.unfinished = True
                break
            if self._blocks:
                self._take(found, max_records)
            elif not self._fill(0.0 if found else max(0.0, waits - now)):
                found.unfinished = self._input.regular and not self._follow and not self._ended
                break
        found.blank = self._blank - blank
        return found

    def positions(self) -> dict[str, Any]:
        """Return the file, and the lines and unpacked bytes up to the end of the last record returned."""
        line, offset = self._done
        place = {"file": self.path, "line": line, "offset": offset}
        known = self._input.known(offset)
        return place if known is None else {**place, "known": known}

    def seek(self, positions: dict[str, Any]) -> bool:
        """Continue after the record at which ``positions`` were taken; no file may have changed before it.

        A pipe goes on with what comes and counts on: then the result is False.
        """
        path, line, offset = (positions.get(key) for key in ("file", "line", "offset"))
        if not (isinstance(line, int) and isinstance(offset, int) and line >= 0 and offset >= 0):
            raise SourceError(
                f"{self.path}: the stored position {positions} is not one of a file", Exit.BAD_DATA
            )
        check_same(path, self.path)
        if not self.seekable:
            self._line += line
            self._offset += offset
            self._done = self._line, self._offset
            return False
        if not self.is_same(positions) and not self._turn_back(line, positions["known"]):
            return True
        if self._csv and offset < self._body[1]:
            line, offset = self._body
        if (line, offset) != self._done:
            self._input.goto(offset)
            self._restart(line, offset)
            self._header_due = False
            self._continued = True
        return True

    def before(self, most: int) -> list[tuple[int, bytes]]:
        """The full lines among so many bytes before the next record, numbered; of a seekable file."""
        start = max(0, self._done[1] - most)
        again = Input(self.path)
        try:
            again.goto(start)
            data = b""
            while len(data) < self._done[1] - start and (chunk := again.read(0.0)):
                data += chunk
        finally:
            again.close()
        lines = data[: self._done[1] - start].removesuffix(b"\n").split(b"\n")
        numbered = list(enumerate(lines, self._done[0] - len(lines) + 1))[1 if start else 0 :]
        return [(n, line.removesuffix(b"\r")) for n, line in numbered if line and not line.isspace()]

    def is_same(self, positions: dict[str, Any]) -> bool:
        """Whether the file is the one at which ``positions`` were taken, as far as they tell."""
        known = positions.get("known")
        return known is None or not self.seekable or self._input.is_same(known)

    def _turn_back(self, line: int, known: Known) -> bool:
        """Go to the file that was read before its name was given to another; False to begin anew with that.

        Raises SourceError unless the file is followed.
        """
        if not self._follow:
            raise SourceError(
                f"{self.path} is not what was read up to line {line}: restore it, or begin anew with another "
                "--state (--follow goes on with files that are replaced)",
                Exit.BAD_DATA,
            )
        name = self._input.turn_back(known)
        if name is not None:
            _log.warning("%s was replaced: going on in %s, then with its beginning", self.path, name)
            return True
        _log.warning(
            "%s was replaced or cut: going on with its beginning; "
            "what followed line %d of the old file is lost",
            self.path,
            line,
        )
        return False

    def close(self) -> None:
        """Close the file; standard input stays open."""
        self._input.close()
        self._blocks.clear()
        self._ended = True

    def _restart(self, line: int, offset: int) -> None:
        """Forget all that was read; the next byte read is at ``offset``, after ``line`` lines."""
        self._lines, self._rows = Lines(self._max_line), Rows(self._delimiter.encode() or b",")
        self._blocks: deque[Block] = deque()  # read but not taken
        self._at = 0  # the next line of the first block
        self._line, self._offset = line, offset  # taken
        self._done = line, offset  # up to the end of the last record
        self._header_due = self._csv
        self._continued = False  # with what follows a stored position
        self._unfinished = False  # the last record's line had no newline when it was read
        self._file_ended = self._ended = False
        self._arrival = 0.0

    def _fill(self, wait: float) -> bool:
        """Take one step towards more blocks; False when nothing came within ``wait``, or ever will."""
        if self._ended:
            return False
        if not self._file_ended:
            chunk = self._input.read(wait)
            if chunk is None:
                return False
            self._arrival = self._clock()
            if chunk:
                if self._continued:
                    self._continued, self._unfinished = False, self._input.before not in (b"", b"\n")
                if self._unfinished:
                    chunk = self._finish_line(chunk)
                if not self._rows.size:
                    chunk = self._skip_blank(chunk)
                self._add(self._lines.feed(chunk))
            else:
                self._file_ended = True
                self._add([] if self._whole else self._lines.finish())
        elif self._rows.size:
            self._blocks.append(self._rows.give_up())
        elif self._input.reopen():
            self._restart(0, 0)
        else:
            self._ended = True
            return False
        return True

    def _add(self, blocks: list[Block]) -> None:
        if self._offset == 0 and blocks and blocks[0].lines[0].startswith(_BOM) and not self._rows.size:
            (first, *rest), extra = blocks[0].lines, blocks[0].extra
            blocks[:1] = (
                [Block([first[3:]], 3), Block(rest, extra)] if rest else [Block([first[3:]], 3 + extra)]
            )
        self._blocks.extend(blocks)

    def _skip_blank(self, chunk: bytes) -> bytes:
        """Skip blank lines all at once if there is nothing else; return what is left of the last one."""
        if not chunk.isspace() or not self._lines.blank:
            return chunk
        end = chunk.rfind(b"\n") + 1
        if end:
            count = chunk.count(b"\n")
            self._line += count
            self._blank += count
            self._offset += self._lines.drop() + end
        return chunk[end:]

    def _finish_line(self, chunk: bytes) -> bytes:
        """Drop the newline that came after a record read without one."""
        rest = chunk.removeprefix(b"\r\n" if chunk[0] == _RETURN else b"\n")
        if rest == chunk:
            raise SourceError(
                f"{self.path} has changed: line {self._line} goes on where it ended", Exit.BAD_DATA
            )
        self._offset += len(chunk) - len(rest)
        self._done = self._line, self._offset
        self._unfinished = False
        return rest

    def _take_lines(self, found: RawBatch, limit: int) -> None:
        """Move records from the first block to ``found``."""
        lines, extra, _ = self._blocks[0]
        at, number, offset = self._at, self._line, self._offset
        if not lines[at] and not any(many := lines[at : at + _BLANK]):
            at, number, offset = at + len(many), number + len(many), offset + len(many)
        stop = min(len(lines), at + limit - len(found))
        done, end = self._done
        data, places, before = found.data, found.places, len(found)
        taken = lines[at:stop]
        blank = not all(taken) or any(map(bytes.isspace, taken))
        if not blank and _RETURN not in [line[-1] for line in taken]:  # nearly always: no line needs a look
            data += taken
            places += range(number + 1, number + 1 + len(taken))
            number, offset = number + len(taken), offset + len(taken) + sum(map(len, taken))
            done, end, taken = number, offset, []
        for line in taken:
            number += 1
            offset += len(line) + 1
            if not line or line.isspace():
                continue
            if line[-1] == _RETURN:
                line = line[:-1]
            data.append(line)
            places.append(number)
            done, end = number, offset
        found.arrivals += [self._arrival] * (len(data) - before)
        self._blank += number - self._line - len(data) + before
        self._at = stop
        if stop == len(lines):
            offset += extra
            if done == number:  # its last line was a record
                end = offset
            self._next_block()
        self._line, self._offset = number, offset
        self._done = done, end

    def _take_rows(self, found: RawBatch, limit: int) -> None:
        """Move rows from the first block to ``found``, and the header to its place."""
        lines, extra, alone = self._blocks[0]
        rows, last, delimiter = self._rows, len(lines) - 1, self._delimiter.encode()
        for at in range(self._at, len(lines)):
            if len(found) == limit and not self._header_due:
                self._at = at
                return
            line = lines[at]
            size = len(line) + 1 + (extra if at == last else 0)
            # Most rows end with their line: only the others are worth the work of joining.
            complete = (
                b'"' not in line or (alone and at == 0) or not leaves_quote_open(line, False, delimiter)
            )
            if not rows.size and complete:
                self._take_row(line, 1, size, found)
                continue
            row = rows.add(line, size)
            if row is not None:
                self._take_row(*row, found)
            elif rows.size > self._max_line:
                self._next_block()
                if at < last:
                    self._blocks.appendleft(Block(lines[at + 1 :], extra))
                self._blocks.appendleft(rows.give_up())
                return
        self._next_block()

    def _take_row(self, data: bytes, lines: int, size: int, found: RawBatch) -> None:
        first = self._line + 1
        self._line += lines
        self._offset += size
        if not data or data.isspace():
            self._blank += lines
            return
        if data[-1] == _RETURN:
            data = data[:-1]
        self._done = self._line, self._offset
        if self._header_due:
            if not is_preamble(data, self._delimiter):
                self._use_header(data)
        else:
            found.data.append(data)
            found.places.append(first)
            found.arrivals.append(self._arrival)

    def _next_block(self) -> None:
        self._blocks.popleft()
        self._at = 0

    def _wait_for_header(self) -> None:
        while self._header_due:
            if self._blocks:
                self._take_rows(RawBatch({}, ()), 0)
            elif not self._fill(1.0) and self._ended:
                raise SourceError(f"{self.path} has no header of columns: it is empty", Exit.BAD_DATA)

    def _use_header(self, data: bytes) -> None:
        try:
            names = [name.strip() for name in parse_row(data.decode(), self._delimiter)]
        except (UnicodeDecodeError, RefusedError) as error:
            why = "it is no text" if isinstance(error, UnicodeDecodeError) else error
            raise SourceError(
                f"{self.path} has no readable header of columns: {why}", Exit.BAD_DATA
            ) from None
        if not any(names):
            raise SourceError(f"the CSV header of {self.path} names no column", Exit.BAD_DATA)
        names = _all_different(names)
        if self.header is not None and names != self.header:
            raise SourceError(f"the new file {self.path} has another CSV header", Exit.BAD_DATA)
        self.header, self._header_due, self._body = names, False, self._done


def _all_different(names: list[str]) -> list[str]:
    """The names of columns; what stands there again has a number, as pandas writes it: text, text.1."""
    taken, found, again = {*names}, list[str](), Counter[str]()
    for name in names:
        own = name
        while name and again[name] and own in taken:
            own = f"{name}.{again[name]}"
            again[name] += 1
        again[name] += not again[name]
        taken.add(own)
        found.append(own)
    return found


def is_preamble(line: bytes, delimiter: str) -> bool:
    """Whether a line before the header is a comment, or says what is between cells, as Excel writes it."""
    alone = line.startswith(b"#") and (line[1:2] in (b" ", b"") or delimiter.encode() not in line)
    return alone or (line[:4].lower() == b"sep=" and len(line) < 6)


def check_same(before: object, path: str) -> None:
    """Raise SourceError unless a state goes on with the file that it has read."""
    if before != path:
        raise SourceError(f"the state continues {before}, not {path}; use that name again", Exit.BAD_DATA)
