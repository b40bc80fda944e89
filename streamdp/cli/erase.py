"""``streamdp erase``: remove records from a state and from all that its runs have written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from streamdp_connectors.files import rewrite as files
from streamdp_connectors.files.checkpoint import FileCheckpoint, edges, is_what_was_left
from streamdp_connectors.files.parquet_sink import PART, complete
from streamdp_connectors.journal import rewrite as journals
from streamdp_connectors.journal.segments import is_journal, segments
from streamdp_connectors.store import rewrite as stores

from streamdp.alerts.outbox import Outbox
from streamdp.answers.listing import counted
from streamdp.decode.answered import is_parquet
from streamdp.engine import Engine
from streamdp.errors import Exit, StreamdpError
from streamdp.records.erased import Erased
from streamdp.records.stored import store_version
from streamdp.reports.source import settings_of
from streamdp.run.messages import say, warn
from streamdp.run.reading import format_of
from streamdp.safe_files import lock, open_regular, written_anew
from streamdp.settings.schema import Classes
from streamdp.state import claim
from streamdp.state.corrections import NAME as CORRECTIONS
from streamdp.state.erasing import FRESH, ErasedFile, Plan
from streamdp.state.kept_rows import NAMES as KEPT
from streamdp.state.snapshot import ERASING, SUFFIX, Header, StateFolder, newest_taken, pack, snapshots

STAYS = (
    "what was counted of them stays: words in their stories, times, positions and labels (docs/stories.md)"
)


class EraseError(StreamdpError):
    """Records cannot be erased."""


class Places:
    """Where records may be: at most one state, stores, and files of lines. Raises EraseError."""

    def __init__(self, paths: Sequence[str]) -> None:
        self.state: Path | None = None
        self.stores: list[Path] = []
        self.files: list[Path] = []
        for path in map(Path, dict.fromkeys(paths)):
            if not path.exists():
                raise EraseError(f"{path}: no such file or folder", Exit.NO_INPUT)
            if path.is_dir():
                if self.state is not None or not (snapshots(path) or (path / ERASING).exists()):
                    what = "name one state at a time" if self.state else "holds no snapshot"
                    raise EraseError(f"{path}: {what}", Exit.USAGE if self.state else Exit.NO_INPUT)
                self.state = path
            elif store_version(path) is not None:
                self.stores.append(path)
            elif path.with_name(path.name + PART).exists():
                self.files.append(path.with_name(path.name + PART))
            elif files.is_ours(path) or path.stat().st_size == 0:
                self.files.append(path)
            else:
                what = "is no folder of a state, no store, and no output of streamdp"
                if is_parquet(path, EraseError):
                    what = f"is Parquet without its lines ({path.name}{PART}): write it anew instead"
                raise EraseError(f"{path}: {what}", Exit.BAD_DATA)
        if self.state is not None:  # rejects, messages, corrections by hand
            found = [*sorted(self.state.glob("*.jsonl")), self.state / CORRECTIONS]
            self.files += [path for path in found if path.is_file()]
        self.files = list(dict.fromkeys(path.resolve() for path in self.files))

    @property
    def journal(self) -> Path | None:
        """The journal of a service."""
        folder = None if self.state is None else self.state / "journal"
        return folder if folder is not None and is_journal(str(folder)) else None

    def check_named(self, header: Header) -> None:
        """See to it that all is named that the state's runs have written. Raises EraseError."""
        given = {os.path.realpath(path) for path in [*self.files, *self.stores]}
        missing = []
        for left in header.outputs.values():
            if "topic" in left:
                say(f"answers in topic {left['topic']} are the broker's: they are not erased here")
            if "scheme" in left:
                say(f"what went to {left['scheme']}:// is not erased here")
            path = left.get("path", "-")
            if path != "-" and os.path.isfile(path) and os.path.realpath(path) not in given:
                table = path.removesuffix(PART)
                missing.append(table if os.path.isfile(table) else path)
        missing += [path for path in self._files_of_alerts() if os.path.realpath(path) not in given]
        if missing:
            raise EraseError(
                f"{self.state} has also written {', '.join(map(_shown, missing))}: name them, too", Exit.USAGE
            )

    def _files_of_alerts(self) -> list[str]:
        """The files that alerts were appended to; what went elsewhere is said."""
        assert self.state is not None
        files = Outbox(self.state, None, lambda: False).files()
        if sent := [name for name, paths in files.items() if not paths]:
            what = f"what went to the receivers of alerts ({', '.join(sent)}) is not erased here"
            say(f"{what}: where these are files, name them too")
        return [path for paths in files.values() for path in paths if os.path.isfile(path)]

    def has(self, name: str) -> bool:
        """Whether a file may be replaced: it is in the folder of the state, or was named."""
        path = Path(os.path.realpath(name))
        inside = self.state is not None and Path(os.path.realpath(self.state)) in path.parents
        return inside or path in self.files

    def look(self, gone: Erased) -> Erased:
        """What all of them know of records."""
        for _ in range(2):  # what one knows tells another what to look for
            for path in self.files:
                gone = _met(gone, files.rows(path))
            for path in self.stores:
                gone = _met(gone, stores.rows(str(path), gone.ids, gone.seqs, every=bool(gone.where)))
            if self.journal is not None:
                gone = _met(gone, journals.rows(self.journal))
        return gone


