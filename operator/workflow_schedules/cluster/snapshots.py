"""What decisions are made on: everything that the cache knows of one schedule, of one run, of the requests about one schedule.

Values at one moment, made anew for each decision. No requests, no rules, and no state may live here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.cluster.memory import may_still_arrive
from workflow_schedules.core.acceptance import template_of
from workflow_schedules.core.decide_requests import Queue
from workflow_schedules.core.model import ObjectRef, Run, Snapshot
from workflow_schedules.core.requests import is_request
from workflow_schedules.core.template_fields import TemplateVerdict

if TYPE_CHECKING:
    from datetime import timedelta

    from workflow_schedules.cluster.cache import Cache
    from workflow_schedules.cluster.memory import RunMemory, ScheduleLog
    from workflow_schedules.core.model import Record, Schedule, Template, Writer

_NO_OBJECTION = TemplateVerdict()


def snapshot_of(
    cache: Cache, uid: str, *, writer: Writer, since_acquired: timedelta, answered_before: float
) -> Snapshot:
    """Return everything known of one schedule.

    Args:
        cache: where it is known.
        uid: of the schedule, which may be gone.
        writer: who decides.
        since_acquired: time since its epoch was acquired.
        answered_before: monotonic second; what was given up before it can't arrive any more.
    """
    schedule, log = cache.schedules.get(uid), cache.log(uid)
    definition = cache.desired.parent_of(schedule) if schedule else None
    held = log.held or (schedule.status.candidates if schedule and schedule.status else ())
    cache.count_places(uid, answered_before=answered_before)
    template = template_of(schedule, definition) if schedule else None
    verdict = _template_verdict(cache, schedule, template)
    return Snapshot(
        uid=uid,
        schedule=schedule,
        definition=definition,
        is_log_read=log.is_read,
        head=log.head,
        runs=tuple(run_of(cache, run, answered_before) for _, run in sorted(log.runs.items())),
        held=held,
        contradiction=log.contradiction,
        writer=writer,
        since_acquired=since_acquired,
        last_good_manual_at=cache.requests.requested(uid).last_good_manual_time,
        capacity=cache.places.free(uid, definition.uid if definition else None),
        template_refusal=verdict.refusal if verdict else None,
        unknown_fields=verdict.unknown_fields if verdict else (),
        told_since=_told_since(log, schedule, template) if verdict is None else None,
        requested=cache.requests.requested(uid),
        requested_runs=_requested_runs(cache, schedule, answered_before) if schedule else (),
        blocked_by=log.blocked_by,
        waits_for=cache.jobs.get(log.waits_for) if log.waits_for else None,
        before_edit=log.before_edit,
        record_refusal=log.record_refusal,
        not_before=cache.not_before,
        is_append_unanswered=may_still_arrive(log.append_given_up_at, answered_before),
    )


def queue_of(cache: Cache, key: str, *, writer: Writer, since_acquired: timedelta, answered_before: float) -> Queue:
    """Return the unfinished requests of a key (see `follow_request`), and everything known of the schedule they name."""
    namespace, _, name = key.partition("/")
    ref = ObjectRef(namespace=namespace, name=name)
    uid = cache.desired.uid_named(ref)
    runs = tuple(run_of(cache, memory, answered_before) for memory in cache.requests.unfinished(key))
    if uid is None:
        snapshot = _without_schedule(cache, writer, since_acquired)
    else:
        snapshot = snapshot_of(
            cache, uid, writer=writer, since_acquired=since_acquired, answered_before=answered_before
        )
    is_anothers = uid is not None and cache.is_anothers(uid, writer.lease)
    return Queue(ref=ref, snapshot=snapshot, runs=runs, is_anothers=is_anothers)


def run_of(cache: Cache, memory: RunMemory, answered_before: float) -> Run:
    """Return everything known of a run."""
    return Run(
        record=memory.record,
        job=cache.jobs.get(memory.record.ref),
        cancel_request=_cancel_request(cache, memory.record),
        refused=memory.refused,
        last_error=memory.last_error,
        retry_at=memory.retry_at,
        is_create_unanswered=may_still_arrive(memory.create_given_up_at, answered_before),
        is_outcome_unanswered=may_still_arrive(memory.outcome_given_up_at, answered_before),
        is_resolved_here=memory.is_resolved_here,
        is_job_gone=memory.is_job_gone,
        pods_read_at=memory.pods_read_at,
        stuck_on=memory.stuck_on,
    )


def _requested_runs(cache: Cache, schedule: Schedule, answered_before: float) -> tuple[Run, ...]:
    found = cache.requests.unfinished(str(schedule.ref))
    return tuple(
        run_of(cache, memory, answered_before)
        for memory in sorted(found, key=lambda each: each.record.ref.name)
        if memory.record.spec.schedule_ref.uid == schedule.uid
    )


def _template_verdict(cache: Cache, schedule: Schedule | None, template: Template | None) -> TemplateVerdict | None:
    """Return what is known of the template in force: nothing where nobody was asked yet, no objection without one."""
    if schedule is None or template is None:
        return _NO_OBJECTION
    return cache.template_verdicts.get((schedule.ref.namespace, template.hash))


def _told_since(log: ScheduleLog, schedule: Schedule | None, template: Template | None) -> int | None:
    """Return the first generation that has had this template for all this leader knows; None after one that it replaced."""
    if schedule is None or template is None:
        return None
    found_hash, generation = log.template_found or (template.hash, schedule.generation)
    return generation if found_hash == template.hash else None


def _cancel_request(cache: Cache, record: Record) -> str | None:
    """Return what is asked: requests are watched whole, of the log's records only their annotations (R31)."""
    return record.cancel_request if is_request(record) else cache.cancel_requests.get(record.uid)


def _without_schedule(cache: Cache, writer: Writer, since_acquired: timedelta) -> Snapshot:
    return Snapshot(
        uid="",
        schedule=None,
        definition=None,
        is_log_read=False,
        head=None,
        runs=(),
        held=(),
        contradiction=None,
        writer=writer,
        since_acquired=since_acquired,
        not_before=cache.not_before,
    )
