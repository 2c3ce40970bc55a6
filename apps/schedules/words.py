"""A specification in words: `at 07:00 on Monday to Friday, in Europe/Berlin`. The server returns cron as calendars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, tzinfo

from temporalio.client import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleRange, ScheduleSpec

from plansurvive.apps.schedules.spec import DAYS, MONTHS
from plansurvive.plans.text.lists import number_of

MAX_TIMES = 8
"""Times of a day that are listed one by one."""
_UNITS = ((604_800, "week"), (86_400, "day"), (3_600, "hour"), (60, "minute"), (1, "second"))


def words(spec: ScheduleSpec) -> list[str]:
    """One sentence per rule, then what bounds all of them."""
    rules = [_calendar(each) for each in spec.calendars]
    rules += [_interval(each) for each in spec.intervals]
    rules += [f"cron {each}" for each in spec.cron_expressions]
    rules += [f"but not {_calendar(each)}" for each in spec.skip]
    return rules or ["never: it has no rule"]


def span(length: timedelta) -> str:
    """A duration: `1 hour 30 minutes`."""
    left = round(length.total_seconds())
    parts: list[str] = []
    for seconds, unit in _UNITS:
        count, left = divmod(left, seconds)
        parts += [number_of(count, unit)] if count else []
    return " ".join(parts) or "0 seconds"


def clock(time: datetime, zone: tzinfo) -> str:
    """A time in a time zone: `Mon 2027-03-29 07:00 CEST (+02:00)`."""
    local = time.astimezone(zone)
    offset = f"{local:%z}"
    named = f"{local:%Z} " if not f"{local:%Z}".startswith(("+", "-")) else ""
    seconds = f":{local:%S}" if local.second else ""
    return f"{local:%a %Y-%m-%d %H:%M}{seconds} {named}({offset[:3]}:{offset[3:5]})"


def _interval(each: ScheduleIntervalSpec) -> str:
    length = span(each.every)
    short = length.removeprefix("1 ") if " " not in length.removeprefix("1 ") else length
    return f"every {short}" + (f", {span(each.offset)} after" if each.offset else "")


def _calendar(each: ScheduleCalendarSpec) -> str:
    days = [_weekdays(each.day_of_week), _month_days(each.day_of_month), _months(each.month)]
    is_daily = not any(days) and len(_values(each.hour)) < 24
    when = [_time(each), *filter(None, days), *(["every day"] if is_daily else [])]
    years = f"in {_list(each.year, str)}" if each.year else ""
    return " ".join(filter(None, [*when, years]))


def _time(each: ScheduleCalendarSpec) -> str:
    seconds, minutes, hours = _values(each.second), _values(each.minute), _values(each.hour)
    if len(hours) * len(minutes) * len(seconds) <= MAX_TIMES:
        exact = [(hour, minute, second) for hour in hours for minute in minutes for second in seconds]
        return f"at {_joined([f'{h:02}:{m:02}' + (f':{s:02}' if s else '') for h, m, s in exact])}"
    parts = [] if seconds == [0] else [_of_clock(each.second, 60, "second")]
    of_hour = _of_clock(each.hour, 24, "hour")
    if minutes != [0] or parts or of_hour.startswith("hour"):
        parts.append(_of_clock(each.minute, 60, "minute"))
    parts.append(of_hour)
    return " of ".join(parts)


def _of_clock(ranges: Sequence[ScheduleRange], whole: int, unit: str) -> str:
    values = _values(ranges)
    if len(values) == whole:
        return f"every {unit}"
    if len(ranges) == 1 and ranges[0].step > 1 and ranges[0].start == 0 and values[-1] + ranges[0].step >= whole:
        return f"every {ranges[0].step} {unit}s"
    return f"{unit} {_list(ranges, str)}"


def _weekdays(ranges: Sequence[ScheduleRange]) -> str:
    return "" if len(_values(ranges)) == 7 else f"on {_list(ranges, lambda day: DAYS[day % 7].capitalize())}"


def _month_days(ranges: Sequence[ScheduleRange]) -> str:
    return "" if len(_values(ranges)) == 31 else f"on day {_list(ranges, str)} of the month"


def _months(ranges: Sequence[ScheduleRange]) -> str:
    return "" if len(_values(ranges)) == 12 else f"in {_list(ranges, lambda month: MONTHS[month - 1].capitalize())}"


def _list(ranges: Sequence[ScheduleRange], name: Callable[[int], str]) -> str:
    return _joined([text for each in ranges for text in _range(each, name)])


def _range(each: ScheduleRange, name: Callable[[int], str]) -> list[str]:
    values = _values([each])
    if each.step <= 1 and len(values) > 2:
        return [f"{name(values[0])} to {name(values[-1])}"]
    return [name(value) for value in values]


def _values(ranges: Sequence[ScheduleRange]) -> list[int]:
    found = {value for each in ranges for value in range(each.start, max(each.start, each.end) + 1, each.step or 1)}
    return sorted(found)


def _joined(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
