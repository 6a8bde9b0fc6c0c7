"""What each field of a spec may not say, from the spec alone: everything that is wrong with it, at once.

Repeats at run time what the schema and admission check at the door, since objects get past both (R36). Nothing about time
or the log may live here, nor what a spec means once it has no refusals: that is acceptance's.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from workflow_schedules.api.schedule import ConcurrencyPolicy
from workflow_schedules.core.due_times import check_zone, parse_cron
from workflow_schedules.core.job import template_problem
from workflow_schedules.core.sample_input import input_problems
from workflow_schedules.core.triggers import InvalidTriggerError, parse_one_shot
from workflow_schedules.core.zones import FIRST_SECOND, LAST_SECOND, to_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.model import Schedule

MAX_CRONS = 10
MAX_EXCLUDED_DATES = 400
MAX_JITTER_SECONDS = 86400
MAX_CATCH_UP_RUNS = 100


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
