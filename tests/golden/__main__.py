"""What is promised, as files: ``python -m tests.golden make`` or ``api``.

``make`` writes what is stored, and in which format; ``api`` lists what ``import streamdp`` offers.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS.parent), str(TESTS.parent / "connectors")]

from golden.api import listing  # noqa: E402
from golden.states import STORED, schema_now  # noqa: E402

from streamdp import __version__  # noqa: E402
from streamdp.state.stamp import FORMAT  # noqa: E402


def main(arguments: list[str]) -> int:
    """The exit code."""
    if arguments == ["api"]:
        path = TESTS / "golden" / "api" / f"{__version__}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(listing()) + "\n")
    elif arguments == ["make"]:
        path = STORED
        path.write_text(json.dumps({"format": FORMAT, "stored": schema_now()}, indent=1) + "\n")
    else:
        print(__doc__)
        return 64
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
