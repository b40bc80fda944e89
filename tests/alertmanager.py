"""A real Alertmanager, of Debian's package."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from commands import wait_for
from ports import free_port
from scraper.process import fetched

VERSION = "0.25.0-1+b4"
SHA256 = {"amd64": "4fb9aed15cfe8e0c32408e643ab32a1e41ee87d2cc26f18aeba928b1b0b98ae7"}
SHARED = b"/usr/share/prometheus/alertmanager"
"""Where Debian's program looks for its templates, and nowhere else."""


def program(folder: Path) -> str:
    """The program: installed, or the pinned one, made to look for its templates in the working folder.

    That path is as long as the one in its place, and the program is of a known checksum.
    """
    (found,) = fetched("prometheus-alertmanager", VERSION, SHA256, ("prometheus-alertmanager",))
    if not found.startswith(str(Path.home())):
        return found
    data = Path(found).read_bytes()
    assert data.count(SHARED) == 3
    changed = folder / "alertmanager"
    changed.write_bytes(data.replace(SHARED, b"./" * (len(SHARED) // 2)))
    changed.chmod(0o700)
    for template in (Path(found).parents[2] / SHARED.decode()[1:]).glob("*.tmpl"):
        shutil.copy(template, folder)
    return str(changed)


class Alertmanager:
    """A server of its own, its data in ``folder``; without a ``config`` it tells nobody of its alerts."""

    def __init__(self, folder: Path, config: str | None = None) -> None:
        self._program = program(folder)
        self._folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        nobody = {"route": {"receiver": "nobody"}, "receivers": [{"name": "nobody"}]}
        (folder / "alertmanager.yml").write_text(config or json.dumps(nobody))  # which is YAML too

    def __enter__(self) -> Alertmanager:
        with (self._folder / "alertmanager.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    self._program,
                    f"--config.file={self._folder / 'alertmanager.yml'}",
                    f"--storage.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--cluster.listen-address=",
                ],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        wait_for(lambda: self._ask("/-/ready") is not None, self._process)
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.wait()

    def _ask(self, path: str) -> bytes | None:
        try:
            with urllib.request.urlopen(f"{self.url}{path}", timeout=10) as answer:
                return bytes(answer.read())
        except OSError:
            return None

    def alerts(self) -> list[dict[str, Any]]:
        """What its own API shows."""
        found: list[dict[str, Any]] = json.loads(self._ask("/api/v2/alerts") or b"[]")
        return found
