"""A long run that is not left in peace: ``python tests/faults/soak.py --minutes 30``.

A broker of its own, a topic of four partitions, and ``streamdp consume`` to a file. What it can do at most is
measured first; then records come at half that rate. Every minute a stranger joins the consumer group,
takes the partitions over, commits other offsets and leaves, which is a rebalance; every five minutes the
run is killed, and started again. In the end every record must have been answered once. What follows ``--``
are more options of the run: ``soak.py --rate 2000 -- --store answers.db --page 8080``.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

if __name__ == "__main__":  # as a command it is not among the tests' paths
    sys.path.insert(0, str(Path(__file__).parents[1]))

from broker.process import Broker, running
from broker.topics import make_topic, produce
from faults.live import Live
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.structs import OffsetAndMetadata

from benchmarks.drifting import demo_stream

PARTITIONS = 4
TEXTS = 20_000
MEASURED = 100_000
"""Records that lie there at first, to measure by."""


class Sample(NamedTuple):
    """What the run told of itself at a moment: seconds since the soak began, its life, records, bytes."""

    seconds: float
    life: int
    lag: float
    memory: float


class Report(NamedTuple):
    """What was seen."""

    rate: float
    produced: int
    answered: int
    lost: int
    doubled: int
    out_of_turn: int
    kills: int
    rebalances: int
    samples: list[Sample]

    def lag(self) -> tuple[float, float, float]:
        """Median, 99th percentile and largest lag in records."""
        lags = [sample.lag for sample in self.samples]
        return float(np.median(lags)), float(np.percentile(lags, 99)), max(lags)

    def memory(self) -> list[float]:
        """Mebibytes at the end of each life."""
        last = {sample.life: sample.memory for sample in self.samples}
        return [round(memory / 2**20, 1) for memory in last.values()]

    def slope(self) -> float:
        """Mebibytes an hour by which memory grew in the second halves of lives, weighed by their length."""
        slopes, weights = [0.0], [0.0]
        for life in {sample.life for sample in self.samples}:
            of_life = [sample for sample in self.samples if sample.life == life]
            late = of_life[len(of_life) // 2 :]
            if len(late) > 2:
                x, y = np.array([(s.seconds / 3600, s.memory / 2**20) for s in late]).T
                slopes.append(float(np.polyfit(x, y, 1)[0]))
                weights.append(len(late))
        return float(np.average(slopes, weights=weights)) if sum(weights) else 0.0


def texts() -> list[str]:
    """What is written, over and over: the stream stays what it is, so that memory should too."""
    return [record.text for record in demo_stream(TEXTS, 1)]


def feed(bootstrap: str, topic: str, rate: float, seconds: float) -> None:
    """Write records that happen now, so many a second, all to be taken by the broker."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20, batch_size=1 << 17)
    encode, written, sent = msgspec.json.encode, texts(), 0
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        for number in range(sent, int(passed * rate)):
            value = encode({"time": time.time(), "text": written[number % TEXTS]})
            producer.send(topic, value, partition=number % PARTITIONS)
        sent = max(sent, int(passed * rate))
        time.sleep(0.01)
    producer.flush(300)
    producer.close()


def disturb(bootstrap: str, topic: str) -> None:
    """Join the group that the run tells its positions, take its partitions, commit others, and leave."""
    group = f"streamdp-{topic}"
    member = KafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    try:
        deadline = time.monotonic() + 120
        while not member.assignment() and time.monotonic() < deadline:
            member.poll(timeout_ms=200)
        member.commit({at: OffsetAndMetadata(1, "", -1) for at in member.assignment()})
    finally:
        member.close()


