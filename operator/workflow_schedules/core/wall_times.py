"""From a calendar to instants: wall-clock times walked stretch by stretch of constant offset.

Counts in whole UTC seconds since 1970. In a fold both passes come out by themselves, since both stretches hold the wall
time; a gap belongs to no stretch, so what falls into it is moved to its end, or left out. Only due_times calls this.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from datetime import date
from typing import TYPE_CHECKING

from workflow_schedules.api.schedule import RepeatedTimePolicy, SkippedTimePolicy
from workflow_schedules.core import zones
from workflow_schedules.core.triggers import counts_by_day, matching_days, minutes_by_day
from workflow_schedules.core.zones import to_utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.core.triggers import Calendar, CronTrigger
    from workflow_schedules.core.zones import Stretch

_DAY = 86400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


def ascending(calendar: Calendar, low: int, high: int) -> Iterator[int]:
    """Yield the instants in ``(low, high]``, oldest first."""
    for stretch in stretches_near(calendar, low, high, newest_first=False):
        moved = _moved_out_of_gap(calendar, stretch, low, high)
        found = _instants(calendar, stretch, low, high, newest_first=False)
        if moved is None:
            yield from found
        else:
            yield moved
            yield from (instant for instant in found if instant != moved)


def descending(calendar: Calendar, low: int, high: int) -> Iterator[int]:
    """Yield the instants in ``(low, high]``, newest first."""
    for stretch in stretches_near(calendar, low, high, newest_first=True):
        moved = _moved_out_of_gap(calendar, stretch, low, high)
        found = _instants(calendar, stretch, low, high, newest_first=True)
        if moved is None:
            yield from found
        else:
            yield from (instant for instant in found if instant != moved)
            yield moved


def count_between(calendar: Calendar, low: int, high: int) -> int:
    """Count the instants in ``(low, high]``, a whole day at a time."""
    return sum(
        _count_in(calendar, stretch, low, high) for stretch in stretches_near(calendar, low, high, newest_first=False)
    )


def end_of_date(zone_name: str, instant: int) -> int:
    """Return the last UTC second of the local date that an instant falls on."""
    return start_of_date(zone_name, local_date(zone_name, instant) + 1, instant) - 1


def start_of_date(zone_name: str, day: int, near: int) -> int:
    """Return the first UTC second at or after `near` whose local date is that day or a later one.

    Args:
        zone_name: IANA name.
        day: days since 1970, local.
        near: a UTC second.

    Returns:
        One second more than the calendar has, for a day behind its end.
    """
    zone = zones.load_zone(zone_name)
    near = max(near, day * _DAY - 2 * _DAY, zones.FIRST_SECOND)  # whatever the offset, that date has not begun by then
    begin = to_utc(min(near, zones.LAST_SECOND))
    for index in range(begin.year * 12 + begin.month - 1, 12 * 10_000):
        year, month = divmod(index, 12)
        for stretch in zones.stretches(zone, year=year, month=month + 1):
            first = max(stretch.begin, near, day * _DAY - stretch.offset)
            if first < stretch.end:
                return first
    return zones.LAST_SECOND + 1


def local_date(zone_name: str, instant: int) -> int:
    """Return the local date of an instant, as days since 1970."""
    return (instant + zones.offset_at(zones.load_zone(zone_name), instant)) // _DAY


def stretches_near(calendar: Calendar, low: int, high: int, *, newest_first: bool) -> Iterator[Stretch]:
    """Yield the zone's stretches that meet ``(low, high]``, months without a matching day left out."""
    if low >= high:
        return
    zone = zones.load_zone(calendar.zone_name)
    months = _months(low // _DAY, high // _DAY)
    for index in reversed(months) if newest_first else months:
        year, month = divmod(index, 12)
        if not _has_matching_day_near(calendar, year, month + 1):
            continue
        found = zones.stretches(zone, year=year, month=month + 1)
        for stretch in reversed(found) if newest_first else found:
            if stretch.end > low and stretch.begin <= high:
                yield stretch


def _instants(calendar: Calendar, stretch: Stretch, low: int, high: int, *, newest_first: bool) -> Iterator[int]:
    """Yield the instants of a stretch whose wall time matches, inside ``(low, high]``."""
    first, last = _wall_bounds(calendar, stretch, low, high)
    for day, minutes in _days(calendar, first // _DAY, last // _DAY, newest_first=newest_first):
        start = day * _DAY - stretch.offset
        chosen = minutes[_index_from(minutes, first - day * _DAY) : _index_after(minutes, last - day * _DAY)]
        for minute in reversed(chosen) if newest_first else chosen:
            yield start + minute * 60


def _count_in(calendar: Calendar, stretch: Stretch, low: int, high: int) -> int:
    first, last = _wall_bounds(calendar, stretch, low, high)
    total = 0
    for index in _months(first // _DAY, last // _DAY) if first <= last else ():
        year, month = divmod(index, 12)
        start = (_day_before(year, month + 1) + 1) * _DAY
        total += _count_before(calendar, year, month + 1, last + 1 - start)
        total -= _count_before(calendar, year, month + 1, first - start)
    moved = _moved_out_of_gap(calendar, stretch, low, high)
    if moved is None:
        return total
    return total + (next(_instants(calendar, stretch, moved - 1, moved, newest_first=False), None) is None)


def _count_before(calendar: Calendar, year: int, month: int, second: int) -> int:
    """Count the matching minutes of a month before one of its wall-clock seconds; none or all where that is outside of it."""
    if second <= 0:
        return 0
    day, second = divmod(second, _DAY)
    counts = counts_by_day(calendar, year, month)
    if day >= len(counts) - 1:
        return counts[-1]
    return counts[day] + _index_from(minutes_by_day(calendar, year, month).get(day + 1, ()), second)


def _wall_bounds(calendar: Calendar, stretch: Stretch, low: int, high: int) -> tuple[int, int]:
    """Return first and last wall-clock second of a stretch inside ``(low, high]``, second passes left out if so wished."""
    begin = max(stretch.begin, low + 1)
    if calendar.repeated is RepeatedTimePolicy.FIRST:
        begin = max(begin, stretch.repeated_before)
    return begin + stretch.offset, min(stretch.end - 1, high) + stretch.offset


def _days(
    calendar: Calendar, first_day: int, last_day: int, *, newest_first: bool
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield the matching days of a range of days since 1970, each with its minutes."""
    months = _months(first_day, last_day)
    for index in reversed(months) if newest_first else months:
        year, month = divmod(index, 12)
        found, before = minutes_by_day(calendar, year, month + 1), _day_before(year, month + 1)
        days = range(max(first_day - before, 1), min(last_day - before, 31) + 1)
        for day in reversed(days) if newest_first else days:
            if day in found:
                yield before + day, found[day]


def _months(first_day: int, last_day: int) -> range:
    """Return the months that a range of days since 1970 lies in, each as twelve times its year and what it has before it."""
    begin, end = date.fromordinal(first_day + _EPOCH_ORDINAL), date.fromordinal(last_day + _EPOCH_ORDINAL)
    return range(begin.year * 12 + begin.month - 1, end.year * 12 + end.month)


def _day_before(year: int, month: int) -> int:
    """Return the day before a month, as days since 1970."""
    return date(year, month, 1).toordinal() - _EPOCH_ORDINAL - 1


def _index_from(minutes: tuple[int, ...], second: int) -> int:
    return bisect_left(minutes, -(-second // 60)) if second > 0 else 0


def _index_after(minutes: tuple[int, ...], second: int) -> int:
    return bisect_right(minutes, second // 60) if second < _DAY else len(minutes)


def _moved_out_of_gap(calendar: Calendar, stretch: Stretch, low: int, high: int) -> int | None:
    """Return the instant to which a wall time inside the gap before this stretch moves, or None."""
    gap = stretch.gap
    if not gap or calendar.skipped is SkippedTimePolicy.SKIP:
        return None
    moved = stretch.begin + -gap.stop % 60
    if not low < moved <= high:
        return None
    return moved if any(_fires_within(cron, gap) for cron in calendar.crons if not cron.is_every_hour) else None


def _fires_within(cron: CronTrigger, walls: range) -> bool:
    for day in range(walls.start // _DAY, (walls.stop - 1) // _DAY + 1):
        local = to_utc(day * _DAY)
        minutes = cron.minutes_of_day
        if local.day in matching_days(cron, local.year, local.month) and (
            _index_from(minutes, walls.start - day * _DAY) < _index_after(minutes, walls.stop - 1 - day * _DAY)
        ):
            return True
    return False


def _has_matching_day_near(calendar: Calendar, year: int, month: int) -> bool:
    """Tell whether a UTC month can hold an instant: its local dates reach into both neighbours (offsets, day-long gaps)."""
    if calendar.months.isdisjoint(((month - 2) % 12 + 1, month, month % 12 + 1)):
        return False
    if minutes_by_day(calendar, year, month):
        return True
    before = minutes_by_day(calendar, year - (month == 1), (month - 2) % 12 + 1) if (year, month) != (1, 1) else ()
    behind = minutes_by_day(calendar, year + month // 12, month % 12 + 1) if (year, month) != (9999, 12) else ()
    return any(day > 25 for day in before) or any(day < 5 for day in behind)
