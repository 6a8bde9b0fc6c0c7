"""What a stored status says of a template: the words of a verdict that this leader may not have yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.core.ending import RUNS_HEALTHY

if TYPE_CHECKING:
    from workflow_schedules.api.common import Condition
    from workflow_schedules.api.schedule import WorkflowScheduleStatus
    from workflow_schedules.core.template_fields import TemplateVerdict

TEMPLATE_REJECTED, UNKNOWN_FIELDS = "TemplateRejected", "UnknownFields"


def tells(status: WorkflowScheduleStatus | None, verdict: TemplateVerdict) -> bool:
    """Tell whether a stored status says of its template what that verdict does, in whatever words."""
    told = told_of_template(status)
    if told is None or verdict.is_fine:
        return told is None and verdict.is_fine
    reason = UNKNOWN_FIELDS if verdict.refusal is None else TEMPLATE_REJECTED
    return told.reason == reason and all(path in told.message for path in verdict.unknown_fields)


def told_of_template(status: WorkflowScheduleStatus | None) -> Condition | None:
    """Return the condition that says what is wrong with the template; None where nothing is said of it."""
    found = (each for each in (status.conditions if status else ()) if each.type == RUNS_HEALTHY)
    return next((each for each in found if each.reason in {TEMPLATE_REJECTED, UNKNOWN_FIELDS}), None)
