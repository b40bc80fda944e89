"""What lines of answers have from their records and templates, on its way to kernels and back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from streamdp.kernels.rows import longer
from streamdp.ledger.written import Frame, Templates
from streamdp.records import Assignment, Final
from streamdp.records.columns import ENCODER, Columns

_READ = (
    *("seq", "label", "founded", "link", "revision", "template", "start", "stop"),
    *("probability", "new_probability", "log_predictive", "novelty"),
    *("lasting_probability", "stability", "confidence", "confidence_labels"),
)
"""What is read of rows, a column at a time: row by row takes four times as long."""


class Frames:
    """The frame of the lines of a batch: the same as before where positions and kept fields are alike."""

    def __init__(self) -> None:
        self._of: tuple[Sequence[bytes], Sequence[str]] = (), ()
        self.frame = Frame(*joined(()), *joined(()))

    def of(self, records: Columns) -> Frame:
        """That of some records; kernels need not be told of another one for each batch."""
        if records.raws is None:
            return self.frame
        framed = records.raws.heads(), records.keep
        if framed != self._of:
            names = [msgspec.json.encode(name) + b":" for name in records.keep]
            self._of, self.frame = framed, Frame(*joined(framed[0]), *joined(names))
        return self.frame


class HeldTemplates:
    """Templates as lines have them, each once: a member of an object with its comma."""

    def __init__(self) -> None:
        self.held = Templates(np.zeros(4096, np.uint8), np.zeros(64, np.int64))
        self._known: dict[bytes, int] = {}

    def _make_room(self, templates: int, letters: int) -> None:
        """Room for so many templates, of so many bytes."""
        held = self.held
        if letters > len(held.letters):
            self.held = self.held._replace(letters=longer(held.letters, 2 * letters))
        if templates > len(held.ends):
            self.held = self.held._replace(ends=longer(held.ends, 2 * templates))

    def numbers(self, templates: Sequence[bytes]) -> list[int]:
        """Which each of them is, -1 where it is empty; new ones are held from now on."""
        known = self._known
        for template in templates:
            if template and template not in known:
                number = len(known)
                begin = int(self.held.ends[number - 1]) if number else 0
                end = begin + len(template)
                self._make_room(number + 1, end)
                self.held.letters[begin:end] = np.frombuffer(template, np.uint8)
                self.held.ends[number] = end
                known[template] = number
        return [known.get(template, -1) for template in templates]

    def of(self, number: int) -> bytes:
        """One of them; empty for -1."""
        if number < 0:
            return b""
        begin = int(self.held.ends[number - 1]) if number else 0
        return self.held.letters[begin : self.held.ends[number]].tobytes()

    def keep(self, numbers: np.ndarray, *, spare: int = 0) -> np.ndarray:
        """Forget the others, where those are more than to ``spare``; the numbers of these from now on."""
        used = np.unique(numbers[numbers >= 0])
        if len(self._known) - len(used) <= spare:
            return numbers
        kept = [self.of(number) for number in used.tolist()]
        self._known.clear()
        self.numbers(kept)
        return np.where(numbers < 0, -1, np.searchsorted(used, numbers))


def as_member(name: str, value: Any) -> bytes:
    """A member of an object of JSON, after a comma; empty where there is no value."""
    return b"" if value is msgspec.UNSET else b',"%b":' % name.encode() + ENCODER.encode(value)


def joined(parts: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Bytes one after the other, and where each ends."""
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return np.frombuffer(b"".join(parts), np.uint8), ends


def objects_of(
    rows: np.ndarray, letters: np.ndarray, templates: HeldTemplates
) -> Iterator[Assignment | Final]:
    """Rows of a ledger as objects."""
    written = letters.data
    for row in zip(*(rows[name].tolist() for name in _READ), strict=True):
        seq, label, founded, link, revision, template, start, stop, *numbers = row
        if revision < 0:
            yield Final(seq)
            continue
        probability, new_probability, log_predictive, novelty, *chances, sure_by = numbers
        lasting, stability, confidence = map(chance_of, chances)
        given = bytes(written[start + 1 : stop]) + templates.of(template)
        yield Assignment(
            seq=seq,
            cluster=label,
            new=bool(founded),
            link=None if link < 0 else link,
            revision=revision,
            probability=probability,
            new_probability=new_probability,
            lasting_probability=lasting,
            stability=stability,
            confidence=confidence,
            confidence_labels=msgspec.UNSET if sure_by != sure_by else int(sure_by),
            log_predictive=log_predictive,
            novelty=novelty,
            **msgspec.json.decode(b"{" + given + b"}"),
        )


def chance_of(chance: float) -> Any:
    """A chance as answers have it: nothing for NaN."""
    return msgspec.UNSET if chance != chance else chance
