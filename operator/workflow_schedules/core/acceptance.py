"""Is this spec one that can be acted on: the `Accepted` verdict, from the spec alone.

Repeats at run time what the schema and admission check at the door, since objects get past both (R36). Nothing about time
or the log may live here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from workflow_schedules.api.schedule import ConcurrencyPolicy
from workflow_schedules.core.due_times import parse_cron
from workflow_schedules.core.triggers import InvalidTriggerError, Trigger, parse_one_shot

if TYPE_CHECKING:
    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.model import Definition, Schedule, Template

MAX_INPUT_BYTES = 32 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a spec can't be acted on.

    Attributes:
        reason: CamelCase cause of the `Accepted` condition.
        message: names the field, the value and what would be accepted.
    """

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A spec that can be acted on, with its parsed trigger."""

    spec: WorkflowScheduleSpec
    trigger: Trigger


def accept(schedule: Schedule) -> Accepted | Refusal:
    """Judge the spec of a schedule.

    Source: contract R36, section 2 (fields), conditions (`Accepted`).
    """
    if schedule.spec is None:
        return Refusal(reason="InvalidSpec", message=schedule.problem or "spec: it does not parse")
    spec = schedule.spec
    if refusal := _refuse_template_source(schedule, spec) or _refuse_limits(spec) or _refuse_input(spec):
        return refusal
    try:
        return Accepted(spec=spec, trigger=_trigger(spec))
    except InvalidTriggerError as error:
        return Refusal(reason=error.reason, message=str(error))


def template_of(schedule: Schedule, definition: Definition | None) -> Template | None:
    """Return the Job template in force: the definition's, or the schedule's own."""
    return schedule.template if schedule.template is not None else definition.template if definition else None


def _trigger(spec: WorkflowScheduleSpec) -> Trigger:
    if spec.schedule is not None and spec.run_once_time is None:
        return parse_cron(spec.schedule, spec.time_zone)
    if spec.run_once_time is not None and spec.schedule is None:
        _check_zone(spec.time_zone)
        return parse_one_shot(spec.run_once_time)
    both = "both are set" if spec.schedule is not None else "neither is set"
    raise InvalidTriggerError(
        field="schedule",
        reason="InvalidSchedule",
        message=f"spec: exactly one of schedule and runOnceTime is needed, {both}",
    )


@lru_cache(maxsize=1024)
def _check_zone(name: str) -> None:
    parse_cron("0 0 * * *", name)


def _refuse_template_source(schedule: Schedule, spec: WorkflowScheduleSpec) -> Refusal | None:
    if (spec.workflow_ref is None) == (schedule.template is None):
        both = "neither is set" if spec.workflow_ref is None else "both are set"
        return Refusal(
            reason="InvalidSpec", message=f"spec: exactly one of workflowRef and jobTemplate is needed, {both}"
        )
    return None


def _refuse_limits(spec: WorkflowScheduleSpec) -> Refusal | None:
    limit, deadline = spec.max_active_runs, spec.starting_deadline_seconds
    allows = spec.concurrency_policy is ConcurrencyPolicy.ALLOW
    if allows and limit is None:
        return Refusal(
            reason="InvalidSpec", message="spec.maxActiveRuns: unset, but concurrencyPolicy Allow needs 1 to 100"
        )
    if not allows and limit is not None:
        return Refusal(
            reason="InvalidSpec",
            message=f"spec.maxActiveRuns: {limit} is only for concurrencyPolicy Allow; remove it, or set that policy",
        )
    if limit is not None and not 1 <= limit <= 100:
        return Refusal(reason="InvalidSpec", message=f"spec.maxActiveRuns: {limit} is outside 1 to 100")
    if deadline is not None and deadline < 5:
        return Refusal(
            reason="InvalidSpec",
            message=f"spec.startingDeadlineSeconds: {deadline} is below 5; write 5 or more",
        )
    return None


def _refuse_input(spec: WorkflowScheduleSpec) -> Refusal | None:
    if not spec.input:
        return None
    size = len(json.dumps(spec.input, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass"))
    if size <= MAX_INPUT_BYTES:
        return None
    return Refusal(
        reason="InvalidSpec", message=f"spec.input: {size} bytes of JSON; write at most {MAX_INPUT_BYTES} (32 KiB)"
    )
