"""What counts as the same spec and the same template."""

from __future__ import annotations

import pytest

from support.builders import CREATED, TEMPLATE, a_spec
from workflow_schedules.api.schedule import (
    ConcurrencyPolicy,
    DeletionPolicy,
    InputBinding,
    MisfirePolicy,
    OccurrenceField,
    Pause,
    RepeatedTimePolicy,
    SkippedTimePolicy,
    WorkflowRef,
    WorkflowScheduleSpec,
)
from workflow_schedules.core.identity import pin, spec_hash

PLAIN = a_spec()

SAME = [
    ("another switch", a_spec(enabled=False)),
    ("a default written out", a_spec(time_zone="UTC", concurrency_policy=ConcurrencyPolicy.FORBID)),
    ("null clears", a_spec(input=None, starting_deadline_seconds=None)),
]
OTHER = [
    ("another expression", a_spec(schedule="5 * * * *")),
    ("another zone", a_spec(time_zone="Asia/Tokyo")),
    ("an input", a_spec(input={})),
    ("another policy", a_spec(misfire_policy=MisfirePolicy.LATEST)),
    ("a deadline", a_spec(starting_deadline_seconds=60)),
    ("a limit", a_spec(concurrency_policy=ConcurrencyPolicy.ALLOW, max_active_runs=1)),
    ("a one-shot", a_spec(run_once_time="2026-01-01T00:00:00Z")),
    ("a definition", a_spec(workflow_ref=WorkflowRef(name="report"))),
]


@pytest.mark.parametrize("spec", [row[1] for row in SAME], ids=[row[0] for row in SAME])
def test_no_edit(spec: WorkflowScheduleSpec) -> None:
    """R10, K-108: set fields that differ from their defaults, and only relevant ones."""
    assert spec_hash(spec, TEMPLATE) == spec_hash(PLAIN, TEMPLATE)


@pytest.mark.parametrize("spec", [row[1] for row in OTHER], ids=[row[0] for row in OTHER])
def test_an_edit(spec: WorkflowScheduleSpec) -> None:
    """R10."""
    assert spec_hash(spec, TEMPLATE) != spec_hash(PLAIN, TEMPLATE)


RELEVANT: dict[str, object] = {
    "workflow_ref": WorkflowRef(name="report"),
    "schedule": "5 * * * *",
    "schedules": ("0 * * * *", "5 * * * *"),
    "run_once_time": "2026-01-01T00:00:00Z",
    "time_zone": "Asia/Tokyo",
    "concurrency_policy": ConcurrencyPolicy.REPLACE,
    "max_active_runs": 2,
    "misfire_policy": MisfirePolicy.ALL,
    "max_catch_up_runs": 3,
    "starting_deadline_seconds": 60,
    "skipped_time_policy": SkippedTimePolicy.SKIP,
    "repeated_time_policy": RepeatedTimePolicy.FIRST,
    "input": {"a": 1},
    "input_from": (InputBinding(name="a", occurrence_field=OccurrenceField.NAME),),
    "active_deadline_seconds": 60,
    "start_timeout_seconds": 60,
    "max_jitter_seconds": 60,
    "exclude_dates": ("2026-12-25",),
    "start_time": CREATED,
    "end_time": CREATED,
    "run_limit": 5,
    "pause_after_failures": 3,
}
IRRELEVANT: dict[str, object] = {
    "enabled": False,
    "pause": Pause(reason="holidays"),
    "deletion_policy": DeletionPolicy.DELETE,
    "successful_jobs_history_limit": 7,
    "failed_jobs_history_limit": 7,
    "occurrence_history_limit": 7,
}


@pytest.mark.parametrize("field", RELEVANT)
def test_each_relevant_field_is_an_edit(field: str) -> None:
    """R10: what concerns a run, or when it is due."""
    changed = PLAIN.model_copy(update={field: RELEVANT[field]})
    assert spec_hash(changed, TEMPLATE) != spec_hash(PLAIN, TEMPLATE)


@pytest.mark.parametrize("field", IRRELEVANT)
def test_no_irrelevant_field_is_one(field: str) -> None:
    """R10: switches, and what concerns only what is kept."""
    changed = PLAIN.model_copy(update={field: IRRELEVANT[field]})
    assert changed != PLAIN
    assert spec_hash(changed, TEMPLATE) == spec_hash(PLAIN, TEMPLATE)


def test_every_field_is_one_or_the_other() -> None:
    """R10: a new field is told apart when it is added; the template counts by its own hash."""
    assert {*RELEVANT, *IRRELEVANT, "job_template"} == set(WorkflowScheduleSpec.model_fields)


def test_a_null_within_the_input_is_content() -> None:
    assert spec_hash(a_spec(input={"a": None}), None) != spec_hash(a_spec(input={}), None)


def test_another_template_is_an_edit_and_another_order_is_none() -> None:
    """R10, R22."""
    assert pin({"a": 1, "b": 2}) == pin({"b": 2, "a": 1})
    assert pin({"a": 1}).hash != pin({"a": 2}).hash
    assert spec_hash(PLAIN, pin({"a": 1})) != spec_hash(PLAIN, pin({"a": 2}))


def test_hashes_are_pinned() -> None:
    """R10: an upgrade must not look like an edit of every schedule."""
    assert spec_hash(PLAIN, None) == "7659b4d16237d366b400d1a469becf85"
    assert spec_hash(PLAIN.model_copy(update=RELEVANT), None) == "4e055a984f84b1acf9b2970ea66d22f4"
    assert pin({}).hash == "44136fa355b3678a1146ad16f7e8649e"
