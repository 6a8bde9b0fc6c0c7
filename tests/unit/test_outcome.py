"""From a Job to the outcome of its run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from support.builders import WRITER, a_job, a_run, an_admission, at
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceStatus, Transition
from workflow_schedules.core.model import JobPhase, Run
from workflow_schedules.core.outcome import (
    duration_text,
    ended_early,
    ended_without_job,
    had_pod,
    next_outcome_at,
    outcome_due,
)

SUSPENDED, ACTIVE = JobPhase.SUSPENDED, JobPhase.ACTIVE
STARTED_ONCE = ScheduleOccurrenceStatus(outcome=Outcome.RUNNING, start_time=at("10:00:01"))
WAITS = ScheduleOccurrenceStatus(reason="Suspended", job_uid="job-2")

CASES = [
    ("R25 complete", a_run(job=a_job(JobPhase.COMPLETED)), "10:00:40", (Outcome.COMPLETED, "JobComplete")),
    ("R25 failed", a_run(job=a_job(JobPhase.FAILED, reason="BackoffLimitExceeded")), "10:00:40",
     (Outcome.FAILED, "BackoffLimitExceeded")),
    ("R25 failed for no reason", a_run(job=a_job(JobPhase.FAILED)), "10:00:40", (Outcome.FAILED, "JobFailed")),
    ("R25 out of time", a_run(job=a_job(JobPhase.FAILED, reason="DeadlineExceeded")), "10:00:40",
     (Outcome.EXHAUSTED, "DeadlineExceeded")),
    ("R25 R29 suspended for a moment before its first start", a_run(job=a_job(SUSPENDED, started=None)), "10:00:10.9", None),
    ("R25 suspended before its first start stays admitted", a_run(job=a_job(SUSPENDED, started=None)), "10:00:11",
     (None, "Suspended")),
    ("R29 that is written once", a_run(record=an_admission(status=WAITS), job=a_job(SUSPENDED, started=None)), "10:30", None),
    ("R25 the same for one suspended later", a_run(job=a_job(SUSPENDED, started=None, suspension_changed_at=at("10:05"))),
     "10:05:09", None),
    ("R25 resumed, no pod ready yet", a_run(record=an_admission(status=WAITS), job=a_job(started="10:20", was_ready=False)),
     "10:20:10", (None, "JobStarted")),
    ("R25 resumed and ready", a_run(record=an_admission(status=WAITS), job=a_job(started="10:20")), "10:20:10",
     (Outcome.RUNNING, "JobRunning")),
    ("R29 without a ready pod it does not run", a_run(job=a_job(was_ready=False)), "10:30", None),
    ("R25 suspended after it", a_run(job=a_job(SUSPENDED, started=None, was_started=True)), "10:30",
     (Outcome.INTERRUPTED, "JobSuspended")),
    ("R25 suspended after it, known from the record alone",
     a_run(record=an_admission(status=STARTED_ONCE), job=a_job(SUSPENDED, started=None)), "10:30",
     (Outcome.INTERRUPTED, "JobSuspended")),
    ("R25 interrupted is written once", a_run(outcome=Outcome.INTERRUPTED, job=a_job(SUSPENDED)), "10:30", None),
    ("R25 by a new leader, too, who knows of its start from that alone",
     a_run(outcome=Outcome.INTERRUPTED, job=a_job(SUSPENDED, started=None)), "10:30", None),
    ("R25 resumed", a_run(outcome=Outcome.INTERRUPTED, job=a_job(started="10:20")), "10:30", (Outcome.RUNNING, "JobRunning")),
    ("R29 running for a moment", a_run(job=a_job()), "10:00:10.9", None),
    ("R29 running", a_run(job=a_job()), "10:00:11", (Outcome.RUNNING, "JobRunning")),
    ("not begun", a_run(job=a_job(JobPhase.WAITING, started=None)), "10:30", None),
    ("no Job", a_run(), "10:30", None),
]  # fmt: skip


@pytest.mark.parametrize(("run", "now", "want"), [row[1:] for row in CASES], ids=[row[0] for row in CASES])
def test_outcome_due(run: Run, now: str, want: tuple[Outcome, str] | None) -> None:
    status = outcome_due(run, now=at(now), writer=WRITER)
    assert (status and (status.outcome, status.reason)) == want


def test_a_result_says_when_and_how_long() -> None:
    """K-081: scheduled and started are two things."""
    status = outcome_due(a_run(job=a_job(JobPhase.COMPLETED, message="done")), now=at("10:00:40"), writer=WRITER)
    assert status == ScheduleOccurrenceStatus(
        outcome=Outcome.COMPLETED,
        reason="JobComplete",
        job_uid="job-2",
        start_time=at("10:00:01"),
        completion_time=at("10:00:31"),
        start_lateness_seconds=1,
        duration="30s",
        transitions=(Transition(outcome=Outcome.COMPLETED, time=at("10:00:40"), reason="JobComplete"),),
        fencing_epoch=WRITER.epoch,
        writer=WRITER.identity,
    )


RAN = (Transition(outcome=Outcome.RUNNING, time=at("10:00:11"), reason="JobRunning"),)
STOPPED = ScheduleOccurrenceStatus(outcome=Outcome.INTERRUPTED, transitions=(
    *RAN, Transition(outcome=Outcome.INTERRUPTED, time=at("10:02"), reason="JobSuspended")))  # fmt: skip
SEEN = {"job_uid": "job-2", "fencing_epoch": WRITER.epoch, "writer": WRITER.identity}
LATE = {"start_time": at("10:00:01"), "start_lateness_seconds": 1}


def told(outcome: Outcome, reason: str) -> tuple[Transition, ...]:
    return (Transition(outcome=outcome, time=at("10:30"), reason=reason),)


WRITTEN = [
    ("failed", a_run(job=a_job(JobPhase.FAILED, reason="BackoffLimitExceeded", message="why")), ScheduleOccurrenceStatus(
        outcome=Outcome.FAILED, reason="BackoffLimitExceeded", message="why", completion_time=at("10:00:31"), duration="30s",
        transitions=told(Outcome.FAILED, "BackoffLimitExceeded"), **SEEN, **LATE)),
    ("running", a_run(job=a_job()), ScheduleOccurrenceStatus(
        outcome=Outcome.RUNNING, reason="JobRunning", transitions=told(Outcome.RUNNING, "JobRunning"), **SEEN, **LATE)),
    ("interrupted: since when it ran stays", a_run(record=an_admission(status=STARTED_ONCE), job=a_job(SUSPENDED, started=None)),
     ScheduleOccurrenceStatus(outcome=Outcome.INTERRUPTED, reason="JobSuspended",
        transitions=told(Outcome.INTERRUPTED, "JobSuspended"), **SEEN, **LATE)),
    ("suspended before its first start", a_run(job=a_job(SUSPENDED, started=None)), ScheduleOccurrenceStatus(
        reason="Suspended", message="its Job is suspended and has not started yet; it starts when spec.suspend of the Job "
        "becomes false", **SEEN)),
    ("resumed, no Pod ready yet", a_run(record=an_admission(status=WAITS), job=a_job(was_ready=False)), ScheduleOccurrenceStatus(
        reason="JobStarted", message="its Job is not suspended any more; no Pod is ready yet", **SEEN)),
]  # fmt: skip


@pytest.mark.parametrize(("run", "want"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_all_that_is_written(run: Run, want: ScheduleOccurrenceStatus) -> None:
    """R25, R29, R33: the times and the Job as they are seen, who says so, and why."""
    assert outcome_due(run, now=at("10:30"), writer=WRITER) == want


def test_a_run_that_the_operator_ends() -> None:
    """R14, R31: what its Job has shown stays, and when it ended is now."""
    run = a_run(record=an_admission(status=STARTED_ONCE), job=a_job())
    status = ended_early(
        run.record, Outcome.CANCELLED, run.job, reason="CancelRequested", message="no", now=at("10:30"), writer=WRITER
    )
    assert status == ScheduleOccurrenceStatus(
        outcome=Outcome.CANCELLED,
        reason="CancelRequested",
        message="no",
        completion_time=at("10:30"),
        duration="29m59s",
        transitions=told(Outcome.CANCELLED, "CancelRequested"),
        **SEEN,
        **LATE,
    )


WORTH_RECORDING = [
    ("no Job", a_run(), None),
    ("R29 it runs", a_run(job=a_job(started="10:00:05")), "10:00:15"),
    ("R29 it runs, and nobody says since when", a_run(job=a_job(started=None, was_ready=True)), "10:00:11"),
    ("R29 that is on record", a_run(outcome=Outcome.RUNNING, job=a_job()), None),
    ("R29 no Pod is ready yet", a_run(job=a_job(was_ready=False)), None),
    ("R25 nor is one now, but it ran before", a_run(record=an_admission(status=STOPPED), job=a_job(was_ready=False)), "10:00:11"),
    ("R25 what says that it is suspended is put right",
     a_run(record=an_admission(status=WAITS), job=a_job(started="10:20", was_ready=False)), "10:20:10"),
    ("R25 it is suspended", a_run(job=a_job(SUSPENDED, started=None)), "10:00:11"),
    ("R25 since later", a_run(job=a_job(SUSPENDED, started=None, suspension_changed_at=at("10:05"))), "10:05:10"),
    ("R25 that is on record, too", a_run(record=an_admission(status=WAITS), job=a_job(SUSPENDED, started=None)), None),
    ("R25 it is interrupted, which is recorded at once", a_run(job=a_job(SUSPENDED)), None),
    ("it is over", a_run(job=a_job(JobPhase.COMPLETED)), None),
]  # fmt: skip


@pytest.mark.parametrize(("run", "want"), [row[1:] for row in WORTH_RECORDING], ids=[row[0] for row in WORTH_RECORDING])
def test_when_how_a_run_stands_is_worth_recording(run: Run, want: str | None) -> None:
    assert next_outcome_at(run) == (at(want) if want else None)


PODS = [
    ("no Job", a_run(), False),
    ("none is or was ready", a_run(job=a_job(was_ready=False)), False),
    ("one is or was", a_run(job=a_job()), True),
    ("on record it runs", a_run(outcome=Outcome.RUNNING, job=a_job(was_ready=False)), True),
    ("on record it ran", a_run(record=an_admission(status=STOPPED)), True),
    ("on record it was stopped, but never ran", a_run(outcome=Outcome.INTERRUPTED), False),
]


@pytest.mark.parametrize(("run", "want"), [row[1:] for row in PODS], ids=[row[0] for row in PODS])
def test_whether_it_ever_had_a_pod(run: Run, want: bool) -> None:
    """`startTimeoutSeconds`: a new leader knows it, too, though the Pod is not ready now."""
    assert had_pod(run) is want


def test_a_run_that_no_calendar_started_is_never_late() -> None:
    """R27."""
    record = an_admission()
    manual = replace(record, spec=record.spec.model_copy(update={"scheduled_time": None}))
    status = outcome_due(a_run(record=manual, job=a_job(JobPhase.COMPLETED)), now=at("10:01"), writer=WRITER)
    assert status is not None
    assert (status.outcome, status.start_lateness_seconds) == (Outcome.COMPLETED, None)


def test_an_end_without_a_time_is_now() -> None:
    job = replace(a_job(JobPhase.FAILED), finished_at=None)
    status = outcome_due(a_run(job=job), now=at("10:05:01.5"), writer=WRITER)
    assert status is not None
    assert (status.completion_time, status.duration) == (at("10:05:01"), "5m0s")


def test_without_a_job_nothing_started() -> None:
    """R35."""
    status = ended_without_job(an_admission(), reason="NotStarted", message="why", now=at("10:02"), writer=WRITER)
    assert (status.outcome, status.reason, status.message) == (Outcome.FAILED, "NotStarted", "why")
    assert (status.start_time, status.duration, status.job_uid) == (None, None, None)
    assert status.completion_time == at("10:02")
    assert (status.fencing_epoch, status.writer) == (WRITER.epoch, WRITER.identity)


def test_of_a_job_that_is_gone_all_that_was_seen_stays() -> None:
    """R25, R26."""
    record = an_admission(status=STARTED_ONCE.model_copy(update={"job_uid": "job-2"}))
    status = ended_without_job(record, reason="JobMissing", message="gone", now=at("10:02"), writer=WRITER)
    assert (status.start_time, status.duration, status.job_uid) == (at("10:00:01"), "1m59s", "job-2")
    status = ended_without_job(
        an_admission(), reason="NameTaken", message="why", now=at("10:02"), writer=WRITER, job=a_job()
    )
    assert (status.start_time, status.start_lateness_seconds, status.job_uid) == (at("10:00:01"), 1, "job-2")


def test_twenty_transitions_are_kept() -> None:
    before = tuple(Transition(outcome=Outcome.RUNNING, time=at("09:00") + timedelta(minutes=n)) for n in range(20))
    run = a_run(record=an_admission(status=ScheduleOccurrenceStatus(transitions=before)), job=a_job(JobPhase.COMPLETED))
    status = outcome_due(run, now=at("10:01"), writer=WRITER)
    assert status is not None
    assert len(status.transitions) == 20
    assert status.transitions[:-1] == before[1:]


def test_texts_are_cut_to_what_the_schema_takes() -> None:
    job = a_job(JobPhase.FAILED, reason="R" * 100, message="m" * 5000)
    status = outcome_due(a_run(job=job), now=at("10:01"), writer=WRITER)
    assert status is not None
    assert (len(status.reason or ""), len(status.message or "")) == (64, 4096)
    assert [len(each.reason or "") for each in status.transitions] == [64]


@pytest.mark.parametrize(
    ("seconds", "want"),
    [(0, "0s"), (59, "59s"), (60, "1m0s"), (3599, "59m59s"), (3600, "1h0m0s"), (90061, "25h1m1s"), (-5, "0s")],
)
def test_duration_text(seconds: int, want: str) -> None:
    assert duration_text(timedelta(seconds=seconds)) == want
