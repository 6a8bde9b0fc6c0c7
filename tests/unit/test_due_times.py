"""due_times beside the table of facts, its edges, and how fast it must be."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from unit.calendar_table import CALENDAR, LATEST, Calendar, Latest
from workflow_schedules.core.due_times import (
    count_due_times,
    due_times,
    latest_due_time,
    newest_due_times,
    next_due_time,
    parse_cron,
)
from workflow_schedules.core.triggers import CronTrigger, InvalidTriggerError, OneShotTrigger, Trigger
from workflow_schedules.core.zones import to_seconds

END = datetime.max.replace(tzinfo=UTC)
BEGINNING = datetime.min.replace(tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def follow(trigger: Trigger, after: datetime, count: int) -> list[datetime | None]:
    found: list[datetime | None] = []
    for _ in range(count):
        following = next_due_time(trigger, after=after)
        found.append(following)
        if following is None:
            break
        after = following
    return found


@pytest.mark.parametrize("case", CALENDAR, ids=lambda case: case.name)
def test_calendar(case: Calendar) -> None:
    """R5, R6: next, listed, newest first, latest and counted are one calendar."""
    trigger, after = parse_cron(case.expression, case.zone), at(case.after)
    want = [at(text) for text in case.want.split()]
    assert follow(trigger, after, len(want)) == want
    assert list(islice(due_times(trigger, after=after, until=END), len(want))) == want
    assert list(newest_due_times(trigger, after=after, until=want[-1])) == want[::-1]
    assert count_due_times(trigger, after=after, until=want[-1]) == len(want)
    for number, instant in enumerate(want, start=1):
        assert latest_due_time(trigger, after=after, until=instant) == instant
        assert latest_due_time(trigger, after=after, until=instant + timedelta(milliseconds=999)) == instant
        assert count_due_times(trigger, after=after, until=instant) == number
        assert count_due_times(trigger, after=instant, until=want[-1]) == len(want) - number


@pytest.mark.parametrize("case", LATEST, ids=lambda case: case.name)
def test_latest_at_or_before(case: Latest) -> None:
    """R5, R17, K-001: found backwards, and the very instant that going forwards finds."""
    trigger, want = parse_cron(case.expression, case.zone), at(case.want)
    assert latest_due_time(trigger, after=BEGINNING, until=at(case.at)) == want
    assert next_due_time(trigger, after=want - timedelta(seconds=1)) == want
    assert count_due_times(trigger, after=want, until=at(case.at)) == 0


def test_the_second_pass_of_a_fold_is_listed_to_its_end() -> None:
    """K-011: eleven quarters of an hour up to the end of the range, compared in UTC."""
    trigger = parse_cron("*/15 * * * *", "America/New_York")
    found = list(due_times(trigger, after=at("2026-11-01T03:59"), until=at("2026-11-01T06:30")))
    assert found == [at("2026-11-01T04:00") + timedelta(minutes=15 * n) for n in range(11)]


def test_equal_instants_of_two_spellings_are_equal() -> None:
    """K-044: what is compared and stored is UTC at whole seconds."""
    utc, berlin = parse_cron("0 12 * * *", "UTC"), parse_cron("0 14 * * *", "Europe/Berlin")
    after = at("2026-06-01T00:00")
    assert next_due_time(utc, after=after) == next_due_time(berlin, after=after) == at("2026-06-01T12:00")


EDGES = [
    ("half-open: the start is left out", "2026-01-01T00:00", "2026-01-01T00:02", ["00:01", "00:02"]),
    ("half-open: the end is taken in", "2026-01-01T00:00:59.999999", "2026-01-01T00:01", ["00:01"]),
    ("a fraction of a second after it, it is over", "2026-01-01T00:01:00.000001", "2026-01-01T00:01:59.999999", []),
    ("nothing in an empty span", "2026-01-01T00:01", "2026-01-01T00:01", []),
    ("nothing in a span that runs backwards", "2026-01-01T00:02", "2026-01-01T00:00", []),
]


@pytest.mark.parametrize(("after", "until", "want"), [row[1:] for row in EDGES], ids=[row[0] for row in EDGES])
def test_bounds(after: str, until: str, want: list[str]) -> None:
    trigger = parse_cron("* * * * *", "UTC")
    instants = [at(f"2026-01-01T{text}") for text in want]
    span = {"after": at(after), "until": at(until)}
    assert list(due_times(trigger, **span)) == instants
    assert list(newest_due_times(trigger, **span)) == instants[::-1]
    assert count_due_times(trigger, **span) == len(instants)


ONE_SHOT = OneShotTrigger(instant=to_seconds(at("2026-01-01T12:00")))


@pytest.mark.parametrize(
    ("after", "until", "is_due"),
    [
        ("2026-01-01T11:59:59", "2026-01-01T12:00", True),
        ("2026-01-01T12:00", "2026-01-01T13:00", False),
        ("2026-01-01T11:00", "2026-01-01T11:59:59.9", False),
        ("2026-01-01T11:00", "2026-01-02T00:00", True),
    ],
)
def test_one_shot(after: str, until: str, is_due: bool) -> None:
    """R7: one instant, under the same half-open rule."""
    want = [at("2026-01-01T12:00")] if is_due else []
    span = {"after": at(after), "until": at(until)}
    assert list(due_times(ONE_SHOT, **span)) == want
    assert list(newest_due_times(ONE_SHOT, **span)) == want
    assert count_due_times(ONE_SHOT, **span) == len(want)
    assert latest_due_time(ONE_SHOT, **span) == (want[0] if want else None)


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Tokyo", "Etc/GMT+12", "Pacific/Kiritimati"])
def test_the_calendar_has_two_ends(zone: str) -> None:
    """Year 1 and year 9999: exhausted, never an error, whatever the offset."""
    trigger = parse_cron("0 0 * * *", zone)
    first, last = next_due_time(trigger, after=BEGINNING), latest_due_time(trigger, after=BEGINNING, until=END)
    assert first is not None
    assert last is not None
    assert (first.year, last.year) == (1, 9999)
    assert next_due_time(trigger, after=last) is None
    assert latest_due_time(trigger, after=BEGINNING, until=first - timedelta(seconds=1)) is None
    assert list(due_times(trigger, after=last - timedelta(days=1), until=END)) == [last]
    assert count_due_times(trigger, after=last - timedelta(days=9), until=END) == 9


def test_a_moved_time_that_meets_a_genuine_one_counts_once_where_offsets_have_seconds() -> None:
    """R17: Monrovia's gap of 1972 ends half a minute after a full minute."""
    trigger = parse_cron("* 0 7 1 *", "Africa/Monrovia")
    span = {"after": at("1972-01-06T00:00"), "until": at("1972-01-08T00:00")}
    assert count_due_times(trigger, **span) == len(list(due_times(trigger, **span)))


