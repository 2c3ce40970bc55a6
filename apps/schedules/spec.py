"""When a schedule starts runs: what a person writes, as a specification for Temporal. Asks no server.

    Timing(cron=["0 7 * * mon-fri"], timezone="Europe/Berlin", jitter="30s")

Mistakes that can be seen here are refused here, with the option they are in; a cron expression is read by the server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import chain
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field
from temporalio.client import ScheduleCalendarSpec, ScheduleIntervalSpec, ScheduleOverlapPolicy, ScheduleRange
from temporalio.client import ScheduleSpec as Spec

from plansurvive.plans.definition.near_names import Hints
from plansurvive.plans.errors import PlanError
from plansurvive.plans.model import Value

MIN_EVERY = timedelta(seconds=1)
"""Shortest interval that Temporal accepts."""
MIN_CATCHUP = timedelta(seconds=10)
"""Shortest catch-up window; Temporal quietly takes this for a shorter one."""
CATCHUP = timedelta(days=1)
"""Default: what a machine missed that slept overnight. Temporal's own default is a year."""
LONGEST = timedelta(days=3_653)
OVERLAPS: Mapping[str, ScheduleOverlapPolicy] = MappingProxyType({
    "skip": ScheduleOverlapPolicy.SKIP,
    "buffer": ScheduleOverlapPolicy.BUFFER_ALL,
    "cancel": ScheduleOverlapPolicy.CANCEL_OTHER,
    "allow": ScheduleOverlapPolicy.ALLOW_ALL,
})  # fmt: skip
"""What happens to a run that is due while the one before it has not ended."""
FIELDS: Mapping[str, tuple[int, int]] = MappingProxyType({
    "second": (0, 59), "minute": (0, 59), "hour": (0, 23), "dayOfMonth": (1, 31), "month": (1, 12),
    "year": (2000, 2100), "dayOfWeek": (0, 6),
})  # fmt: skip
"""Fields of a calendar, with their least and greatest value; Sunday is 0."""
DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october",
          "november", "december")  # fmt: skip
_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:\d{1,6}[wdhms]){1,5}")
_PART = re.compile(r"(\d{1,6})([wdhms])")
_RANGE = re.compile(r"(?:\*|(\w{1,9})(?:-(\w{1,9}))?)(?:/(\d{1,2}))?")


class BadSchedule(PlanError):
    """A schedule that cannot be: the message names the option and says what to write."""

    code = "BAD_SCHEDULE"


class Timing(Value):
    """When, as a person writes it. At least one of `cron`, `every` and `calendar`."""

    cron: list[str] = Field(default_factory=list)
    """Expressions of 5 fields (minute hour day month weekday); of 6 with a year; of 7 with seconds before."""
    every: list[str] = Field(default_factory=list)
    """Intervals, counted from 1970: `1h`; with `@` and an offset, `1h@15m` is a quarter past each hour."""
    calendar: list[str] = Field(default_factory=list)
    """`hour=7 minute=30 dayOfWeek=mon-fri`, or the same as a JSON object."""
    timezone: str = "UTC"
    """Name in the IANA database."""
    jitter: str | None = None
    """Each run starts later by a random time up to this."""
    start: str | None = None
    end: str | None = None
    """No runs before, none after: ISO 8601, in `timezone` unless it has an offset."""


def spec_of(timing: Timing) -> Spec:
    """The specification for Temporal. Raises BadSchedule."""
    if not (timing.cron or timing.every or timing.calendar):
        raise BadSchedule('say when it runs: --cron "0 7 * * *", --every 1h or --calendar "hour=7 dayOfWeek=mon-fri"')
    zone = zone_of(timing.timezone)
    start = moment(timing.start, zone, "--start") if timing.start else None
    end = moment(timing.end, zone, "--end") if timing.end else None
    if start and end and end <= start:
        raise BadSchedule("--end is not after --start, so nothing would ever run")
    return Spec(
        cron_expressions=[_cron(text) for text in timing.cron],
        intervals=[_interval(text) for text in timing.every],
        calendars=[_calendar(text) for text in timing.calendar],
        start_at=start,
        end_at=end,
        jitter=duration(timing.jitter, "--jitter") if timing.jitter else None,
        time_zone_name=timing.timezone,
    )


def overlap_of(name: str) -> ScheduleOverlapPolicy:
    """The policy of that name. Raises BadSchedule."""
    if name not in OVERLAPS:
        raise BadSchedule(f"--overlap {name!r}: write one of {', '.join(OVERLAPS)}{Hints().question(name, OVERLAPS)}")
    return OVERLAPS[name]


def catchup_of(text: str | None) -> timedelta:
    """The catch-up window. Raises BadSchedule."""
    found = duration(text, "--catchup") if text else CATCHUP
    if found < MIN_CATCHUP:
        raise BadSchedule(f"--catchup {text}: the shortest catch-up window is 10s")
    return found


def zone_of(name: str) -> tzinfo:
    """The time zone; UTC for one that only the server may know. Raises BadSchedule if it is unknown."""
    known = available_timezones()  # empty on a machine without the database: then the server decides
    if not known:
        return UTC
    if name not in known:
        near = Hints(10**8).question(name, {each for each in known if each[:1].lower() == name[:1].lower()})
        raise BadSchedule(f"--timezone {name!r} is not a time zone{near or ', such as Europe/Berlin or UTC'}")
    return ZoneInfo(name)


