"""What starts, waits or is given up, as tables of instants."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.builders import a_spec, at
from workflow_schedules.api.occurrence import Decision
from workflow_schedules.api.schedule import MisfirePolicy
from workflow_schedules.core.due_times import due_times, parse_cron
from workflow_schedules.core.misfire import Judgement, Misfire, Verdict, judge_due

SKIP, LATEST = MisfirePolicy.SKIP, MisfirePolicy.LATEST


def rule(policy: MisfirePolicy, deadline_seconds: int | None = None) -> Misfire:
    return Misfire.of(a_spec(misfire_policy=policy, starting_deadline_seconds=deadline_seconds))


def verdict(decision: Decision, first: str, last: str | None = None, count: int = 1) -> Verdict:
    return Verdict(decision=decision, first=at(first), last=at(last or first), count=count)


def admitted(instant: str) -> Judgement:
    return Judgement(verdict=verdict(Decision.ADMITTED, instant))


def skipped(first: str, last: str | None = None, count: int = 1) -> Judgement:
    return Judgement(verdict=verdict(Decision.SKIPPED_MISFIRE, first, last, count))


def overlapped(first: str, last: str | None = None, count: int = 1) -> Judgement:
    return Judgement(verdict=verdict(Decision.SKIPPED_OVERLAP, first, last, count))


def coalesced(first: str, last: str | None = None, count: int = 1, *, candidate: str) -> Judgement:
    return Judgement(verdict=verdict(Decision.COALESCED, first, last, count), candidate=at(candidate))


def waits(instant: str) -> Judgement:
    return Judgement(candidate=at(instant))


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
    Case("K-041: a clock behind the watermark", rule(SKIP), MINUTELY, "10:00", "09:58", 1, Judgement()),
    Case("K-041: at the watermark", rule(LATEST), MINUTELY, "10:00", "10:00:30", 1, Judgement()),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_judge_due(case: Case) -> None:
    trigger = parse_cron(case.expression, "UTC")
    got = judge_due(trigger, case.rule, after=at(case.after), now=at(case.now), free_slots=case.free_slots)
    assert got == case.want


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
    policy=st.sampled_from([SKIP, LATEST]),
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
    assert due == ([] if judged.candidate is None else [judged.candidate])
    assert judged.candidate is None or (policy is LATEST and free_slots == 0)
