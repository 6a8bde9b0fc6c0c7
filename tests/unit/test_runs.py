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
from workflow_schedules.api.schedule import ConcurrencyPolicy, MisfirePolicy, Pause
from workflow_schedules.core.model import JobPhase, Run, Schedule, Snapshot
from workflow_schedules.core.plan import Plan, WriteOutcome
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


WITH_PAUSE = a_schedule(pause=Pause(until_time=at("12:00")))
STARTS = [
    Case("R31 nothing is started on a log that contradicts itself", with_run(a_run(), contradiction="x"), "10:00:10", "nothing",
         "10:01:01"),
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

CANCELLED = ScheduleOccurrenceStatus(outcome=Outcome.CANCELLED, reason="Replaced", job_uid="job-2",
                                     completion_time=at("10:10"))  # fmt: skip
OTHERS_CANCELLED = a_run(record=an_admission(writer=EARLIER_WRITER, status=CANCELLED), job=a_job())
OWN_CANCELLED = a_run(record=an_admission(status=CANCELLED), job=a_job())
REMOVALS = [
    Case("P12 the Job of an ended run stays while a create of the leader before may bring it back", with_run(OTHERS_CANCELLED,
         since_acquired=SETTLE), "10:20", "nothing", "10:20:01"),
    Case("P12 and goes after that", with_run(OTHERS_CANCELLED, since_acquired=SETTLE + MOMENT), "10:20", "DeleteJob"),
    Case("P12 nobody else makes the Job of an own record: it goes at once", with_run(OWN_CANCELLED, since_acquired=SETTLE),
         "10:20", "DeleteJob"),
    Case("P12 but not while an own create may arrive", with_run(replace(OWN_CANCELLED, is_create_unanswered=True)), "10:20",
         "nothing", "10:20:01"),
    Case("P12 what the leader before admitted may be refused to us and made by it", with_run(replace(by_other(), refused="no"),
         since_acquired=SETTLE), "10:00:10", "nothing", "10:00:11"),
]  # fmt: skip

REPLACE = {"concurrency_policy": ConcurrencyPolicy.REPLACE}
GOES_ON = a_run(outcome=Outcome.RUNNING, job=a_job())


def beside_its_successor(status: ScheduleOccurrenceStatus | None = None, schedule: Schedule | None = None) -> Snapshot:
    """Build a log in which the run of eleven takes the place of the one of ten, which goes on."""
    record = an_admission(3, at("11:00"), replaces=2, open=(2, 3), status=status or ScheduleOccurrenceStatus())
    return a_snapshot(schedule or a_schedule(**REPLACE), head=record, runs=(GOES_ON, a_run(record=record)))


SUCCESSORS = [
    Case("R14 the older ends for it to the last moment in which it may start", beside_its_successor(), "11:01:00",
         "Cancelled Replaced"),
    Case("R14 one that has ended itself ends no other", beside_its_successor(ScheduleOccurrenceStatus(outcome=Outcome.FAILED)),
         "11:00:30", "nothing"),
    Case("R14, R19 nor does one that a pause keeps from starting", beside_its_successor(schedule=a_schedule(
         pause=Pause(until_time=at("12:00")), **REPLACE)), "11:00:30", "nothing", "11:01:01"),
]  # fmt: skip

JOBS = [
    Case("R29 the earliest of what is worth a look", with_run(a_run(record=an_admission(start_timeout_seconds=120,
         status=ScheduleOccurrenceStatus(reason="Suspended")), job=a_job(was_ready=False))), "10:00:05", "nothing", "10:00:11"),
    Case("what is worth a word now is no reason to look again at once", with_run(a_run(job=a_job(was_ready=False))), "10:15:01",
         "nothing"),
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


@pytest.mark.parametrize("case", [*STARTS, *WAITS, *REMOVALS, *SUCCESSORS, *JOBS], ids=lambda case: case.name)
def test_decide_runs(case: Case) -> None:
    plan = decide_runs(case.snapshot, now=at(case.now))
    assert (summary(plan), plan.next_wake_at) == (case.want, at(case.wake) if case.wake else None)
    assert plan.step is None or plan.step.run in case.snapshot.runs


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


STOPPED = "the schedule stopped admitting before the Job was made"
NOT_STARTED = [
    ("with the last error", with_run(a_run(last_error="quota exceeded")), "quota exceeded"),
    ("though nothing was in its way", with_run(a_run()), "it was not tried in time"),
    ("R18 disabled", with_run(a_run(), a_schedule(enabled=False)), STOPPED),
    ("R19 paused", with_run(a_run(), WITH_PAUSE), STOPPED),
    ("R4 without its definition", with_run(a_run(), CHILD), STOPPED),
]


@pytest.mark.parametrize(("snapshot", "why"), [row[1:] for row in NOT_STARTED], ids=[row[0] for row in NOT_STARTED])
def test_not_started_says_why(snapshot: Snapshot, why: str) -> None:
    """R35."""
    step = decide_runs(snapshot, now=at("10:02")).step
    assert isinstance(step, WriteOutcome)
    assert step.status.message == f"no Job could be made in time: {why}"


@pytest.mark.parametrize(("older", "more"), [(1, ""), (3, ""), (4, " and 1 more")])
def test_not_started_says_whose_place_it_waited_for(older: int, more: str) -> None:
    """R14, R35."""
    runs = [
        a_run(
            record=an_admission(number, status=ScheduleOccurrenceStatus(outcome=Outcome.RUNNING)),
            job=a_job(number=number),
        )
        for number in range(2, 2 + older)
    ]
    last = an_admission(2 + older, at("11:00"), replaces=1 + older)
    snapshot = a_snapshot(a_schedule(**REPLACE), head=last, runs=(*runs, a_run(record=last)))
    step = decide_runs(snapshot, now=at("11:02")).step
    assert isinstance(step, WriteOutcome)
    names = ", ".join(run.record.ref.name for run in runs[:3])
    assert step.status.message == f"no Job could be made in time: it waited for {names}{more} to be gone"


@pytest.mark.parametrize(
    ("schedule", "want"),
    [
        (a_schedule(), "10:01:00"),
        (a_schedule(starting_deadline_seconds=5), "10:00:05"),
        (a_schedule(max_jitter_seconds=600), "10:03:47"),
        (a_schedule(max_jitter_seconds=600, schedule="61 * * * *"), "10:01:00"),
        (UNBOUNDED, "10:10:07"),
        (None, "10:10:07"),
    ],
)
def test_start_deadline(schedule: object, want: str) -> None:
    """R35: of the instant and its jitter, as far as the calendar can be read; or 10 min of the record."""
    run = a_run(record=an_admission(created_at=at("10:00:07")))
    assert start_deadline(a_snapshot(schedule, head=run.record), run) == at(want)
