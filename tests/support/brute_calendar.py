"""A second calendar, written apart from the product's: every wall-clock minute of a window, one by one, over zoneinfo.

It shares nothing with due_times but the zone data: fields are sets that the random expression brings along, days are judged
by arithmetic on dates, and gaps and folds are found by going there and back again.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from hypothesis import strategies as st

from workflow_schedules.core.zones import load_zone

ONE_MINUTE = timedelta(minutes=1)
ONE_DAY = timedelta(days=1)
HALF_WINDOW = timedelta(hours=20)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True, slots=True, repr=False)
class CronField:
    """Text of one field, and the values that it means."""

    text: str
    values: frozenset[int]

    def __repr__(self) -> str:
        return repr(self.text)

    @property
    def is_star(self) -> bool:
        return self.text == "*"


@dataclass(frozen=True, slots=True, repr=False)
class Cron:
    """A random expression that knows what it means.

    Attributes:
        nearest: day of an ``nW`` item, or None.
        has_last_day: the day field has an ``L``.
        nth: (weekday, n) pairs, -1 for the last.
    """

    minutes: CronField
    hours: CronField
    days: CronField
    months: CronField
    weekdays: CronField
    nearest: int | None = None
    has_last_day: bool = False
    nth: frozenset[tuple[int, int]] = frozenset()

    def __repr__(self) -> str:
        return f"Cron({self.text!r})"

    @property
    def text(self) -> str:
        fields = (self.minutes, self.hours, self.days, self.months, self.weekdays)
        return " ".join(field.text for field in fields)

    def fires_on(self, day: date) -> bool:
        if day.month not in self.months.values:
            return False
        sides = []
        if not self.days.is_star:
            sides.append(self._is_day(day))
        if not self.weekdays.is_star:
            sides.append(self._is_weekday(day))
        return any(sides) if sides else True

    def _is_day(self, day: date) -> bool:
        if day.day in self.days.values or (self.has_last_day and (day + ONE_DAY).day == 1):
            return True
        return self.nearest is not None and day == nearest_working_day(day.year, day.month, self.nearest)

    def _is_weekday(self, day: date) -> bool:
        weekday = day.isoweekday() % 7
        is_last = (day + 7 * ONE_DAY).month != day.month
        numbers = {(day.day + 6) // 7, -1 if is_last else 0}
        return weekday in self.weekdays.values or any((weekday, number) in self.nth for number in numbers)


def nearest_working_day(year: int, month: int, wanted: int) -> date:
    """Return the working day of the month that is nearest to a day of it (its last one, if it has no such day)."""
    days = [date(year, month, 1) + n * ONE_DAY for n in range(31)]
    days = [day for day in days if day.month == month]
    target = min(wanted, days[-1].day)
    return min((day for day in days if day.isoweekday() < 6), key=lambda day: abs(day.day - target))


@dataclass(frozen=True, slots=True)
class Wall:
    """A wall-clock minute.

    Attributes:
        instants: when it happens: never, once, or twice.
        moved_to: for one that never happens, the first minute after the gap.
    """

    at: datetime
    instants: tuple[datetime, ...]
    moved_to: datetime | None


@lru_cache(maxsize=256)
def walls_around(zone_name: str, centre: datetime) -> tuple[Wall, ...]:
    """Return every wall-clock minute that may matter within HALF_WINDOW of an instant."""
    zone = load_zone(zone_name)
    begin, end = (
        (centre + side).astimezone(zone).replace(tzinfo=None, second=0, fold=0) for side in (-HALF_WINDOW, HALF_WINDOW)
    )
    margin = abs(end - begin - 2 * HALF_WINDOW) + timedelta(hours=1)  # what a gap hides or a fold repeats
    low, high = begin - margin, end + margin
    found: list[Wall] = []
    at, following = high, None
    while at >= low:
        there = {at.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1)}
        instants = tuple(sorted(t for t in there if t.astimezone(zone).replace(tzinfo=None, fold=0) == at))
        if instants:
            following = instants[0]
        found.append(Wall(at=at, instants=instants, moved_to=None if instants else following))
        at -= ONE_MINUTE
    return tuple(reversed(found))


@lru_cache(maxsize=256)
def walls_by_clock(zone_name: str, centre: datetime) -> dict[tuple[int, int], list[Wall]]:
    """Return those minutes by hour and minute."""
    found: dict[tuple[int, int], list[Wall]] = {}
    for wall in walls_around(zone_name, centre):
        found.setdefault((wall.at.hour, wall.at.minute), []).append(wall)
    return found


def brute_due_times(
    cron: Cron, zone_name: str, centre: datetime, *, is_moved: bool = True, is_repeated: bool = True
) -> list[datetime]:
    """Return what fires within HALF_WINDOW of an instant, by rule C (R5).

    Args:
        is_moved: what falls into a gap moves to its end.
        is_repeated: what comes twice fires twice.
    """
    found: set[datetime] = set()
    walls, fires_on = walls_by_clock(zone_name, centre), lru_cache(cron.fires_on)
    for hour in cron.hours.values:
        for minute in cron.minutes.values:
            for wall in walls.get((hour, minute), ()):
                if fires_on(wall.at.date()):
                    found.update(wall.instants if is_repeated else wall.instants[:1])
                    if is_moved and wall.moved_to is not None and len(cron.hours.values) < 24:
                        found.add(wall.moved_to)
    return sorted(at for at in found if centre - HALF_WINDOW < at <= centre + HALF_WINDOW)


# random expressions


def _walk(low: int, high: int, step: int, first: int, last: int) -> list[int]:
    """Return every step-th value from low to high, around the end of the field if need be."""
    values, value = [low], low
    while value != high:
        value = first if value == last else value + 1
        values.append(value)
    return values[::step]


@st.composite
def _items(
    draw: st.DrawFn, first: int, last: int, *, wraps: bool, names: list[str] | None = None
) -> tuple[str, frozenset[int]]:
    def spelled(value: int) -> str:
        if names is not None and draw(st.integers(0, 3)) == 0:
            return names[value - first]
        return f"{value:02d}" if draw(st.integers(0, 9)) == 0 else str(value)

    kind = draw(st.sampled_from(["value", "value", "range", "range step", "star step", "value step"]))
    low = draw(st.integers(first, last))
    step = draw(st.sampled_from([1, 2, 3, 5, 7, 15, 100])) if "step" in kind else 1
    match kind:
        case "value":
            return spelled(low), frozenset({low})
        case "star step":
            return f"*/{step}", frozenset(range(first, last + 1, step))
        case "value step":
            end = 7 if names is WEEKDAYS else last  # Sunday once more
            return f"{spelled(low)}/{step}", frozenset(value % (last + 1) for value in range(low, end + 1, step))
        case _:
            high = draw(st.integers(first if wraps else low, last))
            text = f"{spelled(low)}-{spelled(high)}" + (f"/{step}" if "step" in kind else "")
            return text, frozenset(_walk(low, high, step, first, last))


@st.composite
def cron_fields(
    draw: st.DrawFn, first: int, last: int, *, wraps: bool = False, names: list[str] | None = None
) -> CronField:
    if draw(st.integers(0, 2)) == 0:
        return CronField("*", frozenset(range(first, last + 1)))
    items = draw(st.lists(_items(first, last, wraps=wraps, names=names), min_size=1, max_size=3))
    return CronField(",".join(text for text, _ in items), frozenset().union(*(values for _, values in items)))


@st.composite
def crons(draw: st.DrawFn) -> Cron:
    """Draw an expression of the promised language (R5), L, W, # and ranges around the end included."""
    days, nearest, has_last_day = draw(_day_fields())
    weekdays, nth = draw(_weekday_fields())
    return Cron(
        minutes=draw(cron_fields(0, 59)),
        hours=draw(cron_fields(0, 23, wraps=True)),
        days=days,
        months=draw(cron_fields(1, 12, wraps=True, names=MONTHS)),
        weekdays=weekdays,
        nearest=nearest,
        has_last_day=has_last_day,
        nth=nth,
    )


@st.composite
def _day_fields(draw: st.DrawFn) -> tuple[CronField, int | None, bool]:
    match draw(st.integers(0, 9)):
        case 0:
            nearest = draw(st.integers(1, 31))
            return CronField(draw(st.sampled_from([f"{nearest}W", f"W{nearest}"])), frozenset()), nearest, False
        case 1:
            return CronField("L", frozenset()), None, True
        case 2:
            day = draw(st.integers(1, 31))
            return CronField(f"{day},l", frozenset({day})), None, True
        case _:
            return draw(cron_fields(1, 31)), None, False


@st.composite
def _weekday_fields(draw: st.DrawFn) -> tuple[CronField, frozenset[tuple[int, int]]]:
    if draw(st.integers(0, 4)) == 0:
        pairs = draw(
            st.lists(st.tuples(st.integers(0, 7), st.sampled_from([-1, 1, 2, 3, 4, 5])), min_size=1, max_size=2)
        )
        text = ",".join(f"L{weekday}" if n == -1 else f"{weekday}#{n}" for weekday, n in pairs)
        return CronField(text, frozenset()), frozenset((weekday % 7, n) for weekday, n in pairs)
    return draw(cron_fields(0, 6, wraps=True, names=WEEKDAYS)), frozenset()
