"""When a schedule is used up, why, and what opens it again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from support.builders import a_record, a_run, a_schedule, a_snapshot, a_status, an_admission, at
from workflow_schedules.api.occurrence import Decision, Outcome, Totals
from workflow_schedules.api.schedule import ConcurrencyPolicy, Counts, MisfirePolicy, State
from workflow_schedules.core.acceptance import accept
from workflow_schedules.core.decide import decide
from workflow_schedules.core.model import Schedule, Snapshot
from workflow_schedules.core.plan import Append
from workflow_schedules.core.refusals import Refusal
from workflow_schedules.core.status import project
from workflow_schedules.core.zones import LAST_SECOND, to_utc

TWICE = a_schedule(run_limit=2)
MORE = a_schedule(run_limit=3, generation=2)
ONCE = a_schedule(run_once_time="2026-01-01T11:00:00Z")
ENDING = a_schedule(end_time=at("11:30"))
LATEST = {"misfire_policy": MisfirePolicy.LATEST}


def after(count: int, schedule: Schedule = TWICE, consumed: str = "10:00", **fields: object) -> Snapshot:
    """Build a log whose newest record is the admission of so many."""
    record = an_admission(
        2,
        at(consumed),
        schedule=schedule,
        totals=Totals(admitted=count, last_schedule_time=at(consumed)),
        created_at=at(str(fields.pop("created", consumed))),
    )
    return a_snapshot(schedule, head=record, runs=(a_run(outcome=Outcome.FAILED),), **fields)


def told(snapshot: Snapshot, now: str) -> str:
    """Say the step in a few words, and when decide looks again."""
    plan = decide(snapshot, now=at(now))
    wake = f" then {plan.next_wake_at:%H:%M}" if plan.next_wake_at else ""
    if not isinstance(plan.step, Append):
        return (type(plan.step).__name__ if plan.step else "nothing") + wake
    spec = plan.step.spec
    if spec.decision is Decision.BASELINE:
        given_up = f" gives up {spec.span.count}" if spec.span else ""
        return f"{spec.reason} {spec.state} @{spec.consumed_through_time:%H:%M}{given_up}"
    count = f" x{spec.span.count}" if spec.span else ""
    return f"{spec.decision}/{spec.reason} {spec.scheduled_time:%H:%M}{count}"


@dataclass(frozen=True, slots=True)
class Case:
    """What is decided at `now`."""

    name: str
    snapshot: Snapshot
    now: str
    want: str


ALLOW = {"concurrency_policy": ConcurrencyPolicy.ALLOW, "max_active_runs": 5}
TWO_SLOTS = a_schedule(run_limit=2, starting_deadline_seconds=7200, **ALLOW)
LATE_TWICE = a_schedule(run_limit=2, **LATEST)
CASES = [
    Case("R21 one is left", after(1), "11:00", "Admitted/Admitted 11:00"),
    Case("R21 used up: nothing fires and nothing wakes", after(2), "11:00", "nothing"),
    Case("R21 more than that, since it was lowered", after(5), "11:00", "nothing"),
    Case("R21 a lowered limit is an edit like any other", replace(after(2), schedule=a_schedule(run_limit=1,
         generation=2)), "10:30", "Edited Active @10:30"),
    Case("R21 a higher one reopens it from now", replace(after(2), schedule=MORE), "12:30", "Edited Active @12:30"),
    Case("R21 and then it runs", a_snapshot(MORE, head=a_record(3, schedule=MORE, consumed=at("12:30"), totals=Totals(
         admitted=2))), "13:00", "Admitted/Admitted 13:00"),
    Case("R21 an edit of something else opens nothing", a_snapshot(a_schedule(run_limit=2, schedule="5 * * * *", generation=2),
         head=a_record(3, schedule=a_schedule(run_limit=2, schedule="5 * * * *", generation=2), totals=Totals(admitted=2))),
         "11:05", "nothing"),
    Case("R21 what was never due is not given up when it is disabled", replace(after(2), schedule=a_schedule(run_limit=2,
         enabled=False, generation=2)), "15:30", "Disabled Disabled @15:30"),
    Case("R21 what is left bounds what starts at once: the newest", a_snapshot(TWO_SLOTS, head=a_record(schedule=TWO_SLOTS,
         totals=Totals(admitted=1))), "11:00", "SkippedMisfire/SkippedMisfire 10:00"),
    Case("I3 what was due when it was used up is on record", after(2, LATE_TWICE, created="12:00:05"), "12:00:06",
         "Superseded/RunLimitReached 12:00 x2"),
    Case("I3 nor is what becomes due after the Baseline of one that is used up", a_snapshot(TWICE, head=a_record(3,
         schedule=TWICE, consumed=at("10:59:59"), created_at=at("11:00:01"), totals=Totals(admitted=2))), "11:00:02", "nothing"),
    Case("I3 what becomes due later is none", after(2, LATE_TWICE, created="10:00:01"), "12:00:06", "nothing"),
    Case("R21 the end of the calendar shows while it is disabled", a_snapshot(a_schedule(end_time=at("11:30"), enabled=False),
         head=a_record(schedule=ENDING, state=State.DISABLED)), "10:30", "nothing then 11:00"),
    Case("R21 so does a one-shot's", a_snapshot(a_schedule(run_once_time="2026-01-01T11:00:00Z", enabled=False),
         head=a_record(schedule=ONCE, state=State.DISABLED)), "10:30", "nothing then 11:00"),
    Case("R21 that is over", a_snapshot(a_schedule(end_time=at("11:30"), enabled=False), head=a_record(schedule=ENDING,
         state=State.DISABLED)), "11:00", "nothing"),
    Case("P9 used up by what the status repeats: not worth a request", a_snapshot(a_schedule(run_limit=2, status=a_status(
         State.COMPLETE, counts=Counts(admitted=2))), is_log_read=False, head=None), "15:00", "nothing"),
    Case("P9 the same of one that is disabled, too", a_snapshot(a_schedule(run_limit=2, enabled=False, status=a_status(
         State.COMPLETE, counts=Counts(admitted=2))), is_log_read=False, head=None), "15:00", "nothing"),
    Case("P9 a status that has counted nothing", a_snapshot(a_schedule(run_limit=1, enabled=False, status=a_status(
         State.DISABLED)), is_log_read=False, head=None), "15:00", "nothing"),
    Case("P9 a one-shot that passed while disabled: the state changes", a_snapshot(a_schedule(enabled=False,
         run_once_time="2026-01-01T11:00:00Z", status=a_status(State.DISABLED)), is_log_read=False, head=None), "11:00",
         "ReadLog"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_decide(case: Case) -> None:
    assert told(case.snapshot, case.now) == case.want


def test_what_the_limit_leaves_is_counted_as_given_up() -> None:
    """R29."""
    step = decide(after(2, LATE_TWICE, created="12:00:05"), now=at("12:00:06")).step
    assert isinstance(step, Append)
    assert step.spec.totals is not None
    assert (step.spec.totals.superseded, step.spec.totals.coalesced) == (2, 0)
    assert step.spec.message == "runLimit is used up by the run before"


MISSED = a_record(2, Decision.SKIPPED_MISFIRE, schedule=ONCE, consumed=at("11:00"), totals=Totals(skipped=1))
CONDITIONS = [
    ("nothing is on record yet", a_snapshot(a_schedule(run_limit=1), head=None), "09:31", "False NotComplete"),
    ("runs are left", after(1), "10:30", "False NotComplete"),
    ("used up, though its last run goes on", after(2), "10:30", "True RunLimitReached"),
    ("used up goes before paused or disabled", after(2, a_schedule(run_limit=2, enabled=False)), "10:30",
     "True RunLimitReached"),
    ("endTime to come", a_snapshot(ENDING), "10:30", "False NotComplete"),
    ("endTime passed", a_snapshot(ENDING, head=a_record(schedule=ENDING, consumed=at("11:00"))), "12:30", "True EndTimePassed"),
    ("endTime passed while disabled", a_snapshot(a_schedule(end_time=at("11:30"), enabled=False)), "12:30", "True EndTimePassed"),
    ("a one-shot that waits", a_snapshot(a_schedule(run_once_time="2026-01-01T11:00:00Z", **LATEST)), "12:30",
     "False NotComplete"),
    ("a one-shot that ran, and failed", after(1, ONCE, consumed="11:00"), "11:30", "True OneShotDone"),
    ("a one-shot that was missed", a_snapshot(ONCE, head=MISSED), "11:30", "True OneShotMissed"),
    ("a one-shot that passed while disabled", a_snapshot(a_schedule(run_once_time="2026-01-01T11:00:00Z", enabled=False)),
     "11:30", "True OneShotPast"),
    ("a one-shot in the past from the beginning", a_snapshot(a_schedule(run_once_time="2025-01-01T11:00:00Z")), "11:30",
     "True OneShotPast"),
    ("a calendar without another instant", a_snapshot(head=a_record(consumed=to_utc(LAST_SECOND))), "11:30", "True NeverAgain"),
    ("reopened by an edit", a_snapshot(a_schedule(run_once_time="2026-01-02T11:00:00Z", generation=2), head=MISSED), "11:30",
     "False NotComplete"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("snapshot", "now", "want"), [row[1:] for row in CONDITIONS], ids=[row[0] for row in CONDITIONS]
)
def test_condition(snapshot: Snapshot, now: str, want: str) -> None:
    """R7, R21."""
    assert snapshot.schedule is not None
    status = project(snapshot, snapshot.schedule, recent=(), candidates=(), now=at(now))
    (complete,) = [one for one in status.conditions if one.type == "Complete"]
    assert f"{complete.status} {complete.reason}" == want
    assert (status.state is State.COMPLETE) == want.startswith("True")


def test_next_times_end_with_the_runs_that_are_left() -> None:
    """R21: the status promises nothing that won't run."""
    snapshot = after(1)
    assert snapshot.schedule is not None
    status = project(snapshot, snapshot.schedule, recent=(), candidates=(), now=at("10:30"))
    assert status.next_schedule_times == (at("11:00"),)


MESSAGES = [
    (after(2), "2 runs admitted since the creation, runLimit is 2: a higher one reopens it, from then on"),
    (after(1, ONCE, consumed="11:00"), "runOnceTime was run; an edit that makes it due again reopens it"),
]


@pytest.mark.parametrize(("snapshot", "want"), MESSAGES)
def test_the_message_says_what_reopens_it(snapshot: Snapshot, want: str) -> None:
    """R36."""
    assert snapshot.schedule is not None
    status = project(snapshot, snapshot.schedule, recent=(), candidates=(), now=at("11:30"))
    (message,) = [one.message for one in status.conditions if one.type == "Complete"]
    assert message == want


@pytest.mark.parametrize("field", ["run_limit", "pause_after_failures"])
def test_limits_below_one_are_refused(field: str) -> None:
    """R36: also where they got past the schema; none of them may stop a schedule for good in silence."""
    verdict = accept(a_schedule(**{field: 0}))
    assert isinstance(verdict, Refusal)
    assert verdict.message.endswith("0 is not positive; write 1 or more, or leave it out")
