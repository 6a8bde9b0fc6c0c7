"""From what is seen of a Job to the outcome of its run. Nothing about schedules may live here."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from workflow_schedules.api.common import parse_utc
from workflow_schedules.api.occurrence import Outcome, ScheduleOccurrenceStatus, Transition
from workflow_schedules.core.model import JobPhase
from workflow_schedules.core.zones import moved

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.core.model import Job, Record, Run, Writer

RUNNING_AFTER = timedelta(seconds=10)  # shorter runs are recorded once, at their end (R29)
SUSPENDED = "Suspended"


def outcome_due(run: Run, *, now: datetime, writer: Writer) -> ScheduleOccurrenceStatus | None:
    """Return the status to write for what the Job shows, or None when there is nothing new.

    Args:
        run: with a Job that is its own.
        now: aware UTC.
        writer: who writes.

    Source: contract R25, R26, R29.
    """
    job = run.job
    if job is None:
        return None
    match job.phase:
        case JobPhase.COMPLETED:
            return _status(run.record, Outcome.COMPLETED, job, now=now, writer=writer, reason="JobComplete")
        case JobPhase.FAILED:
            outcome = Outcome.EXHAUSTED if job.reason == "DeadlineExceeded" else Outcome.FAILED
            return _status(
                run.record, outcome, job, now=now, writer=writer, reason=job.reason or "JobFailed", message=job.message
            )
        case JobPhase.ACTIVE:
            return _running(run, job, now=now, writer=writer)
        case JobPhase.SUSPENDED:
            return _suspended(run, job, now=now, writer=writer)
        case JobPhase.WAITING:
            return None


def next_outcome_at(run: Run) -> datetime | None:
    """Return when how a run stands is worth recording, if it then still stands so; None when it is not, or is on record."""
    job = run.job
    if job is None:
        return None
    match job.phase:
        case JobPhase.ACTIVE if run.record.status.outcome is not Outcome.RUNNING and (
            had_pod(run) or _says_suspended(run)
        ):
            return moved(job.started_at or job.created_at, RUNNING_AFTER)
        case JobPhase.SUSPENDED if not (_was_started(run, job) or _says_suspended(run)):
            return moved(job.suspension_changed_at or job.created_at, RUNNING_AFTER)
        case _:
            return None


def had_pod(run: Run) -> bool:
    """Tell whether at some time a Pod of this run was ready or had finished.

    `Running` on record says so, too: it is written only then, so that a new leader knows though the Pod is unready now.
    """
    status = run.record.status
    if run.job is not None and run.job.was_ready:
        return True
    return status.outcome is Outcome.RUNNING or any(each.outcome is Outcome.RUNNING for each in status.transitions)


def ended_without_job(
    record: Record, *, reason: str, message: str, now: datetime, writer: Writer, job: Job | None = None
) -> ScheduleOccurrenceStatus:
    """Return the status of a run whose Job was never made, was refused, or is gone.

    Source: contract R24, R25, R35.
    """
    return _status(record, Outcome.FAILED, job, now=now, writer=writer, reason=reason, message=message)


def ended_early(
    record: Record, outcome: Outcome, job: Job | None, *, reason: str, message: str, now: datetime, writer: Writer
) -> ScheduleOccurrenceStatus:
    """Return the status of a run that the operator ends before its Job does.

    Source: contract R14, R31, `startTimeoutSeconds`.
    """
    return _status(record, outcome, job, now=now, writer=writer, reason=reason, message=message)


def _running(run: Run, job: Job, *, now: datetime, writer: Writer) -> ScheduleOccurrenceStatus | None:
    at = next_outcome_at(run)
    if at is None or now < at:
        return None
    if not had_pod(run):
        return _noted(
            run, job, writer, reason="JobStarted", message="its Job is not suspended any more; no Pod is ready yet"
        )
    return _status(run.record, Outcome.RUNNING, job, now=now, writer=writer, reason="JobRunning")


def _suspended(run: Run, job: Job, *, now: datetime, writer: Writer) -> ScheduleOccurrenceStatus | None:
    """Tell an interrupted run, which keeps its slot, from one that stays admitted (Kueue); the latter only if it lasts."""
    if _was_started(run, job):
        if run.record.status.outcome is Outcome.INTERRUPTED:
            return None
        return _status(run.record, Outcome.INTERRUPTED, job, now=now, writer=writer, reason="JobSuspended")
    at = next_outcome_at(run)
    if at is None or now < at:
        return None
    message = "its Job is suspended and has not started yet; it starts when spec.suspend of the Job becomes false"
    return _noted(run, job, writer, reason=SUSPENDED, message=message)


def _was_started(run: Run, job: Job) -> bool:
    """Tell whether it had started at some time: a Job that is suspended no longer says when, and its record may not know."""
    status = run.record.status
    return job.was_started or status.start_time is not None or status.outcome is Outcome.INTERRUPTED


def _says_suspended(run: Run) -> bool:
    return run.record.status.outcome is None and run.record.status.reason == SUSPENDED


def _noted(run: Run, job: Job, writer: Writer, *, reason: str, message: str) -> ScheduleOccurrenceStatus:
    """Return the status of a run that stays admitted, and why."""
    return run.record.status.model_copy(
        update={
            "reason": reason,
            "message": message,
            "job_uid": job.uid,
            "fencing_epoch": writer.epoch,
            "writer": writer.identity,
        }
    )


def _status(
    record: Record,
    outcome: Outcome,
    job: Job | None,
    *,
    now: datetime,
    writer: Writer,
    reason: str,
    message: str = "",
) -> ScheduleOccurrenceStatus:
    before = record.status
    started = (job.started_at if job else None) or before.start_time
    ended = ((job.finished_at if job else None) or parse_utc(now)) if outcome.is_final else None
    scheduled = record.spec.scheduled_time
    created = job.created_at if job else None
    return ScheduleOccurrenceStatus(
        outcome=outcome,
        reason=reason[:64],
        message=message[:4096] or None,
        job_uid=job.uid if job else before.job_uid,
        start_time=started,
        completion_time=ended,
        start_lateness_seconds=int((created - scheduled).total_seconds()) if created and scheduled else None,
        duration=duration_text(ended - started) if ended and started else None,
        transitions=(*before.transitions, Transition(outcome=outcome, time=parse_utc(now), reason=reason[:64]))[-20:],
        conditions=before.conditions,
        fencing_epoch=writer.epoch,
        writer=writer.identity,
    )


def duration_text(length: timedelta) -> str:
    """Return a length of time as ``1h2m3s``, leading zero units left out."""
    minutes, seconds = divmod(max(0, int(length.total_seconds())), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
