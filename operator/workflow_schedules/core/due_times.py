"""From a trigger and its time zone to scheduled times: the one function behind preview, status and what really runs.

croniter parses; its documented rule is the law, made consistent (R5): in a fold both passes fire, a wall time inside a gap
moves to the first minute that exists unless the hour field admits all 24 hours, instants that coincide are one, and the
day fields join with OR when both are restricted. Nothing else may import croniter, and no clock may be read here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from croniter import CroniterError, croniter

from workflow_schedules.core import cron_text, zones
from workflow_schedules.core.cron_text import CronTextError
from workflow_schedules.core.triggers import (
    CronTrigger,
    InvalidTriggerError,
    OneShotTrigger,
    Trigger,
    matching_days,
)
from workflow_schedules.core.zones import FIRST_SECOND, LAST_SECOND, Stretch, UnknownTimeZoneError, to_seconds, to_utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

_DAY = 86400
_LENGTH = range(9, 121)


@lru_cache(maxsize=16384)
def parse_cron(expression: str, zone_name: str) -> CronTrigger:
    """Parse a five-field expression in an IANA zone; equal arguments share one trigger.

    Raises:
        InvalidTriggerError: not of the promised language, an unknown zone, or it never fires (``0 0 31 2 *``).

    Source: contract R5, R6.
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
    if len(expression) not in _LENGTH:
        raise _invalid_cron(expression, f"it has {len(expression)} characters: write 9 to 120")
    try:
        text = cron_text.read(expression)
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

    Source: contract R5, R6.
    """
    return map(to_utc, _ascending(trigger, *_bounds(after, until)))


def next_due_time(trigger: Trigger, *, after: datetime) -> datetime | None:
    """Return the first scheduled time after `after`, or None when the calendar has no more."""
    found = next(_ascending(trigger, max(to_seconds(after), FIRST_SECOND - 1), LAST_SECOND), None)
    return None if found is None else to_utc(found)


def newest_due_times(trigger: Trigger, *, after: datetime, until: datetime) -> Iterator[datetime]:
    """Yield scheduled times in ``(after, until]``, newest first, found backwards."""
    return map(to_utc, _descending(trigger, *_bounds(after, until)))


def latest_due_time(trigger: Trigger, *, after: datetime, until: datetime) -> datetime | None:
    """Return the newest scheduled time in ``(after, until]``, or None."""
    return next(newest_due_times(trigger, after=after, until=until), None)


def count_due_times(trigger: Trigger, *, after: datetime, until: datetime) -> int:
    """Return how many scheduled times lie in ``(after, until]``; whole days are counted, not listed.

    Source: contract R17.
    """
    low, high = _bounds(after, until)
    if isinstance(trigger, OneShotTrigger):
        return int(low < trigger.instant <= high)
    return sum(_count_in(trigger, stretch, low, high) for stretch in _stretches(trigger, low, high))


def _bounds(after: datetime, until: datetime) -> tuple[int, int]:
    return max(to_seconds(after), FIRST_SECOND - 1), min(to_seconds(until), LAST_SECOND)


def _ascending(trigger: Trigger, low: int, high: int) -> Iterator[int]:
    if isinstance(trigger, OneShotTrigger):
        yield from [trigger.instant] if low < trigger.instant <= high else []
        return
    for stretch in _stretches(trigger, low, high):
        moved = _moved_out_of_gap(trigger, stretch, low, high)
        if moved is not None:
            yield moved
        for instant in _walls(trigger, stretch, low, high, newest_first=False):
            if instant != moved:
                yield instant


def _descending(trigger: Trigger, low: int, high: int) -> Iterator[int]:
    if isinstance(trigger, OneShotTrigger):
        yield from [trigger.instant] if low < trigger.instant <= high else []
        return
    for stretch in _stretches(trigger, low, high, newest_first=True):
        moved = _moved_out_of_gap(trigger, stretch, low, high)
        for instant in _walls(trigger, stretch, low, high, newest_first=True):
            if instant != moved:
                yield instant
        if moved is not None:
            yield moved


def _stretches(trigger: CronTrigger, low: int, high: int, *, newest_first: bool = False) -> Iterator[Stretch]:
    """Yield the zone's stretches that meet ``(low, high]``, months without a matching day left out."""
    if low >= high:
        return
    zone = zones.load_zone(trigger.zone_name)
    begin, end = to_utc(low), to_utc(high)
    months = range(begin.year * 12 + begin.month - 1, end.year * 12 + end.month)
    for index in reversed(months) if newest_first else months:
        year, month = divmod(index, 12)
        if not _has_matching_day_near(trigger, year, month + 1):
            continue
        found = zones.stretches(zone, year=year, month=month + 1)
        for stretch in reversed(found) if newest_first else found:
            if stretch.end > low and stretch.begin <= high:
                yield stretch


