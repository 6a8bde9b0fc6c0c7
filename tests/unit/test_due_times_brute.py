"""due_times beside an independent calendar, and beside itself. Scale up: ``pytest tests/unit --hypothesis-profile deep``."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import cycle, islice, pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.brute_calendar import HALF_WINDOW, Cron, brute_due_times, crons
from workflow_schedules.core.due_times import (
    count_due_times,
    due_times,
    latest_due_time,
    newest_due_times,
    next_due_time,
    parse_cron,
)
from workflow_schedules.core.triggers import CronTrigger, InvalidTriggerError

MANY = settings(max_examples=settings.default.max_examples)
WINDOWS_PER_CRON = 20  # 2,000 pairs of expression and window by default

# zone and the minute in UTC near which its clock changes
CHANGES = [
    ("America/New_York", "2026-03-08T07:00"),
    ("America/New_York", "2026-11-01T06:00"),
    ("Europe/Berlin", "2026-03-29T01:00"),
    ("Europe/Berlin", "2026-10-25T01:00"),
    ("Europe/Dublin", "2026-10-25T01:00"),  # negative summer time
    ("Australia/Lord_Howe", "2026-04-04T15:00"),  # half an hour
    ("Australia/Lord_Howe", "2026-10-03T15:30"),
    ("Antarctica/Troll", "2026-10-25T01:00"),  # two hours
    ("Antarctica/Troll", "2026-03-29T01:00"),
    ("Pacific/Chatham", "2026-04-04T14:00"),
    ("Pacific/Chatham", "2026-09-26T14:00"),
    ("Africa/Cairo", "2026-04-23T22:00"),  # at midnight
    ("Africa/Cairo", "2026-10-29T21:00"),
    ("Asia/Beirut", "2026-03-28T22:00"),
    ("America/Havana", "2025-11-02T05:00"),
    ("America/Santiago", "2026-04-05T03:00"),
    ("America/Nuuk", "2026-03-29T01:00"),
    ("America/Scoresbysund", "2024-03-31T01:00"),
    ("Africa/Casablanca", "2025-02-23T02:00"),  # Ramadan
    ("Africa/Casablanca", "2025-04-06T02:00"),
    ("Asia/Pyongyang", "2018-05-04T15:00"),  # for good
    ("America/Caracas", "2007-12-09T07:00"),
    ("Antarctica/Vostok", "2023-12-17T19:00"),
    ("Europe/Volgograd", "2020-12-26T22:00"),
    ("Pacific/Apia", "2011-12-30T10:00"),  # a day is missing
    ("Pacific/Kwajalein", "1993-08-21T12:00"),
    ("Pacific/Fakaofo", "2011-12-30T11:00"),
    ("Asia/Manila", "1844-12-31T15:56"),
    ("America/Juneau", "1867-10-19T00:00"),  # a day twice
    ("Africa/Monrovia", "1972-01-07T00:44"),  # offsets with seconds
    ("Europe/Amsterdam", "1937-06-30T22:40"),
    ("Europe/Paris", "1911-03-10T23:50"),
    ("Asia/Shanghai", "1900-12-31T15:54"),
    ("America/New_York", "2087-03-09T07:00"),  # beyond the tables
    ("Europe/London", "2150-10-25T01:00"),
    ("UTC", "2026-02-28T12:00"),
    ("UTC", "2100-03-01T00:00"),
    ("Asia/Kathmandu", "2027-12-31T18:15"),
    ("Etc/GMT+12", "2028-02-29T12:00"),
    ("Pacific/Kiritimati", "2025-12-31T10:00"),
]
SECONDS = st.integers(0, int(2 * HALF_WINDOW.total_seconds()))
WINDOWS = [(zone, datetime.fromisoformat(at).replace(tzinfo=UTC)) for zone, at in CHANGES]


def parsed(cron: Cron, zone: str) -> CronTrigger:
    assume(len(cron.text) <= 120)
    try:
        return parse_cron(cron.text, zone)
    except InvalidTriggerError as error:
        assume(error.reason != "NeverMatches")
        raise


@MANY
@given(cron=crons(), start=st.integers(0, len(WINDOWS) - 1), after=SECONDS, until=SECONDS)
def test_every_minute_fires_as_the_second_calendar_says(cron: Cron, start: int, after: int, until: int) -> None:
    """R5, R6: oldest first, newest first, next, latest and count alike, for the window and for any part of it."""
    for zone, centre in islice(cycle(WINDOWS), start, start + WINDOWS_PER_CRON):
        trigger = parsed(cron, zone)
        low = centre - HALF_WINDOW
        want = brute_due_times(cron, zone, centre)
        assert list(due_times(trigger, after=low, until=centre + HALF_WINDOW)) == want
        check_part(
            trigger, want, low + timedelta(seconds=min(after, until)), low + timedelta(seconds=max(after, until))
        )


def check_part(trigger: CronTrigger, want: list[datetime], after: datetime, until: datetime) -> None:
    part = [at for at in want if after < at <= until]
    assert list(due_times(trigger, after=after, until=until)) == part
    assert list(newest_due_times(trigger, after=after, until=until)) == part[::-1]
    assert count_due_times(trigger, after=after, until=until) == len(part)
    assert latest_due_time(trigger, after=after, until=until) == (part[-1] if part else None)
    if part:
        assert next_due_time(trigger, after=after) == part[0]


@given(
    cron=crons(),
    zone=st.sampled_from(sorted({zone for zone, _ in CHANGES})),
    after=st.datetimes(datetime(1990, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    days=st.integers(0, 800),
)
def test_the_ways_to_ask_agree_over_long_spans(cron: Cron, zone: str, after: datetime, days: int) -> None:
    """R6, R17: what is counted is what is listed, months and years on end."""
    trigger = parsed(cron, zone)
    until = after + timedelta(days=days)
    first = list(islice(due_times(trigger, after=after, until=until), 50))
    last = list(islice(newest_due_times(trigger, after=after, until=until), 50))
    assert all(earlier < later for earlier, later in pairwise(first))
    assert all(later > earlier for later, earlier in pairwise(last))
    total = count_due_times(trigger, after=after, until=until)
    if total <= 50:
        assert first == last[::-1]
        assert len(first) == total
    else:
        between = count_due_times(trigger, after=first[-1], until=last[-1])
        assert total == 50 + between + 49 or first[-1] >= last[-1]


@pytest.mark.parametrize("window", WINDOWS[:12:3], ids=str)
def test_next_is_always_later_through_a_change(window: tuple[str, datetime]) -> None:
    """K-053: neither a loop nor a lost day at the changeover."""
    zone, centre = window
    trigger = parse_cron("* * * * *", zone)
    at, low = centre - timedelta(hours=4), centre - timedelta(hours=4)
    for minute in range(1, 8 * 60):
        following = next_due_time(trigger, after=at)
        assert following == low + timedelta(minutes=minute)
        at = following
