"""Stories out of a path: a state, a store or a file of answers."""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np

from streamdp.engine import Engine
from streamdp.errors import Exit, foreseen
from streamdp.ledger.samples import text_of_kept
from streamdp.lines.holes import Hole
from streamdp.records import Assignment
from streamdp.records.stored import store_version
from streamdp.reports.store import StoreStories
from streamdp.safe_files import open_regular
from streamdp.settings import Settings
from streamdp.settings.load import stored_settings
from streamdp.settings.schema import Classes
from streamdp.state.corrections import Correction, CorrectionError, CorrectionsFile
from streamdp.state.snapshot import MAGIC, Header, SnapshotError, newest, newest_taken, read
from streamdp.story.answers import AnsweredStories, StoriesError, holds, latest_of
from streamdp.story.gather import record_of, with_records
from streamdp.story.story import Stories, Story, StoryRecord

_log = logging.getLogger("streamdp")


def open_snapshot(state: str | Path) -> tuple[Header, bytes]:
    """A snapshot file, or the newest sound snapshot in a folder. Raises SnapshotError."""
    path = Path(state)
    found = newest(path, _log.warning) if path.is_dir() else read(path)
    if found is None:
        raise SnapshotError(f"{state}: holds no snapshot", Exit.NO_INPUT)
    return found


def open_state(state: str | Path, classes: Classes | None = None) -> tuple[Header, Engine]:
    """The engine of a snapshot file, or of the newest sound snapshot in a folder. Raises SnapshotError.

    A folder's engine has what was corrected since its newest snapshot.

    ``classes`` are those that it may import; None: those of the package. Raises ConfigError for others.
    """

    def load(header: Header, body: bytes) -> tuple[Header, Engine]:
        with_events = header.modes.get("events", False)
        return header, Engine.loads(body, settings_of(header, classes or Classes()), with_events=with_events)

    path = Path(state)
    if not path.is_dir():
        return load(*read(path))
    found = newest_taken(path, _log.warning, load)
    if found is None:
        raise SnapshotError(f"{state}: holds no snapshot", Exit.NO_INPUT)
    catch_up(found[1], path)
    return found


def opened(state: str | Path, classes: Classes | None = None) -> tuple[Header, Engine, dict[int, Assignment]]:
    """The same for those who only look: of a run that has ended, with what its last look changed.

    All that shows a state opens it here, so that all show the same. The third is the answers to the latest
    records, by number.
    """
    header, engine = open_state(state, classes)
    known = {answer.seq: answer for answer in engine.open_answers()}
    if header.ended:
        known |= {answer.seq: answer for answer in engine.finish().assignments}
    return header, engine, known


def catch_up(engine: Engine, folder: str | Path) -> CorrectionsFile:
    """Apply what was corrected since an engine was stored; return the file. Raises CorrectionError."""
    file = CorrectionsFile(folder, engine.corrections.taken)
    file.read()
    _apply(engine, file)
    return file


def _apply(engine: Engine, file: CorrectionsFile) -> None:
    for correction in file.since(engine.corrections.taken) if file.corrections else ():
        with contextlib.suppress(CorrectionError):  # the running process says why
            engine.correct(correction)


def append_correction(folder: str | Path, engine: Engine, wanted: Correction) -> Correction:
    """Append a correction to those of a state, durably, if it makes sense to an engine of that state.

    The engine has it then. Raises CorrectionError.
    """
    file = catch_up(engine, folder)
    engine.correct(wanted, check=True)
    made = file.append(wanted)
    _apply(engine, file)
    return made


def settings_of(header: Header, classes: Classes) -> Settings:
    """The settings under which a state was made. Raises SnapshotError (65), and ConfigError for imports."""
    try:
        return stored_settings(header.settings, classes)
    except msgspec.ValidationError as error:
        raise SnapshotError(f"it was made under settings that cannot be: {error}", Exit.BAD_DATA) from None


def is_address(path: str) -> bool:
    """Whether this is where a service is."""
    return path.startswith(("http://", "https://"))


def is_state(path: str | Path) -> bool:
    """Whether this is a folder of snapshots or one of them. Raises StoriesError where nothing is there."""
    if is_address(str(path)):
        how = "streamdp stories lists its stories; for all else name the --state or --store of that service"
        raise StoriesError(f"{path} is an address: {how}", Exit.USAGE)
    if Path(path).is_dir():
        return True
    with foreseen(StoriesError, path, "read", Exit.NO_INPUT):
        if Path(path).exists() and not Path(path).is_file():  # a pipe, which only one may read
            return False
        with open(open_regular(Path(path), follow=True), "rb") as file:
            return file.read(len(MAGIC)) == MAGIC


def retained_records(
    engine: Engine, answers: Mapping[int, Assignment], label: int | None = None
) -> Iterator[tuple[int, StoryRecord]]:
    """The records that an engine retains, with their labels, in order; of one ``label``, or all.

    ``answers`` are those that are known, by number: of other records, only texts and times are.
    """
    labels, times = engine.lately()
    texts = {seq: text for seq, _, text, _ in engine.spoken()}
    first = engine.seq - len(labels)
    chosen = np.arange(len(labels)) if label is None else np.flatnonzero(labels == label)
    for i in chosen.tolist():
        answer, text = answers.get(first + i), texts.get(first + i, "")
        if answer is None:
            time = None if times is None else float(times[i])
            yield int(labels[i]), StoryRecord(seq=first + i, time=time, text=text)
        else:
            yield int(labels[i]), record_of(answer, text, engine.kind, engine.settings)


