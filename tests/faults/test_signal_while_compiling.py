"""Kernels compile for a minute on a slow machine: a signal is obeyed at once, and probes know."""

from __future__ import annotations

from pathlib import Path

from broker.process import Broker
from broker.topics import make_topic, produce
from live import Live


def test_the_run_ends_and_its_state_goes_on(own_broker: Broker, tmp_path: Path) -> None:
    topic = make_topic(own_broker.bootstrap)
    produce(own_broker.bootstrap, topic, [(0, b'{"text": "storm over the coast"}')])
    command = ["consume", "--topic", topic, "--bootstrap", own_broker.bootstrap, "--state", "state"]
    with Live(tmp_path, *command, "--output", "out", cache_dir=str(tmp_path / "empty")) as run:
        run.hears("compiling kernels")
        assert run.get("readyz") == (503, "compiling\n")
        assert run.get("livez")[0] == 200
        assert run.terminate() == 0
        assert run.said[-1] == "streamdp: stopped while kernels were being compiled"
    assert list((tmp_path / "state").glob("snapshot-*"))
