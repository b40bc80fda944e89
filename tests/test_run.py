"""A run as a Python program has it: the whole of what the command does, and its errors as exceptions."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import call

import streamdp
from streamdp.records import Raw
from streamdp.state.snapshot import headers, snapshots

TEXTS = [f"storm over the {place} coast, {n % 7} boats" for n, place in enumerate(["north", "south"] * 150)]


@pytest.fixture
def news(tmp_path: Path) -> Path:
    path = tmp_path / "news.jsonl"
    lines = [msgspec.json.encode({"id": n, "text": text, "time": n}) for n, text in enumerate(TEXTS)]
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def kept(folder: Path) -> streamdp.Outputs:
    """Where everything goes."""
    return streamdp.Outputs(
        output=str(folder / "answers.jsonl"),
        events=str(folder / "events.jsonl"),
        state=str(folder / "st"),
        store=str(folder / "news.db"),
    )


def written(folder: Path) -> list[bytes]:
    """What a run has written for people."""
    return [(folder / name).read_bytes() for name in ("answers.jsonl", "events.jsonl")]


def test_it_does_what_the_command_does(news: Path, tmp_path: Path) -> None:
    (tmp_path / "command").mkdir()
    more = [
        f"--{name}={value}"
        for name, value in msgspec.structs.asdict(kept(Path())).items()
        if name in ("output", "events", "state", "store")
    ]
    assert call(tmp_path / "command", "consume", str(news), "--beam", "4", *more).returncode == 0
    (tmp_path / "program").mkdir()
    engine = streamdp.Run(news, streamdp.Settings(beam=4), kept(tmp_path / "program")).run()
    assert engine.seq == len(TEXTS)
    assert written(tmp_path / "program") == written(tmp_path / "command")


def test_it_gives_all_answers_and_needs_no_output(news: Path, capfd: pytest.CaptureFixture[str]) -> None:
    found = [
        line.seq for answers in streamdp.Run(str(news)) for line in answers.assignments if not line.revision
    ]
    assert found == list(range(len(TEXTS)))
    assert capfd.readouterr() == ("", "")


def test_a_loop_that_is_left_goes_on_where_it_was(news: Path, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "parts").mkdir()
    settings = streamdp.Settings(snapshot_every=50)
    whole = streamdp.Run(news, settings, kept(tmp_path / "whole"))
    whole.most = 40
    whole.run()
    for _ in range(3):
        run = streamdp.Run(news, settings, kept(tmp_path / "parts"))
        run.most = 40
        for _ in run:
            break
    streamdp.Run(news, settings, kept(tmp_path / "parts")).run()
    assert written(tmp_path / "parts") == written(tmp_path / "whole")


def test_a_loop_that_is_left_at_the_last_answers_has_ended_once(news: Path, tmp_path: Path) -> None:
    outputs = kept(tmp_path)
    count = len(list(streamdp.Run(news)))
    given = iter(streamdp.Run(news, outputs=outputs))
    for _ in range(count):
        next(given)
    before = written(tmp_path), headers(tmp_path / "st")
    given.close()  # type: ignore[attr-defined]
    assert before[1][0].ended
    assert (written(tmp_path), headers(tmp_path / "st")) == before


class Texts:
    """A source of one's own: of texts, the place of which is their number."""

    def __init__(self, texts: list[str]) -> None:
        self.texts, self.at, self.closed = texts, 0, 0

    @property
    def at_end(self) -> bool:
        return self.at >= len(self.texts)

    def read(self, max_records: int, timeout: float) -> list[Raw]:
        first, self.at = self.at, min(self.at + min(max_records, 50), len(self.texts))
        return [
            Raw(msgspec.json.encode({"text": text}), {"number": first + n}, 0.0)
            for n, text in enumerate(self.texts[first : self.at])
        ]

    def positions(self) -> dict[str, Any]:
        return {"number": self.at}

    def seek(self, positions: dict[str, Any]) -> bool:
        self.at = positions["number"]
        return True

    def close(self) -> None:
        self.closed += 1


def test_a_source_of_ones_own(tmp_path: Path) -> None:
    source = Texts(TEXTS)
    run = streamdp.Run(source, outputs=streamdp.Outputs(state=str(tmp_path / "st")))
    thread = None
    for answers in run:
        assert next(line.position for line in answers.assignments) == {"number": answers.assignments[0].seq}
        if thread is None:
            thread = threading.Thread(target=run.stop)
            thread.start()
            thread.join()
    assert source.closed == 1
    assert source.at == 50
    again = streamdp.Run(Texts(TEXTS), outputs=streamdp.Outputs(state=str(tmp_path / "st")))
    assert again.run().seq == len(TEXTS)


def test_errors_are_raised_and_nothing_stays_open(news: Path, tmp_path: Path) -> None:
    with pytest.raises(streamdp.StreamdpError, match="no such file"):
        streamdp.Run(tmp_path / "none.jsonl", outputs=kept(tmp_path))
    assert not (tmp_path / "st").exists()
    streamdp.Run(news, outputs=kept(tmp_path)).run()
    with pytest.raises(streamdp.StreamdpError, match="settings"):
        streamdp.Run(news, streamdp.Settings(beam=3), kept(tmp_path))
    with pytest.raises(streamdp.StreamdpError, match="same file"):
        streamdp.Run(news, outputs=streamdp.Outputs(output=str(news)))
    assert streamdp.Run(news, outputs=kept(tmp_path)).run().seq == len(TEXTS)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"settings": streamdp.Settings(beam=0)}, "setting beam: 0 is not allowed"),
        ({"outputs": streamdp.Outputs(output=7)}, "Outputs: output: 7 is not allowed"),  # type: ignore[arg-type]
        ({"outputs": streamdp.Outputs(store_days=3.0)}, "--store-days is of a store"),
        ({"serving": streamdp.Serving(page=-1)}, "Serving: page: -1 is not allowed"),
        ({"source": streamdp.Input()}, "say where to read"),
        ({"alerts": [streamdp.Alert(name="a b", url="file:a")]}, "alerts, alert 1: .*name"),
        ({"alerts": [streamdp.Alert(name="a", url="file:a")]}, "alerts need a state"),
    ],
)
def test_options_without_a_meaning_are_refused(news: Path, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(streamdp.StreamdpError, match=message):
        streamdp.Run(**{"source": news, **wrong})


def test_where_nothing_could_be_used_that_is_an_error(news: Path) -> None:
    with pytest.raises(streamdp.StreamdpError, match=r"nothing could be used.*text") as caught:
        streamdp.Run(news, streamdp.Settings(text_field="nix")).run()
    assert caught.value.exit_code == 65


def test_what_it_has_to_say_goes_to_a_logger(
    news: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.INFO, "streamdp.run"):
        streamdp.Run(news, outputs=kept(tmp_path)).run()
        streamdp.Run(news, outputs=kept(tmp_path)).run()
    assert f"resuming from record {len(TEXTS)} of {tmp_path / 'st'}" in caplog.messages
    assert capfd.readouterr() == ("", "")


def test_page_and_alerts(news: Path, tmp_path: Path) -> None:
    told = tmp_path / "alerts.jsonl"
    alert = streamdp.Alert(name="desk", url=f"file:{told}", on=("born",))
    serving = streamdp.Serving(page=0)
    run = streamdp.Run(news, outputs=kept(tmp_path), serving=serving, alerts=[alert])
    run.run()
    assert {msgspec.json.decode(line)["event"] for line in told.read_bytes().splitlines()} == {"born"}
    assert snapshots(tmp_path / "st")
