"""Runs that the operator ends itself: cancelled, replaced, or never ready in time.

The outcome goes on record first, then the Job is deleted, and as long as it is not gone the run holds its slot (R14). What
stands on record is enough to go on with that after any crash. Which run replaces which is the business of runs.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import Outcome
from workflow_schedules.core.model import JobPhase
from workflow_schedules.core.outcome import ended_early, had_pod
from workflow_schedules.core.plan import DeleteJob, Plan, ReadPods

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.api.occurrence import ScheduleOccurrenceStatus
    from workflow_schedules.core.model import Job, Run, Writer

START_TIMEOUT = "StartTimeout"
REMOVAL_PATIENCE = timedelta(seconds=60)  # a Job that takes longer to go is said to be stuck
LOOK_AGAIN_AFTER = timedelta(seconds=60)  # what keeps it is read this often at most
UNREADY_PATIENCE = timedelta(seconds=900)
_LONGEST_TIMEOUT_SECONDS = 100 * 366 * 86400  # the field has no upper bound, the calendar has one
_SHOWN = 200


def is_ending(run: Run) -> bool:
    """Tell whether a run was ended on record and its Job is not known to be gone; it holds its slot (R12 to R14).

    One that was ended without a Job never had one: that was confirmed before (P12). A Job that finished by itself before it
    could be deleted has no Pod left, and is kept like any other.
    """
    status, job = run.record.status, run.job
    was_ended = status.outcome is Outcome.CANCELLED or (
        status.outcome is Outcome.FAILED and status.reason == START_TIMEOUT
    )
    if not was_ended or status.job_uid is None or run.is_job_gone:
        return False
    if job is None or job.uid != status.job_uid:
        return True  # not seen by this process: asking tells
    return not job.is_gone and (job.is_deleting or not job.is_finished)


def decide_removal(run: Run, now: datetime) -> Plan:
    """Decide what to do about the Job of a run that was ended: delete it, then wait; where it won't go, find out why.

    Source: contract R14; P19.
    """
    job = run.job
    if job is None or job.uid != run.record.status.job_uid or not job.is_deleting:
        if run.retry_at is None or now >= run.retry_at:
            return Plan(step=DeleteJob(run=run))
        return Plan(next_wake_at=run.retry_at)
    at = stuck_at(run)
    if run.pods_read_at is not None:
        at = max(at, run.pods_read_at + LOOK_AGAIN_AFTER)
    return Plan(step=ReadPods(run=run)) if now >= at else Plan(next_wake_at=at)


def stuck_at(run: Run) -> datetime:
    """Return from when on a Job that is still there is worth a word: the deletion may come long after the outcome (P12)."""
    ended_at = run.record.status.completion_time or run.record.created_at
    since = run.job.deleting_since if run.job is not None else None
    return max(ended_at, since or ended_at) + REMOVAL_PATIENCE


def end_due(run: Run, *, replaced_by: Run | None, now: datetime, writer: Writer) -> ScheduleOccurrenceStatus | None:
    """Return the final status of a run that is to be ended now, or None.

    Args:
        run: unfinished, by its record and by its Job.
        replaced_by: a newer run that may start and ends all older ones, or None.
        now: aware UTC.
        writer: who writes.

    Source: contract R14, R31, `startTimeoutSeconds`.
    """
    outcome, reason, message = Outcome.CANCELLED, "", ""
    timeout_at = start_timeout_at(run)
    if run.cancel_request is not None:
        reason, message = "CancelRequested", _asked(run.cancel_request)
    elif replaced_by is not None:
        reason = "Replaced"
        message = f"{replaced_by.record.ref.name} takes its place (concurrencyPolicy Replace)"
    elif timeout_at is not None and now >= timeout_at:
        outcome, reason = Outcome.FAILED, START_TIMEOUT
        message = (
            f"no Pod was ready or had finished {run.record.spec.start_timeout_seconds} s after its Job could start "
            "(startTimeoutSeconds; suspended time does not count)"
        )
    if not reason:
        return None
    return ended_early(run.record, outcome, run.job, reason=reason, message=message, now=now, writer=writer)


def cancelled_unresolved(run: Run, *, now: datetime, writer: Writer) -> ScheduleOccurrenceStatus | None:
    """Return the final status of a request that was cancelled before it was resolved: it has no Job, and gets none.

    Source: contract R27, R31.
    """
    if run.cancel_request is None:
        return None
    return ended_early(
        run.record,
        Outcome.CANCELLED,
        None,
        reason="CancelRequested",
        message=_asked(run.cancel_request),
        now=now,
        writer=writer,
    )


def _asked(annotation: str) -> str:
    return f"annotation {names.ANNOTATION_CANCEL}: {annotation[:_SHOWN]!r}"


def start_timeout_at(run: Run) -> datetime | None:
    """Return when an unready run fails, by what its record pinned; None without a timeout or while the clock stands still."""
    seconds, since = run.record.spec.start_timeout_seconds, unready_since(run)
    if seconds is None or since is None:
        return None
    return since + timedelta(seconds=min(seconds, _LONGEST_TIMEOUT_SECONDS))


def unhealthy_at(run: Run) -> datetime | None:
    """Return when an unready run without a timeout is worth a word, or None."""
    since = unready_since(run)
    return None if since is None or run.record.spec.start_timeout_seconds is not None else since + UNREADY_PATIENCE


def unready_since(run: Run) -> datetime | None:
    """Return since when a run has waited for a first ready Pod; None when it need not, or is suspended.

    The clock is the Job's own, so that it survives restarts: it starts with `creationTimestamp`, or with the latest
    resumption (the time of the condition `Suspended` once that is False), which is also what Kueue's admission is. A Job that
    is suspended and resumed before any Pod was ready gets its time anew: its Pods are new, and the Job tells no more.
    """
    job = run.job
    if job is None or job.is_gone or job.is_finished or job.phase is JobPhase.SUSPENDED or had_pod(run):
        return None
    return _could_start_at(job)


def _could_start_at(job: Job) -> datetime:
    return max(job.created_at, job.suspension_changed_at or job.created_at)


def run_problem(run: Run, now: datetime) -> tuple[str, str] | None:
    """Return reason and message of what is wrong with a run that holds its slot, or None.

    Source: contract section 2 (`RunsHealthy`), R14.
    """
    if is_ending(run):
        return _removal_problem(run, now)
    if run.job is None and run.last_error is not None:
        return "JobNotCreated", run.last_error
    at = unhealthy_at(run)
    if at is None or now < at:
        return None
    seconds = int(UNREADY_PATIENCE.total_seconds())
    return "NotStarted", f"no Pod was ready within {seconds} s; startTimeoutSeconds would end such a run"


def _removal_problem(run: Run, now: datetime) -> tuple[str, str] | None:
    is_tried = run.last_error is not None or (run.job is not None and run.job.is_deleting)
    if not is_tried or now < stuck_at(run):  # a new holder waits before it deletes (P12)
        return None
    why = run.stuck_on or run.last_error
    return "CannotBeRemoved", "its Job is ended but not gone" + (f": {why}" if why else "")
