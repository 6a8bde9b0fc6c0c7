"""The virtual world: repetition is only a short cut, the decisions are the core's, and the log it keeps is a log."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.builders import a_schedule
from workflow_schedules.api.occurrence import Decision, Outcome
from workflow_schedules.api.schedule import ConcurrencyPolicy, MisfirePolicy
from workflow_schedules.core import decide as rules
from workflow_schedules.core import simulation
from workflow_schedules.core.acceptance import accept
from workflow_schedules.core.due_times import count_due_times
from workflow_schedules.core.identity import pin
from workflow_schedules.core.ledger import Ledger
from workflow_schedules.core.misfire import Verdict
from workflow_schedules.core.model import Snapshot
from workflow_schedules.core.plan import Plan
from workflow_schedules.core.repetition import is_plain
from workflow_schedules.core.scene import Change, Ending, Outage, Scene
from workflow_schedules.core.simulation import simulate

START = datetime(2026, 11, 1, 4, 59, 30, tzinfo=UTC)  # before New York's clocks go back
ENDINGS = [Outcome.COMPLETED, Outcome.FAILED, Outcome.EXHAUSTED, Outcome.INTERRUPTED, Outcome.RUNNING]


def in_turn(endings: list[Ending]) -> Callable[[datetime], Ending]:
    turns = iter(endings)
    return lambda _instant: next(turns, endings[-1])


def spec_fields(draw: st.DrawFn) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "schedule": draw(
            st.sampled_from(["* * * * *", "*/7 * * * *", "0,5,50 * * * *", "30 1-3 * * *", "1-5 1 * * 0"])
        ),
        "time_zone": draw(st.sampled_from(["UTC", "America/New_York"])),
        "misfire_policy": draw(st.sampled_from(MisfirePolicy)),
        "starting_deadline_seconds": draw(st.sampled_from([None, 5, 90, 3600])),
    }
    if draw(st.booleans()):
        fields |= {"concurrency_policy": ConcurrencyPolicy.ALLOW, "max_active_runs": draw(st.integers(1, 3))}
    if fields["misfire_policy"] is MisfirePolicy.ALL:
        fields["max_catch_up_runs"] = draw(st.sampled_from([None, 1, 2, 4]))
    if draw(st.integers(0, 4)) == 0:
        fields["max_jitter_seconds"] = 20
    if draw(st.integers(0, 4)) == 0:
        fields["exclude_dates"] = ("2026-11-01",)
    if draw(st.integers(0, 4)) == 0:
        fields["active_deadline_seconds"] = draw(st.sampled_from([1, 60, 61, 2**60]))
    return fields


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Scene, list[Ending]]:
    moment = st.one_of(st.integers(1, 2 * 3600), st.integers(0, 119).map(lambda minute: 60 * minute + 30))
    moments = draw(st.lists(moment, max_size=5, unique=True).map(sorted))
    at = [START + timedelta(seconds=seconds) for seconds in moments]
    outages = []
    if len(at) >= 2:
        begin = draw(st.integers(0, len(at) - 2))
        outages = [Outage(start=at.pop(begin), end=at.pop(draw(st.integers(begin, len(at) - 1))))]
    if draw(st.integers(0, 3)) == 0:
        last = START + timedelta(minutes=draw(st.integers(90, 119)), seconds=1)
        at = [moment for moment in at if moment < last]
        outages = [outage for outage in outages if outage.end < last]
        outages.append(Outage(start=last, end=START + timedelta(hours=3)))
    changes = [Change(at=when, schedule=a_schedule(**spec_fields(draw), created_at=START)) for when in (START, *at)]
    endings = draw(
        st.lists(
            st.builds(Ending, seconds=st.sampled_from([0, 10, 60, 61, 200, 2000]), outcome=st.sampled_from(ENDINGS)),
            min_size=1,
            max_size=6,
        )
    )
    return Scene(changes=changes, until=START + timedelta(hours=2), ending=in_turn(endings), outages=outages), endings


@given(scenes())
@settings(max_examples=60)
def test_what_was_decided_before_is_what_would_be_decided_again(made: tuple[Scene, list[Ending]]) -> None:
    """R6, R8: the same rows, whether every situation is decided or only each new one."""
    scene, endings = made
    at_end: list[str] = []
    short = list(simulate(replace(scene, at_end=at_end.append)))
    at_end_again: list[str] = []
    again = replace(scene, ending=in_turn(endings), at_end=at_end_again.append)
    assert short == list(simulate(again, by_repetition=False))
    assert at_end == at_end_again
    admitted = [row.scheduled_time for row in short if row.decision is Decision.ADMITTED]
    assert admitted == sorted(set(admitted))
    spans = [(row.first_time, row.last_time) for row in short]
    assert all(before[1] < after[0] for before, after in pairwise(spans)), "one decision each (R8)"


@given(scenes())
@settings(max_examples=60)
def test_no_instant_is_lost_silently(made: tuple[Scene, list[Ending]]) -> None:
    """I3, R29: by the calendars as they were written, each is in a row or was told of, then or at the end."""
    scene, _ = made
    told: list[str] = []
    at_end: list[str] = []
    rows = list(simulate(replace(scene, note=told.append, at_end=at_end.append)))
    counted = [re.search(r"(\d+) (?:of which were due and undecided|that were due)", each) for each in told]
    named = sum(row.count for row in rows) + sum(int(found[1]) for found in counted if found)
    ends = [change.at for change in scene.changes[1:]] + [scene.until]
    due = sum(
        count_due_times(accept(change.schedule, None).trigger, after=change.at, until=end)
        for change, end in zip(scene.changes, ends, strict=True)
    )
    waiting = sum("still waits" in each for each in at_end)
    unseen = sum(int(found[1]) for each in at_end if (found := re.match(r"(\d+) that were due .* undecided", each)))
    assert all(counted)
    assert due == named + waiting + unseen, (due, named, told, at_end)
    unfinished = [row for row in rows if row.decision is Decision.ADMITTED and row.outcome is None]
    assert len(unfinished) == sum("the run of" in each for each in at_end)


def minutes(days: int, **fields: object) -> Scene:
    return Scene(
        changes=[Change(at=START, schedule=a_schedule(schedule="* * * * *", created_at=START, **fields))],
        until=START + timedelta(days=days),
        ending=lambda _instant: Ending(seconds=60),
    )


def test_a_month_of_minutes_is_decided_by_the_core_once_for_each_situation(monkeypatch: pytest.MonkeyPatch) -> None:
    """R17's like for rows: 43,200 instants within a second, and none of them decided by anything but `decide`."""
    calls: list[datetime] = []

    def counted(snapshot: Snapshot, *, now: datetime) -> Plan:
        calls.append(now)
        return rules.decide(snapshot, now=now)

    monkeypatch.setattr(simulation, "decide", counted)
    rows = list(simulate(minutes(30)))
    assert (len(rows), {row.decision for row in rows}) == (43_200, {Decision.ADMITTED})
    assert 2 <= len(calls) <= 20
    calls.clear()
    assert len(list(simulate(minutes(1, exclude_dates=("2026-11-29",))))) == 1_440
    assert len(calls) >= 1_440, "what is not plain is decided each time"


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({}, True),
        (
            {
                "concurrency_policy": ConcurrencyPolicy.ALLOW,
                "max_active_runs": 2,
                "misfire_policy": MisfirePolicy.LATEST,
            },
            True,
        ),
        ({"max_jitter_seconds": 0}, False),
        ({"max_jitter_seconds": 5}, False),
        ({"exclude_dates": ("2026-11-29",)}, False),
        ({"run_limit": 3}, False),
        ({"pause_after_failures": 3}, False),
        ({"concurrency_policy": ConcurrencyPolicy.REPLACE}, False),
        ({"misfire_policy": MisfirePolicy.ALL, "max_catch_up_runs": 3}, True),
        ({"active_deadline_seconds": 60, "start_timeout_seconds": 60}, True),
        ({"template": pin({"spec": {"suspend": True}})}, False),
    ],
)
def test_only_plain_specs_repeat(fields: dict[str, Any], *, want: bool) -> None:
    """A field whose meaning is not only a distance in time is decided each time; so is each that is yet to come."""
    assert is_plain(a_schedule(**fields), None) is want