class Soak:
    """A run, what is done to it, and what it told."""

    def __init__(self, broker: Broker, folder: Path, more: Sequence[str] = ()) -> None:
        self._broker, self._folder = broker, folder
        self.topic = make_topic(broker.bootstrap, PARTITIONS)
        where = ["consume", "--topic", self.topic, "--bootstrap", broker.bootstrap, "--state", "state"]
        self._command = [*where, "--output", "out", "--snapshot-seconds", "5", *more]
        self._life = 0
        self._began = time.monotonic()
        self.samples: list[Sample] = []
        self.run = Live(folder, *self._command)

    def restart(self) -> None:
        """Kill it and start it again."""
        self.run.kill()
        self._life += 1
        self.run = Live(self._folder, *self._command)

    def sample(self) -> float:
        """Note what it tells, if it does; its lag."""
        values: dict[str, float] = {"lag": 0.0}
        for line in self.run.get("metrics")[1].splitlines():
            if line.startswith("streamdp_lag_records{"):
                values["lag"] += float(line.split()[-1])
            elif line.startswith("process_resident_memory_bytes "):
                values["memory"] = float(line.split()[-1])
        if "memory" in values:
            self.samples.append(
                Sample(time.monotonic() - self._began, self._life, values["lag"], values["memory"])
            )
        return values["lag"]

    def most(self) -> float:
        """Records a second that it answers where enough lie there, its start aside."""
        written, encode = texts(), msgspec.json.encode
        self._put([encode({"time": time.time(), "text": text}) for text in written])
        self.run.until(lambda: self._answered() >= TEXTS, 600)  # kernels are there from now on
        self.run.kill()
        self._put([encode({"time": time.time(), "text": written[i % TEXTS]}) for i in range(MEASURED)])
        self.run = Live(self._folder, *self._command)
        self.run.until(lambda: self._answered() > TEXTS, 120)
        first, began = self._answered(), time.monotonic()
        self.run.until(lambda: self._answered() >= TEXTS + MEASURED, 600)
        return (TEXTS + MEASURED - first) / (time.monotonic() - began)

    def _put(self, values: list[bytes]) -> None:
        items = ((i % PARTITIONS, value) for i, value in enumerate(values))
        produce(self._broker.bootstrap, self.topic, items)

    def _answered(self) -> float:
        return self.run.metric("streamdp_stream_records") or 0

    def go(self, rate: float, seconds: float, rebalance_every: float, kill_every: float) -> tuple[int, int]:
        """Let records come and do what is to be done; return how many kills and rebalances there were."""
        spawn = multiprocessing.get_context("spawn")
        feeder = spawn.Process(target=feed, args=(self._broker.bootstrap, self.topic, rate, seconds))
        feeder.start()
        kills = rebalances = 0
        began = time.monotonic()
        while feeder.is_alive():
            passed = time.monotonic() - began
            if passed >= kill_every * (kills + 1):
                self.restart()
                kills += 1
            if passed >= rebalance_every * (rebalances + 1):
                disturb(self._broker.bootstrap, self.topic)
                rebalances += 1
            self.sample()
            time.sleep(1.0)
        assert feeder.exitcode == 0
        return kills, rebalances

    def ends(self) -> dict[int, int]:
        """How many records each partition holds."""
        consumer = KafkaConsumer(bootstrap_servers=self._broker.bootstrap)
        places = [TopicPartition(self.topic, partition) for partition in range(PARTITIONS)]
        try:
            return {at.partition: end for at, end in consumer.end_offsets(places).items()}
        finally:
            consumer.close()

    def finish(self) -> dict[int, int]:
        """Wait until all is answered, and end the run in order; return the ends of the partitions."""
        ends = self.ends()
        self.run.until(lambda: self._answered() >= sum(ends.values()), 600)
        self.run.until(lambda: self.sample() == 0.0, 60)  # how far a topic goes is not asked at every record
        assert self.run.terminate() == 0
        return ends


class Tally(NamedTuple):
    """Records answered; positions without an answer, and with several; lines that are not in their turn."""

    answered: int
    lost: int
    doubled: int
    out_of_turn: int


def tally(path: Path, ends: dict[int, int]) -> Tally:
    """Compare the answers with what was there to be answered."""
    seen = {partition: np.zeros(end, np.uint8) for partition, end in ends.items()}
    revised = np.zeros(sum(ends.values()) + 1, np.uint32)
    answered = out_of_turn = 0
    for line in _lines(path):
        if "seq" not in line:
            continue
        seq, revision = line["seq"], line["revision"]
        if revision:
            revised[seq] += 1
            out_of_turn += seq >= answered or int(revised[seq]) != revision
            continue
        out_of_turn += seq != answered
        answered += 1
        position = line["position"]
        seen[position["partition"]][position["offset"]] += 1
    lost = sum(int((counts == 0).sum()) for counts in seen.values())
    return Tally(answered, lost, sum(int((counts > 1).sum()) for counts in seen.values()), out_of_turn)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    decode = msgspec.json.Decoder().decode
    with path.open("rb") as file:
        for line in file:
            yield decode(line)


def soak(
    broker: Broker,
    folder: Path,
    seconds: float,
    rebalance_every: float,
    kill_every: float,
    rate: float | None,
    more: Sequence[str] = (),
) -> Report:
    """All of it; ``rate`` is records a second, None for half of what is possible."""
    soaked = Soak(broker, folder, more)
    try:
        rate = soaked.most() / 2 if rate is None else rate
        kills, rebalances = soaked.go(rate, seconds, rebalance_every, kill_every)
        ends = soaked.finish()
    finally:
        with contextlib.suppress(OSError):
            soaked.run.kill()
    counted = tally(folder / "out", ends)
    return Report(rate, sum(ends.values()), *counted, kills, rebalances, soaked.samples)


def main() -> int:
    """Run it and say what was seen; 1 where a record was lost or doubled."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rebalance-every", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--kill-every", type=float, default=300.0, metavar="SECONDS")
    parser.add_argument("--rate", type=float, help="records a second (default: half of what is possible)")
    parser.add_argument("more", nargs="*", help="options of the run")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "broker").mkdir()
        with running(folder / "broker") as broker:
            found = soak(
                broker,
                folder,
                60 * asked.minutes,
                asked.rebalance_every,
                asked.kill_every,
                asked.rate,
                asked.more,
            )
    median, high, largest = found.lag()
    print(f"{asked.minutes:g} minutes at {found.rate:,.0f} records/s")
    print(f"{found.kills} kills, {found.rebalances} rebalances")
    print(f"{found.produced:,} records, {found.answered:,} answered")
    print(f"{found.lost} lost, {found.doubled} doubled, {found.out_of_turn} out of turn")
    print(f"lag in records: median {median:,.0f}, p99 {high:,.0f}, largest {largest:,.0f}")
    print(f"memory at the end of each life, MiB: {found.memory()}")
    print(f"memory within lives: {found.slope():+.1f} MiB an hour")
    return 0 if found.lost == found.doubled == found.out_of_turn == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
