"""What each field of a spec may not say."""

from __future__ import annotations

import re

import pytest

from support.builders import a_schedule
from workflow_schedules.api.schedule import ConcurrencyPolicy, InputBinding, OccurrenceField, WorkflowRef
from workflow_schedules.core.identity import pin
from workflow_schedules.core.model import Schedule
from workflow_schedules.core.refusals import refusals

ALLOW = ConcurrencyPolicy.ALLOW


def bound(**fields: str) -> tuple[InputBinding, ...]:
    """Return bindings, `key="occurrenceField"`."""
    return tuple(InputBinding(name=name, occurrence_field=OccurrenceField(value)) for name, value in fields.items())


def with_both_templates() -> Schedule:
    schedule = a_schedule()
    assert schedule.spec is not None
    spec = schedule.spec.model_copy(update={"workflow_ref": WorkflowRef(name="report")})
    return Schedule(**{name: getattr(schedule, name) for name in Schedule.__slots__ if name != "spec"}, spec=spec)


REFUSED = [
    ("it does not parse", a_schedule(problem="spec.enabled: 7: want true or false"), "InvalidSpec", "spec.enabled: 7"),
    ("neither cron nor one-shot", a_schedule(schedule=None), "InvalidSchedule", "is needed, none is set"),
    ("cron + one-shot", a_schedule(schedule="0 * * * *", run_once_time="2026-01-01T00:00:00Z"), "InvalidSchedule", "more"),
    ("a bad expression", a_schedule(schedule="61 * * * *"), "InvalidSchedule", r"spec\.schedule: '61 \* .*0-59"),
    ("an expression that never fires", a_schedule(schedule="0 0 30 2 *"), "NeverMatches", r"spec\.schedule: .*no such date"),
    ("an unknown zone", a_schedule(time_zone="Mars/Olympus"), "UnknownTimeZone", r"spec\.timeZone: 'Mars/Olympus'.*Zurich"),
    ("a one-shot in an unknown zone", a_schedule(run_once_time="2026-01-01T00:00:00Z", time_zone="X"), "UnknownTimeZone", "'X'"),
    ("a one-shot without offset", a_schedule(run_once_time="2026-01-01T00:00:00"), "InvalidSchedule", "runOnceTime: .*offset"),
    ("no template", a_schedule(template=None), "InvalidSpec", "workflowRef and jobTemplate is needed, neither"),
    ("two templates", with_both_templates(), "InvalidSpec", "workflowRef and jobTemplate is needed, both"),
    ("allow without a limit", a_schedule(concurrency_policy=ALLOW), "InvalidSpec", r"spec\.maxActiveRuns: unset.*1 to 100"),
    ("a limit without allow", a_schedule(max_active_runs=5), "InvalidSpec", r"spec\.maxActiveRuns: 5 is only for"),
    ("a limit of 0", a_schedule(concurrency_policy=ALLOW, max_active_runs=0), "InvalidSpec", "0 is outside 1 to 100"),
    ("a limit of -1", a_schedule(concurrency_policy=ALLOW, max_active_runs=-1), "InvalidSpec", "-1 is outside 1 to 100"),
    ("a limit of 2^31", a_schedule(concurrency_policy=ALLOW, max_active_runs=2**31), "InvalidSpec", "is outside 1 to 100"),
    ("a deadline of 0 s (K-025)", a_schedule(starting_deadline_seconds=0), "InvalidSpec", "0 is below 5; write 5 or more"),
    ("a deadline of 1 s (K-025)", a_schedule(starting_deadline_seconds=1), "InvalidSpec", "1 is below 5; write 5 or more"),
    ("a deadline of 4 s (K-025)", a_schedule(starting_deadline_seconds=4), "InvalidSpec", "4 is below 5; write 5 or more"),
    ("a negative deadline", a_schedule(starting_deadline_seconds=-1), "InvalidSpec", "-1 is below 5"),
    ("an input too large (K-096)", a_schedule(input={"a": "\u00e9" * 16384}), "InvalidSpec", r"spec\.input: 32776 bytes.*32768"),
    ("a key given and bound", a_schedule(input={"day": 1}, input_from=bound(day="scheduledTime")),
     "InvalidSpec", r"spec\.inputFrom\[0\]\.name: 'day' is a key of spec\.input, too"),
    ("a key bound twice", a_schedule(input_from=bound(day="scheduledTime") + bound(day="name")),
     "InvalidSpec", r"spec\.inputFrom\[1\]\.name: 'day' is a key of spec\.inputFrom\[0\], too"),
    ("33 bindings", a_schedule(input_from=bound(**{f"k{i}": "name" for i in range(33)})),
     "InvalidSpec", r"spec\.inputFrom: 33 bindings; write at most 32"),
    ("pods of others selected", a_schedule(template=pin({"spec": {"selector": {"matchLabels": {"a": "b"}}}})),
     "InvalidSpec", r"spec\.jobTemplate\.spec\.selector: is made by the Job controller"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schedule", "reason", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused(schedule: Schedule, reason: str, message: str) -> None:
    """R5, R7, R36, K-076: the field, the value, and what would be accepted."""
    (refusal,) = refusals(schedule)
    assert refusal.reason == reason
    assert re.search(message, refusal.message), refusal.message
