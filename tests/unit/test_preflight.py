"""The last judgement before an admission: an instant is admitted with its real input, or consumed by a rejection."""

from __future__ import annotations

import json

import pytest

from support.builders import (
    TEMPLATE,
    UID,
    a_definition,
    a_record,
    a_schedule,
    a_snapshot,
    at,
    of_definition,
)
from workflow_schedules.api.names import record_name
from workflow_schedules.api.occurrence import (
    Cause,
    Decision,
    ScheduleOccurrenceSpec,
    ScheduleOccurrenceStatus,
    ScheduleRef,
    Totals,
)
from workflow_schedules.api.schedule import InputBinding, OccurrenceField, State
from workflow_schedules.core.decide import decide
from workflow_schedules.core.model import ObjectRef, Record, Snapshot
from workflow_schedules.core.plan import Append
from workflow_schedules.core.preflight import Passed, Rejection, judge_input, sample_record

LAST = Totals(completed=1, last_successful_time=at("09:00:07"))
EVERY = tuple(InputBinding(name=field.value, occurrence_field=field) for field in OccurrenceField)


def of(schema: object, *, totals: Totals | None = None, refusal: str | None = None, **fields: object) -> Snapshot:
    """A schedule of a definition, as it stands before 10:00, accepted by what the log says."""
    schedule = a_schedule(**of_definition(**fields))
    definition = a_definition(input_schema=schema)
    head = a_record(
        schedule=schedule, totals=totals or Totals(), definition_uid=definition.uid, definition_generation=1, revision=4
    )
    return a_snapshot(schedule, head=head, definition=definition, template_refusal=refusal)


def decided(snapshot: Snapshot) -> Append:
    step = decide(snapshot, now=at("10:00:01")).step
    assert isinstance(step, Append)
    return step


def test_the_resolved_input_goes_on_record() -> None:
    """R23, R24: as it is at that instant; recovery renders from the record."""
    step = decided(of({}, totals=LAST, input={"a": "\u00e9"}, input_from=EVERY))
    assert step.spec.decision is Decision.ADMITTED
    assert json.loads(step.spec.input_json or "") == {
        "a": "\u00e9",
        "scheduledTime": "2026-01-01T10:00:00Z",
        "name": record_name("hourly", UID, 2),
        "scheduleName": "hourly",
        "revision": 4,
        "cause": "Scheduled",
        "lastSuccessfulTime": "2026-01-01T09:00:07Z",
    }
    assert step.template is TEMPLATE


@pytest.mark.parametrize(
    ("fields", "want"),
    [({}, None), ({"input": {}}, "{}"), ({"input": {"a": "\u00e9"}}, '{"a":"\u00e9"}')],
    ids=["no input", "an empty one", "compact UTF-8"],
)
def test_an_input_without_bindings(fields: dict[str, object], want: str | None) -> None:
    """R23."""
    assert decided(a_snapshot(a_schedule(**fields))).spec.input_json == want


REFUSED = 'Job.batch "x" is invalid: spec.template.spec.containers[0].image: Required value'
REJECTED = [
    ("the API server would refuse the Job", of({}, refusal=REFUSED), "TemplateRejected", REFUSED),
    ("inline templates, too", a_snapshot(template_refusal=REFUSED), "TemplateRejected", REFUSED),
]


@pytest.mark.parametrize(
    ("snapshot", "reason", "message"), [row[1:] for row in REJECTED], ids=[row[0] for row in REJECTED]
)
def test_rejected(snapshot: Snapshot, reason: str, message: str) -> None:
    """R24, R29: consumes the instant, takes no slot, pins nothing."""
    step = decided(snapshot)
    spec = step.spec
    assert (spec.decision, spec.reason) == (Decision.PREFLIGHT_REJECTED, reason)
    assert message in (spec.message or "")
    assert (spec.scheduled_time, spec.consumed_through_time) == (at("10:00"), at("10:00"))
    assert (spec.open, spec.template_hash, spec.input_json, step.template) == ((), None, None, None)
    assert spec.totals is not None
    assert (spec.totals.skipped, spec.totals.admitted, spec.totals.last_schedule_time) == (1, 0, None)


def test_a_real_input_that_no_sample_foresaw() -> None:
    """R24, K-096: the path and the keyword, but no value of the input."""
    # 09:30 creation: the sample's instant is 10:00, the real one of the next day is not
    schedule = a_schedule(**of_definition(input_from=EVERY[:1]))
    definition = a_definition(input_schema={"properties": {"scheduledTime": {"pattern": "T10"}}})
    head = a_record(schedule=schedule, consumed=at("10:00"), definition_uid=definition.uid, definition_generation=1)
    step = decide(a_snapshot(schedule, head=head, definition=definition), now=at("11:00:01")).step
    assert isinstance(step, Append)
    assert (step.spec.decision, step.spec.reason) == (Decision.PREFLIGHT_REJECTED, "InputRejected")
    assert step.spec.message == (
        'input.scheduledTime: must meet pattern "T10" (inputSchema.properties.scheduledTime.pattern)'
    )


def test_a_schema_that_refuses_blocks_before_anything_is_due() -> None:
    """R24, I5: the log says Blocked before the status does, and no instant is consumed one by one."""
    snapshot = of({"required": ["region"]})
    step = decided(snapshot)
    assert (step.spec.decision, step.spec.state) == (Decision.BASELINE, State.BLOCKED)


def test_the_record_of_a_job_that_is_never_made() -> None:
    """R24: what the API server is asked about is what a later run of this schedule will have."""
    schedule = a_schedule(input={"a": 1}, input_from=EVERY[:3])
    record = sample_record(schedule, scheduled_time=at("10:00"))
    assert record == Record(
        ref=ObjectRef(namespace="team", name=record_name("hourly", UID, 0)),
        uid=UID,
        resource_version="",
        created_at=at("10:00"),
        spec=ScheduleOccurrenceSpec(
            schedule_ref=ScheduleRef(name="hourly", uid=UID),
            sequence=0,
            cause=Cause.SCHEDULED,
            decision=Decision.ADMITTED,
            scheduled_time=at("10:00"),
            input_json=f'{{"a":1,"scheduledTime":"2026-01-01T10:00:00Z","name":"{record_name("hourly", UID, 2)}",'
            '"scheduleName":"hourly"}',
        ),
        status=ScheduleOccurrenceStatus(),
    )


def test_the_record_of_one_without_input() -> None:
    """R24: nor where the spec can't be read; then there is no template to ask about either."""
    for schedule in (a_schedule(), a_schedule(problem="spec.enabled: no")):
        assert sample_record(schedule, scheduled_time=at("10:00")).spec.input_json is None


@pytest.mark.parametrize(("levels", "want"), [(200, Passed), (201, Rejection)])
def test_how_deep_an_input_may_be(levels: int, want: type) -> None:
    """R36, I9: what is nested deeper than that, nothing here can work with."""
    deep: dict[str, object] = {}
    for _ in range(levels - 1):
        deep = {"a": deep}
    judged = judge_input(deep, None)
    assert isinstance(judged, want)
    assert isinstance(judged, Passed) or judged.reason == "InputTooDeep"
