"""Is this spec one that can be acted on."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from support.builders import TEMPLATE, a_definition, a_schedule, of_definition
from workflow_schedules.api.schedule import ConcurrencyPolicy, InputBinding, OccurrenceField
from workflow_schedules.core.acceptance import Accepted, accept, definition_problem, template_of
from workflow_schedules.core.identity import pin
from workflow_schedules.core.model import Definition, Schedule
from workflow_schedules.core.refusals import Refusal
from workflow_schedules.core.triggers import Calendar, OneShotTrigger

ALLOW = ConcurrencyPolicy.ALLOW


def bound(**fields: str) -> tuple[InputBinding, ...]:
    """Return bindings, `key="occurrenceField"`."""
    return tuple(InputBinding(name=name, occurrence_field=OccurrenceField(value)) for name, value in fields.items())


REFUSED = [
    ("it does not parse", a_schedule(problem="spec.enabled: 7: want true or false"), "InvalidSpec", (),
     "spec.enabled: 7"),
    ("all that is wrong, the first gives the reason", a_schedule(schedule="0 0 30 2 *", run_limit=0),
     "NeverMatches", ("schedule",), r"spec\.schedule: .*; spec\.runLimit: 0"),
    ("an input too large with its bindings", a_schedule(input={"a": "x" * 32752}, input_from=bound(b="name")),
     "InvalidSpec", ("inputFrom",), r"spec\.input with spec\.inputFrom: 32792 bytes.*32768"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("schedule", "reason", "path", "message"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_refused(schedule: Schedule, reason: str, path: tuple[str | int, ...], message: str) -> None:
    """R36, K-096: the field, the value, and what would be accepted."""
    verdict = accept(schedule)
    assert isinstance(verdict, Refusal)
    assert (verdict.reason, verdict.path) == (reason, path)
    assert re.search(message, verdict.message), verdict.message


ACCEPTED = [
    ("cron", a_schedule(), Calendar),
    ("one-shot", a_schedule(run_once_time="2020-01-01T00:00:00Z"), OneShotTrigger),
    ("allow with a limit", a_schedule(concurrency_policy=ALLOW, max_active_runs=100), Calendar),
    ("a deadline of 5 s (K-025)", a_schedule(starting_deadline_seconds=5), Calendar),
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


TYPED = {
    "required": ["region"],
    "properties": {
        "region": {"enum": ["eu", "us"]},
        "since": {"type": "string"},
        "day": {"pattern": "^2026-01-01T10:00:00Z$"},
        "count": {"type": "integer"},
    },
}
EU = {"region": "eu"}
REJECTED = [
    ("no input where one is needed", {}, ("input",), 'spec.input: {}: has no "region"; write it (inputSchema.required)'),
    ("a wrong value", {"input": {"region": "mars"}}, ("input", "region"), 'spec.input.region: "mars": write one of "eu", "us"'),
    ("all that is wrong", {"input": {"count": "x"}}, ("input", "count"), 'spec.input.count: "x": write a whole number'),
    ("a binding of another type", {"input": EU, "input_from": bound(count="name")}, ("inputFrom", 0),
     "spec.inputFrom[0]: \"hourly-"),
    ("a last success that the first run has not", {"input": EU, "input_from": bound(since="lastSuccessfulTime")},
     ("inputFrom", 0), "spec.inputFrom[0]: null: write text"),
    ("an instant that is none of the schedule's", {"schedule": "30 * * * *", "input": EU,
     "input_from": bound(day="scheduledTime")}, ("inputFrom", 0), 'spec.inputFrom[0]: "2026-01-01T10:30:00Z": must meet pattern'),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "path", "want"), [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED])
def test_the_sample_input_has_to_meet_the_schema(
    fields: dict[str, object], path: tuple[str | int, ...], want: str
) -> None:
    """R24, R36: with what occurrences of this schedule will have."""
    schedule = a_schedule(**of_definition(**fields))
    verdict = accept(schedule, a_definition(input_schema=TYPED))
    assert isinstance(verdict, Refusal)
    assert (verdict.reason, verdict.path) == ("InputRejected", path)
    assert want in verdict.message


INPUTS_ACCEPTED = [
    ("it meets the schema", of_definition(input=EU), a_definition(input_schema=TYPED)),
    ("an instant of the schedule", of_definition(input=EU, input_from=bound(day="scheduledTime")),
     a_definition(input_schema=TYPED)),
    ("no schema", of_definition(input={"region": "mars"}), a_definition()),
    ("R4: no definition holds, it does not block", of_definition(input={"region": "mars"}), None),
    ("a schema that is none is its definition's problem", of_definition(), a_definition(input_schema={"type": 7})),
    ("an inline template has no schema", {"input": {"region": "mars"}}, a_definition(input_schema=TYPED)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "definition"), [row[1:] for row in INPUTS_ACCEPTED], ids=[row[0] for row in INPUTS_ACCEPTED]
)
def test_accepted_inputs(fields: dict[str, object], definition: Definition | None) -> None:
    """R24, R4."""
    assert isinstance(accept(a_schedule(**fields), definition), Accepted)


def test_a_schema_that_changes_is_judged_anew() -> None:
    """R24: the cached verdict of a schedule does not outlive the schema."""
    schedule = a_schedule(**of_definition(input={"region": "mars"}))
    assert isinstance(accept(schedule, a_definition(input_schema=TYPED)), Refusal)
    assert isinstance(accept(schedule, a_definition(input_schema={})), Accepted)
    assert isinstance(accept(schedule, a_definition(input_schema=TYPED)), Refusal)


def test_a_spec_is_judged_once_however_its_schedule_changes() -> None:
    """R36: the same spec object has the same verdict."""
    schedule = a_schedule()
    assert accept(replace(schedule, resource_version="11")) is accept(schedule)


NO_OBJECT = pin({"spec": 7})
ANEW = [
    ("its template is another", a_schedule(), {"template": NO_OBJECT}, "spec.jobTemplate.spec: write an object"),
    ("it does not parse for another reason", a_schedule(problem="spec.a: no"), {"problem": "spec.b: no"}, "spec.b: no"),
]


@pytest.mark.parametrize(("schedule", "changed", "want"), [row[1:] for row in ANEW], ids=[row[0] for row in ANEW])
def test_what_else_is_judged_with_a_spec_is_judged_anew(
    schedule: Schedule, changed: dict[str, object], want: str
) -> None:
    """R36."""
    before, verdict = accept(schedule), accept(replace(schedule, **changed))
    assert verdict != before
    assert isinstance(verdict, Refusal)
    assert verdict.message.startswith(want)


def test_keys_without_a_variable_are_warned_of() -> None:
    """R23."""
    verdict = accept(a_schedule(input={"a-b": 1}, input_from=bound(a_b="lastSuccessfulTime")))
    assert isinstance(verdict, Accepted)
    assert len(verdict.warnings) == 1
    assert "INPUT_A_B" in verdict.warnings[0]


@pytest.mark.parametrize(
    ("definition", "want"),
    [
        (a_definition(input_schema=TYPED), None),
        (a_definition(template=None), "spec.jobTemplate: missing"),
        (replace(a_definition(template=None), problem=None), "spec.jobTemplate: missing"),
        (replace(a_definition(template=None), problem="spec.enabled: 7"), "spec.enabled: 7"),
        (replace(a_definition(), problem="spec.enabled: 7"), "spec.enabled: 7"),
        (a_definition(template=NO_OBJECT), "spec.jobTemplate.spec: write an object, as in CronJob"),
        (a_definition(template=NO_OBJECT, input_schema={}), "spec.jobTemplate.spec: write an object, as in CronJob"),
        (a_definition(input_schema={"items": 7}), "spec.inputSchema.items: 7 is none that items may have"),
    ],
)
def test_definition_problem(definition: Definition, want: str | None) -> None:
    """Section 1 (`Accepted`), R24."""
    found = definition_problem(definition)
    assert found == want or (want is not None and found is not None and found.startswith(want))
