"""From a trigger and its time zone to scheduled times: the one function behind preview, status and what really runs.

croniter parses; its documented rule is the law, made consistent (R5): in a fold both passes fire, a wall time inside a gap
moves to the first minute that exists unless the hour field admits all 24 hours, instants that coincide are one, and the
day fields join with OR when both are restricted. Nothing else may import croniter, and no clock may be read here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from croniter import CroniterError, croniter

from workflow_schedules.core import cron_text, wall_times, zones
from workflow_schedules.core.cron_text import CronTextError
from workflow_schedules.core.triggers import (
    Calendar,
    CronTrigger,
    InvalidTriggerError,
    OneShotTrigger,
    Trigger,
    matching_days,
)
from workflow_schedules.core.zones import FIRST_SECOND, LAST_SECOND, UnknownTimeZoneError, to_seconds, to_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

_MAX_LENGTH = 120
_TWO_DAYS = 2 * 86400


@lru_cache(maxsize=16384)
def parse_cron(expression: str, zone_name: str) -> CronTrigger:
    """Parse a five-field expression in an IANA zone; equal arguments share one trigger.

    Raises:
        InvalidTriggerError: not of the promised language, an unknown zone, or it never fires (``0 0 31 2 *``).

    Source: contract R5, R6.
    """
    check_zone(zone_name)
    if len(expression) > _MAX_LENGTH:
        shown = expression if len(expression) < 2 * _MAX_LENGTH else f"{expression[:_MAX_LENGTH]}…"
        raise _invalid_cron(shown, f"it has {len(expression)} characters: write 9 to {_MAX_LENGTH}")
    try:
        text = cron_text.read(expression)  # says what to write instead of a macro or of too few fields, too
        (minutes, hours, days, months, weekdays), nth = croniter.expand(text.normalised)
    except (CronTextError, CroniterError, ValueError, TypeError) as error:
        raise _invalid_cron(expression, str(error)) from error
    trigger = CronTrigger(
        expression=expression,
        zone_name=zone_name,
        minutes=_numbers(minutes, 0, 59),
        hours=_numbers(hours, 0, 23),
        months=frozenset(_numbers(months, 1, 12)),
        days=frozenset(_numbers(days, 1, 31)) if text.nearest_weekday is None else frozenset(),
        last_day="l" in days,
        nearest_weekday=text.nearest_weekday,
        days_restricted=text.restricted_days,
        weekdays=frozenset(_numbers(weekdays, 0, 6)) - nth.keys(),
        nth_weekdays=frozenset((int(weekday), -1 if n == "l" else int(n)) for weekday, ns in nth.items() for n in ns),
        weekdays_restricted=text.restricted_weekdays,
    )
    if not any(matching_days(trigger, 2000 + year, month) for year in range(28) for month in trigger.months):
        raise _invalid_cron(
            expression, "no such date exists in any year: name a day that its months have", reason="NeverMatches"
        )
    return trigger


def check_zone(zone_name: str) -> None:
    """Refuse a name that is no zone of the bundled tzdata.

    Raises:
        InvalidTriggerError: no such zone.

    Source: contract R6.
    """
    try:
        zones.load_zone(zone_name)
    except UnknownTimeZoneError as error:
        raise InvalidTriggerError(
            field="timeZone",
            reason="UnknownTimeZone",
            message=f"spec.timeZone: {zone_name!r} is no IANA zone of tzdata {zones.TZDATA_VERSION}; "
            "write a name such as Europe/Zurich or UTC",
        ) from error


def _invalid_cron(expression: str, why: str, *, reason: str = "InvalidSchedule") -> InvalidTriggerError:
    return InvalidTriggerError(
        field="schedule", reason=reason, message=f"spec.schedule: {expression!r} is refused: {why}"
    )


def _numbers(expanded: Sequence[int | str], low: int, high: int) -> tuple[int, ...]:
    if "*" in expanded:
        return tuple(range(low, high + 1))
    return tuple(sorted({int(value) for value in expanded if isinstance(value, int)}))


def due_times(trigger: Trigger, *, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield scheduled times in ``(after, until]``, oldest first, as aware UTC.

    Dates to exclude are not left out: what falls on them is due, and skipped on record.

    Source: contract R5, R6.
    """
    return map(to_utc, _between(trigger, to_seconds(after), to_seconds(until)))


