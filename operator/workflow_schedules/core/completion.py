"""When a schedule is used up: its runs counted, or its calendar at an end. What merely stops it is no end.

Works on what the log counts and on the calendar; switches, parents and pauses may not live here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workflow_schedules.api.common import format_utc
from workflow_schedules.api.occurrence import Decision
from workflow_schedules.core.due_times import latest_due_time
from workflow_schedules.core.misfire import Verdict, all_due
from workflow_schedules.core.totals import totals_now
from workflow_schedules.core.triggers import OneShotTrigger
from workflow_schedules.core.zones import LAST_SECOND, to_utc

if TYPE_CHECKING:
    from datetime import datetime

    from workflow_schedules.api.schedule import WorkflowScheduleSpec
    from workflow_schedules.core.acceptance import Accepted
    from workflow_schedules.core.model import Snapshot

RUN_LIMIT_REACHED = "RunLimitReached"


def runs_left(snapshot: Snapshot, spec: WorkflowScheduleSpec) -> int | None:
    """Return how many runs `runLimit` still allows; None for any number.

    The log counts since the creation: no edit begins anew, a higher limit reopens.

    Source: contract `runLimit`, R21; P6.
    """
    return None if spec.run_limit is None else max(0, spec.run_limit - _admitted(snapshot))


def _admitted(snapshot: Snapshot) -> int:
    if snapshot.head is not None:
        return snapshot.head.spec.totals.admitted if snapshot.head.spec.totals else 0
    status = snapshot.schedule.status if snapshot.schedule else None
    return status.counts.admitted if status and status.counts else 0  # repeats the log, which is not read yet


def over_limit(snapshot: Snapshot, accepted: Accepted, *, now: datetime) -> Verdict | None:
    """Return the instants that were due when the last run was admitted, and that the limit leaves without one.

    Source: contract R21, R29; I3.
    """
    head = snapshot.head
    if head is None or head.spec.decision is not Decision.ADMITTED or head.spec.consumed_through_time is None:
        return None
    until = min(now, head.created_at)
    return all_due(accepted.trigger, head.spec.consumed_through_time, until, Decision.SUPERSEDED)


def calendar_ends_at(accepted: Accepted, *, after: datetime) -> datetime | None:
    """Return the last instant of a calendar that ends, when that is still to come; None otherwise.

    Source: contract R21.
    """
    if isinstance(accepted.trigger, OneShotTrigger):
        return latest_due_time(accepted.trigger, after=after, until=to_utc(LAST_SECOND))
    end = accepted.spec.end_time
    return None if end is None else latest_due_time(accepted.trigger, after=after, until=end)


def why(snapshot: Snapshot, accepted: Accepted) -> tuple[str, str]:
    """Return reason and message of the condition `Complete` of a schedule that is used up.

    Source: contract R7, R21.
    """
    spec, trigger = accepted.spec, accepted.trigger
    if runs_left(snapshot, spec) == 0:
        count = _admitted(snapshot)
        return RUN_LIMIT_REACHED, (
            f"{count} {'run' if count == 1 else 'runs'} admitted since the creation, runLimit is {spec.run_limit}: "
            "a higher one reopens it, from then on"
        )
    if not isinstance(trigger, OneShotTrigger):
        if spec.end_time is None:
            return "NeverAgain", "the calendar has no further instant"
        return "EndTimePassed", f"no instant is left before endTime {format_utc(spec.end_time)}: a later one reopens it"
    totals = totals_now(snapshot.head, snapshot.runs)
    again = "an edit that makes it due again reopens it"
    if totals.last_schedule_time == to_utc(trigger.instant):
        return "OneShotDone", f"runOnceTime was run; {again}"
    if totals.skipped:
        return "OneShotMissed", f"runOnceTime could not start in time, its record says why; {again}"
    return "OneShotPast", f"runOnceTime has passed while nothing could start; {again}"
