"""Where due_times and croniter agree, and each place where croniter 7 departs from its own rule (R5, K-109).

A row that goes red after an upgrade of croniter says that its answer changed; ours must not.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from croniter import CroniterBadDateError, croniter, croniter_range
from hypothesis import assume, given
from hypothesis import strategies as st

from support.brute_calendar import Cron, crons
from workflow_schedules.core.due_times import due_times, latest_due_time, next_due_time, parse_cron
from workflow_schedules.core.triggers import CronTrigger, InvalidTriggerError
from workflow_schedules.core.zones import load_zone

ABOUT_A_YEAR, ONE_SECOND = timedelta(days=400), timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def is_ordinary(cron: Cron) -> bool:
    """Leave out what the rows below list: full fields that are no star, ``#`` or ``W`` with both day fields, odd ranges."""
    if (cron.nth or cron.nearest) and not (cron.days.is_star or cron.weekdays.is_star):
        return False
    fields = [(cron.days, 31), (cron.weekdays, 7), (cron.minutes, 60), (cron.hours, 24), (cron.months, 12)]
    if any(not field.is_star and len(field.values) == size for field, size in fields):
        return False
    return not any(
        is_odd(item, is_weekday=field is cron.weekdays) for field, _ in fields for item in field.text.split(",")
    )


def is_odd(item: str, *, is_weekday: bool) -> bool:
    """Tell whether an item is a range of one value, a stepped one by name or around the end, or a weekday with a step."""
    base, _, step = item.partition("/")
    low, _, high = base.partition("-")
    if step and is_weekday and base != "*":
        return True
    if not high:
        return bool(step) and low.isalpha()
    return not (low.isdigit() and high.isdigit()) or int(low) == int(high) or (bool(step) and int(low) > int(high))


def parsed(cron: Cron) -> CronTrigger | None:
    """Parse, or return None for what never fires."""
    try:
        return parse_cron(cron.text, "UTC")
    except InvalidTriggerError as error:
        if error.reason == "NeverMatches":
            return None
        raise


@given(
    cron=crons(),
    after=st.datetimes(datetime(1980, 1, 1), datetime(2090, 1, 1)),  # noqa: DTZ001 - made aware below
)
def test_ordinary_expressions_in_utc_fire_as_croniter_says(cron: Cron, after: datetime) -> None:
    assume(is_ordinary(cron) and len(cron.text) <= 120)
    start = after.replace(tzinfo=UTC, microsecond=0)
    trigger = parsed(cron)
    ours = [] if trigger is None else list(islice(due_times(trigger, after=start, until=start + ABOUT_A_YEAR), 3))
    assume(trigger is not None and len(ours) == 3)  # croniter takes its time over rare dates
    theirs = croniter(cron.text, start)
    assert [theirs.get_next(datetime) for _ in ours] == ours, cron.text
    back = croniter(cron.text, ours[-1]).get_prev(datetime)
    assert latest_due_time(trigger, after=start, until=ours[-1] - ONE_SECOND) == back, cron.text


@dataclass(frozen=True, slots=True)
class Next:
    """What croniter's get_next answers, and what is right."""

    name: str
    expression: str
    zone: str
    after: str
    croniter: str
    ours: str


