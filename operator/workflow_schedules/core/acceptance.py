"""Is this spec one that can be acted on: the `Accepted` verdict, from the spec alone.

Repeats at run time what the schema and admission check at the door, since objects get past both (R36). Nothing about time
or the log may live here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import TYPE_CHECKING

from workflow_schedules.api.schedule import ConcurrencyPolicy, RepeatedTimePolicy, SkippedTimePolicy
from workflow_schedules.core.due_times import check_zone, parse_cron
from workflow_schedules.core.input_schema import SchemaProblem, read_schema
from workflow_schedules.core.job import left_out, template_problem
from workflow_schedules.core.sample_input import input_problems, sample_size_problem, samples, schema_problem
from workflow_schedules.core.triggers import Calendar, InvalidTriggerError, Trigger, parse_one_shot
from workflow_schedules.core.zones import FIRST_SECOND, LAST_SECOND, to_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.model import Definition, Schedule, Template

MAX_CRONS = 10
MAX_EXCLUDED_DATES = 400
MAX_JITTER_SECONDS = 86400
MAX_CATCH_UP_RUNS = 100
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a spec can't be acted on.

    Attributes:
        reason: CamelCase cause of the `Accepted` condition.
        message: names the field, the value and what would be accepted.
        path: the field below ``spec``.
    """

    reason: str
    message: str
    path: tuple[str | int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """A spec that can be acted on, with its parsed trigger.

    Attributes:
        warnings: what may surprise about it; shown in the `Accepted` condition.
    """

    spec: WorkflowScheduleSpec
    trigger: Trigger
    warnings: tuple[str, ...] = ()


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
    return Accepted(spec=schedule.spec, trigger=trigger, warnings=left_out(sampled[-1]) if sampled else ())


@lru_cache(maxsize=16384)
def _judge_input(same: _Same, schema_text: str) -> Refusal | None:
    """Judge sample inputs by a schema; one that is no schema is its definition's problem, which holds the schedule."""
    accepted, schema = _judge(same), read_schema(schema_text)
    if isinstance(accepted, Refusal) or isinstance(schema, SchemaProblem):
        return None
    found = schema_problem(accepted.spec, schema, samples(same.schedule, accepted.trigger))
    return None if found is None else Refusal(reason="InputRejected", message=found[0], path=found[1])


def refusals(schedule: Schedule) -> list[Refusal]:
    """Return everything for which a spec is refused; nothing when it can be acted on.

    Source: contract R5, R7, R36.
    """
    if schedule.spec is None:
        return [Refusal(reason="InvalidSpec", message=schedule.problem or "spec: it does not parse")]
    return [
        *_template_source(schedule, schedule.spec),
        *_trigger_fields(schedule.spec),
        *_limits(schedule.spec),
        *_validity(schedule.spec),
        *_input(schedule.spec),
    ]


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


def _trigger_fields(spec: WorkflowScheduleSpec) -> Iterator[Refusal]:
    given = [spec.schedule is not None, bool(spec.schedules), spec.run_once_time is not None]
    if sum(given) != 1:
        which = "none is set" if not any(given) else "more than one is set"
        yield Refusal(
            reason="InvalidSchedule",
            message=f"spec: exactly one of schedule, schedules and runOnceTime is needed, {which}",
        )
    if len(spec.schedules) > MAX_CRONS:
        yield Refusal(
            reason="InvalidSchedule",
            message=f"spec.schedules: {len(spec.schedules)} expressions; write at most {MAX_CRONS}",
            path=("schedules",),
        )
    zone_name = spec.time_zone
    try:
        check_zone(zone_name)
    except InvalidTriggerError as error:
        yield _refusal(error, error.field)
        zone_name = "UTC"  # to say all that is wrong at once
    if spec.run_once_time is not None:
        yield from _one_shot(spec, spec.run_once_time)
    paths: list[tuple[tuple[str | int, ...], str]] = (
        [(("schedule",), spec.schedule)] if spec.schedule is not None else []
    )
    paths += [(("schedules", index), expression) for index, expression in enumerate(spec.schedules)]
    for path, expression in paths:
        try:
            parse_cron(expression, zone_name)
        except InvalidTriggerError as error:
            yield _refusal(error, *path)


def _one_shot(spec: WorkflowScheduleSpec, text: str) -> Iterator[Refusal]:
    try:
        once = parse_one_shot(text)
    except InvalidTriggerError as error:
        yield _refusal(error, error.field)
        return
    first = to_seconds(spec.start_time) if spec.start_time else FIRST_SECOND
    last = to_seconds(spec.end_time) if spec.end_time else LAST_SECOND
    if not first <= once.instant <= last:
        message = f"spec.runOnceTime: {text!r} is outside of startTime and endTime and would never run; leave them out"
        yield Refusal(reason="NeverMatches", message=message, path=("runOnceTime",))


def _refusal(error: InvalidTriggerError, *path: str | int) -> Refusal:
    """Return the refusal of a trigger's field, named by its path in the spec."""
    name = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    message = str(error).replace(f"spec.{error.field}:", f"spec{name}:", 1)
    return Refusal(reason=error.reason, message=message, path=path)


def _template_source(schedule: Schedule, spec: WorkflowScheduleSpec) -> Iterator[Refusal]:
    if (spec.workflow_ref is None) == (schedule.template is None):
        which = "neither is set" if spec.workflow_ref is None else "both are set"
        yield Refusal(
            reason="InvalidSpec", message=f"spec: exactly one of workflowRef and jobTemplate is needed, {which}"
        )
    problem = template_problem(schedule.template) if schedule.template is not None else None
    if problem is not None:
        yield Refusal(reason="InvalidSpec", message=problem, path=("jobTemplate",))


def _limits(spec: WorkflowScheduleSpec) -> Iterator[Refusal]:
    limit, deadline = spec.max_active_runs, spec.starting_deadline_seconds
    allows = spec.concurrency_policy is ConcurrencyPolicy.ALLOW
    path = ("maxActiveRuns",)
    if allows and limit is None:
        message = "spec.maxActiveRuns: unset, but concurrencyPolicy Allow needs 1 to 100"
        yield Refusal(reason="InvalidSpec", message=message, path=path)
    elif not allows and limit is not None:
        message = f"spec.maxActiveRuns: {limit} is only for concurrencyPolicy Allow; remove it, or set that policy"
        yield Refusal(reason="InvalidSpec", message=message, path=path)
    elif limit is not None and not 1 <= limit <= 100:
        yield Refusal(reason="InvalidSpec", message=f"spec.maxActiveRuns: {limit} is outside 1 to 100", path=path)
    if spec.max_catch_up_runs is not None and not 1 <= spec.max_catch_up_runs <= MAX_CATCH_UP_RUNS:
        message = f"spec.maxCatchUpRuns: {spec.max_catch_up_runs} is outside 1 to {MAX_CATCH_UP_RUNS}"
        yield Refusal(reason="InvalidSpec", message=message, path=("maxCatchUpRuns",))
    if deadline is not None and deadline < 5:
        message = f"spec.startingDeadlineSeconds: {deadline} is below 5; write 5 or more"
        yield Refusal(reason="InvalidSpec", message=message, path=("startingDeadlineSeconds",))
    for name, number in (
        ("runLimit", spec.run_limit),
        ("pauseAfterFailures", spec.pause_after_failures),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("startTimeoutSeconds", spec.start_timeout_seconds),
    ):
        yield from _at_least_one(name, number)


def _validity(spec: WorkflowScheduleSpec) -> Iterator[Refusal]:
    jitter = spec.max_jitter_seconds
    if jitter is not None and not 0 <= jitter <= MAX_JITTER_SECONDS:
        message = f"spec.maxJitterSeconds: {jitter} is outside 0 to {MAX_JITTER_SECONDS}"
        yield Refusal(reason="InvalidSpec", message=message, path=("maxJitterSeconds",))
    if spec.start_time and spec.end_time and spec.end_time <= spec.start_time:
        message = f"spec.endTime: {spec.end_time:%Y-%m-%dT%H:%M:%SZ} is not later than startTime; write a later one"
        yield Refusal(reason="InvalidSpec", message=message, path=("endTime",))
    if len(spec.exclude_dates) > MAX_EXCLUDED_DATES:
        message = f"spec.excludeDates: {len(spec.exclude_dates)} dates; write at most {MAX_EXCLUDED_DATES}"
        yield Refusal(reason="InvalidSpec", message=message, path=("excludeDates",))
    for index, text in enumerate(spec.exclude_dates):
        if not _is_date(text):
            message = f"spec.excludeDates[{index}]: {text!r} is no date; write it as 2026-12-25"
            yield Refusal(reason="InvalidSpec", message=message, path=("excludeDates", index))


def _at_least_one(name: str, value: int | None) -> Iterator[Refusal]:
    if value is not None and value < 1:
        message = f"spec.{name}: {value} is not positive; write 1 or more, or leave it out"
        yield Refusal(reason="InvalidSpec", message=message, path=(name,))


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text  # the basic form and week dates are read, too: refused
    except ValueError:
        return False


def _input(spec: WorkflowScheduleSpec) -> Iterator[Refusal]:
    for message, path in input_problems(spec):
        yield Refusal(reason="InvalidSpec", message=message, path=path)
