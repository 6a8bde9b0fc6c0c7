"""Decide what to do about the runs that people asked for, one schedule at a time: the order of the rules of R27.

A request is resolved once, on record, and then is a run like any other. Manual ones go first and at once; backfills
go oldest instant first, as many at a time as the schedule may have runs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, TypeGuard

from workflow_schedules.api.common import Condition, ConditionStatus, parse_utc
from workflow_schedules.api.occurrence import Cause, ScheduleOccurrenceStatus
from workflow_schedules.api.schedule import DeletionPolicy
from workflow_schedules.core import forgotten, requests
from workflow_schedules.core.acceptance import Accepted, Refusal, accept, template_of
from workflow_schedules.core.decide import hold_reason
from workflow_schedules.core.due_times import next_due_time
from workflow_schedules.core.ending import cancelled_unresolved, is_ending
from workflow_schedules.core.inputs import OccurrenceFacts, resolve_input
from workflow_schedules.core.leases_apart import is_other_lease
from workflow_schedules.core.log import revision_now
from workflow_schedules.core.model import Claim, CreateJob, DeleteJob, FindJob, WriteOutcome
from workflow_schedules.core.outcome import ended_without_job
from workflow_schedules.core.preflight import Passed, Rejection, judge_input
from workflow_schedules.core.runs import decide_runs, start_deadline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.model import ObjectRef, Record, Run, Schedule, Snapshot, Template

_ONE_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolve:
    """Write what a request is resolved to into its status: the decision on record, before there is a Job."""

    run: Run
    status: ScheduleOccurrenceStatus
    template: Template


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Write why a request is not run; first look again at what it was judged by, since it is final."""

    run: Run
    status: ScheduleOccurrenceStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """Let a request go with its schedule: a person made it, so nobody has set its owner yet."""

    run: Run
    schedule: Schedule


