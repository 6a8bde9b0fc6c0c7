"""Observe, decide, apply, until there is nothing more to do now: the file to read first.

Each write is decided on what the one before taught, so a crash between any two of them is the same as a pause.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.cluster.apply import apply
from workflow_schedules.cluster.snapshots import snapshot_of
from workflow_schedules.core.decide import decide
from workflow_schedules.core.log import open_runs
from workflow_schedules.scheduler.projection import LONGEST_WAIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.core.model import Snapshot
    from workflow_schedules.core.plan import Plan
    from workflow_schedules.scheduler.projection import Projections


async def reconcile(
    uid: str, *, cluster: Cluster, projections: Projections, fence: Fence, on_answer: Callable[[], None] = lambda: None
) -> datetime | None:
    """Do all that is to be done now about one schedule, and tell whenever one step of it is done.

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
            on_answer()
            if wait_seconds > 0:
                again_at = cluster.now() + timedelta(seconds=wait_seconds)
                await _say_refused(uid, again_at, cluster=cluster, projections=projections, fence=fence)
                return again_at
    finally:
        places.give_back(uid)


async def _rest(
    uid: str, snapshot: Snapshot, plan: Plan, *, cluster: Cluster, projections: Projections, fence: Fence
) -> datetime | None:
    """Remember what waits, and keep the status; return when to look again."""
    if snapshot.schedule is None and not open_runs(snapshot.runs):
        cluster.cache.forget_log(uid)
        return await projections.keep(uid, snapshot, fence=fence)
    memory = cluster.cache.log(uid)
    memory.held = plan.candidates
    if snapshot.record_refusal is not None:  # nothing is to be recorded now, so nothing is refused
        memory.record_refusal, snapshot = None, replace(snapshot, record_refusal=None)
    status_at = await projections.keep(uid, snapshot, fence=fence)
    return min(filter(None, (plan.next_wake_at, status_at)), default=None)


async def _say_refused(
    uid: str, again_at: datetime, *, cluster: Cluster, projections: Projections, fence: Fence
) -> None:
    """Keep the status though the log can't go on, unless that may pass at once; this brings no attempt forward."""
    memory = cluster.cache.log(uid)
    is_brief = memory.failures <= 1 and again_at <= cluster.now() + LONGEST_WAIT
    if memory.record_refusal is None or is_brief:
        return
    snapshot = observe(uid, cluster=cluster, fence=fence)
    memory.held = snapshot.held
    await projections.keep(uid, snapshot, fence=fence, overdue_until=again_at)


def observe(uid: str, *, cluster: Cluster, fence: Fence) -> Snapshot:
    """Return everything known of a schedule at this moment."""
    return snapshot_of(
        cluster.cache,
        uid,
        writer=fence.writer,
        since_acquired=timedelta(seconds=cluster.monotonic() - fence.acquired_at),
        answered_before=cluster.answered_before(),
    )
