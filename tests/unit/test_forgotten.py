"""What a restored backup forgot: nothing at or before `notBefore` is started, and what was due until then is counted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from support.builders import (
    EARLIER_WRITER,
    a_job,
    a_record,
    a_run,
    a_schedule,
    a_snapshot,
    an_admission,
    at,
)
from workflow_schedules.api.occurrence import Cause, Decision, Totals
from workflow_schedules.api.schedule import MisfirePolicy, State
from workflow_schedules.app.settings import SettingsError, read_settings
from workflow_schedules.core.decide import decide
from workflow_schedules.core.model import Record, Run, Schedule
from workflow_schedules.core.plan import Append, Plan, WriteOutcome
from workflow_schedules.core.runs import decide_runs, start_deadline

HOURLY = a_schedule()
LATEST = a_schedule(misfire_policy=MisfirePolicy.LATEST)
OFF = a_schedule(enabled=False)
ONCE = a_schedule(run_once_time="2026-01-01T10:00:00Z")
ONE_RUN = a_schedule(run_limit=1)


def summary(plan: Plan) -> str:
    match plan.step:
        case Append(spec=spec):
            span = (
                f" {spec.span.count} from {spec.span.first_time:%H:%M} to {spec.span.last_time:%H:%M}"
                if spec.span
                else ""
            )
            waiting = f" waiting {', '.join(f'{each:%H:%M}' for each in spec.waiting)}" if spec.waiting else ""
            instant = f" {spec.scheduled_time:%H:%M}" if spec.scheduled_time else ""
            return f"{spec.decision} {spec.reason}{instant}{span}{waiting} through {spec.consumed_through_time.time()}"
        case WriteOutcome(status=status):
            return f"{status.outcome} {status.reason}: {status.message}"
        case None:
            return "nothing"
        case step:
            return type(step).__name__


@dataclass(frozen=True, slots=True)
class Case:
    """What is decided first at 12:00:20, of a log that went as far as 09:30."""

    name: str
    not_before: str | None
    want: str
    schedule: Schedule = HOURLY
    head: Record | None = None
    held: tuple[str, ...] = ()


CASES = [
    Case("without it the newest runs", None, "SkippedMisfire SkippedMisfire 11:00 2 from 10:00 to 11:00 through 11:00:00"),
    Case("all that was due until then is consumed", "12:00:10", "Baseline Restored 3 from 10:00 to 12:00 through 12:00:10"),
    Case("at the instant itself, too", "12:00:00", "Baseline Restored 3 from 10:00 to 12:00 through 12:00:00"),
    Case("what is due after it is decided after it", "11:59:59", "Baseline Restored 2 from 10:00 to 11:00 through 11:59:59"),
    Case("one to come consumes what is due as it comes", "23:00", "Baseline Restored 3 from 10:00 to 12:00 through 12:00:20"),
    Case("one is due, at that very instant", "10:00", "Baseline Restored 1 from 10:00 to 10:00 through 10:00:00"),
    Case("a fraction of a second says nothing", "12:00:10.5", "Baseline Restored 3 from 10:00 to 12:00 through 12:00:10"),
    Case("where nothing was due nothing is written", "12:00:10", "nothing",
         head=a_record(consumed=at("12:00:05"))),
    Case("one before the watermark says nothing", "09:00", "Admitted Admitted 12:00 through 12:00:00",
         head=a_record(consumed=at("11:00"))),
    Case("what waited in sight is named by itself", "12:00:10",
         "Baseline Restored 2 from 10:00 to 11:00 waiting 12:00 through 12:00:10", LATEST,
         head=a_record(schedule=LATEST), held=("12:00",)),
    Case("of it what was consumed is left out, and what is due at that very instant is not", "12:00:00",
         "Baseline Restored 2 from 10:00 to 11:00 waiting 12:00 through 12:00:00", LATEST,
         head=a_record(schedule=LATEST), held=("09:30", "12:00", "12:00:01")),
    Case("what waits then is given up on record", "12:00:10", "Superseded Superseded 12:00 through 12:00:10", LATEST,
         head=a_record(schedule=LATEST, consumed=at("12:00:10"), waiting=(at("12:00"),))),
    Case("a schedule that admits nothing needs none", "12:00:10", "nothing", OFF,
         head=a_record(schedule=OFF, state=State.DISABLED)),
    Case("nor does one whose calendar is over", "12:00:10", "nothing", ONCE,
         head=a_record(schedule=ONCE, consumed=at("10:00"), totals=Totals(admitted=1, last_schedule_time=at("10:00")))),
    Case("nor does one that is used up", "12:00:10", "nothing", ONE_RUN,
         head=a_record(schedule=ONE_RUN, totals=Totals(admitted=1))),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_was_due_until_then_is_consumed(case: Case) -> None:
    """I1 I3: on record, named and counted."""
    head = case.head or a_record(schedule=case.schedule)
    snapshot = replace(
        a_snapshot(case.schedule, head=head, held=tuple(map(at, case.held))), not_before=_at(case.not_before)
    )
    plan = decide(snapshot, now=at("12:00:20"))
    assert summary(plan) == case.want
    if isinstance(plan.step, Append) and plan.step.spec.reason == "Restored":
        assert plan.step.spec.state is State.ACTIVE
        assert f"at or before notBefore 2026-01-01T{snapshot.not_before:%H:%M:%S}" in (plan.step.spec.message or "")


def _at(text: str | None) -> datetime | None:
    return None if text is None else at(text)


RUNS = [
    ("its Job is made where nothing was restored", None, a_run(), "Claim"),
    ("its Job may have run before the restore", "10:00:00", a_run(),
     "Failed StartUnknown: found without a Job, at or before notBefore 2026-01-01T10:00:00Z: "
     "it may have run before a backup was restored"),
    ("a run after it is made", "09:59:59", a_run(), "Claim"),
    ("a Job that the backup knows goes on", "10:00:00", a_run(job=a_job()), "Running JobRunning: None"),
]  # fmt: skip


@pytest.mark.parametrize(("not_before", "run", "want"), [row[1:] for row in RUNS], ids=[row[0] for row in RUNS])
def test_an_admitted_run_without_a_job_is_not_started_any_more(not_before: str | None, run: Run, want: str) -> None:
    """I1 P11: the record came back with the backup, the Job that it led to did not."""
    record = an_admission(writer=EARLIER_WRITER, status=run.record.status, created_at=at("10:00:05"))
    snapshot = replace(a_snapshot(head=record, runs=(replace(run, record=record),)), not_before=_at(not_before))
    assert record.spec.decision is Decision.ADMITTED
    assert summary(decide(snapshot, now=at("10:00:20"))) == want


def test_a_backfill_that_was_asked_for_since_is_not_forgotten_for_its_instant() -> None:
    """I1 R27: its instant is older than the restore, the wish for it is not."""
    asked = an_admission(writer=EARLIER_WRITER, cause=Cause.BACKFILL, created_at=at("10:00:05"))
    run = replace(a_run(), record=asked)
    snapshot = replace(a_snapshot(runs=(run,)), not_before=at("10:00:02"))
    assert start_deadline(snapshot, run) > at("10:00:05")
    plan = decide_runs(snapshot, now=start_deadline(snapshot, run) + timedelta(seconds=1))
    assert summary(plan).startswith("Failed StartUnknown: found without a Job after its deadline")


SETTINGS = [
    ("none", "", None),
    ("in UTC", "2026-01-01T10:00:00Z", at("10:00")),
    ("with an offset", "2026-01-01T11:00:00+01:00", at("10:00")),
]


@pytest.mark.parametrize(("text", "want"), [row[1:] for row in SETTINGS], ids=[row[0] for row in SETTINGS])
def test_the_setting_is_a_time(text: str, want: datetime | None) -> None:
    assert read_settings({"WORKFLOW_SCHEDULES_NOT_BEFORE": text}).not_before == want


@pytest.mark.parametrize("text", ["yesterday", "2026-03-02T10:00:00", "1772445600"])
def test_what_is_no_time_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(SettingsError, match=f"NOT_BEFORE: '{text}' is no time with an offset, such as 2026-"):
        read_settings({"WORKFLOW_SCHEDULES_NOT_BEFORE": text})
