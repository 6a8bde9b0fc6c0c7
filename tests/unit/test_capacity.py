"""Limits beyond a schedule's own: how they hold an instant back, and what is on record about one that found no place."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from support.builders import (
    a_definition,
    a_job,
    a_record,
    a_run,
    a_schedule,
    a_snapshot,
    an_admission,
    at,
    of_definition,
)
from workflow_schedules.api.schedule import ConcurrencyPolicy, MisfirePolicy
from workflow_schedules.core.decide import decide
from workflow_schedules.core.model import JobPhase, Run, Schedule, Snapshot
from workflow_schedules.core.plan import Append, Plan

OPERATORS = "the operator's limit of scheduled runs (WORKFLOW_SCHEDULES_MAX_CONCURRENT_RUNS)"
CHILD = a_schedule(**of_definition())
LIMITED = replace(a_definition(), max_active_runs=3)
LATEST = a_schedule(misfire_policy=MisfirePolicy.LATEST)
REPLACE = a_schedule(concurrency_policy=ConcurrencyPolicy.REPLACE)


def with_places(capacity: int | None, schedule: Schedule, *runs: Run, **known: object) -> Snapshot:
    head = an_admission(schedule=schedule) if runs else a_record(schedule=schedule, consumed=at("10:00"))
    return replace(a_snapshot(schedule, head=head, runs=runs, **known), capacity=capacity)


RUNNING = a_run(job=a_job(JobPhase.WAITING))


@dataclass(frozen=True, slots=True)
class Case:
    """What is recorded at eleven, and whether the schedule waits in the line for a place."""

    name: str
    snapshot: Snapshot
    want: str
    waits: bool = False


CASES = [
    Case("R28 no limit", with_places(None, a_schedule()), "Admitted Admitted"),
    Case("R28 one place is enough", with_places(1, a_schedule()), "Admitted Admitted"),
    Case("R16, R28 no place: skipped, and capacity is why", with_places(0, a_schedule()), "SkippedOverlap CapacityExceeded"),
    Case("R16, R28 under Latest it waits in line", with_places(0, LATEST), "nothing", waits=True),
    Case("R12 its own run is in the way, whatever the places", with_places(0, a_schedule(), RUNNING),
         "SkippedOverlap SkippedOverlap"),
    Case("R12 what waits for its own run waits for no place", with_places(0, LATEST, RUNNING), "nothing"),
    Case("R28 with nothing due it waits for no place", with_places(0, a_schedule(schedule="30 12 * * *")), "nothing"),
    Case("R14, R28 the run that is replaced gives its place", with_places(0, REPLACE, RUNNING), "Admitted Admitted"),
    Case("R14, R28 with none to replace it needs one", with_places(0, REPLACE), "SkippedOverlap CapacityExceeded"),
]  # fmt: skip


def summary(plan: Plan) -> str:
    return f"{plan.step.spec.decision} {plan.step.spec.reason}" if isinstance(plan.step, Append) else "nothing"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_instant_needs_a_place(case: Case) -> None:
    plan = decide(case.snapshot, now=at("11:00"))
    assert (summary(plan), plan.waits_for_place) == (case.want, case.waits)


MESSAGES = [
    ("R28 the operator's limit", with_places(0, a_schedule()), OPERATORS),
    ("R28 its definition may have been in the way, too", with_places(0, CHILD, definition=LIMITED),
     f"maxActiveRuns 3 of WorkflowDefinition report or {OPERATORS}"),
    ("R28 a definition without a limit was not", with_places(0, CHILD, definition=a_definition()), OPERATORS),
]  # fmt: skip


@pytest.mark.parametrize(("snapshot", "limits"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_a_record_says_which_limits_were_in_the_way(snapshot: Snapshot, limits: str) -> None:
    step = decide(snapshot, now=at("11:00")).step
    assert isinstance(step, Append)
    assert (step.spec.reason, step.spec.message) == ("CapacityExceeded", f"no free place: {limits} was used up")
