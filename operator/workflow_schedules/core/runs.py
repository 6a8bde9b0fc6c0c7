"""What to do about the runs of one schedule: outcomes to record, Jobs to make or to remove, runs that can't be started any more.

Holds for every admitted record whatever became of its schedule since. What is due next is decide's business.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from workflow_schedules.core import forgotten
from workflow_schedules.core.acceptance import Accepted, accept
from workflow_schedules.core.ending import decide_removal, end_due, is_ending, start_timeout_at, unhealthy_at
from workflow_schedules.core.jitter import Jitter
from workflow_schedules.core.log import open_runs
from workflow_schedules.core.misfire import Misfire
from workflow_schedules.core.outcome import ended_without_job, next_outcome_at, outcome_due
from workflow_schedules.core.pause import is_paused
from workflow_schedules.core.plan import Claim, CreateJob, DeleteJob, FindJob, Plan, WriteOutcome
from workflow_schedules.core.requests import counts_from, is_request
from workflow_schedules.core.zones import LAST_INSTANT, moved

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.api.occurrence import ScheduleOccurrenceStatus
    from workflow_schedules.core.model import Job, Record, Run, Snapshot, Writer
    from workflow_schedules.core.plan import Step

ADMISSION_LAG = timedelta(seconds=60)  # L: longest lag of an API server's admission cache behind the Lease
REQUEST_LIFE = timedelta(seconds=30)  # R: longest life of a request after it left a process
SETTLE = ADMISSION_LAG + REQUEST_LIFE
UNBOUNDED_START = timedelta(minutes=10)  # R35: how long a Job is tried where the deadline is unbounded


def decide_runs(snapshot: Snapshot, *, now: datetime) -> Plan:
    """Decide the next write about a run of this schedule, oldest run first.

    Source: contract R14, R25, R26, R31, R35; P10, P11, P12, P19.
    """
    wakes: list[datetime | None] = []
    successor = _successor(snapshot, now)
    for run in snapshot.runs:
        plan = _decide_ended(snapshot, run, now) if run.is_finished else _decide_run(snapshot, run, now, successor)
        if plan.step is not None:
            return plan
        wakes.append(plan.next_wake_at)
    return Plan(next_wake_at=min((at for at in wakes if at is not None), default=None))


def _decide_ended(snapshot: Snapshot, run: Run, now: datetime) -> Plan:
    """Remove the Job of a run that was ended, once no create can bring it back under the free name (P1, P12).

    Only the deletion waits for that: a Job that is gone already frees the slot at once (R34), and one that can't go is said.
    """
    if not is_ending(run):
        return Plan()
    plan = decide_removal(run, now)
    if not isinstance(plan.step, DeleteJob):
        return plan
    arrives = _create_may_arrive_until(snapshot, run, now)
    if arrives is None:
        return plan
    return Plan(next_wake_at=arrives) if _is_seen(run) else Plan(step=FindJob(run=run))


def _is_seen(run: Run) -> bool:
    return run.job is not None and run.job.uid == run.record.status.job_uid


def start_deadline(snapshot: Snapshot, run: Run) -> datetime:
    """Return until when the Job of an admitted record may still be made; long past where a restore may have lost it.

    Source: contract R35; reliability I1.
    """
    asked_at = _asked_at(run.record)
    if forgotten.is_forgotten(snapshot, asked_at):
        return asked_at
    if is_request(run.record):
        return moved(asked_at, UNBOUNDED_START) or LAST_INSTANT
    instant, schedule = run.record.spec.scheduled_time, snapshot.schedule
    deadline = Misfire.of(schedule.spec).deadline if schedule and schedule.spec else None
    if deadline is None or instant is None or schedule is None or schedule.spec is None:
        return moved(run.record.created_at, UNBOUNDED_START) or LAST_INSTANT
    verdict = accept(schedule)
    if isinstance(verdict, Accepted):
        instant = Jitter.of(schedule.uid, verdict.spec).start_of(instant, verdict.trigger)
    return moved(instant, deadline) or LAST_INSTANT


def _asked_at(record: Record) -> datetime:
    """Return when a run was to start at the earliest: what a restore may have lost is of then or later."""
    return counts_from(record) if is_request(record) else record.spec.scheduled_time or record.created_at


def _successor(snapshot: Snapshot, now: datetime) -> Run | None:
    """Return the newest run that takes the place of the older ones, if it may still start: else nothing ends for it (R14)."""
    for run in reversed(snapshot.runs):
        if run.record.spec.replaces is not None and not run.is_finished:
            is_wanted = run.cancel_request is None and run.refused is None and now <= start_deadline(snapshot, run)
            return run if is_wanted and _may_start(snapshot, run, now) else None
    return None


def _decide_run(snapshot: Snapshot, run: Run, now: datetime, successor: Run | None) -> Plan:
    job = run.job
    replaced_by = successor if successor is not None and run.record.number < successor.record.number else None
    if job is not None and (job.owner_uid == run.record.uid or job.uid == run.record.status.job_uid):
        return _decide_with_job(snapshot, run, job, now, replaced_by)
    if job is not None and not job.is_gone:
        return _foreign_job(snapshot, run, now)
    if run.record.status.job_uid is not None:
        return _close_missing(snapshot, run, now)
    ended = end_due(run, replaced_by=replaced_by, now=now, writer=snapshot.writer)
    return _decide_without_job(snapshot, run, now) if ended is None else _confirmed(snapshot, run, ended, now)


def _decide_with_job(snapshot: Snapshot, run: Run, job: Job, now: datetime, replaced_by: Run | None) -> Plan:
    if job.is_gone and not job.is_finished:
        return _close_missing(snapshot, run, now, job=job)
    status = None
    if not job.is_finished:
        status = end_due(run, replaced_by=replaced_by, now=now, writer=snapshot.writer)
    status = status or outcome_due(run, now=now, writer=snapshot.writer)
    if status is not None:
        return _write(run, status)
    wakes = (next_outcome_at(run), start_timeout_at(run), unhealthy_at(run))
    return Plan(next_wake_at=min((at for at in wakes if at is not None and at > now), default=None))


def waited_for(snapshot: Snapshot, run: Run) -> tuple[Run, ...]:
    """Return the older runs that must be gone before a run that takes their place may start.

    Source: contract R14.
    """
    if run.record.spec.replaces is None:
        return ()
    return tuple(older for older in open_runs(snapshot.runs) if older.record.number < run.record.number)


def _foreign_job(snapshot: Snapshot, run: Run, now: datetime) -> Plan:
    """Close a run whose name somebody else's Job has: it is never adopted (P10).

    Not while an own create may still arrive, which would meet a free name once that Job is gone (P12).
    """
    if run.is_create_unanswered:
        return Plan(next_wake_at=now + timedelta(seconds=1))
    status = ended_without_job(
        run.record,
        reason="NameTaken",
        message=f"Job {run.record.ref.name} belongs to somebody else; nothing was started",
        now=now,
        writer=snapshot.writer,
    )
    return _write(run, status)


def _close_missing(snapshot: Snapshot, run: Run, now: datetime, *, job: Job | None = None) -> Plan:
    message = (
        "the Job is gone before its end was seen: outcome unknown, external effects may already have happened; "
        "it is not run again"
    )
    status = ended_without_job(
        run.record,
        reason="JobMissing",
        message=message,
        now=now,
        writer=snapshot.writer,
        job=job,
    )
    return _confirmed(snapshot, run, status, now)


def _decide_without_job(snapshot: Snapshot, run: Run, now: datetime) -> Plan:
    if run.refused is not None:
        return _decide_refused(snapshot, run, run.refused, now)
    deadline = start_deadline(snapshot, run)
    if now > deadline:
        return _confirmed(snapshot, run, _too_late(snapshot, run, now), now)
    if not _may_start(snapshot, run, now) or waited_for(snapshot, run):
        return Plan(next_wake_at=moved(deadline, timedelta(seconds=1)))
    if run.is_outcome_unanswered:
        return Plan(next_wake_at=now + timedelta(seconds=1))
    if run.retry_at is not None and now < run.retry_at:
        return Plan(next_wake_at=run.retry_at)
    return Plan(step=_start(snapshot, run))


def _decide_refused(snapshot: Snapshot, run: Run, refusal: str, now: datetime) -> Plan:
    """Close a run whose Job the API server will never take: at once, so that its slot is free, if nobody else tried it."""
    arrives = _create_may_arrive_until(snapshot, run, now)
    if arrives is not None:
        return Plan(next_wake_at=arrives)
    status = _unstarted(snapshot, run, "JobRejected", refusal, now)
    return Plan(step=WriteOutcome(run=run, status=status, confirm_absence=True))


def _start(snapshot: Snapshot, run: Run) -> Step:
    record, writer = run.record, snapshot.writer
    is_own = _is_of_this_holder(record, writer)
    is_claimed = (record.status.fencing_epoch, record.status.writer) == (writer.epoch, writer.identity)
    return CreateJob(run=run) if is_own or is_claimed else Claim(run=run)


def _may_start(snapshot: Snapshot, run: Run, now: datetime) -> bool:
    """Tell whether a run may still be started as schedule and definition stand now (P11).

    Nothing is started on a log that contradicts itself (R31); a request needs neither the log nor a schedule that admits (R27).
    """
    schedule, definition = snapshot.schedule, snapshot.definition
    if schedule is None or schedule.is_deleting or schedule.spec is None:
        return False
    is_stopped = not schedule.spec.enabled or snapshot.contradiction is not None or is_paused(snapshot, now=now)
    if is_stopped and not is_request(run.record):
        return False
    return schedule.spec.workflow_ref is None or (definition is not None and definition.is_enabled)


def _is_of_this_holder(record: Record, writer: Writer) -> bool:
    """Tell whether this very holder of the Lease wrote a record; an epoch alone may have two where a Lease was made anew."""
    return (record.spec.fencing_epoch, record.spec.writer) == (writer.epoch, writer.identity)


def _too_late(snapshot: Snapshot, run: Run, now: datetime) -> ScheduleOccurrenceStatus:
    if older := waited_for(snapshot, run):  # nobody has made its Job either: that waits for the same
        message = f"no Job could be made in time: it waited for {_shown(older)} to be gone"
        return _unstarted(snapshot, run, "NotStarted", message, now)
    if forgotten.is_forgotten(snapshot, _asked_at(run.record)):
        return _unstarted(snapshot, run, "StartUnknown", f"found without a Job, {forgotten.why(snapshot)}", now)
    if _is_of_this_holder(run.record, snapshot.writer):
        stopped = "the schedule stopped admitting before the Job was made"
        why = run.last_error or ("it was not tried in time" if _may_start(snapshot, run, now) else stopped)
        return _unstarted(snapshot, run, "NotStarted", f"no Job could be made in time: {why}", now)
    return _unstarted(
        snapshot,
        run,
        "StartUnknown",
        "found without a Job after its deadline: never started, or its Job was deleted unseen",
        now,
    )


def _shown(runs: tuple[Run, ...]) -> str:
    shown = [run.record.ref.name + (f" ({run.stuck_on})" if run.stuck_on else "") for run in runs[:3]]
    return ", ".join(shown) + (f" and {len(runs) - 3} more" if len(runs) > 3 else "")


def _unstarted(snapshot: Snapshot, run: Run, reason: str, message: str, now: datetime) -> ScheduleOccurrenceStatus:
    return ended_without_job(run.record, reason=reason, message=message, now=now, writer=snapshot.writer)


def _confirmed(snapshot: Snapshot, run: Run, status: ScheduleOccurrenceStatus, now: datetime) -> Plan:
    """Close a run for want of a Job only when no create can still be on its way, and the API server itself has none (P12)."""
    arrives = _settles_at(snapshot, run, now)
    if arrives is not None:
        return Plan(next_wake_at=arrives)
    return Plan(step=WriteOutcome(run=run, status=status, confirm_absence=True))


def _create_may_arrive_until(snapshot: Snapshot, run: Run, now: datetime) -> datetime | None:
    """Return when to look again while a create of a run's Job may still arrive, or None when none can.

    A record that this holder wrote is known to no earlier one: who reads it learns that it leads no more (P5). Of a request the
    status tells only who wrote it last, and that may be the very outcome.
    """
    is_own = run.is_resolved_here if is_request(run.record) else _is_of_this_holder(run.record, snapshot.writer)
    if is_own:
        return now + timedelta(seconds=1) if run.is_create_unanswered else None
    return _settles_at(snapshot, run, now)


def _settles_at(snapshot: Snapshot, run: Run, now: datetime) -> datetime | None:
    """Return when to look again while anything of an earlier holder, or a create of ours, may still arrive; else None."""
    if snapshot.since_acquired <= SETTLE:
        return now + (SETTLE - snapshot.since_acquired) + timedelta(seconds=1)
    return now + timedelta(seconds=1) if run.is_create_unanswered else None


def _write(run: Run, status: ScheduleOccurrenceStatus) -> Plan:
    return Plan(step=WriteOutcome(run=run, status=status))
