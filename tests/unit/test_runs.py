"""What to do about admitted runs, whatever became of their schedule."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from support.builders import (
    EARLIER_WRITER,
    WRITER,
    a_definition,
    a_job,
    a_run,
    a_schedule,
    a_snapshot,
    an_admission,
    at,
    of_definition,
)
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceStatus
from workflow_schedules.api.schedule import MisfirePolicy
from workflow_schedules.core.model import JobPhase, Plan, Run, Snapshot, WriteOutcome
from workflow_schedules.core.runs import SETTLE, decide_runs, start_deadline

MOMENT = timedelta(microseconds=1)
KNOWN_UID = ScheduleOccurrenceStatus(job_uid="job-2")
UNBOUNDED = a_schedule(misfire_policy=MisfirePolicy.LATEST)
CHILD = a_schedule(**of_definition())


def summary(plan: Plan) -> str:
    match plan.step:
        case None:
            return "nothing"
        case WriteOutcome(status=status, confirm_absence=confirmed):
            return f"{status.outcome} {status.reason}" + (" once confirmed" if confirmed else "")
        case step:
            return type(step).__name__


def with_run(run: Run, schedule: object = None, **known: object) -> Snapshot:
    return a_snapshot(schedule or a_schedule(), head=run.record, runs=(run,), **known)


def by_other(status: ScheduleOccurrenceStatus | None = None) -> Run:
    """Build a run that the leader before admitted."""
    return a_run(record=an_admission(writer=EARLIER_WRITER, status=status or ScheduleOccurrenceStatus()))


CLAIMED = ScheduleOccurrenceStatus(fencing_epoch=WRITER.epoch, writer=WRITER.identity)


@dataclass(frozen=True, slots=True)
class Case:
    """What is done at `now`, and when it is looked at again."""

    name: str
    snapshot: Snapshot
    now: str
    want: str
    wake: str | None = None


STARTS = [
    Case("R8 the record is there: the Job follows", with_run(a_run()), "10:00:00", "CreateJob"),
    Case("R35 to the last moment", with_run(a_run()), "10:01:00", "CreateJob"),
    Case("R35 too late", with_run(a_run()), "10:01:00.1", "Failed NotStarted once confirmed"),
    Case("R35 unbounded: for 10 min after the record", with_run(a_run(), UNBOUNDED), "10:10:00", "CreateJob"),
    Case("R35 unbounded: and no longer", with_run(a_run(), UNBOUNDED), "10:10:01", "Failed NotStarted once confirmed"),
    Case("P11 another holder claims it first", with_run(by_other()), "10:00:30", "Claim"),
    Case("P11 then makes the Job", with_run(by_other(CLAIMED)), "10:00:30", "CreateJob"),
    Case("P11 a claim of another epoch is none", with_run(by_other(CLAIMED.model_copy(update={"fencing_epoch": 1}))),
         "10:00:30", "Claim"),
    Case("P11 an own record of another process is claimed", with_run(a_run(record=an_admission(
        writer=replace(WRITER, identity="pod-z")))), "10:00:30", "Claim"),
    Case("R35 another holder finds it too late", with_run(by_other()), "10:01:30", "Failed StartUnknown once confirmed"),
    Case("R35 back-off", with_run(a_run(retry_at=at("10:00:20"))), "10:00:10", "nothing", "10:00:20"),
    Case("R35 back-off is over", with_run(a_run(retry_at=at("10:00:20"))), "10:00:20", "CreateJob"),
    Case("P11 an own outcome may still arrive", with_run(a_run(is_outcome_unanswered=True)), "10:00:10", "nothing", "10:00:11"),
    Case("P11 disabled", with_run(a_run(), a_schedule(enabled=False)), "10:00:10", "nothing", "10:01:01"),
    Case("R31 its log contradicts itself", with_run(a_run(), contradiction="record 7 is gone"), "10:00:10", "nothing",
         "10:01:01"),
    Case("P11 deleting", with_run(a_run(), a_schedule(is_deleting=True)), "10:00:10", "nothing", "10:01:01"),
    Case("P11 its spec can't be read", with_run(a_run(), a_schedule(problem="spec: no")), "10:00:10", "nothing", "10:10:01"),
    Case("P11 deleted, in the end", a_snapshot(None, head=a_run().record, runs=(a_run(),)), "10:10:01",
         "Failed NotStarted once confirmed"),
    Case("P11 without its definition", with_run(a_run(), CHILD), "10:00:10", "nothing", "10:01:01"),
    Case("P11 its definition is off", with_run(a_run(), CHILD, definition=a_definition(is_enabled=False)), "10:00:10",
         "nothing", "10:01:01"),
    Case("P11 its definition is on", with_run(a_run(), CHILD, definition=a_definition()), "10:00:10", "CreateJob"),
    Case("R10 an edit alone does not stop it", with_run(a_run(), a_schedule(schedule="5 * * * *", generation=2)), "10:00:10",
         "CreateJob"),
    Case("R24 refused for good", with_run(a_run(refused="spec.template: required")), "10:00:10",
         "Failed JobRejected once confirmed"),
]  # fmt: skip

WAITS = [
    Case("P12 not within L + R of the acquisition", with_run(a_run(), since_acquired=SETTLE), "10:02:00", "nothing", "10:02:01"),
    Case("P12 but when it is over", with_run(a_run(), since_acquired=SETTLE + MOMENT), "10:02:00",
         "Failed NotStarted once confirmed"),
    Case("P12 how long it still takes", with_run(a_run(), since_acquired=timedelta(seconds=30)), "10:02:00", "nothing",
         "10:03:01"),
    Case("P12 not while an own create may arrive", with_run(a_run(is_create_unanswered=True)), "10:02:00", "nothing",
         "10:02:01"),
    Case("P12 the same for a refusal", with_run(a_run(refused="no", is_create_unanswered=True)), "10:00:10", "nothing",
         "10:00:11"),
    Case("P12 the same for a Job that is gone", with_run(a_run(job=a_job(is_gone=True)), since_acquired=SETTLE), "10:02:00",
         "nothing", "10:02:01"),
    Case("P10 the same for a name that is taken", with_run(a_run(job=a_job(owner_uid="other"), is_create_unanswered=True)),
         "10:00:10", "nothing", "10:00:11"),
]  # fmt: skip

JOBS = [
    Case("R25 waiting", with_run(a_run(job=a_job(JobPhase.WAITING, started=None))), "10:30", "nothing"),
    Case("R29 running for a moment is not written", with_run(a_run(job=a_job())), "10:00:05", "nothing", "10:00:11"),
    Case("R29 running for longer is", with_run(a_run(job=a_job())), "10:00:11", "Running JobRunning"),
    Case("R29 once", with_run(a_run(outcome=Outcome.RUNNING, job=a_job())), "10:30", "nothing"),
    Case("R25 complete", with_run(a_run(job=a_job(JobPhase.COMPLETED))), "10:00:40", "Completed JobComplete"),
    Case("R26 complete, then deleted", with_run(a_run(job=a_job(JobPhase.COMPLETED, is_gone=True))), "10:00:40",
         "Completed JobComplete"),
    Case("R26 failed, then deleted", with_run(a_run(job=a_job(JobPhase.FAILED, is_gone=True))), "10:00:40", "Failed JobFailed"),
    Case("R26 gone while it ran", with_run(a_run(job=a_job(is_gone=True))), "10:30", "Failed JobMissing once confirmed"),
    Case("R26 gone while it was suspended", with_run(a_run(job=a_job(JobPhase.SUSPENDED, is_gone=True))), "10:30",
         "Failed JobMissing once confirmed"),
    Case("R26 gone before it started", with_run(a_run(job=a_job(JobPhase.WAITING, started=None, is_gone=True))), "10:00:30",
         "Failed JobMissing once confirmed"),
    Case("R26 its UID is on record and it is nowhere", with_run(a_run(record=an_admission(status=KNOWN_UID))), "10:00:30",
         "Failed JobMissing once confirmed"),
    Case("P10 its name is another's", with_run(a_run(job=a_job(owner_uid="other"))), "10:00:30", "Failed NameTaken"),
    Case("I2 its own by the UID on record, though somebody took its owner away", with_run(a_run(record=an_admission(
        status=KNOWN_UID), job=a_job(JobPhase.COMPLETED, owner_uid="none"))), "10:30", "Completed JobComplete"),
    Case("P10 another's, but gone", with_run(a_run(job=a_job(owner_uid="other", is_gone=True))), "10:00:30", "CreateJob"),
    Case("R26 another's, gone, while its own is on record", with_run(a_run(record=an_admission(status=KNOWN_UID), job=a_job(
        owner_uid="other", is_gone=True))), "10:00:30", "Failed JobMissing once confirmed"),
    Case("R31 a contradiction stops no outcome", with_run(a_run(job=a_job(JobPhase.COMPLETED)), contradiction="x"), "10:30",
         "Completed JobComplete"),
    Case("R20 nor does a deletion", a_snapshot(None, runs=(a_run(job=a_job(JobPhase.COMPLETED)),)), "10:30",
         "Completed JobComplete"),
    Case("I7 a final outcome stays", with_run(a_run(outcome=Outcome.FAILED, job=a_job(JobPhase.COMPLETED))), "10:30", "nothing"),
]  # fmt: skip


@pytest.mark.parametrize("case", [*STARTS, *WAITS, *JOBS], ids=lambda case: case.name)
def test_decide_runs(case: Case) -> None:
    plan = decide_runs(case.snapshot, now=at(case.now))
    assert (summary(plan), plan.next_wake_at) == (case.want, at(case.wake) if case.wake else None)


def test_oldest_first_and_the_earliest_wake_up() -> None:
    runs = (
        a_run(2, Outcome.COMPLETED),
        a_run(3, record=an_admission(3), job=a_job(number=3, started="10:00:09")),
        a_run(4, record=an_admission(4), job=a_job(number=4, started="10:00:05")),
    )
    assert decide_runs(a_snapshot(runs=runs), now=at("10:00:10")).next_wake_at == at("10:00:15")
    step = decide_runs(a_snapshot(runs=runs), now=at("10:01")).step
    assert isinstance(step, WriteOutcome)
    assert step.run.record.number == 3


def test_a_missing_job_says_what_may_have_happened_and_whose_it_was() -> None:
    """R25, R26."""
    step = decide_runs(with_run(a_run(job=a_job(is_gone=True))), now=at("10:30")).step
    assert isinstance(step, WriteOutcome)
    assert step.status.job_uid == "job-2"
    assert "external effects may already have happened; it is not run again" in (step.status.message or "")
    foreign = a_run(
        record=an_admission(status=KNOWN_UID), job=replace(a_job(owner_uid="x", is_gone=True), uid="theirs")
    )
    step = decide_runs(with_run(foreign), now=at("10:30")).step
    assert isinstance(step, WriteOutcome)
    assert step.status.job_uid == "job-2"


def test_not_started_says_why() -> None:
    """R35: with the last error."""
    step = decide_runs(with_run(a_run(last_error="quota exceeded")), now=at("10:02")).step
    assert isinstance(step, WriteOutcome)
    assert step.status.message == "no Job could be made in time: quota exceeded"


@pytest.mark.parametrize(
    ("schedule", "want"),
    [
        (a_schedule(), "10:01:00"),
        (a_schedule(starting_deadline_seconds=5), "10:00:05"),
        (UNBOUNDED, "10:10:07"),
        (None, "10:10:07"),
    ],
)
def test_start_deadline(schedule: object, want: str) -> None:
    """R35: of the instant, or 10 min of the record."""
    run = a_run(record=an_admission(created_at=at("10:00:07")))
    assert start_deadline(a_snapshot(schedule, head=run.record), run) == at(want)
