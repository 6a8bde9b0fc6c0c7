"""Objects of the core for tests: each call states what matters, everything else is an ordinary value.

The ordinary schedule is enabled, hourly in UTC, of generation 1, created at CREATED, with an inline template, and its log has
one record: the Baseline of its creation.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from workflow_schedules.api import names
from workflow_schedules.api.occurrence import (
    Cause,
    Decision,
    Outcome,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    ScheduleRef,
    Totals,
)
from workflow_schedules.api.schedule import State, WorkflowRef, WorkflowScheduleSpec, WorkflowScheduleStatus
from workflow_schedules.core.identity import canonical, pin, spec_hash
from workflow_schedules.core.listed import Listed
from workflow_schedules.core.model import (
    Definition,
    Job,
    JobPhase,
    ObjectRef,
    Record,
    RecordRefusal,
    Run,
    Schedule,
    Snapshot,
    Template,
    Writer,
)

UID = "5c4ed01e-0000-4000-8000-000000000001"
DEFINITION_UID = "def00000-0000-4000-8000-000000000001"
CREATED = datetime(2026, 1, 1, 9, 30, tzinfo=UTC)
WRITER = Writer(epoch=3, identity="pod-a", lease="system/scheduler")
EARLIER_WRITER = Writer(epoch=2, identity="pod-b", lease="system/scheduler")
TEMPLATE = pin({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}}})


def at(text: str) -> datetime:
    """Return an instant of 2026-01-01 from ``10:00`` or ``10:00:30.5``, or any from a full date."""
    return datetime.fromisoformat(text if "T" in text else f"2026-01-01T{text}").replace(tzinfo=UTC)


def a_spec(**fields: object) -> WorkflowScheduleSpec:
    if "run_once_time" not in fields:
        fields.setdefault("schedule", "0 * * * *")
    fields.setdefault("enabled", True)
    return WorkflowScheduleSpec(**fields)


def a_schedule(
    spec: WorkflowScheduleSpec | None = None,
    *,
    generation: int = 1,
    template: Template | None = TEMPLATE,
    problem: str | None = None,
    status: WorkflowScheduleStatus | None = None,
    is_deleting: bool = False,
    created_at: datetime = CREATED,
    **fields: object,
) -> Schedule:
    """Build a schedule; `fields` are of its spec. With a `workflow_ref` there is no template; with a `problem` no spec."""
    made = None if problem else spec or a_spec(**fields)
    if made is not None and made.workflow_ref is not None:
        template = None
    return Schedule(
        ref=ObjectRef(namespace="team", name="hourly"),
        uid=UID,
        generation=generation,
        resource_version="10",
        created_at=created_at,
        is_deleting=is_deleting,
        spec=made,
        spec_hash="" if made is None else spec_hash(made, template),
        template=template,
        problem=problem,
        status=status,
    )


def of_definition(**fields: object) -> dict[str, Any]:
    """Return spec fields of a schedule that names a definition."""
    return {"workflow_ref": WorkflowRef(name="report"), **fields}


def a_definition(
    *,
    is_enabled: bool = True,
    generation: int = 1,
    uid: str = DEFINITION_UID,
    template: Template | None = TEMPLATE,
    input_schema: object = None,
) -> Definition:
    return Definition(
        ref=ObjectRef(namespace="team", name="report"),
        uid=uid,
        generation=generation,
        resource_version="5",
        is_enabled=is_enabled,
        template=template,
        problem=None if template else "spec.jobTemplate: missing",
        status=None,
        input_schema=None if input_schema is None else canonical(input_schema),
    )


def a_status(
    state: State = State.ACTIVE,
    *,
    consumed: datetime = CREATED,
    generation: int = 1,
    log_head: int = 1,
    **fields: object,
) -> WorkflowScheduleStatus:
    return WorkflowScheduleStatus(
        state=state, consumed_through_time=consumed, observed_generation=generation, log_head=log_head, **fields
    )


def a_record(
    number: int = 1,
    decision: Decision = Decision.BASELINE,
    *,
    schedule: Schedule | None = None,
    consumed: datetime = CREATED,
    status: ScheduleOccurrenceStatus | None = None,
    writer: Writer = WRITER,
    created_at: datetime | None = None,
    **fields: object,
) -> Record:
    """Build a record that agrees with a schedule; `fields` are of its spec."""
    schedule = schedule or a_schedule()
    given: dict[str, Any] = {
        "schedule_ref": ScheduleRef(name=schedule.ref.name, uid=schedule.uid),
        "sequence": number,
        "cause": Cause.SCHEDULED,
        "decision": decision,
        "revision": 1,
        "spec_hash": schedule.spec_hash,
        "generation": schedule.generation,
        "state": State.ACTIVE,
        "consumed_through_time": consumed,
        "totals": Totals(),
        "fencing_epoch": writer.epoch,
        "writer": writer.identity,
        "lease": writer.lease,
        **fields,
    }
    return Record(
        ref=ObjectRef(namespace="team", name=names.record_name("hourly", UID, number)),
        uid=f"record-{number}",
        resource_version=str(100 + number),
        created_at=created_at or consumed,
        spec=ScheduleOccurrenceSpec(**given),
        status=status or ScheduleOccurrenceStatus(),
    )


def an_admission(number: int = 2, scheduled: datetime | None = None, **fields: object) -> Record:
    """Build the record of a run."""
    instant = scheduled or at("10:00")
    fields.setdefault("consumed", instant)
    fields.setdefault("open", (number,))
    fields.setdefault("template_hash", TEMPLATE.hash)
    return a_record(number, Decision.ADMITTED, scheduled_time=instant, **fields)


def listed(record: Record, *, is_readable: bool = True, previous: str | None = "the one before") -> Listed:
    """Build what a LIST tells of a record."""
    outcome = record.status.outcome
    return Listed(
        ref=record.ref,
        number=record.number,
        uid=record.uid,
        resource_version=record.resource_version,
        created_at=record.created_at,
        previous_uid=f"record-{record.number - 1}" if previous == "the one before" else previous,
        is_admission=record.spec.decision is Decision.ADMITTED,
        is_open=record.spec.decision is Decision.ADMITTED and not (outcome and outcome.is_final),
        record=record if is_readable else None,
        problem="" if is_readable else f"record {record.ref.name} can't be read",
    )


def a_run(
    number: int = 2,
    outcome: Outcome | None = None,
    *,
    job: Job | None = None,
    record: Record | None = None,
    **known: object,
) -> Run:
    """Build a run; `known` are fields of Run."""
    record = record or an_admission(number, status=ScheduleOccurrenceStatus(outcome=outcome))
    return Run(record=record, job=job, **known)


def a_job(
    phase: JobPhase = JobPhase.ACTIVE,
    *,
    number: int = 2,
    owner_uid: str | None = None,
    started: str | None = "10:00:01",
    **seen: object,
) -> Job:
    """Build the Job of a run; `seen` are fields of Job."""
    return Job(
        ref=ObjectRef(namespace="team", name=names.record_name("hourly", UID, number)),
        uid=f"job-{number}",
        owner_uid=owner_uid or f"record-{number}",
        schedule_uid=UID,
        phase=phase,
        created_at=at("10:00:01"),
        started_at=at(started) if started else None,
        finished_at=seen.pop("finished_at", at("10:00:31") if phase in {JobPhase.COMPLETED, JobPhase.FAILED} else None),
        was_started=seen.pop("was_started", started is not None),
        was_ready=seen.pop("was_ready", started is not None),
        **seen,
    )


_UNSET: Any = object()


def a_snapshot(
    schedule: Schedule | None = _UNSET,
    *,
    head: Record | None = _UNSET,
    runs: tuple[Run, ...] = (),
    definition: Definition | None = None,
    held: tuple[datetime, ...] = (),
    contradiction: str | None = None,
    is_log_read: bool = True,
    since_acquired: timedelta = timedelta(hours=1),
    writer: Writer = WRITER,
    last_good_manual_at: datetime | None = None,
    template_refusal: str | None = None,
    unknown_fields: tuple[str, ...] = (),
    told_since: int | None = None,
    record_refusal: RecordRefusal | None = None,
    is_append_unanswered: bool = False,
) -> Snapshot:
    """Build a snapshot; without a head the log has the Baseline of the schedule's creation."""
    schedule = a_schedule() if schedule is _UNSET else schedule
    return Snapshot(
        uid=UID,
        schedule=schedule,
        definition=definition,
        is_log_read=is_log_read,
        head=a_record(schedule=schedule) if head is _UNSET else head,
        runs=runs,
        held=held,
        contradiction=contradiction,
        writer=writer,
        since_acquired=since_acquired,
        last_good_manual_at=last_good_manual_at,
        template_refusal=template_refusal,
        unknown_fields=unknown_fields,
        told_since=told_since,
        record_refusal=record_refusal,
        is_append_unanswered=is_append_unanswered,
    )
