"""When a schedule runs: what people write, what is refused before any server is asked, and the words for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.client import ScheduleCalendarSpec, ScheduleRange, ScheduleSpec

from plansurvive.apps.schedules.server import checked_name
from plansurvive.apps.schedules.spec import BadSchedule, Timing, catchup_of, duration, moment, overlap_of, spec_of
from plansurvive.apps.schedules.words import clock, span, words

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("calendar", "text"),
    [
        ("hour=7 dayOfWeek=mon-fri", "at 07:00 on Monday to Friday"),
        ("hour=7 minute=30", "at 07:30 every day"),
        ("hour=*/2", "every 2 hours every day"),
        ("hour=*", "every hour"),
        ("minute=5 hour=*", "minute 5 of every hour"),
        ("minute=*/10 hour=8-17 dayOfWeek=1-5", "every 10 minutes of hour 8 to 17 on Monday to Friday"),
        ("hour=8-17", "minute 0 of hour 8 to 17 every day"),
        ("dayOfMonth=1 month=jan,jul", "at 00:00 on day 1 of the month in January and July"),
        ("second=*/5 minute=* hour=*", "every 5 seconds of every minute of every hour"),
        ('{"hour": "7,9,11", "year": 2027}', "at 07:00, 09:00 and 11:00 every day in 2027"),
    ],
)
def test_a_calendar_is_said_back_in_words(calendar: str, text: str) -> None:
    assert words(spec_of(Timing(calendar=[calendar]))) == [text]


@pytest.mark.parametrize(
    ("every", "text"),
    [
        ("1h", "every hour"),
        ("1h30m", "every 1 hour 30 minutes"),
        ("1d@2h", "every day, 2 hours after"),
        ("90s", "every 1 minute 30 seconds"),
    ],
)
def test_an_interval_is_said_back_in_words(every: str, text: str) -> None:
    assert words(spec_of(Timing(every=[every]))) == [text]


def test_several_rules_bounds_and_a_time_zone_make_one_specification() -> None:
    bounds = {"jitter": "30s", "start": "2027-03-28", "end": "2027-03-29T00:00Z"}
    found = spec_of(Timing(cron=["0 7 * * *"], every=["2h"], timezone="Europe/Berlin", **bounds))
    assert found.cron_expressions == ["0 7 * * *"]
    assert (found.time_zone_name, found.jitter) == ("Europe/Berlin", timedelta(seconds=30))
    assert found.start_at == datetime(2027, 3, 27, 23, tzinfo=UTC)
    assert found.end_at == datetime(2027, 3, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("timing", "says"),
    [
        ({}, "say when it runs"),
        ({"cron": ["0 7 * *"]}, "5 fields"),
        ({"cron": ["@every 5m"]}, "write --every 5m"),
        ({"cron": ["CRON_TZ=UTC 0 7 * * *"]}, "--timezone"),
        ({"every": ["0s"]}, "too frequent"),
        ({"every": ["5"]}, "is not a duration"),
        ({"every": ["999999w"]}, "longer than ten years"),
        ({"every": ["1h@2h"]}, "shorter than the interval"),
        ({"calendar": ["hours=7"]}, "did you mean 'hour'?"),
        ({"calendar": ["hour=25"]}, "a number from 0 to 23"),
        ({"calendar": ["hour=7-3"]}, "the smaller one first"),
        ({"calendar": ["dayOfWeek=funday"]}, "'funday' is not a number or a name of one"),
        ({"calendar": ["tomorrow"]}, 'write "hour=7'),
        ({"calendar": ['{"hour": ']}, 'write "hour=7'),
        ({"every": ["1h"], "timezone": "Europe/Berlon"}, "did you mean 'Europe/Berlin'?"),
        ({"every": ["1h"], "timezone": "Mars"}, "is not a time zone"),
        ({"every": ["1h"], "start": "soon"}, "--start 'soon' is not a time"),
        ({"every": ["1h"], "start": "2027-01-02", "end": "2027-01-01"}, "nothing would ever run"),
    ],
)
def test_what_cannot_be_a_time_is_refused_with_its_option(timing: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSchedule) as caught:
        spec_of(Timing.model_validate(timing))
    assert says in caught.value.message


def test_an_unknown_policy_a_short_window_and_a_bad_name_are_refused() -> None:
    with pytest.raises(BadSchedule, match="did you mean 'skip'"):
        overlap_of("skipp")
    with pytest.raises(BadSchedule, match="shortest catch-up window"):
        catchup_of("5s")
    for name in ("", "a b", "plan-a", "agent-a", "x" * 151, "a:b", "../a"):
        with pytest.raises(BadSchedule):
            checked_name(name)
    assert checked_name("nightly.v2") == "nightly.v2"


def test_a_time_without_an_offset_is_meant_in_the_time_zone_of_the_schedule() -> None:
    assert moment("2027-03-28T07:00", BERLIN, "--from") == datetime(2027, 3, 28, 5, tzinfo=UTC)
    assert moment("2027-03-28T07:00Z", BERLIN, "--from") == datetime(2027, 3, 28, 7, tzinfo=UTC)
    with pytest.raises(BadSchedule):
        moment("9999-12-31T23:59:59-12:00", BERLIN, "--from")


def test_a_time_is_shown_in_its_zone_with_its_offset() -> None:
    assert clock(datetime(2027, 3, 28, 1, 30, tzinfo=UTC), BERLIN) == "Sun 2027-03-28 03:30 CEST (+02:00)"
    assert clock(datetime(2027, 3, 28, 1, 30, 5, tzinfo=UTC), ZoneInfo("America/Sao_Paulo")).endswith(
        "22:30:05 (-03:00)"
    )


@pytest.mark.slow
@pytest.mark.in_turn
@given(st.text(max_size=60))
def test_no_text_breaks_the_parsers(text: str) -> None:
    for given_ in (
        Timing(cron=[text]),
        Timing(every=[text]),
        Timing(calendar=[text]),
        Timing(every=["1h"], timezone=text),
    ):
        try:
            words(spec_of(given_))
        except BadSchedule:
            continue


@given(st.integers(0, 10**8))
def test_a_duration_is_read_back_as_it_was_said(seconds: int) -> None:
    length = timedelta(seconds=seconds)
    short = "".join(part if part.isdigit() else part[0] for part in span(length).split())
    assert duration(short, "--every") == length


@given(
    st.lists(
        st.builds(ScheduleRange, st.integers(0, 60), st.integers(0, 60), st.integers(0, 70)), min_size=1, max_size=3
    )
)
def test_a_specification_of_others_is_said_in_words_whatever_it_holds(ranges: list[ScheduleRange]) -> None:
    days = [ScheduleRange(each.start % 7, each.end % 7, each.step) for each in ranges]
    months = [ScheduleRange(each.start % 12 + 1, each.end % 12 + 1, each.step) for each in ranges]
    spec = ScheduleSpec(
        calendars=[ScheduleCalendarSpec(second=ranges, minute=ranges, hour=ranges, day_of_week=days, month=months)]
    )
    assert words(spec)[0]
