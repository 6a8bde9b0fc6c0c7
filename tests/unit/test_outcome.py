"""From a Job to the outcome of its run."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from support.builders import WRITER, a_job, a_run, an_admission, at
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceStatus, Transition
from workflow_schedules.core.model import JobPhase, Run
from workflow_schedules.core.outcome import duration_text, ended_without_job, outcome_due

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


@pytest.mark.parametrize(
    ("seconds", "want"),
    [(0, "0s"), (59, "59s"), (60, "1m0s"), (3599, "59m59s"), (3600, "1h0m0s"), (90061, "25h1m1s"), (-5, "0s")],
)
def test_duration_text(seconds: int, want: str) -> None:
    assert duration_text(timedelta(seconds=seconds)) == want