def test_the_head_that_is_read_counts_what_was_repeated() -> None:
    """P3: totals, watermark, number and open runs are those that single records would have left."""
    schedule = a_schedule(schedule="* * * * *", created_at=START)
    ledger = Ledger(schedule)
    ledger.write(schedule, None)
    plan = rules.decide(ledger.snapshot(), now=START)
    ledger.append(plan.step.spec, START)
    first = START + timedelta(seconds=30)
    spec = rules.decide(ledger.snapshot(), now=first).step.spec
    for minute, outcome in enumerate([Outcome.FAILED, Outcome.COMPLETED, Outcome.FAILED, None]):
        instant = first + timedelta(minutes=minute)
        verdict = Verdict(decision=Decision.ADMITTED, first=instant, last=instant, count=1)
        number = ledger.append_alike(spec, verdict, instant)
        ledger.start(number, instant)
        if outcome:
            ledger.end(number, instant + timedelta(seconds=5), outcome)
    head = ledger.snapshot().head
    totals = head.spec.totals
    assert (head.number, head.spec.open, head.spec.consumed_through_time) == (5, (5,), first + timedelta(minutes=3))
    assert (totals.admitted, totals.completed, totals.failed, totals.consecutive_failures) == (4, 1, 2, 1)
    assert totals.last_successful_time == first + timedelta(minutes=1, seconds=5)
