"""Is this spec one that can be acted on: the `Accepted` verdict, from the spec alone.

What each field may say is in refusals; here the parts meet: trigger, template, and the input that the schema of the
definition is to accept. Nothing about time or the log may live here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from workflow_schedules.core.due_times import check_zone, parse_cron
from workflow_schedules.core.input_schema import SchemaProblem, read_schema
from workflow_schedules.core.job import left_out, template_problem
from workflow_schedules.core.refusals import Refusal, refusals
from workflow_schedules.core.sample_input import sample_size_problem, samples, schema_problem
from workflow_schedules.core.template_fields import overruled
from workflow_schedules.core.triggers import Calendar, Trigger, parse_one_shot
from workflow_schedules.core.zones import FIRST_SECOND, LAST_SECOND, to_seconds

if TYPE_CHECKING:
    from workflow_schedules.api.schedule import RepeatedTimePolicy, SkippedTimePolicy, WorkflowScheduleSpec
    from workflow_schedules.core.model import Definition, Schedule, Template

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A spec that can be acted on, with its parsed trigger.

    Attributes:
        warnings: what may surprise about it; shown in the `Accepted` condition.
    """

    spec: WorkflowScheduleSpec
    trigger: Trigger
    warnings: tuple[str, ...]


def accept(schedule: Schedule, definition: Definition | None = None) -> Accepted | Refusal:
    """Judge the spec of a schedule; judged once for each spec that was read, and each schema that it met.

    Args:
        schedule: what is judged.
        definition: its parent, whose schema its input has to meet; None leaves that out, as for a missing one (R4).

    Source: contract R24, R36, section 2 (fields), conditions (`Accepted`).
    """
    same = _Same(schedule)
    verdict = _judge(same)
    if isinstance(verdict, Refusal) or verdict.spec.workflow_ref is None:
        return verdict
    if definition is None or definition.input_schema is None:
        return verdict
    return _judge_input(same, definition.input_schema) or verdict


def definition_problem(definition: Definition) -> str | None:
    """Return why a definition can't be used, or None.

    Source: contract section 1 (`Accepted`), R24, R36.
    """
    if definition.problem is not None or definition.template is None:
        return definition.problem or "spec.jobTemplate: missing"
    problem = template_problem(definition.template)
    if problem is not None or definition.input_schema is None:
        return problem
    schema = read_schema(definition.input_schema)
    return schema.message if isinstance(schema, SchemaProblem) else None


def definition_warnings(definition: Definition) -> tuple[str, ...]:
    """Return what may surprise about a definition that can be used; shown in its `Accepted` condition."""
    return overruled(definition.template) if definition.template is not None else ()


class _Same:
    """A schedule as a key: the same spec object is the same spec."""

    __slots__ = ("schedule",)

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def __hash__(self) -> int:
        return id(self.schedule.spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Same):
            return NotImplemented
        mine, theirs = self.schedule, other.schedule
        return mine.spec is theirs.spec and mine.template == theirs.template and mine.problem == theirs.problem


@lru_cache(maxsize=16384)
def _judge(same: _Same) -> Accepted | Refusal:
    schedule = same.schedule
    found = refusals(schedule)
    if schedule.spec is None or found:
        message = "; ".join(refusal.message for refusal in found)
        return Refusal(reason=found[0].reason, message=message, path=found[0].path)
    trigger = trigger_of(schedule.spec)
    sampled = samples(schedule, trigger)
    if problem := sample_size_problem(sampled):
        return Refusal(reason="InvalidSpec", message=problem, path=("inputFrom",))
    warnings = overruled(schedule.template) if schedule.template is not None else ()
    warnings += left_out(sampled[-1]) if sampled else ()
    return Accepted(spec=schedule.spec, trigger=trigger, warnings=warnings)


@lru_cache(maxsize=16384)
def _judge_input(same: _Same, schema_text: str) -> Refusal | None:
    """Judge sample inputs by a schema; one that is no schema is its definition's problem, which holds the schedule."""
    accepted, schema = _judge(same), read_schema(schema_text)
    if isinstance(accepted, Refusal) or isinstance(schema, SchemaProblem):
        return None
    found = schema_problem(accepted.spec, schema, samples(same.schedule, accepted.trigger))
    return None if found is None else Refusal(reason="InputRejected", message=found[0], path=found[1])


def template_of(schedule: Schedule, definition: Definition | None) -> Template | None:
    """Return the Job template in force: the definition's, or the schedule's own."""
    return schedule.template if schedule.template is not None else definition.template if definition else None


def trigger_of(spec: WorkflowScheduleSpec) -> Trigger:
    """Return the trigger of a spec that has no refusals; equal specs share one.

    Raises:
        InvalidTriggerError: an expression, the zone or the instant can't be used.

    Source: contract R5 to R7.
    """
    if spec.run_once_time is not None:
        check_zone(spec.time_zone)
        once = parse_one_shot(spec.run_once_time)
        return replace(once, zone_name=spec.time_zone, excluded=_days(spec.exclude_dates))
    return _calendar(
        spec.schedules or (spec.schedule or "",),
        spec.time_zone,
        spec.skipped_time_policy,
        spec.repeated_time_policy,
        spec.exclude_dates,
        to_seconds(spec.start_time) if spec.start_time else FIRST_SECOND,
        to_seconds(spec.end_time) if spec.end_time else LAST_SECOND,
    )


@lru_cache(maxsize=16384)
def _calendar(
    expressions: tuple[str, ...],
    zone_name: str,
    skipped: SkippedTimePolicy,
    repeated: RepeatedTimePolicy,
    excluded: tuple[str, ...],
    first: int,
    last: int,
) -> Calendar:
    return Calendar(
        crons=tuple(dict.fromkeys(parse_cron(expression, zone_name) for expression in expressions)),
        skipped=skipped,
        repeated=repeated,
        excluded=_days(excluded),
        first=first,
        last=last,
    )


def _days(dates: tuple[str, ...]) -> frozenset[int]:
    return frozenset(date.fromisoformat(text).toordinal() - _EPOCH_ORDINAL for text in dates)