def _met(gone: Erased, rows: Iterable[dict[str, Any]]) -> Erased:
    """What is known of records, with what rows say of them."""
    for row in rows:
        gone = gone.met(row)
    return gone


def wanted(names: Sequence[str], seqs: Sequence[int], file: str | None, where: Sequence[str]) -> Erased:
    """Which records are meant, by id, by number or by a field. Raises EraseError."""
    names = list(names)
    if file is not None:
        try:
            with open(open_regular(file, follow=True), encoding="utf-8") as lines:
                names += [line.strip() for line in lines if line.strip()]
        except (OSError, UnicodeDecodeError) as error:
            raise EraseError(f"{file}: cannot be read: {error}", Exit.NO_INPUT) from None
    pairs = [tuple(each.split("=", 1)) for each in where]
    if any(len(pair) < 2 or not pair[0] for pair in pairs):
        raise EraseError("--where takes FIELD=VALUE", Exit.USAGE)
    if not names and not seqs and not pairs:
        raise EraseError("say which records: --id, --ids, --seq or --where", Exit.USAGE)
    where_ = tuple((name, value) for name, value in pairs)
    return Erased(ids=frozenset(names), seqs=frozenset(seqs), where=where_)


def erase(paths: Sequence[str], meant: Erased, classes: Classes) -> int:
    """Erase records; the exit code, which says whether all were known. Raises StreamdpError."""
    places = Places(paths)
    with contextlib.ExitStack() as ending:
        state: _State | None = None
        if places.state is not None:
            ending.callback(StateFolder(places.state, erases=True).close)
            state = _State(places, classes)
        for path in places.files:
            ending.callback(os.close, _locked(path))
        if state is not None and state.plan is not None and state.plan.files is not None:
            _carry_out(places, state.plan.gone, state.plan, [])
            state = _State(places, classes)
        asked = meant.ids
        gone = meant if state is None else state.before(meant)
        gone = places.look(gone)
        gone = gone if state is None else state.look(gone)
        unknown = sorted(asked - gone.seen)
        if state is not None:
            unknown += [f"record {seq}" for seq in sorted(meant.seqs) if not 0 <= seq < state.engine.seq]
        if not (gone.seen or gone.seqs) or len(unknown) == len(meant.ids) + len(meant.seqs) > 0:
            names = unknown or [f"{name}={value}" for name, value in meant.where]
            raise EraseError(_unknown(places, names), Exit.NO_INPUT)
        done = list[str]()
        if state is None:  # files are written anew beside the old ones
            fresh = [str(path) for path in places.files if _rewrite(path, gone, done) is not None]
            plan = Plan(gone, fresh)
        else:
            plan = state.prepare(gone, done)
        _carry_out(places, gone, plan, done)
        _tell(gone, done)
    if unknown:
        say(_unknown(places, unknown), "error")
        return Exit.NO_INPUT
    return 0


