"""A real Prometheus, and promtool, of Debian's package."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ports import free_port

VERSION = "2.42.0+ds-5+deb12u1"
SHA256 = {"amd64": "81d59a24fce84f7fbe97a45a4f2914b6a5881b5cd1db2a6a0e129e515e1a5f55"}
INSTALL = "tests need Prometheus and its Alertmanager: apt install prometheus prometheus-alertmanager"


class PrometheusError(Exception):
    """Prometheus cannot be had: one line."""


class Programs(NamedTuple):
    """Where the programs are."""

    prometheus: str
    promtool: str


def programs() -> Programs:
    """Those that are installed, else those of the pinned package."""
    return Programs(*fetched("prometheus", VERSION, SHA256, Programs._fields))


def fetched(package: str, version: str, sums: dict[str, str], names: Sequence[str]) -> list[str]:
    """Programs that are installed, else those of a package, fetched on first use and not installed."""
    installed = [shutil.which(name) for name in names]
    if all(installed):
        return [str(path) for path in installed]
    folder = Path.home() / ".cache" / "streamdp-tests" / f"{package}-{version}"
    if not folder.is_dir():
        _fetch(folder, package, version, sums)
    return [str(folder / "usr" / "bin" / name) for name in names]


def _fetch(folder: Path, package: str, version: str, sums: dict[str, str]) -> None:
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    try:
        _run(["apt-get", "download", f"{package}={version}"], fresh)
        (file,) = fresh.glob(f"{package}_*.deb")
        architecture = file.stem.rpartition("_")[2]
        if hashlib.sha256(file.read_bytes()).hexdigest() != sums.get(architecture):
            raise PrometheusError(f"{file.name} is not the package that was pinned; {INSTALL}")
        _run(["dpkg-deb", "-x", file.name, "."], fresh)
        file.unlink()
        fresh.rename(folder)
    except OSError as error:
        if not folder.is_dir():  # or else another process was faster
            raise PrometheusError(f"{error}; {INSTALL}") from None
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PrometheusError(f"{command[0]}: {' '.join(done.stderr.split())[-200:]}; {INSTALL}")


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run promtool to its end."""
    return subprocess.run([programs().promtool, *arguments], capture_output=True, text=True, check=False)


class Prometheus:
    """A server of its own, its data in ``folder``, that scrapes ``targets`` every second."""

    def __init__(self, folder: Path, rules: Path, targets: list[str], job: str = "streamdp") -> None:
        self.port = free_port()
        self._folder = folder
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": job, "static_configs": [{"targets": targets}]}],
        }
        (folder / "prometheus.yml").write_text(json.dumps(config))  # which is YAML too

    def __enter__(self) -> Prometheus:
        with (self._folder / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    programs().prometheus,
                    f"--config.file={self._folder / 'prometheus.yml'}",
                    f"--storage.tsdb.path={self._folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                ],
                stdout=log,
                stderr=log,
            )
        return self

    def __exit__(self, *_: Any) -> None:
        self._process.kill()
        self._process.wait()

    def ask(self, path: str, **parameters: str) -> Any:
        """What the API answers; None while nobody serves."""
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as page:
                return json.load(page)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None
        except OSError:
            assert self._process.poll() is None, (self._folder / "prometheus.log").read_text()[-500:]
            return None

    def values(self, expression: str) -> list[float]:
        """What an expression answers now."""
        answer = self.ask("query", query=expression)
        if answer is None:
            return []
        if answer["resultType"] == "scalar":
            return [float(answer["result"][1])]
        return [float(series["value"][1]) for series in answer["result"]]

    def until(self, holds: Any, seconds: float = 180.0) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, (self._folder / "prometheus.log").read_text()[-500:]
            time.sleep(0.2)
