"""What is on record about an instant that found no place: too many scheduled runs beside those of its own schedule.

A place is the right to one more unfinished scheduled run, by the operator's limit and by the definition's; a slot is the same
by the schedule's own. Who holds which place is the cache's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workflow_schedules.api.occurrence import ScheduleOccurrenceSpec
    from workflow_schedules.core.model import Snapshot

CAPACITY_EXCEEDED = "CapacityExceeded"


def capacity_exceeded(record: ScheduleOccurrenceSpec, snapshot: Snapshot) -> ScheduleOccurrenceSpec:
    """Return the record of a skip that says that it was capacity, not a run of this schedule, that was in the way.

    Source: contract R16, R28.
    """
    definition = snapshot.definition
    limits = ["the operator's limit of scheduled runs (WORKFLOW_SCHEDULES_MAX_CONCURRENT_RUNS)"]
    if definition is not None and definition.max_active_runs is not None:
        limits.insert(0, f"maxActiveRuns {definition.max_active_runs} of WorkflowDefinition {definition.ref.name}")
    message = f"no free place: {' or '.join(limits)} was used up"
    return record.model_copy(update={"reason": CAPACITY_EXCEEDED, "message": message})
