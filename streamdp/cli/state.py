"""``streamdp state``: what a state says of itself, whether it is sound, and tables of it."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from streamdp.answers.listing import ago, counted
from streamdp.cli.tables import TableFormat, write_tables
from streamdp.engine import Engine
from streamdp.errors import Exit, StreamdpError
from streamdp.reports.source import open_snapshot, opened, settings_of
from streamdp.run.messages import say
from streamdp.settings.load import differences, model_settings
from streamdp.settings.schema import Classes, Settings
from streamdp.state.snapshot import Header, SnapshotError, read, snapshots
from streamdp.state.stamp import FORMAT


def _engine(header: Header, body: bytes, classes: Classes) -> Engine:
    return Engine.loads(body, settings_of(header, classes))


def info(state: str, *, as_json: bool) -> None:
    """Print what a snapshot says of itself; nothing of its contents is loaded."""
    header, body = open_snapshot(state)
    changed = differences(model_settings(Settings()), header.settings)
    if as_json:
        found = msgspec.structs.asdict(header) | {"format": FORMAT, "bytes": len(body)}
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return
    rows = {
        "written by": f"streamdp {header.release}, {header.writer}, {ago(header.written)}",
        "holds": f"{counted(header.seq, 'record')}{', ended' if header.ended else ''}; {len(body):,} bytes",
        "format": str(FORMAT),
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


def export(state: str, into: str, form: TableFormat, classes: Classes) -> None:
    """Write clusters, records and settings of a snapshot as flat tables, a file each."""
    header, engine, _ = opened(state, classes)
    written = write_tables(Path(into), form, engine, header.settings)
    say(f"{into}: " + ", ".join(f"{name} ({counted(rows, 'row')})" for name, rows in written.items()))
