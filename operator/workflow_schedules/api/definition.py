"""WorkflowDefinition: what to run. Shape and bounds only."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from workflow_schedules.api.common import Condition, Model
from workflow_schedules.api.facets import Wire


class OnDisable(StrEnum):
    """What switching a definition off does to its schedules."""

    DISABLE_SCHEDULES = "DisableSchedules"
    HOLD_SCHEDULES = "HoldSchedules"


class WorkflowDefinitionSpec(Model):
    """What the owner declares."""

    enabled: Annotated[bool, Wire("While false, no schedule of this definition starts a run.", has_default=True)] = True
    description: Annotated[str | None, Wire("For people.", max_length=1024)] = None
    job_template: Annotated[dict[str, Any], Wire("The Job to run, exactly as in CronJob. Not checked here.")]
    input_schema: Annotated[
        dict[str, Any] | None,
        Wire(
            "JSON Schema (2020-12) of the input, at most 64 KiB: references only within, patterns as in RE2. Not checked here."
        ),
    ] = None
    max_active_runs: Annotated[
        int | None, Wire("Unfinished scheduled runs of all its schedules at once.", minimum=1)
    ] = None
    on_disable: Annotated[
        OnDisable,
        Wire(
            "Off, DisableSchedules disables its schedules for good; HoldSchedules holds them until it is on again.",
            has_default=True,
        ),
    ] = OnDisable.DISABLE_SCHEDULES


class WorkflowDefinitionStatus(Model):
    """What the operator sees. Only the operator writes it."""

    observed_generation: Annotated[int | None, Wire("Newest generation acted on.", minimum=0)] = None
    enabled: Annotated[bool | None, Wire("The switch as it was last acted on.")] = None
    schedules: Annotated[int, Wire("Schedules that name this definition.", minimum=0)] = 0
    enabled_schedules: Annotated[int, Wire("Those of them that are enabled.", minimum=0)] = 0
    active_runs: Annotated[int, Wire("Their unfinished scheduled runs.", minimum=0)] = 0
    conditions: Annotated[tuple[Condition, ...], Wire("Accepted, Ready.", max_items=16, map_key="type")] = ()