@pytest.mark.parametrize("expression", ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 30,31 feb *"])
def test_what_never_fires_is_refused(expression: str) -> None:
    """R5, K-070."""
    with pytest.raises(InvalidTriggerError, match="no such date exists in any year: name a day") as caught:
        parse_cron(expression, "UTC")
    assert (caught.value.field, caught.value.reason) == ("schedule", "NeverMatches")


@pytest.mark.parametrize("expression", ["0 0 31 2 1", "0 0 31 4 */2", "0 0 29 2 *", "0 0 * 2 1#5", "0 0 31W 2 *"])
def test_what_fires_rarely_is_not(expression: str) -> None:
    """K-070: the weekday side of the either-or, leap years, the 28 years of the week."""
    assert next_due_time(parse_cron(expression, "UTC"), after=at("2001-01-01T00:00")) is not None


@pytest.mark.parametrize("expression", ["1" * 121, "0 0 * * " + ",".join(["1"] * 57)], ids=len)
def test_length_is_bounded(expression: str) -> None:
    """R5, K-076: at most 120 characters."""
    with pytest.raises(InvalidTriggerError, match=f"it has {len(expression)} characters: write 9 to 120"):
        parse_cron(expression, "UTC")


@pytest.mark.parametrize("expression", ["", "     ", "* * * **"], ids=len)
def test_too_short_an_expression_has_too_few_fields(expression: str) -> None:
    """R5, K-071: what has five fields has at least nine characters."""
    with pytest.raises(InvalidTriggerError, match="fields, not five"):
        parse_cron(expression, "UTC")


def test_the_longest_and_the_shortest_are_read() -> None:
    assert isinstance(parse_cron("* * * * *", "UTC"), CronTrigger)
    longest = "0 0 * * " + ",".join(["1"] * 56) + " "
    assert isinstance(parse_cron(longest, "UTC"), CronTrigger)
    assert len(longest) == 120


def test_equal_arguments_share_one_trigger() -> None:
    """R6: parsed once per expression and zone."""
    assert parse_cron("5 4 * * *", "Asia/Tokyo") is parse_cron("5 4 * * *", "Asia/Tokyo")
    assert parse_cron("5 4 * * *", "Asia/Tokyo") is not parse_cron("5 4 * * *", "UTC")


@pytest.mark.parametrize("zone", ["", "Mars/Olympus", "america/new_york", "UTC\0", "../etc/passwd"])
def test_an_unknown_zone_is_refused_and_never_replaced(zone: str) -> None:
    """R6: `timeZone`."""
    with pytest.raises(InvalidTriggerError, match=r"no IANA zone of tzdata 20.*write a name such as") as caught:
        parse_cron("0 0 * * *", zone)
    assert (caught.value.field, caught.value.reason) == ("timeZone", "UnknownTimeZone")
