"""What starts, waits or is given up, as tables of instants."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import a_spec, at
from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import ConcurrencyPolicy, MisfirePolicy
from workflow_schedules.core.acceptance import trigger_of
from workflow_schedules.core.due_times import due_times, is_excluded, parse_cron
from workflow_schedules.core.jitter import Jitter
from workflow_schedules.core.misfire import Judgement, Misfire, Verdict, all_due, judge_due, undecided

SKIP, LATEST, ALL = MisfirePolicy.SKIP, MisfirePolicy.LATEST, MisfirePolicy.ALL

Row: TypeAlias = tuple[Decision, datetime, datetime, int]


def rule(policy: MisfirePolicy, deadline_seconds: int | None = None, keep: int | None = None) -> Misfire:
    spec = a_spec(misfire_policy=policy, starting_deadline_seconds=deadline_seconds, max_catch_up_runs=keep)
    return Misfire.of(spec)


def verdict(decision: Decision, first: str, last: str | None = None, count: int = 1) -> Verdict:
    return Verdict(decision=decision, first=at(first), last=at(last or first), count=count)


def admitted(instant: str, *waiting: str) -> Judgement:
    return Judgement(verdict=verdict(Decision.ADMITTED, instant), candidates=tuple(map(at, waiting)))


def skipped(first: str, last: str | None = None, count: int = 1) -> Judgement:
    return Judgement(verdict=verdict(Decision.SKIPPED_MISFIRE, first, last, count))


def overlapped(first: str, last: str | None = None, count: int = 1) -> Judgement:
    return Judgement(verdict=verdict(Decision.SKIPPED_OVERLAP, first, last, count))


def coalesced(
    first: str, last: str | None = None, count: int = 1, *, candidate: str = "", waiting: str = ""
) -> Judgement:
    candidates = tuple(map(at, (candidate or waiting).split()))
    return Judgement(verdict=verdict(Decision.COALESCED, first, last, count), candidates=candidates)


def waits(*instants: str) -> Judgement:
    return Judgement(candidates=tuple(map(at, instants)))


@dataclass(frozen=True, slots=True)
class Case:
    """Judged at `now` with everything through `after` consumed."""

    name: str
    rule: Misfire
    expression: str
    after: str
    now: str
    free_slots: int
    want: Judgement


HALF_HOURLY, MINUTELY = "*/30 * * * *", "* * * * *"
CASES = [
    Case("R16 skip: nothing is due", rule(SKIP), HALF_HOURLY, "10:00", "10:29:59.9", 1, Judgement()),
    Case("R16 skip: due to the second", rule(SKIP), HALF_HOURLY, "10:00", "10:30", 1, admitted("10:30")),
    Case("R16 skip: in time to the last moment of 60 s", rule(SKIP), HALF_HOURLY, "10:00", "10:31", 1, admitted("10:30")),
    Case("R16 skip: late a moment after it", rule(SKIP), HALF_HOURLY, "10:00", "10:31:00.000001", 1, skipped("10:30")),
    Case("R16 skip: a deadline of its own", rule(SKIP, 5), HALF_HOURLY, "10:00", "10:30:05", 1, admitted("10:30")),
    Case("R16 skip: late by that deadline", rule(SKIP, 5), HALF_HOURLY, "10:00", "10:30:05.1", 1, skipped("10:30")),
    Case("K-021 skip: one record for 24 misses", rule(SKIP), HALF_HOURLY, "00:10", "12:20", 1, skipped("00:30", "12:00", 24)),
    Case("R16 skip: what is late goes first, what is in time later", rule(SKIP), HALF_HOURLY, "09:00", "10:30:30", 1,
         skipped("09:30", "10:00", 2)),
    Case("R12 skip: blocked", rule(SKIP), HALF_HOURLY, "10:00", "10:30", 0, overlapped("10:30")),
    Case("R16 skip: blocked and late is late", rule(SKIP), HALF_HOURLY, "10:00", "10:35", 0, skipped("10:30")),
    Case("R16 skip: several blocked at once are one record", rule(SKIP, 600), MINUTELY, "10:00", "10:03", 0,
         overlapped("10:01", "10:03", 3)),
    Case("R16 skip: several in time for one slot, the older go", rule(SKIP, 600), MINUTELY, "10:00", "10:03", 1,
         skipped("10:01", "10:02", 2)),
    Case("R16 skip: then the newest starts", rule(SKIP, 600), MINUTELY, "10:02", "10:03", 1, admitted("10:03")),
    Case("R13 skip: several in time for two slots, the oldest goes", rule(SKIP, 600), MINUTELY, "10:00", "10:03", 2,
         skipped("10:01")),
    Case("R13 skip: then oldest first", rule(SKIP, 600), MINUTELY, "10:01", "10:03", 2, admitted("10:02")),
    Case("R13 skip: slots to spare", rule(SKIP, 600), MINUTELY, "10:00", "10:03", 9, admitted("10:01")),
    Case("R16 latest: nothing is due", rule(LATEST), HALF_HOURLY, "10:00", "10:29", 1, Judgement()),
    Case("R16 latest: late is no matter", rule(LATEST), HALF_HOURLY, "10:00", "10:59", 1, admitted("10:30")),
    Case("K-021 latest: older ones first, on record", rule(LATEST), HALF_HOURLY, "00:10", "12:20", 1,
         coalesced("00:30", "11:30", 23, candidate="12:00")),
    Case("K-021 latest: then the newest runs", rule(LATEST), HALF_HOURLY, "11:30", "12:20", 1, admitted("12:00")),
    Case("K-027 latest: never more than one for many slots", rule(LATEST), HALF_HOURLY, "10:00", "12:20", 3,
         coalesced("10:30", "11:30", 3, candidate="12:00")),
    Case("R16 latest: blocked waits", rule(LATEST), HALF_HOURLY, "10:00", "10:30", 0, waits("10:30")),
    Case("R16 latest: a newer one displaces what waits", rule(LATEST), HALF_HOURLY, "10:00", "11:00", 0,
         coalesced("10:30", candidate="11:00")),
    Case("R16 latest: beyond a deadline of its own is skipped", rule(LATEST, 60), HALF_HOURLY, "10:00", "10:31:01", 1,
         skipped("10:30")),
    Case("R16 latest: beyond it, though blocked", rule(LATEST, 60), HALF_HOURLY, "10:00", "10:31:01", 0, skipped("10:30")),
    Case("R16 latest: the late ones of several", rule(LATEST, 60), HALF_HOURLY, "10:00", "11:30:10", 1,
         skipped("10:30", "11:00", 2)),
    Case("R16 all: nothing is due", rule(ALL), HALF_HOURLY, "10:00", "10:29", 1, Judgement()),
    Case("R16 all: late is no matter", rule(ALL), HALF_HOURLY, "10:00", "10:59", 1, admitted("10:30")),
    Case("R16 all: blocked, all wait", rule(ALL), HALF_HOURLY, "10:00", "11:30", 0, waits("10:30", "11:00", "11:30")),
    Case("R16 all: one slot, the oldest runs", rule(ALL), HALF_HOURLY, "10:00", "11:30", 1,
         admitted("10:30", "11:00", "11:30")),
    Case("R16 all: three slots, still one at a time, oldest first", rule(ALL), HALF_HOURLY, "10:30", "11:30", 3,
         admitted("11:00", "11:30")),
    Case("R16 all: unset it keeps ten", rule(ALL), MINUTELY, "10:00", "10:11", 1, coalesced(
         "10:01", waiting="10:02 10:03 10:04 10:05 10:06 10:07 10:08 10:09 10:10 10:11")),
    Case("R16 all: what falls out is the oldest, in one record", rule(ALL, keep=2), MINUTELY, "10:00", "10:09", 0,
         coalesced("10:01", "10:07", 7, waiting="10:08 10:09")),
    Case("R16 all: it falls out though a slot is free: never more than the limit", rule(ALL, keep=2), MINUTELY, "10:00",
         "10:09", 5, coalesced("10:01", "10:07", 7, waiting="10:08 10:09")),
    Case("R16 all: a lower limit lets the oldest go", rule(ALL, keep=1), MINUTELY, "10:00", "10:03", 0,
         coalesced("10:01", "10:02", 2, waiting="10:03")),
    Case("R16 all: one is like Latest", rule(ALL, keep=1), HALF_HOURLY, "00:10", "12:20", 1,
         coalesced("00:30", "11:30", 23, waiting="12:00")),
    Case("R16 all: the late go first, as misfires", rule(ALL, 150, keep=2), MINUTELY, "10:00", "10:09:40", 0,
         skipped("10:01", "10:07", 7)),
    Case("R16 all: late, though fewer than the limit wait", rule(ALL, 60), HALF_HOURLY, "10:00", "10:31:01", 1,
         skipped("10:30")),
    Case("R16 all: in time to the last moment", rule(ALL, 60), HALF_HOURLY, "10:00", "10:31", 0, waits("10:30")),
    Case("K-027 all: a month of hours with three slots is ten runs", rule(ALL), "0 * * * *", "2026-01-01T00:00",
         "2026-01-31T00:10", 3, coalesced("2026-01-01T01:00", "2026-01-30T14:00", 710, waiting=" ".join(
             f"2026-01-{30 + hour // 24}T{hour % 24:02d}:00" for hour in range(15, 25)))),
    Case("K-041: a clock behind the watermark", rule(SKIP), MINUTELY, "10:00", "09:58", 1, Judgement()),
    Case("K-041: at the watermark", rule(LATEST), MINUTELY, "10:00", "10:00:30", 1, Judgement()),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_judge_due(case: Case) -> None:
    trigger = parse_cron(case.expression, "UTC")
    got = judge_due(trigger, case.rule, after=at(case.after), now=at(case.now), free_slots=case.free_slots)
    assert got == case.want


@pytest.mark.parametrize(
    ("name", "after", "until", "want"),
    [
        ("the calendar has no more", "10:30", "11:00", None),
        ("the next one comes later", "10:00", "10:29", None),
        ("the next one is the last second of it", "10:00", "10:30", ("10:30", "10:30", 1)),
        ("more than one", "09:30", "12:00", ("10:00", "10:30", 2)),
    ],
)
def test_all_due(name: str, after: str, until: str, want: tuple[str, str, int] | None) -> None:
    """R17: what is given up at once is one verdict, or none where nothing is."""
    ends = trigger_of(a_spec(schedule=HALF_HOURLY, end_time=at("10:30")))
    found = all_due(ends, at(after), at(until), Decision.SUPERSEDED)
    assert found == (want and verdict(Decision.SUPERSEDED, *want)), name


@pytest.mark.parametrize("policy", [LATEST, ALL])
@pytest.mark.parametrize(("since", "count"), [("2025-01-01T00:00", 525_600), ("2016-01-01T00:00", 5_260_320)])
def test_years_of_minutes_are_found_at_once(policy: MisfirePolicy, since: str, count: int) -> None:
    """R17, K-087: one record, and no instant of them is listed: a list of them all would take seconds."""
    began = time.process_time()
    got = judge_due(
        parse_cron(MINUTELY, "Europe/Zurich"),
        rule(policy),
        after=at(since),
        now=at("2026-01-01T00:00:30"),
        free_slots=1,
    )
    assert time.process_time() - began < 0.3
    assert got.verdict is not None
    assert got.verdict.count + len(got.candidates) == count


def test_fifty_years_of_leap_days() -> None:
    """K-087."""
    got = judge_due(
        parse_cron("0 0 29 2 *", "UTC"),
        rule(ALL, keep=2),
        after=at("1976-03-01T00:00"),
        now=at("2026-01-01T00:00"),
        free_slots=0,
    )
    assert got == coalesced("1980-02-29T00:00", "2016-02-29T00:00", 10, waiting="2020-02-29T00:00 2024-02-29T00:00")


def test_a_year_of_minutes_is_one_record() -> None:
    """R17, K-087."""
    after, now = at("2025-01-01T00:00"), at("2026-01-01T00:00:30")
    got = judge_due(parse_cron(MINUTELY, "UTC"), rule(LATEST), after=after, now=now, free_slots=1)
    assert got == coalesced("2025-01-01T00:01", "2025-12-31T23:59", 365 * 1440 - 1, candidate="2026-01-01T00:00")


@pytest.mark.parametrize(
    ("policy", "seconds", "want"),
    [
        (SKIP, None, timedelta(seconds=60)),
        (LATEST, None, None),
        (SKIP, 5, timedelta(seconds=5)),
        (LATEST, 600, timedelta(seconds=600)),
        (SKIP, 2**63 - 1, timedelta(days=36_500)),
    ],
)
def test_deadline(policy: MisfirePolicy, seconds: int | None, want: timedelta | None) -> None:
    """R16, `startingDeadlineSeconds`: a value without bound is no overflow."""
    assert rule(policy, seconds).deadline == want


@given(
    policy=st.sampled_from(MisfirePolicy),
    deadline=st.sampled_from([None, 5, 60, 400]),
    expression=st.sampled_from([MINUTELY, "*/7 * * * *", "3,4,50 * * * *"]),
    behind=st.integers(0, 7200),
    free_slots=st.integers(0, 3),
)
def test_every_instant_is_accounted_for_exactly_once(
    policy: MisfirePolicy, deadline: int | None, expression: str, behind: int, free_slots: int
) -> None:
    """I3, I4, R13: verdict after verdict, spans meet, nothing late starts, no slot is taken twice."""
    trigger, misfire, now = parse_cron(expression, "UTC"), rule(policy, deadline), at("10:00:20")
    after = now - timedelta(seconds=behind)
    due = list(due_times(trigger, after=after, until=now))
    while (judged := judge_due(trigger, misfire, after=after, now=now, free_slots=free_slots)).verdict is not None:
        found = judged.verdict
        assert due[0] == found.first
        assert due[found.count - 1] == found.last
        after, due = found.last, due[found.count :]
        if found.decision is Decision.ADMITTED:
            assert free_slots > 0
            assert misfire.deadline is None or now - found.last <= misfire.deadline
            free_slots -= 1
    assert due == list(judged.candidates)
    assert not due or (policy is not SKIP and free_slots == 0)
    assert len(due) <= misfire.keep


def brute(
    misfire: Misfire, due: list[datetime], excluded: Callable[[datetime], bool], now: datetime, free_slots: int
) -> tuple[list[tuple[Decision, list[datetime]]], list[datetime]]:
    """Say what becomes of a list of instants under `All`, one by one: the verdicts in order, and what waits."""
    fates: dict[datetime, Decision] = {}
    wanted = []
    for instant in due:
        if excluded(instant):
            fates[instant] = Decision.SKIPPED_EXCLUDED
        elif misfire.deadline is not None and now - instant > misfire.deadline:
            fates[instant] = Decision.SKIPPED_MISFIRE
        else:
            wanted.append(instant)
    cut = max(0, len(wanted) - misfire.keep)
    kept = wanted[cut:]
    fates |= dict.fromkeys(wanted[:cut], Decision.COALESCED) | dict.fromkeys(kept[:free_slots], Decision.ADMITTED)
    verdicts: list[tuple[Decision, list[datetime]]] = []
    waiting = kept[free_slots:]
    for instant in due:
        if waiting and instant >= waiting[0]:
            break  # the watermark moves over no candidate
        decision = fates[instant]
        if verdicts and verdicts[-1][0] is decision and decision is not Decision.ADMITTED:
            verdicts[-1][1].append(instant)
        else:
            verdicts.append((decision, [instant]))
    return verdicts, waiting


@given(
    keep=st.integers(1, 12),
    deadline=st.sampled_from([None, 5, 3600, 40_000, 200_000]),
    expression=st.sampled_from(["0 * * * *", "*/47 */3 * * *", "30 2,14 * * *"]),
    dates=st.sets(st.integers(26, 31), max_size=4),
    behind_minutes=st.integers(0, 5 * 1440),
    free_slots=st.integers(0, 14),
    zone=st.sampled_from(["UTC", "Pacific/Chatham"]),
)
def test_all_does_what_a_list_of_every_instant_says(
    keep: int, deadline: int | None, expression: str, dates: set[int], behind_minutes: int, free_slots: int, zone: str
) -> None:
    """R16, R17, I3 against a brute-force model: dates to exclude between, late ones, more slots than instants."""
    texts = tuple(f"2025-12-{date}" for date in sorted(dates))
    spec = a_spec(schedule=expression, time_zone=zone, exclude_dates=texts)
    trigger, misfire, now = trigger_of(spec), rule(ALL, deadline, keep), at("2026-01-01T10:00:20")
    after = now - timedelta(minutes=behind_minutes)
    due = list(due_times(trigger, after=after, until=now))
    want, waiting = brute(misfire, due, lambda instant: is_excluded(trigger, instant), now, free_slots)
    got = []
    while (judged := judge_due(trigger, misfire, after=after, now=now, free_slots=free_slots)).verdict is not None:
        found = judged.verdict
        got.append((found.decision, found.first, found.last, found.count))
        after = found.last
        free_slots -= found.decision is Decision.ADMITTED
    assert _merged(got) == [(decision, ats[0], ats[-1], len(ats)) for decision, ats in want]
    assert list(judged.candidates) == waiting


def _merged(got: list[Row]) -> list[Row]:
    """Join verdicts of one decision that follow each other: the rule may part a stretch, it may not part differently."""
    joined: list[Row] = []
    for decision, first, last, count in got:
        if joined and joined[-1][0] is decision and decision is not Decision.ADMITTED:
            joined[-1] = (decision, joined[-1][1], last, joined[-1][3] + count)
        else:
            joined.append((decision, first, last, count))
    return joined


@pytest.mark.parametrize(
    ("besides", "want"),
    [
        ((), ("10:01", "10:05", 5)),
        (("10:01", "10:02"), ("10:03", "10:05", 3)),
        (("10:04", "10:05"), ("10:01", "10:03", 3)),
        (("10:02", "10:05"), ("10:01", "10:04", 3)),
        (("09:59", "10:02:30"), ("10:01", "10:05", 5)),
        (("10:00",), ("10:01", "10:05", 5)),
        (("10:02:01",), ("10:01", "10:05", 5)),
        (("10:01", "10:02", "10:03", "10:04", "10:05"), None),
    ],
)
def test_what_is_given_up_beside_what_waited_in_sight(
    besides: tuple[str, ...], want: tuple[str, str, int] | None
) -> None:
    """I3: each instant once, whether it was named as a candidate or not."""
    got = undecided(
        parse_cron(MINUTELY, "UTC"), after=at("10:00"), until=at("10:05:59"), besides=tuple(map(at, besides))
    )
    assert got == (verdict(Decision.SUPERSEDED, *want) if want else None)


BEHIND_A_DATE = [
    ("R13 skip: the newer ones behind it take their slots first", rule(SKIP, 10 * 86400), 3, skipped("2026-01-01T08:00")),
    ("R16 skip: they take all there are: what lies before it goes in one record", rule(SKIP, 10 * 86400), 2,
     skipped("2026-01-01T08:00", "2026-01-01T16:00", 2)),
    ("R16 latest: one newer behind it is enough", rule(LATEST), 0,
     coalesced("2026-01-01T08:00", "2026-01-01T16:00", 2, candidate="2026-01-03T08:00")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("misfire", "free_slots", "want"), [row[1:] for row in BEHIND_A_DATE], ids=[row[0] for row in BEHIND_A_DATE]
)
def test_what_is_due_before_and_behind_an_excluded_date(misfire: Misfire, free_slots: int, want: Judgement) -> None:
    """`excludeDates`: two instants before it, three on it, two behind it."""
    trigger = trigger_of(a_spec(schedule="0 */8 * * *", exclude_dates=("2026-01-02",)))
    after, now = at("2026-01-01T00:00"), at("2026-01-03T08:00:10")
    assert judge_due(trigger, misfire, after=after, now=now, free_slots=free_slots) == want


def test_the_last_of_what_is_given_up_may_have_waited_in_sight() -> None:
    """I3."""
    got = undecided(parse_cron(MINUTELY, "UTC"), after=at("10:00"), until=at("10:05"), besides=(at("10:05"),))
    assert got == verdict(Decision.SUPERSEDED, "10:01", "10:04", 4)


def test_under_replace_one_is_kept() -> None:
    """R14, R16: each would end the one before it at once."""
    spec = a_spec(misfire_policy=ALL, max_catch_up_runs=5, concurrency_policy=ConcurrencyPolicy.REPLACE)
    assert Misfire.of(spec).keep == 1


def test_a_jittered_instant_beside_a_full_house_stays_within_what_can_be_named() -> None:
    """`maxJitterSeconds`: it waits, too, and a record names 100."""
    jitter = Jitter(uid="u", max_seconds=29)
    trigger = parse_cron(MINUTELY, "UTC")
    minutes = (at("12:00") + timedelta(minutes=number) for number in range(60))
    now = next(minute for minute in minutes if jitter.start_of(minute, trigger) > minute)
    judged = judge_due(trigger, rule(ALL, keep=100), after=at("09:00"), now=now, free_slots=0, jitter=jitter)
    assert judged.spread == now
    assert len(judged.candidates) == 99
    assert judged.candidates[-1] == now - timedelta(minutes=1)


@pytest.mark.parametrize(("beyond", "decision"), [(0, "Admitted"), (1, "SkippedMisfire")])
def test_the_deadline_counts_from_the_instant_and_its_jitter(beyond: int, decision: str) -> None:
    """R16: to the microsecond, as without jitter."""
    trigger, jitter = parse_cron("0 * * * *", "UTC"), Jitter(uid="u", max_seconds=600)
    start = jitter.start_of(at("10:00"), trigger)
    assert start > at("10:00")
    now = start + timedelta(seconds=60, microseconds=beyond)
    judged = judge_due(trigger, rule(SKIP), after=at("09:00"), now=now, free_slots=1, jitter=jitter)
    assert judged.verdict is not None
    assert judged.verdict.decision == decision
