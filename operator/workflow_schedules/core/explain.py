"""Say what surprises people about a trigger: gaps, folds, the OR of the day fields, dates left out.

Sentences for people, with dates, in local and UTC time; what is due is due_times' business.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from workflow_schedules.api.schedule import RepeatedTimePolicy, SkippedTimePolicy
from workflow_schedules.core import wall_times, zones
from workflow_schedules.core.due_times import calendar_of, count_due_times
from workflow_schedules.core.triggers import Calendar, CronTrigger, OneShotTrigger, matching_days
from workflow_schedules.core.zones import to_seconds, to_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.core.triggers import Trigger
    from workflow_schedules.core.zones import Stretch

_DAY = 86400
_EXAMPLES = 3


def explain(trigger: Trigger, *, after: datetime, until: datetime) -> Iterator[str]:
    """Yield what may surprise about the instants in ``(after, until]``.

    Source: contract R5, R6 (preview).
    """
    low, high = to_seconds(after), to_seconds(until)
    if not isinstance(trigger, OneShotTrigger):
        calendar = calendar_of(trigger)
        low, high = max(low, calendar.first - 1), min(high, calendar.last)
        for cron in calendar.crons:
            if cron.days_restricted and cron.weekdays_restricted:
                yield _either_day(cron, after)
        for stretch in _changes(calendar, low, high):
            yield from _gap(calendar, stretch)
            yield from _fold(calendar, stretch)
    yield from _excluded(trigger, low, high)


def _either_day(cron: CronTrigger, after: datetime) -> str:
    days = [f"{after.year + month // 12:04}-{month % 12 + 1:02}-{day:02}" for month, day in _next_days(cron, after)]
    return (
        f"{cron.expression!r} restricts both day-of-month and day-of-week: a day that matches either of them counts, "
        f"for example {', '.join(days)} (write '*' in one of the fields to restrict by the other alone)"
    )


def _next_days(cron: CronTrigger, after: datetime) -> Iterator[tuple[int, int]]:
    found = 0
    for month in range(after.month - 1, min(after.month - 1 + 12 * 9, 12 * (10_000 - after.year))):
        for day in sorted(matching_days(cron, after.year + month // 12, month % 12 + 1)):
            if month > after.month - 1 or day > after.day:
                yield month, day
                found += 1
                if found == _EXAMPLES:
                    return


def _changes(calendar: Calendar, low: int, high: int) -> Iterator[Stretch]:
    """Yield the stretches that begin with a clock change inside ``(low, high]``, or whose repetition reaches into it."""
    for stretch in wall_times.stretches_near(
        calendar, max(low - _DAY, zones.FIRST_SECOND - 1), high, newest_first=False
    ):
        is_change = stretch.previous_offset != stretch.offset and stretch.changed_at == stretch.begin
        if is_change and low < max(stretch.repeated_before, stretch.begin + 60):
            yield stretch


def _gap(calendar: Calendar, stretch: Stretch) -> Iterator[str]:
    gap = stretch.gap
    for cron in calendar.crons if gap else ():
        walls = _walls(cron, gap.start, gap.stop)
        if not walls:
            continue
        change = (
            f"in {calendar.zone_name} the clock goes from {_local(gap.start)} to {_local(gap.stop)} "
            f"({_utc(stretch.begin)}): {_times(walls)} {'does' if len(walls) == 1 else 'do'} not exist"
        )
        if calendar.skipped is SkippedTimePolicy.SKIP:
            yield f"{change} and {_are(walls)} left out (skippedTimePolicy Skip)"
        elif cron.is_every_hour:
            yield f"{change} and {_are(walls)} left out, since {cron.expression!r} runs in every hour"
        else:
            moved = stretch.begin + -gap.stop % 60
            yield f"{change} and {_are(walls)} moved to {_local(moved + stretch.offset)} local time, {_utc(moved)}"


def _fold(calendar: Calendar, stretch: Stretch) -> Iterator[str]:
    begin, end = stretch.begin + stretch.offset, stretch.begin + stretch.previous_offset
    for cron in calendar.crons if end > begin else ():
        walls = _walls(cron, begin, end)
        if not walls:
            continue
        change = (
            f"in {calendar.zone_name} the clock goes back from {_local(end)} to {_local(begin)} "
            f"({_utc(stretch.begin)}): {_times(walls)} {'comes' if len(walls) == 1 else 'come'} twice"
        )
        first, second = walls[0] - stretch.previous_offset, walls[0] - stretch.offset
        runs, which = ("runs", "") if len(walls) == 1 else ("run", "the first of them ")
        if calendar.repeated is RepeatedTimePolicy.FIRST:
            yield f"{change} and {runs} the first time only, {which}{_utc(first)} (repeatedTimePolicy First)"
        else:
            yield f"{change} and {runs} both times, {which}{_utc(first)} and {_utc(second)}"


def _excluded(trigger: Calendar | CronTrigger | OneShotTrigger, low: int, high: int) -> Iterator[str]:
    for date in sorted(frozenset() if isinstance(trigger, CronTrigger) else trigger.excluded):
        begin = wall_times.start_of_date(trigger.zone_name, date, zones.FIRST_SECOND)
        end = wall_times.start_of_date(trigger.zone_name, date + 1, begin) - 1
        after, until = to_utc(max(low, begin - 1)), to_utc(min(high, end))
        count = count_due_times(trigger, after=after, until=until)
        if count:
            instants = "1 instant" if count == 1 else f"{count} instants"
            yield f"{_local(date * _DAY)[:10]} is in excludeDates: {instants} on it will be skipped, on record"


def _walls(cron: CronTrigger, begin: int, end: int) -> list[int]:
    """Return the matching wall-clock seconds in ``[begin, end)``."""
    found = []
    for day in range(begin // _DAY, (end - 1) // _DAY + 1):
        date = to_utc(day * _DAY)
        if date.day in matching_days(cron, date.year, date.month):
            found += [
                day * _DAY + minute * 60 for minute in cron.minutes_of_day if begin <= day * _DAY + minute * 60 < end
            ]
    return found


def _times(walls: list[int]) -> str:
    shown = ", ".join(_local(wall) for wall in walls[:_EXAMPLES])
    return shown if len(walls) <= _EXAMPLES else f"{shown} and {len(walls) - _EXAMPLES} more"


def _are(walls: list[int]) -> str:
    return "is" if len(walls) == 1 else "are"


def _local(wall: int) -> str:
    return f"{to_utc(wall):%Y-%m-%d %H:%M}" if wall % 60 == 0 else f"{to_utc(wall):%Y-%m-%d %H:%M:%S}"


def _utc(seconds: int) -> str:
    return f"{to_utc(seconds):%Y-%m-%dT%H:%M:%SZ}"


def local_text(trigger: Trigger, instant: datetime) -> str:
    """Return an instant as local time of the trigger's zone, with its offset."""
    local = instant.astimezone(zones.load_zone(trigger.zone_name))
    return f"{local:%a} {local.isoformat(sep=' ')} {trigger.zone_name}"
