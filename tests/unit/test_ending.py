"""Runs that the operator ends: when, what goes on record, and for how long they hold their slot."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from support.builders import (
    EARLIER_WRITER,
    WRITER,
    a_job,
    a_run,
    a_schedule,
    a_snapshot,
    a_status,
    an_admission,
    at,
    of_definition,
)
from workflow_schedules.api.common import Condition, ConditionStatus
from workflow_schedules.api.occurrence import Cause, Outcome, ScheduleOccurrenceStatus, Transition
from workflow_schedules.api.schedule import ConcurrencyPolicy
from workflow_schedules.core.ending import (
    decide_removal,
    end_due,
    is_ending,
    run_problem,
    says_unhealthy,
    start_timeout_at,
    unhealthy_at,
)
from workflow_schedules.core.model import Job, JobPhase, Run, Schedule
from workflow_schedules.core.plan import Plan, WriteOutcome
from workflow_schedules.core.runs import SETTLE, decide_runs, waited_for

SUSPENDED, WAITING, ACTIVE, COMPLETED = JobPhase.SUSPENDED, JobPhase.WAITING, JobPhase.ACTIVE, JobPhase.COMPLETED
REPLACE = a_schedule(concurrency_policy=ConcurrencyPolicy.REPLACE, starting_deadline_seconds=300)


def ended(
    outcome: Outcome = Outcome.CANCELLED, reason: str = "Replaced", *, job_uid: str | None = "job-2", **known: object
) -> Run:
    status = ScheduleOccurrenceStatus(outcome=outcome, reason=reason, job_uid=job_uid, completion_time=at("10:10"))
    return a_run(record=an_admission(status=status), **known)


def unready(
    phase: JobPhase = ACTIVE,
    *,
    status: ScheduleOccurrenceStatus | None = None,
    timeout: int | None = 120,
    **seen: object,
) -> Run:
    record = an_admission(start_timeout_seconds=timeout, status=status or ScheduleOccurrenceStatus())
    return a_run(record=record, job=a_job(phase, was_ready=seen.pop("was_ready", False), **seen))


def step(plan: Plan) -> str:
    return type(plan.step).__name__ if plan.step else "nothing"


def summary(plan: Plan) -> str:
    match plan.step:
        case WriteOutcome(status=status, confirm_absence=confirmed):
            return f"{status.outcome} {status.reason}" + (" once confirmed" if confirmed else "")
        case _:
            return step(plan)


ENDING = [
    ("R14 its Job goes on", ended(job=a_job()), True),
    ("R14 its Job is on its way out", ended(job=a_job(is_deleting=True)), True),
    ("R14 its Job is gone", ended(job=a_job(is_gone=True)), False),
    ("R14 its Job is known to be gone", ended(is_job_gone=True), False),
    ("P9 its Job was never seen by this process", ended(), True),
    ("P12 it never had one", ended(job_uid=None), False),
    ("R14 its Job ended by itself before it was deleted", ended(job=a_job(COMPLETED)), False),
    ("R14 its Job ended while it goes", ended(job=a_job(JobPhase.FAILED, is_deleting=True)), True),
    ("P10 another's Job of its name tells nothing of its own", ended(job=replace(a_job(), uid="other")), True),
    ("P10 nor does the end of that", ended(job=replace(a_job(is_gone=True), uid="other")), True),
    ("completed, whatever the reason says", ended(Outcome.COMPLETED, "StartTimeout", job=a_job()), False),
    ("StartTimeout is ended by the operator", ended(Outcome.FAILED, "StartTimeout", job=a_job()), True),
    ("any other failure is the Job's own", ended(Outcome.FAILED, "BackoffLimitExceeded", job=a_job(is_deleting=True)), False),
    ("a completed Job that retention deletes", ended(Outcome.COMPLETED, "JobComplete", job=a_job(
        COMPLETED, is_deleting=True)), False),
    ("unfinished", a_run(job=a_job()), False),
]  # fmt: skip


@pytest.mark.parametrize(("run", "want"), [row[1:] for row in ENDING], ids=[row[0] for row in ENDING])
def test_is_ending(run: Run, want: bool) -> None:
    assert is_ending(run) is want


REMOVALS = [
    ("P19 after the record the deletion", ended(job=a_job()), "10:10", "DeleteJob", None),
    ("P9 a Job that was not seen is asked for by deleting it", ended(), "10:10", "DeleteJob", None),
    ("P10 another's Job of its name that goes tells nothing of its own", ended(job=replace(a_job(is_deleting=True), uid="other")),
     "10:10", "DeleteJob", None),
    ("a refused deletion is tried again later", ended(job=a_job(), retry_at=at("10:11")), "10:10:30", "nothing", "10:11"),
    ("and then", ended(job=a_job(), retry_at=at("10:11")), "10:11", "DeleteJob", None),
    ("then it waits", ended(job=a_job(is_deleting=True)), "10:10:59", "nothing", "10:11"),
    ("R14 not gone after 60 s: why", ended(job=a_job(is_deleting=True)), "10:11", "ReadPods", None),
    ("60 s of the deletion, which may come late", ended(job=a_job(is_deleting=True, deleting_since=at("10:11:40"))), "10:12",
     "nothing", "10:12:40"),
    ("at most once a minute", ended(job=a_job(is_deleting=True), pods_read_at=at("10:11")), "10:11:59", "nothing", "10:12"),
    ("and again", ended(job=a_job(is_deleting=True), pods_read_at=at("10:11")), "10:12", "ReadPods", None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("run", "now", "want", "wake"), [row[1:] for row in REMOVALS], ids=[row[0] for row in REMOVALS]
)
def test_decide_removal(run: Run, now: str, want: str, wake: str | None) -> None:
    plan = decide_removal(run, at(now))
    assert plan.step is None or plan.step.run is run
    assert (step(plan), plan.next_wake_at) == (want, at(wake) if wake else None)


STARTED = ScheduleOccurrenceStatus(outcome=Outcome.RUNNING)
STARTED_BEFORE = ScheduleOccurrenceStatus(
    outcome=Outcome.INTERRUPTED, transitions=(Transition(outcome=Outcome.RUNNING, time=at("10:00:11")),)
)
CLOCKS = [
    ("from the Job's creation", unready(), "10:02:01"),
    ("also when nothing has begun", unready(WAITING, started=None), "10:02:01"),
    ("none while suspended", unready(SUSPENDED, started=None), None),
    ("from its resumption", unready(suspension_changed_at=at("10:20")), "10:22"),
    ("none once a pod was ready or had finished", unready(was_ready=True), None),
    ("none when that is on record", unready(status=STARTED), None),
    ("none when that was on record before an interruption", unready(status=STARTED_BEFORE), None),
    ("none for one that ended", unready(COMPLETED), None),
    ("none for one that is gone", unready(is_gone=True), None),
    ("none without a timeout", unready(timeout=None), None),
    ("none without a Job", a_run(record=an_admission(start_timeout_seconds=120)), None),
    ("a timeout beyond the calendar is 36600 days", unready(timeout=10**15), "2126-03-18T10:00:01"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "want"), [row[1:] for row in CLOCKS], ids=[row[0] for row in CLOCKS])
def test_start_timeout_at(run: Run, want: str | None) -> None:
    assert start_timeout_at(run) == (at(want) if want else None)


def test_without_a_timeout_it_is_unhealthy_after_900_s() -> None:
    assert unhealthy_at(unready(timeout=None)) == at("10:15:01")
    assert unhealthy_at(unready()) is None


@dataclass(frozen=True, slots=True)
class End:
    """What is written about a run at `now`."""

    name: str
    run: Run
    now: str
    want: str | None
    replaced_by: Run | None = None


NEXT = a_run(3, record=an_admission(3, at("11:00"), replaces=2, open=(2, 3)))
ENDS = [
    End("nothing", a_run(job=a_job()), "10:30", None),
    End("R31 cancelled", a_run(job=a_job(), cancel_request="x"), "10:30", "Cancelled CancelRequested"),
    End("R31 whatever it says", a_run(job=a_job(), cancel_request=""), "10:30", "Cancelled CancelRequested"),
    End("R14 replaced", a_run(job=a_job()), "11:00", "Cancelled Replaced", NEXT),
    End("R31 a request is the better reason", a_run(cancel_request="x"), "11:00", "Cancelled CancelRequested", NEXT),
    End("not yet", unready(), "10:02:00.9", None),
    End("out of time", unready(), "10:02:01", "Failed StartTimeout"),
]


@pytest.mark.parametrize("case", ENDS, ids=lambda case: case.name)
def test_end_due(case: End) -> None:
    status = end_due(case.run, replaced_by=case.replaced_by, now=at(case.now), writer=WRITER)
    assert (status and f"{status.outcome} {status.reason}") == case.want


def test_what_an_end_says() -> None:
    asked = "bad\nday" + "x" * 9999
    status = end_due(a_run(job=a_job(), cancel_request=asked), replaced_by=None, now=at("10:30"), writer=WRITER)
    assert status is not None
    assert status.job_uid == "job-2"
    assert (status.start_time, status.completion_time, status.duration) == (at("10:00:01"), at("10:30"), "29m59s")
    assert status.message == f"annotation workflow-schedules.dev/cancel: {asked[:200]!r}"


# R14: which run replaces which

OLD = a_run(
    job=a_job(),
    record=an_admission(
        status=ScheduleOccurrenceStatus(outcome=Outcome.RUNNING, job_uid="job-2", start_time=at("10:00:01"))
    ),
)
CHILD = a_schedule(**of_definition(concurrency_policy=ConcurrencyPolicy.REPLACE))
REPLACING = [
    ("the old one ends first", REPLACE, (OLD, NEXT), "11:00:01", "Cancelled Replaced"),
    ("an interrupted one, too", REPLACE, (replace(OLD, job=a_job(SUSPENDED)), NEXT), "11:00:01", "Cancelled Replaced"),
    ("one that ended by itself did", REPLACE, (replace(OLD, job=a_job(COMPLETED)), NEXT), "11:00:01", "Completed JobComplete"),
    ("then its Job is deleted", REPLACE, (ended(job=a_job()), NEXT), "11:00:01", "DeleteJob"),
    ("and the next waits", REPLACE, (ended(job=a_job(is_deleting=True)), NEXT), "10:10:30", "nothing"),
    ("until it is gone", REPLACE, (ended(is_job_gone=True), NEXT), "11:00:01", "CreateJob"),
    ("too late: NotStarted", REPLACE, (ended(job=a_job(is_deleting=True), pods_read_at=at("11:05")), NEXT), "11:05:01",
     "Failed NotStarted once confirmed"),
    ("R18 nothing ends for a run that may not start: disabled", a_schedule(REPLACE.spec.model_copy(update={"enabled": False})),
     (OLD, NEXT), "11:00:01", "nothing"),
    ("R1 nor held", CHILD, (OLD, NEXT), "11:00:01", "nothing"),
    ("R20 nor deleted", None, (OLD, NEXT), "11:00:01", "nothing"),
    ("R35 nor too late", REPLACE, (OLD, NEXT), "11:05:01", "Failed NotStarted once confirmed"),
    ("R31 nor cancelled", REPLACE, (OLD, replace(NEXT, cancel_request="x")), "11:00:01",
     "Cancelled CancelRequested once confirmed"),
    ("R24 nor refused", REPLACE, (OLD, replace(NEXT, refused="no")), "11:00:01", "Failed JobRejected once confirmed"),
    ("without `replaces` nobody waits", REPLACE, (OLD, a_run(3, record=an_admission(3, at("11:00")))), "11:00:01", "CreateJob"),
    ("n+2 ends n+1, which has no Job", REPLACE, (ended(job=a_job(is_deleting=True)), NEXT, a_run(4, record=an_admission(
        4, at("11:01"), replaces=3))), "10:10:50", "Cancelled Replaced once confirmed"),
    ("P12 not while a create of n+1 may arrive", REPLACE, (ended(is_job_gone=True), replace(NEXT, is_create_unanswered=True),
     a_run(4, record=an_admission(4, at("11:01"), replaces=3))), "11:01:01", "nothing"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schedule", "runs", "now", "want"), [row[1:] for row in REPLACING], ids=[row[0] for row in REPLACING]
)
def test_replacing(schedule: Schedule | None, runs: tuple[Run, ...], now: str, want: str) -> None:
    assert summary(decide_runs(a_snapshot(schedule, runs=runs), now=at(now))) == want


def by_earlier(run: Run) -> Run:
    """Return the run as the holder before admitted it."""
    record = run.record
    writer = {"writer": EARLIER_WRITER.identity, "fencing_epoch": EARLIER_WRITER.epoch}
    return replace(run, record=replace(record, spec=record.spec.model_copy(update=writer)))


def asked_for(run: Run, **known: object) -> Run:
    """Return the run as one that was asked for, its status last written by this holder."""
    return replace(
        run, record=replace(run.record, spec=run.record.spec.model_copy(update={"cause": Cause.MANUAL})), **known
    )


HALF = SETTLE / 2
TAKEOVERS = [
    ("its Job goes on: not deleted before L + R", by_earlier(ended(job=a_job())), SETTLE, "nothing", "10:10:31"),
    ("how long it still takes", by_earlier(ended(job=a_job())), HALF, "nothing", "10:11:16"),
    ("and then", by_earlier(ended(job=a_job())), SETTLE + timedelta(seconds=1), "DeleteJob", None),
    ("nor while an own create may arrive", by_earlier(ended(job=a_job(), is_create_unanswered=True)), timedelta(hours=1),
     "nothing", "10:10:31"),
    ("its Job was not seen: asked for without deleting it", by_earlier(ended()), HALF, "FindJob", None),
    ("it is another's by now", by_earlier(ended(job=replace(a_job(), uid="other"))), HALF, "FindJob", None),
    ("R14 it goes already: what keeps it is said", by_earlier(ended(job=a_job(is_deleting=True))), HALF, "nothing", "10:11"),
    ("an own record: no earlier holder knows it", ended(job=a_job()), timedelta(0), "DeleteJob", None),
    ("a request whose status is its own, not its resolution", asked_for(ended(job=a_job())), HALF, "nothing", "10:11:16"),
    ("a request that it resolved", asked_for(ended(job=a_job()), is_resolved_here=True), HALF, "DeleteJob", None),
    ("but an own create may arrive", ended(job=a_job(), is_create_unanswered=True), timedelta(0), "nothing", "10:10:31"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("run", "since", "want", "wake"), [row[1:] for row in TAKEOVERS], ids=[row[0] for row in TAKEOVERS]
)
def test_removal_after_a_takeover(run: Run, since: timedelta, want: str, wake: str | None) -> None:
    """P1 P12: a create of the earlier holder could bring the Job back under the free name."""
    plan = decide_runs(a_snapshot(runs=(run,), since_acquired=since), now=at("10:10:30"))
    assert (step(plan), plan.next_wake_at) == (want, at(wake) if wake else None)
    assert plan.step is None or plan.step.run is run


def test_not_started_names_what_it_waited_for() -> None:
    """R35."""
    old = ended(job=a_job(is_deleting=True), pods_read_at=at("11:05"), stuck_on="Pod p on node n")
    plan = decide_runs(a_snapshot(REPLACE, runs=(old, NEXT)), now=at("11:05:01"))
    assert isinstance(plan.step, WriteOutcome)
    message = plan.step.status.message or ""
    assert "waited for hourly-b8ce660c-000000002 (Pod p on node n) to be gone" in message


def test_all_older_ones_are_waited_for() -> None:
    runs = (OLD, replace(NEXT), a_run(4, record=an_admission(4, at("11:01"), replaces=3)))
    snapshot = a_snapshot(REPLACE, runs=runs)
    assert [[older.record.number for older in waited_for(snapshot, run)] for run in runs] == [[], [2], [2, 3]]


def _problem(run: Run, now: datetime) -> str | None:
    problem = run_problem(run, now)
    return problem[0] if problem else None


PROBLEMS = [
    ("none", a_run(job=a_job()), "12:00", None),
    ("a Job that can't be made", a_run(last_error="quota"), "10:00:10", "JobNotCreated"),
    ("unready, in time", unready(timeout=None), "10:15:00", None),
    ("unready for 900 s", unready(timeout=None), "10:15:01", "NotStarted"),
    ("unready, but it has a timeout", unready(timeout=3600), "10:30", None),
    ("going, in time", ended(job=a_job(is_deleting=True)), "10:10:59", None),
    ("not gone after 60 s", ended(job=a_job(is_deleting=True)), "10:11", "CannotBeRemoved"),
    ("deleted late, in time", ended(job=a_job(is_deleting=True, deleting_since=at("10:11:40"))), "10:12", None),
    ("a deletion that is refused", ended(job=a_job(), last_error="no"), "10:11", "CannotBeRemoved"),
    ("P9 a deletion that is refused of a Job not seen", ended(last_error="no"), "10:11", "CannotBeRemoved"),
    ("its Job is not made yet", a_run(), "10:00:10", None),
    ("P12 not deleted yet by a new holder", ended(job=a_job()), "10:11", None),
    ("P9 not seen yet", ended(), "10:11", None),
]  # fmt: skip


@pytest.mark.parametrize(("run", "now", "want"), [row[1:] for row in PROBLEMS], ids=[row[0] for row in PROBLEMS])
def test_run_problem(run: Run, now: str, want: str | None) -> None:
    assert _problem(run, at(now)) == want


GOING = a_job(is_deleting=True)
TOLD = [
    (unready(timeout=None), "no Pod was ready within 900 s; startTimeoutSeconds would end such a run"),
    (ended(job=GOING), "its Job is ended but not gone"),
    (ended(job=GOING, last_error="no"), "its Job is ended but not gone: no"),
    (ended(job=GOING, last_error="no", stuck_on="Pod p on node n"), "its Job is ended but not gone: Pod p on node n"),
]


@pytest.mark.parametrize(("run", "want"), TOLD, ids=[row[1] for row in TOLD])
def test_a_problem_says_what_is_known_of_it(run: Run, want: str) -> None:
    """R36."""
    assert (run_problem(run, at("10:30")) or ("", ""))[1] == want


HEALTHY, UNHEALTHY = (("RunsHealthy", value) for value in (ConditionStatus.TRUE, ConditionStatus.FALSE))
SAID = [
    ("nothing", (), False),
    ("nothing is wrong", (HEALTHY,), False),
    ("something is wrong with a run", (UNHEALTHY,), True),
    ("it is not paused", (("Paused", ConditionStatus.FALSE),), False),
    ("each by itself", (("Paused", ConditionStatus.FALSE), HEALTHY), False),
    ("one among others", (("Paused", ConditionStatus.FALSE), UNHEALTHY), True),
]


@pytest.mark.parametrize(("said", "want"), [row[1:] for row in SAID], ids=[row[0] for row in SAID])
def test_what_a_status_says_of_runs(said: tuple[tuple[str, ConditionStatus], ...], want: bool) -> None:
    """Section 2 (`RunsHealthy`): what it says is taken back once it is not so."""
    conditions = tuple(Condition(type=kind, status=value, reason="R", message="") for kind, value in said)
    assert says_unhealthy(a_status(conditions=conditions)) is want


def test_no_status_says_nothing_of_runs() -> None:
    assert not says_unhealthy(None)


def test_a_job_that_others_took_the_owner_of_still_ends() -> None:
    job: Job = a_job(owner_uid="none")
    run = a_run(record=an_admission(status=ScheduleOccurrenceStatus(job_uid="job-2")), job=job, cancel_request="x")
    plan = decide_runs(a_snapshot(runs=(run,)), now=at("10:30"))
    assert isinstance(plan.step, WriteOutcome)
    assert plan.step.status.reason == "CancelRequested"