def holes_of(engine: Engine, label: int) -> list[Hole]:
    """What stands in the holes of a template; nothing of other stories."""
    past = engine.past({label})
    return [] if past is None else past.holes.get(label, [])


class EngineStories:
    """Stories of an engine; ``known`` are answers to its latest records by number, None: those open still."""

    def __init__(self, engine: Engine, known: Mapping[int, Assignment] | None = None) -> None:
        self.engine, self._known = engine, known

    @cached_property
    def _records(self) -> Mapping[int, list[StoryRecord]]:
        """Retained records by label."""
        known = self._known
        if known is None:
            known = {answer.seq: answer for answer in self.engine.open_answers()}
        found = defaultdict[int, list[StoryRecord]](list)
        for label, record in retained_records(self.engine, known):
            found[label].append(record)
        return found

    @property
    def lacking(self) -> str:
        """How much of the stream is not known any more; empty where all is."""
        held, seq = len(self.engine.lately()[0]), self.engine.seq
        return (
            f"a state remembers the last {held:,} of {seq:,} records: a --store has all" if held < seq else ""
        )

    def stories(self, *, closed: bool = False, stretch: float | None = None, muted: bool = False) -> Stories:
        """The live stories, largest first, or the last 100 that ended."""
        return self.engine.stories(closed=closed, stretch=stretch, records=False, muted=muted)

    def in_full(self, story: Story) -> Story:
        """A story with some of its records, and what stands in the holes of a template."""
        holes = [] if story.ended else holes_of(self.engine, story.label)
        return msgspec.structs.replace(with_records(story, self.of(story.label)), holes=holes)

    def of(self, label: int) -> Sequence[StoryRecord]:
        """The retained records of a story."""
        return self._records.get(label, ())

    def records(self, labels: Collection[int], *, latest: bool = False) -> Iterator[tuple[int, StoryRecord]]:
        """The retained records of some stories."""
        for label in sorted(labels):
            for record in reversed(self.of(label)) if latest else self.of(label):
                yield label, record

    def named(self, name: str) -> tuple[int, StoryRecord] | None:
        """The story and the latest retained record of an id."""
        return latest_of(name, self.records(self._records))

    def search(self, words: Sequence[str]) -> set[int]:
        """The stories of which a sample, or kept fields, hold all words."""
        return {
            label
            for label, own in self._records.items()
            if any(holds(f"{record.text} {text_of_kept(record.keep)}", words) for record in own)
        }


class StateStories(EngineStories):
    """Stories of a state; of a run that has ended, with the clusters that its last look left."""

    def __init__(self, state: str | Path, classes: Classes | None = None) -> None:
        self.header, engine, known = opened(state, classes)
        super().__init__(engine, known)


class StorySource(Protocol):
    """Where stories come from."""

    @property
    def lacking(self) -> str:
        """What it does not know, in words; empty where it knows all."""

    def stories(self, *, closed: bool = False, stretch: float | None = None, muted: bool = False) -> Stories:
        """The live stories, or those that ended; those that are ``muted`` only where these are asked for."""

    def in_full(self, story: Story) -> Story:
        """A story with some of its records."""

    def records(self, labels: Collection[int], *, latest: bool = False) -> Iterator[tuple[int, StoryRecord]]:
        """The records of some stories that are known, by story and number; ``latest``: backwards."""

    def named(self, name: str) -> tuple[int, StoryRecord] | None:
        """The story and the latest record of an id; None where none is known."""

    def search(self, words: Sequence[str]) -> set[int]:
        """The stories of which some record holds all words."""


def source_of(path: str | Path, classes: Classes | None = None) -> StorySource:
    """Where the stories of a path come from; ``classes`` as in ``open_state``.

    Raises StreamdpError where it holds none.
    """
    if store_version(path):
        return StoreStories(path)
    return StateStories(path, classes) if is_state(path) else AnsweredStories(path)


def stories(path: str | Path, *, closed: bool = False, stretch: float | None = None) -> Stories:
    """The stories of a state, a store or a file of answers, largest first.

    Parameters
    ----------
    path
        State folder, snapshot, store, or a file of answers that ``streamdp consume`` or ``fit`` wrote.
    closed
        The stories that have ended instead, the latest first, as far as they are remembered.
    stretch
        How long *now* is, in seconds or (without times) records. None: what the latest records took.

    Raises StreamdpError.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> from streamdp import Engine
    >>> path = Path(mkdtemp()) / "answers.jsonl"
    >>> answers = Engine().advance(["storm over the coast", "coast storm"]).assignments
    >>> written = path.write_bytes(msgspec.json.Encoder().encode_lines(answers))
    >>> [(story.label, story.records) for story in stories(path)]
    [(0, 2)]
    """
    source = source_of(path)
    found = source.stories(closed=closed, stretch=stretch)
    return found.like(map(source.in_full, found))
