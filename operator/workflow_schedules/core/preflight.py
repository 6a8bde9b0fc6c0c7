"""May this occurrence be admitted with the input that it really has: judged before every admission, without a request.

What the schedule's spec alone says is acceptance's business; whether an instant is due is decide's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from workflow_schedules.api.names import record_name
from workflow_schedules.api.occurrence import (
    Cause,
    Decision,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    ScheduleRef,
)
from workflow_schedules.core import log
from workflow_schedules.core.depth import depth_problem
from workflow_schedules.core.input_schema import InputSchema, dotted, read_schema
from workflow_schedules.core.inputs import OccurrenceFacts, input_text, resolve_input, sample_facts, size_problem
from workflow_schedules.core.model import Record
from workflow_schedules.core.requests import last_successful_time

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.core.inputs import Input
    from workflow_schedules.core.model import Definition, Schedule, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """It may be admitted, with this input.

    Attributes:
        input_json: resolved, as it goes on record; None where the schedule sets neither an input nor a binding.
    """

    input_json: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """It must not be admitted.

    Attributes:
        reason: CamelCase, for the record.
        message: names the path that failed and what would do; holds no value of the input (K-096).
    """

    reason: str
    message: str


def preflight(snapshot: Snapshot, schedule: Schedule, *, scheduled_time: datetime) -> Passed | Rejection:
    """Judge the next scheduled occurrence of an accepted schedule.

    Source: contract R24, R23, K-096.
    """
    if snapshot.template_refusal is not None:
        message = f"the API server would refuse the Job: {snapshot.template_refusal}"
        return Rejection(reason="TemplateRejected", message=message)
    spec = schedule.spec
    if spec is None:
        return Passed(input_json=None)
    if not spec.input_from:  # it is the input that was accepted with the schedule
        return Passed(input_json=None if spec.input is None else input_text(spec.input))
    resolved = resolve_input(spec.input, spec.input_from, _facts(snapshot, schedule, scheduled_time))
    return judge_input(resolved, snapshot.definition)


def sample_record(schedule: Schedule, *, scheduled_time: datetime) -> Record:
    """Return a record as the log could have it, for a Job that is never made; no record has its number.

    Source: contract R24.
    """
    name = record_name(schedule.ref.name, schedule.uid, 0)
    return Record(
        ref=replace(schedule.ref, name=name),
        uid=schedule.uid,
        resource_version="",
        created_at=scheduled_time,
        spec=ScheduleOccurrenceSpec(
            schedule_ref=ScheduleRef(name=schedule.ref.name, uid=schedule.uid),
            sequence=0,
            cause=Cause.SCHEDULED,
            decision=Decision.ADMITTED,
            scheduled_time=scheduled_time,
            input_json=_sample_input(schedule, scheduled_time),
        ),
        status=ScheduleOccurrenceStatus(),
    )


def _sample_input(schedule: Schedule, scheduled_time: datetime) -> str | None:
    spec = schedule.spec
    if spec is None:
        return None
    resolved = resolve_input(spec.input, spec.input_from, sample_facts(schedule, scheduled_time=scheduled_time)[-1])
    return None if resolved is None else input_text(resolved)


def judge_input(resolved: Input | None, definition: Definition | None) -> Passed | Rejection:
    """Judge a resolved input by its depth, its size and its definition's schema.

    Args:
        resolved: see inputs.resolve_input.
        definition: None where the template is inline, which has no schema.

    Source: contract R24.
    """
    problem = depth_problem(resolved, field="input")
    if problem is not None:
        return Rejection(reason="InputTooDeep", message=problem)
    text = None if resolved is None else input_text(resolved)
    problem = size_problem(text, field="input") if text is not None else None
    if problem is not None:
        return Rejection(reason="InputTooLarge", message=problem)
    schema = read_schema(definition.input_schema) if definition and definition.input_schema is not None else None
    flaws = schema.flaws(resolved or {}) if isinstance(schema, InputSchema) else ()
    if flaws:
        message = "; ".join(f"{dotted('input', flaw.path)}: {flaw.want}" for flaw in flaws)
        return Rejection(reason="InputRejected", message=message)
    return Passed(input_json=text)


def _facts(snapshot: Snapshot, schedule: Schedule, scheduled_time: datetime) -> OccurrenceFacts:
    return OccurrenceFacts(
        scheduled_time=scheduled_time,
        name=record_name(schedule.ref.name, schedule.uid, log.next_number(snapshot.head)),
        schedule_name=schedule.ref.name,
        revision=log.revision_now(snapshot, schedule),
        cause=Cause.SCHEDULED,
        last_successful_time=last_successful_time(snapshot),
    )
