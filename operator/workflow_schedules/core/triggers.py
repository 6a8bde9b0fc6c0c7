"""What a trigger is: the parsed calendar of a schedule, the days it names, and its one-shot form.

Zones, wall-clock times and instants are due_times' business, and so is croniter.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from itertools import accumulate

from workflow_schedules.api.schedule import RepeatedTimePolicy, SkippedTimePolicy
from workflow_schedules.core.zones import FIRST_SECOND, LAST_SECOND, to_seconds


class InvalidTriggerError(ValueError):
    """A trigger that can't be used; the message names the field, the value and what would do.

    Attributes:
        field: path below ``spec``.
        reason: CamelCase cause for the `Accepted` condition.
    """

    def __init__(self, *, field: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.reason = reason


@dataclass(frozen=True, kw_only=True, eq=False)
class CronTrigger:
    """A parsed cron expression in its zone; hashed by identity, shared by (expression, zone).

    Attributes:
        minutes: minutes of the hour, ascending.
        hours: hours of the day, ascending.
        days: days of the month.
        months: months of the year.
        weekdays: weekdays, 0 is Sunday.
        last_day: the day field names the last day of the month (``L``).
        nearest_weekday: day whose nearest working day is meant (``15W``), or None.
        days_restricted: the day field is not a bare ``*``.
        nth_weekdays: (weekday, n) pairs of ``5#3``; n is -1 for the last one (``L5``).
        weekdays_restricted: the weekday field is not a bare ``*``.
    """

    expression: str
    zone_name: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    months: frozenset[int]
    days: frozenset[int]
    last_day: bool
    nearest_weekday: int | None
    days_restricted: bool
    weekdays: frozenset[int]
    nth_weekdays: frozenset[tuple[int, int]]
    weekdays_restricted: bool

    @property
    def is_every_hour(self) -> bool:
        """Tell whether the hour field admits all 24 hours: then nothing is made up for a gap."""
        return len(self.hours) == 24

    @cached_property
    def minutes_of_day(self) -> tuple[int, ...]:
        """Return the minutes of a matching day, ascending."""
        return tuple(hour * 60 + minute for hour in self.hours for minute in self.minutes)


@dataclass(frozen=True, kw_only=True, eq=False)
class Calendar:
    """Everything that says when a cron schedule is due; hashed by identity.

    Attributes:
        crons: their union, all in one zone; equal instants are one.
        skipped: what happens to a wall-clock time inside a gap.
        repeated: what happens to the second pass of a repeated wall-clock time.
        excluded: dates, as days since 1970 in the zone, on which due instants are skipped.
        first: no instant before this UTC second.
        last: no instant after this UTC second.
    """

    crons: tuple[CronTrigger, ...]
    skipped: SkippedTimePolicy = SkippedTimePolicy.NEXT_VALID
    repeated: RepeatedTimePolicy = RepeatedTimePolicy.BOTH
    excluded: frozenset[int] = frozenset()
    first: int = FIRST_SECOND
    last: int = LAST_SECOND

    @cached_property
    def months(self) -> frozenset[int]:
        """Return the months in which any of its expressions may fire."""
        return frozenset().union(*(cron.months for cron in self.crons))

    @property
    def zone_name(self) -> str:
        """Return the IANA name of the zone that all its expressions are read in."""
        return self.crons[0].zone_name


@dataclass(frozen=True, slots=True, kw_only=True)
class OneShotTrigger:
    """One instant.

    Attributes:
        instant: UTC seconds since 1970.
        zone_name: for the dates to exclude, and for people.
        excluded: dates, as days since 1970 in the zone, on which it is skipped.
    """

    instant: int
    zone_name: str = "UTC"
    excluded: frozenset[int] = frozenset()


Trigger = CronTrigger | Calendar | OneShotTrigger


def parse_one_shot(text: str) -> OneShotTrigger:
    """Parse an RFC 3339 instant with an explicit offset.

    Raises:
        InvalidTriggerError: no offset, no such date or second, or beyond the calendar.

    Source: contract R7.
    """
    hint = "write an RFC 3339 time with an offset, for example 2026-09-08T12:00:00Z"
    pattern = r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
    if not re.fullmatch(pattern, text, re.ASCII):
        raise InvalidTriggerError(
            field="runOnceTime", reason="InvalidSchedule", message=f"spec.runOnceTime: {text!r} is no instant; {hint}"
        )
    try:
        seconds = to_seconds(datetime.fromisoformat(text.upper()).astimezone(UTC))
    except (ValueError, OverflowError) as error:
        raise InvalidTriggerError(
            field="runOnceTime",
            reason="InvalidSchedule",
            message=f"spec.runOnceTime: {text!r} does not exist ({error}); {hint}",
        ) from error
    if seconds > LAST_SECOND:
        raise InvalidTriggerError(
            field="runOnceTime",
            reason="InvalidSchedule",
            message=f"spec.runOnceTime: {text!r} is beyond the calendar; write a time before 9999-12-31T00:00:00Z",
        )
    return OneShotTrigger(instant=seconds)


@lru_cache(maxsize=65536)
def matching_days(trigger: CronTrigger, year: int, month: int) -> frozenset[int]:
    """Return the days of a month on which a trigger fires.

    Both day fields restricted join with OR; only a bare ``*`` is unrestricted.

    Source: contract R5.
    """
    if month not in trigger.months:
        return frozenset()
    last = calendar.monthrange(year, month)[1]
    by_day = _days_of_month(trigger, year, month, last)
    by_weekday = _days_by_weekday(trigger, year, month, last)
    match trigger.days_restricted, trigger.weekdays_restricted:
        case True, True:
            return by_day | by_weekday
        case True, False:
            return by_day
        case False, True:
            return by_weekday
        case _:
            return frozenset(range(1, last + 1))


@lru_cache(maxsize=65536)
def minutes_by_day(calendar_: Calendar, year: int, month: int) -> dict[int, tuple[int, ...]]:
    """Return the minutes of the day on which a calendar fires, for each day of a month on which it does.

    Source: contract R5 (union of crons).
    """
    days = [matching_days(cron, year, month) for cron in calendar_.crons]
    return {
        day: _union(tuple(cron for cron, matching in zip(calendar_.crons, days, strict=True) if day in matching))
        for day in sorted(frozenset().union(*days))
    }


@lru_cache(maxsize=16384)
def counts_by_day(calendar_: Calendar, year: int, month: int) -> tuple[int, ...]:
    """Return how often a calendar fires in a month before each of its days, and in all of it."""
    found, last = minutes_by_day(calendar_, year, month), calendar.monthrange(year, month)[1]
    return tuple(accumulate((len(found.get(day, ())) for day in range(1, last + 1)), initial=0))


@lru_cache(maxsize=65536)
def _union(crons: tuple[CronTrigger, ...]) -> tuple[int, ...]:
    if len(crons) == 1:
        return crons[0].minutes_of_day
    return tuple(sorted({minute for cron in crons for minute in cron.minutes_of_day}))


def _days_of_month(trigger: CronTrigger, year: int, month: int, last: int) -> frozenset[int]:
    found = {day for day in trigger.days if day <= last}
    if trigger.last_day:
        found.add(last)
    if trigger.nearest_weekday is not None:
        found.add(_nearest_working_day(year, month, min(trigger.nearest_weekday, last), last))
    return frozenset(found)


def _nearest_working_day(year: int, month: int, day: int, last: int) -> int:
    match calendar.weekday(year, month, day):
        case 5:
            return day - 1 if day > 1 else day + 2
        case 6:
            return day + 1 if day < last else day - 2
        case _:
            return day


def _days_by_weekday(trigger: CronTrigger, year: int, month: int, last: int) -> frozenset[int]:
    first = (calendar.weekday(year, month, 1) + 1) % 7  # 0 is Sunday
    found = {day for day in range(1, last + 1) if (first + day - 1) % 7 in trigger.weekdays}
    for weekday, nth in trigger.nth_weekdays:
        days = [day for day in range(1, last + 1) if (first + day - 1) % 7 == weekday]
        if nth == -1 or nth <= len(days):
            found.add(days[-1] if nth == -1 else days[nth - 1])
    return frozenset(found)
