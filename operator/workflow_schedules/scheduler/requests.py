"""Observe, decide, apply for the runs that people asked for: all that name one schedule together, one write at a time.

They wait for no log and are in none; what became of them shows in the schedule's status, so its schedule is woken.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.cluster.requests import apply_request
from workflow_schedules.cluster.snapshots import queue_of
from workflow_schedules.core.decide_requests import Refuse, decide_requests
from workflow_schedules.core.ending import says_unhealthy
from workflow_schedules.core.plan import CreateJob, DeleteJob, FindJob, ReadPods, WriteOutcome
from workflow_schedules.core.runs import REQUEST_LIFE

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.scheduler.wakeups import WakeUps

_TOLD = Refuse | WriteOutcome | CreateJob | DeleteJob | FindJob | ReadPods  # may show in the status of the schedule


async def reconcile_requests(
    key: str, *, cluster: Cluster, wakeups: WakeUps, fence: Fence, on_answer: Callable[[], None]
) -> datetime | None:
    """Do all that is to be done now about the requests that name one schedule, and tell whenever one step of it is done.

    Returns:
        When to look again if nothing happens; None for never.

    Raises:
        LostLeaseError: this epoch may not write any more.
    """
    while True:
        monotonic = cluster.monotonic()
        queue = queue_of(
            cluster.cache,
            key,
            writer=fence.writer,
            since_acquired=timedelta(seconds=monotonic - fence.acquired_at),
            answered_before=monotonic - REQUEST_LIFE.total_seconds(),
        )
        plan = decide_requests(queue, now=cluster.now())
        if plan.step is None:
            if queue.snapshot.schedule is not None and says_unhealthy(queue.snapshot.schedule.status):
                wakeups.wake(queue.snapshot.uid)  # it may be well again
            return plan.next_wake_at
        await apply_request(cluster, plan.step, queue, fence=fence)
        on_answer()
        uid = plan.step.run.record.spec.schedule_ref.uid
        if isinstance(plan.step, _TOLD) and uid is not None:
            wakeups.wake(uid)