# fmt: off
NEXT = [
    Next("a repeated half hour", "*/20 * * * *", "Australia/Lord_Howe",
         "2026-04-04T14:40", "2026-04-04T15:30", "2026-04-04T15:10"),
    Next("the same as a list", "20,40 * * * *", "Australia/Lord_Howe",
         "2026-04-04T14:40", "2026-04-04T15:50", "2026-04-04T15:10"),
    Next("the second pass at Chatham", "*/15 2 * * *", "Pacific/Chatham",
         "2026-04-04T13:00", "2026-04-05T13:15", "2026-04-04T14:00"),
    Next("the second pass at Troll", "15 0,1 * * *", "Antarctica/Troll",
         "2026-10-24T23:15", "2026-10-26T00:15", "2026-10-25T01:15"),
    Next("one date a year in New York", "30 1 1 11 *", "America/New_York",
         "2026-11-01T05:30", "2027-11-01T05:30", "2026-11-01T06:30"),
    Next("one date a year in Berlin", "30 2 25 10 *", "Europe/Berlin",
         "2026-10-25T00:30", "2027-10-25T00:30", "2026-10-25T01:30"),
    Next("a range of one day is a day", "0 0 1-1 * *", "UTC", "2026-01-01T00:00", "2026-01-02T00:00", "2026-02-01T00:00"),
    Next("a range of one minute is a minute", "5-5 * * * *", "UTC", "2026-01-01T00:05", "2026-01-01T00:06", "2026-01-01T01:05"),
    Next("a range of one hour is an hour", "0 3-3 * * *", "UTC", "2026-01-01T03:00", "2026-01-01T04:00", "2026-01-02T03:00"),
    Next("a range of Sunday is Sunday", "0 0 * * 7-7", "UTC", "2026-01-04T00:00", "2026-01-05T00:00", "2026-01-11T00:00"),
    Next("a range of one month is a month", "0 0 1 6-6 *", "UTC", "2026-06-01T00:00", "2026-07-01T00:00", "2027-06-01T00:00"),
    Next("all days or every other weekday", "0 0 1-31 * */2", "UTC",
         "2026-01-01T00:00", "2026-01-03T00:00", "2026-01-02T00:00"),
    Next("the 10th or the first Monday", "0 0 10 * 1#1", "UTC",
         "2026-01-01T00:00", "never", "2026-01-05T00:00"),
    Next("the last day or the last Monday", "0 0 L * L1", "UTC",
         "2026-01-26T00:00", "2026-02-23T00:00", "2026-01-31T00:00"),
    Next("near the 15th or on Monday", "0 0 15W * 1", "UTC",
         "2026-01-01T00:00", "2026-01-15T00:00", "2026-01-05T00:00"),
    Next("around midnight by threes", "0 13-6/3 * * *", "UTC",
         "2026-01-01T22:00", "2026-01-02T02:00", "2026-01-02T01:00"),
    Next("Friday by twos", "0 0 * * 5/2", "UTC", "2026-01-02T00:00", "2026-01-09T00:00", "2026-01-04T00:00"),
    Next("Sunday by twos", "0 0 * * 7/2", "UTC", "2026-01-04T00:00", "2026-01-06T00:00", "2026-01-11T00:00"),
]
PREVIOUS = [
    Next("inside the second pass", "30 1 * 11 *", "America/New_York",
         "2026-11-01T06:00", "2025-11-30T06:30", "2026-11-01T05:30"),
    Next("the same with half hours", "30 1 * 11 *", "America/St_Johns",
         "2026-11-01T04:35", "2025-11-30T05:00", "2026-11-01T04:00"),
    Next("inside a repeated half hour", "*/20 * * * *", "Australia/Lord_Howe",
         "2026-04-04T15:01", "2026-04-04T14:20", "2026-04-04T14:40"),
]
# fmt: on


@pytest.mark.parametrize("case", NEXT, ids=lambda case: case.name)
def test_next_beside_croniter(case: Next) -> None:
    start = at(case.after)
    calendar = croniter(case.expression, start.astimezone(load_zone(case.zone)))
    if case.croniter == "never":
        with pytest.raises(CroniterBadDateError):
            calendar.get_next(datetime)
    else:
        assert calendar.get_next(datetime).astimezone(UTC) == at(case.croniter)
    assert next_due_time(parse_cron(case.expression, case.zone), after=start) == at(case.ours)


@pytest.mark.parametrize("case", PREVIOUS, ids=lambda case: case.name)
def test_latest_beside_croniter(case: Next) -> None:
    start = at(case.after)
    theirs = croniter(case.expression, start.astimezone(load_zone(case.zone))).get_prev(datetime).astimezone(UTC)
    ours = latest_due_time(parse_cron(case.expression, case.zone), after=at("1990-01-01"), until=start)
    assert (theirs, ours) == (at(case.croniter), at(case.ours))


def test_croniter_range_stops_early_in_a_fold() -> None:
    """K-011: it compares wall times; ours has all eleven (test_due_times.py)."""
    zone = load_zone("America/New_York")
    span = (at("2026-11-01T04:00").astimezone(zone), at("2026-11-01T06:30").astimezone(zone))
    assert len(list(croniter_range(*span, "*/15 * * * *"))) == 7


@pytest.mark.parametrize(
    "expression",
    ["0 0 0-0 * *", "0 0 * 0-0 *", "0 0 31-L * *", "R * * * *", "* * * * * *", "0 0 ? * 1", "0 0 31 2 *", "0 0 28-3 * *",
     "50-10 * * * *", "0 0 * * 1,1#2"],
)  # fmt: skip
def test_valid_for_croniter_and_refused_here(expression: str) -> None:
    assert croniter.is_valid(expression)
    with pytest.raises(InvalidTriggerError):
        parse_cron(expression, "UTC")


@pytest.mark.parametrize("expression", ["0 0 31 2 1", "0 0 31 4 */2"])
def test_refused_by_croniters_strict_mode_and_read_here(expression: str) -> None:
    """K-070: the weekday side fires."""
    assert not croniter.is_valid(expression, strict=True)
    assert next_due_time(parse_cron(expression, "UTC"), after=at("2026-01-01")) is not None
