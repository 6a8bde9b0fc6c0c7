"""Runs that people ask for, for tests: each call states what matters, everything else is an ordinary value."""

from __future__ import annotations

from dataclasses import replace

from support.builders import TEMPLATE, UID, WRITER, a_job, at
from workflow_schedules.api.common import Condition, ConditionStatus
from workflow_schedules.api.occurrence import Cause, ScheduleOccurrenceSpec, ScheduleOccurrenceStatus, ScheduleRef
from workflow_schedules.core.model import Job, JobPhase, ObjectRef, Record, Run
from workflow_schedules.core.requests import resolved_spec


def a_request(
    name: str = "now",
    backfill: str | None = None,
    *,
    asked: str = "10:00:00",
    status: ScheduleOccurrenceStatus | None = None,
    given: dict[str, object] | None = None,
    **known: object,
) -> Run:
    """Build a request; a time makes it a backfill."""
    spec = ScheduleOccurrenceSpec(
        schedule_ref=ScheduleRef(name="hourly"),
        cause=Cause.BACKFILL if backfill else Cause.MANUAL,
        scheduled_time=at(backfill) if backfill else None,
        input=given,
    )
    status = status or ScheduleOccurrenceStatus()
    record = Record(
        ref=ObjectRef(namespace="team", name=name),
        uid=f"uid-of-{name}",
        resource_version="7",
        created_at=at(asked),
        spec=resolved_spec(spec, status),
        status=status,
    )
    return Run(record=record, **known)


def resolved(writer: object = WRITER, at_time: str = "10:00:01", **fields: object) -> ScheduleOccurrenceStatus:
    """Build the status of a request that is resolved."""
    condition = Condition(
        type="Resolved", status=ConditionStatus.TRUE, reason="Resolved", last_transition_time=at(at_time)
    )
    given = {"schedule_uid": UID, "conditions": (condition,), **fields}
    return ScheduleOccurrenceStatus(
        revision=1, template_hash=TEMPLATE.hash, fencing_epoch=writer.epoch, writer=writer.identity, **given
    )


def a_job_of(name: str, phase: JobPhase = JobPhase.ACTIVE, **seen: object) -> Job:
    return replace(a_job(phase, owner_uid=f"uid-of-{name}", **seen), ref=ObjectRef(namespace="team", name=name))
