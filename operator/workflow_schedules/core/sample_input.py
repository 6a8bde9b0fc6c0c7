"""Is the input of a schedule one that its occurrences can have: judged with samples, since the real ones are still to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.core.due_times import next_due_time
from workflow_schedules.core.input_schema import dotted
from workflow_schedules.core.inputs import input_text, resolve_input, sample_facts, size_problem
from workflow_schedules.core.triggers import OneShotTrigger
from workflow_schedules.core.zones import to_utc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.input_schema import Flaw, InputSchema, Path
    from workflow_schedules.core.inputs import Input
    from workflow_schedules.core.model import Schedule
    from workflow_schedules.core.triggers import Trigger

MAX_BINDINGS = 32


def input_problems(spec: WorkflowScheduleSpec) -> Iterator[tuple[str, Path]]:
    """Yield what is wrong with input and bindings by themselves: messages, and paths below ``spec``.

    Source: contract section 2 (`input`, `inputFrom`), R36, K-096.
    """
    problem = size_problem(input_text(spec.input), field="spec.input") if spec.input else None
    if problem is not None:
        yield problem, ("input",)
    if len(spec.input_from) > MAX_BINDINGS:
        message = f"spec.inputFrom: {len(spec.input_from)} bindings; write at most {MAX_BINDINGS}"
        yield message, ("inputFrom",)
    taken = dict.fromkeys(spec.input or (), "spec.input")
    for index, binding in enumerate(spec.input_from):
        field = f"spec.inputFrom[{index}]"
        if binding.name in taken:
            message = (
                f"{field}.name: {binding.name!r} is a key of {taken[binding.name]}, too; write it in one of the two"
            )
            yield message, ("inputFrom", index, "name")
        taken[binding.name] = field


def schema_problem(
    spec: WorkflowScheduleSpec, schema: InputSchema, found: tuple[Input, ...]
) -> tuple[str, Path] | None:
    """Return why a schema refuses sample inputs, and the path below ``spec``; None when it doesn't.

    Source: contract R24, R36.
    """
    flaws = [flaw for each in found or ({},) for flaw in schema.flaws(each)]
    if not flaws:
        return None
    message = "; ".join(dict.fromkeys(_flaw_text(spec, flaw) for flaw in flaws))
    return message, _flaw_path(spec, flaws[0])


def samples(schedule: Schedule, trigger: Trigger) -> tuple[Input, ...]:
    """Return inputs as occurrences of a schedule will have them; none where it sets no input.

    Source: contract R24.
    """
    spec = schedule.spec
    if spec is None or (spec.input is None and not spec.input_from):
        return ()
    found = [
        resolve_input(spec.input, spec.input_from, facts)
        for facts in sample_facts(schedule, scheduled_time=_sample_time(schedule, trigger))
    ]
    return tuple(each for each in found if each is not None)[: 2 if spec.input_from else 1]


def _sample_time(schedule: Schedule, trigger: Trigger) -> datetime:
    if isinstance(trigger, OneShotTrigger):
        return to_utc(trigger.instant)
    return next_due_time(trigger, after=schedule.created_at) or schedule.created_at


def sample_size_problem(found: tuple[Input, ...]) -> str | None:
    """Return why what the occurrences fill in makes an input too large, which alone is not."""
    problems = (size_problem(input_text(each), field="spec.input with spec.inputFrom") for each in found)
    return next(filter(None, problems), None)


def _flaw_text(spec: WorkflowScheduleSpec, flaw: Flaw) -> str:
    name = dotted("spec", _flaw_path(spec, flaw))
    return f"{name}: {flaw.value}: {flaw.want}" if flaw.value else f"{name}: {flaw.want}"


def _flaw_path(spec: WorkflowScheduleSpec, flaw: Flaw) -> tuple[str | int, ...]:
    for index, binding in enumerate(spec.input_from):
        if flaw.path[:1] == (binding.name,):
            return ("inputFrom", index)
    return ("input", *flaw.path)
