"""Is this spec one that can be acted on."""

from __future__ import annotations

import re

import pytest

from support.builders import TEMPLATE, a_definition, a_schedule, of_definition
from workflow_schedules.api.schedule import ConcurrencyPolicy, WorkflowRef
from workflow_schedules.core.acceptance import Accepted, Refusal, accept, template_of
from workflow_schedules.core.model import Schedule
from workflow_schedules.core.triggers import Calendar, OneShotTrigger

ALLOW = ConcurrencyPolicy.ALLOW


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
    ("a deadline of 4 s (K-025)", a_schedule(starting_deadline_seconds=4), "InvalidSpec", "4 is below 5; write 5 or more"),
    ("a negative deadline", a_schedule(starting_deadline_seconds=-1), "InvalidSpec", "-1 is below 5"),
    ("an input too large (K-096)", a_schedule(input={"a": "\u00e9" * 16384}), "InvalidSpec", r"spec\.input: 32776 bytes.*32768"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schedule", "reason", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused(schedule: Schedule, reason: str, message: str) -> None:
    """R5, R7, R36, K-076: the field, the value, and what would be accepted."""
    verdict = accept(schedule)
    assert isinstance(verdict, Refusal)
    assert verdict.reason == reason
    assert re.search(message, verdict.message), verdict.message


ACCEPTED = [
    ("cron", a_schedule(), Calendar),
    ("one-shot", a_schedule(run_once_time="2020-01-01T00:00:00Z"), OneShotTrigger),
    ("allow with a limit", a_schedule(concurrency_policy=ALLOW, max_active_runs=100), Calendar),
    ("a deadline of 5 s", a_schedule(starting_deadline_seconds=5), Calendar),
    ("a deadline without end", a_schedule(starting_deadline_seconds=2**62), Calendar),
    ("an input that just fits", a_schedule(input={"a": "x" * (32768 - 8)}), Calendar),
    ("of a definition", a_schedule(**of_definition()), Calendar),
]


@pytest.mark.parametrize(("schedule", "kind"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_accepted(schedule: Schedule, kind: type) -> None:
    verdict = accept(schedule)
    assert isinstance(verdict, Accepted)
    assert isinstance(verdict.trigger, kind)


def test_template_in_force() -> None:
    """R22: the schedule's own, else the definition's."""
    assert template_of(a_schedule(), None) is TEMPLATE
    assert template_of(a_schedule(**of_definition()), a_definition()) is TEMPLATE
    assert template_of(a_schedule(**of_definition()), None) is None
