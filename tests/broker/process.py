"""A real Kafka broker as a process of its own, to be killed and started again."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from ports import free_port

HERE = Path(__file__).parent
INSTALL = "the Kafka tests need Java and Maven: apt install default-jre-headless maven"
_JAVA = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class BrokerError(Exception):
    """The broker cannot be had: one line."""


def version() -> str:
    """The broker's version, as pom.xml pins it."""
    found = re.search(r"kafka_[\d.]+</artifactId>\s*<version>([^<]+)", (HERE / "pom.xml").read_text())
    assert found
    return found[1]


def jars() -> Path:
    """The folder of the broker's jars, fetched on first use."""
    named = os.environ.get("STREAMDP_TEST_KAFKA_JARS")
    folder = Path(named) if named else Path.home() / ".cache" / "streamdp-tests" / f"kafka-{version()}"
    if shutil.which("java") is None:
        raise BrokerError(INSTALL)
    if folder.is_dir() and any(folder.glob("kafka_*.jar")):
        return folder
    if shutil.which("mvn") is None:
        raise BrokerError(INSTALL)
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
    command = ["mvn", "-B", "-q", "-f", str(HERE / "pom.xml"), "dependency:copy-dependencies"]
    command += ["-DincludeScope=runtime", f"-DoutputDirectory={fresh}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(fresh, ignore_errors=True)
        errors = [line for line in (done.stdout + done.stderr).splitlines() if "ERROR" in line]
        raise BrokerError(f"Maven cannot fetch the Kafka jars: {' '.join(errors[:1])}")
    try:
        fresh.rename(folder)
    except OSError:  # another process was faster
        shutil.rmtree(fresh, ignore_errors=True)
    return folder


class Broker:
    """One broker that is its own controller, with all its files in ``folder``."""

    java = _JAVA

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.controller = free_port(), free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self._classes = str(jars() / "*")
        self.properties = folder / "server.properties"
        template = (HERE / "server.properties").read_text()
        self.properties.write_text(
            template.format(port=self.port, controller=self.controller, data=folder / "data")
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._paused = False

    def format(self, cluster: str = "c3RyZWFtZHAtdGVzdGluZw", *more: str) -> None:
        """Make the broker's empty storage, under the cluster's id: 16 bytes in base64."""
        tool = ("kafka.tools.StorageTool", "format", "-t", cluster, "-c")
        command = ["java", *_JAVA, "-cp", self._classes, *tool, str(self.properties), *more]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerError(f"cannot format the broker's storage: {done.stderr.strip()[-300:]}")

    def start(self) -> None:
        """Start the process, and leave it to itself."""
        command = ["java", *self.java, "-cp", self._classes, "kafka.Kafka", str(self.properties)]
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)

    def wait(self, timeout: float = 180.0) -> None:
        """Wait until it answers."""
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            try:
                with socket.create_connection(("127.0.0.1", self.port), 5.0):
                    pass
                admin = KafkaAdminClient(bootstrap_servers=self.bootstrap, bootstrap_timeout_ms=10_000)
                try:
                    admin.list_topics()
                    return
                finally:
                    admin.close()
            except (OSError, KafkaError):
                time.sleep(0.1)
        tail = (self.folder / "broker.log").read_text()[-500:]
        raise BrokerError(f"the broker did not start: {tail}")

    def stop(self) -> None:
        """End it in order, by force if it takes long."""
        self._signal(signal.SIGTERM)
        self._gone(120.0)

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)
        self._gone(5.0)

    def pause(self) -> None:
        """Let it stand still."""
        self._paused = True
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._paused = False
        self._signal(signal.SIGCONT)

    @property
    def awake(self) -> bool:
        """Whether it runs and does not stand still."""
        return self._process is not None and not self._paused

    def restart(self) -> None:
        """Start it again on the same ports and storage, and wait until it answers."""
        self.start()
        self.wait()

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def _gone(self, timeout: float) -> None:
        if self._process is None:
            return
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None


B = TypeVar("B", bound=Broker)


@contextlib.contextmanager
def started(broker: B) -> Iterator[B]:
    """A broker whose disk is formatted, until the block ends."""
    broker.start()
    try:
        broker.wait()
        yield broker
    finally:
        broker.stop()


@contextlib.contextmanager
def running(folder: Path) -> Iterator[Broker]:
    """A new broker, until the block ends."""
    broker = Broker(folder)
    broker.format()
    with started(broker):
        yield broker


_OF_A_CLUSTER = """
node.id={number}
controller.quorum.voters={voters}
min.insync.replicas=2
replica.lag.time.max.ms=3000
broker.session.timeout.ms=6000
"""


class Cluster:
    """Three brokers that are the controllers too; of what is in three copies two must have a record."""

    def __init__(self, folder: Path) -> None:
        self.members = []
        for number in (1, 2, 3):
            (folder / str(number)).mkdir()
            self.members.append(_Member(folder / str(number)))
        voters = ",".join(f"{i}@127.0.0.1:{each.controller}" for i, each in enumerate(self.members, 1))
        for number, each in enumerate(self.members, 1):
            text = re.sub(r"replication\.factor=1", "replication.factor=3", each.properties.read_text())
            text = re.sub(r"\.min\.isr=1", ".min.isr=2", text)
            each.properties.write_text(text + _OF_A_CLUSTER.format(number=number, voters=voters))
        self.bootstrap = ",".join(each.bootstrap for each in self.members)

    def awake(self) -> str:
        """Where those are that run and do not stand still."""
        return ",".join(each.bootstrap for each in self.members if each.awake)

    def begin(self) -> None:
        """Format and start them all, and wait until they answer."""
        for each in self.members:
            each.format()
            each.start()
        for each in self.members:
            each.wait()

    def stop(self) -> None:
        """End them all."""
        for each in self.members:
            each.resume()
            each.kill()


class _Member(Broker):
    java = ("-Xms128m", "-Xmx256m", *_JAVA[2:])
