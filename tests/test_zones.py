"""Names of time zones behind times, in heads of log lines and in time fields."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import assignments, fail, succeed
from feeds import raws_of

from streamdp.decode.decoder import Decoder, Format
from streamdp.decode.log_reader import LogReader
from streamdp.decode.zones import offset_of
from streamdp.records import Raw, Record, Reject

WALL = datetime(2026, 1, 5, 10, tzinfo=UTC).timestamp()
SUMMER = datetime(2026, 7, 5, 10, tzinfo=UTC).timestamp()
ARRIVED = datetime(2026, 8, 1, tzinfo=UTC).timestamp()
NAMED = {
    "UTC": 0,
    "GMT": 0,
    "Z": 0,
    "CET": 1,
    "CEST": 2,
    "EET": 2,
    "MSK": 3,
    "JST": 9,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "MST": -7,
    "PST": -8,
    "PDT": -7,
    "Europe/Berlin": 1,
    "America/New_York": -5,
    "America/Argentina/Buenos_Aires": -3,
    "Asia/Kolkata": 5.5,
    "Etc/GMT+5": -5,
    "US/Pacific": -8,
    "GMT+1": 1,
    "UTC+0530": 5.5,
    "UTC-03:00": -3,
    "+0100": 1,
    "-08:00": -8,
}
HEADS = {
    "ISO 8601": "2026-01-05 10:00:00.123 {} [12] LOG:  duplicate key",
    "slashes": "2026/01/05 10:00:00.123 {} [12] LOG:  duplicate key",
    "brackets": "[2026-01-05 10:00:00.123 {}] [12] LOG:  duplicate key",
    "bracketed zone": "2026-01-05 10:00:00.123 [{}] [12] LOG:  duplicate key",
    "PHP": "[05-Jan-2026 10:00:00.123 {}] LOG:  duplicate key",
    "Apache": "[Mon Jan 05 10:00:00.123 {} 2026] [12] LOG:  duplicate key",
    "syslog": "Jan  5 10:00:00.123 {} host LOG[12]: duplicate key",
}


def read(lines: list[str], zone: str | None = None) -> list[Record | Reject]:
    decoder = Decoder("log", time_zone=zone, keep=("level", "component"))
    assert decoder.log is not None
    data = [line.encode() for line in lines]
    decoder.log.learn(data)
    found = LogReader(decoder, decoder.log, decoder.decode).read(
        raws_of(data, arrival=ARRIVED), together=True
    )
    one_by_one = [decoder.decode(raw) for raw in raws_of(data, arrival=ARRIVED)]
    found = found if isinstance(found, list) else found.all()
    assert list(map(repr, found)) == list(map(repr, one_by_one))
    return found


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("zone", NAMED)
def test_the_zone_of_a_line_is_read_and_no_part_of_its_message(head: str, zone: str) -> None:
    for record in read([HEADS[head].format(zone)] * 20):
        assert isinstance(record, Record)
        assert record.value == "duplicate key"
        assert record.time == pytest.approx(WALL + 0.123 - 3600 * NAMED[zone])


def test_zones_of_the_database_know_summer() -> None:
    assert [offset_of("Europe/Berlin", time) for time in (WALL, SUMMER)] == [3600, 7200]
    assert [offset_of("America/New_York", time) for time in (WALL, SUMMER)] == [-18_000, -14_400]


@pytest.mark.parametrize(
    "name", ["IST", "BST", "AST", "Europe/Berln", "X", "../etc/passwd", "/etc", "America/"]
)
def test_a_name_of_several_meanings_or_none_has_no_offset(name: str) -> None:
    assert offset_of(name, WALL) is None


@pytest.mark.parametrize("zone", ["IST", "BST", "Europe/Berln"])
def test_a_line_with_an_unknown_zone_is_a_reject_that_names_it(zone: str) -> None:
    for refused in read([HEADS["ISO 8601"].format(zone)] * 20):
        assert isinstance(refused, Reject)
        assert refused.reason == "bad_time"
        assert zone in refused.detail
        assert "--time-zone" in refused.detail


def test_the_zone_that_is_given_is_for_times_without_one_or_with_an_ambiguous_one() -> None:
    lines = [HEADS["ISO 8601"].format(zone) for zone in ("IST", "PST", "+01:00")]
    lines += ["2026-01-05 10:00:00.123 [12] LOG:  duplicate key", "2026-07-05 10:00:00 LOG:  x"]
    times = [record.time for record in read(lines, "Asia/Kolkata") if isinstance(record, Record)]
    hours = [5.5, -8, 1, 5.5]
    assert times[:4] == pytest.approx([WALL + 0.123 - 3600 * ahead for ahead in hours])
    assert times[4] == SUMMER - 3600 * 5.5


def test_words_that_only_look_like_zones_stay_where_they_are() -> None:
    lines = ["2026-01-05 10:00:00 Zookeeper started", "2026-01-05 10:00:00 PSTORE full"]
    lines += ["2026-01-05 10:00:00 CET-7 is on", "2026-01-05 10:00:00 Europe wins"]
    found = read(lines * 5)
    assert [record.value for record in found[:4] if isinstance(record, Record)] == [
        line[20:] for line in lines
    ]
    assert {record.time for record in found if isinstance(record, Record)} == {WALL}


@pytest.mark.parametrize("form", ["jsonl", "csv", "log"])
@pytest.mark.parametrize("zone", [zone for zone in NAMED if zone[0] not in "+-"])
def test_the_zone_of_a_time_field_is_read(form: Format, zone: str) -> None:
    for time in (f"2026-01-05T10:00:00 {zone}", f"2026-01-05 10:00:00[{zone}]"):
        found = decoded(form, time)
        assert isinstance(found, Record)
        assert found.time == WALL - 3600 * NAMED[zone]


@pytest.mark.parametrize("form", ["jsonl", "csv", "log"])
def test_an_offset_counts_more_than_the_name_behind_it(form: Format) -> None:
    found = decoded(form, "2026-01-05T10:00:00-02:00[Europe/Berlin]")
    assert isinstance(found, Record)
    assert found.time == WALL + 7200


@pytest.mark.parametrize("form", ["jsonl", "csv", "log"])
@pytest.mark.parametrize("zone", ["IST", "BST", "NOWHERE", "Europe/Berln"])
def test_an_unknown_zone_of_a_time_field_is_a_reject_that_names_it(form: Format, zone: str) -> None:
    refused = decoded(form, f"2026-01-05T10:00:00 {zone}")
    assert isinstance(refused, Reject)
    assert refused.reason == "bad_time"
    assert zone in refused.detail
    assert "--time-zone" in refused.detail


@pytest.mark.parametrize("form", ["jsonl", "csv", "log"])
def test_a_time_field_without_a_zone_is_in_the_zone_that_is_given(form: Format) -> None:
    for time, expected in (
        ("2026-01-05T10:00:00", WALL - 3600),
        ("2026-07-05T10:00:00", SUMMER - 7200),
        ("2026-01-05T10:00:00Z", WALL),
    ):
        found = decoded(form, time, time_zone="Europe/Berlin")
        assert isinstance(found, Record)
        assert found.time == expected


def decoded(form: Format, time: str, **options: Any) -> Record | Reject:
    decoder = Decoder(form, **options)
    if form == "csv":
        decoder.header = ["time", "text"]
        return decoder.decode(Raw(f"{time},a b".encode(), {}, ARRIVED))
    return decoder.decode(Raw(msgspec.json.encode({"time": time, "text": "a b"}), {}, ARRIVED))


@pytest.mark.parametrize("form", ["jsonl", "log"])
def test_the_command_takes_the_zone(form: str, tmp_path: Path) -> None:
    line = b'{"time": "2026-01-05T10:00:00", "text": "storm over the coast"}\n'
    data = (line if form == "jsonl" else b"2026-01-05 10:00:00 storm over the coast\n") * 40
    command = ("consume", "-", "--format", form, "--time-zone", "Europe/Berlin")
    answers = assignments(succeed(tmp_path, *command, stdin=data))
    assert {answer["time"] for answer in answers} == {WALL - 3600}


def test_a_zone_that_there_is_none_of_is_refused(tmp_path: Path) -> None:
    code, said = fail(tmp_path, "consume", "-", "--time-zone", "IST")
    assert code == 78
    assert "'IST' is not known: say one like Europe/Berlin" in said


def test_a_zone_stands_behind_a_time_whose_form_is_given(tmp_path: Path) -> None:
    lines = [
        f"01.03.2025 08:00:0{i},000 {zone}WARN slow query" for i, zone in enumerate(("CET ", "", "PST "))
    ]
    (tmp_path / "in.log").write_text("\n".join(lines) + "\n")
    run = ("consume", "in.log", "--format", "log", "--timestamp-format", "%d.%m.%Y %H:%M:%S,%f")
    times = [line["time"] for line in assignments(succeed(tmp_path, *run)) if line["revision"] == 0]
    assert sorted(times) == [1740812400.0, 1740816001.0, 1740844802.0]