def duration(text: str, option: str) -> timedelta:
    """A time such as `90s`, `1h30m` or `2d`. Raises BadSchedule."""
    if not _DURATION.fullmatch(text):
        raise BadSchedule(f"{option} {text!r} is not a duration; write 30s, 15m, 1h30m or 2d")
    found = timedelta(seconds=sum(int(number) * _UNITS[unit] for number, unit in _PART.findall(text)))
    if found > LONGEST:
        raise BadSchedule(f"{option} {text}: longer than ten years")
    return found


def moment(text: str, zone: tzinfo, option: str) -> datetime:
    """A time in ISO 8601, in UTC; without an offset it is meant in `zone`. Raises BadSchedule."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadSchedule(f"{option} {text!r} is not a time; write 2027-03-28 or 2027-03-28T07:00+02:00") from None


NICKNAMES = ("@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually")
"""What stands for five fields."""


def _cron(text: str) -> str:
    """The expression, for the server to read."""
    shown = f"--cron {text!r}"
    if "TZ=" in text:
        raise BadSchedule(f"{shown}: name the time zone with --timezone, not in the expression")
    if text.startswith("@every"):
        raise BadSchedule(f"{shown}: write --every {text.removeprefix('@every').strip() or '1h'}")
    if text.startswith("@") and text not in NICKNAMES:
        near = Hints().near(text, NICKNAMES)
        raise BadSchedule(f"{shown}: {f'did you mean {near}? ' if near else ''}There are {', '.join(NICKNAMES)}")
    if not text.startswith("@") and not 5 <= len(text.partition("#")[0].split()) <= 7:
        raise BadSchedule(f'{shown} does not have 5 fields: minute, hour, day, month, weekday, as in "0 7 * * *"')
    return text


def _interval(text: str) -> ScheduleIntervalSpec:
    length, at, offset = text.partition("@")
    found = duration(length, "--every")
    if found < MIN_EVERY:
        raise BadSchedule(f"--every {text} is too frequent; the shortest interval is 1s")
    shift = duration(offset, "--every") if at else None
    if shift is not None and shift >= found:
        raise BadSchedule(f"--every {text}: the offset after `@` is shorter than the interval")
    return ScheduleIntervalSpec(every=found, offset=shift)


def _calendar(text: str) -> ScheduleCalendarSpec:
    given = _fields(text)
    ranges = {name: [_range(name, part, value) for part in value.split(",")] for name, value in given.items()}
    # What is finer than the finest field that is given is 0; without any, it would be midnight.
    return ScheduleCalendarSpec(
        second=ranges.get("second", (ScheduleRange(0),)),
        minute=ranges.get("minute", (ScheduleRange(0),)),
        hour=ranges.get("hour", (ScheduleRange(0),)),
        day_of_month=ranges.get("dayOfMonth", (ScheduleRange(1, 31),)),
        month=ranges.get("month", (ScheduleRange(1, 12),)),
        year=ranges.get("year", ()),
        day_of_week=ranges.get("dayOfWeek", (ScheduleRange(0, 6),)),
    )


def _fields(text: str) -> dict[str, str]:
    try:
        data: Any = json.loads(text) if text.lstrip().startswith("{") else dict(_pair(each) for each in text.split())
    except ValueError:
        data = None
    if not isinstance(data, dict) or not data:
        raise BadSchedule(f'--calendar {text!r}: write "hour=7 minute=30 dayOfWeek=mon-fri"')
    unknown = next((name for name in data if name not in FIELDS), None)
    if unknown is not None:
        near = Hints().question(unknown, FIELDS) or f"; there are {', '.join(FIELDS)}"
        raise BadSchedule(f"--calendar: unknown field {unknown!r}{near}")
    return {name: str(value) for name, value in data.items()}


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(text)
    return name, value


def _range(name: str, part: str, whole: str) -> ScheduleRange:
    least, most = FIELDS[name]
    found = _RANGE.fullmatch(part.strip())
    if found is None:
        raise BadSchedule(f"--calendar {name}={whole}: write a number, 1-5, */2 or 1,3,5")
    first = _number(name, found[1], whole) if found[1] else least
    last = _number(name, found[2], whole) if found[2] else most if not found[1] or found[3] else first
    if not least <= first <= last <= most:
        raise BadSchedule(f"--calendar {name}={whole}: a number from {least} to {most}, the smaller one first")
    return ScheduleRange(first, last, int(found[3] or 1) or 1)


def _number(name: str, text: str, whole: str) -> int:
    if text.isdecimal():
        return int(text)
    names = {"dayOfWeek": (DAYS, 0), "month": (MONTHS, 1)}.get(name, ((), 0))
    for number, each in enumerate(chain(names[0]), names[1]):
        if len(text) >= 3 and each.startswith(text.lower()):
            return number
    raise BadSchedule(f"--calendar {name}={whole}: {text!r} is not a number or a name of one")
