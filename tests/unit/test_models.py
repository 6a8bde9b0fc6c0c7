"""The wire models: what they read, what they write, what they don't judge."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from workflow_schedules.api.common import (
    Condition,
    ConditionStatus,
    Model,
    format_utc,
    parse_utc,
    set_condition,
    wire_name,
)
from workflow_schedules.api.definition import WorkflowDefinitionSpec, WorkflowDefinitionStatus
from workflow_schedules.api.occurrence import (
    FINAL_OUTCOMES,
    Cause,
    Decision,
    Outcome,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    ScheduleRef,
    Totals,
)
from workflow_schedules.api.schedule import (
    ConcurrencyPolicy,
    MisfirePolicy,
    State,
    WorkflowScheduleSpec,
    WorkflowScheduleStatus,
)

NOON = datetime(2026, 8, 27, 12, tzinfo=UTC)

INSTANTS = [
    ("2026-08-27T12:00:00Z", NOON),
    ("2026-08-27T12:00:00z", NOON),
    ("2026-08-27t12:00:00Z", NOON),
    ("2026-08-27T20:00:00+08:00", NOON),
    ("2026-08-27T06:30:00-05:30", NOON),
    ("2026-08-27T12:00:00.999999999Z", NOON),
    (NOON.replace(microsecond=5), NOON),
    (NOON.astimezone(timezone(timedelta(hours=8))), NOON),
]


@pytest.mark.parametrize(("value", "want"), INSTANTS, ids=str)
def test_instants_are_utc_and_whole_seconds(value: object, want: datetime) -> None:
    got = parse_utc(value)
    assert got == want
    assert got.tzinfo is UTC
    assert got.microsecond == 0


@pytest.mark.parametrize(
    "value",
    [
        "2026-08-27T12:00:00",
        "2026-08-27 12:00:00Z",
        "2026-08-27",
        "20260827T120000Z",
        "2026-W35-4T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-08-27T24:00:00Z",
        "2026-08-27T12:00:60Z",
        "2026-08-27T12:00:00+0800",
        "2026-08-27T12:00:00Z\n",
        "٢026-08-27T12:00:00Z",
        "0001-01-01T00:00:00+08:00",
        "",
        0,
        None,
        datetime(2026, 8, 27, 12),  # noqa: DTZ001 - naive on purpose
    ],
    ids=repr,
)
def test_what_is_no_instant_with_an_offset_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"offset|no such instant"):
        parse_utc(value)


@given(at=st.datetimes(timezones=st.just(UTC)))
def test_instants_survive_the_wire(at: datetime) -> None:
    assert parse_utc(format_utc(at)) == at.replace(microsecond=0)


@pytest.mark.parametrize(
    ("field", "want"),
    [
        ("name", "name"),
        ("uid", "uid"),
        ("previous_uid", "previousUID"),
        ("definition_uid", "definitionUID"),
        ("input_json", "inputJSON"),
        ("job_uid", "jobUID"),
        ("consumed_through_time", "consumedThroughTime"),
    ],
)
def test_wire_names(field: str, want: str) -> None:
    assert wire_name(field) == want


def test_a_schedule_is_born_disabled_forbids_and_skips() -> None:
    spec = WorkflowScheduleSpec.model_validate({})
    assert (spec.enabled, spec.time_zone) == (False, "UTC")
    assert spec.concurrency_policy is ConcurrencyPolicy.FORBID
    assert spec.misfire_policy is MisfirePolicy.SKIP


STILL_PARSES: list[tuple[str, dict[str, Any]]] = [
    ("an empty expression", {"schedule": ""}),
    ("blanks", {"schedule": "     "}),
    ("null", {"schedule": None}),
    ("neither trigger", {}),
    ("both triggers", {"schedule": "* * * * *", "runOnceTime": "never"}),
    ("Allow without a limit", {"concurrencyPolicy": "Allow"}),
    ("numbers out of bounds", {"maxActiveRuns": 0, "startingDeadlineSeconds": -1}),
    ("no such zone", {"timeZone": "Mars/Olympus"}),
    ("fields of a newer operator", {"jitter": 3, "pause": {"reason": "x"}}),
]


@pytest.mark.parametrize("spec", [row[1] for row in STILL_PARSES], ids=[row[0] for row in STILL_PARSES])
def test_wrong_values_parse_so_that_the_operator_can_report_them(spec: dict[str, Any]) -> None:
    """K-056, K-071: something written past the checks blocks its schedule, and crashes nothing."""
    WorkflowScheduleSpec.model_validate(spec)


@pytest.mark.parametrize(
    "spec", [{"concurrencyPolicy": "Maybe"}, {"misfirePolicy": 3}, {"maxActiveRuns": "many"}, {"input": []}], ids=str
)
def test_values_of_a_wrong_type_are_errors_of_that_object(spec: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        WorkflowScheduleSpec.model_validate(spec)


def test_templates_and_inputs_keep_their_nulls_and_spelling() -> None:
    content = {"metadata": {"creationTimestamp": None}, "spec": {"some_key": [None, 1, {"aB": None}]}}
    spec = WorkflowScheduleSpec(job_template=content, input=content)
    assert spec.wire()["jobTemplate"] == content
    assert spec.wire()["input"] == content
    assert WorkflowDefinitionSpec.model_validate({"jobTemplate": content}).wire()["jobTemplate"] == content


RECORD: dict[str, Any] = {
    "scheduleRef": {"name": "s", "uid": "u"},
    "sequence": 3,
    "format": 1,
    "previousUID": "p",
    "cause": "Scheduled",
    "scheduledTime": "2026-08-27T12:00:00Z",
    "input": {"region": "eu"},
    "decision": "Coalesced",
    "reason": "Late",
    "message": "m",
    "span": {"firstTime": "2026-08-27T11:58:00Z", "lastTime": "2026-08-27T12:00:00Z", "count": 3},
    "revision": 2,
    "specHash": "h",
    "generation": 4,
    "definitionUID": "d",
    "definitionGeneration": 5,
    "state": "Active",
    "templateHash": "t",
    "inputJSON": "{}",
    "activeDeadlineSeconds": 600,
    "startTimeoutSeconds": 120,
    "consumedThroughTime": "2026-08-27T12:00:00Z",
    "open": [1, 2],
    "waiting": ["2026-08-27T12:00:00Z"],
    "replaces": 2,
    "totals": {
        "admitted": 1,
        "completed": 2,
        "failed": 3,
        "skipped": 4,
        "coalesced": 5,
        "superseded": 6,
        "consecutiveFailures": 7,
        "countedFailures": 8,
        "lastScheduleTime": "2026-08-27T12:00:00Z",
        "lastSuccessfulTime": "2026-08-27T12:00:00Z",
        "lastFailureTime": "2026-08-27T12:00:00Z",
    },
    "fencingEpoch": 8,
    "writer": "w",
    "lease": "ns/l",
}

RECORD_STATUS: dict[str, Any] = {
    "outcome": "Failed",
    "reason": "JobMissing",
    "message": "m",
    "jobUID": "j",
    "startTime": "2026-08-27T12:00:01Z",
    "completionTime": "2026-08-27T12:01:04Z",
    "startLatenessSeconds": 1,
    "duration": "1m3s",
    "transitions": [{"outcome": "Failed", "time": "2026-08-27T12:01:04Z", "reason": "JobMissing"}],
    "conditions": [],
    "fencingEpoch": 8,
    "writer": "w",
    "scheduleUID": "u",
    "revision": 2,
    "templateHash": "t",
    "inputJSON": "{}",
    "lease": "ns/l",
    "activeDeadlineSeconds": 60,
    "startTimeoutSeconds": 120,
}

SCHEDULE_STATUS: dict[str, Any] = {
    "observedGeneration": 1,
    "revision": 1,
    "revisionTime": "2026-08-27T12:00:00Z",
    "specHash": "h",
    "logHead": 3,
    "definitionUID": "d",
    "definitionGeneration": 4,
    "fencingEpoch": 8,
    "writer": "w",
    "lease": "ns/l",
    "consumedThroughTime": "2026-08-27T12:00:00Z",
    "scheduleText": "* * * * *",
    "nextScheduleTime": "2026-08-27T12:01:00Z",
    "nextScheduleTimes": ["2026-08-27T12:01:00Z"],
    "lastScheduleTime": "2026-08-27T12:00:00Z",
    "lastOccurrence": {"name": "n", "outcome": "Running"},
    "lastSuccessfulTime": "2026-08-27T12:00:00Z",
    "lastFailureTime": "2026-08-27T12:00:00Z",
    "consecutiveFailures": 0,
    "active": ["n"],
    "activeCount": 1,
    "candidates": ["2026-08-27T12:00:00Z"],
    "counts": {"admitted": 1, "completed": 0, "failed": 0, "skipped": 0, "coalesced": 0, "superseded": 0},
    "recent": [
        {"name": "n", "time": "2026-08-27T12:00:00Z", "decision": "Admitted", "outcome": "Running", "reason": "Due"}
    ],
    "state": "Active",
    "conditions": [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Accepted",
            "message": "",
            "lastTransitionTime": "2026-08-27T12:00:00Z",
            "observedGeneration": 1,
        }
    ],
}


@pytest.mark.parametrize(
    ("model", "content"),
    [
        (ScheduleOccurrenceSpec, RECORD),
        (ScheduleOccurrenceStatus, RECORD_STATUS),
        (WorkflowScheduleStatus, SCHEDULE_STATUS),
        (
            WorkflowDefinitionStatus,
            {
                "observedGeneration": 1,
                "enabled": True,
                "schedules": 2,
                "enabledSchedules": 1,
                "activeRuns": 0,
                "conditions": [],
            },
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_every_field_survives_the_wire(model: type[Model], content: dict[str, Any]) -> None:
    parsed = model.model_validate(content)
    assert set(content) == {field.alias for field in model.model_fields.values()}, "the table names every field"
    assert parsed.wire() == content
    assert model.model_validate(parsed.wire()) == parsed


def test_code_spells_fields_in_snake_case() -> None:
    record = ScheduleOccurrenceSpec(
        schedule_ref=ScheduleRef(name="s", uid="u"),
        sequence=1,
        cause=Cause.SCHEDULED,
        decision=Decision.BASELINE,
        state=State.ACTIVE,
        consumed_through_time=NOON,
        totals=Totals(),
    )
    assert record.wire()["consumedThroughTime"] == "2026-08-27T12:00:00Z"
    assert "previousUID" not in record.wire()


def test_models_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        WorkflowScheduleSpec().enabled = True  # type: ignore[misc]


def test_final_outcomes() -> None:
    assert {outcome for outcome in Outcome if outcome.is_final} == FINAL_OUTCOMES
    assert set(Outcome) - FINAL_OUTCOMES == {Outcome.RUNNING, Outcome.INTERRUPTED}


def _condition(kind: str, status: ConditionStatus, reason: str = "R") -> Condition:
    return Condition(type=kind, status=status, reason=reason)


def test_a_condition_keeps_its_time_while_its_status_stays() -> None:
    later = NOON + timedelta(hours=1)
    first = set_condition((), _condition("Ready", ConditionStatus.TRUE), NOON)
    both = set_condition(first, _condition("Paused", ConditionStatus.FALSE), NOON)
    reworded = set_condition(both, _condition("Ready", ConditionStatus.TRUE, "Other"), later)
    flipped = set_condition(reworded, _condition("Ready", ConditionStatus.FALSE), later)
    assert [c.type for c in flipped] == ["Ready", "Paused"]
    assert (reworded[0].reason, reworded[0].last_transition_time) == ("Other", NOON)
    assert flipped[0].last_transition_time == later
    assert flipped[1] is both[1]
