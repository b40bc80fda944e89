"""What a release promises, as files: ``python -m tests.golden make``, ``topic`` or ``api``.

``make`` makes the golden states of this release, if it stores anything otherwise; ``topic`` that of a run
over a topic, with a broker of its own; ``api`` lists what ``import streamdp`` offers. The files of a release
are never changed after it.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent), str(TESTS.parent / "connectors")]

from broker.process import running  # noqa: E402
from golden.api import listing  # noqa: E402
from golden.schema import changes  # noqa: E402
from golden.states import (  # noqa: E402
    FOLDER,
    OF_A_TOPIC,
    committed,
    made,
    releases,
    schema_of,
    state_of_a_topic,
    write,
)

from streamdp import __version__  # noqa: E402


def main(arguments: list[str]) -> int:
    """The exit code: 0 where all that is stored is of a version that says so."""
    if arguments == ["api"]:
        path = FOLDER / "api" / f"{__version__}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(listing()) + "\n")
        print(path)
        return 0
    if arguments == ["topic"]:
        path = FOLDER / __version__ / f"{OF_A_TOPIC}.gz"
        with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as broker:
            path.write_bytes(gzip.compress(state_of_a_topic(broker.bootstrap), mtime=0))
        print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
        return 0
    if arguments != ["make"]:
        print(__doc__)
        return 64
    folder, now = FOLDER / __version__, schema_of(made())
    before = schema_of(*(committed(each) for each in releases() if each != folder))
    wrong = {part: found for part in before if part in now and (found := changes(before[part], now[part]))}
    for part, found in wrong.items():
        name = part.partition(" ")[0]
        print(
            f"{part} is stored otherwise than before: raise the version of {name} in streamdp/state/migrate"
        )
        print(*(f"  {line}" for line in found), sep="\n")
    if wrong:
        return 1
    if now.keys() <= before.keys() and not folder.exists():
        print(f"nothing to make: all is stored as in {', '.join(each.name for each in releases())}")
        return 0
    write(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{folder}: {len(made())} files, {size / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