def _tell(gone: Erased, done: Sequence[str]) -> None:
    """Say what was done."""
    many = counted(max(len(gone.seqs), len(gone.seen)), "record")
    words = f"; {counted(len(gone.words), 'word')} that no other record had" if gone.words else ""
    say(f"erased {many}: {', '.join(done) or 'nothing of them was left'}{words}")
    say(STAYS)


def _shown(path: Path | str) -> str:
    """A path as people write it: from here on, where it is below."""
    short = os.path.relpath(path)
    return str(path) if short.startswith("..") else short


def _unknown(places: Places, names: Sequence[str]) -> str:
    own = [] if places.state is None else [places.state]
    where = [*own, *places.stores, *(path for path in places.files if path.name != CORRECTIONS)]
    shown = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    told = f"nothing is known of {shown} in {', '.join(map(_shown, where[:5]))}"
    numbers = [name[4:] for name in names if name.startswith("seq:") and name[4:].isdecimal()]
    return told + (f" (the number of a record is --seq {numbers[0]})" if numbers else "")


def _locked(path: Path) -> int:
    """A file that no run writes, locked while it is open. Raises EraseError."""
    fd = open_regular(path, follow=True)
    if not lock(fd):
        os.close(fd)
        what = "another streamdp process writes to it; stop it first"
        raise EraseError(f"{path}: {what}", Exit.CANNOT_CREATE)
    return fd


def _carry_out(places: Places, gone: Erased, plan: Plan, done: list[str]) -> None:
    """Change the stores, and put new files in the places of the old ones; again is harmless."""
    for path in places.stores:
        done.append(f"{_shown(path)} ({counted(stores.rewrite(str(path), gone.seqs, gone.scrubbed), 'row')})")
    state = places.state
    outside = [name for name in plan.files or () if not places.has(name)]
    if outside:
        what = f"the erasure that was interrupted was also of {outside[0]}: name it"
        raise EraseError(f"{state}: {what}", Exit.USAGE)
    plan.put_in_place()
    for path in places.files:
        if path.name.endswith(PART) and os.path.exists(str(path).removesuffix(PART)):
            complete(str(path))
    if state is None:
        return
    for each in sorted(state.glob(f"snapshot-*{SUFFIX}*")):
        if each.name != plan.snapshot:
            each.unlink()
    for name in KEPT:
        (state / name).unlink(missing_ok=True)
    (state / ERASING).unlink()
    done.insert(0, str(state))


def _rewrite(path: Path, gone: Erased, done: list[str], places: Sequence[int] = ()) -> dict[int, int] | None:
    """Write a file of lines anew; where places are in it, None where it stays as it is."""
    found = files.rewrite(path, _fresh(path), gone.scrubbed, gone.torn, places)
    if found.lines:
        done.append(f"{_shown(path)} ({counted(found.lines, 'line')})")
    return found.places if found.lines else None


def _fresh(path: Path) -> Path:
    return path.with_name(path.name + FRESH)


