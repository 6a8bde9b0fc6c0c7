"""What each field of a spec may not say."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from support.builders import a_schedule
from workflow_schedules.api.schedule import ConcurrencyPolicy, InputBinding, OccurrenceField, WorkflowRef
from workflow_schedules.core.identity import pin
from workflow_schedules.core.input_schema import dotted
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


CRON = "0 * * * *"
DAY, NEXT_DAY = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
BAD_DATES = [
    "2026-02-29",
    "2026-13-01",
    "20261225",
    "2026-W52-5",
    "26-12-25",
    "2026-12-25T00:00:00Z",
    "0000-01-01",
    "Xmas",
    "",
]
OF_TIME: list[tuple[str, dict[str, Any], str, str]] = [
    ("no expression", {"schedules": ()}, "InvalidSchedule", "spec: .*runOnceTime is needed, none is set"),
    ("both of them", {"schedule": CRON, "schedules": ("5 * * * *",)}, "InvalidSchedule", "spec: .*more than one is set"),
    ("eleven expressions", {"schedules": (CRON,) * 11}, "InvalidSchedule", r"spec\.schedules: 11 expressions; write at most 10"),
    ("a bad one among them", {"schedules": (CRON, "61 * * * *")}, "InvalidSchedule", r"spec\.schedules\[1\]: .*'61' is not read"),
    ("one that never fires among them", {"schedules": ("0 0 31 2 *", "0 0 1 1 *")}, "NeverMatches",
     r"spec\.schedules\[0\]: .*no such date"),
    ("one that reads like a field is given as it is", {"schedules": ("spec.schedule: 5 * * *",)}, "InvalidSchedule",
     r"spec\.schedules\[0\]: 'spec\.schedule: 5"),
    ("401 dates", {"schedule": CRON, "exclude_dates": ("2026-01-01",) * 401}, "InvalidSpec", r"spec\.excludeDates: .*400"),
    ("the end before the start", {"schedule": CRON, "start_time": NEXT_DAY, "end_time": DAY}, "InvalidSpec",
     r"spec\.endTime: 2026-01-01T00:00:00Z is not later than startTime"),
    ("the end at the start", {"schedule": CRON, "start_time": DAY, "end_time": DAY}, "InvalidSpec", "not later than startTime"),
    ("negative jitter", {"schedule": CRON, "max_jitter_seconds": -1}, "InvalidSpec", r"spec\.maxJitterSeconds: .*0 to 86400"),
    ("jitter over a day", {"schedule": CRON, "max_jitter_seconds": 86401}, "InvalidSpec", "86401 is outside"),
    ("a one-shot after the end", {"run_once_time": NEXT_DAY, "end_time": DAY}, "NeverMatches",
     r"spec\.runOnceTime: .*outside of startTime and endTime and would never run"),
    ("a one-shot before the start", {"run_once_time": DAY, "start_time": NEXT_DAY}, "NeverMatches", "of startTime and endTime"),
    *[(f"no date: {text!r}", {"schedule": CRON, "exclude_dates": ("2026-12-24", text)}, "InvalidSpec",
       rf"spec\.excludeDates\[1\]: {re.escape(repr(text))} is no date; write it as 2026-12-25") for text in BAD_DATES],
]  # fmt: skip
NUMBERS = [
    ("maxCatchUpRuns", "max_catch_up_runs", 0, "0 is outside 1 to 100"),
    ("maxCatchUpRuns", "max_catch_up_runs", 101, "101 is outside 1 to 100"),
    ("runLimit", "run_limit", 0, "0 is not positive"),
    ("pauseAfterFailures", "pause_after_failures", 0, "0 is not positive"),
    ("activeDeadlineSeconds", "active_deadline_seconds", 0, "0 is not positive"),
    ("startTimeoutSeconds", "start_timeout_seconds", 0, "0 is not positive"),
]
REFUSED = [
    *[(name, a_schedule(**{"schedule": None, **fields}), reason, message) for name, fields, reason, message in OF_TIME],
    *[(f"{name} {number}", a_schedule(**{field: number}), "InvalidSpec", rf"spec\.{name}: {message}")
      for name, field, number, message in NUMBERS],
    ("nobody can say why it does not parse", replace(a_schedule(problem="?"), problem=None), "InvalidSpec",
     "spec: it does not parse"),
    ("a limit of 101", a_schedule(concurrency_policy=ALLOW, max_active_runs=101), "InvalidSpec", "101 is outside 1 to 100"),
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
    assert refusal.message.startswith(dotted("spec", refusal.path)), refusal.path
    assert re.search(message, refusal.message), refusal.message


DATES = tuple(f"{year}-01-{day:02}" for year in range(2026, 2046) for day in range(1, 21))
ACCEPTED: list[tuple[str, dict[str, Any]]] = [
    ("ten expressions", {"schedule": None, "schedules": tuple(f"{minute} * * * *" for minute in range(10))}),
    ("400 dates", {"exclude_dates": DATES}),
    ("no jitter", {"max_jitter_seconds": 0}),
    ("jitter of a day", {"max_jitter_seconds": 86400}),
    ("the end a second after the start", {"start_time": DAY, "end_time": "2026-01-01T00:00:01Z"}),
    ("only a start", {"start_time": DAY}),
    ("only an end", {"end_time": DAY}),
    ("a one-shot at its start", {"run_once_time": DAY, "start_time": DAY}),
    ("a one-shot at its end", {"run_once_time": DAY, "end_time": DAY}),
    ("a limit of 1", {"concurrency_policy": ALLOW, "max_active_runs": 1}),
    ("a limit of 100", {"concurrency_policy": ALLOW, "max_active_runs": 100}),
    ("a catch-up of 1", {"max_catch_up_runs": 1}),
    ("a catch-up of 100", {"max_catch_up_runs": 100}),
    ("a deadline of 5 s (K-025)", {"starting_deadline_seconds": 5}),
    *[(f"{field} of 1", {field: 1}) for field in
      ("run_limit", "pause_after_failures", "active_deadline_seconds", "start_timeout_seconds")],
]  # fmt: skip


@pytest.mark.parametrize("fields", [row[1] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_the_last_value_that_is_accepted(fields: dict[str, Any]) -> None:
    """R36, section 2 (fields)."""
    assert refusals(a_schedule(**fields)) == []


def test_all_that_is_wrong_is_said_at_once() -> None:
    """R36: a bad zone hides no bad expression."""
    bad = a_schedule(
        schedule=None, schedules=("61 * * * *", "@daily   "), time_zone="Mars", exclude_dates=("never",), max_jitter_seconds=-1,
        starting_deadline_seconds=1, max_active_runs=3,
    )  # fmt: skip
    paths = [refusal.path for refusal in refusals(bad)]
    assert paths == [
        ("timeZone",), ("schedules", 0), ("schedules", 1), ("maxActiveRuns",), ("startingDeadlineSeconds",),
        ("maxJitterSeconds",), ("excludeDates", 0),
    ]  # fmt: skip
