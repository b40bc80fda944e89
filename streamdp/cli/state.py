"""``streamdp state``: what a state says of itself, whether it is sound, its conversion, and tables of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec

from streamdp._version import __version__
from streamdp.cli.errors import say
from streamdp.cli.show import ago, open_snapshot, open_state
from streamdp.cli.status import counted
from streamdp.cli.tables import TableFormat, write_tables
from streamdp.engine import Engine
from streamdp.errors import ConfigError, Exit, StreamdpError
from streamdp.reports.source import settings_of
from streamdp.settings.load import differences, model_settings
from streamdp.settings.schema import Classes, Settings
from streamdp.state.kept import keep
from streamdp.state.migrate import PARTS, Stamp, stamped, upgraded
from streamdp.state.snapshot import NAME, VERSION, Header, SnapshotError, StateFolder, read, snapshots


def _engine(header: Header, body: bytes, classes: Classes) -> Engine:
    return Engine.loads(body, settings_of(header, classes))


def versions_of(header: Header, body: bytes) -> dict[str, int]:
    """The versions in which a snapshot is written, by part. Raises SnapshotError."""
    try:
        return header.versions | msgspec.msgpack.decode(body, type=Stamp).versions
    except msgspec.MsgspecError as error:
        raise SnapshotError(f"the state is damaged, or not of streamdp ({error})", Exit.BAD_DATA) from None


def info(state: str, *, as_json: bool) -> None:
    """Print what a snapshot says of itself; nothing of its contents is loaded."""
    header, body = open_snapshot(state)
    versions = versions_of(header, body)
    changed = differences(model_settings(Settings()), header.settings)
    if as_json:
        found = msgspec.structs.asdict(header) | {"format": VERSION, "versions": versions, "bytes": len(body)}
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return
    rows = {
        "written by": f"streamdp {header.release}, {header.writer}, {ago(header.written)}",
        "holds": f"{counted(header.seq, 'record')}{', ended' if header.ended else ''}; {len(body):,} bytes",
        "versions": ", ".join(f"{part} {version}" for part, version in sorted(versions.items())),
        "to convert": ", ".join(_outdated(versions)) or "nothing",
        "position": msgspec.json.encode(header.positions).decode(),
        "outputs": msgspec.json.encode(header.outputs).decode(),
        "settings": "; ".join(_now(line) for line in changed) or "the defaults",
    }
    for name, value in rows.items():
        print(f"{name:<11} {value}")


def _now(difference: str) -> str:
    """A difference to the defaults as what it is."""
    name, _, change = difference.partition(": ")
    return f"{name} {change.rpartition(', is ')[2]}"


def _outdated(versions: dict[str, int]) -> list[str]:
    """Parts in earlier versions than those of this release."""
    old = {part: version for part, version in versions.items() if version < PARTS[part]}
    return [f"{part} {version} to {PARTS[part]}" for part, version in sorted(old.items())]


def verify(state: str, classes: Classes) -> int:
    """Load every snapshot of a folder, or one, and say of each whether it is sound; the worst exit code."""
    path, worst = Path(state), 0
    found = snapshots(path) if path.is_dir() else [path]
    if not found or not path.exists():
        raise SnapshotError(f"{state}: holds no snapshot", Exit.NO_INPUT)
    for each in found:
        try:
            header, body = read(each)
            engine = _engine(header, body, classes)
        except StreamdpError as error:
            worst = worst or error.exit_code
            told = error.message.removeprefix(f"{each}: ")
            print(f"{each}: {told}")
            continue
        kind = f" of {engine.kind}" if engine.kind is not None else ""
        clusters = counted(len(engine.census().label), "live cluster")
        print(f"{each}: sound, {counted(header.seq, 'record')}{kind}, {clusters}")
    return worst


def migrate(state: str, classes: Classes) -> None:
    """Replace the newest snapshot, or one, by one in the versions of this release; the one before is kept."""
    path = Path(state)
    if path.exists() and not path.is_dir() and not NAME.fullmatch(path.name):
        raise ConfigError(f"{path}: is not named as snapshots are: name the folder of the state", Exit.USAGE)
    header, body = open_snapshot(state)
    outdated = _outdated(versions_of(header, body))
    if not outdated:
        say(f"{state}: nothing to convert, all is in the versions of streamdp {__version__}")
        return
    folder = StateFolder(path if path.is_dir() else path.parent, keep=sys.maxsize)
    try:
        stored: dict[str, Any] = upgraded(msgspec.msgpack.decode(body))
        fresh = msgspec.msgpack.encode(stamped(stored, stored["versions"]))
        _engine(header, fresh, classes)  # what is not sound replaces nothing
        kept = keep(folder.folder, header)
        folder.write(header, fresh)
    finally:
        folder.close()
    say(f"{state}: converted from streamdp {header.release} ({', '.join(outdated)}); before: {kept}")


def export(state: str, into: str, form: TableFormat, classes: Classes) -> None:
    """Write clusters, records and settings of a snapshot as flat tables, a file each."""
    header, engine = open_state(state, classes)
    written = write_tables(Path(into), form, engine, header.settings)
    say(f"{into}: " + ", ".join(f"{name} ({counted(rows, 'row')})" for name, rows in written.items()))