class _State:
    """The state that records are erased from, as its newest sound snapshot has it."""

    def __init__(self, places: Places, classes: Classes) -> None:
        assert places.state is not None
        self.folder, self.places = places.state, places
        self.plan = Plan.found(self.folder)
        self._fresh_body = b""
        sign = claim.newest(self.folder)
        if sign is not None and sign.owner is not None and not sign.owner.ended:
            what = "was left by a run that did not end: let it go on, and stop it, before anything is erased"
            raise EraseError(f"{self.folder}: {what}", Exit.CANNOT_CREATE)

        def load(header: Header, body: bytes) -> tuple[Header, Engine]:
            settings = settings_of(header, classes)
            modes = {"final_only": header.modes.get("final_only", False)}
            return header, Engine.loads(
                body, settings, with_events=header.modes.get("events", False), **modes
            )

        found = newest_taken(self.folder, warn, load)
        if found is None:
            raise EraseError(f"{self.folder}: holds no snapshot", Exit.NO_INPUT)
        self.header, self.engine = found
        places.check_named(self.header)
        left = self.header.outputs.get("store")
        for path in places.stores:
            if left is not None and stores.is_ahead(str(path), left):
                what = f"is behind {path}, as its run was killed: let it go on, and stop it, then erase"
                raise EraseError(f"{self.folder}: {what}", Exit.CANNOT_CREATE)

    def before(self, meant: Erased) -> Erased:
        """The records that are meant; with those of an erasure that was interrupted, or was before."""
        erased = ErasedFile(self.folder)
        settings = self.engine.settings
        lines = format_of(settings, str(self.header.positions.get("file"))) in ("text", "log")
        fields = {"id_field": "" if lines else settings.id_field, "text_field": settings.text_field}
        meant = msgspec.structs.replace(meant, **fields)
        meant = meant.with_more(ids=[name for name in meant.ids if erased.holds(name)])
        if self.plan is None:
            return meant
        gone = self.plan.gone
        meant = meant.with_more(gone.seen, gone.seqs, gone.texts, gone.words)
        return msgspec.structs.replace(meant, places=gone.places, numbers=gone.numbers)

    def look(self, gone: Erased) -> Erased:
        """What the state knows of the records, as which it is without them from now on."""
        gone = _met(gone, self.engine.in_clear())
        templates, words = self.engine.forget(gone.seqs, gone.texts)
        gone = gone.with_more(texts=templates, words=words)
        left = self.engine.rewritten(gone.scrubbed)
        self._fresh_body = Engine.loads(left, self.engine.settings).dumps()  # what is sound, or nothing
        return gone

    def prepare(self, gone: Erased, done: list[str]) -> Plan:
        """Write all files anew that hold anything of the records, beside the old ones: which they are."""
        ErasedFile(self.folder).add(gone.seen)
        Plan(gone).write(self.folder)
        outputs = dict(self.header.outputs)
        fresh = []
        for path in self.places.files:
            lefts = {
                name: each for name, left in outputs.items() if (each := _left_at(left, path)) is not None
            }
            found = _rewrite(path, gone, done, [left.length for left in lefts.values()])
            if found is None:
                continue
            fresh.append(str(path))
            for name, left in lefts.items():
                outputs[name] = _left_now(outputs[name], found[left.length], _fresh(path))
        if self.places.journal is not None:
            for segment in segments(self.places.journal):
                path = segment.path
                if count := journals.rewrite(segment, _fresh(path), gone.scrubbed):
                    fresh.append(str(path))
                    done.append(f"{_shown(path)} ({counted(count, 'record')})")
        if "store" in outputs:
            waiting = outputs["store"]["waiting"]
            held = [pair for pair in waiting if pair[0] not in gone.places]
            outputs["store"] = outputs["store"] | {"waiting": held}
        header = msgspec.structs.replace(self.header, outputs=outputs)
        snapshot = self.folder / f"snapshot-{header.seq:015d}{SUFFIX}"
        with written_anew(_fresh(snapshot)) as file:
            file.write(pack(header, self._fresh_body))
        plan = Plan(gone, [*fresh, str(snapshot)], snapshot.name)
        plan.write(self.folder)
        return plan


def _left_at(left: dict[str, Any], path: Path) -> FileCheckpoint | None:
    """What a snapshot remembers of a file, if it is this one. Raises EraseError where that has changed."""
    if "length" not in left:
        return None
    remembered = FileCheckpoint.of(left)
    fd = open_regular(path, follow=True)
    try:
        if remembered.length and is_what_was_left(fd, remembered):
            return remembered
    finally:
        os.close(fd)
    if remembered.length and os.path.realpath(left["path"]) == str(path):
        raise EraseError(f"{path} has changed since its state wrote to it: restore it", Exit.BAD_DATA)
    return None


def _left_now(left: dict[str, Any], length: int, path: Path) -> dict[str, Any]:
    """What a snapshot remembers of a file that was written anew, up to so many bytes."""
    fd = open_regular(path)
    try:
        head, tail = edges(fd, length)
    finally:
        os.close(fd)
    return left | {"length": length, "head": head, "tail": tail}