def _walls(trigger: CronTrigger, stretch: Stretch, low: int, high: int, *, newest_first: bool) -> Iterator[int]:
    """Yield the instants of a stretch whose wall time matches, inside ``(low, high]``."""
    first = max(stretch.begin, low + 1) + stretch.offset
    last = min(stretch.end - 1, high) + stretch.offset
    days = range(first // _DAY, last // _DAY + 1)
    for day in reversed(days) if newest_first else days:
        if not _matches_day(trigger, day):
            continue
        hours = trigger.hours if not newest_first else trigger.hours[::-1]
        minutes = trigger.minutes if not newest_first else trigger.minutes[::-1]
        for hour in hours:
            start = day * _DAY + hour * 3600
            if start + 3540 < first or start > last:
                continue
            for minute in minutes:
                wall = start + minute * 60
                if first <= wall <= last:
                    yield wall - stretch.offset


def _count_in(trigger: CronTrigger, stretch: Stretch, low: int, high: int) -> int:
    first = max(stretch.begin, low + 1) + stretch.offset
    last = min(stretch.end - 1, high) + stretch.offset
    moved = _moved_out_of_gap(trigger, stretch, low, high)
    total = int(moved is not None)
    if moved is not None and _matches_wall(trigger, moved + stretch.offset):
        total -= 1  # the moved and the genuine time are one instant
    for day in range(first // _DAY, last // _DAY + 1):
        if _matches_day(trigger, day):
            total += _walls_until(trigger, last - day * _DAY) - _walls_until(trigger, first - 1 - day * _DAY)
    return total


def _walls_until(trigger: CronTrigger, second_of_day: int) -> int:
    """Count matching wall minutes of one matching day up to and including that second."""
    if second_of_day < 0:
        return 0
    hour, rest = divmod(min(second_of_day, _DAY - 1), 3600)
    whole = bisect_left(trigger.hours, hour) * len(trigger.minutes)
    here = hour in trigger.hours
    return whole + (bisect_right(trigger.minutes, rest // 60) if here else 0)


def _moved_out_of_gap(trigger: CronTrigger, stretch: Stretch, low: int, high: int) -> int | None:
    """Return the instant to which a wall time inside the gap before this stretch moves, or None."""
    gap_begin, gap_end = stretch.begin + stretch.previous_offset, stretch.begin + stretch.offset
    if gap_begin >= gap_end or trigger.is_every_hour:
        return None
    moved = stretch.begin + -gap_end % 60
    if not low < moved <= high:
        return None
    first = gap_begin + -gap_begin % 60
    missing = Stretch(begin=first, end=gap_end, offset=0, previous_offset=0)
    return None if next(_walls(trigger, missing, first - 1, gap_end - 1, newest_first=False), None) is None else moved


def _matches_wall(trigger: CronTrigger, wall: int) -> bool:
    hour, minute = divmod(wall % _DAY // 60, 60)
    return (
        wall % 60 == 0 and minute in trigger.minutes and hour in trigger.hours and _matches_day(trigger, wall // _DAY)
    )


def _matches_day(trigger: CronTrigger, day: int) -> bool:
    date = to_utc(day * _DAY)
    return date.day in matching_days(trigger, date.year, date.month)


def _has_matching_day_near(trigger: CronTrigger, year: int, month: int) -> bool:
    """Tell whether a UTC month can hold an instant: its local dates reach into both neighbours (offsets, day-long gaps)."""
    around = ((year - (month == 1), (month - 2) % 12 + 1), (year, month), (year + month // 12, month % 12 + 1))
    before, here, behind = (matching_days(trigger, y, m) if 1 <= y <= 9999 else frozenset() for y, m in around)
    return bool(here) or any(day > 25 for day in before) or any(day < 5 for day in behind)
