"""The fields beside the expression: policies for gaps and folds, unions, dates left out, validity, jitter."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support.brute_calendar import HALF_WINDOW, Cron, brute_due_times, crons
from support.builders import a_schedule, a_spec
from unit.test_due_times_brute import WINDOWS
from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import MisfirePolicy, RepeatedTimePolicy, SkippedTimePolicy
from workflow_schedules.core.acceptance import Accepted, accept, trigger_of
from workflow_schedules.core.due_times import (
    count_due_times,
    due_times,
    end_of_date,
    is_excluded,
    latest_due_time,
    newest_due_times,
    next_due_time,
    next_exclusion,
    parse_cron,
    start_of_date,
)
from workflow_schedules.core.jitter import Jitter
from workflow_schedules.core.misfire import Judgement, Misfire, Verdict, judge_due
from workflow_schedules.core.refusals import Refusal, refusals
from workflow_schedules.core.triggers import Calendar, Trigger
from workflow_schedules.core.zones import to_seconds

LEFT_OUT, FIRST = SkippedTimePolicy.SKIP, RepeatedTimePolicy.FIRST
NEW_YORK, BERLIN = "America/New_York", "Europe/Berlin"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def a_calendar(*schedules: str, zone: str = "UTC", **fields: object) -> Trigger:
    return trigger_of(a_spec(schedule=None, schedules=schedules, time_zone=zone, **fields))


def check_all_ways(trigger: Trigger, after: datetime, until: datetime, want: list[datetime]) -> None:
    """R6, R17: listed, newest first, next, latest and counted are one calendar."""
    assert list(due_times(trigger, after=after, until=until)) == want
    assert list(newest_due_times(trigger, after=after, until=until)) == want[::-1]
    assert count_due_times(trigger, after=after, until=until) == len(want)
    assert latest_due_time(trigger, after=after, until=until) == (want[-1] if want else None)
    following = next_due_time(trigger, after=after)
    assert following == want[0] if want else following is None or following > until


@dataclass(frozen=True, slots=True)
class Case:
    """All instants in ``(after, until]``."""

    name: str
    schedules: tuple[str, ...]
    zone: str
    after: str
    until: str
    want: str
    fields: dict[str, Any] = field(default_factory=dict)


# fmt: off
CASES = [
    Case("a missing wall time moves", ("30 2 * * *",), NEW_YORK, "2026-03-07T12:00", "2026-03-09T12:00",
         "2026-03-08T07:00 2026-03-09T06:30"),
    Case("or is left out", ("30 2 * * *",), NEW_YORK, "2026-03-07T12:00", "2026-03-09T12:00",
         "2026-03-09T06:30", {"skipped_time_policy": LEFT_OUT}),
    Case("left out, and what exists stays", ("0,30 2,3 * * *",), NEW_YORK, "2026-03-07T12:00", "2026-03-08T12:00",
         "2026-03-08T07:00 2026-03-08T07:30", {"skipped_time_policy": LEFT_OUT}),
    Case("a missing midnight is left out", ("0 0 * * *",), "Africa/Cairo", "2026-04-22T12:00", "2026-04-24T21:00",
         "2026-04-22T22:00 2026-04-24T21:00", {"skipped_time_policy": LEFT_OUT}),
    Case("a missing day moves to its end", ("0 12 * * *",), "Pacific/Apia", "2011-12-29T00:00", "2011-12-31T00:00",
         "2011-12-29T22:00 2011-12-30T10:00 2011-12-30T22:00"),
    Case("a missing day is left out", ("0 12 * * *",), "Pacific/Apia", "2011-12-29T00:00", "2011-12-31T00:00",
         "2011-12-29T22:00 2011-12-30T22:00", {"skipped_time_policy": LEFT_OUT}),
    Case("a repeated wall time runs twice", ("30 1 * * *",), NEW_YORK, "2026-10-31T12:00", "2026-11-02T12:00",
         "2026-11-01T05:30 2026-11-01T06:30 2026-11-02T06:30"),
    Case("or the first time only", ("30 1 * * *",), NEW_YORK, "2026-10-31T12:00", "2026-11-02T12:00",
         "2026-11-01T05:30 2026-11-02T06:30", {"repeated_time_policy": FIRST}),
    Case("the first time only, every quarter of an hour", ("*/15 * * * *",), NEW_YORK, "2026-11-01T05:15", "2026-11-01T07:15",
         "2026-11-01T05:30 2026-11-01T05:45 2026-11-01T07:00 2026-11-01T07:15", {"repeated_time_policy": FIRST}),
    Case("the first time only, half an hour at Lord Howe", ("*/20 * * * *",), "Australia/Lord_Howe",
         "2026-04-04T14:30", "2026-04-04T16:00", "2026-04-04T14:40 2026-04-04T15:30 2026-04-04T15:50",
         {"repeated_time_policy": FIRST}),
    Case("the first time only, asked for inside of the second", ("30 1 * * *",), NEW_YORK, "2026-11-01T06:00", "2026-11-01T23:00",
         "", {"repeated_time_policy": FIRST}),
    Case("a union is sorted, and equal instants are one", ("0 * * * *", "*/30 9 * * *", "0 9 * * *"), "UTC",
         "2026-01-01T08:00", "2026-01-01T10:00", "2026-01-01T09:00 2026-01-01T09:30 2026-01-01T10:00"),
    Case("a union of unlike days", ("0 9 1 * *", "0 8 * * mon"), BERLIN, "2026-05-31T12:00", "2026-06-08T12:00",
         "2026-06-01T06:00 2026-06-01T07:00 2026-06-08T06:00"),
    Case("a moved instant and a genuine one are one", ("30 2 * * *", "0 3 * * *"), NEW_YORK,
         "2026-03-07T12:00", "2026-03-08T12:00", "2026-03-08T07:00"),
    Case("two moved instants are one", ("30 2 * * *", "45 2 * * *"), NEW_YORK, "2026-03-07T12:00", "2026-03-08T12:00",
         "2026-03-08T07:00"),
    Case("in a union each expression follows its own hour field in a gap", ("30 * * * *", "15 2 * * *"), NEW_YORK,
         "2026-03-08T06:00", "2026-03-08T08:00", "2026-03-08T06:30 2026-03-08T07:00 2026-03-08T07:30"),
    Case("a union repeats as a whole", ("30 1 * * *", "30 0-2 * * *"), NEW_YORK, "2026-11-01T04:00", "2026-11-01T08:00",
         "2026-11-01T04:30 2026-11-01T05:30 2026-11-01T06:30 2026-11-01T07:30"),
    Case("nothing before the start", ("0 * * * *",), "UTC", "2026-01-01T00:00", "2026-01-01T03:00",
         "2026-01-01T02:00 2026-01-01T03:00", {"start_time": "2026-01-01T01:00:01Z"}),
    Case("the start itself counts", ("0 * * * *",), "UTC", "2026-01-01T00:00", "2026-01-01T02:00",
         "2026-01-01T01:00 2026-01-01T02:00", {"start_time": "2026-01-01T02:00:00+01:00"}),
    Case("the end itself counts, and nothing after it", ("0 * * * *",), "UTC", "2026-01-01T00:00", "2030-01-01T00:00",
         "2026-01-01T01:00 2026-01-01T02:00", {"end_time": "2026-01-01T02:00:00Z"}),
    Case("a moved instant after the end is not due", ("30 2 * * *",), NEW_YORK, "2026-03-07T12:00", "2026-03-09T12:00",
         "", {"end_time": "2026-03-08T06:59:59Z"}),
    Case("dates to exclude are due: they are skipped on record", ("0 0 * * *",), "UTC", "2026-01-01T00:00", "2026-01-03T00:00",
         "2026-01-02T00:00 2026-01-03T00:00", {"exclude_dates": ("2026-01-02",)}),
]
# fmt: on


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_fields(case: Case) -> None:
    """R5, R6: `skippedTimePolicy`, `repeatedTimePolicy`, `schedules`, `startTime`, `endTime`."""
    trigger = a_calendar(*case.schedules, zone=case.zone, **case.fields)
    check_all_ways(trigger, at(case.after), at(case.until), [at(text) for text in case.want.split()])


# The second calendar, extended to the fields


@settings(max_examples=settings.default.max_examples // 2)
@given(
    union=st.lists(crons(), min_size=1, max_size=3),
    start=st.integers(0, len(WINDOWS) - 1),
    skipped=st.sampled_from(SkippedTimePolicy),
    repeated=st.sampled_from(RepeatedTimePolicy),
    bounds=st.tuples(st.none() | st.integers(-1000, 1000), st.none() | st.integers(-1000, 1000)),
    after=st.integers(-1200, 1200),
)
def test_unions_and_policies_fire_as_the_second_calendar_says(
    union: list[Cron],
    start: int,
    skipped: SkippedTimePolicy,
    repeated: RepeatedTimePolicy,
    bounds: tuple[int | None, int | None],
    after: int,
) -> None:
    """R5, R6, R17: through gaps and folds, whatever the policies, the bounds and the part that is asked for."""
    assume(all(len(cron.text) <= 120 for cron in union))
    for zone, centre in (WINDOWS[start], WINDOWS[start - 7], WINDOWS[start - 19]):
        first, last = (None if minutes is None else centre + timedelta(minutes=minutes) for minutes in bounds)
        assume(first is None or last is None or first < last)
        schedule = a_schedule(
            schedule=None, schedules=tuple(cron.text for cron in union), time_zone=zone, start_time=first, end_time=last,
            skipped_time_policy=skipped, repeated_time_policy=repeated,
        )  # fmt: skip
        verdict = accept(schedule)
        assume(not isinstance(verdict, Refusal) or verdict.reason != "NeverMatches")
        assert isinstance(verdict, Accepted), verdict
        policies = {"is_moved": skipped is not LEFT_OUT, "is_repeated": repeated is not FIRST}
        fires = [set(brute_due_times(cron, zone, centre, **policies)) for cron in union]
        low, until = centre + timedelta(minutes=after), centre + HALF_WINDOW
        want = [instant for instant in sorted(set().union(*fires)) if low < instant <= until]
        want = [
            instant for instant in want if (first is None or instant >= first) and (last is None or instant <= last)
        ]
        check_all_ways(verdict.trigger, low, until, want)


@settings(max_examples=settings.default.max_examples // 2)
@given(
    union=st.lists(crons(), min_size=2, max_size=4),
    window=st.sampled_from(WINDOWS),
    skipped=st.sampled_from(SkippedTimePolicy),
    repeated=st.sampled_from(RepeatedTimePolicy),
    days=st.integers(0, 90),
)
def test_the_ways_to_ask_agree_about_unions_over_long_spans(
    union: list[Cron],
    window: tuple[str, datetime],
    skipped: SkippedTimePolicy,
    repeated: RepeatedTimePolicy,
    days: int,
) -> None:
    """R6, R17: and a union is what its expressions yield, each alone."""
    zone, centre = window
    assume(all(len(cron.text) <= 120 for cron in union))
    policies = {"skipped_time_policy": skipped, "repeated_time_policy": repeated}
    texts = tuple(cron.text for cron in union)
    assume(not refusals(a_schedule(schedule=None, schedules=texts, time_zone=zone)))
    per_day = sum(len(cron.minutes.values) * len(cron.hours.values) for cron in union)
    begin = centre - timedelta(days=min(days, 3000 // per_day))
    span = {"after": begin, "until": centre + timedelta(days=1)}
    alone = [set(due_times(a_calendar(text, zone=zone, **policies), **span)) for text in texts]
    check_all_ways(a_calendar(*texts, zone=zone, **policies), span["after"], span["until"], sorted(set().union(*alone)))


# Dates to exclude


def excluding(*dates: str, zone: str = "UTC", schedule: str = "0 * * * *") -> Trigger:
    return a_calendar(schedule, zone=zone, exclude_dates=dates)


DATES = [
    ("the date is local: begins in the west", "2026-12-25T05:00", NEW_YORK, True),
    ("a second before it", "2026-12-25T04:59:59", NEW_YORK, False),
    ("the last second", "2026-12-26T04:59:59", NEW_YORK, True),
    ("the first second after it", "2026-12-26T05:00", NEW_YORK, False),
    ("begins in the east", "2026-12-24T10:00", "Pacific/Kiritimati", True),
    ("another year", "2027-12-25T05:00", NEW_YORK, False),
]


@pytest.mark.parametrize(("instant", "zone", "want"), [row[1:] for row in DATES], ids=[row[0] for row in DATES])
def test_dates_are_those_of_the_zone(instant: str, zone: str, want: bool) -> None:
    assert is_excluded(excluding("2026-12-25", zone=zone), at(instant)) is want


@pytest.mark.parametrize(
    ("zone", "date", "first", "last"),
    [
        ("UTC", "2026-01-02", "2026-01-02T00:00", "2026-01-02T23:59:59"),
        (NEW_YORK, "2026-03-08", "2026-03-08T05:00", "2026-03-09T03:59:59"),  # 23 hours
        (NEW_YORK, "2026-11-01", "2026-11-01T04:00", "2026-11-02T04:59:59"),  # 25 hours
        ("Africa/Cairo", "2026-04-24", "2026-04-23T22:00", "2026-04-24T20:59:59"),  # begins at 01:00
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00", "2011-12-31T09:59:59"),  # after a day that is missing
        ("UTC", "9998-12-31", "9998-12-31T00:00", "9998-12-31T23:59:59"),
    ],
)
def test_a_date_has_a_first_and_a_last_second(zone: str, date: str, first: str, last: str) -> None:
    trigger = excluding(date, zone=zone)
    assert next_exclusion(trigger, at(first) - timedelta(days=1)) == at(first)
    assert start_of_date(trigger, at(last)) == at(first)
    assert end_of_date(trigger, at(first)) == at(last)


def test_no_date_begins_after_the_last_one() -> None:
    assert next_exclusion(excluding("2026-01-02"), at("2026-01-03")) is None
    assert next_exclusion(excluding(), at("2026-01-03")) is None


@pytest.mark.parametrize("zone", ["UTC", "Etc/GMT+12", "Pacific/Kiritimati", NEW_YORK])
def test_dates_at_the_ends_of_the_calendar_are_dates(zone: str) -> None:
    """Found at once, however far: a date in the year 9999 must not stop the scheduler."""
    trigger = excluding("0001-01-01", "9999-12-30", "9999-12-31", zone=zone, schedule="0 0 * * *")
    assert next_exclusion(trigger, at("2026-01-01")).year == 9999  # type: ignore[union-attr]
    for moment in (datetime.min.replace(tzinfo=UTC) + timedelta(days=2), at("9999-12-30T20:00")):
        assert start_of_date(trigger, moment) <= moment <= end_of_date(trigger, moment)
    found = judge_due(trigger, RULE_LATEST, after=at("9999-12-27"), now=at("9999-12-30T23:00"), free_slots=1)
    assert found.verdict is not None


RULE_SKIP = Misfire.of(a_spec())
RULE_LATEST = Misfire.of(a_spec(misfire_policy=MisfirePolicy.LATEST))


def verdict(decision: Decision, first: str, last: str | None = None, count: int = 1) -> Verdict:
    return Verdict(decision=decision, first=at(first), last=at(last or first), count=count)


EXCLUDED, LATE, COALESCED, ADMITTED = (
    Decision.SKIPPED_EXCLUDED, Decision.SKIPPED_MISFIRE, Decision.COALESCED, Decision.ADMITTED,
)  # fmt: skip
# one verdict after the other about hourly instants in New York, where 2026-12-25 lasts from 05:00Z to 04:59Z
EXCLUSIONS = [
    ("one instant on the date", ("2026-12-25",), RULE_SKIP, "2026-12-25T05:00", "2026-12-25T06:00:10",
     [verdict(EXCLUDED, "2026-12-25T06:00")]),
    ("before, on and after the date, all late", ("2026-12-25",), RULE_SKIP, "2026-12-25T02:00", "2026-12-26T06:30",
     [verdict(LATE, "2026-12-25T03:00", "2026-12-25T04:00", 2), verdict(EXCLUDED, "2026-12-25T05:00", "2026-12-26T04:00", 24),
      verdict(LATE, "2026-12-26T05:00", "2026-12-26T06:00", 2)]),
    ("dates in a row are one record", ("2026-12-25", "2026-12-26"), RULE_SKIP, "2026-12-25T04:00", "2026-12-27T05:00:10",
     [verdict(EXCLUDED, "2026-12-25T05:00", "2026-12-27T04:00", 48), verdict(ADMITTED, "2026-12-27T05:00")]),
    ("the newest that is not excluded runs under Latest", ("2026-12-25",), RULE_LATEST, "2026-12-25T02:00", "2026-12-25T20:00",
     [verdict(COALESCED, "2026-12-25T03:00"), verdict(ADMITTED, "2026-12-25T04:00"),
      verdict(EXCLUDED, "2026-12-25T05:00", "2026-12-25T20:00", 16)]),
    ("an instant after the date displaces one before it", ("2026-12-25",), RULE_LATEST, "2026-12-25T03:00", "2026-12-26T05:10",
     [verdict(COALESCED, "2026-12-25T04:00"), verdict(EXCLUDED, "2026-12-25T05:00", "2026-12-26T04:00", 24),
      verdict(ADMITTED, "2026-12-26T05:00")]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("dates", "rule", "after", "now", "want"), [row[1:] for row in EXCLUSIONS], ids=[row[0] for row in EXCLUSIONS]
)
def test_excluded_instants_are_skipped_on_record(
    dates: tuple[str, ...], rule: Misfire, after: str, now: str, want: list[Verdict]
) -> None:
    """R16, R17, R29: `SkippedExcluded`, never run, never a candidate, never coalesced."""
    trigger, consumed, slots, found = excluding(*dates, zone=NEW_YORK), at(after), 1, []
    while (judged := judge_due(trigger, rule, after=consumed, now=at(now), free_slots=slots).verdict) is not None:
        found.append(judged)
        consumed = judged.last
        slots -= judged.decision is ADMITTED
    assert found == want


@given(
    dates=st.lists(st.integers(0, 9), max_size=6, unique=True),
    policy=st.sampled_from(MisfirePolicy),
    zone=st.sampled_from(["UTC", NEW_YORK, "Africa/Cairo"]),
    schedule=st.sampled_from(["0 */5 * * *", "30 2 * * *", "0 0 */2 * *"]),
    behind=st.integers(0, 12 * 24 * 3600),
    jitter=st.sampled_from([0, 3000, 86400]),
    free_slots=st.integers(0, 2),
)
def test_every_instant_is_accounted_for_beside_excluded_dates_and_jitter(
    dates: list[int], policy: MisfirePolicy, zone: str, schedule: str, behind: int, jitter: int, free_slots: int
) -> None:
    """I3, R16: spans meet, an excluded instant is skipped and no other, nothing starts before its jitter."""
    trigger = excluding(*(f"2026-04-{20 + day}" for day in dates), zone=zone, schedule=schedule)
    spread, rule, now = (
        Jitter(uid="u", max_seconds=jitter),
        Misfire.of(a_spec(misfire_policy=policy)),
        at("2026-04-30T12:00"),
    )
    after = now - timedelta(seconds=behind)
    due = list(due_times(trigger, after=after, until=now))
    while True:
        judged = judge_due(trigger, rule, after=after, now=now, free_slots=free_slots, jitter=spread)
        found = judged.verdict
        if found is None:
            break
        assert (found.first, found.last) == (due[0], due[found.count - 1])
        mine, due, after = due[: found.count], due[found.count :], found.last
        assert {is_excluded(trigger, instant) for instant in mine} == {found.decision is EXCLUDED}
        if found.decision is ADMITTED:
            assert spread.start_of(found.last, trigger) <= now
            free_slots -= 1
    waiting = [*judged.candidates, *filter(None, (judged.spread,))]
    assert due[:1] == waiting[:1]  # the excluded ones behind it are skipped on record as soon as it is decided
    assert [instant for instant in due if not is_excluded(trigger, instant)] == waiting
    assert judged.spread is None or spread.start_of(judged.spread, trigger) > now


# Jitter


WAITING = [
    ("before its instant", "09:59:59", 1, Judgement()),
    ("at its instant it waits", "10:00", 1, Judgement(spread=at("2026-01-01T10:00"))),
    ("blocked, it waits all the same", "10:00", 0, Judgement(spread=at("2026-01-01T10:00"))),
    ("a moment before its start", "10:06:39.9", 1, Judgement(spread=at("2026-01-01T10:00"))),
    ("at its start it runs", "10:06:40", 1, Judgement(verdict=verdict(ADMITTED, "2026-01-01T10:00"))),
    ("the deadline counts from there", "10:07:40", 1, Judgement(verdict=verdict(ADMITTED, "2026-01-01T10:00"))),
    ("then it is late", "10:07:41", 1, Judgement(verdict=verdict(LATE, "2026-01-01T10:00"))),
]


def delay_of(uid: str, instant: datetime, trigger: Trigger) -> int:
    return int((Jitter(uid=uid, max_seconds=600).start_of(instant, trigger) - instant).total_seconds())


@pytest.mark.parametrize(("now", "slots", "want"), [row[1:] for row in WAITING], ids=[row[0] for row in WAITING])
def test_an_instant_waits_for_its_jitter(now: str, slots: int, want: Judgement) -> None:
    """R16: `startingDeadlineSeconds` is after the instant plus its jitter."""
    trigger, instant = parse_cron("0 * * * *", "UTC"), at("2026-01-01T10:00")
    uid = next(f"u{n}" for n in range(10_000) if delay_of(f"u{n}", instant, trigger) == 400)
    jitter, after = Jitter(uid=uid, max_seconds=600), at("2026-01-01T09:00")
    got = judge_due(trigger, RULE_SKIP, after=after, now=at(f"2026-01-01T{now}"), free_slots=slots, jitter=jitter)
    assert got == want


def test_what_is_excluded_waits_for_no_jitter() -> None:
    """It never starts, so that it is no candidate either."""
    trigger, jitter = excluding("2026-01-01"), Jitter(uid="u", max_seconds=1700)
    after, now = at("2026-01-01T09:00"), at("2026-01-01T10:00")
    got = judge_due(trigger, RULE_SKIP, after=after, now=now, free_slots=1, jitter=jitter)
    assert got == Judgement(verdict=verdict(EXCLUDED, "2026-01-01T10:00"))


# One-shots, and what is shared


def test_a_one_shot_on_an_excluded_date_is_skipped_on_record() -> None:
    trigger = trigger_of(a_spec(run_once_time="2026-12-24T23:30:00Z", time_zone=BERLIN, exclude_dates=("2026-12-25",)))
    got = judge_due(trigger, RULE_SKIP, after=at("2026-12-24"), now=at("2026-12-24T23:30"), free_slots=1)
    assert got == Judgement(verdict=verdict(EXCLUDED, "2026-12-24T23:30"))


def test_equal_specs_share_one_calendar() -> None:
    fields: dict[str, Any] = {"exclude_dates": ("2026-12-25",), "start_time": "2026-01-01T00:00:00Z"}
    one = a_calendar("0 * * * *", "5 * * * *", **fields)
    assert one is a_calendar("0 * * * *", "5 * * * *", **fields)
    assert isinstance(one, Calendar)
    assert one.first == to_seconds(at("2026-01-01"))
    assert one is not a_calendar("0 * * * *", "5 * * * *", skipped_time_policy=LEFT_OUT, **fields)
