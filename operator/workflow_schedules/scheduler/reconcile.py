"""Observe, decide, apply, until there is nothing more to do now: the file to read first.

Each write is decided on what the one before taught, so a crash between any two of them is the same as a pause.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.cluster.apply import apply
from workflow_schedules.core.decide import decide
from workflow_schedules.core.log import open_runs

if TYPE_CHECKING:
    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import Plan, Snapshot
    from workflow_schedules.scheduler.projection import Projections


async def reconcile(uid: str, *, cluster: Cluster, projections: Projections, fence: Fence) -> datetime | None:
    """Do all that is to be done now about one schedule.

    Returns:
        When to look again if nothing happens; None for never.

    Raises:
        LostLeaseError: this epoch may not write any more.
    """
    places = cluster.cache.places
    try:
        while True:
            snapshot = observe(uid, cluster=cluster, fence=fence)
            plan = decide(snapshot, now=cluster.now())
            if plan.step is None:
                if plan.waits_for_place:
                    places.wait(uid, snapshot.definition.uid if snapshot.definition else None, plan.candidates[0])
                else:
                    places.leave(uid)
                return await _rest(uid, snapshot, plan, cluster=cluster, projections=projections, fence=fence)
            wait_seconds = await apply(cluster, plan.step, snapshot, fence=fence)
            if wait_seconds > 0:
                return cluster.now() + timedelta(seconds=wait_seconds)
    finally:
        places.give_back(uid)


async def _rest(
    uid: str, snapshot: Snapshot, plan: Plan, *, cluster: Cluster, projections: Projections, fence: Fence
) -> datetime | None:
    """Remember what waits, and keep the status; return when to look again."""
    if snapshot.schedule is None and not open_runs(snapshot.runs):
        cluster.cache.forget_log(uid)
        return await projections.keep(uid, snapshot, fence=fence)
    cluster.cache.log(uid).held = plan.candidates
    status_at = await projections.keep(uid, snapshot, fence=fence)
    return min(filter(None, (plan.next_wake_at, status_at)), default=None)


def observe(uid: str, *, cluster: Cluster, fence: Fence) -> Snapshot:
    """Return everything known of a schedule at this moment."""
    return cluster.cache.snapshot(
        uid,
        writer=fence.writer,
        since_acquired=timedelta(seconds=cluster.monotonic() - fence.acquired_at),
        answered_before=cluster.answered_before(),
    )
