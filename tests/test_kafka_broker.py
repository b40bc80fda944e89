"""How the tests' broker is had, and what is said when it cannot be."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from broker.process import INSTALL, BrokerError, jars, version


@pytest.mark.parametrize("missing", ["java", "mvn"])
def test_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    monkeypatch.setenv("STREAMDP_TEST_KAFKA_JARS", str(tmp_path / "none"))
    monkeypatch.setattr(shutil, "which", lambda name: None if name == missing else f"/usr/bin/{name}")
    with pytest.raises(BrokerError) as caught:
        jars()
    assert str(caught.value) == INSTALL
    assert "\n" not in INSTALL


def test_jars_that_are_there_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "kafka_2.13-x.jar").touch()
    monkeypatch.setenv("STREAMDP_TEST_KAFKA_JARS", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda name: "/usr/bin/java" if name == "java" else None)
    assert jars() == tmp_path
    assert version()[0] == "4"
