"""Time zones from the bundled tzdata alone, seen as stretches of constant offset.

The system's zone files and ``TZ`` are never read, so every replica computes the same instants (R6). Everything here counts
in whole seconds: UTC seconds since 1970 for instants, the same count shifted by the offset for wall-clock times. No cron
rule may live here.
"""

from __future__ import annotations

import importlib.resources
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import tzdata

if TYPE_CHECKING:
    from collections.abc import Iterator

TZDATA_VERSION: str = tzdata.IANA_VERSION
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_DAY_SECONDS = 86400
_PROBE_SECONDS = 6 * 86400  # no zone of tzdata has two changes closer than this (held by a test)
_PLACEHOLDERS = frozenset(
    {"Factory", "localtime", "posixrules"}
)  # host-dependent or meaningless, though some are listed
# the calendar is a day short at both ends, so that every offset still fits
FIRST_SECOND = int((datetime(1, 1, 2, tzinfo=UTC) - _EPOCH).total_seconds())
LAST_SECOND = int((datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).total_seconds())
LAST_INSTANT = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)  # of any clock


class UnknownTimeZoneError(ValueError):
    """The name is no zone of the bundled tzdata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A stretch ``[begin, end)`` of UTC seconds in which the zone's offset is constant.

    Attributes:
        begin: first UTC second.
        end: first UTC second after it.
        offset: seconds east of UTC.
        previous_offset: the offset before the zone last changed to this one, or equal to `offset`.
        changed_at: UTC second of that change; before `begin` where the stretch was cut at a month's begin.
    """

    begin: int
    end: int
    offset: int
    previous_offset: int
    changed_at: int

    @property
    def gap(self) -> range:
        """Return the wall-clock seconds that don't exist because the clock went forward at `begin`."""
        if self.changed_at != self.begin:
            return range(0)
        return range(self.begin + self.previous_offset, self.begin + self.offset)

    @property
    def repeated_before(self) -> int:
        """Return the UTC second before which wall-clock times of this stretch are second passes."""
        return self.changed_at + max(0, self.previous_offset - self.offset)


@lru_cache(maxsize=1)
def zone_names() -> frozenset[str]:
    """Return every zone name that is accepted: the bundled tzdata's, placeholders left out."""
    listed = importlib.resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
    return frozenset(listed) - _PLACEHOLDERS


@lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    """Return the zone of that IANA name, as the bundled tzdata has it.

    Raises:
        UnknownTimeZoneError: not a zone of the bundled tzdata, or a host-dependent alias.

    Source: contract R6, `timeZone`.
    """
    if name not in zone_names():
        raise UnknownTimeZoneError(name)
    source = importlib.resources.files("tzdata.zoneinfo").joinpath(*name.split("/"))
    with source.open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def to_seconds(moment: datetime) -> int:
    """Return whole UTC seconds since 1970, rounded down."""
    return (moment - _EPOCH) // _SECOND


def to_utc(seconds: int) -> datetime:
    """Return the aware UTC datetime of `seconds` since 1970."""
    return _EPOCH + seconds * _SECOND


def moved(moment: datetime, by: timedelta) -> datetime | None:
    """Return a moment moved by a length of time, or None where that is outside of the calendar."""
    try:
        return moment + by
    except OverflowError:
        return None


def offset_at(zone: ZoneInfo, seconds: int) -> int:
    """Return the zone's offset, in seconds east of UTC, at that UTC second."""
    offset = to_utc(seconds).astimezone(zone).utcoffset()
    return 0 if offset is None else offset // _SECOND


def stretches(zone: ZoneInfo, *, year: int, month: int) -> tuple[Stretch, ...]:
    """Return the stretches that make up a UTC month, oldest first."""
    return _month_stretches(zone.key, year, month)


@lru_cache(maxsize=65536)
def _month_stretches(name: str, year: int, month: int) -> tuple[Stretch, ...]:
    zone = load_zone(name)
    begin = max(to_seconds(datetime(year, month, 1, tzinfo=UTC)), FIRST_SECOND)
    end = (
        to_seconds(datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC))
        if (year, month) != (9999, 12)
        else LAST_SECOND
    )
    fixed = zone.utcoffset(None)
    if fixed is not None:
        offset = fixed // _SECOND
        return (Stretch(begin=begin, end=end, offset=offset, previous_offset=offset, changed_at=begin),)
    look_back = max(begin - _DAY_SECONDS, FIRST_SECOND)  # a repeated hour may reach over from the month before
    found = _split(zone, look_back, end)
    return tuple(replace(stretch, begin=max(stretch.begin, begin)) for stretch in found if stretch.end > begin)


def _split(zone: ZoneInfo, begin: int, end: int) -> Iterator[Stretch]:
    previous = offset = offset_at(zone, begin)
    for probe in range(begin, end, _PROBE_SECONDS):
        last = min(probe + _PROBE_SECONDS, end) - 1
        if offset_at(zone, last) != offset:
            change = _first_second_of_other_offset(zone, probe, last, offset)
            yield Stretch(begin=begin, end=change, offset=offset, previous_offset=previous, changed_at=begin)
            begin, previous, offset = change, offset, offset_at(zone, change)
    yield Stretch(begin=begin, end=end, offset=offset, previous_offset=previous, changed_at=begin)


def _first_second_of_other_offset(zone: ZoneInfo, low: int, high: int, offset: int) -> int:
    while low < high:
        middle = (low + high) // 2
        if offset_at(zone, middle) == offset:
            low = middle + 1
        else:
            high = middle
    return low