RequestStep = Resolve | Refuse | Own | Claim | CreateJob | WriteOutcome | DeleteJob | FindJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The requests that name one schedule and are unfinished, or cancelled with a Job that is still there.

    Attributes:
        ref: the schedule's name.
        snapshot: of the schedule that has this name now; without a schedule where there is none.
        runs: the requests.
        is_anothers: another installation schedules here, so what is not resolved yet is for that one (R33).
    """

    ref: ObjectRef
    snapshot: Snapshot
    runs: tuple[Run, ...]
    is_anothers: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPlan:
    """At most one write, and when to look again if nothing happens."""

    step: RequestStep | None = None
    next_wake_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resolved:
    schedule: Schedule
    template: Template
    input_json: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    reason: str
    message: str


def decide_requests(queue: Queue, *, now: datetime) -> RequestPlan:
    """Decide the next write about the requests that name a schedule.

    One whose requests to the API server fail (`retry_at`) is left out meanwhile, so that it delays no other (I9).

    Source: contract R27, R35; P10, P11, P12.
    """
    wakes: list[datetime | None] = []
    for run in sorted((each for each in queue.runs if not _is_anothers(queue, each.record)), key=_turn):
        plan = _decide_one(queue, run, now)
        if plan.step is not None:
            return plan
        wakes.append(plan.next_wake_at)
    return RequestPlan(next_wake_at=min((at for at in wakes if at is not None), default=None))


def _turn(run: Run) -> tuple[bool, datetime, datetime, str]:
    record = run.record
    is_backfill = record.spec.cause is Cause.BACKFILL
    return is_backfill, record.spec.scheduled_time or record.created_at, record.created_at, record.ref.name


def _decide_one(queue: Queue, run: Run, now: datetime) -> RequestPlan:
    if run.retry_at is not None and now < run.retry_at:
        return RequestPlan(next_wake_at=run.retry_at)
    if requests.is_resolved(run.record):
        return _decide_resolved(_with_its_schedule(queue.snapshot, run), run, now)
    cancelled = cancelled_unresolved(run, now=now, writer=queue.snapshot.writer)
    if cancelled is not None:
        return RequestPlan(step=WriteOutcome(run=run, status=cancelled))
    found = _resolve(queue, run, now)
    if isinstance(found, _Refused):
        status = ended_without_job(
            run.record, reason=found.reason, message=found.message, now=now, writer=queue.snapshot.writer
        )
        return RequestPlan(step=Refuse(run=run, status=status))
    if run.record.spec.cause is Cause.BACKFILL and not _has_turn(queue, found.schedule):
        return RequestPlan()
    return RequestPlan(step=Resolve(run=run, status=_status(queue.snapshot, run, found, now), template=found.template))


def _decide_resolved(snapshot: Snapshot, run: Run, now: datetime) -> RequestPlan:
    plan = decide_runs(snapshot, now=now)
    if isinstance(plan.step, Claim | CreateJob) and _is_to_be_owned(snapshot.schedule, run.record):
        return RequestPlan(step=Own(run=run, schedule=snapshot.schedule))
    step = plan.step if isinstance(plan.step, Claim | CreateJob | WriteOutcome | DeleteJob | FindJob) else None
    return RequestPlan(step=step, next_wake_at=plan.next_wake_at)


def _is_to_be_owned(schedule: Schedule | None, record: Record) -> TypeGuard[Schedule]:
    """Tell whether a request has no owner yet and is to go with its schedule: settled before its Job is made (R20)."""
    if schedule is None or schedule.spec is None or schedule.uid in record.owner_uids:
        return False
    return schedule.spec.deletion_policy is DeletionPolicy.DELETE


def _is_anothers(queue: Queue, record: Record) -> bool:
    """Tell whether another installation resolved a request, or is the one to do so (R33)."""
    if requests.is_resolved(record):
        return is_other_lease(record.spec.lease, queue.snapshot.writer.lease)
    return queue.is_anothers


def _with_its_schedule(snapshot: Snapshot, run: Run) -> Snapshot:
    """Return a snapshot of one run; the schedule that it was resolved with may be gone, and another have its name."""
    uid = run.record.spec.schedule_ref.uid or ""
    schedule = snapshot.schedule
    is_same = schedule is not None and schedule.uid == uid
    return replace(
        snapshot,
        uid=uid,
        schedule=schedule if is_same else None,
        definition=snapshot.definition if is_same else None,
        runs=(run,),
    )


def _has_turn(queue: Queue, schedule: Schedule) -> bool:
    """Tell whether one more backfill may run; what the calendar starts does not count, nor is it counted there."""
    limit = (schedule.spec.max_active_runs if schedule.spec else None) or 1
    return sum(1 for run in queue.runs if _is_backfill_under_way(run, schedule.uid)) < limit


def _is_backfill_under_way(run: Run, schedule_uid: str) -> bool:
    record = run.record
    is_resolved = requests.is_resolved(record) and record.spec.schedule_ref.uid == schedule_uid
    holds_slot = not run.is_finished or is_ending(run)
    return is_resolved and record.spec.cause is Cause.BACKFILL and holds_slot


def _resolve(queue: Queue, run: Run, now: datetime) -> _Resolved | _Refused:
    if forgotten.is_forgotten(queue.snapshot, run.record.created_at):
        return _Refused(
            reason="NotStarted",
            message=f"asked for at {run.record.created_at:%Y-%m-%dT%H:%M:%SZ}, {forgotten.why(queue.snapshot)}; ask again",
        )
    if run.record.spec.cause is Cause.MANUAL and now > start_deadline(queue.snapshot, run):
        return _Refused(
            reason="NotStarted",
            message=f"asked for at {run.record.created_at:%Y-%m-%dT%H:%M:%SZ} and not seen within 10 minutes; ask again",
        )
    schedule = queue.snapshot.schedule
    if schedule is None or schedule.is_deleting:
        return _Refused(
            reason="ScheduleNotFound",
            message=f"spec.scheduleRef.name: WorkflowSchedule {queue.ref.name} does not exist in namespace "
            f"{queue.ref.namespace}; name one that does",
        )
    verdict = accept(schedule)
    if isinstance(verdict, Refusal):
        return _Refused(
            reason="ScheduleNotAccepted",
            message=f"WorkflowSchedule {queue.ref.name} is not accepted: {verdict.message}",
        )
    return _resolve_with(queue, run, schedule, verdict, now)


def _resolve_with(
    queue: Queue, run: Run, schedule: Schedule, accepted: Accepted, now: datetime
) -> _Resolved | _Refused:
    held = hold_reason(queue.snapshot, accepted)
    template = template_of(schedule, queue.snapshot.definition)
    if held is not None or template is None:
        return _no_definition(accepted, held or "WorkflowInvalid")
    refused = _instant(run, accepted, now)
    if refused is not None:
        return refused
    judged = _judge_input(queue.snapshot, run.record, schedule, accepted.spec)
    if isinstance(judged, Rejection):
        return _Refused(reason=judged.reason, message=judged.message)
    return _Resolved(schedule=schedule, template=template, input_json=judged.input_json)


def _judge_input(
    snapshot: Snapshot, record: Record, schedule: Schedule, spec: WorkflowScheduleSpec
) -> Passed | Rejection:
    """Resolve and judge the input: the request's own in place of the schedule's, and what the schedule binds (R24)."""
    facts = OccurrenceFacts(
        scheduled_time=record.spec.scheduled_time,
        name=record.ref.name,
        schedule_name=schedule.ref.name,
        revision=revision_now(snapshot, schedule),
        cause=record.spec.cause,
        last_successful_time=requests.last_successful_time(snapshot),
    )
    given = spec.input if record.spec.input is None else record.spec.input
    return judge_input(resolve_input(given, spec.input_from, facts), snapshot.definition if spec.workflow_ref else None)


def _no_definition(accepted: Accepted, reason: str) -> _Refused:
    name = accepted.spec.workflow_ref.name if accepted.spec.workflow_ref else ""
    remedy = {
        "WorkflowNotFound": "does not exist in this namespace; apply it and ask again",
        "WorkflowDisabled": "has enabled: false; enable it and ask again",
    }
    return _Refused(reason=reason, message=f"WorkflowDefinition {name} {remedy.get(reason, 'can not be used')}")


def _instant(run: Run, accepted: Accepted, now: datetime) -> _Refused | None:
    """Refuse a backfill of what is no past instant of the calendar; one on a date to exclude is one."""
    wanted = run.record.spec.scheduled_time
    if run.record.spec.cause is not Cause.BACKFILL or wanted is None:
        return None
    if wanted > now:
        return _Refused(
            reason="InstantInFuture",
            message=f"spec.scheduledTime: {wanted:%Y-%m-%dT%H:%M:%SZ} is not past; a backfill runs a past instant",
        )
    following = next_due_time(accepted.trigger, after=wanted - _ONE_SECOND)
    if following == wanted:
        return None
    nearest = f"; the next one after it is {following:%Y-%m-%dT%H:%M:%SZ}" if following else ""
    return _Refused(
        reason="NotAnInstant",
        message=f"spec.scheduledTime: {wanted:%Y-%m-%dT%H:%M:%SZ} is no instant of this schedule{nearest}",
    )


def _status(snapshot: Snapshot, run: Run, found: _Resolved, now: datetime) -> ScheduleOccurrenceStatus:
    spec = found.schedule.spec
    others: Iterator[Condition] = (each for each in run.record.status.conditions if each.type != requests.RESOLVED)
    resolved = Condition(
        type=requests.RESOLVED,
        status=ConditionStatus.TRUE,
        reason=requests.RESOLVED,
        message=f"resolved under the Lease {snapshot.writer.lease}",
        last_transition_time=parse_utc(now),
    )
    return ScheduleOccurrenceStatus(
        schedule_uid=found.schedule.uid,
        revision=revision_now(snapshot, found.schedule),
        template_hash=found.template.hash,
        input_json=found.input_json,
        active_deadline_seconds=spec.active_deadline_seconds if spec else None,
        start_timeout_seconds=spec.start_timeout_seconds if spec else None,
        conditions=(*others, resolved),
        lease=snapshot.writer.lease,
        fencing_epoch=snapshot.writer.epoch,
        writer=snapshot.writer.identity,
    )
