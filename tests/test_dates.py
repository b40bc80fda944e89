"""Times in words are read as they are meant, or refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamdp.decode.dates import DAY_FIRST, MONTH_FIRST, AmbiguousError, day_or_month, wall_time
from streamdp.decode.decoder import Decoder
from streamdp.decode.fields import RefusedError, time_cell, time_value
from streamdp.decode.roles import id_column, text_column, time_column
from streamdp.records import Raw, Record

MOMENT = datetime(2014, 3, 10, 16, 52, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Mon, 10 Mar 2014 16:52:00 GMT",
        "Mon, 10 Mar 2014 17:52:00 +0100 (CET)",
        "10 Mar 2014 11:52 EST",
        "Mon Mar 10 16:52:00 +0000 2014",
        "Mon Mar 10 16:52:00 2014",
        "Monday, March 10, 2014 at 4:52 PM",
        "10-MAR-14 4:52:00.000 pm",
        "10/Mar/2014:16:52:00 +0000",
        "10. März 2014, 16:52 Uhr",
        "lundi 10 mars 2014 16:52",
        "10 de marzo de 2014 16:52",
        "10.03.2014 16:52",
        "10.3.14, 16:52",
        "10.03.2014 16.52",
        "2014/03/10 16:52",
        "2014-03-10 4:52 p.m.",
        "2014-03-10 16:52:00 UTC",
        "2014-03-10 16:52:00 +0000",
        "20140310 16:52",
    ],
)
def test_usual_ways_of_writing(text: str) -> None:
    assert time_cell(text, "time") == time_value(text, "time") == MOMENT.timestamp()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("03/10/2014 04:52 PM", "--time-format day-first or --time-format month-first"),
        ("31.02.2014", "day"),
        ("10.13.2014", "month"),
        ("10 Foo 2014", "foo is no month"),
        ("10.03.2014 13:00 PM", "no hour 13"),
        ("10.03.2014 25:00", "hour"),
        ("soon", "no way that is known"),
    ],
)
def test_what_is_no_time_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        time_cell(text, "time")


@given(st.datetimes(datetime(1970, 1, 1), datetime(2068, 1, 1)), st.booleans(), st.booleans())
def test_numbers_with_slashes_are_read_as_their_form_says(moment: datetime, first: bool, half: bool) -> None:
    moment = moment.replace(second=0, microsecond=0)
    day = "%d/%m/%y" if first else "%m/%d/%Y"
    text = moment.strftime(day + (" %I:%M %p" if half else " %H:%M"))
    form = DAY_FIRST if first else MONTH_FIRST
    assert wall_time(text, form)[0] == moment.replace(tzinfo=UTC).timestamp()


@given(
    st.lists(st.datetimes(datetime(2014, 1, 1), datetime(2015, 1, 1)), min_size=1, max_size=30), st.booleans()
)
def test_days_and_months_are_told_apart_rightly_or_not_at_all_where_one_is_above_12(
    moments: list[datetime], first: bool
) -> None:
    values = [moment.strftime("%d/%m/%Y" if first else "%m/%d/%Y") for moment in moments]
    if any(moment.day > 12 for moment in moments):
        assert day_or_month(values) == (DAY_FIRST if first else MONTH_FIRST)


def test_dates_that_follow_each_other_tell_day_and_month_apart() -> None:
    days = [MOMENT - timedelta(days=5) + timedelta(hours=7 * i) for i in range(16)]
    for days_now in (days, days[::-1]):
        assert day_or_month([day.strftime("%m/%d/%Y %H:%M") for day in days_now]) == MONTH_FIRST
        assert day_or_month([day.strftime("%d-%m-%Y") for day in days_now]) == DAY_FIRST
    months = [f"0{i}/01/2014" for i in range(1, 10)]
    for values in (months, ["03/10/2014", "03/10/2014 17:00"], ["03/03/2014"], ["03/04/2014", "05/06/2014"]):
        with pytest.raises(AmbiguousError):
            day_or_month(values)
    assert day_or_month(["storm over coast"]) is None


def test_columns_by_name_and_values() -> None:
    texts = ["storm over coast", "late goal in the cup final"]
    assert text_column({"Summary": texts, "TITLE": texts, "n": ["1", "2"]}) == ("TITLE", ["Summary"])
    assert text_column({"Article Headline": texts, "Description": texts}) == (
        "Description",
        ["Article Headline"],
    )
    assert text_column({"grievance": texts, "place": ["Rome", "Oslo"]}) == ("grievance", [])
    assert text_column({"title": ["1", "2"], "place": ["Rome", "Oslo"], "n": ["1", "2"]}) is None
    assert id_column({"ID": ["1", "2"], "guid": ["a", "b"]}) == "ID"
    assert id_column({"ID": ["1", "1"], "guid": ["a", "b"]}) == "guid"
    stamps = {"updated": ["2014-03-10", "2014-03-11"], "Date Published": ["10.03.2014", "11.03.2014"]}
    assert time_column(stamps) == ("Date Published", None, None)
    assert time_column({"day": ["20140310", "20140331"], "n": ["20140310", "20140399"]}) is None
    assert time_column({"Datum": ["20140310", "20140331"]}) == ("Datum", None, "%Y%m%d")
    assert time_column({"Uhrzeit": ["16:52", "9:05"], "Datum": ["10.03.14", "11.03.14"]}) == (
        "Uhrzeit",
        "Datum",
        None,
    )


def test_rows_with_empty_cells_at_their_ends_are_rows() -> None:
    decoder = Decoder("csv", header=["time", "text"])
    for row in (b"5,storm", b"5,storm,,"):
        found = decoder.decode(Raw(row, {}, 0.0))
        assert isinstance(found, Record)
    decoder = Decoder("csv", header=["time", "text", "", ""])
    assert isinstance(decoder.decode(Raw(b"5,storm", {}, 0.0)), Record)
    assert not isinstance(decoder.decode(Raw(b"5,storm,,,x", {}, 0.0)), Record)