def next_due_time(trigger: Trigger, *, after: datetime) -> datetime | None:
    """Return the first scheduled time after `after`, or None when the calendar has no more."""
    found = next(_between(trigger, to_seconds(after), LAST_SECOND), None)
    return None if found is None else to_utc(found)


def newest_due_times(trigger: Trigger, *, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield scheduled times in ``(after, until]``, newest first, found backwards."""
    return map(to_utc, _between(trigger, to_seconds(after), to_seconds(until), newest_first=True))


def latest_due_time(trigger: Trigger, *, after: datetime, until: datetime) -> datetime | None:
    """Return the newest scheduled time in ``(after, until]``, or None."""
    return next(newest_due_times(trigger, after=after, until=until), None)


def count_due_times(trigger: Trigger, *, after: datetime, until: datetime) -> int:
    """Return how many scheduled times lie in ``(after, until]``; whole days are counted, not listed.

    Source: contract R17.
    """
    low, high = to_seconds(after), to_seconds(until)
    if isinstance(trigger, OneShotTrigger):
        return int(low < trigger.instant <= high)
    calendar = calendar_of(trigger)
    return wall_times.count_between(calendar, *_bounds(calendar, low, high))


def is_excluded(trigger: Trigger, instant: datetime) -> bool:
    """Tell whether an instant falls on one of the dates to exclude.

    Source: contract `excludeDates`.
    """
    excluded = _excluded(trigger)
    return bool(excluded) and wall_times.local_date(trigger.zone_name, to_seconds(instant)) in excluded


def next_exclusion(trigger: Trigger, instant: datetime) -> datetime | None:
    """Return when the first date to exclude begins after an instant that is on none, or None."""
    excluded = _excluded(trigger)
    if not excluded:
        return None
    seconds = to_seconds(instant)
    date = wall_times.local_date(trigger.zone_name, seconds)
    following = min((day for day in excluded if day > date), default=None)
    return None if following is None else to_utc(wall_times.start_of_date(trigger.zone_name, following, seconds))


def start_of_date(trigger: Trigger, instant: datetime) -> datetime:
    """Return the first second of the local date of an instant."""
    seconds = to_seconds(instant)
    date = wall_times.local_date(trigger.zone_name, seconds)
    return to_utc(wall_times.start_of_date(trigger.zone_name, date, seconds - _TWO_DAYS))


def end_of_date(trigger: Trigger, instant: datetime) -> datetime:
    """Return the last second of the local date of an instant."""
    return to_utc(wall_times.end_of_date(trigger.zone_name, to_seconds(instant)))


def _excluded(trigger: Trigger) -> frozenset[int]:
    return frozenset() if isinstance(trigger, CronTrigger) else trigger.excluded


@lru_cache(maxsize=16384)
def _calendar_of_one(cron: CronTrigger) -> Calendar:
    return Calendar(crons=(cron,))


def calendar_of(trigger: CronTrigger | Calendar) -> Calendar:
    """Return the calendar of a single expression, with the default policies."""
    return _calendar_of_one(trigger) if isinstance(trigger, CronTrigger) else trigger


def _between(trigger: Trigger, low: int, high: int, *, newest_first: bool = False) -> Iterator[int]:
    if isinstance(trigger, OneShotTrigger):
        return iter([trigger.instant] if low < trigger.instant <= high else [])
    calendar = calendar_of(trigger)
    low, high = _bounds(calendar, low, high)
    return wall_times.descending(calendar, low, high) if newest_first else wall_times.ascending(calendar, low, high)


def _bounds(calendar: Calendar, low: int, high: int) -> tuple[int, int]:
    return max(low, calendar.first - 1, FIRST_SECOND - 1), min(high, calendar.last, LAST_SECOND)
