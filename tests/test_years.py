"""Times without a year: that of an old file, 29 February, and years that pass within a file."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from commands import assignments, call, succeed
from feeds import raws_of
from hypothesis import given
from hypothesis import strategies as st

from streamdp.decode.decoder import Decoder
from streamdp.decode.log_reader import LogReader
from streamdp.decode.log_times import KNOWN, years_of
from streamdp.records import Record

STYLES = {
    "syslog": "%b %d %H:%M:%S host cron[7]: job done",
    "glog": "I%m%d %H:%M:%S.000000 7 a.cc:1] job done",
    "logcat": "%m-%d %H:%M:%S.000  7  7 I tag: job done",
    "own": "%d.%m. %H:%M:%S job done",
}
OPTIONS = {"own": ("--format", "log", "--timestamp-format", "%d.%m. %H:%M:%S")}


def at(year: int, month: int, day: int, hour: int = 1) -> datetime:
    return datetime(year, month, day, hour, tzinfo=UTC)


def read(
    folder: Path, times: list[datetime], style: str, written: datetime, name: str = "a.log"
) -> list[datetime]:
    """The times that are read of a file that was written then."""
    data = "".join(time.strftime(STYLES[style]) + "\n" for time in times).encode()
    path = folder / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    os.utime(path, (written.timestamp(),) * 2)
    out = succeed(folder, "consume", name, *OPTIONS.get(style, ("--format", "log")), "--max-leap", "1e12")
    return [datetime.fromtimestamp(answer["time"], UTC) for answer in assignments(out)]


@pytest.mark.parametrize("style", STYLES)
def test_the_29_of_february_and_the_days_beside_it_are_of_a_leap_year(style: str, tmp_path: Path) -> None:
    times = [at(2024, 2, 28, hour) for hour in range(6)] + [at(2024, 2, 29, hour) for hour in range(4)]
    times += [at(2024, 3, 1, hour) for hour in range(4)]
    assert read(tmp_path, times, style, at(2026, 11, 3)) == times


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", ["a.log", "a.log.gz"])
def test_an_old_file_is_of_the_year_in_which_it_was_written(style: str, name: str, tmp_path: Path) -> None:
    times = [at(2019, 3, day) for day in range(1, 20)]
    assert read(tmp_path, times, style, at(2019, 3, 20), name) == times


@pytest.mark.parametrize("style", STYLES)
def test_years_pass_within_a_file(style: str, tmp_path: Path) -> None:
    times = [at(2018, 5, 3) + timedelta(days=20 * i) for i in range(50)]
    assert read(tmp_path, times, style, times[-1] + timedelta(days=30)) == times


def test_lines_out_of_order_about_new_year_keep_their_years(tmp_path: Path) -> None:
    times = [at(2020, 12, 31, 23), at(2021, 1, 1, 0), at(2020, 12, 31, 22), at(2021, 1, 1, 2), at(2021, 1, 2)]
    found = read(tmp_path, times, "syslog", at(2021, 1, 3))
    assert found[:2] == times[:2]
    assert found[3:] == times[3:]
    assert found[2].year in (2020, 2021)  # a late line is placed where the stream is


def test_a_file_whose_times_have_an_unknown_zone_is_refused_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("Mar  1 10:00:00 IST host cron[7]: job done\n" * 30)
    done = call(tmp_path, "consume", "a.log", "--format", "log", "--rejects", "r.jsonl")
    assert b"Traceback" not in done.stderr
    assert (tmp_path / "r.jsonl").read_text().count("'IST'") == 30


def test_each_file_of_a_folder_has_its_own_year(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for year in (2015, 2016, 2017):
        path = folder / f"{year}.log"
        path.write_text("".join(f"Mar {day:2} 10:00:00 host cron[7]: job done\n" for day in range(1, 15)))
        os.utime(path, (at(year, 4, 1).timestamp(),) * 2)
    out = succeed(tmp_path, "consume", "logs", "--format", "log", "--max-leap", "1e12")
    years = [datetime.fromtimestamp(answer["time"], UTC).year for answer in assignments(out)]
    assert years == [2015] * 14 + [2016] * 14 + [2017] * 14


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("present", [2023, 2024, 2026, 2028])
def test_no_line_of_29_february_goes_on_with_the_line_before(present: int, together: bool) -> None:
    lines = [f"Feb {day} 10:00:00 host kernel: disk {day} failed".encode() for day in (28, 29, 28, 29)] * 5
    decoder = Decoder("log")
    assert decoder.log is not None
    decoder.log.learn(lines)
    reader = LogReader(decoder, decoder.log, decoder.decode)
    found = list(reader.read(raws_of(lines, arrival=at(present, 6, 1).timestamp()), together=together))
    leap = present - present % 4
    wanted = [at(present if day == 28 else leap, 2, day, 10).timestamp() for day in (28, 29, 28, 29)] * 5
    assert [record.time for record in found if isinstance(record, Record)] == wanted


def test_a_line_a_moment_ahead_of_the_new_year_is_of_that() -> None:
    decoder, lines = Decoder("log"), [b"Jan  1 00:00:05 host kernel: up"] * 20
    assert decoder.log is not None
    decoder.log.learn(lines)
    arrival = datetime(2025, 12, 31, 23, 59, 58, tzinfo=UTC).timestamp()
    for together in (True, False):
        found = LogReader(decoder, decoder.log, decoder.decode).read(
            raws_of(lines, arrival=arrival), together=together
        )
        assert {record.time for record in found if isinstance(record, Record)} == {arrival + 7}


@given(
    st.dates(datetime(1996, 1, 1).date(), datetime(2090, 1, 1).date()),
    st.lists(st.integers(0, 180), min_size=1, max_size=30),
    st.integers(0, 300),
)
def test_the_years_of_a_file_without_gaps_are_found(begin: datetime, steps: list[int], since: int) -> None:
    day = datetime(begin.year, begin.month, begin.day, 10, tzinfo=UTC)
    times = [day := day + timedelta(days=step) for step in steps]
    way = next(way for way in KNOWN if way.name == "logcat")
    matches = [way.pattern.match(f"{time:%m-%d %H:%M:%S} x") for time in times]
    dates = [(number, match) for number, match in enumerate(matches, 1) if match is not None]
    years = years_of(dates, (times[-1] + timedelta(days=since)).timestamp())
    for number, time in enumerate(times, 1):
        reference = max(each for each in years if each[0] <= number)[1]
        assert datetime.fromtimestamp(reference, UTC).year == time.year
