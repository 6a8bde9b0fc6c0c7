"""Sleep until the earliest wake-up, then reconcile, several schedules at a time and each one only once at a time.

One bad schedule never delays another (I9): what goes wrong with one is logged and tried again later, and while it waits for an
answer others have their turns.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

from workflow_schedules.cluster.fence import LostLeaseError
from workflow_schedules.cluster.request_store import is_key
from workflow_schedules.scheduler.clock import Steps
from workflow_schedules.scheduler.projection import Projections
from workflow_schedules.scheduler.reconcile import observe, reconcile
from workflow_schedules.scheduler.requests import reconcile_requests
from workflow_schedules.scheduler.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from workflow_schedules.cluster.cluster import Cluster
    from workflow_schedules.cluster.fence import Fence
    from workflow_schedules.scheduler.wakeups import WakeUps

log = logging.getLogger(__name__)

WORKERS = 16
LONGEST_SLEEP_SECONDS = 1.0  # the wall clock may be set at any time, so it is looked at again at least this often
FAULT_PAUSE = timedelta(seconds=30)
_TIMER_SECONDS = 0.0001  # a timer may fire a little early, and would be set again


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
        self._turns = Turns(workers, monotonic=cluster.monotonic, namespace_of=self._namespace_of)
        self._woken_while_busy: set[str] = set()

    def _namespace_of(self, uid: str) -> str:
        if is_key(uid):
            return uid.partition("/")[0]
        schedule = self._cluster.cache.schedules.get(uid)
        return schedule.ref.namespace if schedule is not None else ""

    def _has_backlog(self) -> bool:
        return self._turns.has_line

    def is_busy(self) -> bool:
        """Tell whether schedules wait their turn, or all turns are taken."""
        return self._has_backlog() or self._turns.is_full

    def is_working_on(self, uid: str) -> bool:
        """Tell whether a write of this schedule may be under way."""
        return uid in self._turns

    async def run(self, fence: Fence, *, stop: asyncio.Event) -> None:
        """Reconcile until `stop` is set; then begin nothing more, finish what was begun, and write what statuses wait.

        Raises:
            LostLeaseError: this epoch may not write any more.
        """
        self._turns.clear()
        self._woken_while_busy.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                while not stop.is_set():
                    fence.check()
                    self._heed_clock()
                    self._line_up(self._wakeups.take_due(self._cluster.now()))
                    while (uid := self._turns.begin_next()) is not None:
                        tasks.create_task(self._reconcile(uid, fence))
                    await self._wakeups.wait_changed(self._sleep_seconds())
            await self._projections.flush(lambda uid: observe(uid, cluster=self._cluster, fence=fence), fence=fence)
        except* LostLeaseError as group:
            raise LostLeaseError(str(group.exceptions[0])) from group

    def _line_up(self, due: list[str]) -> None:
        for uid in due:
            if uid in self._turns:
                self._woken_while_busy.add(uid)
            else:
                self._turns.line_up(uid)

    def _heed_clock(self) -> None:
        """Where the wall clock was set: look at everyone again, since instants moved, and let pauses be as long as before."""
        step = self._steps.look(self._cluster.now(), self._cluster.monotonic())
        if step:
            log.warning("the clock was set", extra={"step_seconds": step.total_seconds()})
            self._cluster.cache.move_times(step)
            self._projections.move(step)
            self._wakeups.wake_known()

    def _sleep_seconds(self) -> float:
        seconds, until_aside, at = LONGEST_SLEEP_SECONDS, self._turns.seconds_until_aside(), self._wakeups.next_at()
        if until_aside is not None:
            seconds = min(seconds, until_aside + _TIMER_SECONDS)
        if at is not None:
            seconds = min(seconds, max((at - self._cluster.now()).total_seconds(), 0.0))
        return seconds

    async def _work_on(self, woken: str, fence: Fence) -> datetime | None:
        on_answer = partial(self._turns.go_on, woken)
        if is_key(woken):
            return await reconcile_requests(
                woken, cluster=self._cluster, wakeups=self._wakeups, fence=fence, on_answer=on_answer
            )
        return await reconcile(
            woken, cluster=self._cluster, projections=self._projections, fence=fence, on_answer=on_answer
        )

    async def _reconcile(self, uid: str, fence: Fence) -> None:
        try:
            at = await self._work_on(uid, fence)
        except LostLeaseError:
            raise
        except Exception:
            # a fault of ours with one schedule: said loudly, and every other schedule goes on
            log.exception("reconciling failed", extra={"schedule": uid})
            at = self._cluster.now() + FAULT_PAUSE
        finally:
            self._turns.end(uid)
            self._wakeups.poke()  # somebody else may begin
        if not is_key(uid):
            self._on_reconciled(uid)
        if uid in self._woken_while_busy:
            self._woken_while_busy.discard(uid)
            self._wakeups.wake(uid)
        elif at is not None:
            self._wakeups.wake_at(uid, at)
