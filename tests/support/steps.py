"""Steps of a plan in a few words, for tables of what is decided."""

from __future__ import annotations

from workflow_schedules.api.occurrence import Decision, ScheduleOccurrenceSpec
from workflow_schedules.core.plan import Append, Step


def in_words(step: Step | None) -> str:
    """``Baseline Edited Active @10:00:00 gives up 2 waiting 09:58``, ``Coalesced 10:00-10:20 (3)``, or the step's name."""
    if not isinstance(step, Append):
        return type(step).__name__ if step else "nothing"
    spec = step.spec
    assert ScheduleOccurrenceSpec.model_validate(spec.model_dump()) == spec  # it is built without a check
    if spec.decision is Decision.BASELINE:
        return f"Baseline {spec.reason} {spec.state} @{spec.consumed_through_time.time()}{_left(spec)}"
    first = f"{spec.span.first_time:%H:%M}-" if spec.span else ""
    count = f" ({spec.span.count})" if spec.span else ""
    return f"{spec.decision} {first}{spec.scheduled_time:%H:%M}{count}"


def _left(spec: ScheduleOccurrenceSpec) -> str:
    given_up = f" gives up {spec.span.count}" if spec.span else ""
    waiting = f" waiting {', '.join(f'{instant:%H:%M}' for instant in spec.waiting)}" if spec.waiting else ""
    return f"{given_up}{waiting}"
