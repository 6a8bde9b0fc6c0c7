"""Sleep until the earliest wake-up, then reconcile, several schedules at a time and each one only once at a time.

One bad schedule never delays another (I9): what goes wrong with one is logged and tried again later.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from workflow_schedules.cluster.fence import LostLeaseError
from workflow_schedules.cluster.request_store import is_key
from workflow_schedules.scheduler.clock import Steps
from workflow_schedules.scheduler.projection import Projections
from workflow_schedules.scheduler.reconcile import observe, reconcile
from workflow_schedules.scheduler.requests import reconcile_requests

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.scheduler.wakeups import WakeUps

log = logging.getLogger(__name__)

WORKERS = 16
LONGEST_SLEEP_SECONDS = 1.0  # the wall clock may be set at any time, so it is looked at again at least this often
FAULT_PAUSE = timedelta(seconds=30)


class Loop:
    """Reconciles what is due while this process leads."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        wakeups: WakeUps,
        workers: int = WORKERS,
        on_reconciled: Callable[[str], None] = lambda _uid: None,
    ) -> None:
        self._cluster = cluster
        self._wakeups = wakeups
        self._on_reconciled = on_reconciled
        self._projections = Projections(cluster, is_busy=self._has_backlog)
        self._steps = Steps()
        self._workers = workers
        self._busy: set[str] = set()
        self._backlog = 0
        self._woken_while_busy: set[str] = set()

    def _has_backlog(self) -> bool:
        return self._backlog > 0

    def is_busy(self) -> bool:
        """Tell whether schedules wait their turn, or all turns are taken."""
        return self._has_backlog() or len(self._busy) >= self._workers

    def is_working_on(self, uid: str) -> bool:
        """Tell whether a write of this schedule may be under way."""
        return uid in self._busy

    async def run(self, fence: Fence, *, stop: asyncio.Event) -> None:
        """Reconcile until `stop` is set; then begin nothing more, finish what was begun, and write what statuses wait.

        Raises:
            LostLeaseError: this epoch may not write any more.
        """
        self._busy.clear()
        self._woken_while_busy.clear()
        slots = asyncio.Semaphore(self._workers)
        try:
            async with asyncio.TaskGroup() as tasks:
                while not stop.is_set():
                    fence.check()
                    self._heed_clock()
                    due = self._wakeups.take_due(self._cluster.now())
                    for begun, uid in enumerate(due, start=1):
                        self._backlog = len(due) - begun
                        if uid in self._busy:
                            self._woken_while_busy.add(uid)
                            continue
                        await slots.acquire()
                        if stop.is_set():
                            break
                        self._busy.add(uid)
                        tasks.create_task(self._reconcile(uid, fence, slots))
                    await self._wakeups.wait_changed(self._sleep_seconds())
            await self._projections.flush(lambda uid: observe(uid, cluster=self._cluster, fence=fence), fence=fence)
        except* LostLeaseError as group:
            raise LostLeaseError(str(group.exceptions[0])) from group

    def _heed_clock(self) -> None:
        """Where the wall clock was set: look at everyone again, since instants moved, and let pauses be as long as before."""
        step = self._steps.look(self._cluster.now(), self._cluster.monotonic())
        if step:
            log.warning("the clock was set", extra={"step_seconds": step.total_seconds()})
            self._cluster.cache.move_times(step)
            self._projections.move(step)
            self._wakeups.wake_known()

    def _sleep_seconds(self) -> float:
        at = self._wakeups.next_at()
        if at is None:
            return LONGEST_SLEEP_SECONDS
        return min(max((at - self._cluster.now()).total_seconds(), 0.0), LONGEST_SLEEP_SECONDS)

    async def _work_on(self, woken: str, fence: Fence) -> datetime | None:
        if is_key(woken):
            return await reconcile_requests(woken, cluster=self._cluster, wakeups=self._wakeups, fence=fence)
        return await reconcile(woken, cluster=self._cluster, projections=self._projections, fence=fence)

    async def _reconcile(self, uid: str, fence: Fence, slots: asyncio.Semaphore) -> None:
        try:
            at = await self._work_on(uid, fence)
        except LostLeaseError:
            raise
        except Exception:
            # a fault of ours with one schedule: said loudly, and every other schedule goes on
            log.exception("reconciling failed", extra={"schedule": uid})
            at = self._cluster.now() + FAULT_PAUSE
        finally:
            self._busy.discard(uid)
            slots.release()
        if not is_key(uid):
            self._on_reconciled(uid)
        if uid in self._woken_while_busy:
            self._woken_while_busy.discard(uid)
            self._wakeups.wake(uid)
        elif at is not None:
            self._wakeups.wake_at(uid, at)
